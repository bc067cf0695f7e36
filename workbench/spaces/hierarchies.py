"""Base class of trees that divide a space of values, digits of keys (numbers of values), and searches in
sorted keys.
"""

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
    """Number the children of each node of a tree from 0. `counts` contains the number of children of each node.
    Return one list for all nodes. For example, the counts 2 and 3 give 0, 1, 0, 1, 2.
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def argsort_keys(keys: Keys) -> Int[np.ndarray, " n"]:
    """Return the indices that sort keys (numbers of values in a tree) in ascending order, as `numpy.argsort`
    does.
    """
    return np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])


def searchsorted_keys(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """Count, for each `wanted` key (number of a value in a tree), how many of the `keys` are smaller. If you
    set `after`, also count `keys` that are equal to the wanted key. Both lists of keys must be sorted.
    """
    counts = np.empty(wanted.shape[1], np.int64)
    _search(keys[0], keys[-1], wanted[0], wanted[-1], after, counts)  # equal if one word
    return counts


def search_unsorted(keys: Keys, wanted: Keys, after: bool = False) -> Int[np.ndarray, " k"]:
    """Count, for each `wanted` key (number of a value in a tree), how many of the `keys` are smaller. If you
    set `after`, also count `keys` that are equal to the wanted key. The `wanted` keys may be in any order, but
    `keys` must be sorted.
    """
    order = argsort_keys(wanted)
    counts = np.empty(len(order), np.int64)
    counts[order] = searchsorted_keys(keys, wanted[:, order], after)
    return counts


def keys_above(keys: Keys, others: Keys) -> Bool[np.ndarray, " n"]:
    """Compare two lists of keys (numbers of values in a tree), position by position. The result is true if the
    key in `keys` is larger than the key in `others`.
    """
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
    """Return the first index from `at` to `stop` − 1 whose key is at least the wanted key. With `after`, the
    key must be larger. If there is no such key, return `stop`.
    """
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
    """Number system for the leaves of a tree, which are the nodes without children. The number of a leaf is
    called the key of the leaf. A key has one digit per level of the tree. On each level, a node is divided into
    children, and the digit is the number of the child that contains the leaf. `radices` contains, for each
    level, how many different digits are possible.

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
        """Number of levels of the tree, without the root."""
        return len(self.radices)

    @property
    def size(self) -> int:
        """Number of possible keys."""
        return prod(self.radices)

    @cached_property
    def first_word_levels(self) -> int:
        """Number of levels whose digits are stored in the first 64-bit word of a key."""
        levels = range(1, self.depth + 1)
        return max(n for n in levels if prod(self.radices[:n]) <= WORD or n == 1)

    @property
    def word_count(self) -> int:
        """Number of 64-bit words in a key: 1 or 2."""
        return 1 + (self.first_word_levels < self.depth)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """One number per level of the tree: the amount by which a key grows if its digit of this level grows by
        1. If a key has two 64-bit words, the amount refers to the word that contains the digit.
        """
        words = map(self.word_of_level, range(self.depth))
        return tuple(int(self._last[word, i + 1]) + 1 for i, word in enumerate(words))

    @cached_property
    def _last(self) -> UInt64[np.ndarray, "words levels"]:
        """Largest value of each word of the keys that are in the first node of a level, with one column per
        level.
        """
        split = self.first_word_levels
        levels = range(self.depth + 1)
        first = [prod(self.radices[level:split]) - 1 for level in levels]
        second = [prod(self.radices[max(level, split) :]) - 1 for level in levels]
        return np.array([first, second][: self.word_count], np.uint64)

    def word_of_level(self, level: int) -> int:
        """Return which 64-bit word of a key contains a certain digit: 0 for the first word, or 1 for the
        second. The digit is the number of the child into which a node at `level` is divided.
        """
        return int(level >= self.first_word_levels)

    def root(self) -> Keys:
        """Return the lowest key of the root, which is the node that contains all keys."""
        return np.zeros((self.word_count, 1), np.uint64)

    def child(self, level: int, nodes: Keys, digits: Int[np.ndarray, " n"]) -> Keys:
        """Return one child of each node at `level`. For each node, `digits` contains the number of the child,
        counted from 0. You pass the lowest key of each node. The result contains the lowest key of each child.
        """
        children = nodes.copy()
        width = np.uint64(self.widths[level])
        children[self.word_of_level(level)] += digits.astype(np.uint64) * width
        return children

    def digit(self, level: int, keys: Keys) -> UInt64[np.ndarray, " n"]:
        """Return one digit of each key. The node at `level` that contains the key is divided into children. The
        digit is the number of the child that contains the key.
        """
        place = keys[self.word_of_level(level)] // np.uint64(self.widths[level])
        first = level in (0, self.first_word_levels)
        return place if first else place % np.uint64(self.radices[level])

    def highest_keys(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Keys:
        """Return the highest key of the leaves below each node. You pass the level and the lowest key of each
        node.
        """
        return nodes + self._last[:, levels]

    def contains(self, keys: Keys) -> bool:
        """Return whether all `keys` are at most the highest possible key."""
        return bool((keys <= self._last[:, :1]).all())

    def ancestors(self, levels: int | Int[np.ndarray, " n"], keys: Keys) -> Keys:
        """Return, for each key, the node at the given level that contains the key. The result contains the
        lowest key of this node. Pass one level for all keys, or one level per key.
        """
        sizes = self._last[:, np.atleast_1d(levels)] + np.uint64(1)  # 2⁶⁴ overflows to 0
        return np.where(sizes == 0, np.uint64(0), keys - keys % np.maximum(sizes, np.uint64(1)))

    def fraction_below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, keys: Keys, after: bool = False
    ) -> Float[np.ndarray, " n"]:
        """Return, for each node (part of the tree), the share of the node's possible keys that are smaller than
        a given key. You pass one key per node, which must be at least the lowest key of the node. If you set
        `after`, a key that is equal to the given key also counts.

        The share is exactly 0 if no key of the node counts, and exactly 1 if all keys count. Otherwise the
        share is rounded, but stays above 0 and below 1.
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
    """Base class of trees that divide a space of values into smaller and smaller parts. The subclasses are
    `Quadtree`, `Prefixes`, `Taxonomy` and `Attributes`.

    Every value has a number, which is called the key of the value. A part is called a node. Two numbers
    identify a node: its level in the tree, and the lowest key of its values.
    """

    reasons: ClassVar[tuple[str, ...]]  # why a value may not be in the space

    if TYPE_CHECKING:

        @property
        def digits(self) -> Digits:
            """Number system in which keys (numbers of values) are written. A key has one digit for each level
            of the tree.
            """

        def __getattr__(self, name: str) -> Any:
            """Return an attribute that only some of the subclasses have, for example `alphabet`."""
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
        """Names of the columns of a data frame that together contain a value."""
        return (self.attribute,)

    @property
    def size(self) -> int:
        """Number of possible keys."""
        return self.digits.size

    def encode(self, values: Any) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each value, which is the number of the value in the tree. Values that are not in
        the space have no key and are left out.

        The method also returns an array with one number per value. The number is 0 if the value has a key. For
        a value that is left out, a number n >= 1 refers to the n-th text of `reasons`, which explains why the
        value is left out.
        """

    def contains(self, keys: Keys) -> bool:
        """Return whether all `keys` are valid. A key is valid if it is the number of one of the tree's
        values.
        """
        return self.digits.contains(keys)

    def has_nodes(self, levels: Int[np.ndarray, " n"], keys: Keys) -> bool:
        """Return whether the tree has all of these nodes (parts of the space). You pass the level and the
        lowest key of each node.
        """
        if not len(levels):
            return True
        if not (0 <= levels.min() <= levels.max() <= self.digits.depth and self.contains(keys)):
            return False
        return bool((self.digits.ancestors(levels, keys) == keys).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """For each node (part of the space), draw one of the values in the node uniformly at random, and return
        the key (number) of the drawn value. A tree of strings draws nothing. It returns the key of the node's
        prefix, because the prefix is itself a string.
        """
        room = self.digits.highest_keys(levels, nodes) - nodes
        return nodes + rng.integers(0, room, dtype=np.uint64, endpoint=True)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children of each node (part of the space) at `level`. The number is 0 for a
        node that cannot be divided further.
        """
        return np.full(nodes.shape[1], (*self.digits.radices, 0)[level])

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return a data frame with one row per node (part of the space). The columns describe the node, for
        example by its prefix in a tree of strings.
        """


class Boxed(Hierarchy):
    """Base class of trees whose nodes are boxes. A box has a range along each dimension. Subclasses define
    `node_boxes` and `boxes_to_frame`.
    """

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return a data frame with one row per node. Each row describes the box of one node."""
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
        """Add up, for each query, the values of the nodes (boxes of the tree) that the query contains. A query
        is the box from the corner `lo` up to, but not including, the corner `hi`.

        If a query contains only a part of a node, the value of the node counts in proportion to the volume of
        the part. The method also returns a mask, which is true for the queries that contain only a part of some
        node.
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
    """Mixin for data and estimates whose values are organised in a hierarchy, a tree that divides the space
    of values.
    """

    @property
    def domain(self: Any) -> Hierarchy:
        """Tree that contains all possible values of the records."""
        tree: Hierarchy = self.hierarchy
        return tree
