"""What every hierarchy can do, and what its fields must be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from workbench.arrays import Int, UInt8
from workbench.hierarchy.digits import Digits
from workbench.hierarchy.keys import Keys
from workbench.libraries import pd

_RELEASE_COLUMNS = re.compile(r"count|noisy|complete|level|(key|lo|hi)\d+")


class Hierarchy(Protocol):
    """A finite tree over a space: a `Quadtree`, `Prefixes`, a `Taxonomy`, or `Attributes`."""

    reasons: ClassVar[tuple[str, ...]]  # why a value may not be in the space

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def digits(self) -> Digits:
            """How its keys are made."""

        @property
        def attributes(self) -> tuple[str, ...]:
            """The columns of a value."""

        @property
        def branching(self) -> int:
            """How many children a node has at most."""

        def __getattr__(self, name: str) -> Any:
            """What only some have: boxes of attributes, beginnings of texts."""
            raise AttributeError(name)

    @property
    def size(self) -> int:
        """How many keys there can be."""
        return self.digits.size

    def encode(self, values: Any) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of those values that lie in the space; for each value 0, or 1 + its reason."""

    def contains(self, keys: Keys) -> bool:
        """Whether these are keys of the hierarchy."""
        return self.digits.contains(keys)

    def has_nodes(self, levels: Int[np.ndarray, " n"], keys: Keys) -> bool:
        """Whether there are nodes of these levels with these keys, their lowest."""
        if not len(levels):
            return True
        if not (0 <= levels.min() <= levels.max() <= self.digits.depth and self.contains(keys)):
            return False
        return bool((self.digits.ancestors(levels, keys) == keys).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A value below each node, any with the same chance; beginnings of strings are values."""
        return self.digits.random_keys(levels, nodes, rng)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """How many children each node of a level has: 0 where it cannot be split."""

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """One row a node, with its labels."""


class OverHierarchy:
    """Whatever lies in a hierarchy, which is its domain."""

    if TYPE_CHECKING:  # a field, or a property

        @property
        def hierarchy(self) -> Hierarchy:
            """The tree."""

    @property
    def domain(self) -> Hierarchy:
        """The hierarchy."""
        return self.hierarchy


def refuse_release_columns(tree: Hierarchy) -> None:
    """A ValueError if a column of a release would have two meanings."""
    for name in tree.attributes:
        if _RELEASE_COLUMNS.fullmatch(name):
            raise ValueError(
                f"{type(tree).__name__}: an attribute may not be called {name!r}: releases have such "
                "a column"
            )


def wrong_unless_positive(x: Any) -> str | None:
    """What is wrong with a number of levels or dimensions, if anything."""
    return None if type(x) is int and x >= 1 else "need a whole number >= 1"
