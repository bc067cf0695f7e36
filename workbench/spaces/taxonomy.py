"""Taxonomies of codes, attributes that are refined one after another, and both as dictionaries."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.spaces.domain import Domain
from workbench.spaces.hierarchies import (
    Digits,
    Hierarchy,
    Keys,
    argsort_keys,
    refuse_release_columns,
    search_unsorted,
)
from workbench.spaces.prefixes import Prefixes
from workbench.spaces.quadtree import Quadtree
from workbench.value import Int, Num, UInt8, value

# Taxonomy


@value
class Taxonomy(Hierarchy):
    """List of codes, each with the code that it belongs to. Leaves are values.

    Codes above leaves are not values: records that are on_level no better are not in the space. Children
    are in the order of the list.

    Parameters
    ----------
    parents : tuple of (str, str or None)
        Each code and the code that it belongs to; None at the top.
    attribute : str
        The name of the column.

    Raises
    ------
    ValueError
        If a code stands twice, belongs to itself in the end, or to a code that is not in the list.

    Examples
    --------
    >>> tree = Taxonomy((("food", None), ("pears", "food"), ("nuts", "food"), ("wood", None)))
    >>> keys, why = tree.encode(["nuts", "wood", "food"])
    >>> list(tree.frame(np.full(2, tree.digits.depth), keys).code), why
    (['nuts', 'wood'], array([0, 0, 1], dtype=uint8))
    """

    reasons: ClassVar[tuple[str, ...]] = ("not a leaf of the list",)

    parents: tuple[tuple[str, str | None], ...]
    attribute: str = "code"

    def __post_init__(self) -> None:
        rows = tuple((str(c), None if p is None else str(p)) for c, p in self.parents)
        object.__setattr__(self, "parents", rows)
        refuse_release_columns(self)
        codes = Counter(code for code, _ in rows)
        for code, count in codes.items():
            if count > 1:
                raise ValueError(f"Taxonomy.parents: {code!r} stands twice")
        for _, parent in rows:
            if parent is not None and parent not in codes:
                raise ValueError(
                    f"Taxonomy.parents: {parent!r} is a parent and not in the list"
                )
        if len(self._nodes) - 1 < len(rows):
            unreached = set(codes) - {node.code for node in self._nodes.values()}
            raise ValueError(
                f"Taxonomy.parents: {sorted(unreached)[0]!r} belongs to itself, in the end"
            )
        _ = self.digits

    @classmethod
    def of(cls, parents: dict[str, str | None], attribute: str = "code") -> Taxonomy:
        """From a dictionary, or anything that one can be made of: code → parent."""
        return cls(tuple(dict(parents).items()), attribute)

    @classmethod
    def read(cls, path: str | Path, attribute: str = "code") -> Taxonomy:
        """From a file of codes.

        Parameters
        ----------
        path : path
            CSV without a header: in each line a code and the code that it belongs to, nothing at the top.
        attribute : str
            The name of the column.

        Returns
        -------
        Taxonomy

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If a line is something else, with its number, or the list is no taxonomy.
        """
        path = Path(path)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = csv.reader(file, strict=True)
                rows = [_code_and_parent(path, lines.line_num, row) for row in lines if row]
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: no such file of codes") from None
        except (OSError, UnicodeDecodeError, csv.Error) as e:
            raise ValueError(f"{path}: it cannot be read as codes, one a line ({e})") from None
        if not rows:
            raise ValueError(f"{path} names no code")
        return cls(tuple(rows), attribute)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Name of the one column."""
        return (self.attribute,)

    @cached_property
    def _nodes(self) -> dict[tuple[int, ...], _Node]:
        """Every node by its digits."""
        children_of: dict[str | None, list[str]] = {}
        for code, parent in self.parents:
            children_of.setdefault(parent, []).append(code)
        nodes = {}
        waiting: list[tuple[tuple[int, ...], str | None]] = [((), None)]
        while waiting:
            path, above = waiting.pop()
            children = children_of.get(above, [])
            nodes[path] = _Node(above, len(children))
            waiting += [((*path, i), child) for i, child in enumerate(children)]
        return nodes

    @cached_property
    def digits(self) -> Digits:
        """Return places among siblings, 0 below a leaf."""
        radices: dict[int, int] = {}
        for path, node in self._nodes.items():
            if node.children:
                radices[len(path)] = max(radices.get(len(path), 0), node.children)
        return Digits(tuple(radices[level] for level in sorted(radices)))

    @property
    def branching(self) -> int:
        """The most children of one node that can be split further."""
        splits = [path for path, node in self._nodes.items() if node.children and path]
        return max(Counter(path[:-1] for path in splits).values(), default=0)

    @cached_property
    def _levels(self) -> list[_LevelNodes]:
        """The nodes of each level."""
        paths: list[list[tuple[int, ...]]] = [[] for _ in range(self.digits.depth + 1)]
        for path in sorted(self._nodes):
            paths[len(path)].append(path)
        levels = []
        for level in paths:
            keys = np.zeros((self.digits.word_count, len(level)), np.uint64)
            for i, path in enumerate(level):
                for depth, digit in enumerate(path):
                    step = np.uint64(digit * self.digits.widths[depth])
                    keys[self.digits.word_of_level(depth), i] += step
            nodes = [self._nodes[path] for path in level]
            codes = np.array([node.code for node in nodes], object)
            levels.append(_LevelNodes(keys, codes, np.array([node.children for node in nodes])))
        return levels

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children in the list."""
        on_level = self._levels[level]
        return on_level.children[search_unsorted(on_level.keys, nodes)]

    @cached_property
    def _leaves(self) -> _Leaves:
        """All leaves in the order of keys."""
        keys = np.concatenate([n.keys[:, n.children == 0] for n in self._levels], axis=1)
        codes = [level.codes[level.children == 0] for level in self._levels]
        levels = np.repeat(np.arange(len(codes)), list(map(len, codes)))
        order = argsort_keys(keys)
        in_order = np.ascontiguousarray(keys[:, order])
        return _Leaves(in_order, np.concatenate(codes)[order], levels[order])

    def encode(self, codes: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of leaves."""
        column = pd.Series(codes)
        texts = column.astype(str).where(column.notna())
        places = pd.Index(self._leaves.codes).get_indexer(texts)
        return self._leaves.keys[:, places[places >= 0]], (places < 0).astype(np.uint8)

    def contains(self, keys: Keys) -> bool:
        """Return whether all keys are leaves."""
        leaves = self._leaves.keys
        places = np.minimum(search_unsorted(leaves, keys), leaves.shape[1] - 1)
        return bool((leaves[:, places] == keys).all())

    def has_nodes(self, levels: Int[np.ndarray, " n"], keys: Keys) -> bool:
        """Return whether these are leaves, or codes above leaves on the levels of the list."""
        if not super().has_nodes(levels, keys):
            return False
        leaves = self._leaves
        is_leaf = leaves.levels[search_unsorted(leaves.keys, keys)] <= levels
        for level in np.unique(levels[~is_leaf]):
            wanted = keys[:, (levels == level) & ~is_leaf]
            known = self._levels[level].keys
            places = np.minimum(search_unsorted(known, wanted), known.shape[1] - 1)
            if (known[:, places] != wanted).any():
                return False
        return True

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """A leaf below each node, any with the same chance."""
        if not len(levels):
            return nodes
        leaves = self._leaves.keys
        first = search_unsorted(leaves, nodes)
        last = search_unsorted(leaves, self.digits.highest_keys(levels, nodes), after=True)
        return leaves[:, rng.integers(first, last)]

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The codes, and whether they are `complete`: leaves. The root is called "all"."""
        leaves = self._leaves
        places = search_unsorted(leaves.keys, nodes, after=True) - 1
        complete = leaves.levels[places] <= levels
        codes = leaves.codes[places]  # of the first leaf, where the node is above it
        for level in np.unique(levels[~complete]):
            rows = np.flatnonzero((levels == level) & ~complete)
            on_level = self._levels[level]
            codes[rows] = on_level.codes[search_unsorted(on_level.keys, nodes[:, rows])]
        codes[levels == 0] = "all"
        return pd.DataFrame({self.attribute: codes, "complete": complete})


def _code_and_parent(path: Path, line: int, row: list[str]) -> tuple[str, str | None]:
    """A line of a file of codes."""
    fields = [text.strip() for text in row]
    if len(fields) > 2 or not fields[0]:
        raise ValueError(f"{path}, line {line}: need a code and the code that it belongs to")
    return fields[0], fields[1] if len(fields) == 2 and fields[1] else None


class _Node(NamedTuple):
    """A code of the list, None for the root, and how many children it has."""

    code: str | None
    children: int


class _LevelNodes(NamedTuple):
    """The nodes of a level in the order of keys."""

    keys: Keys
    codes: np.ndarray
    children: Int[np.ndarray, " n"]


class _Leaves(NamedTuple):
    """Leaves in the order of keys."""

    keys: Keys
    codes: np.ndarray
    levels: Int[np.ndarray, " n"]


# Attributes


@value
class Attributes(Hierarchy):
    """A table's attributes, one after another in the order of its domain: a level each.

    Keys are those of the domain. Where a mechanism chooses which attribute to refine next, the order
    does not matter.

    Parameters
    ----------
    domain : Domain
        Whose attributes they are.

    Raises
    ------
    ValueError
        If an attribute has the name of a column of releases, such as "level".

    Examples
    --------
    >>> Attributes(Domain(("age", "sex"), (100, 2))).digits.radices
    (100, 2)
    """

    domain: Domain
    reasons: ClassVar[tuple[str, ...]] = ("not in the domain",)

    def __post_init__(self) -> None:
        self.domain.refuse_wide()
        refuse_release_columns(self)

    @cached_property
    def digits(self) -> Digits:
        """Return the codes of keys."""
        return Digits(self.domain.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of the domain."""
        return self.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values per attribute."""
        return self.domain.shape

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """Splits per attribute: one split into all values, if there are several."""
        return tuple((n,) if n > 1 else () for n in self.domain.shape)

    @property
    def branching(self) -> int:
        """Largest number of children of a node that can be split further."""
        return max(self.domain.shape[:-1], default=0)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of values of the attribute."""
        return np.full(nodes.shape[1], (*self.domain.shape, 0)[level])

    def encode(self, frame: pd.DataFrame) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the keys of rows in the domain, from one column per attribute."""
        if self.domain.preparation is not None:
            raise ValueError(
                "the domain says how its labels follow from columns: need SparseTable.from_frame, then "
                "Records.from_table"
            )
        missing = [a for a in self.attributes if a not in frame]
        if missing:
            raise ValueError(f"columns {missing} are missing: need {list(self.attributes)}")
        codes = np.stack([self.domain.encode(a, frame[a]) for a in self.attributes], axis=1)
        inside = (codes >= 0).all(axis=1)
        keys = self.domain.keys(codes[inside]).astype(np.uint64)
        return keys[None], np.asarray(~inside, np.uint8)

    def corners(self, nodes: Keys) -> Int[np.ndarray, "attributes n"]:
        """The codes of keys."""
        return self.domain.codes(nodes[0].astype(np.int64)).T

    def boxes(
        self,
        levels: Int[np.ndarray, " n"],
        nodes: Keys,
        values: Num[np.ndarray, " n"],
        lo: Int[np.ndarray, "boxes attributes"],
        hi: Int[np.ndarray, "boxes attributes"],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum values in boxes of cells, by volume where a box crosses a node, and say where it does."""
        low, high = self._node_boxes(levels, nodes)
        sums = np.zeros(len(lo))
        cut = np.zeros(len(lo), bool)
        for i, (a, b) in enumerate(zip(lo, hi, strict=True)):
            overlap = np.minimum(high, b[:, None]) - np.maximum(low, a[:, None])
            fraction = (overlap.clip(0) / (high - low)).prod(axis=0)
            sums[i] = fraction @ values
            cut[i] = ((fraction > 0) & (fraction < 1)).any()
        return sums, cut

    def _node_boxes(
        self, levels: Int[np.ndarray, " n"], nodes: Keys
    ) -> tuple[np.ndarray, np.ndarray]:
        """The box of cells of each node: first and last + 1 code (attributes, nodes)."""
        low = self.corners(nodes)
        free = np.asarray(levels)[None] <= np.arange(len(self.shape))[:, None]
        return low, np.where(free, np.array(self.shape)[:, None], low + 1)

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The labels, and "*" for what is not refined."""
        low, high = self._node_boxes(levels, nodes)
        return self.boxes_to_frame(low.T, high.T)

    def boxes_to_frame(
        self, lo: Int[np.ndarray, "boxes attributes"], hi: Int[np.ndarray, "boxes attributes"]
    ) -> pd.DataFrame:
        """Return a table with one row per box: a label per attribute, or "*" for all of it."""
        frame = self.domain.frame(self.domain.keys(lo)).astype(object)
        wide = (hi - lo > 1) & (np.array(self.shape) > 1)
        mixed = {
            name: str
            for name, any_wide in zip(frame, wide.any(axis=0), strict=True)
            if any_wide
        }
        return frame.astype(mixed).mask(wide, "*")  # files have columns of one type


# Serialise

_BY_NAME = {cls.__name__: cls for cls in (Quadtree, Prefixes, Taxonomy)}


def to_dict(tree: Hierarchy) -> dict[str, Any]:
    """Its class, as `kind`, and its fields."""
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    some: Any = tree  # each kind is a dataclass
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(some)}


def from_dict(record: dict[str, Any]) -> Hierarchy:
    """Make a hierarchy from the output of `to_dict`, also after JSON turned tuples into lists."""
    if record["kind"] == "Attributes":
        return Attributes(Domain.from_dict(record["domain"], folder=None))
    values = {name: _tuples(x) for name, x in record.items() if name != "kind"}
    return _BY_NAME[record["kind"]](**values)


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
