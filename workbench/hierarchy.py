"""How a space splits: points, strings and code lists, refined one digit a level; public knowledge.

A hierarchy gives every value a *key*, its digits from the coarsest to the finest, in a mixed radix: of
one 64-bit word, or of two where they are too many. A *node* at level ℓ is a prefix of ℓ digits, told by
its lowest key; it holds a run of consecutive keys, so that of sorted records it holds a slice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt64

from workbench.compiled import njit
from workbench.domain import Domain
from workbench.value import parameter, value

if TYPE_CHECKING:
    import pandas as pd

Keys = UInt64[np.ndarray, "words n"]

_WORD = 2**64
_FOREIGN = 2**16 - 1
_LEAST = 1e-200  # side of a box
_BITS = 12  # of a coordinate that are spread at a time


class Hierarchy(Protocol):
    """A finite tree over a space: a `Quadtree`, `Prefixes`, or a `Taxonomy`."""

    digits: Digits
    attributes: tuple[str, ...]

    reasons: tuple[str, ...]  # why a value may not be in the space

    def encode(self, values: Any) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of those values that lie in the space; for each value 0, or 1 + its reason."""

    def holds(self, keys: Keys) -> bool:
        """Whether these are keys of the hierarchy."""

    def below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A value below each node, any with the same chance; beginnings of strings are values."""

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """How many children each node of a level has: 0 where it cannot be split."""

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """One row a node, in words."""


@value
class Digits:
    """A mixed radix: how many values the digit of each level has, coarsest first.

    >>> Digits((39,) * 20).split, Digits((16,) * 12).size == 2**48
    (12, True)
    """

    radices: tuple[int, ...]

    def __post_init__(self):
        if not self.radices:
            raise ValueError(
                "a hierarchy of depth 0 cannot be refined: need at least one level"
            )
        if prod(self.radices[self.split :]) > _WORD:
            raise ValueError(
                f"a hierarchy of {self.depth} levels and {self.size:.3g} keys is too deep: its keys "
                "need more than two words of 64 bits"
            )

    @property
    def depth(self) -> int:
        """The number of levels below the root."""
        return len(self.radices)

    @property
    def size(self) -> int:
        """How many keys there are."""
        return prod(self.radices)

    @cached_property
    def split(self) -> int:
        """How many levels the first word holds."""
        levels = range(1, self.depth + 1)
        return max(n for n in levels if prod(self.radices[:n]) <= _WORD or n == 1)

    @property
    def words(self) -> int:
        """1 or 2."""
        return 1 + (self.split < self.depth)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """By how much the word of a level grows when its digit does, level by level."""
        ends = (self.split if i < self.split else self.depth for i in range(self.depth))
        return tuple(prod(self.radices[i + 1 : end]) for i, end in enumerate(ends))

    def word(self, level: int) -> int:
        """Which word holds the digit that a node at `level` is split by."""
        return int(level >= self.split)

    def root(self) -> Keys:
        """The node that holds everything."""
        return np.zeros((self.words, 1), np.uint64)

    def child(self, level: int, nodes: Keys, digits: Int[np.ndarray, " n"]) -> Keys:
        """The children with these digits."""
        below = nodes.copy()
        below[self.word(level)] += digits.astype(np.uint64) * np.uint64(self.widths[level])
        return below

    def digit(self, level: int, keys: Keys) -> UInt64[np.ndarray, " n"]:
        """The digit that a node at `level` is split by."""
        place = keys[self.word(level)] // np.uint64(self.widths[level])
        first = level in (0, self.split)
        return place if first else place % np.uint64(self.radices[level])

    def ends(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Keys:
        """The highest key of each node."""
        ends = nodes.copy()
        for word in range(self.words):
            low, high = (0, self.split) if word == 0 else (self.split, self.depth)
            spans = [
                prod(self.radices[max(level, low) : high]) for level in range(self.depth + 1)
            ]
            ends[word] += np.array([n - 1 for n in spans], np.uint64)[levels]
        return ends

    def hold(self, keys: Keys) -> bool:
        """Whether no key is above the highest."""
        top = self.ends(np.zeros(1, np.int64), self.root())
        return all(own.max(initial=0) <= high[0] for own, high in zip(keys, top, strict=True))

    def lowest(self, levels: Int[np.ndarray, " n"], keys: Keys) -> Keys:
        """The nodes of these levels that the keys lie in."""
        nodes = keys.copy()
        for word in range(self.words):
            low, high = (0, self.split) if word == 0 else (self.split, self.depth)
            spans = [prod(self.radices[max(i, low) : high]) for i in range(self.depth + 1)]
            whole = np.array([n == _WORD for n in spans])[levels]
            width = np.array([n % _WORD or 1 for n in spans], np.uint64)[levels]
            nodes[word] = np.where(whole, 0, nodes[word] - nodes[word] % width)
        return nodes

    def anywhere(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A key below each node, any with the same chance."""
        room = self.ends(levels, nodes) - nodes
        return nodes + rng.integers(0, room, dtype=np.uint64, endpoint=True)

    def share(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, keys: Keys, after: bool = False
    ) -> Float[np.ndarray, " n"]:
        """Which part of each node's keys lies below a key, or (`after`) below the next one.

        Exactly 0 before the first and 1 after the last key, 1 beyond the node, between them else.
        """
        widths = np.array([1.0 * prod(self.radices[level:]) for level in range(self.depth + 1)])
        inside = [
            np.where(k >= n, (k - n).astype(float), -(n - k).astype(float))
            for k, n in zip(keys, nodes, strict=True)
        ]
        below = inside[0]
        if self.words == 2:
            below = below * prod(self.radices[self.split :]) + inside[1]
        part = ((below + after) / widths[levels]).clip(2.0**-1000, 1 - 2.0**-53)
        last = self.ends(levels, nodes)
        beyond = self._above(keys, last) | (after & (keys == last).all(axis=0))
        part[beyond] = 1
        part[(not after) & (keys == nodes).all(axis=0)] = 0
        return part

    def _above(self, keys: Keys, others: Keys) -> Bool[np.ndarray, " n"]:
        above = keys[-1] > others[-1]
        return (
            above
            if self.words == 1
            else (keys[0] > others[0]) | ((keys[0] == others[0]) & above)
        )


def order(keys: Keys) -> Int[np.ndarray, " n"]:
    """What sorts the keys."""
    if len(keys) == 1:
        return np.argsort(keys[0])
    return np.lexsort((keys[1], keys[0]))


def places(keys: Keys, asked: Keys, after: bool = False) -> Int[np.ndarray, " asked"]:
    """How many of the sorted keys lie below each of the sorted `asked`, or (`after`) not above it."""
    if len(keys) == 1:
        return np.searchsorted(keys[0], asked[0], "right" if after else "left")
    found = np.empty(asked.shape[1], np.int64)
    _places(keys[0], keys[1], asked[0], asked[1], after, found)
    return found


@njit(cache=True, nogil=True)
def _places(high, low, h, l, after, found):  # noqa: E741
    at = 0
    for i in range(h.size):
        step, end = 1, at
        while end < high.size and _below(high[end], low[end], h[i], l[i], after):
            at = end + 1
            end += step
            step *= 2
        end = min(end, high.size)
        while at < end:
            middle = (at + end) // 2
            if _below(high[middle], low[middle], h[i], l[i], after):
                at = middle + 1
            else:
                end = middle
        found[i] = at


@njit(cache=True, inline="always")
def _below(a, b, h, l, after):  # noqa: E741
    return a < h or (a == h and (b < l or (after and b == l)))


def _refuse_names(tree: Any) -> None:
    """A ValueError if a column of a release would have two meanings."""
    for name in tree.attributes:
        if name in ("count", "noisy", "complete", "level") or re.fullmatch(
            r"(key|lo|hi)\d+", name
        ):
            raise ValueError(
                f"{type(tree).__name__}: an attribute may not be called {name!r}: releases have such "
                "a column"
            )


def _positive(x) -> str | None:
    return None if type(x) is int and x >= 1 else "need a whole number >= 1"


@value
class Quadtree:
    """The unit cube, halved along every dimension at every level: 2^dims children.

    Or another box, from `low` to `high` a dimension, which is public. A coordinate outside the box, or
    none at all (NaN), is not in the space; the box's upper faces belong to the last cells.

    >>> Quadtree(2, 3).encode(np.array([[0.99, 0.0], [2.0, 0.0]]))
    (array([[42]], dtype=uint64), array([0, 1], dtype=uint8))
    """

    reasons: ClassVar[tuple[str, ...]] = ("outside the box",)

    dims: int = parameter(check=_positive, doc="dimensions")
    depth: int = parameter(check=_positive, doc="levels of halving")
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    attributes: tuple[str, ...] | None = None

    def __post_init__(self):
        if self.dims > 16 or self.depth > 52:
            raise ValueError(
                f"{self!r} is not allowed: need at most 16 dimensions and 52 levels, which is what "
                "floating-point coordinates tell apart"
            )
        fix = object.__setattr__
        for name, default in (("low", 0.0), ("high", 1.0), ("attributes", None)):
            told = getattr(self, name)
            if told is None:
                continue
            fix(self, name, tuple(told))
            if len(told) != self.dims:
                raise ValueError(f"Quadtree.{name} = {told!r} must have {self.dims} entries")
            if default is not None and not all(map(isfinite, told)):
                raise ValueError(f"Quadtree.{name} = {told!r} must be finite")
        if not all(_LEAST < b - a < 1 / _LEAST for a, b in zip(*self.box, strict=True)):
            raise ValueError(
                f"Quadtree.low = {self.low!r} must lie below high = {self.high!r}, by {_LEAST} to "
                f"{1 / _LEAST}"
            )
        names = tuple(f"x{i + 1}" for i in range(self.dims))
        if self.attributes is None:
            fix(self, "attributes", names)
        if len(set(self.attributes)) < self.dims:
            raise ValueError(f"Quadtree.attributes = {self.attributes!r} must differ")
        _refuse_names(self)
        _ = self.digits

    @cached_property
    def digits(self) -> Digits:
        """A bit of every coordinate at every level, the first dimension's highest."""
        return Digits((2**self.dims,) * self.depth)

    @property
    def size(self) -> int:
        """How many cells of the finest level there are."""
        return self.digits.size

    @property
    def shape(self) -> tuple[int, ...]:
        """The same, a dimension."""
        return (2**self.depth,) * self.dims

    @property
    def box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lower and the upper corner."""
        return self.low or (0.0,) * self.dims, self.high or (1.0,) * self.dims

    @property
    def branching(self) -> int:
        """How many children a node may have that can be split further."""
        return 2**self.dims

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """2^dims each, down to the finest level."""
        return np.full(nodes.shape[1], 2**self.dims if level < self.depth else 0)

    def encode(
        self, points: Float[np.ndarray, "n dims"]
    ) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The finest cells of the points in the box."""
        points = np.asarray(points)
        if points.ndim != 2 or points.shape[1] != self.dims or points.dtype.kind not in "fiu":
            raise ValueError(
                f"points of shape {points.shape} and type {points.dtype} do not fit: need numbers, "
                f"{self.dims} a point"
            )
        points = np.ascontiguousarray(
            points, np.float32 if points.dtype == "f4" else np.float64
        )
        keys = np.empty((self.digits.words, len(points)), np.uint64)
        low, high = (np.array(x, float) for x in self.box)
        apart = _spread(self.dims)
        why = np.zeros(len(points), np.uint8)
        kept = _morton(points, low, high, self.depth, self.digits.split, apart, keys, why)
        return keys[:, :kept], why

    def holds(self, keys: Keys) -> bool:
        """Whether no key is above the highest."""
        return self.digits.hold(keys)

    def below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A finest cell of each node, any with the same chance."""
        return self.digits.anywhere(levels, nodes, rng)

    def corners(self, nodes: Keys) -> Int[np.ndarray, "dims n"]:
        """The lowest cell of each node along every dimension, in cells of the finest level."""
        found = np.zeros((self.dims, nodes.shape[1]), np.int64)
        _corners(nodes, self.depth, self.digits.split, found)
        return found

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """How often, and in how many parts, each dimension can be split on its own."""
        return ((2,) * self.depth,) * self.dims

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The boxes of the nodes: `<attribute>_from` and `<attribute>_to`."""
        lo, sides = self.corners(nodes).T, 2 ** (self.depth - levels.astype(np.int64))
        return self.boxed(lo, lo + sides[:, None])

    def boxed(
        self, lo: Int[np.ndarray, "n dims"], hi: Int[np.ndarray, "n dims"]
    ) -> pd.DataFrame:
        """Boxes of finest cells in the units of the box: `<attribute>_from` and `<attribute>_to`."""
        import pandas as pd

        told = {}
        for i, (name, a, b) in enumerate(zip(self.attributes, *self.box, strict=True)):
            told[f"{name}_from"] = a + (b - a) * (lo[:, i] / 2**self.depth)
            told[f"{name}_to"] = a + (b - a) * (hi[:, i] / 2**self.depth)
        return pd.DataFrame(told)

    def points(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Float[np.ndarray, "n dims"]:
        """A point anywhere in each node, in the units of the box, as near as floats come."""
        low, high = (np.array(x) for x in self.box)
        sides = 2.0 ** -levels.astype(float)
        at = (
            self.corners(nodes).T / 2.0**self.depth
            + rng.random((len(levels), self.dims)) * (sides[:, None])
        )
        return low + (high - low) * at

    def boxes(
        self,
        levels: Int[np.ndarray, " n"],
        nodes: Keys,
        values: Float[np.ndarray, " n"],
        lo: Int[np.ndarray, "queries dims"],
        hi: Int[np.ndarray, "queries dims"],
    ) -> tuple[Float[np.ndarray, " queries"], Bool[np.ndarray, " queries"]]:
        """Σ of values in boxes of finest cells, by volume where a box cuts a node; and if it cuts."""
        sums, cut = np.zeros(len(lo)), np.zeros(len(lo), bool)
        sides = 2 ** (self.depth - levels.astype(np.int64))
        _boxed(self.corners(nodes), sides, values.astype(float), lo, hi, sums, cut)
        return sums, cut


@cache
def _spread(dims: int) -> UInt64[np.ndarray, " 4096"]:
    """Twelve bits, `dims` places apart, where they fit a word."""
    told = [
        sum((x >> i & 1) << i * dims for i in range(_BITS)) % _WORD for x in range(2**_BITS)
    ]
    return np.array(told, np.uint64)


@njit(cache=True, nogil=True)
def _morton(points, low, high, depth, split, apart, keys, why):
    n, dims = points.shape
    scale = 2.0**depth / (high - low)
    step, bits = np.uint64(_BITS * dims), np.uint64(_BITS)
    late, mask = np.uint64(depth - split), np.uint64(2**_BITS - 1)
    rest = (np.uint64(1) << late) - np.uint64(1)
    last, kept = np.uint64(2**depth - 1), 0
    for i in range(n):
        first, second = np.uint64(0), np.uint64(0)
        outside = False
        for j in range(dims):
            x = points[i, j]
            outside |= not (x >= low[j] and x <= high[j])
            at = min(np.uint64(max(x - low[j], 0.0) * scale[j]), last)
            shift = np.uint64(dims - 1 - j)
            head, tail = at >> late, at & rest
            first |= apart[head & mask] << shift
            second |= apart[tail & mask] << shift
            while (head | tail) > mask:
                head, tail, shift = head >> bits, tail >> bits, shift + step
                first |= apart[head & mask] << shift
                second |= apart[tail & mask] << shift
        why[i] = outside
        if not outside:
            keys[0, kept] = first
            if keys.shape[0] == 2:
                keys[1, kept] = second
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _corners(nodes, depth, split, found):
    dims, n = found.shape
    for i in range(n):
        for level in range(depth):
            word = 0 if level < split else 1
            end = split if word == 0 else depth
            digit = nodes[word, i] >> np.uint64((end - 1 - level) * dims)
            for j in range(dims):
                bit = np.int64(digit >> np.uint64(dims - 1 - j)) & 1
                found[j, i] |= bit << (depth - 1 - level)


@njit(cache=True, nogil=True)
def _boxed(corners, sides, values, lo, hi, sums, cut):
    dims, n = corners.shape
    for q in range(len(sums)):
        for i in range(n):
            share = 1.0
            for j in range(dims):
                a, b = max(corners[j, i], lo[q, j]), min(corners[j, i] + sides[i], hi[q, j])
                if b <= a:
                    share = 0.0
                    break
                share *= (b - a) / sides[i]
            if share > 0:
                sums[q] += share * values[i]
                cut[q] |= share < 1


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
    depth: int = parameter(20, check=_positive, doc="longest string")
    attribute: str = "string"

    def __post_init__(self):
        _refuse_names(self)
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
        keys, why = np.empty((self.digits.words, n), np.uint64), np.zeros(n, np.uint8)
        radix, split = len(self.alphabet) + 1, self.digits.split
        kept = _packed(codes, width or 0, starts, table, radix, self.depth, split, keys, why)
        return keys[:, :kept], why

    def holds(self, keys: Keys) -> bool:
        """Whether no key is above the highest; what follows an end is not looked at."""
        return self.digits.hold(keys)

    def below(
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


@value
class Taxonomy:
    """A list of codes, each with the code that it belongs to (None: at the top); leaves are values.

    Codes above leaves are not values: records that are known no better are not in the space. Children
    are in the order of the list. `attribute` names the column.

    >>> tree = Taxonomy((("food", None), ("pears", "food"), ("nuts", "food"), ("wood", None)))
    >>> keys, why = tree.encode(["nuts", "wood", "food"])
    >>> list(tree.frame(np.full(2, tree.digits.depth), keys).code), why
    (['nuts', 'wood'], array([0, 0, 1], dtype=uint8))
    """

    reasons: ClassVar[tuple[str, ...]] = ("not a leaf of the list",)

    parents: tuple[tuple[str, str | None], ...]
    attribute: str = "code"

    def __post_init__(self):
        rows = tuple((str(c), None if p is None else str(p)) for c, p in self.parents)
        object.__setattr__(self, "parents", rows)
        _refuse_names(self)
        if twice := [c for c, k in Counter(c for c, _ in rows).items() if k > 1]:
            raise ValueError(f"Taxonomy.parents: {twice[0]!r} stands twice")
        known = {c for c, _ in rows}
        if strange := [p for _, p in rows if p is not None and p not in known]:
            raise ValueError(
                f"Taxonomy.parents: {strange[0]!r} is a parent and not in the list"
            )
        if len(self._nodes) - 1 < len(rows):
            lost = known - {label for label, _ in self._nodes.values()}
            raise ValueError(
                f"Taxonomy.parents: {sorted(lost)[0]!r} belongs to itself, in the end"
            )
        _ = self.digits

    @classmethod
    def of(cls, parents: dict[str, str | None], attribute: str = "code") -> Taxonomy:
        """From a dictionary, or anything that one can be made of: code → parent."""
        return cls(tuple(dict(parents).items()), attribute)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The one column."""
        return (self.attribute,)

    @cached_property
    def _nodes(self) -> dict[tuple[int, ...], tuple[str | None, int]]:
        """The digits of every node → its code and how many children it has."""
        below: dict[str | None, list[str]] = {}
        for code, parent in self.parents:
            below.setdefault(parent, []).append(code)
        found, todo = {}, [((), None)]
        while todo:
            path, code = todo.pop()
            children = below.get(code, [])
            found[path] = code, len(children)
            todo += [((*path, i), child) for i, child in enumerate(children)]
        return found

    @cached_property
    def digits(self) -> Digits:
        """The places among siblings; 0 below a leaf."""
        depth = max(map(len, self._nodes))
        most = [0] * depth
        for path, (_, n) in self._nodes.items():
            if n:
                most[len(path)] = max(most[len(path)], n)
        return Digits(tuple(most))

    @property
    def size(self) -> int:
        """How many keys there are; not all are of a leaf."""
        return self.digits.size

    @property
    def branching(self) -> int:
        """The most children of one node that can be split further."""
        splits = [path for path, (_, n) in self._nodes.items() if n and path]
        return max(Counter(path[:-1] for path in splits).values(), default=0)

    @cached_property
    def _levels(self) -> list[tuple[Keys, list[str | None], Int[np.ndarray, " n"]]]:
        """Nodes of each level in the order of keys: keys, codes, how many children."""
        levels: list[list] = [[] for _ in range(self.digits.depth + 1)]
        for path, (code, n) in sorted(self._nodes.items()):
            levels[len(path)].append((path, code, n))
        told = []
        for level in levels:
            keys = np.zeros((self.digits.words, len(level)), np.uint64)
            for i, (path, _, _) in enumerate(level):
                for depth, digit in enumerate(path):
                    step = np.uint64(digit * self.digits.widths[depth])
                    keys[self.digits.word(depth), i] += step
            told.append((keys, [c for _, c, _ in level], np.array([n for *_, n in level])))
        return told

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """As many as the list has."""
        keys, _, counts = self._levels[level]
        where = order(nodes)
        found = np.empty(len(where), np.int64)
        found[where] = counts[places(keys, nodes[:, where])]
        return found

    @cached_property
    def _leaves(self) -> tuple[Keys, np.ndarray, Int[np.ndarray, " n"]]:
        """All leaves in the order of keys: keys, codes, levels."""
        told = [(keys[:, n == 0], np.array(c, object)[n == 0]) for keys, c, n in self._levels]
        keys, codes = (np.concatenate(x, axis=-1) for x in zip(*told, strict=True))
        levels = np.repeat(np.arange(len(told)), [len(c) for _, c in told])
        by = order(keys)
        return np.ascontiguousarray(keys[:, by]), codes[by], levels[by]

    def encode(self, codes: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of leaves."""
        import pandas as pd

        keys, labels, _ = self._leaves
        codes = pd.Series(codes)
        found = pd.Index(labels).get_indexer(codes.astype(str).where(codes.notna()))
        return keys[:, found[found >= 0]], (found < 0).astype(np.uint8)

    def holds(self, keys: Keys) -> bool:
        """Whether all are keys of leaves."""
        known = self._leaves[0]
        by = order(keys)
        at = np.minimum(places(known, keys[:, by]), known.shape[1] - 1)
        return bool((known[:, at] == keys[:, by]).all())

    def below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A leaf below each node, any with the same chance."""
        known, ends = self._leaves[0], self.digits.ends(levels, nodes)
        first, last = np.empty((2, len(levels)), np.int64)
        for found, keys, after in ((first, nodes, False), (last, ends, True)):
            by = order(keys)
            found[by] = places(known, keys[:, by], after)
        return known[:, rng.integers(first, last)] if len(levels) else nodes

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The codes, and whether they are `complete`: leaves. The root is called "all"."""
        import pandas as pd

        keys, labels, deep = self._leaves
        by = order(nodes)
        at = np.empty(len(by), np.int64)
        at[by] = places(keys, nodes[:, by], after=True) - 1
        complete, told = deep[at] <= levels, labels[at]  # else the first leaf below the node
        for level in np.unique(levels[~complete]):
            here = np.flatnonzero((levels == level) & ~complete)
            here = here[order(nodes[:, here])]
            keys, codes, _ = self._levels[level]
            told[here] = np.array(codes, object)[places(keys, nodes[:, here])]
        told[levels == 0] = "all"
        return pd.DataFrame({self.attribute: told, "complete": complete})


@value
class Attributes:
    """A table's attributes, one after another in the order of its domain: a level each.

    Keys are those of the domain. Where a mechanism chooses which attribute to refine next, the order
    does not matter.

    >>> Attributes(Domain(("age", "sex"), (100, 2))).digits.radices
    (100, 2)
    """

    domain: Domain
    reasons: ClassVar[tuple[str, ...]] = ("not in the domain",)

    def __post_init__(self):
        _refuse_names(self)

    @cached_property
    def digits(self) -> Digits:
        """The codes."""
        return Digits(self.domain.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the domain."""
        return self.domain.attributes

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.domain.size

    @property
    def shape(self) -> tuple[int, ...]:
        """The same, an attribute."""
        return self.domain.shape

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """Each attribute that has several values can be split once, into all of them."""
        return tuple((n,) if n > 1 else () for n in self.domain.shape)

    @property
    def branching(self) -> int:
        """How many children a node may have that can be split further."""
        return max(self.domain.shape[:-1], default=0)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """As many as the attribute has values."""
        return np.full(nodes.shape[1], (*self.domain.shape, 0)[level])

    def encode(self, frame: pd.DataFrame) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of rows that lie in the domain; a column an attribute."""
        if missing := [a for a in self.attributes if a not in frame]:
            raise ValueError(f"columns {missing} are missing: need {list(self.attributes)}")
        codes = np.stack([self.domain.encode(a, frame[a]) for a in self.attributes], axis=1)
        good = (codes >= 0).all(axis=1)
        return self.domain.keys(codes[good]).astype(np.uint64)[None], (~good).astype(np.uint8)

    def holds(self, keys: Keys) -> bool:
        """Whether no key is above the highest."""
        return self.digits.hold(keys)

    def below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A cell of each node, any with the same chance."""
        return self.digits.anywhere(levels, nodes, rng)

    def corners(self, nodes: Keys) -> Int[np.ndarray, "attributes n"]:
        """The codes of keys."""
        return self.domain.codes(nodes[0].astype(np.int64)).T

    def boxes(self, levels, nodes, values, lo, hi):
        """Σ of the values in boxes of cells, by volume where a box cuts a node; and if it cuts."""
        sums, cut = np.zeros(len(lo)), np.zeros(len(lo), bool)
        low = self.corners(nodes)
        free = np.asarray(levels)[None] <= np.arange(len(self.shape))[:, None]
        high = np.where(free, np.array(self.shape)[:, None], low + 1)
        for i, (a, b) in enumerate(zip(lo, hi, strict=True)):
            part = (np.minimum(high, b[:, None]) - np.maximum(low, a[:, None])).clip(0)
            share = (part / (high - low)).prod(axis=0)
            sums[i], cut[i] = share @ values, ((share > 0) & (share < 1)).any()
        return sums, cut

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The labels, and "*" for what is not refined."""
        lo = self.corners(nodes).T
        free = np.asarray(levels)[:, None] <= np.arange(len(self.shape))
        return self.boxed(lo, np.where(free, lo + self.shape, lo + 1))

    def boxed(self, lo, hi) -> pd.DataFrame:
        """Boxes in words: a label, or "*" for all of an attribute."""
        frame = self.domain.frame(self.domain.keys(lo)).astype(object)
        wide = (hi - lo > 1) & (np.array(self.shape) > 1)
        return frame.mask(wide, "*")


def told(tree: Hierarchy) -> dict:
    """A hierarchy in plain words, which `read` reads."""
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(tree)}


def read(told: dict) -> Hierarchy:
    """What `told` told; lists of lists, as JSON has them, are fine."""
    if told["kind"] == "Attributes":
        return Attributes(Domain.from_dict(told["domain"]))
    kinds = {k.__name__: k for k in (Quadtree, Prefixes, Taxonomy)}
    rest = {k: _tuples(x) for k, x in told.items() if k != "kind"}
    return kinds[told["kind"]](**rest)


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
