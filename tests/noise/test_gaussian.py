"""The exact discrete Gaussian: its boundaries to hundreds of digits, its law, what lies beyond tables."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy import stats

from tests.agreement import RARE, fits, fits_chances, seeded
from tests.noise.test_exactness import (
    DIGITS,
    P,
    check_enclosures,
    check_sides,
    check_table,
    exactly,
    numbers_near,
    power,
    words_of,
)
from tests.reference import discrete_gaussian as literal
from workbench.noise.discrete_gaussian import (
    DiscreteGaussian,
    HalfGaussian,
    normaliser,
    upper_sums,
)
from workbench.noise.source import word_source

SIGMAS = (0.3, 1, 3, 37.5, 300, 513, 1000, 5000, 1e5)


def rate_of(sigma):
    return 1 / (2 * Fraction(sigma) ** 2)


def tails(rate, start, step, count, rising=False):
    """Σ_{i >= j} of exp(−rate·x²), x = start + i·step, for j = 0 … count: term by term."""
    terms = []
    x = start
    term = power(rate * x * x)
    ratio = power(rate * (2 * x + step) * step)
    change = power(2 * rate * step * step)
    while len(terms) < count or term > Decimal(10) ** -(DIGITS - 20):
        terms.append(term * (x + step - 1) if rising else term)
        term *= ratio
        ratio *= change
        x += step
    return list(accumulate(reversed(terms)))[::-1][: count + 1]


def two_sided(rate, tail):
    """Pr[X >= x] for x = tail, …, 1 − tail."""
    sums = tails(rate, 0, 1, tail)
    upper = [s / (sums[0] + sums[1]) for s in reversed(sums[1:])]
    return upper + [1 - p for p in reversed(upper)]


def half(rate, start, step, count, rising):
    """Pr[block < j] for j = 1 … count."""
    sums = tails(rate, start, step, count, rising)
    return [1 - s / sums[0] for s in sums[1:]]


@pytest.mark.parametrize(
    "sigma", [0.2, 1, 9.9, 10.1, 40, pytest.param(300, marks=pytest.mark.slow)]
)
def test_sums_and_normalisers_enclose(sigma):
    rate = rate_of(sigma)
    with localcontext() as context:
        context.prec = DIGITS
        sums = tails(rate, 0, 1, 3)
        for bits in (64, 192, 900):
            for got, exact in zip(
                [*upper_sums(rate, 0, 1, 3, bits), normaliser(rate, bits)],
                [*sums, sums[0] + sums[1]],
                strict=True,
            ):
                assert got.lo <= exact * 2**bits <= got.hi
                assert got.hi - got.lo <= 4
        start, step = int(2 * sigma) + 1, 3
        for rising in (False, True):
            exact = tails(rate, start, step, 2, rising)
            for got, sum_ in zip(
                upper_sums(rate, start, step, 2, 192, rising), exact, strict=True
            ):
                relative = sum_ / power(rate * start**2)
                assert got.lo <= relative * 2**192 <= got.hi and got.hi - got.lo <= 4


def test_the_normaliser_is_a_theta_function():
    """Beyond what the library sums, by Jacobi's identity: ϑ₃ at e^−r is √(π/r) times that at e^−π²/r."""
    mpmath = pytest.importorskip("mpmath", reason="comes with the extra [test]")
    mpmath.mp.dps = 80
    for sigma in (1, 30, 1e4, 1e9):
        rate = mpmath.mpf(rate_of(sigma).numerator) / rate_of(sigma).denominator
        if sigma < 1000:
            truth = mpmath.jtheta(3, 0, mpmath.exp(-rate))
        else:
            dual = mpmath.exp(-(mpmath.pi**2) / rate)
            truth = mpmath.sqrt(mpmath.pi / rate) * mpmath.jtheta(3, 0, dual)
        got = normaliser(rate_of(sigma), 192)
        assert got.lo <= truth * 2**192 <= got.hi


@pytest.mark.parametrize(
    "sigma", [0.05, 0.3, 1, 7.5, pytest.param(300, marks=pytest.mark.slow)]
)
def test_boundaries_are_those_of_the_law(sigma):
    law = DiscreteGaussian(rate_of(sigma))
    boundaries = exactly(two_sided, law.rate, law.tail)
    check_enclosures(law.inverse, boundaries)
    check_table(law.inverse, boundaries)
    check_sides(law.inverse, boundaries, 8)


@pytest.mark.parametrize(
    "sigma, start, rising",
    [
        (0.5, 3, False),
        (4, 0, False),
        (4, 1, True),
        (4, 90, True),
        pytest.param(1e9, 7, True, marks=pytest.mark.slow),
    ],
)
def test_blocks_are_those_of_the_law(sigma, start, rising):
    law = HalfGaussian(rate_of(sigma), start, rising)
    assert law.shift == (sigma > 512) * int(np.ceil(np.log2(sigma / 512)))
    boundaries = exactly(half, law.rate, start, law.width, law.count, rising)
    check_enclosures(law.table, boundaries)
    check_table(law.table, boundaries)
    check_sides(law.table, boundaries, 4)


@pytest.mark.parametrize("sigma, start", [(600, 0), (1e6, 0), (1e6, 3_000_001), (1e15, 0)])
def test_a_place_in_a_block_is_kept_with_its_exact_chance(sigma, start):
    """exp(−rate·(x² − left²)) = sure/2^16 + (1 − sure/2^16)·rest."""
    law = HalfGaussian(rate_of(sigma), start)
    for block in (0, 300, law.count - 1):
        for place in {1, law.width // 2, law.width - 1}:
            x = start + block * law.width + place
            with localcontext() as context:
                context.prec = DIGITS
                kept = power(law.rate * place * (2 * x - place))
                rest = (2**16 * kept - law.sure) / (2**16 - law.sure)
                assert 0 < rest < 1
                rest = int(rest * 2**P)
            for digits, bits in numbers_near([rest], 1):
                coin = law._settle(
                    np.array([x]), np.array([place]), law.sure, words_of(digits, bits)
                )
                assert coin == (digits << P - bits <= rest)


@pytest.mark.parametrize(
    "sigma, start, rising", [(1.5, 15, False), (1.5, 15, True), (600, 6000, True)]
)
def test_beyond_the_table(sigma, start, rising):
    """A law whose table ends at its start: the chances of the blocks after it."""
    law = HalfGaussian(rate_of(sigma), start, rising)
    law.end = start
    words = word_source(seeded())
    drawn = np.array([law._blocks_beyond(words) for _ in range(3000)])
    masses = tails(law.rate, start, law.width, 600, rising)
    chances = -np.diff(np.array([*masses, 0], float)) / float(masses[0])
    seen = np.bincount(np.minimum(drawn, len(chances) - 1), minlength=len(chances))
    assert fits_chances(seen, chances) > 1e-4


def draws(sigma, n, rng=None):
    out = np.zeros(n, np.int64)
    DiscreteGaussian(rate_of(sigma)).add(out, word_source(rng))
    return out


def chances_between(edges, sigma):
    """Of x in [edge, next edge): sums where they are short, else the density, right to some 1/(24σ²)."""
    if sigma < 400:
        at = literal.pmf(sigma)
        return [sum(at(x) for x in range(a, b)) for a, b in zip(edges, edges[1:], strict=False)]
    return np.diff(stats.norm.cdf(np.array(edges) - 0.5, scale=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize(
    "rng, limit", [(seeded(3), 1e-4), (None, RARE)], ids=["seeded", "system"]
)
def test_draws_follow_the_law(sigma, rng, limit):
    x = draws(sigma, 200_000, rng)
    if sigma < 40:
        assert fits(x, literal.pmf(sigma)) > limit
    edges = sorted({int(e) for e in np.linspace(-10 * sigma, 10 * sigma, 300)})
    seen, _ = np.histogram(x, [*edges])
    assert seen.sum() == len(x)
    seen[-1] -= np.count_nonzero(x == edges[-1])  # numpy closes the last bin
    assert fits_chances(seen, chances_between(edges, sigma), 20) > limit


def test_the_places_of_a_wide_law_are_uniform():
    """The last byte of draws, as no block leaves a trace of it."""
    x = draws(1e15, 100_000, seeded(2))
    assert fits_chances(np.bincount(x & 255, minlength=256), np.full(256, 1 / 256)) > 1e-4
    assert abs(x.std() / 1e15 - 1) < 0.01


def test_narrow_noise_is_none():
    assert not draws(1e-3, 1000).any()


def test_aligned_noise_moves_smoothly():
    from workbench.noise import Aligned

    for sigma in (10, 2000):
        a = draws(sigma, 5000, Aligned(1))
        b = draws(1.05 * sigma, 5000, Aligned(1))
        assert np.corrcoef(a, b)[0, 1] > 0.99
