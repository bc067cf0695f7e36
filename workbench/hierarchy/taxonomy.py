"""Codes, each below the code that it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Int, UInt8

from workbench.value import value

if TYPE_CHECKING:
    import pandas as pd

from workbench.hierarchy.digits import (
    Digits,
    Keys,
    argsort_keys,
    refuse_names,
    searchsorted_keys,
)


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
        refuse_names(self)
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
            keys = np.zeros((self.digits.word_count, len(level)), np.uint64)
            for i, (path, _, _) in enumerate(level):
                for depth, digit in enumerate(path):
                    step = np.uint64(digit * self.digits.widths[depth])
                    keys[self.digits.word_of_level(depth), i] += step
            told.append((keys, [c for _, c, _ in level], np.array([n for *_, n in level])))
        return told

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """As many as the list has."""
        keys, _, counts = self._levels[level]
        where = argsort_keys(nodes)
        found = np.empty(len(where), np.int64)
        found[where] = counts[searchsorted_keys(keys, nodes[:, where])]
        return found

    @cached_property
    def _leaves(self) -> tuple[Keys, np.ndarray, Int[np.ndarray, " n"]]:
        """All leaves in the order of keys: keys, codes, levels."""
        told = [(keys[:, n == 0], np.array(c, object)[n == 0]) for keys, c, n in self._levels]
        keys, codes = (np.concatenate(x, axis=-1) for x in zip(*told, strict=True))
        levels = np.repeat(np.arange(len(told)), [len(c) for _, c in told])
        by = argsort_keys(keys)
        return np.ascontiguousarray(keys[:, by]), codes[by], levels[by]

    def encode(self, codes: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of leaves."""
        import pandas as pd

        keys, labels, _ = self._leaves
        codes = pd.Series(codes)
        found = pd.Index(labels).get_indexer(codes.astype(str).where(codes.notna()))
        return keys[:, found[found >= 0]], (found < 0).astype(np.uint8)

    def contains(self, keys: Keys) -> bool:
        """Whether all are keys of leaves."""
        known = self._leaves[0]
        by = argsort_keys(keys)
        at = np.minimum(searchsorted_keys(known, keys[:, by]), known.shape[1] - 1)
        return bool((known[:, at] == keys[:, by]).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A leaf below each node, any with the same chance."""
        known, ends = self._leaves[0], self.digits.ends(levels, nodes)
        first, last = np.empty((2, len(levels)), np.int64)
        for found, keys, after in ((first, nodes, False), (last, ends, True)):
            by = argsort_keys(keys)
            found[by] = searchsorted_keys(known, keys[:, by], after)
        return known[:, rng.integers(first, last)] if len(levels) else nodes

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The codes, and whether they are `complete`: leaves. The root is called "all"."""
        import pandas as pd

        keys, labels, deep = self._leaves
        by = argsort_keys(nodes)
        at = np.empty(len(by), np.int64)
        at[by] = searchsorted_keys(keys, nodes[:, by], after=True) - 1
        complete, told = deep[at] <= levels, labels[at]  # else the first leaf below the node
        for level in np.unique(levels[~complete]):
            here = np.flatnonzero((levels == level) & ~complete)
            here = here[argsort_keys(nodes[:, here])]
            keys, codes, _ = self._levels[level]
            told[here] = np.array(codes, object)[searchsorted_keys(keys, nodes[:, here])]
        told[levels == 0] = "all"
        return pd.DataFrame({self.attribute: told, "complete": complete})
