"""Tables of counts: their bound, what they accept, and what they derive."""

import copy
import pickle
from collections import Counter
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import DP, PUBLIC, Bound, Domain, SparseTable
from workbench.data.cells import LARGEST_TOTAL
from workbench.mechanisms import HighPassFilter


@pytest.mark.parametrize(
    "l0, linf, l1",
    [
        (0, 1, None),
        (1.5, 1, None),
        (1, 0, None),
        (1, nan, None),
        (1, inf, None),
        (2, 1, 3),
        (2, 2, 1),
        (inf, 1, None),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(l0, linf, l1):
    with pytest.raises(ValueError, match="Bound"):
        Bound(l0, linf, l1)


def test_bounds_take_numpys_numbers():
    assert Bound(np.int64(3)) == Bound(3) and type(Bound(np.int64(3)).l1) is int


def test_a_table_says_its_bound_or_public():
    with pytest.raises(TypeError):
        SparseTable(Domain(("x",), (3,)), np.array([1]), np.array([1]))
    for wrong in (None, 1, "PUBLIC"):
        with pytest.raises(ValueError, match="bound"):
            SparseTable(Domain(("x",), (3,)), np.array([1]), np.array([1]), wrong)


@pytest.mark.parametrize(
    "keys, counts, word",
    [
        ([3], [1], "keys"),
        ([-1], [1], "keys"),
        ([0.5], [1], "keys"),
        ([0], ["x"], "integers"),
        ([0, 1], [1], "fit"),
        ([0], [inf], "inf"),
    ],
)
def test_counts_and_keys_that_make_no_sense_are_refused(keys, counts, word):
    with pytest.raises(ValueError, match=word):
        SparseTable.from_keys(Domain(("x",), (3,)), keys, counts, Bound())


def test_the_strict_constructor_takes_sorted_distinct_nonempty_cells():
    for keys, counts in (([1, 0], [1, 1]), ([1, 1], [1, 1]), ([0], [0])):
        with pytest.raises(ValueError, match="SparseTable"):
            SparseTable(Domain(("x",), (3,)), np.array(keys), np.array(counts), Bound())


def test_one_table_from_four_sources():
    domain = Domain(("a", "b"), (3, 4), (("x", "y", "z"), range(10, 14)))
    frame = pd.DataFrame(
        {"b": [13, 10, 13, 11], "a": ["z", "x", "z", "y"], "k": [1.0, 2, 4, 0]}
    )
    table = SparseTable.from_frame(frame, domain, Bound(), count="k")
    assert table.keys.tolist() == [0, 11] and table.counts.tolist() == [2, 5]
    again = SparseTable.from_dense(domain, table.dense(), Bound())
    third = SparseTable.from_keys(domain, [11, 0, 11], [1, 2, 4], Bound())
    back = SparseTable.from_frame(table.to_frame(), domain, Bound(), count="count")
    for other in (again, third, back):
        assert (other.keys == table.keys).all() and (other.counts == table.counts).all()
    assert SparseTable.from_frame(frame, domain, Bound()).total == 4  # each row counts one


def test_a_marginal_keeps_what_a_unit_can_move():
    domain = Domain(("a", "b"), (3, 4))
    table = SparseTable.from_keys(domain, [0, 1, 4, 11], [1, 2, 4, 8], Bound(2, 3))
    marginal = table.project(["a"])
    assert marginal.counts.tolist() == [3, 4, 8] and marginal.bound.l1 == 6
    assert (marginal.bound.l0, marginal.bound.linf) == (2, 6)
    assert table.project(["b", "a"]).dense().tolist() == table.dense().T.tolist()
    assert SparseTable.from_keys(domain, [0], [1], PUBLIC).project(["a"]).bound is PUBLIC


def test_a_table_and_a_release_cannot_be_changed_under_their_answers():
    table = SparseTable.from_keys(Domain(("x",), (9,)), [1, 5], [2, 3], Bound())
    summary = HighPassFilter(DP(9.0), 1)(table).estimate
    for array in (table.keys, table.counts, summary.keys, summary.values, summary.weights()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_public_stays_public_in_other_processes():
    assert pickle.loads(pickle.dumps(PUBLIC)) is PUBLIC and copy.deepcopy(PUBLIC) is PUBLIC


def test_tables_do_not_follow_the_arrays_they_were_made_of():
    keys, counts = np.array([1, 5]), np.array([2, 3])
    table = SparseTable(Domain(("x",), (9,)), keys, counts, Bound())
    keys[0], counts[0] = 7, 1000
    assert table.keys.tolist() == [1, 5] and table.counts.tolist() == [2, 3]


# Counting by sorting is counting: every way of it against a dictionary


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
    table = SparseTable.from_keys(domain, keys, [count for _, count in rows], Bound())
    assert as_lists(table) == counted(rows)
    once = SparseTable.from_keys(domain, keys, None, Bound())
    assert as_lists(once) == counted((key, 1) for key, _ in rows)
    assert keys.tolist() == [key for key, _ in rows], "the caller's keys stay as they are"


def test_counts_whose_sum_is_not_exact_are_refused():
    domain = Domain(("x",), (9,))
    with pytest.raises(ValueError, match="sum to at most"):
        SparseTable.from_keys(domain, [1] * 1025, [2**53] * 1025, Bound())  # wraps in 64 bits
    whole = SparseTable.from_keys(domain, [1, 1], [LARGEST_TOTAL - 1, 1], Bound())
    assert whole.counts.tolist() == [LARGEST_TOTAL]
    for count in (2**53 + 1, 2**63, 2**64, 1e300, -1, 0.5, float("nan")):
        with pytest.raises(ValueError, match="count"):
            SparseTable.from_keys(domain, [1, 2], [1, count], Bound())
