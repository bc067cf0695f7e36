"""Specs of Fan & Jin, Figures 7 to 9 and Table 5: what they run and compute themselves."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments.fan2015 import data as fan2015_data
from experiments.fan2015 import fig7 as fan2015_fig7
from experiments.fan2015 import fig8 as fan2015_fig8
from experiments.fan2015 import fig9 as fan2015_fig9
from experiments.fan2015 import table5 as fan2015_table5
from experiments.fan2015._counts import (
    METHODS,
    PRECISION,
    PUBLISHED,
    five_methods,
    next_methods,
)
from experiments.fan2015.data import RatedFilms
from experiments.fan2015.unreleased import ReleaseTakenApart
from tests.figures.worlds import figure_of
from workbench import DP, Bound, Domain
from workbench.data import Interactions
from workbench.datasets import InteractionsTwin
from workbench.figures import plots
from workbench.mechanisms import HPA

SMALL = InteractionsTwin(300, 120, 6000, 200)


# --- what the specs compute themselves


FILMS = InteractionsTwin(
    300, 60, 9000, 55, 20, once=True, contexts="gender and age", popularity=1.5
)
TWINS = ("Foursquare twin", "MovieLens twin")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Two small twins in place of the paper's data."""
    monkeypatch.setitem(fan2015_data._TWINS, "Foursquare", SMALL)
    monkeypatch.setitem(fan2015_data._TWINS, "MovieLens", FILMS)
    return tmp_path


def at_small(spec, **given):
    return figure_of(spec).at("quick", data=TWINS, **given)


@pytest.mark.slow
def test_figures_7_to_9_share_their_runs(small):
    for spec, more in ((fan2015_fig7, None), (fan2015_fig8, 11), (fan2015_fig9, 0)):
        kept = len([*small.glob("*.json")])
        figure = at_small(spec, seeds=2)
        rows = figure.rows(small)
        # MovieLens' groups are Figure 8's alone: of SRA twice, of HPA thrice; and the tastes
        assert more in (None, len([*small.glob("*.json")]) - kept)
        assert len(figure.comparison(rows)) == 2 * (3 * len(METHODS) + 6 + 4 + 1)
        drawn = figure.draw(rows)
        assert "not the paper's setting: data" in drawn._suptitle.get_text()
        plt.close(drawn)


def test_the_parts_of_an_error_add_up(small):
    figure = at_small(fan2015_fig7, seeds=1, taken_apart=2)
    rows = figure.rows(small)
    parts = rows[rows.metric == fan2015_fig7.PARTS]
    assert set(parts.seed) == {0, 1} and set(parts.series) == {"SRA", "HPA"}
    sums = parts.pivot_table("value", ["panel", "series", "decile"], "part", "sum")
    whole = sums[["dropped", "noise", "interaction", "clipping"]].sum(axis=1)
    np.testing.assert_allclose(whole, sums.total, atol=1e-6)
    told = figure.sources(rows)
    assert len(told) == 2 * 2 * 2 and list(told.columns)[:2] == ["dropped", "noise"]


def test_films_that_nobody_rated_are_left_out():
    labels = (range(1, 8), ("F", "M"))
    columns = [np.array(x) for x in ([0, 0, 1], [4, 1, 4], [1, 1, 0])]
    films = Interactions(Domain(("item", "context"), (7, 2), labels), *columns, Bound(7, 1))
    titles = {2: "two", 5: "five"}
    archive = SimpleNamespace(load=lambda: films, domain=films.domain, titles=lambda: titles)
    data = RatedFilms(archive).load()
    assert data.domain.shape == (2, 2) and list(data.domain.decode("item", data.items)) == [
        5,
        2,
        5,
    ]
    assert list(data.item_counts()) == [1, 2] and data.bound == Bound(7, 1)
    assert fan2015_table5.film_names(RatedFilms(archive)) == ["two", "five"]


def test_a_release_taken_apart_is_one_that_the_mechanism_makes():
    data = SMALL.load()
    mechanism = HPA(DP(1.0), 10, 1)
    apart = ReleaseTakenApart(mechanism)(data, np.random.default_rng(5)).estimate
    kept = mechanism.bounded_data(data, np.random.default_rng(5))
    released = mechanism(data, np.random.default_rng(5)).estimate
    assert (apart.kept.item_counts() == kept.item_counts()).all()
    assert (apart.released.items.values == released.items.values).all()


def test_public_numbers_of_what_is_beside_the_paper():
    case = fan2015_data.Case("Online Retail", SimpleNamespace(), "", 7983)
    told = five_methods(case, 1.0, "total") | next_methods(case, DP(1.0))
    assert told["SRA, total = N"].total == 406_829 and told["SRA, suggested l"].n == 4372
    assert told["SRA, suggested l"].bound == 93 and told["HPA, half random"].random_share == 0.5
    assert set(fan2015_data.DATASETS) == set(PUBLISHED) | {
        "Foursquare"
    }  # which is always a twin


def test_table_5_lists_films_of_one_run(small):
    figure = figure_of(fan2015_table5).at("quick", seeds=2, tops=(1, 5))
    table = figure.table(figure.rows(small))
    assert len(table.columns) == 7 and len(table) == 10
    best = set(table.original)
    for series in table.columns[1:]:
        for film in table[series]:
            assert film.endswith(" *") == (film.removesuffix(" *") in best)


def test_films_are_called_by_their_titles_where_they_have_some():
    data = SimpleNamespace(domain=SMALL.domain, titles=lambda: {0: "Heat (1995)"})
    told = fan2015_table5.film_names(data)
    assert told[:2] == ["Heat (1995)", "film 1"] and len(told) == 120
    assert fan2015_table5.film_names(SMALL)[0] == "film 0"


# --- bars of named groups, and axes of what lies between 0 and 1


def test_bands_of_precision_leave_no_room_beyond_it():
    made = pd.DataFrame({"top": [1, 1, 9, 9], "value": [0.0, 1.0, 0.2, 0.3], "series": "SRA"})
    _, (ax,) = plots.panels()
    plots.curves(made.assign(metric=PRECISION), "top", "series", ax, log="x")
    assert ax.get_ylim() == (0, 1.05)
    plt.close(ax.figure)
