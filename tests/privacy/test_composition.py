"""What several measurements cost together, and whether a budget pays for it."""

import pytest

from workbench.privacy import DP, REPLACE, Receipt, compose

A, B = DP(0.5, 1e-6), DP(0.25, 1e-5)


def test_measurements_one_after_another_add_up():
    total = compose([Receipt("a", A), Receipt("b", B)])
    assert total.epsilon == 0.75 and total.delta == pytest.approx(1.1e-5)


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
