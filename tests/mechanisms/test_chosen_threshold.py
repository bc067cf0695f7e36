"""Which threshold: the score's sensitivity by brute force, the choice's law, its price."""

import numpy as np
import pytest

from tests.agreement import seeded
from workbench import DP, Bound, Domain, Dyadic, SparseTable
from workbench.mechanisms import ChosenThreshold, HighPassFilter, PrioritySampling
from workbench.mechanisms import laws as releases
from workbench.mechanisms.laws import Subject
from workbench.privacy import ZCDP

DOMAIN = Domain(("x",), (60,))
B = DP(1.0)
CHOICE = ChosenThreshold(HighPassFilter(B, 1), (3, 8, 20), 0.5)


ONE = Bound()


def table(counts, bound=ONE):
    return SparseTable.from_dense(DOMAIN, np.resize([*counts, *[0] * 60], 60), bound)


@pytest.mark.parametrize("bound", [Bound(), Bound(3, 1), Bound(1, 4), Bound(3, 4, 6)], ids=repr)
def test_a_unit_moves_no_score_by_more_than_the_bound_says(bound):
    """Over random tables and random units within the bound; it is attained."""
    rng = np.random.default_rng(0)
    noise = [CHOICE.noise_that_passes(theta, 60, bound.l1) for theta in CHOICE.candidates]
    largest = 0
    for _ in range(300):
        counts = rng.integers(0, 45, 6)
        added = np.zeros(6, int)
        added[rng.permutation(6)[: bound.l0]] = rng.integers(0, bound.linf + 1, bound.l0)
        while added.sum() > bound.l1:
            added[rng.choice(np.flatnonzero(added))] -= 1
        moved = CHOICE.scores(table(counts + added, bound)) - CHOICE.scores(
            table(counts, bound)
        )
        assert (np.abs(moved) <= bound.l1).all()
        largest = max(largest, np.abs(moved).max())
    assert largest == bound.l1
    assert CHOICE.scores(table([], bound)).tolist() == [-x for x in noise]


def test_scores_are_lost_counts_and_the_noise_that_passes():
    counts = [1, 5, 9, 30]
    v = np.arange(-4000, 4001)
    law = np.tanh(0.5) * np.exp(-np.abs(v))
    expected = []
    for theta in CHOICE.candidates:
        lost = sum(c if c <= theta else max(0, 2 * theta - c) for c in counts)
        expected.append(-lost - round(60 * (law * np.abs(v))[np.abs(v) >= theta].sum()))
    assert CHOICE.scores(table(counts)).tolist() == expected
    one_sided = ChosenThreshold(HighPassFilter(B, 1, sides=1), (3, 8), 0.5)
    passes = 60 * (law * v)[v >= 3].sum()
    assert one_sided.noise_that_passes(3, 60, 1) == round(passes)


def test_the_choice_follows_the_exponential_mechanism():
    """Its frequencies over 600 seeds, within 5 standard deviations."""
    data = table([2, 5, 7, 9])
    weights = np.exp(0.5 * CHOICE.scores(data) / 2)
    law = weights / weights.sum()
    drawn = [CHOICE(data, seeded(s)).mechanism.theta for s in range(600)]
    shares = np.array([drawn.count(theta) / 600 for theta in CHOICE.candidates])
    assert np.count_nonzero(law > 0.02) >= 2
    assert np.abs(shares - law).max() < 5 * np.sqrt(0.25 / 600)


def test_the_choice_has_its_own_receipt():
    release = CHOICE(table([3, 50]), seeded())
    assert release.ledger[0].name == "choice" and release.ledger[0].cost.epsilon == 0.5
    assert CHOICE.budget == DP(1.5) and CHOICE.budget.covers(release.privacy)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Bound(), Bound(2, 1)], ids=repr)
def test_neighbours_are_hard_to_tell_apart(bound):
    releases.neighbours_are_alike(Subject(ChosenThreshold), bound, runs=1000)


def test_what_cannot_be_chosen_is_refused():
    for mechanism, candidates, epsilon, says in (
        (PrioritySampling(B, 3), (1, 2), 1.0, "need a HighPassFilter"),
        (HighPassFilter(B, size=3), (1, 2), 1.0, "need a HighPassFilter with theta"),
        (HighPassFilter(B, 3, transform=Dyadic()), (1, 2), 1.0, "without a transform"),
        (HighPassFilter(ZCDP(0.1), 3), (1, 2), 1.0, "and an epsilon"),
        (HighPassFilter(B, 3), (2.5, 3), 1.0, "integers >= 1"),
        (HighPassFilter(B, 3), (2,), 1.0, "two or more different"),
        (HighPassFilter(B, 3), (1, 2), 0.0, "epsilon = 0.0"),
    ):
        with pytest.raises(ValueError, match=says):
            ChosenThreshold(mechanism, candidates, epsilon)
