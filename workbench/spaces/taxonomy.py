"""Trees of codes (taxonomies), and trees that divide the cells of a domain attribute by attribute. The module
also converts trees to dictionaries and back.
"""

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
from workbench.spaces.rules import each_as_text
from workbench.spaces.statements import read_fields
from workbench.value import Int, UInt8, shown, value

# Taxonomy


@value
class Taxonomy(Hierarchy):
    """Tree of codes, for example of codes for diagnoses. You list each code together with the code above it
    in the tree.

    Only codes without other codes below them (leaves) are possible values. The workbench leaves out a record
    with any other code. Codes that have the same code above them keep the order of the list.

    Parameters
    ----------
    parents : tuple of (str, str or None)
        Pairs of a code and the code above it. For a code at the top, the second entry is None.
    attribute : str
        Name of the column that contains the codes. Default "code".

    Raises
    ------
    ValueError
        If a code is listed twice, if a code is (directly or indirectly) above itself, or if a code occurs only
        as the code above another one.

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
                raise ValueError(f"Taxonomy.parents: {code!r} occurs twice")
            if code not in reached:
                raise ValueError(
                    f"Taxonomy.parents: {code!r} belongs to {parent!r}, which is not in the list, or "
                    "belongs to itself in the end"
                )
        super().__post_init__()

    @classmethod
    def read(cls, path: str | Path, attribute: str = "code") -> Taxonomy:
        """Read a tree of codes from a CSV file.

        Parameters
        ----------
        path : path
            CSV file without a header. Each line contains a code and the code above it. For a code at the top,
            the second field is empty.
        attribute : str
            Name of the column that contains the codes. Default "code".

        Returns
        -------
        Taxonomy

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If a line does not have this form, or if the codes do not form a tree.
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
        """Codes directly below each code. The entry for None contains the codes at the top."""
        below: dict[str | None, list[str]] = {}
        for code, parent in self.parents:
            below.setdefault(parent, []).append(code)
        return below

    @cached_property
    def _paths(self) -> list[tuple[str | None, ...]]:
        """For each leaf, the codes on the way from the top to the leaf. The leaves are in the order of their
        keys.
        """
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
        """Number system in which keys are written. Different digits may have different bases. The key of a leaf
        (a code without codes below it) is the number of the leaf.

        A key has one digit for each level on the way from the root to the leaf. The digit is the position of
        the code on this level among the codes that have the same code above them. If the leaf is above the
        lowest level, the remaining digits are 0.
        """
        most = Counter[int]()
        for path in self._paths:
            for level, code in enumerate(path[:-1]):
                most[level] = max(most[level], len(self._below[code]))
        return Digits(tuple(most.values()))

    @property
    def branching(self) -> int:
        """Largest number of children of one node (part of the tree). Only children that can be divided further
        are counted.
        """
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
        """Return, for each node, the position of its first leaf in the list of all leaves."""
        keys = self._leaves.keys
        return np.minimum(search_unsorted(keys, nodes), keys.shape[1] - 1)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """Return the number of children of each node at `level`. A node is a code, and its children are the
        codes directly below it.
        """
        return self._leaves.children[level, self._first_leaves(nodes)]

    def encode(self, codes: Sequence[str]) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each code that is a leaf (has no codes below it). The key is the number of the
        leaf. Other codes have no key and are left out.

        The method also returns an array with one number per code: 0 if the code is a leaf, and 1 if it is not.
        """
        texts = each_as_text(codes).to_numpy()
        places = pd.Index(self._leaves.codes[-1]).get_indexer(texts)
        return self._leaves.keys[:, places[places >= 0]], (places < 0).astype(np.uint8)

    def contains(self, keys: Keys) -> bool:
        """Return whether each of the `keys` is the number of a leaf, which is a code without codes below it."""
        return bool((self._leaves.keys[:, self._first_leaves(keys)] == keys).all())

    def random_keys(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Keys:
        """For each node, draw one of the leaves (codes without codes below them) below the node, and return the
        key of this leaf. All leaves below the node are equally likely.
        """
        if not len(levels):
            return nodes
        leaves = self._leaves.keys
        first = search_unsorted(leaves, nodes)
        last = search_unsorted(leaves, self.digits.highest_keys(levels, nodes), after=True)
        return leaves[:, rng.integers(first, last)]

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """Return a data frame with the code of each node. The column `complete` is True if the code is a leaf,
        which means that there are no codes below it. The code of the root is "all".
        """
        at = levels, self._first_leaves(nodes)
        complete = self._leaves.children[at] == 0
        return pd.DataFrame({self.attribute: self._leaves.codes[at], "complete": complete})


class _Leaves(NamedTuple):
    """Keys of all leaves in ascending order. For each level and leaf, two arrays contain the code on the way to
    the leaf, and the number of children of this code.
    """

    keys: Keys
    codes: np.ndarray
    children: Int[np.ndarray, "levels leaves"]


# Attributes


@value
class Attributes(Boxed):
    """Tree that divides the cells of a domain by one attribute after the other. The first level fixes the value
    of the first attribute, the second level fixes the value of the second attribute, and so on.

    The keys (numbers) of cells are the same as in the domain. Some mechanisms choose themselves which
    attribute to fix next. For these mechanisms, the order of the attributes does not matter.

    Parameters
    ----------
    domain : Domain
        Domain whose cells the tree divides. The domain must not be wide (have more than 2⁶³ − 1 cells).

    Raises
    ------
    ValueError
        If the domain is wide, or if an attribute has the same name as a column in the data frames of
        releases, for example "level".

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
        """Number system in which keys (numbers of cells) are written. A key has one digit per attribute. The
        digit is the code of the attribute's value, which is the position of this value in the list of all
        values, counted from 0.
        """
        return Digits(self.domain.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes of the domain."""
        return self.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return self.domain.shape

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """One tuple per attribute, with the number of parts into which the tree divides the values of the
        attribute. An attribute with n > 1 values is divided once, into n parts, so the tuple is (n,). For an
        attribute with one value, the tuple is empty.
        """
        return tuple((n,) if n > 1 else () for n in self.domain.shape)

    @property
    def branching(self) -> int:
        """Largest number of children of one node (part of the tree). Only children that can be divided further
        are counted.
        """
        return max(self.domain.shape[:-1], default=0)

    def encode(self, frame: pd.DataFrame) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each record of a data frame. The key is the number of the record's cell in the
        domain. Records with a value that is not in the domain have no key and are left out.

        The method also returns an array with one number per record: 0 if the record has a key, and 1 if it is
        left out.
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
        """Return the codes (numbers of the values) of the lowest cell in each node, with one row per
        attribute.
        """
        return self.domain.codes(nodes[0].astype(np.int64)).T

    def node_boxes(
        self, levels: Int[np.ndarray, " n"], nodes: Keys
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each node and every attribute, the range of codes that the node covers. Codes are the
        numbers of the values of an attribute.

        The first array contains the first code of each range, and the second array the code after the last
        one.
        """
        low = self.corners(nodes)
        free = np.asarray(levels)[None] <= np.arange(len(self.shape))[:, None]
        return low, np.where(free, np.array(self.shape)[:, None], low + 1)

    def boxes_to_frame(
        self, lo: Int[np.ndarray, "boxes attributes"], hi: Int[np.ndarray, "boxes attributes"]
    ) -> pd.DataFrame:
        """Return a data frame with one row per box and one column per attribute. An entry is the label of the
        attribute's value, or "*" if the box contains several values of the attribute.
        """
        frame = self.domain.frame(self.domain.keys(lo)).astype(object)
        wide = (hi - lo > 1) & (np.array(self.shape) > 1)
        mixed = dict.fromkeys(frame.columns[wide.any(axis=0)], str)
        return frame.astype(mixed).mask(wide, "*")  # files have columns of one type


# Serialise

_BY_NAME: dict[str, Any] = {cls.__name__: cls for cls in (Quadtree, Prefixes, Taxonomy)}


def to_dict(tree: Hierarchy) -> dict[str, Any]:
    """Return a dictionary with the fields of a tree that divides a space of values. The entry `kind` is the
    name of the tree's class.
    """
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    some: Any = tree  # each kind is a dataclass
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(some)}


def from_dict(record: dict[str, Any]) -> Hierarchy:
    """Create a tree from a dictionary that `to_dict` returned. The tuples in this dictionary may have become
    lists, for example because the dictionary was stored in a JSON file.
    """
    if record["kind"] == "Attributes":
        return Attributes(Domain.from_dict(record["domain"], folder=None))
    values = {name: x for name, x in record.items() if name != "kind"}
    made: Hierarchy = _BY_NAME[record["kind"]](**values)
    return made
