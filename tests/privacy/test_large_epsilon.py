"""Python warns of ε above 10 where something is made for publication, once, and nowhere else."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from workbench import DP, Bound, Budget, Domain, Release, Session, SparseTable
from workbench.mechanisms import GaussianHistogram, GeometricHistogram
from workbench.privacy import ZCDP
from workbench.privacy.budgets import as_epsilon

TABLE = SparseTable.from_dense(Domain(("a",), (2,)), np.array([3, 4]), Bound(1, 1).of("a trip"))
LARGE = "22,026-fold"


@pytest.mark.parametrize(
    "budget", [DP(10.5), DP(1e9), DP(1e300), ZCDP(1.6), ZCDP(1e300)], ids=repr
)
def test_a_release_above_ten_warns(budget):
    mechanism = (GaussianHistogram if isinstance(budget, ZCDP) else GeometricHistogram)(budget)
    with pytest.warns(UserWarning, match=LARGE):
        release = mechanism(TABLE)
    assert not release.simulated


def test_nothing_else_warns(tmp_path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", LARGE)
        GeometricHistogram(DP(11.0))(TABLE).save(tmp_path / "x.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GeometricHistogram(DP(10.0))(TABLE)
        GeometricHistogram(DP(1e9))(TABLE, np.random.default_rng(0))
        GaussianHistogram(ZCDP(1.5))(TABLE)
        Release.load(tmp_path / "x.parquet")
        Budget.create(tmp_path / "y", DP(10.0), people="us", unit="a user")


def test_a_budget_above_ten_warns_when_it_begins(tmp_path):
    with pytest.warns(UserWarning, match=LARGE):
        Budget.create(tmp_path / "x", DP(10.5), people="us", unit="a user")
    with pytest.warns(UserWarning, match=LARGE):
        Session.open(tmp_path / "y", TABLE, DP(10.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Budget(tmp_path / "x")
        Session.open(tmp_path / "y", TABLE, DP(10.5))


def test_a_rho_counts_as_its_epsilon_at_a_millionth():
    assert as_epsilon(ZCDP(1.5)) == ZCDP(1.5).at(1e-6).epsilon < 10 < as_epsilon(ZCDP(1.6))
    assert as_epsilon(ZCDP(1.5, 0.9999999)) == as_epsilon(ZCDP(1.5))


def test_it_is_shown_once():
    code = (
        "from tests.privacy.test_large_epsilon import *\n"
        "for epsilon in (11.0, 12.0, 13.0): GeometricHistogram(DP(epsilon))(TABLE)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stderr.count(LARGE) == 1
