"""Datasets of other packages, by name, in figures of papers."""

import sys
from types import ModuleType

import numpy as np
import pytest

from experiments.cormode2012.fig6b import Fig6b
from experiments.hay2010.fig5 import Fig5
from workbench import Bound, Domain, SparseTable, plugins


class Steps:
    """Ten counts, five times each."""

    truth_public = True
    domain = Domain(("rank",), (50,))

    def load(self):
        counts = np.repeat(np.arange(10), 5)
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)


class Flows(Steps):
    """Of homes to works."""

    domain = Domain(("home", "work"), (10, 5))


class Hidden(Steps):
    """Counts that nobody may compare with."""

    truth_public = False


@pytest.fixture(autouse=True)
def stated(monkeypatch):
    module = ModuleType("somebodys")
    vars(module).update(Steps=Steps, Flows=Flows, Hidden=Hidden)
    monkeypatch.setitem(sys.modules, "somebodys", module)
    monkeypatch.setenv(plugins.WITH, "somebodys")


def test_a_figure_takes_somebodys_dataset():
    figure = Fig5.at("quick", data=("Steps", "NetTrace twin"))
    assert isinstance(figure.sweeps()["Steps"].datasets[0].dataset, Steps)
    assert "NetTrace twin" in figure.sweeps()
    assert figure.differences("quick") == {"data": ("Steps", "NetTrace twin")}


def test_tables_of_commuting_too():
    sweep = Fig6b.at("quick", data=("Flows",)).sweeps()["Flows"]
    assert isinstance(sweep.datasets[0], Flows) and sweep.metrics


@pytest.mark.parametrize(
    "name, why", [("Hidden", "truth is public"), ("Stepz", "need one of 'Social Network'")]
)
def test_what_is_not_public_or_is_none_is_refused(name, why):
    with pytest.raises(ValueError, match=why):
        Fig5.at("quick", data=(name,))
