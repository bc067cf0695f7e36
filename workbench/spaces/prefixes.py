"""Strings, refined symbol by symbol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import njit, pa, pc, pd
from workbench.spaces.hierarchies import Digits, Hierarchy, Keys
from workbench.value import Int, UInt8, parameter, value

_FOREIGN = 2**16 - 1


SYMBOLS = "abcdefghijklmnopqrstuvwxyz0123456789. "  # of adaptive2009


@value
class Prefixes(Hierarchy):
    """Strings of at most `depth` symbols, refined symbol by symbol. The end of a string is a symbol too.

    A string that is longer, or has a symbol that is not in the alphabet, is not in the space: upper and
    lower case differ, and nothing is cut or replaced.

    Parameters
    ----------
    alphabet : str
        The symbols, in the order of keys; by default a–z, 0–9, full stop and space.
    depth : int
        The longest string, in symbols.
    attribute : str
        The name of the column.

    Raises
    ------
    ValueError
        If a symbol stands twice, or keys would need more than two words of 64 bits.

    Examples
    --------
    >>> tree = Prefixes("ab", 3)
    >>> keys, why = tree.encode(["ab", "b", "abba", "x"])
    >>> tree.texts(keys), why
    (['ab', 'b'], array([0, 0, 1, 2], dtype=uint8))
    """

    reasons: ClassVar[tuple[str, ...]] = "too long", "foreign symbol"

    alphabet: str = parameter(
        SYMBOLS,
        check=lambda x: (
            None
            if isinstance(x, str) and 0 < len(x) == len(set(x)) < 2**15 and "\0" not in x
            else "need a text of different symbols, fewer than 32768, none of them NUL"
        ),
        doc="the symbols, in the order of keys",
    )
    depth: int = parameter(20, 1, integer=True, doc="largest length of a string")
    attribute: str = "string"

    @cached_property
    def digits(self) -> Digits:
        """0 where the string has ended, else the symbol's place from 1."""
        return Digits((len(self.alphabet) + 1,) * self.depth)

    @property
    def branching(self) -> int:
        """Largest number of children of a node that can be split further. Ended strings cannot."""
        return len(self.alphabet)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return one child per symbol and one for the end, or none after an end."""
        many = super().children(level, nodes)
        if level:
            many[self.digits.digit(level - 1, nodes) == 0] = 0
        return many

    def encode(self, strings: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the keys of strings that fit, from numpy, pandas, polars, Arrow or any sequence of text."""
        ascii = self.alphabet.isascii()
        codes, width, starts = _symbols(strings, None if ascii else self.depth + 1)
        if codes.dtype == np.uint8 and not ascii:
            raise ValueError("bytes can only be read where the alphabet is ASCII: decode them")
        table = np.full(max(map(ord, self.alphabet)) + 2, _FOREIGN, np.uint16)
        for i, symbol in enumerate(self.alphabet):
            table[ord(symbol)] = i + 1
        n = len(starts) - 1 if width is None else len(codes) // max(1, width)
        keys = np.empty((self.digits.word_count, n), np.uint64)
        why = np.zeros(n, np.uint8)
        radix = len(self.alphabet) + 1
        split = self.digits.first_word_levels
        fit = _packed(codes, width or 0, starts, table, radix, self.depth, split, keys, why)
        return keys[:, :fit], why

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """The nodes as they stand: the beginning of a string is a string."""
        return nodes

    def texts(self, nodes: Keys) -> list[str]:
        """The strings, or prefixes, of nodes."""
        out = np.zeros((nodes.shape[1], self.depth), np.uint32)
        symbols = np.array([0, *map(ord, self.alphabet)], np.uint32)
        for level in range(self.depth):
            out[:, level] = symbols[self.digits.digit(level, nodes).astype(np.int64)]
        return out.view(f"U{self.depth}").ravel().tolist()

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The strings, and whether they are `complete` or the beginnings of others."""
        texts = self.texts(nodes)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        complete = (lengths < levels) | (levels == self.depth)
        return pd.DataFrame({self.attribute: texts, "complete": complete})


class _Symbols(NamedTuple):
    """Bytes or code points of all strings in a row."""

    codes: np.ndarray
    width: int | None  # of each string, padded with 0; None where they differ
    starts: np.ndarray  # of each string, and the end of the last, where they differ


def _symbols(strings: Any, max_length: int | None) -> _Symbols:
    """Bytes of all strings, or code points of the first `max_length` symbols of each."""
    if isinstance(strings, np.ndarray) and strings.dtype.kind in "SU":
        if strings.ndim != 1:
            raise ValueError(f"strings of shape {strings.shape} do not fit: need one dimension")
        padded = np.ascontiguousarray(strings)
        codes = padded.view(np.uint8 if padded.dtype.kind == "S" else np.uint32)
        return _Symbols(codes, len(codes) // max(1, len(padded)), np.empty(0, np.int64))
    array = _arrow_strings(strings)
    if max_length is None:
        _, offsets, data = array.buffers()
        starts = np.frombuffer(offsets, np.int64)
        starts = starts[array.offset : array.offset + len(array) + 1]
        return _Symbols(np.frombuffer(data or b"", np.uint8), None, starts)
    array = pc.utf8_slice_codeunits(array, 0, max_length)
    array = pc.replace_substring(array, "\0", chr(0x10FFFF))  # NUL would be taken for padding
    return _symbols(np.array(array.to_pylist() or [""])[: len(array)], max_length)


def _arrow_strings(strings: Any) -> pa.Array:
    """Text of any kind as one Arrow array without missing values."""
    try:
        if not isinstance(strings, pa.Array | pa.ChunkedArray):
            to_arrow = getattr(strings, "to_arrow", None)
            strings = to_arrow() if to_arrow else pa.array(strings, pa.large_string())
        if isinstance(strings, pa.ChunkedArray):
            strings = strings.combine_chunks()
        strings = strings.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise ValueError("strings must be text: need a sequence of strings") from None
    if strings.null_count:
        raise ValueError("strings are missing: leave them out before")
    return strings


@njit(cache=True, nogil=True)
def _packed(codes, width, starts, table, radix, depth, split, keys, why):
    inside = 0
    base = np.uint64(radix)
    past = table.size - 1
    table[0] = 0 if starts.size == 0 else table[0]  # padding
    for i in range(why.size):
        start = i * width
        end = (i + 1) * width
        if starts.size:
            start = starts[i]
            end = starts[i + 1]
        first = np.uint64(0)
        second = np.uint64(0)
        strange = np.uint16(0)
        ended = False
        gap = False
        used = min(end, start + depth)
        for at in range(start, min(used, start + split)):
            digit = table[min(codes[at], past)]
            strange |= digit
            gap |= ended & (digit > 0)
            ended |= digit == 0
            first = first * base + np.uint64(digit)
        for at in range(start + split, used):
            digit = table[min(codes[at], past)]
            strange |= digit
            gap |= ended & (digit > 0)
            ended |= digit == 0
            second = second * base + np.uint64(digit)
        long = False
        for at in range(used, end):
            digit = table[min(codes[at], past)]
            strange |= digit
            long |= digit > 0
        if strange >> 15 or gap or long:
            why[i] = 2 if strange >> 15 or (gap or (long and ended)) else 1
            continue
        for _ in range(split - (used - start)):
            first *= base
        keys[0, inside] = first
        if keys.shape[0] == 2:
            for _ in range(depth - max(split, used - start)):
                second *= base
            keys[1, inside] = second
        inside += 1
    return inside
