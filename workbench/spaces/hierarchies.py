"""Hierarchies of keys: the protocol, digits in a mixed radix, and sorted keys of one or two words."""

from __future__ import annotations

import re
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from workbench.compiled import njit, pd
from workbench.value import Bool, Float, Int, Num, UInt8, UInt64, value

# Keys

Keys = UInt64[np.ndarray, "words n"]


def child_digits(counts: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " children"]:
    """Number the children of each node from 0. Return these digits for one node after another."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def argsort_keys(keys: Keys) -> Int[np.ndarray, " n"]:
    """Return the order that sorts the keys."""
    return np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])


def searchsorted_keys(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """Count the keys below each `wanted` key. With `after`, count keys that are equal as well. Both lists
    must be sorted.
    """
    counts = np.empty(wanted.shape[1], np.int64)
    _search(keys[0], keys[-1], wanted[0], wanted[-1], after, counts)  # one word: it twice
    return counts


def search_unsorted(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """Search as `searchsorted_keys` does. The `wanted` keys may be in any order."""
    order = argsort_keys(wanted)
    counts = np.empty(len(order), np.int64)
    counts[order] = searchsorted_keys(keys, wanted[:, order], after)
    return counts


def keys_above(keys: Keys, others: Keys) -> Bool[np.ndarray, " n"]:
    """Return, for each pair of keys, whether the first is above the second."""
    above = keys[-1] > others[-1]
    if len(keys) == 2:
        above = (keys[0] > others[0]) | ((keys[0] == others[0]) & above)
    return above


@njit(cache=True, nogil=True)
def _search(high, low, wanted_high, wanted_low, after, out):
    at = 0
    for i in range(wanted_high.size):
        at = gallop(high, low, at, high.size, wanted_high[i], wanted_low[i], after)
        out[i] = at


@njit(cache=True, inline="always")
def gallop(high, low, at, stop, wanted_high, wanted_low, after):
    """Return the first place from `at` to `stop` whose key is not below the wanted one, or (`after`) above."""
    step = 1
    end = at
    while end < stop and _below(high[end], low[end], wanted_high, wanted_low, after):
        at = end + 1
        end += step
        step *= 2
    end = min(end, stop)
    while at < end:
        middle = (at + end) // 2
        if _below(high[middle], low[middle], wanted_high, wanted_low, after):
            at = middle + 1
        else:
            end = middle
    return at


@njit(cache=True, inline="always")
def _below(high, low, wanted_high, wanted_low, after):
    return high < wanted_high or (
        high == wanted_high and (low < wanted_low or (after and low == wanted_low))
    )


# Digits

WORD = 2**64


@value
class Digits:
    """Number system for the keys of a tree. A key numbers a leaf. It has one digit per level of the tree, which
    says which child to take.

    >>> Digits((39,) * 20).first_word_levels, Digits((16,) * 12).size == 2**48
    (12, True)
    """

    radices: tuple[int, ...]

    def __post_init__(self) -> None:
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
        """Number of levels below the root."""
        return len(self.radices)

    @property
    def size(self) -> int:
        """Number of keys."""
        return prod(self.radices)

    @cached_property
    def first_word_levels(self) -> int:
        """Number of levels packed into the first 64-bit word of a key."""
        levels = range(1, self.depth + 1)
        return max(n for n in levels if prod(self.radices[:n]) <= WORD or n == 1)

    @property
    def word_count(self) -> int:
        """Number of words of a key: 1 or 2."""
        return 1 + (self.first_word_levels < self.depth)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How much a word of the key grows if the digit of a level grows by one. There is one number per
        level.
        """
        words = map(self.word_of_level, range(self.depth))
        return tuple(int(self._last[word, i + 1]) + 1 for i, word in enumerate(words))

    @cached_property
    def _last(self) -> UInt64[np.ndarray, "words levels"]:
        """Largest value of each word below the first node of each level."""
        split = self.first_word_levels
        levels = range(self.depth + 1)
        first = [prod(self.radices[level:split]) - 1 for level in levels]
        second = [prod(self.radices[max(level, split) :]) - 1 for level in levels]
        return np.array([first, second][: self.word_count], np.uint64)

    def word_of_level(self, level: int) -> int:
        """Return the index of the word that has the digit of the children of a node at `level`."""
        return int(level >= self.first_word_levels)

    def root(self) -> Keys:
        """Return the root, the node that contains all keys."""
        return np.zeros((self.word_count, 1), np.uint64)

    def child(self, level: int, nodes: Keys, digits: Int[np.ndarray, " n"]) -> Keys:
        """Return the children with these digits."""
        children = nodes.copy()
        width = np.uint64(self.widths[level])
        children[self.word_of_level(level)] += digits.astype(np.uint64) * width
        return children

    def digit(self, level: int, keys: Keys) -> UInt64[np.ndarray, " n"]:
        """Return, for each key, its digit below `level`. This says which child of the node at `level`
        contains the key.
        """
        place = keys[self.word_of_level(level)] // np.uint64(self.widths[level])
        first = level in (0, self.first_word_levels)
        return place if first else place % np.uint64(self.radices[level])

    def highest_keys(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Keys:
        """Return the highest key below each node."""
        return nodes + self._last[:, levels]

    def contains(self, keys: Keys) -> bool:
        """Return whether no key is above the highest one."""
        return bool((keys <= self._last[:, :1]).all())

    def ancestors(self, levels: int | Int[np.ndarray, " n"], keys: Keys) -> Keys:
        """Return the node that contains each key. Give one level for all keys, or a level for each."""
        sizes = self._last[:, np.atleast_1d(levels)] + np.uint64(1)  # 0 is 2⁶⁴, the whole word
        return np.where(sizes == 0, np.uint64(0), keys - keys % np.maximum(sizes, np.uint64(1)))

    def fraction_below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, keys: Keys, after: bool = False
    ) -> Float[np.ndarray, " n"]:
        """Return the share of each node's keys that are below a given key. With `after`, keys that are
        equal to it count as well.

        The share is exactly 0 if the given key comes before the node, and exactly 1 if it comes after the
        node. In between, it is strictly between 0 and 1.
        """
        widths = np.array([1.0 * prod(self.radices[level:]) for level in range(self.depth + 1)])
        distances = [
            np.where(k >= n, (k - n).astype(float), -(n - k).astype(float))
            for k, n in zip(keys, nodes, strict=True)
        ]
        distance = distances[0]
        if self.word_count == 2:
            distance = distance * prod(self.radices[self.first_word_levels :]) + distances[1]
        fraction = ((distance + after) / widths[levels]).clip(2.0**-1000, 1 - 2.0**-53)
        last = self.highest_keys(levels, nodes)
        beyond = keys_above(keys, last) | (after & (keys == last).all(axis=0))
        fraction[beyond] = 1
        fraction[(not after) & (keys == nodes).all(axis=0)] = 0
        return fraction


# Protocol

_RELEASE_COLUMNS = re.compile(r"count|noisy|complete|level|(key|lo|hi)\d+")


class Hierarchy(Protocol):
    """Base class of finite trees that divide a space of values into smaller parts. The subclasses are
    `Quadtree`, `Prefixes`, `Taxonomy` and `Attributes`.
    """

    reasons: ClassVar[tuple[str, ...]]  # why a value may not be in the space

    if TYPE_CHECKING:

        @property
        def digits(self) -> Digits:
            """Digits of the keys."""

        def __getattr__(self, name: str) -> Any:
            """Return an attribute that only some hierarchies have, for boxes of attributes or
            beginnings of texts.
            """
            raise AttributeError(name)

    def __post_init__(self) -> None:
        for name in self.attributes:
            if _RELEASE_COLUMNS.fullmatch(name):
                raise ValueError(
                    f"{type(self).__name__}: an attribute may not be called {name!r}: releases have such "
                    "a column"
                )
        _ = self.digits

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the columns that make up a value."""
        return (self.attribute,)

    @property
    def size(self) -> int:
        """Number of possible keys."""
        return self.digits.size

    def encode(self, values: Any) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key (the number in the tree) of each value that is in the space. Also return 0 for each
        value that is in the space, and for others 1 + the number of the reason why not.
        """

    def contains(self, keys: Keys) -> bool:
        """Return whether these are keys of the hierarchy."""
        return self.digits.contains(keys)

    def has_nodes(self, levels: Int[np.ndarray, " n"], keys: Keys) -> bool:
        """Return whether there are nodes with these levels and lowest keys."""
        if not len(levels):
            return True
        if not (0 <= levels.min() <= levels.max() <= self.digits.depth and self.contains(keys)):
            return False
        return bool((self.digits.ancestors(levels, keys) == keys).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """Draw a uniformly random value below each node. If the values are strings, a prefix counts as a
        value.
        """
        room = self.digits.highest_keys(levels, nodes) - nodes
        return nodes + rng.integers(0, room, dtype=np.uint64, endpoint=True)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children of each node of a level. It is 0 if the node cannot be split."""
        return np.full(nodes.shape[1], (*self.digits.radices, 0)[level])

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return a table with one row per node and its labels."""


class Boxed(Hierarchy):
    """Hierarchy whose nodes are boxes of cells. It has the methods `node_boxes` and `boxes_to_frame`."""

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return the boxes of the nodes."""
        low, high = self.node_boxes(levels, nodes)
        frame: pd.DataFrame = self.boxes_to_frame(low.T, high.T)
        return frame

    def boxes(
        self,
        levels: Int[np.ndarray, " n"],
        nodes: Keys,
        values: Num[np.ndarray, " n"],
        lo: Int[np.ndarray, "queries dims"],
        hi: Int[np.ndarray, "queries dims"],
    ) -> tuple[Float[np.ndarray, " queries"], Bool[np.ndarray, " queries"]]:
        """Add up the values of nodes over boxes of cells. If a box contains a part of a node, it gets a
        share of its value in proportion to the volume. Also return which boxes contain such parts.
        """
        sums = np.zeros(len(lo))
        cut = np.zeros(len(lo), bool)
        _boxed(*self.node_boxes(levels, nodes), values.astype(float), lo, hi, sums, cut)
        return sums, cut


@njit(cache=True, nogil=True)
def _boxed(low, high, values, lo, hi, sums, cut):
    dims, n = low.shape
    for q in range(len(sums)):
        for i in range(n):
            share = 1.0
            for j in range(dims):
                a = max(low[j, i], lo[q, j])
                b = min(high[j, i], hi[q, j])
                if b <= a:
                    share = 0.0
                    break
                share *= (b - a) / (high[j, i] - low[j, i])
            if share > 0:
                sums[q] += share * values[i]
                cut[q] |= share < 1


class OverHierarchy:
    """Mixin for data and estimates over a hierarchy (a tree that divides the space of values). Their domain is
    this hierarchy.
    """

    @property
    def domain(self: Any) -> Hierarchy:
        """Hierarchy of the records."""
        tree: Hierarchy = self.hierarchy
        return tree
