"""Domains: named attributes, their sizes and their labels, and the JSON file that holds one."""

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
from workbench.spaces.rules import DROPPED, REFUSED, Refused, Rule, check_texts
from workbench.spaces.statements import (
    range_to_dict,
    read_json,
    refuse_blanks,
    rule_from_dict,
    rule_to_dict,
)
from workbench.value import Bool, Int, shown, value

# Domain file

_TRUTH_PUBLIC = "truth_public"  # keys of a domain's file that are no attributes
_MISSING_USER = "missing_user"


def read_domain_file(path: Path) -> tuple[dict[str, Any], bool]:
    """Return the attributes of a domain file, and whether the file states that the truth is public."""
    content = read_json(path)
    public = content.pop(_TRUTH_PUBLIC, False) if isinstance(content, dict) else False
    if not isinstance(public, bool):
        raise ValueError(
            f"{path}: {_TRUTH_PUBLIC} = {str(public)[:40]!r} is not allowed: need true (exact counts may "
            "be shown) or false. No attribute of a domain file may have this name"
        )
    return content, public


def without_missing_user(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the attributes of a domain file. Also return what the file states about rows without a user."""
    attributes = dict(attributes)
    stated = attributes.get(_MISSING_USER, "refuse")
    if isinstance(stated, dict) and [*stated] == ["drop"]:
        stated = stated["drop"]
    elif not isinstance(stated, str):
        return attributes, "refuse"  # an attribute of this name
    attributes.pop(_MISSING_USER, None)
    return attributes, _nobody(stated)


def _nobody(stated: Any) -> Any:
    """Return what is stated about rows without a user, if it is allowed."""
    if stated in ("refuse", "drop"):
        return stated
    if check_texts(stated) is not None:
        raise ValueError(
            f"missing_user = {shown(stated)} is not allowed: need 'refuse', 'drop', or "
            '{"drop": […]} with the texts that mean nobody'
        )
    return tuple(map(str, stated))


def files_within(path: Path) -> list[Path]:
    """Return the files of labels and maps that a domain file names."""
    files = []
    stated = [read_json(path)]
    for x in stated:  # which grows by what is in it
        if isinstance(x, dict):
            names = (x.get(word) for word in ("file", "map"))
            files += [path.parent / name for name in names if isinstance(name, str)]
            stated += x.values()
        elif isinstance(x, list):
            stated += x
    return files


def states_public_truth(path: str | Path) -> bool:
    """Return whether a domain file states `"truth_public": true`, so that exact counts may be shown.

    The workbench compares estimates with exact counts only if the file states this.

    Raises
    ------
    ValueError
        If the file states something other than true or false.
    """
    return read_domain_file(Path(path))[1]


# Domain

MAX_CELLS = 2**63 - 1  # keys are int64


@value
class Domain:
    """List of attributes, each with a finite number of values. A domain is public knowledge, and must not
    come from the data.

    A cell is a combination of values, given as one code per attribute. Cells are numbered so that the code
    of the last attribute changes fastest. The number of a cell is its *key*.

    Parameters
    ----------
    attributes : tuple of str
        Different names, none of them "count" or "noisy".
    shape : tuple of int
        Number of values of each attribute. A domain with more than 2⁶³ − 1 cells is *wide*. Its cells
        have no keys, and its table is a `WideTable`.
    labels : tuple, optional
        For each attribute a tuple of labels (text, integers, numbers, or true and false), a `range` of
        integers, or None if the codes are the values.
    preparation : tuple, optional
        For each attribute, the rule that derives its labels from the columns of a row, or None where
        the column of the same name holds them. `from_dict` makes the rules.
    missing_user : "refuse", "drop" or tuple of texts
        What happens to a row without a user in a table whose rows name users. "refuse" raises an error,
        and "drop" leaves the row out. Texts, for example ("NA", "unknown"), are users that mean nobody. Their
        rows are left out too. Domains that differ only in this field are equal, because they have the
        same cells.

    Raises
    ------
    ValueError
        If two names or two labels are equal, or the numbers of names, sizes and labels differ.

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
        """Return the name, size, labels and rule of each attribute, with None for labels or rules that
        are not stated.
        """
        none = (None,) * len(self.shape)
        names = self.attributes, self.shape, self.labels or none, self.preparation or none
        return zip(*names, strict=True)

    @cached_property
    def _own_labels(self) -> dict[str, Labels]:
        """Rule per attribute that reads its labels from a column of labels."""
        return {x: Labels(range(n) if own is None else own) for x, n, own, _ in self._stated}

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Rule of each attribute. It turns a row into a label."""
        return {name: rule or self._own_labels[name] for name, _, _, rule in self._stated}

    @cached_property
    def _leaves(self) -> list[tuple[str, Rule]]:
        """Columns in the order of reading, each with its rule. A crossed rule reads several columns."""
        rules = self.rules.items()
        return [(leaf.column or name, leaf) for name, rule in rules for leaf in rule.leaves]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a data frame from which the values of the attributes are computed, each once."""
        return tuple(dict.fromkeys(column for column, _ in self._leaves))

    def row_keys(
        self, columns: Mapping[str, pl.Series] | pl.DataFrame
    ) -> tuple[Int[np.ndarray, " kept"], Bool[np.ndarray, " rows"] | None, Refused]:
        """Return the key (the number of its cell) of each row of a data frame.

        Parameters
        ----------
        columns : polars frame, or mapping from name to Series
            The columns that `columns` names, all of one length, and possibly others.

        Returns
        -------
        keys : int64[kept], or int64[parts, kept] of a wide domain
            Keys of the rows that no rule leaves out. If any row is refused, they are not to be used.
        kept : bool[rows] or None
            Which rows these are. None stands for all rows.
        refused : list
            Name of each column with values that are refused, what is allowed, and which rows these are.
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
        """Number of cells of the domain."""
        return prod(self.shape)

    @property
    def is_wide(self) -> bool:
        """Whether the domain is wide, which means that it has too many cells to number them."""
        return self.size > MAX_CELLS

    @cached_property
    def parts(self) -> tuple[Domain, ...]:
        """Parts of the domain whose cells have keys. Each has some consecutive attributes. There is one
        part, the domain itself, unless the domain is wide.
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
        """Raise a ValueError if the domain has too many cells to number them. The message explains what to do
        instead.
        """
        if self.is_wide:
            raise ValueError(
                f"the domain has about 10^{log10(self.size):.0f} cells, and only 2^63 can be numbered. Choose "
                "some of its attributes (domain.project, table.project), or ask about few at a time: "
                "LaplaceQueries, GaussianQueries and sessions take a WideTable"
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """Difference between the keys (numbers) of two cells whose codes differ by 1 in one attribute. There is
        one number for each attribute.
        """
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def axis(self, attribute: str) -> int:
        """Return the position of an attribute in the list of attributes."""
        if attribute not in self.attributes:
            raise ValueError(f"attribute {shown(attribute)} is not in {shown(self.attributes)}")
        return self.attributes.index(attribute)

    def keys(self, codes: Int[np.ndarray, "cells attributes"]) -> Int[np.ndarray, " cells"]:
        """Return the keys (numbers) of cells, which are given by their codes. A code is the number of a value.

        Parameters
        ----------
        codes : int[cells, attributes]
            Code of each attribute, from 0.

        Returns
        -------
        int64[cells]
            Number of each cell.

        Raises
        ------
        ValueError
            If a code is outside its attribute.
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
        """Return the codes (the numbers of the values) of the cells with the given keys."""
        return np.stack([self.column(keys, a) for a in self.attributes], axis=1)

    def column(
        self, keys: Int[np.ndarray, " cells"], attribute: str
    ) -> Int[np.ndarray, " cells"]:
        """Return the codes of one attribute. For a wide domain, pass the keys of all parts."""
        axis = self.axis(attribute)
        if self.is_wide:
            i = next(i for i, part in enumerate(self.parts) if attribute in part.attributes)
            return self.parts[i].column(keys[i], attribute)
        high = keys // self.strides[axis] if self.strides[axis] > 1 else keys
        return high % self.shape[axis] if axis else high

    def project(self, attributes: Sequence[str]) -> Domain:
        """Return the domain of some of the attributes, in the given order."""
        axes = [self.axis(a) for a in attributes]
        labels = self.labels and tuple(self.labels[i] for i in axes)
        rules = self.preparation and tuple(self.preparation[i] for i in axes)
        shape = tuple(self.shape[i] for i in axes)
        return Domain(tuple(attributes), shape, labels, rules, self.missing_user)

    def encode(self, attribute: str, values: Any) -> Int[np.ndarray, " cells"]:
        """Return the codes of labels. A code is the number of the label among those of its attribute.

        Different spellings of a number are one label, for example 3, 3.0, "3" and "3.00".

        Parameters
        ----------
        attribute : str
            Name of the attribute.
        values : sequence
            Labels, for example a list or a pandas Series.

        Returns
        -------
        int64[cells]
            The code of each value, or −1 for a value that is not in the domain.
        """
        rule = self._own_labels[self.attributes[self.axis(attribute)]]
        values = pd.Series(values)
        if pd.api.types.is_integer_dtype(values.dtype):
            return rule.codes(pl.Series(values.to_numpy(np.int64)))
        places, different = values.factorize(use_na_sentinel=True)
        codes = rule.codes(pl.Series([str(x) for x in different], dtype=pl.String))
        return np.append(codes, -1)[places].astype(np.int64)

    def decode(self, attribute: str, codes: Int[np.ndarray, " cells"]) -> np.ndarray:
        """Return the labels that belong to codes. A code is the number of a label among those of its
        attribute.
        """
        labels = self.labels and self.labels[self.axis(attribute)]
        if labels is None:
            return np.asarray(codes)
        if isinstance(labels, range):
            return labels.start + labels.step * np.asarray(codes)
        return np.asarray(labels, dtype=object)[codes]

    def frame(self, keys: Int[np.ndarray, " cells"]) -> pd.DataFrame:
        """Return a data frame with the labels of the given cells, with one column per attribute."""
        return pd.DataFrame({a: self.decode(a, self.column(keys, a)) for a in self.attributes})

    def to_dict(self) -> dict[str, Any]:
        """Return the domain in the form that `from_dict` reads. Each attribute has a number of values, a
        range of integers, labels, or a rule.
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
        """Make a domain from plain values, for example from JSON.

        Parameters
        ----------
        attributes : dict
            In the order of keys, each attribute is a number of values (codes 0, 1, …),
            {"from": a, "to": b} (integers with both ends, and "step" if it is not 1), a list of
            labels, {"file": name} (one label per line), or a rule of `workbench.spaces`, either the
            rule itself or an object of its fields. `"missing_user": "drop"` leaves out rows without a
            user, and `"missing_user": {"drop": ["NA"]}` also rows whose user is NA.
        folder : Path, optional
            Folder of the files of labels and maps. With None, such files raise an error. Use None for
            untrusted input.

        Returns
        -------
        Domain

        Raises
        ------
        ValueError
            If an attribute is stated in another way.

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
        """Read a domain from a JSON file with the argument of `from_dict`.

        The file may also state `"truth_public"`, which `states_public_truth` reads.
        """
        attributes, _ = read_domain_file(Path(path))
        try:
            return cls.from_dict(attributes, Path(path).parent)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None


def _checked_labels(name: str, n: int, labels: Any) -> tuple[Any, ...] | range | None:
    """Return the labels as Python's own values."""
    if labels is None:
        return None
    try:
        own = labels if isinstance(labels, range) else of_one_kind(labels)
        if len(own) != n:
            raise ValueError(f"need {n}, got {len(own)}")
        if not isinstance(own, range):
            text, count = Counter(map(str, own)).most_common(1)[0]
            if count > 1:
                raise ValueError(f"{shown(text)} stands twice")
    except ValueError as e:
        raise ValueError(f"Domain.labels of {shown(name)}: {e}") from None
    return own
