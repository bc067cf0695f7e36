"""Figures switch from twins to a paper's own files, in the published format, with nothing to change."""

import numpy as np
import pytest

from experiments.hay2010 import fig5, fig6, fig7
from tests.datasets.test_datasets import pack
from workbench.datasets import NetTrace, NetTraceTwin, Ranked, SearchLogs, SocialNetwork


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
        ("Social Network", "NetTrace"), (1.0,), lengths=(4,), values=(1,), length=4, seeds=1
    )
    sweeps = figure.sweeps()
    assert sweeps["NetTrace"].datasets == [Ranked(NetTrace())]
    assert sweeps["Social Network"].datasets == [Ranked(SocialNetwork())]
    rows = figure.rows(tmp_path)
    assert {"NetTrace", "Social Network"} < {*rows.panel}
    assert not rows.panel.str.contains("twin").any()
    assert fig7.Fig7().sweeps()["all"].datasets == [Ranked(NetTrace())]


def test_ranges_of_addresses_take_no_file_that_is_sorted_by_count(hay):
    sweeps = fig6.Fig6(("NetTrace", "Search Logs"), (1.0,), sizes=(1, 2), seeds=1).sweeps()
    assert sweeps["NetTrace twin"].datasets == [NetTraceTwin()]
    assert sweeps["Search Logs"].datasets == [SearchLogs()]
    pack(hay / "nettrace.txt", counts(3000))
    sweeps = fig6.Fig6(("NetTrace",), (1.0,), sizes=(1, 2), seeds=1).sweeps()
    assert sweeps["NetTrace"].datasets == [NetTrace()]
