"""Tree of strings. Each level of the tree fixes one more symbol of a string."""

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
    """Tree of the prefixes (beginnings) of strings. The root of the tree contains all strings. Each level below
    the root fixes one more symbol of a string. The end of a string counts as a symbol.

    The workbench leaves out strings with more than `depth` symbols, and strings with a symbol that is not in
    the alphabet. It never shortens a string or replaces a symbol. Upper and lower case are different symbols.

    Parameters
    ----------
    alphabet : str
        Allowed symbols. The order of these symbols determines the order of strings. Default: a–z, 0–9, full
        stop and space.
    depth : int
        Number of symbols in the longest allowed string. Default 20.
    attribute : str
        Name of the column that contains the strings. Default "string".

    Raises
    ------
    ValueError
        If the alphabet contains a symbol twice, or if there are too many possible strings to number them with
        128 bits.

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
        """Number system in which keys are written. The key of a string is the number of the string among all
        possible strings.

        A key has one digit per symbol of the string: the position of the symbol in the alphabet, counted from
        1. Digits after the end of the string are 0.
        """
        return Digits((len(self.alphabet) + 1,) * self.depth)

    @property
    def branching(self) -> int:
        """Number of symbols in the alphabet. A node (a prefix) has one child per symbol. The child for the
        end of the string is not counted, because a complete string cannot be divided further.
        """
        return len(self.alphabet)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children of each node at `level`. A node is a prefix (the beginning of strings).
        A prefix has one child per symbol of the alphabet, and one child for the end of the string. A complete
        string has no children.
        """
        many = super().children(level, nodes)
        if level:
            many[self.digits.digit(level - 1, nodes) == 0] = 0
        return many

    def encode(self, strings: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each string. The key is the number of the string among all possible strings.
        Strings that are not in the tree have no key and are left out.

        The method also returns an array with one number per string. The number 0 means that the string has a
        key. The number 1 means that the string is too long, and 2 that the string contains a symbol that is not
        in the alphabet. The strings may be any sequence of text, for example a list or a pandas Series.
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
        """Return the keys (numbers) of the given nodes. Other hierarchies draw a random value in each node. A
        tree of prefixes draws nothing, because the prefix of a node is itself a string, and therefore a value.
        """
        return nodes

    def texts(self, nodes: Keys) -> list[str]:
        """Return the text of each node, which is a prefix or a complete string."""
        out = np.zeros((nodes.shape[1], self.depth), np.uint32)
        symbols = np.array([0, *map(ord, self.alphabet)], np.uint32)
        for level in range(self.depth):
            out[:, level] = symbols[self.digits.digit(level, nodes).astype(np.int64)]
        return out.view(f"U{self.depth}").ravel().tolist()

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return a data frame with one row per node. One column contains the text. The column `complete` is
        True if the text is a complete string, and False if the text is only a prefix of strings.
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
