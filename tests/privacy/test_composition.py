"""What several measurements cost together, and whether a budget pays for it."""

from fractions import Fraction

import numpy as np
import pytest

from workbench.privacy import DP, REPLACE, Receipt, compose
from workbench.privacy.enclosures import round_up

A, B = DP(0.5, 1e-6), DP(0.25, 1e-5)


def test_measurements_one_after_another_add_up():
    total = compose([Receipt("a", A), Receipt("b", B)])
    assert total.epsilon == 0.75 and total.delta == pytest.approx(1.1e-5)


def test_sums_are_the_smallest_floats_that_are_not_below_the_exact_sums():
    assert compose([Receipt("a", DP(0.1)), Receipt("b", DP(0.7))]) == DP(0.8)
    rng = np.random.default_rng(1)
    for _ in range(200):
        costs = [DP(*pair) for pair in rng.random((int(rng.integers(2, 9)), 2)) / 10]
        epsilon, delta = (
            round_up(sum(Fraction(getattr(cost, name)) for cost in costs))
            for name in ("epsilon", "delta")
        )
        assert compose([Receipt("a", cost) for cost in costs]) == DP(epsilon, delta)
        one, other = costs[:2]
        assert (one + other).epsilon >= Fraction(one.epsilon) + Fraction(other.epsilon)
        assert (one + other).delta >= Fraction(one.delta) + Fraction(other.delta)


def test_parts_of_one_partition_cost_as_the_dearest_and_partitions_add_up():
    parts = [
        Receipt("a", A, part=("regions", "north")),
        Receipt("b", B, part=("regions", "south")),
    ]
    assert compose(parts) == DP(0.5, 1e-5)
    assert compose([*parts, Receipt("c", A, part=("ages", "old"))]).epsilon == 1.0


def test_a_unit_that_is_replaced_may_be_in_two_parts():
    parts = [
        Receipt("a", A, REPLACE, part=("regions", "north")),
        Receipt("b", B, REPLACE, part=("regions", "south")),
    ]
    assert compose(parts).epsilon == 0.75


def test_a_budget_pays_for_both_of_its_numbers():
    assert DP(1.0, 1e-5).covers(A)
    assert not DP(1.0, 1e-7).covers(A) and not DP(0.4, 1e-5).covers(A)
