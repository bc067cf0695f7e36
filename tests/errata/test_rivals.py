"""Public code of rivals: what it computes wrongly. Formulas alone, since the code is not ours."""

from fractions import Fraction
from math import sqrt

import pytest

from tests.reference import top_down
from workbench import ZCDP, Bound, Domain, Marginals, SparseTable
from workbench.mechanisms import AIM, InfTDA
from workbench.noise.replay import Replay

PLACES = ("a1", "a2", "a3", "b1", "b2", "b3")
TRIPS = 3  # of a user, all distinct


def printed(m, distinct, code):
    """The README's, or the code's, for one user who is substituted."""
    return sqrt(2) * m if distinct is code else sqrt(2 * m)


def test_levels_of_a_tree():
    one = {("a1", work): 1 for work in ("a1", "a2", "a3")}
    other = {("b1", work): 1 for work in ("b1", "b2", "b3")}
    moved = [sqrt(x) for x in top_down.level_changes(one, other, (PLACES, PLACES), (1,))]
    assert moved == pytest.approx([3 * sqrt(2), 3 * sqrt(2), 3 * sqrt(2), sqrt(6)])
    assert max(moved) > printed(TRIPS, distinct=True, code=False) == pytest.approx(sqrt(6))
    assert max(moved) == pytest.approx(printed(TRIPS, distinct=True, code=True))
    assert (max(moved) / sqrt(6)) ** 2 == pytest.approx(3)  # of ρ, where noise is for √6
    same, elsewhere = {("a1", "a1"): TRIPS}, {("b1", "b1"): TRIPS}
    moved = [sqrt(x) for x in top_down.level_changes(same, elsewhere, (PLACES, PLACES), (1,))]
    assert moved == pytest.approx([3 * sqrt(2)] * 4)
    assert min(moved) > printed(TRIPS, distinct=False, code=True)
    assert min(moved) == pytest.approx(printed(TRIPS, distinct=False, code=False))
    domain = Domain(("home", "work"), (6, 6), (PLACES, PLACES))
    for bound, squared in ((Bound(3, 1), [18, 18, 18, 6]), (Bound(3, 3, 3), [18] * 4)):
        table = SparseTable.from_keys(domain, [0, 1, 2], [1, 1, 1], bound)
        InfTDA(ZCDP(1.0), prefixes=1)(table, replay := Replay())
        ours = [run.added[0].moved for run in replay._run]
        assert ours == [TRIPS**2, *map(Fraction, squared)]  # the total first


def test_initial_marginals_of_aim():
    """The rest of the budget is spent on rounds, whatever was charged for the initial marginals."""
    rho, attributes, pairs = 1.0, 14, 91
    rounds = 16 * attributes
    sigma_squared = rounds / (2 * 0.9 * rho)
    charged = attributes * 0.5 / sigma_squared
    cost = pairs * 0.5 / sigma_squared
    assert cost - charged + rho == pytest.approx(1.309, abs=1e-3)
    domain = Domain(tuple("abcd"), (2,) * 4)
    table = SparseTable.from_keys(domain, [0, 5], [9, 3], Bound())
    release = AIM(ZCDP(rho), Marginals(2), initial=Marginals(2), rounds=12)(table)
    first, later = release.ledger[:6], release.ledger[6:]
    assert [r.cost.rho for r in first] == pytest.approx([0.9 / 12] * 6)  # not four of them
    assert later and release.privacy == ZCDP(rho)
    with pytest.raises(ValueError, match="initial marginals cost the whole budget"):
        AIM(ZCDP(rho), Marginals(2), initial=Marginals(2), rounds=5)(table)
