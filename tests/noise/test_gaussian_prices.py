"""What Gaussian noise is made for, and what its receipts say: no less than a unit can move."""

import sys
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from workbench import noise
from workbench.data import Bound
from workbench.noise import stability_threshold
from workbench.noise.parts import keys_of_parts
from workbench.privacy import ZCDP


@pytest.mark.parametrize(("a", "b"), [(4, 9), (2, 3), (0, 5), (Fraction(1, 7), 10**30)])
def test_the_norm_of_a_sum_is_that_of_one_direction(a, b):
    longest = (sqrt(a) + sqrt(b)) ** 2
    assert (
        longest * (1 - 1e-12)
        <= noise.l2_of_sum(Fraction(a), Fraction(b))
        < longest * (1 + 1e-12)
    )


def test_rounding_to_a_gaussian_grid_is_paid_for(monkeypatch):
    """Four values move by half a step each, and by a whole one once they are rounded."""
    charged = []

    def gaussian(values, *, l2_squared, **others):
        charged.append((values, l2_squared))
        return values, None

    monkeypatch.setattr(sys.modules["workbench.noise.discrete_gaussian"], "gaussian", gaussian)
    grid = 0.25
    for values in (np.full(4, 0.49), np.full(4, 1.01)):
        moved = Fraction(4 * (0.52 * grid) ** 2)
        noise.gaussian_on_grid(values * grid, l2_squared=moved, rho=1.0, grid=grid)
    (one, paid), (other, _) = charged
    assert ((other - one) ** 2).sum() == 4 <= paid


@pytest.mark.parametrize("bound", [Bound(), Bound(2, 2, 3)])
def test_stable_cells_of_gaussian_noise_hide_all_that_a_unit_moves(bound):
    """The variance is l2²/(2ρ), to 5 % of 40,000 cells (7 σ); and δ is in the receipt."""
    rho = 0.05
    counts = np.full(40_000, 10**6)
    rng = np.random.default_rng(0)
    keys = np.arange(len(counts))
    stable = noise.stability_histogram(keys, counts, bound, rho=rho, delta=1e-6, rng=rng)
    variance = (stable.values - 10**6).var()
    assert abs(variance / (float(bound.l2_squared) / (2 * rho)) - 1) < 0.05
    threshold, spent = stability_threshold(bound, rho=rho, delta=1e-6)
    assert stable.threshold == threshold and stable.receipt.cost == ZCDP(rho, spent)
    assert 0 < spent <= 1e-6


def test_parts_that_are_replayed_have_keys_of_their_own():
    keys = keys_of_parts(bytes(32), 50)
    assert len(set(keys)) == 50 and keys == keys_of_parts(bytes(32), 50)
    assert not set(keys) & set(keys_of_parts(b"1" * 32, 50))
