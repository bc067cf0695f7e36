"""Sorted counts by way of prevalences: the reference, every small neighbour, the laws, and the error."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.agreement import seeded
from tests.laws.test_laws import In
from tests.reference import prevalence as literal
from workbench import DP, ZCDP, Bound, Domain, SparseTable
from workbench.mechanisms import UnattributedHistogram, laws
from workbench.mechanisms.hierarchical import counts_of_prevalences, prevalences
from workbench.mechanisms.laws import Subject, differences_in_replay

OURS = In(UnattributedHistogram, estimator="prevalence", largest=500)
SUBJECTS = [Subject(OURS), Subject(OURS, zcdp=True)]


def test_prevalences_and_back_are_those_of_the_reference():
    assert prevalences(np.array([1, 1, 3]), 3).tolist() == [3, 1, 1]
    rng = np.random.default_rng(0)
    for _ in range(500):
        counts = np.sort(rng.integers(0, 6, rng.integers(1, 8)))
        phi = prevalences(counts, 8)
        assert phi.tolist() == literal.prevalences(counts, 8)
        assert counts_of_prevalences(phi.astype(float), len(counts)).tolist() == counts.tolist()
        noisy = (phi + rng.integers(-3, 4, 8)).astype(float)
        expected = literal.estimate(noisy.tolist(), len(counts))
        assert counts_of_prevalences(noisy, len(counts)).tolist() == expected
        cut = prevalences(counts, 2).astype(float)
        assert (
            counts_of_prevalences(cut, len(counts)).tolist() == np.minimum(counts, 2).tolist()
        )


@pytest.mark.parametrize(
    "bound", [Bound(), Bound(2, 1), Bound(1, 3), Bound(3, 2), Bound(3, 2, 4)]
)
def test_a_unit_moves_prevalences_no_further_than_its_noise_is_for(bound):
    """All tables of three cells of up to 4, and all that one unit can add to them. Each limit is attained."""
    limits = np.array([bound.l1, min(bound.l0, bound.l1)])
    squared = Fraction(min(bound.l0, bound.l1)) * Fraction(bound.l1)
    largest, most = np.zeros(2), 0
    for counts in product(range(5), repeat=3):
        phi = prevalences(np.sort(counts), 9)
        for more in product(range(int(bound.linf) + 1), repeat=3):
            if np.count_nonzero(more) > bound.l0 or sum(more) > bound.l1:
                continue
            moved = prevalences(np.sort(np.add(counts, more)), 9) - phi
            largest = np.maximum(largest, [np.abs(moved).sum(), np.abs(moved).max()])
            most = max(most, int((moved**2).sum()))
    assert (largest == limits).all() and most <= squared
    assert most == squared or bound.l1 % bound.l0


@pytest.mark.parametrize("subject", SUBJECTS, ids=["of an epsilon", "of a rho"])
@pytest.mark.parametrize(
    "law",
    [
        laws.costs_its_budget,
        laws.randomness_is_the_rngs,
        laws.fit_to_publish,
        laws.estimate_is_public,
        laws.saved_is_loaded,
        laws.empty_tables_are_tables,
        laws.error_vanishes,
        laws.receipts_are_kept,
        laws.reads_what_it_pays_for,
        laws.public_tables_are_refused,
    ],
)
def test_the_laws_hold(subject, law):
    law(subject)


@pytest.mark.parametrize(
    "counts, unit",
    [
        (np.random.default_rng(1).geometric(0.1, 300), {0: 3, 1: 3, 350: 2, 399: 1}),
        (np.full(300, 10), {0: 3, 1: 2, 2: 2, 3: 2}),  # moves φ(11) and φ(12) by 4
    ],
    ids=["many counts", "equal counts"],
)
def test_one_more_unit_is_replayed_under_wide_bounds(counts, unit):
    bound = Bound(4, 3, 9)
    domain = Domain(("x",), (400,))
    cells = np.arange(300)
    one = SparseTable.from_keys(domain, cells, counts, bound)
    keys, added = np.array([*unit.items()]).T
    more = SparseTable.from_keys(
        domain, np.append(cells, keys), np.append(counts, added), bound
    )
    for budget in (DP(1.0), ZCDP(0.1)):
        mechanism = UnattributedHistogram(budget, "prevalence", largest=60)
        assert differences_in_replay(mechanism, one, more) == []
        assert differences_in_replay(mechanism, more, one) == []


def test_on_heavy_tails_it_has_less_error_in_sum_than_isotonic_regression():
    """Seeded: 5,000 counts of a Pareto law. Sums of |error| are about a half and a quarter."""
    counts = (np.random.default_rng(1).pareto(1.2, 5000) * 2).astype(int)
    table = SparseTable.from_dense(Domain(("x",), (5000,)), counts, Bound())
    for epsilon in (0.1, 1.0):
        isotonic, ours = (
            UnattributedHistogram(DP(epsilon), name)(table, seeded(3)).estimate.values
            for name in ("isotonic", "prevalence")
        )
        truth = np.sort(counts)
        assert np.abs(ours - truth).sum() < 0.7 * np.abs(isotonic - truth).sum()


def test_what_is_not_allowed_is_refused():
    table = SparseTable.from_keys(Domain(("x",), (9,)), [1], [3], Bound())
    with pytest.raises(ValueError, match="largest = 0"):
        UnattributedHistogram(DP(1.0), "prevalence", largest=0)
    with pytest.raises(ValueError, match="memory = 1000 is too little"):
        UnattributedHistogram(DP(1.0), "prevalence", memory=1000, largest=100)(table)
    assert (
        repr(UnattributedHistogram(DP(1.0))) == "UnattributedHistogram(budget=DP(epsilon=1.0))"
    )
