"""Columns of text that hold whole numbers alone, as numbers: many times faster than a cast of each text."""

from __future__ import annotations

import numpy as np

from workbench.compiled import njit
from workbench.libraries import pa

_WORTH_IT = 2**15  # texts, for which a compiled loop is loaded
_MOST_DIGITS = 18  # of a number that surely fits 64 bits


def as_numbers(texts: pa.Array) -> pa.Array:
    """The whole numbers that all texts are; else, and where they are few, the same column.

    A number is written as 0 or -?[1-9][0-9]*, in at most 18 digits, so that numbers and texts are one to
    one: whether a rule is given these or those, it says the same. Missing texts are missing numbers.
    """
    is_long = pa.types.is_large_string(texts.type)
    if len(texts) < _WORTH_IT or not (is_long or pa.types.is_string(texts.type)):
        return texts
    _, offset_bytes, content = texts.buffers()
    offsets = np.frombuffer(offset_bytes, np.int64 if is_long else np.int32)
    offsets = offsets[texts.offset : texts.offset + len(texts) + 1]
    is_missing = np.zeros(0, bool)
    if texts.null_count:
        is_missing = texts.is_null().to_numpy(zero_copy_only=False)
    numbers = np.empty(len(texts), np.int64)
    if not _parse(offsets, np.frombuffer(content or b"", np.uint8), is_missing, numbers):
        return texts
    return pa.array(numbers, mask=is_missing if texts.null_count else None)


@njit(cache=True, nogil=True)
def _parse(offsets, content, is_missing, numbers):
    """Whether each text is a number in its only form, and which."""
    for row in range(numbers.size):
        first = offsets[row]
        end = offsets[row + 1]
        if is_missing.size and is_missing[row]:
            numbers[row] = 0
            continue
        is_negative = first < end and content[first] == ord("-")
        if is_negative:
            first += 1
        n_digits = end - first
        if not 1 <= n_digits <= _MOST_DIGITS:
            return False
        if content[first] == ord("0") and (n_digits > 1 or is_negative):
            return False
        number = np.int64(0)
        for place in range(first, end):
            digit = np.int64(content[place]) - ord("0")
            if not 0 <= digit <= 9:
                return False
            number = 10 * number + digit
        numbers[row] = -number if is_negative else number
    return True
