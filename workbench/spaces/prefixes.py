"""Strings, refined symbol by symbol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from workbench.compiled import njit, pd, pl
from workbench.spaces.hierarchies import Digits, Hierarchy, Keys
from workbench.value import Int, UInt8, parameter, value

_FOREIGN = 2**16 - 1


SYMBOLS = "abcdefghijklmnopqrstuvwxyz0123456789. "  # of adaptive2009


@value
class Prefixes(Hierarchy):
    """Tree of the prefixes of strings with at most `depth` symbols. Each level fixes one more symbol, and the
    end of a string counts as a symbol.

    A string that is longer, or that has a symbol outside the alphabet, is left out. No string is shortened,
    and no symbol is replaced. Upper and lower case differ.

    Parameters
    ----------
    alphabet : str
        The symbols, in the order of keys. By default a–z, 0–9, full stop and space.
    depth : int
        Length of the longest string, in symbols.
    attribute : str
        Name of the column.

    Raises
    ------
    ValueError
        If a symbol is listed twice, or keys would need more than two words of 64 bits.

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
    )
    depth: int = parameter(20, 1, integer=True)
    attribute: str = "string"

    @cached_property
    def digits(self) -> Digits:
        """Digits of a key: the place of each symbol in the alphabet, counted from 1. A digit is 0 after the
        end of the string.
        """
        return Digits((len(self.alphabet) + 1,) * self.depth)

    @property
    def branching(self) -> int:
        """Largest number of children of a node that can be split further. A string that has ended cannot be
        split.
        """
        return len(self.alphabet)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children: one per symbol, and one for the end of the string. A string that
        has ended has none.
        """
        many = super().children(level, nodes)
        if level:
            many[self.digits.digit(level - 1, nodes) == 0] = 0
        return many

    def encode(self, strings: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the keys (the numbers in the tree) of the strings that fit. They may come from numpy, pandas,
        polars, Arrow, or any sequence of text.
        """
        try:
            texts = pl.Series(values=strings, dtype=pl.String)
        except (TypeError, pl.exceptions.PolarsError):
            raise ValueError("strings must be text: need a sequence of strings") from None
        if texts.has_nulls():
            raise ValueError("some strings are missing. Leave them out first.")
        array = texts.to_arrow()
        _, offsets, data = array.buffers()
        starts = np.frombuffer(offsets, np.int64)[array.offset :][: len(array) + 1]
        codes = np.frombuffer(data or b"", np.uint8)
        if not self.alphabet.isascii():
            text = codes[starts[0] : starts[-1]].tobytes().decode()
            codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
            starts = np.append(0, texts.str.len_chars().cum_sum().cast(pl.Int64))
        table = np.full(max(map(ord, self.alphabet)) + 2, _FOREIGN, np.uint16)
        for i, symbol in enumerate(self.alphabet):
            table[ord(symbol)] = i + 1
        keys = np.empty((self.digits.word_count, len(array)), np.uint64)
        why = np.zeros(len(array), np.uint8)
        radix = len(self.alphabet) + 1
        split = self.digits.first_word_levels
        fit = _packed(codes, starts, table, radix, self.depth, split, keys, why)
        return keys[:, :fit], why

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """Return the nodes themselves, because the beginning of a string is a string."""
        return nodes

    def texts(self, nodes: Keys) -> list[str]:
        """Return the string, or the prefix, of each node."""
        out = np.zeros((nodes.shape[1], self.depth), np.uint32)
        symbols = np.array([0, *map(ord, self.alphabet)], np.uint32)
        for level in range(self.depth):
            out[:, level] = symbols[self.digits.digit(level, nodes).astype(np.int64)]
        return out.view(f"U{self.depth}").ravel().tolist()

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return the strings. The column `complete` says whether a string is complete, or only the
        beginning of others.
        """
        texts = self.texts(nodes)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        complete = (lengths < levels) | (levels == self.depth)
        return pd.DataFrame({self.attribute: texts, "complete": complete})


@njit(cache=True, nogil=True)
def _packed(codes, starts, table, radix, depth, split, keys, why):
    inside = 0
    for i in range(why.size):
        start = starts[i]
        end = starts[i + 1]
        first, strange = _word(codes[start:end], 0, split, table, radix)
        second, late = _word(codes[start:end], split, depth, table, radix)
        beyond = _word(codes[start:end], depth, end - start, table, radix)[1]
        why[i] = 2 if (strange | late | beyond) >> 15 else end - start > depth
        if not why[i]:
            keys[0, inside] = first
            keys[-1, inside] = second if split < depth else first
            inside += 1
    return inside


@njit(cache=True, inline="always")
def _word(codes, begin, stop, table, radix):
    word = np.uint64(0)
    strange = np.uint16(0)
    for level in range(begin, stop):
        digit = np.uint16(0)
        if level < codes.size:
            digit = table[min(codes[level], table.size - 1)]
        strange |= digit
        word = word * np.uint64(radix) + np.uint64(digit)
    return word, strange
