"""What several measurements cost together, and whether a budget pays for it."""

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from workbench.privacy import DP, REPLACE, Receipt, compose
from workbench.privacy.enclosures import round_up

A, B = DP(0.5, 1e-6), DP(0.25, 1e-5)


def test_measurements_one_after_another_add_up():
    total = compose([Receipt("a", A), Receipt("b", B)])
    assert total.epsilon == 0.75 and total.delta == pytest.approx(1.1e-5)
    assert compose([]) == DP(0)
    assert compose([Receipt("a", A), Receipt("free", DP(inf))]).epsilon == inf


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


@pytest.mark.parametrize(
    "epsilon, delta", [(nan, 0), (-1, 0), (1, nan), (1, -0.1), (1, 2), ("1", 0), (True, 0)]
)
def test_a_guarantee_is_numbers(epsilon, delta):
    with pytest.raises(ValueError, match="DP"):
        DP(epsilon, delta)


def test_a_budget_covers_no_more_than_itself():
    tenths = compose([Receipt("s", DP(0.1))] * 10)  # the float 0.1 is more than a tenth
    assert tenths.epsilon > 1 and str(tenths) == "1-DP" and not DP(1.0).covers(tenths)
    assert DP(1.0).covers(compose([Receipt("s", DP(0.125))] * 8))
    assert not DP(1.0).covers(DP(1.0, 1e-9))


def test_a_guarantee_is_never_rounded():
    assert (
        str(DP(1.0000004)) == "1.0000004-DP"
        and str(DP(0.5)) == "0.5-DP"
        and str(DP(1.0)) == "1-DP"
    )
