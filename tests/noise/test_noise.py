"""The door: exact laws, one sampler with two bit sources, receipts that say what was paid."""

import copy
import dataclasses
import os
import pickle
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest

from tests.agreement import RARE, fits, fits_chances, same_counts, same_law
from tests.reference import geometric as literal
from tests.reference import (
    golden,
    high_pass_filter,
    laplace,
    threshold_sampling,
)
from workbench import DP, noise, randomness
from workbench.noise import empty_cells, kernels, laws, parts, priorities, source
from workbench.noise.empty_cells import EmptyCell, survivor_ranks
from workbench.noise.laws import is_below
from workbench.privacy.enclosures import Interval

getcontext().prec = 90


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def real(x):
    return lambda b: Interval.of(Fraction(x), b)


def fixed(*drawn):
    """A source of bits that says what it is told, then zeros."""
    left = list(drawn)
    return lambda n: np.array([left.pop(0) if left else 0 for _ in range(n)], np.uint64)


# exact arithmetic


def test_intervals_enclose_every_operation():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, y = sorted(
            (Fraction(int(a), 10**6) for a in rng.integers(1, 10**7, 2)), reverse=True
        )
        a, b = Interval.of(x, 40), Interval.of(y, 40)
        for got, truth in [
            (a + b, x + y),
            (a - b, x - y),
            (a * b, x * y),
            (a / b, x / y),
            (a**5, x**5),
        ]:
            assert got.lo <= truth * 2**40 <= got.hi


def test_a_coin_reads_as_many_bits_as_it_needs():
    third = real(Fraction(1, 3))
    word = 2**64 // 3  # the first 64 bits of 1/3 are those of the variate: undecided
    assert not is_below(word, third, fixed(2**64 - 1))
    assert is_below(word, third, fixed(0))
    more = [2**64 // 3] * 4 + [0]  # the bits of 1/3 again and again: the precision must grow
    assert is_below(word, third, fixed(*more))


# laws


@pytest.mark.parametrize("epsilon, l1", [(1.0, 1), (0.2, 2.0)])
def test_system_noise_has_the_same_law(epsilon, l1):
    noisy, _ = noise.geometric(np.zeros(300_000, np.int64), l1=l1, epsilon=epsilon)
    assert fits(noisy, lambda x: literal.pmf(x, exp(-epsilon / l1))) > RARE


def test_what_replaces_receipts_is_as_simulated_and_idealised_as_they_are():
    counts = np.arange(4)
    priced = dict(threshold=2, l1=1, epsilon=0.5)
    exact = noise.noisy_threshold(counts, 3, **priced).receipt
    seeded = noise.noisy_threshold(counts, 3, **priced, rng=np.random.default_rng(0)).receipt
    floating = noise.noisy_threshold(counts / 2, 3, **priced).receipt
    for draws, simulated, idealised in (
        ([exact], False, False),
        ([exact, seeded], True, False),
        ([floating, exact], False, True),
    ):
        priced = noise.by_theorem("tree", DP(1), "Someone 2000, Theorem 1", replaces=draws)
        printed = noise.withdrawn("tree", replaces=draws)
        for receipt in (priced, printed):
            assert (receipt.simulated, receipt.idealised) == (simulated, idealised)
        assert priced.cost == DP(1) and printed.cost == DP(inf)
    assert priced.description == "tree (by theorem: Someone 2000, Theorem 1)"
    assert printed.description == "tree (as printed, guarantee withdrawn)"
    local = dataclasses.replace(exact, relation="local")
    assert noise.by_theorem("x", DP(1), "y", replaces=[local]).relation == "local"
    for bad in ([], [exact, local]):
        with pytest.raises(ValueError, match="replaces.*at least one"):
            noise.by_theorem("x", DP(1), "y", replaces=bad)


def test_portions_of_one_vector_are_one_measurement():
    values = np.arange(10)
    add_noise = noise.PortionedGeometric(l1=2, epsilon=0.5, rng=np.random.default_rng(3))
    portions = [add_noise(values[:4]), add_noise(values[4:])]
    rng = np.random.default_rng(3)
    expected = [
        noise.geometric(x, l1=2, epsilon=0.5, rng=rng)[0] for x in (values[:4], values[4:])
    ]
    assert np.concatenate(portions).tolist() == np.concatenate(expected).tolist()
    assert add_noise.receipt == noise.geometric(values, l1=2, epsilon=0.5, rng=rng)[1]
    how = dict(l2_squared=3, rho=0.1)
    add_noise = noise.PortionedGaussian(
        **how, relation="replace-one-unit", rng=np.random.default_rng(3)
    )
    portions = [add_noise(values[:4]), add_noise(values[4:])]
    rng = np.random.default_rng(3)
    expected = [noise.gaussian(x, **how, rng=rng) for x in (values[:4], values[4:])]
    assert np.concatenate(portions).tolist() == [y for x, _ in expected for y in x]
    receipt = expected[0][1]
    assert add_noise.receipt == dataclasses.replace(receipt, relation="replace-one-unit")
    assert receipt.relation == "add-remove-one-unit"


@pytest.mark.parametrize("epsilon", [3.0, 0.1, 0.003])
def test_aligned_noise_has_the_same_law(epsilon):
    noisy, receipt = noise.geometric(
        np.zeros(400_000, np.int64), l1=1, epsilon=epsilon, rng=noise.Aligned(1)
    )
    assert fits(noisy, lambda x: literal.pmf(x, exp(-epsilon))) > 1e-4 and receipt.simulated


@pytest.mark.parametrize("pair", [(0.1, 0.2), (0.05, 0.004), (0.0039, 0.001)])
def test_aligned_noise_stays_with_its_cell_while_epsilon_moves(pair):
    """Seeded: never by chance; sees a correlation of 0.01, or a missing 0.002."""
    cells = np.zeros(300_000, np.int64)  # three runs of cells
    a, b = (noise.geometric(cells, l1=1, epsilon=e, rng=noise.Aligned(4))[0] for e in pair)
    assert np.corrcoef(a, b)[0, 1] > 0.998
    usual = noise.geometric(cells, l1=1, epsilon=pair[0], rng=np.random.default_rng(4))[0]
    other = noise.geometric(cells, l1=1, epsilon=pair[0], rng=noise.Aligned(5))[0]
    for stranger in (usual, other, np.roll(a, 1), np.roll(a, 2**17)):
        assert abs(np.corrcoef(a, stranger)[0, 1]) < 0.01


def test_aligned_looks_are_independent_whatever_the_first_one_needed():
    """Seeded: never by chance; sees a correlation of five standard errors (0.07)."""
    cells, again = np.zeros(200_000, np.int64), []
    for before in (10, 5000):
        rng = noise.Aligned(6)
        first = noise.geometric(cells[:before], l1=1, epsilon=0.5, rng=rng)[0]
        again.append(noise.geometric(cells, l1=1, epsilon=0.5, rng=rng)[0])
        assert abs(np.corrcoef(first, again[-1][:before])[0, 1]) < 5 / before**0.5
    assert (again[0] == again[1]).all()


def test_aligned_streams_meet_no_other():
    words, plain = {}, set()
    for seed in (0, 1, [0, 1], [0, 0], 2**128, [0, 0, 0, 0, 1]):
        rng = noise.Aligned(seed)
        words[f"{seed} base"] = int(rng.integers(2**63))
        look = rng.measurement()
        words[f"{seed} look"] = int(look(1)[0])
        part = look.substream()
        words[f"{seed} part"], words[f"{seed} below"] = (
            int(part(1)[0]),
            int(part.substream()(1)[0]),
        )
        words[f"{seed} next"] = int(rng.measurement()(1)[0])
        plain.add(int(np.random.default_rng(seed).integers(2**63)))
    assert len(set(words.values()) - plain) == len(words)
    rng = noise.Aligned(3)
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="made anew from its seed"):
            again(rng)
    with pytest.raises(ValueError, match="not split"):
        rng.spawn(2)
    for bad in (None, 1.5, "x"):
        with pytest.raises(ValueError, match="need an integer"):
            noise.Aligned(bad)


@pytest.mark.parametrize("empty, p", [(10**6, 0.01), (10**7, 0.05)])
def test_aligned_survivors_come_at_their_rate_and_anywhere(empty, p):
    """Runs of gaps take streams of their own, and none twice."""
    # Seeded: never by chance; sees a rate or a correlation of gaps that is off by five standard errors.
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    epsilon = -np.log(p)
    blocks = [noise.Block(empty, 1, epsilon)]
    kept, values, _ = noise.threshold_sample(
        keys, counts, blocks, theta=1, rng=noise.Aligned(7)
    )
    chance = 2 * p / (1 + p)
    assert abs(len(kept) - empty * chance) < 5 * (empty * chance) ** 0.5
    gaps = np.diff(kept)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 5 / len(gaps) ** 0.5
    far = len(gaps) // 2
    assert abs(np.corrcoef(gaps[:far], gaps[far : 2 * far])[0, 1]) < 5 / far**0.5
    assert abs(np.sign(values).mean()) < 0.02


@pytest.mark.parametrize("epsilon", [0.003, 1e-4, 1e-8])
def test_wide_noise_splits_into_blocks_without_changing_its_law(epsilon):
    """Seeded: never by chance; sees a variance that is off by 3 %."""
    n = 200_000
    noisy, _ = noise.geometric(
        np.zeros(n, np.int64), l1=1, epsilon=epsilon, rng=np.random.default_rng(2)
    )
    continuous = np.random.default_rng(3).laplace(0, 1 / epsilon, n)
    assert same_law(noisy, continuous) > 1e-4 or epsilon > 0.001
    assert noisy.var() == pytest.approx(2 / epsilon**2, rel=0.03)
    if epsilon == 0.003:
        assert fits(noisy, lambda x: literal.pmf(x, exp(-epsilon))) > 1e-4


@pytest.mark.parametrize(
    "epsilon, theta, tau, sides",
    [(0.1, 40, 0, 2), (0.1, 4.3, 0, 2), (0.5, 3, 0, 1), (0.5, 0, 0, 1), (0.1, 40, 100, 2)]
    + [(1.0, 3, 10, 2), (0.1, 4.3, 7.3, 2), (0.1, 0, 0.5, 2), (0.7, 0, 30.5, 1), (0.5, 6, 2, 2)]
    + [(0.2, 2, 400, 2), (0.2, 30, 45.5, 1), (2.0, 1, 2.6, 2)],
)
def test_an_empty_cell_survives_and_is_valued_as_the_literal_process_says(
    epsilon, theta, tau, sides
):
    alpha = exp(-epsilon)
    law = EmptyCell(laws.two_sided(Fraction(epsilon)).alpha, theta, sides, tau)
    if tau:
        survival = threshold_sampling.survival(alpha, theta, tau, sides)
        pmf = lambda v: threshold_sampling.value_pmf(v, alpha, theta, tau, sides)  # noqa: E731
    else:
        survival = high_pass_filter.survival(alpha, theta, sides)
        passes = lambda v: high_pass_filter.passes(v, theta, sides)  # noqa: E731
        pmf = lambda v: passes(v) * literal.pmf(v, alpha) / survival  # noqa: E731
    assert float(law.survival(192)) == pytest.approx(survival, rel=1e-12)
    values = law.values(60_000, source.word_source(np.random.default_rng(5)))
    assert fits(values, pmf) > 1e-4


def test_golden_numbers():
    golden.check()


def test_rare_survivors_come_at_their_rate_and_anywhere():
    """Seeded: never by chance; sees a rate that is off by five standard errors (20 %)."""
    words = source.word_source(np.random.default_rng(7))
    drawn = [survivor_ranks(10**6, real(1e-7), words) for _ in range(6000)]
    found = np.concatenate(drawn)
    assert len(found) == pytest.approx(600, abs=5 * 600**0.5)
    assert same_law(found / 10**6, np.linspace(0, 1, 10_000)) > 1e-4
    assert len(survivor_ranks(2**62, lambda b: Interval(0, 1, b), words)) == 0  # p below 2^-192


# priorities


def test_priorities_of_equal_first_bits_are_told_apart():
    pool = priorities.Candidates(np.full(6, 50), source.word_source(np.random.default_rng(8)))
    pool.drawn[:] = 2**40 + 1
    pool.inverse[:] = pool.inverse[0]
    taken, tau = priorities.largest_priorities([pool], 3)
    assert taken.sum() == 3 and tau > 0
    worst_taken = max(pool.bounds(i, 64)[1] for i in np.flatnonzero(taken))
    assert worst_taken <= min(pool.bounds(i, 64)[1] for i in np.flatnonzero(~taken))


def test_tau_is_the_next_priority_rounded_down_to_the_grid():
    pool = priorities.Candidates(
        np.arange(1, 200), source.word_source(np.random.default_rng(9))
    )
    taken, tau = priorities.largest_priorities([pool], 50)
    exact = sorted(1 / pool.bounds(i, 0)[1] for i in range(199))[-51]
    assert tau == int(exact * priorities.GRID) / priorities.GRID and taken.sum() == 50


@pytest.mark.slow
@pytest.mark.parametrize("theta, start", [(0, None), (0, 200.0), (20, 500.0), (0, 16.0)])
def test_a_wrong_guess_changes_no_law(monkeypatch, theta, start):
    """A guess far too high is extended downwards; restarting instead would bias τ_s."""
    rng, epsilon, m, size = np.random.default_rng(10), 0.1, 1000, 60
    keys, counts = np.arange(0, 40 * 7, 7), np.full(40, 60)
    dense = np.zeros(m, np.int64)
    dense[keys] = counts
    if start:
        monkeypatch.setattr(priorities, "guess_threshold", lambda *a: start)
    ours = [
        noise.priority_sample(keys, counts, [(m, 1, epsilon)], theta=theta, size=size, rng=rng)
        for _ in range(700)
    ]
    full = []
    for _ in range(700):
        noisy, _ = noise.geometric(dense, l1=1, epsilon=epsilon, rng=rng)
        kept, tau = noise.priority_sample_public(noisy, theta=theta, size=size, rng=rng)
        full.append((np.flatnonzero(kept), noisy[kept], tau))
    assert same_law([r[2] for r in ours], [r[2] for r in full]) > 1e-4
    for column in (0, 1):
        a, b = (np.concatenate([r[column] for r in runs]) for runs in (ours, full))
        assert same_law(a, b) > 1e-4 and same_counts(a, b) > 1e-4
    share = [[np.isin(keys, r[0]).mean() for r in runs] for runs in (ours, full)]
    assert same_law(*share) > 1e-4


# Laplace on a grid


@pytest.mark.parametrize("value, grid", [(0.3, 0.25), (-7.1, 0.125), (5.0, 2.0)])
def test_laplace_answers_lie_on_the_grid_with_the_literal_law(value, grid):
    n, epsilon, l1 = 40_000, 0.7, 1.5
    noisy, receipt = noise.laplace(
        np.full(n, value),
        l1=l1,
        epsilon=epsilon,
        grid=grid,
        l0=1,
        rng=np.random.default_rng(12),
    )
    units = noisy / grid
    assert (units == np.rint(units)).all() and receipt.cost == DP(epsilon)
    pmf = lambda k: laplace.pmf(k * grid, value, l1, 1, grid, epsilon)  # noqa: E731
    assert fits(units.astype(int), pmf) > 1e-4


def test_whole_numbers_need_no_rounding_allowance():
    """Seeded: never by chance; sees a variance that is off by 3 %."""
    whole, _ = noise.laplace(
        np.zeros(10**5, int), l1=1, epsilon=1, grid=1.0, rng=np.random.default_rng(0)
    )
    assert whole.var() == pytest.approx(literal.variance(exp(-1)), rel=0.03)
    some, _ = noise.laplace(
        np.zeros(10**5), l1=1, epsilon=1, grid=1.0, l0=1, rng=np.random.default_rng(0)
    )
    assert some.var() == pytest.approx(literal.variance(exp(-0.5)), rel=0.03)


def test_what_is_no_number_lies_on_the_grid():
    """A value that is NaN or infinite is not refused, since that would tell, and is cut."""
    with np.errstate(invalid="ignore"):
        noisy, _ = noise.laplace(
            np.array([np.nan, inf, -inf]),
            l1=1,
            epsilon=50,
            grid=1.0,
            rng=np.random.default_rng(0),
        )
    assert noisy.tolist() == [0.0, 2.0**53, -(2.0**53)]


@pytest.mark.parametrize("grid", [0.0, -1.0, 0.3, inf, float("nan")])
def test_a_grid_is_a_power_of_two(grid):
    with pytest.raises(ValueError, match="grid"):
        noise.laplace(np.zeros(1), l1=1, epsilon=1, grid=grid)


# the door


def test_system_noise_never_repeats_across_a_fork():
    """By chance at most once in 10⁹ runs; sees noise that repeats in all of 64 cells."""
    read, write = os.pipe()
    draw = lambda: noise.geometric(np.zeros(64, np.int64), l1=1, epsilon=0.01)[0].tobytes()  # noqa: E731
    draw()  # whatever state there is exists before the fork
    if (child := os.fork()) == 0:
        os.write(write, draw())
        os._exit(0)
    mine = draw()
    os.waitpid(child, 0)
    assert os.read(read, 10**4) != mine and len(mine) == 512


def test_seeded_noise_replays_and_says_so():
    draw = lambda s: noise.geometric(
        np.zeros(99, np.int64), l1=1, epsilon=1, rng=np.random.default_rng(s)
    )  # noqa: E731
    (a, paid), (b, _), (c, _) = draw(0), draw(0), draw(1)
    assert (a == b).all() and (a != c).any() and paid.simulated
    assert not noise.geometric(np.zeros(9, np.int64), l1=1, epsilon=1)[1].simulated


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), inf, 1e-300])
def test_a_price_must_be_payable(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        noise.geometric(np.zeros(3, np.int64), l1=1, epsilon=epsilon)


def test_a_summary_too_large_to_hold_is_refused_before_anything_is_drawn():
    with pytest.raises(ValueError, match="Raise theta"):
        noise.threshold_sample(np.empty(0, int), np.empty(0, int), [(10**14, 1, 0.1)], theta=1)


def test_places_are_a_uniform_sample_without_repeats():
    """Seeded: never by chance; sees a place that is off by 14 %."""
    for count, size in [(5, 9), (9, 9), (100, 10**15), (3, 100)]:
        drawn = noise.uniform_keys(count, size, rng=np.random.default_rng(0))
        assert (
            len(np.unique(drawn)) == count and drawn.max() < size and (np.diff(drawn) > 0).all()
        )
    many = [noise.uniform_keys(3, 10, rng=np.random.default_rng(s)) for s in range(3000)]
    assert np.bincount(np.concatenate(many)) == pytest.approx(900, abs=130)


# what planted mistakes showed to be missing


@pytest.mark.parametrize(
    "theta, sides, tau, above", [(0, 2, 8, 16), (3, 1, 7.5, 15.25), (0, 2, 90.0, 500.0)]
)
def test_an_extension_draws_what_did_not_enter_before(theta, sides, tau, above):
    alpha, now, before = exp(-0.1), (theta, tau, sides), (theta, above, sides)
    law = EmptyCell(laws.two_sided(Fraction(0.1)).alpha, theta, sides, tau, above)
    p, q = (threshold_sampling.survival(alpha, *x) for x in (now, before))
    assert float(law.survival(192)) == pytest.approx((p - q) / (1 - q), rel=1e-11)
    first, second = (threshold_sampling.value_pmf, threshold_sampling.value_pmf)
    pmf = lambda v: (p * first(v, alpha, *now) - q * second(v, alpha, *before)) / (p - q)  # noqa: E731
    values = law.values(60_000, source.word_source(np.random.default_rng(14)))
    assert fits(values, pmf) > 1e-4


def test_the_next_priority_is_looked_for_where_just_enough_cells_lie_above_the_guess(
    monkeypatch,
):
    monkeypatch.setattr(
        priorities, "guess_threshold", lambda *a: 130.0
    )  # some three cells lie above
    rng, none, m = np.random.default_rng(15), np.empty(0, np.int64), 40
    ours, full = [], []
    for _ in range(400):
        top = noise.priority_sample(none, none, [(m, 1, 0.1)], theta=0, size=3, rng=rng)
        noisy, _ = noise.geometric(np.zeros(m, np.int64), l1=1, epsilon=0.1, rng=rng)
        ours.append(top[2])
        full.append(noise.priority_sample_public(noisy, theta=0, size=3, rng=rng)[1])
    assert min(ours) > 0 and same_law(ours, full) > 1e-4


def test_ranks_among_the_cells_left_are_ranks_among_all():
    rng, left = np.random.default_rng(16), np.arange(7, 67)
    for k in (1, 10, 15, 20, 14):
        known = np.setdiff1d(np.arange(7, 67), left)
        empty = parts.EmptyKeys(7, 60, known)
        new = np.sort(rng.choice(len(left), k, replace=False))
        assert empty().tolist() == left.tolist()
        assert empty.at(new).tolist() == left[new].tolist()
        left = np.delete(left, new)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1, 500)])
def test_a_law_is_the_same_wherever_its_tail_starts(monkeypatch, epsilon):
    """Tails are drawn again from the start; where they really start they are too rare to be seen."""
    monkeypatch.setattr(laws, "_TAIL", 5.0)
    words, alpha, n = source.word_source(np.random.default_rng(18)), exp(-epsilon), 10**6
    law, x = laws.TwoSidedGeometric(epsilon), np.zeros(n, np.int64)
    law.add(x, words)
    assert folded(x, lambda k: literal.pmf(k, alpha), alpha) > 1e-4
    gaps = laws.Geometric(law.alpha).sample(n, words).view(np.int64)
    assert folded(gaps, lambda k: (1 - alpha) * alpha**k if k >= 0 else 0, alpha) > 1e-4
    if law.inverse:
        upper = law._beyond(n, words)
        assert folded(upper, lambda k: (1 - alpha) * alpha**k if k >= 0 else 0, alpha) > 1e-4


def folded(x, pmf, alpha):
    """p-value of how often x is −1, 0, 1, and of x modulo 32 (blocks and their places)."""
    period = 32 * (1 + int(40 / -np.log(alpha)) // 32)
    expected = np.array([pmf(k) for k in range(-period, period)]).reshape(-1, 32).sum(axis=0)
    few = np.array([(x == k).sum() for k in (-1, 0, 1)] + [(np.abs(x) > 1).sum()])
    each = [pmf(k) for k in (-1, 0, 1)]
    whole = fits_chances(np.bincount(x % 32, minlength=32), expected / expected.sum())
    return min(whole, fits_chances(few, [*each, 1 - sum(each)]))


def test_a_sampled_tail_starts_anywhere_too(monkeypatch):
    monkeypatch.setattr(empty_cells, "_TAIL", 1.0)
    alpha, theta = exp(-0.25), 3
    law = empty_cells.WeightedGeometric(laws.two_sided(Fraction(1, 4)).alpha, theta)
    assert law.table and law.tail == 4
    x = law.sample(300_000, source.word_source(np.random.default_rng(19))).view(np.int64)
    total = theta / (1 - alpha) + alpha / (1 - alpha) ** 2
    assert fits(x, lambda k: (theta + k) * alpha**k / total if k >= 0 else 0) > 1e-4


@pytest.mark.parametrize("ratio", [0.995, 0.999, 1 - 1e-9])
def test_what_a_byte_of_coin_settles_was_sure(ratio):
    law = laws.Geometric(real(ratio))
    assert law.shift and 0 < law.sure <= 256 * ratio ** (2**law.shift - 1)


@pytest.mark.parametrize("n", [3, 5, 2**70 // 3])
def test_a_whole_number_below_n_is_uniform(n):
    words = source.word_source(np.random.default_rng(20))
    thirds = np.bincount(
        [3 * randomness.uniform_below(n, words) // n for _ in range(6000)], minlength=3
    )
    expected = np.bincount([3 * k // n for k in range(n)]) if n < 9 else np.ones(3)
    assert fits_chances(thirds, expected / expected.sum()) > 1e-4


@pytest.mark.parametrize("theta", [3, 2.5])
def test_a_filter_keeps_the_values_that_reach_its_cut(theta):
    v = np.arange(-5, 6)
    for sides, expected in ((1, v >= theta), (2, np.abs(v) >= theta)):
        assert (noise.threshold_sample_public(v, theta=theta, sides=sides) == expected).all()
        assert (
            noise.priority_sample_public(v, theta=theta, size=9, sides=sides)[0] == expected
        ).all()


def test_a_refusal_depends_on_public_numbers_alone(monkeypatch):
    monkeypatch.setattr(parts, "MAX_RELEASED_CELLS", 100)
    said = set()
    for n in (0, 1, 60, 110):
        with pytest.raises(ValueError, match="empty table of 110 cells") as told:
            noise.threshold_sample(np.arange(n), np.ones(n, int), [(110, 1, 0.1)], theta=1)
        said.add(str(told.value))
    assert len(said) == 1


def test_with_the_systems_randomness_held_nothing_else_moves(monkeypatch):
    """What is published draws on os.urandom alone: a key and a counter, afresh at every call."""
    asked = []
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or bytes(n))
    zeros = np.zeros(99, np.int64)
    a, b = (noise.geometric(zeros, l1=1, epsilon=0.01)[0] for _ in range(2))
    assert (a == b).all() and a.any() and asked.count(32) == 2


@pytest.mark.parametrize("empty", [10**6, 2**53 + 2**40, 2**55, 2**62, 2**63 - 1])
def test_places_of_survivors_are_exact_on_the_largest_domains(empty):
    """A place rounded to a float would tell the empty cells from the occupied ones."""
    # Seeded: never by chance; sees a low byte that is never or always the same.
    gaps = np.random.default_rng(0).integers(0, max(2, empty // 900), 1000, dtype=np.uint64)
    out = np.empty(1000, np.uint64)
    k, start = kernels.advance(gaps, np.uint64(0), np.uint64(empty), out, 0)
    at, expected = 0, []
    for gap in gaps.tolist():
        if gap >= empty - at:
            break
        expected.append(at + gap)
        at += gap + 1
    assert out[:k].tolist() == expected and int(start) == (at if k == 1000 else empty)
    more, _ = kernels.advance(gaps[:1], np.uint64(start), np.uint64(2**63), out, 0)
    assert more and int(out[0]) == int(start) + int(gaps[0])
    drawn = survivor_ranks(
        empty, real(Fraction(3000, empty)), source.word_source(np.random.default_rng(1))
    )
    if empty > 2**60:
        assert np.bincount(drawn % 256, minlength=256).max() < 60  # no low bits are lost


def test_places_lean_to_no_side_of_a_large_domain():
    """Seeded: never by chance; sees a third that is off by 0.015."""
    drawn = noise.uniform_keys(20_000, 3 * 2**61, rng=np.random.default_rng(0))
    assert (drawn < 2**61).mean() == pytest.approx(1 / 3, abs=0.015)


def test_coins_of_tiny_decay_are_as_exact_as_said():
    alpha = laws.two_sided(Fraction(1e-9)).alpha
    law = EmptyCell(alpha, 2**40, 2, 2.0**40, 2.0**40 + 1e7)
    assert (law.values(200, source.word_source(np.random.default_rng(0))) != 0).all()


@pytest.mark.parametrize("l1", [np.int64(513), 513, 513.0, Fraction(513)])
def test_a_price_is_the_same_in_any_number_type(l1):
    assert noise.decay(l1, 0.1) == Fraction(0.1) / 513


@pytest.mark.parametrize("wrong", [{"theta": -0.5}, {"tau": -1}, {"sides": 3}, {"theta": inf}])
def test_the_door_refuses_what_its_laws_are_not_about(wrong):
    keys, asked = np.arange(3), {"theta": 5} | wrong
    with pytest.raises(ValueError, match=next(iter(wrong))):
        noise.threshold_sample(keys, keys + 1, [(99, 1, 1.0)], **asked)
    with pytest.raises(ValueError, match="integers"):
        noise.geometric(np.array([0.95]), l1=0.1, epsilon=1)


def test_tables_of_laws_are_shared_bounded_and_unchangeable():
    law = laws.two_sided(Fraction(1, 3))
    assert laws.two_sided(Fraction(1, 3)) is law
    for shared in (law.inverse, empty_cells._geometric(law.alpha).blocks):
        for table in (shared.table, shared.outcomes, shared.lo64, shared.hi64):
            with pytest.raises(ValueError, match="read-only"):
                table[0] = 1
    modules = [m for name, m in sys.modules.items() if name.startswith("workbench.noise")]
    caches = [
        made
        for module in modules
        for made in vars(module).values()
        if hasattr(made, "cache_parameters")
    ]
    assert laws.two_sided in caches
    assert all(made.cache_parameters()["maxsize"] for made in caches)
