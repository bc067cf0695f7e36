"""Figures switch from twins to a paper's own files, in the published format, with nothing to change."""

import numpy as np
import pandas as pd
import pytest

from experiments.fan2015 import fig6 as fan2015_fig6
from experiments.fan2015 import table4
from experiments.fan2015.data import RatedFilms
from experiments.hay2010 import fig5, fig6, fig7
from tests.datasets.files import pack, zipped
from workbench.datasets import (
    Gowalla,
    InteractionsTwin,
    MovieLens,
    NetflixPrize,
    NetTrace,
    NetTraceTwin,
    Ranked,
    SearchLogs,
    SocialNetwork,
)
from workbench.datasets import ratings as netflix_prize
from workbench.figures.figure import uses_of
from workbench.trials.claims import HOLDS, Verdict


def counts(size, seed=0):
    """Made-up counts, one a line, in no order."""
    rng = np.random.default_rng(seed)
    return "".join(f"{count}\n" for count in rng.integers(0, 9, size))


@pytest.fixture
def hay(folder):
    """The three published files, small; the trace's is sorted by count."""
    trace = sorted(counts(3000).split(), key=int, reverse=True)
    pack(folder / "hay2010/nettrace.txt", "\n".join(trace))
    pack(folder / "hay2010/search_logs.txt.gz", counts(2048, 1))
    pack(folder / "hay2010/social_network.txt", counts(500, 2))
    return folder / "hay2010"


def test_figures_of_hay_et_al_use_the_files(hay, tmp_path):
    figure = fig5.Fig5(
        ("Social Network", "NetTrace"), (1.0,), lengths=(4,), steps=(1.0,), seeds=1
    )
    sweeps = figure.sweeps()
    assert sweeps["NetTrace"].datasets == [Ranked(NetTrace())]
    assert sweeps["Social Network"].datasets == [Ranked(SocialNetwork())]
    rows = figure.rows(tmp_path)
    assert {"NetTrace", "Social Network"} < {*rows.panel}
    assert not rows.panel.str.contains("twin").any()
    assert fig7.Fig7().sweeps()["all"].datasets == [Ranked(NetTrace())]


def test_ranges_of_addresses_take_another_order_beside_a_file_that_is_sorted_by_count(hay):
    sweeps = fig6.Fig6(("NetTrace", "Search Logs"), (1.0,), sizes=(1, 2), seeds=1).sweeps()
    assert sweeps["NetTrace"].datasets == [NetTrace()]
    assert sweeps["NetTrace twin"].datasets == [NetTraceTwin()]
    assert sweeps["Search Logs"].datasets == [SearchLogs()]
    pack(hay / "nettrace.txt", counts(3000))
    sweeps = fig6.Fig6(("NetTrace",), (1.0,), sizes=(1, 2), seeds=1).sweeps()
    assert sweeps["NetTrace"].datasets == [NetTrace()] and "NetTrace twin" not in sweeps


FILMS = {n: f"{n}:\n{n},3,2005-09-06\n7,1,2004-02-29\n" for n in (1, 2, 3)}


@pytest.fixture
def fan(folder, monkeypatch):
    """The archives of MovieLens and Netflix, and SNAP's file of Gowalla, small."""
    ratings = "".join(f"{u}::{f}::4::978300760\n" for u in range(1, 31) for f in range(1, 12))
    users = "".join(f"{u}::{'FM'[u % 2]}::25::1::48067\n" for u in range(1, 31))
    members = {"ml-1m/ratings.dat": ratings, "ml-1m/users.dat": users, "ml-1m/movies.dat": ""}
    zipped(folder / "movielens/ml-1m.zip", members)
    monkeypatch.setattr(netflix_prize, "PARTS", ((1, 2, 4), (3, 3, 2)))
    for number, text in FILMS.items():
        pack(folder / f"netflix_prize/training_set/mv_{number:07}.txt", text)
    visit = "{}\t2010-07-24T13:45:06Z\t30.2359\t-97.7951\t{}\n"
    visits = "".join(visit.format(u, 22 + p) for u in range(6) for p in range(4))
    pack(folder / "gowalla/loc-gowalla_totalCheckins.txt.gz", visits)
    return folder


def test_figures_of_fan_and_jin_use_the_archives(fan, tmp_path):
    names = ("Gowalla", "Foursquare", "Netflix", "MovieLens")
    sweeps = fan2015_fig6.Fig6(names[2:]).sweeps()
    datasets = [dataset for sweep in sweeps.values() for dataset in sweep.datasets]
    films = RatedFilms(MovieLens())
    assert {*datasets} == {NetflixPrize(), films}
    assert films.domain.shape == (11, 6) and films.load().item_counts().min() > 0
    figure = table4.Table4(names)
    datasets = [dataset for sweep in figure.sweeps().values() for dataset in sweep.datasets]
    twin = InteractionsTwin.foursquare()  # nobody publishes the paper's
    assert datasets == [Gowalla("austin"), twin, NetflixPrize(), films]
    rows = table4.Table4(("Gowalla", "Netflix", "MovieLens")).rows(tmp_path)
    assert not rows.panel.str.contains("twin").any()
    assert MovieLens().remarks()[0] == "30 users (published: 6,040)"
    assert Gowalla("austin").remarks()[0] == "6 users (published: 12,579)"


def test_a_figure_says_what_it_uses_and_what_would_make_it_the_papers(hay, fan):
    uses = {use.dataset: use for use in uses_of(fig6.Fig6(("NetTrace", "Search Logs")))}
    assert uses["NetTraceTwin()"].kind == "twin"
    assert "github.com/michaelghay/vldb2010data" in uses["NetTraceTwin()"].remedy
    assert "not by address" in uses["NetTraceTwin()"].remedy
    said = "it is the paper's own; 2,048 lines (published: 32,768)"
    assert uses["SearchLogs()"][1:] == ("SearchLogs()", "real file", said)
    kinds = {(use.dataset, use.kind) for use in uses_of(fig5.Fig5())}
    assert {("NetTrace()", "real file"), ("KeywordFrequenciesTwin()", "twin")} < kinds
    assert {kind for name, kind in kinds if name.startswith("EqualSteps")} == {"generator"}
    (twin,) = uses_of(table4.Table4(("Foursquare",)))
    assert twin.kind == "twin" and "nobody publishes" in twin.remedy
    (file,) = uses_of(table4.Table4(("MovieLens",)))
    assert "30 users (published: 6,040)" in file.remedy


def test_a_verdict_on_a_file_of_another_size_says_so(hay, tmp_path):
    figure = fig7.Fig7(seeds=1, samples=1)
    rows = pd.DataFrame({"dataset": ["Ranked(dataset=NetTrace())"]})
    (verdict,) = figure._with_remarks([Verdict("h", "says", HOLDS, why="so")], rows)
    assert verdict.why == "so; NetTrace() has 3,000 lines (published: 65,536)"
    twin = pd.DataFrame({"dataset": ["Ranked(dataset=NetTraceTwin())"]})
    assert figure._with_remarks([verdict], twin) == [verdict]
