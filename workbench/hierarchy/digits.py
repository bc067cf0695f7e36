"""Keys of a hierarchy: digits in a mixed radix, in one word or two."""

from __future__ import annotations

import re
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8, UInt64

from workbench.compiled import njit
from workbench.value import value

if TYPE_CHECKING:
    import pandas as pd


Keys = UInt64[np.ndarray, "words n"]

WORD = 2**64


class Hierarchy(Protocol):
    """A finite tree over a space: a `Quadtree`, `Prefixes`, or a `Taxonomy`."""

    digits: Digits
    attributes: tuple[str, ...]

    reasons: tuple[str, ...]  # why a value may not be in the space

    def encode(self, values: Any) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of those values that lie in the space; for each value 0, or 1 + its reason."""

    def contains(self, keys: Keys) -> bool:
        """Whether these are keys of the hierarchy."""

    def random_keys(
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

    >>> Digits((39,) * 20).first_word_levels, Digits((16,) * 12).size == 2**48
    (12, True)
    """

    radices: tuple[int, ...]

    def __post_init__(self):
        if not self.radices:
            raise ValueError(
                "a hierarchy of depth 0 cannot be refined: need at least one level"
            )
        if prod(self.radices[self.first_word_levels :]) > WORD:
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
    def first_word_levels(self) -> int:
        """How many levels the first word holds."""
        levels = range(1, self.depth + 1)
        return max(n for n in levels if prod(self.radices[:n]) <= WORD or n == 1)

    @property
    def word_count(self) -> int:
        """1 or 2."""
        return 1 + (self.first_word_levels < self.depth)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """By how much the word of a level grows when its digit does, level by level."""
        ends = (
            self.first_word_levels if i < self.first_word_levels else self.depth
            for i in range(self.depth)
        )
        return tuple(prod(self.radices[i + 1 : end]) for i, end in enumerate(ends))

    @cached_property
    def _spans(self) -> list[list[int]]:
        """How many values each word takes below a node, by the node's level."""
        parts = [(0, self.first_word_levels), (self.first_word_levels, self.depth)][
            : self.word_count
        ]
        levels = range(self.depth + 1)
        return [[prod(self.radices[max(i, a) : b]) for i in levels] for a, b in parts]

    def word_of_level(self, level: int) -> int:
        """Which word holds the digit that a node at `level` is split by."""
        return int(level >= self.first_word_levels)

    def root(self) -> Keys:
        """The node that holds everything."""
        return np.zeros((self.word_count, 1), np.uint64)

    def child(self, level: int, nodes: Keys, digits: Int[np.ndarray, " n"]) -> Keys:
        """The children with these digits."""
        below = nodes.copy()
        below[self.word_of_level(level)] += digits.astype(np.uint64) * np.uint64(
            self.widths[level]
        )
        return below

    def digit(self, level: int, keys: Keys) -> UInt64[np.ndarray, " n"]:
        """The digit that a node at `level` is split by."""
        place = keys[self.word_of_level(level)] // np.uint64(self.widths[level])
        first = level in (0, self.first_word_levels)
        return place if first else place % np.uint64(self.radices[level])

    def ends(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Keys:
        """The highest key of each node."""
        ends = nodes.copy()
        for own, spans in zip(ends, self._spans, strict=True):
            own += np.array([n - 1 for n in spans], np.uint64)[levels]
        return ends

    def contains(self, keys: Keys) -> bool:
        """Whether no key is above the highest."""
        top = self.ends(np.zeros(1, np.int64), self.root())
        return all(own.max(initial=0) <= high[0] for own, high in zip(keys, top, strict=True))

    def ancestors(self, levels: int | Int[np.ndarray, " n"], keys: Keys) -> Keys:
        """The nodes of these levels, or of one, that the keys lie in."""
        nodes = keys.copy()
        for own, spans in zip(nodes, self._spans, strict=True):
            whole = np.array([n == WORD for n in spans])[levels]
            width = np.array([n % WORD or 1 for n in spans], np.uint64)[levels]
            own[:] = np.where(whole, 0, own - own % width)
        return nodes

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A key below each node, any with the same chance."""
        room = self.ends(levels, nodes) - nodes
        return nodes + rng.integers(0, room, dtype=np.uint64, endpoint=True)

    def fraction_below(
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
        if self.word_count == 2:
            below = below * prod(self.radices[self.first_word_levels :]) + inside[1]
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
            if self.word_count == 1
            else (keys[0] > others[0]) | ((keys[0] == others[0]) & above)
        )


def child_digits(many: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " children"]:
    """0, 1, … for the children of each node, one after another, of which there are `many`."""
    return np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)


def argsort_keys(keys: Keys) -> Int[np.ndarray, " n"]:
    """What sorts the keys."""
    if len(keys) == 1:
        return np.argsort(keys[0])
    return np.lexsort((keys[1], keys[0]))


def searchsorted_keys(
    keys: Keys, asked: Keys, after: bool = False
) -> Int[np.ndarray, " asked"]:
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


def refuse_names(tree: Any) -> None:
    """A ValueError if a column of a release would have two meanings."""
    for name in tree.attributes:
        if name in ("count", "noisy", "complete", "level") or re.fullmatch(
            r"(key|lo|hi)\d+", name
        ):
            raise ValueError(
                f"{type(tree).__name__}: an attribute may not be called {name!r}: releases have such "
                "a column"
            )


def positive(x: Any) -> str | None:
    """What is wrong with a number of levels or dimensions, if anything."""
    return None if type(x) is int and x >= 1 else "need a whole number >= 1"
