"""Floats toss coins and choose; what they cannot settle is settled exactly: both must be one law."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from tests.agreement import Scripted
from workbench.noise import discrete_gaussian, empty_cells, exponential, kernels, laws, response
from workbench.noise.discrete_gaussian import DiscreteGaussian, HalfGaussian
from workbench.noise.empty_cells import EmptyCell, GaussianCell, WeightedGeometric
from workbench.noise.laws import Geometric, two_sided
from workbench.privacy.enclosures import exp_neg

CELLS = [(1, 0.0, None), (1, 30.0, None), (20, 4.0, None), (3, 9.0, 40.0), (15, 2.0, 50.0)]


@pytest.fixture
def tossed(monkeypatch):
    """How many coins were tossed; each time some are held against their exact chance."""
    coins = []

    def accept(chance, exactly, words):
        for i in (
            np.unique(np.linspace(0, len(chance) - 1, 9).astype(int)) if len(chance) else ()
        ):
            known = exactly(int(i), 128)
            assert known.lo <= known.hi and abs(float(known) - chance[i]) < 1e-9
        coins.append(len(chance))
        return laws.accept(chance, exactly, words)

    for module in (discrete_gaussian, empty_cells):
        monkeypatch.setattr(module, "accept", accept)
    return coins


@pytest.mark.parametrize(("theta", "tau", "above"), CELLS)
@pytest.mark.parametrize("law", ["geometric", "gaussian", "wide gaussian"])
def test_exact_chances_are_those_that_floats_toss_with(law, theta, tau, above, tossed):
    rng = np.random.default_rng(3)

    def words(n):
        return rng.integers(0, 2**64, n, dtype=np.uint64)

    if law == "geometric":
        cell = EmptyCell(two_sided(Fraction(1, 10)).alpha, theta, 2, tau, above)
    else:
        sigma = 10 if law == "gaussian" else 700
        cell = GaussianCell(Fraction(1, 2 * sigma**2), theta, 2, tau, above)
    ranks, values = cell.survivors(400, words)
    assert (np.abs(values) >= theta).all() and len(ranks) == len(values)
    assert not tau or sum(tossed)


def test_what_does_not_stay_is_drawn_again(monkeypatch):
    half = HalfGaussian(Fraction(1, 2 * 700**2), 0)
    proposals = iter([(np.array([1, 2, 3]), np.array([True, False, True]))])
    again = iter([(np.array([9]), np.array([False])), (np.array([8]), np.array([True]))])
    monkeypatch.setattr(half, "propose", lambda n, w: next(proposals if n == 3 else again))
    assert half.sample(3, None).tolist() == [1, 8, 3]


@pytest.mark.parametrize("sigma", [3.0, 700.0])
def test_gaussian_noise_is_the_same_wherever_its_table_ends(sigma, monkeypatch):
    """A third of all draws lies beyond; 20,000 draws fall into twelve bins as the law says (6 σ)."""
    monkeypatch.setattr(discrete_gaussian, "_REACH", 1.0)
    rate = Fraction(1, int(2 * sigma**2))
    rng = np.random.default_rng(4)
    drawn = np.zeros(20_000, np.int64)
    DiscreteGaussian(rate).add(drawn, lambda n: rng.integers(0, 2**64, n, dtype=np.uint64))
    x = np.arange(-int(8 * sigma), int(8 * sigma) + 1)
    chances = np.exp(-float(rate) * x.astype(float) ** 2)
    edges = np.linspace(-2.5, 2.5, 11) * sigma
    expected = np.bincount(np.searchsorted(edges, x), chances / chances.sum(), 12) * len(drawn)
    seen = np.bincount(np.searchsorted(edges, drawn), minlength=12)
    assert (np.abs(seen - expected) < 6 * np.sqrt(expected)).all(), (seen, expected)


def test_floats_choose_only_where_their_exp_may_err(monkeypatch):
    """An exp that is wrong by 2⁻⁴¹ of itself, as is allowed: what falls close to a boundary is not told."""
    behind = np.arange(8)[None]
    bounds = [x for x in accumulate(np.exp(-0.3 * np.arange(8)))]
    places = [
        int(x / bounds[-1] * 2**64) + k * 2**21 for x in bounds[:-1] for k in range(-9, 10)
    ]
    exactly = np.searchsorted(np.array(bounds) / bounds[-1], np.array(places) / 2**64)
    plain = np.exp
    for sign in (1, -1):
        monkeypatch.setattr(
            np, "exp", lambda x, s=sign: plain(x) * (1 + s * (-1) ** behind * 2.0**-41)
        )
        words = np.array(places, np.uint64)
        every = np.repeat(behind, len(words), axis=0)
        chosen, unsure = exponential._by_floats(every, every >= 0, 0.3, words)
        monkeypatch.setattr(np, "exp", plain)
        assert ((chosen == exactly) | unsure).all()
        assert (chosen != exactly).any()


def test_a_candidate_that_does_not_stay_is_no_survivor(monkeypatch):
    cell = GaussianCell(Fraction(1, 2 * 700**2), 3000, 1)
    assert not cell.is_dense
    stays = np.arange(10) % 3 == 0
    proposed = (np.arange(3000, 3010), stays)
    monkeypatch.setattr(HalfGaussian, "propose", lambda self, n, words: proposed)
    monkeypatch.setattr(empty_cells, "survivor_ranks", lambda *asked: np.arange(10))
    ranks, values = cell.survivors(100, None)
    assert ranks.tolist() == [0, 3, 6, 9] and values.tolist() == [3000, 3003, 3006, 3009]


def test_a_wide_law_of_sampled_values_is_settled_exactly(tossed):
    rng = np.random.default_rng(5)
    law = WeightedGeometric(two_sided(Fraction(1, 1000)).alpha, 3)
    law.sample(300, lambda n: rng.integers(0, 2**64, n, dtype=np.uint64))
    assert sum(tossed) >= 300


def test_a_ratio_that_no_float_holds_is_nothing():
    law = Geometric(lambda bits: exp_neg(Fraction(800), bits))
    words = np.random.default_rng(6)
    drawn = law.sample(50, lambda n: words.integers(0, 2**64, n, dtype=np.uint64))
    assert not drawn.any()


def test_places_in_blocks_are_exact_beyond_what_floats_hold():
    blocks = np.array([3, 2**12 + 1])
    drawn = np.array([2**64 - 1, 2**63 + 2**14 + 2**20], np.uint64)
    literal = [(b << 48) + 7 + (int(d) >> 16) for b, d in zip(blocks, drawn, strict=True)]
    kernels.place(blocks, drawn, 48, 7, 0, np.empty(2, np.int32))
    assert blocks.tolist() == literal and max(literal) > 2**53


def test_rounded_counts_stay_below_what_64_bits_hold():
    words = np.random.default_rng(7)
    rounded = response.randomised_rounding(
        np.array([3, 2**62]),
        Fraction(4),
        Scripted(lambda n: words.integers(0, 2**64, n, dtype=np.uint64)),
    )
    assert rounded.tolist() == [12, 2**62]
