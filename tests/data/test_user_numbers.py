"""Users are numbered exactly, also where the hashes that they are looked up by collide."""

from unicodedata import normalize

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.data import UserNumbers, users


def named_alike(text):
    """Text that is read as it is."""
    return normalize("NFC", f"!{text}!")


NAMES = st.lists(st.text(max_size=3).map(named_alike) | st.just("é" * 300), max_size=12)


@pytest.mark.parametrize("different_hashes", [2**64 - 1, 1000, 5, 1])
@given(batches=st.lists(NAMES, max_size=5))
@settings(max_examples=40, deadline=None)
def test_one_number_a_name_whatever_the_hashes(different_hashes, batches):
    real = users._hashes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(users, "_hashes", lambda *x: real(*x) % different_hashes)
        column = UserNumbers("who")
        numbers = {}
        for names in batches:
            given_numbers = column.numbers(pa.array(names, pa.string())).tolist()
            for name, number in zip(names, given_numbers, strict=True):
                assert numbers.setdefault(name, number) == number
        assert sorted(numbers.values()) == list(range(len(numbers)))
        assert column.ids() is None or len(column.ids()) == len(numbers)


def test_numbers_of_the_same_64_bits_are_never_one_user():
    column = UserNumbers("who")
    assert column.numbers(pa.array([2**64 - 1, 5], pa.uint64())).tolist() == [-1, 5]
    column.numbers(pa.array([5, 7], pa.int64()))
    with pytest.raises(ValueError, match="'who': some users are below 0, others 2⁶³ or more"):
        column.numbers(pa.array([3, -1], pa.int64()))
