"""Datasets of other packages, by name, in figures of papers."""

import sys
from types import ModuleType

import numpy as np
import pytest

from experiments.chen2012.fig4 import Fig4
from experiments.chen2012.fig7 import Fig7
from experiments.cormode2012.fig6b import Fig6b
from experiments.fan2015.data import cases
from experiments.fan2015.fig5 import Fig5 as SignalFigure
from experiments.hay2010.fig5 import Fig5
from workbench import Bound, Domain, Interactions, SparseTable, compiled


class Steps:
    """Ten counts, five times each."""

    truth_public = True
    domain = Domain(("rank",), (50,))

    def load(self):
        counts = np.repeat(np.arange(10), 5).reshape(self.domain.shape)
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)


class Flows(Steps):
    """Of homes to works."""

    domain = Domain(("home", "work"), (10, 5))


class Visits:
    """Two visits of each of five users."""

    truth_public = True

    def load(self):
        users = np.repeat(np.arange(5), 2)
        items = np.arange(10) % 4
        domain = Domain(("item", "context"), (4, 1))
        records = (users, items, np.zeros(10, int))
        return Interactions(domain, *records, Bound(2, 1), truth_public=True)


class Hidden(Steps):
    """Counts that nobody may compare with."""

    truth_public = False


@pytest.fixture(autouse=True)
def stated(monkeypatch):
    module = ModuleType("somebodys")
    vars(module).update(Steps=Steps, Flows=Flows, Visits=Visits, Hidden=Hidden)
    monkeypatch.setitem(sys.modules, "somebodys", module)
    monkeypatch.setenv(compiled.WITH, "somebodys")


def test_a_figure_takes_somebodys_dataset():
    figure = Fig5.at("quick", data=("Steps", "NetTrace twin"))
    assert isinstance(figure.sweeps()["Steps"].datasets[0].dataset, Steps)
    assert "NetTrace twin" in figure.sweeps()
    assert figure.differences("quick") == {"data": ("Steps", "NetTrace twin")}


def test_tables_of_commuting_too():
    sweep = Fig6b.at("quick", data=("Flows",)).sweeps()["Flows"]
    assert isinstance(sweep.datasets[0], Flows) and sweep.metrics


def test_records_of_users_too():
    figure = SignalFigure.at("quick", data=("Visits",))
    case = cases(figure.data)["Visits"]
    assert (case.most, case.d, case.of) == (2, 2, "")
    sweeps = figure.sweeps()
    assert any(isinstance(sweep.datasets[0], Visits) for sweep in sweeps.values())
    with pytest.raises(ValueError, match="data = Steps .* need records of users"):
        cases(("Steps",))


def test_tables_of_people_too():
    sweeps = Fig4.at("quick", data=("Flows",), attributes=(2, 9)).sweeps()
    assert len(sweeps["Flows: attributes"].datasets) == 1
    marginals = Fig7.at("quick", data=("Flows",)).sweeps()["Flows: "]
    assert marginals.estimators[0].fit.total == Flows().load().total


@pytest.mark.parametrize(
    "name, why",
    [
        ("Hidden", "truth is public"),
        ("Stepz", "need one of 'Social Network'"),
        ("Social Netwrk", ". Did you mean 'Social Network'"),
    ],
)
def test_what_is_not_public_or_is_none_is_refused(name, why):
    with pytest.raises(ValueError, match=why):
        Fig5.at("quick", data=(name,))
