"""The stability histogram's cut: exact, smallest, and for the worst that a bound allows one unit."""

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from tests.agreement import RARE, fits
from workbench import DP, Bound, Domain, Ranges, SparseTable, noise
from workbench.estimates import describing
from workbench.mechanisms import StabilityHistogram
from workbench.noise import stability
from workbench.noise.law import Law

getcontext().prec = 90
BOUNDS = [
    Bound(),
    Bound(3, 1),
    Bound(1, 4),
    Bound(4, 3, 7),
    Bound(5, 3, 6),
    Bound(4, 2, 4),
    Bound(9, 4, 10),
    Bound(2, 5, 9),
    Bound(6, 4, 6.5),
]


def literally(decay, cut, count):
    """Pr[count + X >= cut], summed term by term."""
    a = (-Decimal(decay.numerator) / Decimal(decay.denominator)).exp()
    reach = cut - count
    far = max(reach, 0) + int(140 / float(decay)) + 2
    return (1 - a) / (1 + a) * sum(a ** abs(x) for x in range(min(reach, far), far))


def ways(cells, most, total):
    """All ways to fill at most so many new cells, each with 1 … most counts, total in all."""
    yield []
    if cells:
        for first in range(1, int(min(most, total)) + 1):
            for rest in ways(cells - 1, min(first, most), total - first):
                yield [first, *rest]


def failing(decay, cut, bound):
    """The worst chance that a cell shows which one unit alone fills, over all ways."""
    shown = {c: literally(decay, cut, c) for c in range(1, int(bound.linf) + 1)}
    chances = []
    for filled in ways(bound.l0, bound.linf, bound.l1):
        hidden = Decimal(1)
        for c in filled:
            hidden *= 1 - shown[c]
        chances.append(1 - hidden)
    return max(chances)


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS, ids=repr)
@pytest.mark.parametrize("epsilon, delta", [(0.3, 1e-3), (1.0, 1e-6), (2.5, 1e-9), (1.5, 0.3)])
def test_the_cut_is_the_smallest_whose_literal_failure_is_small_enough(bound, epsilon, delta):
    decay = Fraction(epsilon) / Fraction(bound.l1)
    cut, spent = noise.stability_threshold(bound, epsilon=epsilon, delta=delta)
    here = failing(decay, cut, bound)
    assert here <= Decimal(spent) <= Decimal(delta)
    assert Decimal(spent) <= here * (1 + Decimal(2) ** -50)
    assert cut == 1 or failing(decay, cut - 1, bound) > Decimal(delta)


def test_many_cells_of_little_can_show_more_easily_than_few_of_much():
    """The obvious worst case, as many cells as possible filled to the brim, is not always the worst."""
    bound, decay = Bound(4, 2, 4), Fraction(1, 4)
    full, ones = (
        1 - (1 - literally(decay, 30, count)) ** cells for cells, count in ((2, 2), (4, 1))
    )
    assert ones > Decimal("1.5") * full
    assert float(failing(decay, 30, bound)) == pytest.approx(float(ones))
    law = Law("geometric", decay)
    assert float(stability.failure_probability(30, bound, law, 192)) == pytest.approx(
        float(ones)
    )


@pytest.mark.parametrize(
    "epsilon, delta, cut", [(1.0, 1e-6, 15), (0.1, 1e-6, 133), (1.0, 1e-9, 22), (0.5, 0.05, 7)]
)
def test_one_unit_one_cell(epsilon, delta, cut):
    formula = 1 + log(1 / (delta * (1 + exp(-epsilon)))) / epsilon
    assert cut == np.ceil(formula)
    assert StabilityHistogram(DP(epsilon, delta)).threshold(Bound()) == cut


def test_extreme_budgets():
    for epsilon, delta in ((2.0**-30, 1e-12), (1.0, 5e-324), (1e8, 1e-6), (700.0, 0.5)):
        cut, spent = noise.stability_threshold(Bound(7, 5, 20), epsilon=epsilon, delta=delta)
        assert cut >= 1 and 0 < spent <= delta
    cut, spent = noise.stability_threshold(Bound(10**6, 100, 10**7), epsilon=1, delta=1e-9)
    assert cut > 10**8 and 0.99e-9 < spent <= 1e-9
    assert noise.stability_threshold(Bound(), epsilon=1, delta=0.99)[0] == 1


DOMAIN = Domain(("x",), (1000,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "delta", "deviations"), [(1e-9, 1e-300, 37.0471), (1e-25, 1e-9, 5.9978)]
)
def test_thresholds_of_very_wide_gaussian_noise_are_found_in_few_steps(
    monkeypatch, rho, delta, deviations
):
    steps = []
    tail = stability.upper_tail
    monkeypatch.setattr(stability, "upper_tail", lambda *a: steps.append(a) or tail(*a))
    threshold, spent = stability.stability_threshold(Bound(), rho=rho, delta=delta)
    assert threshold == pytest.approx(deviations / (2 * rho) ** 0.5, rel=1e-3)
    assert 0.99 * delta < spent <= delta
    assert len(steps) < 60


def test_it_fails_as_often_as_its_receipt_says():
    """Seeded: never by chance; sees a δ that is off by five standard errors (0.035)."""
    bound, b = Bound(3, 2, 4), DP(0.8, 0.2)
    empty = SparseTable.from_keys(DOMAIN, [], [], bound)
    assert len(StabilityHistogram(b)(empty).estimate) == 0
    n, rng = 4000, np.random.default_rng(0)
    shown, paid = [], StabilityHistogram(b)(empty, rng).privacy.delta
    assert 0.1 < paid <= 0.2
    for filled in ways(3, 2, 4):
        if filled:
            alone = SparseTable.from_keys(DOMAIN, range(len(filled)), filled, bound)
            made = (StabilityHistogram(b)(alone, rng).estimate for _ in range(n))
            shown.append(np.mean([len(e) > 0 for e in made]))
    assert max(shown) == pytest.approx(paid, abs=5 * sqrt(paid / n))


def test_what_shows_has_the_noisy_count_of_its_cell():
    """By chance at most once in 10⁹ runs; sees a chance to show that is off by 0.05."""
    n, count, b = 4000, 20, DP(0.5, 1e-3)
    data = SparseTable.from_keys(DOMAIN, [7], [count], Bound())
    cut, a = StabilityHistogram(b).threshold(Bound()), exp(-0.5)
    values = [v for _ in range(n) for v in StabilityHistogram(b)(data).estimate.values]
    tail = float(literally(Fraction(1, 2), cut, count))
    assert min(values) >= cut
    assert abs(len(values) / n - tail) < stats.norm.isf(RARE / 4) * sqrt(tail * (1 - tail) / n)
    law = lambda v: (1 - a) / (1 + a) * a ** abs(v - count) / tail
    assert fits(values, law) > RARE / 2


def test_a_release_of_it_is_shown():
    data = SparseTable.from_keys(DOMAIN, [7, 30], [900, 800], Bound(2, 1))
    release = StabilityHistogram(DP(1.0, 1e-6))(data)
    assert release.estimate.keys.tolist() == [7, 30] and 0 < release.privacy.delta <= 1e-6
    assert describing.cells_from_nothing(release) == "An empty table would release no cells."
    assert np.isnan(release.answer(Ranges([0], [1000]), error=True)[1]).all()


def test_large_domains_and_one_cell():
    for size in (1, 2**62):
        data = SparseTable.from_keys(Domain(("x",), (size,)), [size - 1], [500], Bound())
        estimate = StabilityHistogram(DP(1.0, 1e-6))(data).estimate
        assert estimate.keys.tolist() == [size - 1]


@pytest.mark.parametrize("budget", [DP(1.0), DP(1.0, 1.0), DP(0.0, 1e-6), 1.0])
def test_budgets_that_cannot_be_spent_are_refused(budget):
    with pytest.raises(ValueError, match="delta|epsilon|need a DP"):
        StabilityHistogram(budget)
    with pytest.raises(ValueError, match="delta"):
        noise.stability_threshold(Bound(), epsilon=1, delta=0)


@pytest.mark.parametrize("key", [None, bytes(range(32))])
def test_parts_have_noise_of_their_own(key):
    """By chance equal once in 10⁹⁰ runs: 200 values each at ε = 1."""
    drawn = stability.stable_parts(Bound(), 3, epsilon=1.0, delta=1e-6, rng=key)
    cells = np.arange(200)
    counts = np.full(200, 1000)
    noisy = [stability.stable_cells(cells, counts, part)[1] for part in drawn.parts]
    for one, other in combinations(noisy, 2):
        assert len(one) == len(other) == 200 and not np.array_equal(one, other)
        assert abs((one != other).mean() - 0.71) < 0.28  # of independent noise 71 % differ
