"""Taxonomies of codes, attributes that are refined one after another, and both as dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.spaces.domain import Domain
from workbench.spaces.hierarchies import Boxed, Digits, Hierarchy, Keys, search_unsorted
from workbench.spaces.prefixes import Prefixes
from workbench.spaces.quadtree import Quadtree
from workbench.spaces.statements import read_fields
from workbench.value import Int, UInt8, shown, value

# Taxonomy


@value
class Taxonomy(Hierarchy):
    """Tree of codes, for example of diagnoses. Each code is listed with the code above it, and the leaves are
    the possible values.

    A code that has codes below it is not a value, so records with such a code are left out. Children are in
    the order of the list.

    Parameters
    ----------
    parents : tuple of (str, str or None)
        Each code and the code above it, or None at the top.
    attribute : str
        The name of the column.

    Raises
    ------
    ValueError
        If a code is listed twice, is above itself, or has a code above it that is not in the list.

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
        codes = Counter(code for code, _ in rows)
        reached = {code for path in self._paths for code in path}
        for code, parent in rows:
            if codes[code] > 1:
                raise ValueError(f"Taxonomy.parents: {code!r} stands twice")
            if code not in reached:
                raise ValueError(
                    f"Taxonomy.parents: {code!r} belongs to {parent!r}, which is not in the list, or "
                    "belongs to itself in the end"
                )
        super().__post_init__()

    @classmethod
    def read(cls, path: str | Path, attribute: str = "code") -> Taxonomy:
        """Read a taxonomy from a file of codes.

        Parameters
        ----------
        path : path
            CSV without a header. Each line has a code and the code above it, which is empty at the top.
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
            If a line is malformed, or the list is not a taxonomy.
        """
        rows = read_fields(Path(path))
        for row in rows:
            if len(row) > 2 or not row[0]:
                raise ValueError(
                    f"{path}: need lines of a code and the code that it belongs to; got {shown(row)}"
                )
        return cls(tuple((row[0], "".join(row[1:]) or None) for row in rows), attribute)

    @cached_property
    def _below(self) -> dict[str | None, list[str]]:
        """Codes below each code. The key None is the top."""
        below: dict[str | None, list[str]] = {}
        for code, parent in self.parents:
            below.setdefault(parent, []).append(code)
        return below

    @cached_property
    def _paths(self) -> list[tuple[str | None, ...]]:
        """Codes from the top to each leaf, in the order of keys."""
        leaves = []
        waiting: list[tuple[str | None, ...]] = [(None,)]
        while waiting:
            path = waiting.pop()
            below = self._below.get(path[-1], [])
            waiting += [(*path, code) for code in reversed(below)]
            if not below:
                leaves.append(path)
        return leaves

    @cached_property
    def digits(self) -> Digits:
        """Digits of a key: the place of a code among its siblings at each level. A digit below a leaf is 0."""
        most = Counter[int]()
        for path in self._paths:
            for level, code in enumerate(path[:-1]):
                most[level] = max(most[level], len(self._below[code]))
        return Digits(tuple(most.values()))

    @property
    def branching(self) -> int:
        """Largest number of children of a node that can be split further."""
        return max(sum(code in self._below for code in codes) for codes in self._below.values())

    @cached_property
    def _leaves(self) -> _Leaves:
        size = self.digits.depth + 1
        paths = [(*path, *path[-1:] * (size - len(path))) for path in self._paths]
        codes = np.array(paths, object).T
        children = np.vectorize(lambda code: len(self._below.get(code, ())), [int])(codes)
        place = {code: i for below in self._below.values() for i, code in enumerate(below)}
        keys = np.zeros((self.digits.word_count, len(paths)), np.uint64)
        for level, above in enumerate(codes[:-1]):
            digits = np.vectorize(place.get, [int])(codes[level + 1])
            keys = self.digits.child(level, keys, digits * (codes[level + 1] != above))
        codes[0] = "all"
        return _Leaves(keys, codes, children)

    def _first_leaves(self, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the first leaf of each node."""
        keys = self._leaves.keys
        return np.minimum(search_unsorted(keys, nodes), keys.shape[1] - 1)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return how many children each node has in the list."""
        return self._leaves.children[level, self._first_leaves(nodes)]

    def encode(self, codes: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the keys (the numbers in the tree) of the codes that are leaves. Also return which codes are
        not leaves.
        """
        column = pd.Series(codes)
        texts = column.astype(str).where(column.notna())
        places = pd.Index(self._leaves.codes[-1]).get_indexer(texts)
        return self._leaves.keys[:, places[places >= 0]], (places < 0).astype(np.uint8)

    def contains(self, keys: Keys) -> bool:
        """Return whether all keys are leaves."""
        return bool((self._leaves.keys[:, self._first_leaves(keys)] == keys).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """Return a random leaf below each node. All leaves are equally likely."""
        if not len(levels):
            return nodes
        leaves = self._leaves.keys
        first = search_unsorted(leaves, nodes)
        last = search_unsorted(leaves, self.digits.highest_keys(levels, nodes), after=True)
        return leaves[:, rng.integers(first, last)]

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return the codes. The column `complete` says whether a code is a leaf. The root is called "all"."""
        at = levels, self._first_leaves(nodes)
        complete = self._leaves.children[at] == 0
        return pd.DataFrame({self.attribute: self._leaves.codes[at], "complete": complete})


class _Leaves(NamedTuple):
    """Leaves in the order of keys. For each level, the code above a leaf and its number of children."""

    keys: Keys
    codes: np.ndarray
    children: Int[np.ndarray, "levels leaves"]


# Attributes


@value
class Attributes(Boxed):
    """Tree that divides the cells of a domain by one attribute after the other. Each level fixes the value of
    one attribute, in the order of the domain.

    Keys are those of the domain. The order does not matter for a mechanism that chooses which attribute to
    refine next.

    Parameters
    ----------
    domain : Domain
        Domain of the table.

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
        super().__post_init__()

    @cached_property
    def digits(self) -> Digits:
        """Return the codes of keys."""
        return Digits(self.domain.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes of the domain."""
        return self.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values per attribute."""
        return self.domain.shape

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """Number of splits of each attribute, and of parts per split. An attribute with several values is split
        once, into all of its values.
        """
        return tuple((n,) if n > 1 else () for n in self.domain.shape)

    @property
    def branching(self) -> int:
        """Largest number of children of a node that can be split further."""
        return max(self.domain.shape[:-1], default=0)

    def encode(self, frame: pd.DataFrame) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each record, which is the number of its cell in the domain. A record has one value
        per attribute.
        """
        if self.domain.preparation is not None:
            raise ValueError(
                "the domain has rules that prepare columns: use SparseTable.from_frame, then "
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
        """Return the codes of cells, which are the numbers of their values. The cells are given by their
        keys.
        """
        return self.domain.codes(nodes[0].astype(np.int64)).T

    def node_boxes(
        self, levels: Int[np.ndarray, " n"], nodes: Keys
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each node as a range of codes (the numbers of values) for every attribute. The range is given
        by its first code and the code after its last one.
        """
        low = self.corners(nodes)
        free = np.asarray(levels)[None] <= np.arange(len(self.shape))[:, None]
        return low, np.where(free, np.array(self.shape)[:, None], low + 1)

    def boxes_to_frame(
        self, lo: Int[np.ndarray, "boxes attributes"], hi: Int[np.ndarray, "boxes attributes"]
    ) -> pd.DataFrame:
        """Return a table with one row per box. It has a label for each attribute, or "*" if the box has all
        labels of the attribute.
        """
        frame = self.domain.frame(self.domain.keys(lo)).astype(object)
        wide = (hi - lo > 1) & (np.array(self.shape) > 1)
        mixed = dict.fromkeys(frame.columns[wide.any(axis=0)], str)
        return frame.astype(mixed).mask(wide, "*")  # files have columns of one type


# Serialise

_BY_NAME: dict[str, Any] = {cls.__name__: cls for cls in (Quadtree, Prefixes, Taxonomy)}


def to_dict(tree: Hierarchy) -> dict[str, Any]:
    """Return the fields of a hierarchy, and its class as `kind`."""
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    some: Any = tree  # each kind is a dataclass
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(some)}


def from_dict(record: dict[str, Any]) -> Hierarchy:
    """Make a hierarchy from the output of `to_dict`. Tuples may have become lists, for example in a JSON
    file.
    """
    if record["kind"] == "Attributes":
        return Attributes(Domain.from_dict(record["domain"], folder=None))
    values = {name: x for name, x in record.items() if name != "kind"}
    made: Hierarchy = _BY_NAME[record["kind"]](**values)
    return made
