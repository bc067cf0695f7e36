"""Domains, which list the attributes of a table and their possible values, and JSON files that describe a
domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import log10, prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from workbench.compiled import pd, pl
from workbench.spaces.labels import Labels, of_one_kind
from workbench.spaces.rules import (
    DROPPED,
    REFUSED,
    Refused,
    Rule,
    check_texts,
    each_as_text,
)
from workbench.spaces.statements import (
    range_to_dict,
    read_json,
    refuse_blanks,
    rule_from_dict,
    rule_to_dict,
)
from workbench.value import Bool, Int, shown, value

# Domain file

_TRUTH_PUBLIC = "truth_public"  # keys of a domain file that are not attributes
_MISSING_USER = "missing_user"


def read_domain_file(path: Path) -> tuple[dict[str, Any], bool]:
    """Read a domain file, which describes the attributes of a table in JSON. Return the attributes, and
    whether the file states that exact counts are public.
    """
    content = read_json(path)
    public = content.pop(_TRUTH_PUBLIC, False) if isinstance(content, dict) else False
    if not isinstance(public, bool):
        raise ValueError(
            f"{path}: {_TRUTH_PUBLIC} = {str(public)[:40]!r} is not allowed: need true (exact counts may "
            "be shown) or false. No attribute of a domain file may have this name"
        )
    return content, public


def without_missing_user(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Separate the entry `missing_user` from the attributes of a domain file. The entry determines what happens
    to rows without a user.

    Return the attributes without this entry, and the entry's value. If there is no such entry, the value is
    "refuse".
    """
    attributes = dict(attributes)
    stated = attributes.get(_MISSING_USER, "refuse")
    if isinstance(stated, dict) and [*stated] == ["drop"]:
        stated = stated["drop"]
    elif not isinstance(stated, str):
        return attributes, "refuse"  # an attribute of this name
    attributes.pop(_MISSING_USER, None)
    return attributes, _nobody(stated)


def _nobody(stated: Any) -> Any:
    """Check the value of `missing_user`, and return it with a list of texts converted to a tuple. Raise a
    ValueError if the value is not allowed.
    """
    if stated in ("refuse", "drop"):
        return stated
    if check_texts(stated) is not None:
        raise ValueError(
            f"missing_user = {shown(stated)} is not allowed: need 'refuse', 'drop', or "
            '{"drop": […]} with the texts that mean nobody'
        )
    return tuple(map(str, stated))


def files_within(path: Path) -> list[Path]:
    """Return the paths of the files of labels and maps that a domain file names."""
    files = []
    stated = [read_json(path)]
    for x in stated:  # the loop appends to the list
        if isinstance(x, dict):
            names = (x.get(word) for word in ("file", "map"))
            files += [path.parent / name for name in names if isinstance(name, str)]
            stated += x.values()
        elif isinstance(x, list):
            stated += x
    return files


def states_public_truth(path: str | Path) -> bool:
    """Return whether a domain file contains `"truth_public": true`. This entry states that the exact counts
    of the data are public.

    The workbench compares a release with the exact counts only if the file contains this entry.

    Raises
    ------
    ValueError
        If `truth_public` is neither true nor false.
    """
    return read_domain_file(Path(path))[1]


# Domain

MAX_CELLS = 2**63 - 1  # keys are int64


@value
class Domain:
    """Attributes of a table with their possible values. A domain must be public knowledge, and must not be
    computed from the data.

    The values of an attribute are numbered from 0, and the number of a value is its *code*. A *cell* is a
    combination of one value per attribute. The cells are numbered from 0, and the number of a cell is its
    *key*. The cells are in the order of a nested loop, with the last attribute in the innermost loop. So the
    cells with the keys 0 and 1 usually differ only in the last attribute.

    Parameters
    ----------
    attributes : tuple of str
        Names of the attributes, all different. The names "count" and "noisy" are not allowed.
    shape : tuple of int
        Number of values of each attribute. A domain with more than 2⁶³ − 1 cells is called *wide*. Its cells
        have no keys, and you store its data in a `WideTable`.
    labels : tuple, optional
        Names of the values, with one entry per attribute. An entry is a tuple of labels, a `range` of integers,
        or None. The labels of a tuple are all texts, all integers, all floats or all booleans. None means that
        the codes themselves are the values.
    preparation : tuple, optional
        One entry per attribute. The entry is a rule that computes the attribute's label from the columns of a
        row, for example a bin from a number. The entry is None if a column with the attribute's name already
        contains the labels. The method `from_dict` creates the rules.
    missing_user : "refuse", "drop" or tuple of texts
        Treatment of rows in which the column of users is empty. "refuse" raises an error, and "drop" leaves
        the rows out. If you give texts, for example ("NA", "unknown"), rows with such a text in the column of
        users are also left out. Two domains that differ only in this field are equal, because they have the
        same cells.

    Raises
    ------
    ValueError
        If two names are equal, or if two labels of an attribute are equal. The error is also raised if `shape`
        or `labels` does not have one entry per attribute.

    Examples
    --------
    >>> Domain(("movie", "stars"), (17770, 5)).size
    88850
    >>> Domain(("home", "work"), (3037000500, 3037000500)).is_wide
    True
    """

    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    labels: tuple[tuple[Any, ...] | range | None, ...] | None = None
    preparation: tuple[Rule | None, ...] | None = None
    missing_user: str | tuple[str, ...] = field(default="refuse", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, _MISSING_USER, _nobody(self.missing_user))
        try:
            names, shape = tuple(self.attributes), tuple(map(index, self.shape))
            is_domain = 0 < len(set(names)) == len(names) == len(shape)
            is_domain &= all(0 < n <= MAX_CELLS for n in shape)
        except TypeError:
            is_domain = False
        if not is_domain:
            raise ValueError(
                f"Domain(attributes={shown(self.attributes)}, shape={shown(self.shape)}) is not allowed: "
                f"need a list of names, all different, and a size from 1 to {MAX_CELLS} for each"
            )
        for name in names:
            if not isinstance(name, str) or name in ("count", "noisy"):
                need = "need text, and not the name of a column that releases have"
                raise ValueError(f"Domain.attributes holds {shown(name)}: {need}")
            name.encode()  # a ValueError for half of a surrogate pair, which no file can hold
        none = (None,) * len(names)
        labels = self.labels or none
        rules = tuple(self.preparation or none)
        if len(labels) != len(names) or len(rules) != len(names):
            raise ValueError(
                f"Domain has {len(labels)} lists of labels and {len(rules)} rules for {len(names)} attributes"
            )
        labels = tuple(map(_checked_labels, names, shape, labels))
        for name, own, rule in zip(names, labels, rules, strict=True):
            if rule is not None and rule.all_labels != own:
                raise ValueError(f"Domain.labels of {shown(name)} must be those of its rule")
        object.__setattr__(self, "attributes", names)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "labels", None if labels == none else labels)
        object.__setattr__(self, "preparation", None if rules == none else rules)

    @property
    def _stated(self) -> Iterator[tuple[str, int, Any, Rule | None]]:
        """Name, number of values, labels and rule of each attribute. Labels and rule are None if they were
        not given.
        """
        none = (None,) * len(self.shape)
        names = self.attributes, self.shape, self.labels or none, self.preparation or none
        return zip(*names, strict=True)

    @cached_property
    def _own_labels(self) -> dict[str, Labels]:
        """Dictionary from the name of each attribute to a rule that finds the codes of labels."""
        return {x: Labels(range(n) if own is None else own) for x, n, own, _ in self._stated}

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Dictionary from the name of each attribute to its rule. A rule computes the label (name of the
        value) of its attribute from the columns of a row.
        """
        return {name: rule or self._own_labels[name] for name, _, _, rule in self._stated}

    @cached_property
    def _leaves(self) -> list[tuple[str, Rule]]:
        """List of the columns to read, each with the rule that reads it. The rule of one attribute may read
        several columns.
        """
        rules = self.rules.items()
        return [(leaf.column or name, leaf) for name, rule in rules for leaf in rule.leaves]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns from which the attributes are computed. Each name is listed once."""
        return tuple(dict.fromkeys(column for column, _ in self._leaves))

    def row_keys(
        self, columns: Mapping[str, pl.Series] | pl.DataFrame
    ) -> tuple[Int[np.ndarray, " kept"], Bool[np.ndarray, " rows"] | None, Refused]:
        """Return the key (number of the cell) of each row of a data frame. Also return two kinds of masks. The
        masks show which rows the rules of the domain keep, and which rows contain values that are not allowed.

        Parameters
        ----------
        columns : polars frame, or mapping from name to Series
            Data with at least the columns whose names are in the property `columns`. All columns must have
            the same length.

        Returns
        -------
        keys : int64[kept], or int64[parts, kept] of a wide domain
            Keys of the rows that no rule leaves out. For a wide domain, there is one row of keys for each
            domain in `parts`. Do not use the keys if `refused` is not empty.
        kept : bool[rows] or None
            Mask that is true for the rows that no rule leaves out. If all rows are kept, `kept` is None.
        refused : list
            One entry for each column with values that are not allowed. An entry contains the name of the
            column, a text that says which values are allowed, and a mask of the rows with other values.
        """
        codes = [leaf.codes(columns[column]) for column, leaf in self._leaves]
        kept = None
        for own in codes:
            if own.min(initial=0) <= DROPPED:
                kept = own != DROPPED if kept is None else kept & (own != DROPPED)
        refused: Refused = []
        for (column, leaf), own in zip(self._leaves, codes, strict=True):
            bad = own == REFUSED if kept is None else kept & (own == REFUSED)
            if bad.any():
                refused.append((column, leaf.need, bad))
        remaining = iter(codes)
        words = []
        for part in self.parts:
            keys: Any = 0
            for (_, leaf), own in zip(part._leaves, remaining, strict=False):
                own = own if kept is None else own[kept]
                keys = keys * len(leaf.all_labels) + own.astype(np.int64)
            words.append(keys)
        return np.stack(words) if self.is_wide else words[0], kept, refused

    @property
    def size(self) -> int:
        """Number of cells, which is the product of the entries of `shape`."""
        return prod(self.shape)

    @property
    def is_wide(self) -> bool:
        """Whether the domain is wide, which means that it has more than 2⁶³ − 1 cells. The cells of a wide
        domain have no numbers.
        """
        return self.size > MAX_CELLS

    @cached_property
    def parts(self) -> tuple[Domain, ...]:
        """Smaller domains into which a wide domain is divided. Each part has some of the attributes, in the
        same order, and at most 2⁶³ − 1 cells. So the cells of each part can be numbered.

        If the domain is not wide, the only part is the domain itself.
        """
        if not self.is_wide:
            return (self,)
        runs: list[list[str]] = []
        size = 0
        for name, n in zip(self.attributes, self.shape, strict=True):
            if not runs or size * n > MAX_CELLS:
                runs.append([])
                size = 1
            runs[-1].append(name)
            size *= n
        return tuple(map(self.project, runs))

    def refuse_wide(self) -> None:
        """Raise a ValueError if the domain is wide, which means that it has more than 2⁶³ − 1 cells. The
        message explains what to do instead.
        """
        if self.is_wide:
            raise ValueError(
                f"the domain has about 10^{log10(self.size):.0f} cells, and only 2^63 can be numbered. Choose "
                "some of its attributes (domain.project, table.project), or ask about few at a time: "
                "LaplaceQueries, GaussianQueries and sessions take a WideTable"
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """One number per attribute: the amount by which the key of a cell grows if the attribute's code grows
        by 1. A key is the number of a cell, and a code is the number of a value.
        """
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def axis(self, attribute: str) -> int:
        """Return the position of an attribute in the list of attributes, counted from 0."""
        if attribute not in self.attributes:
            raise ValueError(f"attribute {shown(attribute)} is not in {shown(self.attributes)}")
        return self.attributes.index(attribute)

    def keys(self, codes: Int[np.ndarray, "cells attributes"]) -> Int[np.ndarray, " cells"]:
        """Return the keys (numbers) of cells. You describe each cell by its codes, which are the numbers of its
        values.

        Parameters
        ----------
        codes : int[cells, attributes]
            One row per cell, with the code of each attribute, counted from 0.

        Returns
        -------
        int64[cells]
            Key of each cell.

        Raises
        ------
        ValueError
            If a code is negative or too large for its attribute.
        """
        self.refuse_wide()
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.shape):
            raise ValueError(
                f"codes of shape {codes.shape} do not fit {len(self.shape)} attributes"
            )
        keys = np.zeros(len(codes), np.int64)
        for name, n, column in zip(self.attributes, self.shape, codes.T, strict=True):
            outside = (column < 0) | (column >= n)
            if outside.any():
                row = int(outside.argmax())
                raise ValueError(
                    f"{name} has code {column[row]} in row {row}: need 0 <= code < {n}"
                )
            keys *= n
            keys += column
        return keys

    def codes(self, keys: Int[np.ndarray, " cells"]) -> Int[np.ndarray, "cells attributes"]:
        """Return the codes (numbers of the values) of the cells with the given keys (numbers of cells). The
        array has one row per cell and one column per attribute.
        """
        return np.stack([self.column(keys, a) for a in self.attributes], axis=1)

    def column(
        self, keys: Int[np.ndarray, " cells"], attribute: str
    ) -> Int[np.ndarray, " cells"]:
        """Return the code (number of the value) of one attribute for each of the given cells. You pass the keys
        (numbers) of the cells. If the domain is wide, pass one row of keys for each domain in `parts`.
        """
        axis = self.axis(attribute)
        if self.is_wide:
            i = next(i for i, part in enumerate(self.parts) if attribute in part.attributes)
            return self.parts[i].column(keys[i], attribute)
        high = keys // self.strides[axis] if self.strides[axis] > 1 else keys
        return high % self.shape[axis] if axis else high

    @property
    def leaves_rows_out(self) -> bool:
        """Whether the domain leaves out rows that have certain values or no user, instead of refusing them."""
        leaves = [leaf for rule in self.preparation or () if rule for leaf in rule.leaves]
        treated = {x for leaf in leaves for x in (leaf.other, leaf.missing)}
        return self.missing_user != "refuse" or "drop" in treated

    def project(self, attributes: Sequence[str]) -> Domain:
        """Return a domain that has only the given attributes, in the given order."""
        axes = [self.axis(a) for a in attributes]
        labels = self.labels and tuple(self.labels[i] for i in axes)
        rules = self.preparation and tuple(self.preparation[i] for i in axes)
        shape = tuple(self.shape[i] for i in axes)
        return Domain(tuple(attributes), shape, labels, rules, self.missing_user)

    def encode(self, attribute: str, values: Any) -> Int[np.ndarray, " cells"]:
        """Return the codes of labels. The code of a label is its position among the labels of the attribute,
        counted from 0.

        Different spellings of a number are the same label, for example 3, 3.0, "3" and "3.00".

        Parameters
        ----------
        attribute : str
            Name of the attribute.
        values : sequence
            Labels to look up, for example as a list or a pandas Series.

        Returns
        -------
        int64[cells]
            Code of each label. For a label that the attribute does not have, the code is −1.
        """
        rule = self._own_labels[self.attributes[self.axis(attribute)]]
        if isinstance(kind := getattr(values, "dtype", None), np.dtype) and kind.kind in "iu":
            return rule.codes(pl.Series(np.asarray(values)))
        return rule.codes(each_as_text(values))

    def decode(self, attribute: str, codes: Int[np.ndarray, " cells"]) -> np.ndarray:
        """Return the labels with the given codes. The code of a label is its position among the labels of the
        attribute, counted from 0.
        """
        labels = self.labels and self.labels[self.axis(attribute)]
        if labels is None:
            return np.asarray(codes)
        if isinstance(labels, range):
            return labels.start + labels.step * np.asarray(codes)
        return np.asarray(labels, dtype=object)[codes]

    def frame(self, keys: Int[np.ndarray, " cells"]) -> pd.DataFrame:
        """Return a data frame with one row per cell and one column of labels per attribute. You pass the keys
        (numbers) of the cells.
        """
        return pd.DataFrame({a: self.decode(a, self.column(keys, a)) for a in self.attributes})

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a dictionary, in the form that `from_dict` reads and that you can write as
        JSON.

        The dictionary describes each attribute by a number of values, a range of integers, a list of labels, or
        a rule.
        """
        attributes: dict[str, Any] = {}
        for name, n, labels, rule in self._stated:
            if rule is not None:
                attributes[name] = rule_to_dict(rule)
            elif isinstance(labels, range):
                attributes[name] = range_to_dict(labels)
            else:
                attributes[name] = n if labels is None else list(labels)
        if self.missing_user != "refuse":
            nobody = self.missing_user
            attributes[_MISSING_USER] = (
                nobody if isinstance(nobody, str) else {"drop": [*nobody]}
            )
        return attributes

    @classmethod
    def from_dict(cls, attributes: dict[str, Any], folder: Path | None = Path()) -> Domain:
        """Create a domain from a dictionary, for example from the content of a JSON file.

        Parameters
        ----------
        attributes : dict
            Attributes by name, in the order in which the domain lists them. You can give an attribute in five
            ways. A number n stands for the values 0 to n − 1. {"from": a, "to": b} stands for the integers from
            a to b, both included, and may also have a "step". A list contains the labels. {"file": name} names
            a text file with one label per line. The fifth way is a rule of `workbench.spaces`, given as an
            object or as a dictionary of its fields. The entry `"missing_user": "drop"` leaves out rows without
            a user. The entry `"missing_user": {"drop": ["NA"]}` also leaves out rows whose user is NA.
        folder : Path, optional
            Folder that contains the files of labels and maps. Default: the current folder. With None, an entry
            that names a file raises an error. Use None for untrusted input.

        Returns
        -------
        Domain

        Raises
        ------
        ValueError
            If an attribute is not given in one of these ways.

        Examples
        --------
        >>> Domain.from_dict({"age": {"from": 0, "to": 99}, "sex": ["F", "M"]}).shape
        (100, 2)
        >>> Domain.from_dict({"age": {"low": 0, "high": 90, "width": 30, "missing": "label"}}).labels
        (('0 to under 30', '30 to under 60', '60 to under 90', 'missing'),)
        """
        if not isinstance(attributes, dict) or not attributes:
            raise ValueError(f"a domain is an object of attributes, got {shown(attributes)}")
        attributes, missing_user = without_missing_user(attributes)
        refuse_blanks(attributes)
        rules = [rule_from_dict(name, stated, folder) for name, stated in attributes.items()]
        labels = [
            None if isinstance(stated, int) else rule.all_labels
            for stated, rule in zip(attributes.values(), rules, strict=True)
        ]
        shape = tuple(len(rule.all_labels) for rule in rules)
        plain = (isinstance(rule, Labels) and rule == Labels(rule.labels) for rule in rules)
        prepared = tuple(None if x else rule for x, rule in zip(plain, rules, strict=True))
        return cls(tuple(attributes), shape, tuple(labels), prepared, missing_user)

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """Read a domain from a JSON file. The file contains the dictionary that `from_dict` takes as its
        first argument.

        The file may also contain the entry `"truth_public"`, which is not part of the domain. The function
        `states_public_truth` reads this entry.
        """
        attributes, _ = read_domain_file(Path(path))
        try:
            return cls.from_dict(attributes, Path(path).parent)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None


def _checked_labels(name: str, n: int, labels: Any) -> tuple[Any, ...] | range | None:
    """Return the labels of an attribute as Python values. Raise a ValueError if the labels have several
    types, if two labels are equal, or if their number is not `n`.
    """
    if labels is None:
        return None
    try:
        own = labels if isinstance(labels, range) else of_one_kind(labels)
        if len(own) != n:
            raise ValueError(f"need {n}, got {len(own)}")
        if not isinstance(own, range):
            text, count = Counter(map(str, own)).most_common(1)[0]
            if count > 1:
                raise ValueError(f"{shown(text)} occurs twice")
    except ValueError as e:
        raise ValueError(f"Domain.labels of {shown(name)}: {e}") from None
    return own
