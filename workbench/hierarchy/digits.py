"""Digits of keys in a mixed radix, in one 64-bit word or two."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np

from workbench.arrays import Float, Int, UInt64
from workbench.hierarchy.keys import Keys, keys_above
from workbench.value import value

WORD = 2**64


@value
class Digits:
    """A mixed radix: how many values the digit of each level has, coarsest first.

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
        first = self.radices[: self.first_word_levels]
        second = self.radices[self.first_word_levels :]
        return (*_products_after(first), *_products_after(second))

    @cached_property
    def _spans(self) -> list[list[int]]:
        """How many values each word takes below a node, by the node's level."""
        split = self.first_word_levels
        levels = range(self.depth + 1)
        first = [prod(self.radices[level:split]) for level in levels]
        second = [prod(self.radices[max(level, split) :]) for level in levels]
        return [first, second][: self.word_count]

    def word_of_level(self, level: int) -> int:
        """Which word holds the digit that a node at `level` is split by."""
        return int(level >= self.first_word_levels)

    def root(self) -> Keys:
        """The node that holds everything."""
        return np.zeros((self.word_count, 1), np.uint64)

    def child(self, level: int, nodes: Keys, digits: Int[np.ndarray, " n"]) -> Keys:
        """The children with these digits."""
        children = nodes.copy()
        width = np.uint64(self.widths[level])
        children[self.word_of_level(level)] += digits.astype(np.uint64) * width
        return children

    def digit(self, level: int, keys: Keys) -> UInt64[np.ndarray, " n"]:
        """The digit that a node at `level` is split by."""
        place = keys[self.word_of_level(level)] // np.uint64(self.widths[level])
        first = level in (0, self.first_word_levels)
        return place if first else place % np.uint64(self.radices[level])

    def highest_keys(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> Keys:
        """The highest key of each node."""
        ends = nodes.copy()
        for word, spans in zip(ends, self._spans, strict=True):
            word += np.array([n - 1 for n in spans], np.uint64)[levels]
        return ends

    def contains(self, keys: Keys) -> bool:
        """Whether no key is above the highest."""
        highest = self.highest_keys(np.zeros(1, np.int64), self.root())
        words = zip(keys, highest, strict=True)
        return all(word.max(initial=0) <= high[0] for word, high in words)

    def ancestors(self, levels: int | Int[np.ndarray, " n"], keys: Keys) -> Keys:
        """The nodes of these levels, or of one, that the keys lie in."""
        nodes = keys.copy()
        for word, spans in zip(nodes, self._spans, strict=True):
            whole = np.array([n == WORD for n in spans])[levels]
            width = np.array([n % WORD or 1 for n in spans], np.uint64)[levels]
            word[:] = np.where(whole, 0, word - word % width)
        return nodes

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A key below each node, any with the same chance."""
        room = self.highest_keys(levels, nodes) - nodes
        return nodes + rng.integers(0, room, dtype=np.uint64, endpoint=True)

    def fraction_below(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, keys: Keys, after: bool = False
    ) -> Float[np.ndarray, " n"]:
        """Which part of each node's keys lies below a key, or (`after`) below the next one.

        Exactly 0 before the first and 1 after the last key, 1 beyond the node, between them else.
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


def _products_after(radices: tuple[int, ...]) -> list[int]:
    return [prod(radices[i + 1 :]) for i in range(len(radices))]
