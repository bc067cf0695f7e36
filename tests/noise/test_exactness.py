"""Exactness by computing: boundaries to 800 digits, and bits that always fall on a boundary.

A law is drawn by comparing a uniform real number with boundaries. So it is exact if every boundary is
enclosed, and if every number is sorted to its side of each, however close it lies: here numbers agree with
a boundary in up to 900 bits. Boundaries are worked out anew, with decimals, from the stated laws.
"""

from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np
import pytest

from workbench import noise
from workbench.noise import exponential, laws, response
from workbench.noise.empty_cells import EmptyCell, WeightedGeometric, survivor_ranks
from workbench.noise.laws import accept
from workbench.privacy.enclosures import exp_neg

P = 2400  # bits to which boundaries are known here
DIGITS = 800
AGREEING = (1, 15, 16, 17, 63, 64, 65, 128, 191, 193, 400, 900)  # bits
NARROW = [Fraction(1, 250), Fraction(1, 10), Fraction(1), Fraction(7, 2), Fraction(700)]
WIDE = [Fraction(1, 2**36), Fraction(1, 2**20), Fraction(1, 251)]
SLOW = {Fraction(1, 1000), Fraction(1, 250), Fraction(1, 251), Fraction(1, 100)}


def cases(decays):
    return [pytest.param(x, marks=[pytest.mark.slow] if x in SLOW else []) for x in decays]


def two_sided(decay, tail):
    """Pr[X >= x] for x = tail, …, 1 − tail, of Pr[X = x] = (1 − a)/(1 + a)·a^|x|."""
    a = power(decay)
    up = [p / (1 + a) for p in accumulate([a] * tail, mul)]
    return up[::-1] + [1 - p for p in up]


def geometric(decay, tail, block):
    """Pr[X < x·block] for x = 1 … tail, of Pr[X = x] = (1 − a)·a^x."""
    return [1 - p for p in accumulate([power(decay * block)] * tail, mul)]


def weighted(decay, tail, theta):
    """Pr[X < x] for x = 1 … tail, of Pr[X = x] ∝ (theta + x)·a^x, term by term."""
    a = power(decay)
    total = theta / (1 - a) + a / (1 - a) ** 2
    powers = accumulate([Decimal(1), *[a] * (tail - 1)], mul)
    return list(accumulate((theta + x) * p / total for x, p in enumerate(powers)))


def power(decay):
    return (-Decimal(decay.numerator) / Decimal(decay.denominator)).exp()


def exactly(make, *arguments):
    """⌊2^P · boundary⌋ of each; none is a fraction of a power of two, so that none equals its floor."""
    with localcontext() as context:
        context.prec = DIGITS
        return [int(p * 2**P) for p in make(*arguments)]


def numbers_near(boundaries, some):
    """Numbers, as (digits, how many bits), that agree with a boundary in so many bits, on each side."""
    for edge in boundaries[:: max(1, len(boundaries) // some)]:
        for bits in AGREEING:
            below = edge >> P - bits
            yield below, bits
            if below + 1 < 1 << bits:
                yield below + 1, bits


def side(boundaries, digits, bits):
    """How many boundaries lie below the number."""
    return bisect_left(boundaries, digits << P - bits)


def words_of(digits, bits, first=64):
    """A source of that number's bits, and then of zeros: the `first` ones, 64 − `first`, then 64 each."""
    number = digits << 64 * 100 - bits

    def pieces():
        if first < 64:
            top = number >> 64 * 100 - first
            yield top
            yield (number >> 64 * 99) << first & 2**64 - 1
        else:
            yield number >> 64 * 99
        for i in range(98, -1, -1):
            yield number >> 64 * i & 2**64 - 1

    rest = pieces()
    return lambda n: np.array([next(rest) for _ in range(n)], np.uint64)


def check_enclosures(inversion, boundaries):
    for bits in (192, 384):
        for interval, exact in zip(inversion.boundaries(bits), boundaries, strict=True):
            assert interval.lo << P - bits <= exact < interval.hi << P - bits
            assert interval.hi - interval.lo <= 2**32


def check_table(inversion, boundaries):
    """Sixteen bits decide an outcome only where all numbers that begin so have it."""
    begins = np.array([edge >> P - 16 for edge in boundaries])  # in which cell a boundary lies
    below, at_most = (
        np.searchsorted(begins, np.arange(2**16), which) for which in ("left", "right")
    )
    sure = inversion.table != laws._UNSURE
    assert (below == at_most)[sure].all()
    assert (inversion.table == inversion.outcomes[below])[sure].all()
    assert (~sure).sum() <= 2 * len(boundaries) + 2**16 // 100


def check_sides(inversion, boundaries, some):
    """Every number falls on its side, whatever it takes."""
    for digits, bits in numbers_near(boundaries, some):
        out = np.zeros(1, np.int64)
        where, x = inversion.add(out, words_of(digits, bits, first=16))
        expected = inversion.outcomes[side(boundaries, digits, bits)]
        assert out[0] == expected and (not where.size or x[0] == expected)


@pytest.mark.parametrize("decay", cases(NARROW))
def test_two_sided_noise(decay):
    law = laws.TwoSidedGeometric(decay)
    boundaries = exactly(two_sided, decay, law.tail)
    check_enclosures(law.inverse, boundaries)
    check_table(law.inverse, boundaries)
    check_sides(law.inverse, boundaries, 8)


@pytest.mark.parametrize("decay", cases([*WIDE, Fraction(1, 10), Fraction(3)]))
def test_geometric_gaps_and_blocks(decay):
    law = laws.Geometric(lambda bits: exp_neg(decay, bits))
    boundaries = exactly(geometric, decay, law.tail, 2**law.shift)
    check_enclosures(law.blocks, boundaries)
    check_table(law.blocks, boundaries)
    check_sides(law.blocks, boundaries, 8)


@pytest.mark.parametrize("decay", cases(WIDE))
def test_a_place_in_a_block_is_kept_with_its_exact_chance(decay):
    """a^place = sure/256 + (1 − sure/256)·rest: a byte below `sure` keeps it, else a coin of `rest`."""
    law = laws.Geometric(lambda bits: exp_neg(decay, bits))
    size = 2**law.shift
    for place in (1, size // 3, size // 2 + 1, size - 2, size - 1):
        with localcontext() as context:
            context.prec = DIGITS
            rest = (256 * power(decay * place) - law.sure) / (256 - law.sure)
            assert 0 < rest < 1
            rest = int(rest * 2**P)
        for digits, bits in numbers_near([rest], 1):
            coin = words_of(digits, bits)
            first = [
                place << 64 - law.shift,
                law.sure,
            ]  # a place, and a byte that does not settle

            def words(n, coin=coin, first=first):
                return np.array([first.pop(0)], np.uint64) if first else coin(n)

            kept = digits << P - bits <= rest
            assert law._places(1, words) == (place if kept else 0)  # zeros are drawn next


@pytest.mark.parametrize("decay", cases([Fraction(1, 100), Fraction(1, 4), Fraction(3)]))
@pytest.mark.parametrize("theta", [1, 5, 1000])
def test_what_sampling_keeps(decay, theta):
    law = WeightedGeometric(lambda bits: exp_neg(decay, bits), theta)
    boundaries = exactly(weighted, decay, law.tail, theta)
    check_enclosures(law.table, boundaries)
    check_table(law.table, boundaries)
    check_sides(law.table, boundaries, 4)


@pytest.mark.parametrize("decay", cases([Fraction(1, 10), Fraction(1), Fraction(1, 1000)]))
@pytest.mark.parametrize("theta, tau, sides", [(3, 0, 2), (0, 7.5, 2), (2.5, 40.25, 1)])
def test_an_empty_cell_survives_with_the_chance_that_is_summed_term_by_term(
    decay, theta, tau, sides
):
    law = EmptyCell(lambda bits: exp_neg(decay, bits), theta, sides, tau)
    with localcontext() as context:
        context.prec = 80
        a = power(decay)
        term = (1 - a) / (1 + a)
        chance = Decimal(0)
        for v in range(int(150 / decay)):
            if v >= theta and (v or (sides == 1 and not tau)):
                chance += term * (min(Decimal(v) / Decimal(tau), 1) if tau else 1)
            term *= a
        exact = sides * chance
        known = law.survival(192)
        assert abs(exact - Decimal(known.lo) / 2**192) < Decimal(2) ** -150
        assert known.hi - known.lo < 2**40


@pytest.mark.parametrize(
    "decay", [Fraction(1, 2**36), Fraction(1, 3), Fraction(2), Fraction(700)]
)
def test_a_coin_falls_on_its_side_however_close(decay):
    """Also where the float that proposes is as wrong as it may be."""
    chance = exactly(lambda: [power(decay)])
    for digits, bits in numbers_near(chance, 1):
        for error in (-1e-13, 0, 1e-13):
            proposed = np.array([chance[0] / 2**P + error])
            heads = accept(proposed, lambda i, b: exp_neg(decay, b), words_of(digits, bits))
            assert heads == (side(chance, digits, bits) == 0)


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2**36), Fraction(1, 7), Fraction(3), Fraction(700)]
)
def test_a_candidate_is_chosen_on_its_side_however_close(rate):
    scores = [0, 2, 1, 2, 0, 0]  # no sum of some is half of all, which no further bits decide

    def cumulative():
        weights = [power(rate * (2 - s)) for s in scores]
        return [sum(weights[: i + 1]) / sum(weights) for i in range(len(scores) - 1)]

    boundaries = exactly(cumulative)
    available = np.ones((1, len(scores)), bool)
    for digits, bits in numbers_near(boundaries, len(boundaries)):
        chosen = exponential.sample_candidates(
            np.array([scores]), available, rate, words_of(digits, bits)
        )
        assert chosen == side(boundaries, digits, bits)


@pytest.mark.parametrize("epsilon", [2.0**-36, 2.0**-20, 0.001, 1.0, 700.0])
@pytest.mark.parametrize("count", [2**53, 2**53 - 1, 1, -(2**53)])
def test_noise_is_the_same_on_every_count(epsilon, count):
    """To the last bit, so that a neighbour's law is the same law, one further on."""
    n = 3000
    at = lambda x: noise.geometric(
        np.full(n, x), l1=1, epsilon=epsilon, rng=np.random.default_rng(5)
    )[0]
    assert (at(count) - count == at(0)).all()
    assert at(0).any() or epsilon == 700.0


@pytest.mark.parametrize("decay", [Fraction(1, 2**36), Fraction(1, 9), Fraction(9)])
def test_flipped_bits_fall_on_their_sides_however_close(decay):
    """Digit by digit, as many numbers at once as a word has bits."""
    flip = response.flip_probability(decay)
    [chance] = exactly(lambda: [1 / (1 + 1 / power(decay / 2))])
    assert flip(192).lo << P - 192 <= chance < flip(192).hi << P - 192
    near = list(numbers_near([chance], 1))
    place = iter(range(1, P))

    def words(n):
        i = next(place)
        digits = [(d << P - bits) >> P - i & 1 for d, bits in near]
        return np.array(
            [sum(digit << lane for lane, digit in enumerate(digits))] * n, np.uint64
        )

    [heads] = response.biased_bits(1, flip, words)
    for lane, (digits, bits) in enumerate(near):
        assert int(heads) >> lane & 1 == (digits << P - bits <= chance)


@pytest.mark.parametrize(
    "decay, size", [(Fraction(1, 9), 50), (Fraction(1), 2), (Fraction(40), 9)]
)
def test_a_value_is_retained_with_its_chance(decay, size):
    """(γ − 1)/(γ − 1 + size), γ = exp(decay)."""
    keep = response.retention_probability(decay, size)
    chance = exactly(lambda: [(1 / power(decay) - 1) / (1 / power(decay) - 1 + size)])
    for digits, bits in numbers_near(chance, 1):
        below = side(chance, digits, bits) == 0
        drawn = response.retain_or_replace(
            np.array([size - 1]), size, keep, words_of(digits, bits)
        )
        assert drawn == (size - 1 if below else 0)  # zeros replace it


@pytest.mark.parametrize("empty", [1, 10**6, 2**63 - 1])
def test_rare_survivors_are_there_or_not_however_close(empty):
    """None with chance (1 − p)^empty; given zeros, the first cell is the one."""
    law = EmptyCell(lambda bits: exp_neg(Fraction(1), bits), 60, 1)
    none = exactly(lambda: [(1 - power(Fraction(60)) / (1 + power(Fraction(1)))) ** empty])
    for digits, bits in numbers_near(none, 1):
        ranks = survivor_ranks(empty, law.survival, words_of(digits, bits))
        assert ranks.tolist() == ([] if side(none, digits, bits) == 0 else [0])
