"""Strings, refined symbol by symbol."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int, UInt8

from workbench.compiled import njit
from workbench.value import parameter, value

if TYPE_CHECKING:
    import pandas as pd

from workbench.hierarchy.digits import Digits, Keys, positive, refuse_names

_FOREIGN = 2**16 - 1


SYMBOLS = "abcdefghijklmnopqrstuvwxyz0123456789. "  # of adaptive2009


@value
class Prefixes:
    """Strings of at most `depth` symbols, refined one by one; that a string ends is a symbol too.

    A string that is longer, or has a symbol that is not in the alphabet, is not in the space: upper and
    lower case differ, and nothing is cut or replaced.

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
    depth: int = parameter(20, check=positive, doc="longest string")
    attribute: str = "string"

    def __post_init__(self):
        refuse_names(self)
        _ = self.digits

    @property
    def attributes(self) -> tuple[str, ...]:
        """The one column."""
        return (self.attribute,)

    @cached_property
    def digits(self) -> Digits:
        """0 where the string has ended, else the symbol's place from 1."""
        return Digits((len(self.alphabet) + 1,) * self.depth)

    @property
    def size(self) -> int:
        """How many keys there are; most are of no string, since nothing follows an end."""
        return self.digits.size

    @property
    def branching(self) -> int:
        """How many children a node may have that can be split further: ended strings cannot."""
        return len(self.alphabet)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """One a symbol and one for the end; none after an end."""
        many = np.full(nodes.shape[1], len(self.alphabet) + 1 if level < self.depth else 0)
        if level:
            many[self.digits.digit(level - 1, nodes) == 0] = 0
        return many

    def encode(self, strings: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of the strings that fit; numpy, pandas, polars, Arrow, or any sequence of text."""
        ascii = self.alphabet.isascii()
        codes, width, starts = _symbols(strings, None if ascii else self.depth + 1)
        if codes.dtype == np.uint8 and not self.alphabet.isascii():
            raise ValueError("bytes can only be read where the alphabet is ASCII: decode them")
        table = np.full(max(map(ord, self.alphabet)) + 2, _FOREIGN, np.uint16)
        for i, symbol in enumerate(self.alphabet):
            table[ord(symbol)] = i + 1
        n = len(starts) - 1 if width is None else len(codes) // max(1, width)
        keys, why = np.empty((self.digits.word_count, n), np.uint64), np.zeros(n, np.uint8)
        radix, split = len(self.alphabet) + 1, self.digits.first_word_levels
        kept = _packed(codes, width or 0, starts, table, radix, self.depth, split, keys, why)
        return keys[:, :kept], why

    def contains(self, keys: Keys) -> bool:
        """Whether no key is above the highest; what follows an end is not looked at."""
        return self.digits.contains(keys)

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
        import pandas as pd

        texts = self.texts(nodes)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        complete = (lengths < levels) | (levels == self.depth)
        return pd.DataFrame({self.attribute: texts, "complete": complete})


def _symbols(strings: Any, most: int | None) -> tuple[np.ndarray, int | None, np.ndarray]:
    """Bytes of all strings in a row, or code points of the first `most` symbols of each.

    And how many each has, or where each starts.
    """
    none = np.empty(0, np.int64)
    if isinstance(strings, np.ndarray) and strings.dtype.kind in "SU":
        if strings.ndim != 1:
            raise ValueError(f"strings of shape {strings.shape} do not fit: need one dimension")
        one = np.ascontiguousarray(strings)
        codes = one.view(np.uint8 if one.dtype.kind == "S" else np.uint32)
        return codes, len(codes) // max(1, len(one)), none  # padded with 0, no symbol
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if not isinstance(strings, pa.Array | pa.ChunkedArray):
            to = getattr(strings, "to_arrow", None)
            strings = to() if to else pa.array(strings, pa.large_string())
        if isinstance(strings, pa.ChunkedArray):
            strings = strings.combine_chunks()
        strings = strings.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise ValueError("strings must be text: need a sequence of strings") from None
    if strings.null_count:
        raise ValueError("strings are missing: leave them out before")
    if most is not None:  # NUL would be taken for padding
        strings = pc.utf8_slice_codeunits(strings, 0, most)
        strings = pc.replace_substring(strings, "\0", chr(0x10FFFF))
        return _symbols(np.array(strings.to_pylist() or [""])[: len(strings)], most)
    _, offsets, data = strings.buffers()
    starts = np.frombuffer(offsets, np.int64)[
        strings.offset : strings.offset + len(strings) + 1
    ]
    return np.frombuffer(data or b"", np.uint8), None, starts


@njit(cache=True, nogil=True)
def _packed(codes, width, starts, table, radix, depth, split, keys, why):
    kept, base, past = 0, np.uint64(radix), table.size - 1
    table[0] = 0 if starts.size == 0 else table[0]  # padding
    for i in range(why.size):
        start, end = i * width, (i + 1) * width
        if starts.size:
            start, end = starts[i], starts[i + 1]
        first, second = np.uint64(0), np.uint64(0)
        strange, ended, gap, used = np.uint16(0), False, False, min(end, start + depth)
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
        keys[0, kept] = first
        if keys.shape[0] == 2:
            for _ in range(depth - max(split, used - start)):
                second *= base
            keys[1, kept] = second
        kept += 1
    return kept
