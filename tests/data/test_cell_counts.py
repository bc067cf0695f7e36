"""Counting by sorting is counting: every way of it against a dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import Bound, Domain, SparseTable
from workbench.data.cells import LARGEST_TOTAL

BOUND = Bound()


def counted(rows):
    """Cells and counts, as a dictionary counts them."""
    total = Counter()
    for key, count in rows:
        total[key] += count
    cells = sorted(key for key, count in total.items() if count)
    return cells, [total[key] for key in cells]


def as_lists(table):
    return table.keys.tolist(), table.counts.tolist()


@pytest.mark.parametrize("size", [7, 2**40, 2**62, 2**63 - 1])
@given(st.data())
def test_rows_are_counted_as_a_dictionary_counts_them(size, data):
    few = st.integers(0, min(size, 5) - 1) | st.integers(max(0, size - 3), size - 1)
    counts = st.integers(0, 3) | st.integers(0, 2**30) | st.just(2**49)
    rows = data.draw(st.lists(st.tuples(few, counts), max_size=12))
    keys = np.array([key for key, _ in rows], np.int64)
    domain = Domain(("x",), (size,))
    table = SparseTable.from_keys(domain, keys, [count for _, count in rows], BOUND)
    assert as_lists(table) == counted(rows)
    once = SparseTable.from_keys(domain, keys, None, BOUND)
    assert as_lists(once) == counted((key, 1) for key, _ in rows)
    assert keys.tolist() == [key for key, _ in rows], "the caller's keys stay as they are"


def test_counts_whose_sum_is_not_exact_are_refused():
    domain = Domain(("x",), (9,))
    with pytest.raises(ValueError, match="sum to at most"):
        SparseTable.from_keys(domain, [1] * 1025, [2**53] * 1025, BOUND)  # wraps in 64 bits
    whole = SparseTable.from_keys(domain, [1, 1], [LARGEST_TOTAL - 1, 1], BOUND)
    assert whole.counts.tolist() == [LARGEST_TOTAL]
    for count in (2**53 + 1, 2**63, 2**64, 1e300, -1, 0.5, float("nan")):
        with pytest.raises(ValueError, match="count"):
            SparseTable.from_keys(domain, [1, 2], [1, count], BOUND)
