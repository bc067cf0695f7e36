"""Survivors among empty cells under Gaussian noise: against noise drawn on every cell."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tests.agreement import fits_chances, same_counts, same_law, seeded
from tests.noise.test_exactness import power
from tests.noise.test_gaussian import rate_of
from workbench import ZCDP, Bound, noise
from workbench.noise import stability
from workbench.noise.discrete_gaussian import discrete_gaussian
from workbench.noise.empty_cells import GaussianCell, upper_tail
from workbench.noise.law import Law
from workbench.noise.source import word_source


def exact_chance(sigma, theta, sides, tau=0, above=None):
    """Σ over passing v of Pr[v]·weight, and of weight given that it was not kept at `above`."""
    v = np.arange(-int(45 * sigma) - 2, int(45 * sigma) + 3).astype(float)
    p = np.exp(-(v**2) / 2 / sigma**2)
    p /= p.sum()
    size = v if sides == 1 else np.abs(v)
    passes = (size >= theta) & ((v != 0) | (not tau))
    kept = np.minimum(size / tau, 1) if tau else np.ones(len(v))
    before = np.minimum(size / above, 1) if above else np.zeros(len(v))
    mass = np.where(passes, p * (kept - before), 0)
    return v, mass / (1 - np.where(passes, p * before, 0).sum())


CASES = [  # sigma, theta, sides, tau, above
    (0.7, 1, 2, 0, None),
    (5, 9, 1, 0, None),
    (5, 16, 2, 30.5, None),
    (5, 1, 2, 40.0, 80.0),
    (5, 3, 1, 4.0, 7.5),
    (700, 1500, 2, 0, None),
    (700, 900, 2, 4000.0, None),
    (700, 1, 2, 2500.0, 5000.0),
    (700, 0, 1, 0, None),
    (700, 1, 2, 1.0, 900.0),
]


@pytest.mark.parametrize("sigma, theta, sides, tau, above", CASES)
def test_survivors_have_the_law_of_those_of_all_cells(sigma, theta, sides, tau, above):
    cell = GaussianCell(rate_of(sigma), theta, sides, tau, above)
    v, chances = exact_chance(sigma, theta, sides, tau, above)
    total = chances.sum()
    if above is None:
        assert cell.chance == pytest.approx(total, rel=1e-5)
    wanted = 30_000
    empty = int(wanted / total)
    ranks, values = cell.survivors(empty, word_source(seeded(3)))
    assert abs(len(ranks) - empty * total) < 5 * np.sqrt(empty * total * (1 - total) + 1)
    assert (np.diff(ranks) > 0).all() and 0 <= ranks[0] and ranks[-1] < empty
    assert same_law(ranks / empty, (np.arange(2000) + 0.5) / 2000) > 1e-4
    edges = np.quantile(values, np.linspace(0, 1, 40)[1:-1])
    edges = np.unique(np.floor(edges)) + 0.5
    seen = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    expected = np.bincount(np.searchsorted(edges, v), chances, len(edges) + 1)
    assert fits_chances(seen, expected / total) > 1e-4
    assert cell.is_dense == (sigma == 700 and (theta == 0 or tau == 1))


def test_what_is_candidate_and_stays_is_a_survivor_to_many_digits():
    """Where a block is a value the hat is the law; elsewhere it is a little more."""
    for sigma, theta in ((5, 40), (700, 8000)):
        cell = GaussianCell(rate_of(sigma), theta, 2)
        with localcontext() as context:
            context.prec = 120
            terms = [power(cell.rate * x * x) for x in range(int(sigma * 16))]
            tail = sum(power(cell.rate * x * x) for x in range(theta, theta + int(16 * sigma)))
            exact = 2 * tail / (2 * sum(terms) - 1)
            got = cell.candidacy(400)
            low, high = (Decimal(x) / 2**400 for x in (got.lo, got.hi))
            if sigma == 5:
                assert low <= exact + Decimal(10) ** -110
                assert abs(high / exact - 1) < Decimal(10) ** -40
            else:
                assert exact < low < exact * Decimal("1.04")


@pytest.mark.parametrize(
    "sigma, theta, size",
    [
        (3.0, 4, 60),
        pytest.param(600.0, 300, 60, marks=pytest.mark.slow),
        pytest.param(600.0, 1, 290, marks=pytest.mark.slow),
    ],
)
def test_priority_samples_are_those_of_the_laborious_way(sigma, theta, size, monkeypatch):
    """With guesses that are right, and that are always too high."""
    rho, counts, keys = 0.5, np.array([5, 900, 2000]), np.array([3, 77, 200])
    block = noise.GaussianBlock(300, Fraction(sigma) ** 2, rho)
    runs = {"short": [], "far": [], "all": []}
    from workbench.noise import priorities

    guess = priorities.guess_threshold
    for name, factor in (("short", 1), ("far", 64)):
        monkeypatch.setattr(priorities, "guess_threshold", lambda *a, f=factor: guess(*a) * f)
        rng = seeded(4)
        for _ in range(150):
            drawn = noise.priority_sample(
                keys, counts, [block], theta=theta, size=size, rng=rng
            )
            runs[name].append((drawn.tau, len(drawn.keys), drawn.values))
    rng = seeded(8)
    words = word_source(rng)
    for _ in range(150):
        noisy = np.zeros(300, np.int64)
        noisy[keys] = counts
        discrete_gaussian(block.law.rate).add(noisy, words)
        kept, tau = noise.priority_sample_public(noisy, theta=theta, size=size, rng=rng)
        runs["all"].append((tau, int(kept.sum()), noisy[kept]))
    for name in ("short", "far"):
        taus, sizes, values = zip(*runs[name], strict=True)
        other = [*zip(*runs["all"], strict=True)]
        assert same_law(taus, other[0]) > 1e-4, name
        assert same_law(sizes, other[1]) > 1e-4, name
        assert same_counts(np.concatenate(values), np.concatenate(other[2])) > 1e-4, name


def test_threshold_samples_are_those_of_the_laborious_way():
    rho, sigma = 0.5, 20
    block = noise.GaussianBlock(5000, Fraction(sigma) ** 2, rho)
    keys, counts = np.arange(0, 5000, 50), np.full(100, 40)
    rng = seeded(1)
    ours, theirs = [], []
    for _ in range(60):
        drawn = noise.threshold_sample(keys, counts, [block], theta=30, tau=70.0, rng=rng)
        assert drawn.receipts[0].cost == ZCDP(rho)
        ours.append(drawn.values)
        noisy = np.zeros(5000, np.int64)
        noisy[keys] = counts
        discrete_gaussian(block.law.rate).add(noisy, word_source(rng))
        theirs.append(noisy[noise.threshold_sample_public(noisy, theta=30, tau=70.0, rng=rng)])
    assert same_counts(np.concatenate(ours), np.concatenate(theirs)) > 1e-4
    assert same_law([len(x) for x in ours], [len(x) for x in theirs]) > 1e-4


def test_stability_thresholds_are_the_smallest():
    for bound, rho, delta in (
        (Bound(), 0.5, 1e-9),
        (Bound(3, 2, 5), 0.02, 1e-6),
        (Bound(1, 40), 1e-4, 1e-9),
    ):
        cut, spent = noise.stability_threshold(bound, rho=rho, delta=delta)
        law = Law("gaussian", Fraction(rho) / bound.l2_squared)
        sigma = float(law.variance) ** 0.5
        v, p = exact_chance(sigma, -np.inf, 1)

        def failing(t, v=v, p=p, bound=bound):
            shown = {c: p[v >= t - c].sum() for c in range(int(bound.linf) + 1)}
            return max(
                1 - np.prod([(1 - shown[c]) ** k for c, k in filling.items()])
                for filling in stability.worst_fillings(bound)
            )

        assert failing(cut) <= spent * (1 + 1e-6) and spent <= delta
        assert failing(cut - 1) > delta * 0.99
        table = noise.stability_histogram(
            np.arange(3), np.array([1, cut, 9 * cut]), bound, rho=rho, delta=delta, rng=seeded()
        )
        assert table.receipt.cost == ZCDP(rho, spent) and table.threshold == cut
    with pytest.raises(ValueError, match="either epsilon or rho"):
        noise.stability_threshold(Bound(), delta=1e-9)


@pytest.mark.parametrize("x", [-3, 0, 1, 30])
def test_tails_are_enclosed(x):
    for sigma in (2, 600):
        v, p = exact_chance(sigma, -np.inf, 1)
        got = upper_tail(rate_of(sigma), x, 128)
        exact = p[v >= x].sum()
        assert got.lo / 2**128 == pytest.approx(exact, rel=1e-9 if sigma == 2 else 1)
        assert got.hi / 2**128 >= exact * (1 - 1e-12)
