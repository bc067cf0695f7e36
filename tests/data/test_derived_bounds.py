"""Bounds of tables that are made of others, against all that one unit can do."""

from itertools import product

import numpy as np
import pytest

from workbench import Bound, Domain, SparseTable

DOMAIN = Domain(("row", "column"), (3, 2))
OTHERS = np.array([4, 0, 1, 2, 2, 0])


def units(bound):
    """All that one unit can add to the cells."""
    for added in product(range(int(bound.linf) + 1), repeat=DOMAIN.size):
        if np.count_nonzero(added) <= bound.l0 and sum(added) <= bound.l1:
            yield np.array(added)


def table(counts, bound):
    return SparseTable.from_dense(DOMAIN, counts.reshape(DOMAIN.shape), bound)


@pytest.mark.parametrize("bound", [Bound(2, 1), Bound(1, 3), Bound(2, 2, 3)], ids=repr)
@pytest.mark.parametrize(
    "derived",
    [lambda t: t.project(("row",)), lambda t: t.ranked()],
    ids=["marginal", "ranks"],
)
def test_one_unit_moves_what_is_derived_by_its_bound_at_most(bound, derived):
    before = derived(table(OTHERS, bound))
    moves = np.array(
        [derived(table(OTHERS + u, bound)).dense() - before.dense() for u in units(bound)]
    ).reshape(-1, before.domain.size)
    assert np.count_nonzero(moves, axis=1).max() <= before.bound.l0
    assert np.abs(moves).max() <= before.bound.linf
    assert np.abs(moves).sum(axis=1).max() <= before.bound.l1


@pytest.mark.parametrize(
    "numbers", [(1, 0.001), (3, 0.5), (1, 1 - 2**-53), (2, 1, 0.5), (4, 0)]
)
def test_a_bound_below_one_count_is_refused(numbers):
    """Counts are integers: noise for less than one count would publish them exactly."""
    with pytest.raises(ValueError, match="a unit moves a count by 1 or not at all"):
        Bound(*numbers)


def test_a_fraction_above_one_count_is_a_bound():
    assert Bound(2, 1.5).l1 == 3
