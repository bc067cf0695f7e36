"""Domains: named attributes, their sizes and their labels, and the JSON file that holds one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import log10, prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.spaces.labels import Labels, of_one_kind
from workbench.spaces.rows import MAX_CELLS, Refusal, refusals, row_keys
from workbench.spaces.rules import Rule, why_no_unicode
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


def read_domain_file(path: Path) -> tuple[Any, bool]:
    """The attributes of a domain's file, and whether the truth is stated to be public."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such domain file") from None
    public = content.pop(_TRUTH_PUBLIC, False) if isinstance(content, dict) else False
    if not isinstance(public, bool):
        raise ValueError(
            f"{path}: {_TRUTH_PUBLIC} = {str(public)[:40]!r} is not allowed: need true (exact counts may "
            "be shown) or false; no attribute of a domain's file may be called so"
        )
    return content, public


def files_within(path: Path) -> list[Path]:
    """The files of labels and of maps that a domain's file names."""

    def named(stated: Any) -> Iterator[Path]:
        pairs = stated.items() if isinstance(stated, dict) else enumerate(stated)
        for word, x in pairs:
            if isinstance(x, dict | list):
                yield from named(x)
            elif word in ("file", "map") and isinstance(x, str):
                yield path.parent / x

    attributes, _ = read_domain_file(path)
    return list(named(attributes)) if isinstance(attributes, dict) else []


def states_public_truth(path: str | Path) -> bool:
    """Whether a domain's JSON file states that exact counts of the table beside it may be shown.

    It does by `"truth_public": true`. Without it they may not, and nothing compares with them.

    Raises
    ------
    ValueError
        If what it states is neither true nor false.
    """
    _, public = read_domain_file(Path(path))
    return public


# Domain


@value
class Domain:
    """Finite product of attributes. It is public knowledge and never learnt from the data.

    A cell is a row of codes, one an attribute; its *key* numbers the cells row by row, the last
    attribute fastest.

    Parameters
    ----------
    attributes : tuple of str
        Different names, none of them "count" or "noisy".
    shape : tuple of int
        How many values each attribute has. A domain of more than 2⁶³ − 1 cells in all is *wide*: its
        cells have no keys, and a `WideTable` holds them.
    labels : tuple, optional
        For each attribute a tuple of labels (text, integers, numbers, or true and false), a
        `range` of integers, or None where the codes are the values.
    preparation : tuple, optional
        For each attribute the rule by which its labels follow from the columns of a row, or None where
        they stand in the column of its name; `from_dict` makes it.
    missing_user : "refuse" or "drop"
        What happens to a row that names no user, where rows name users: an error, or it is left out. It
        is no part of which cells there are, so domains are equal whatever it says.

    Raises
    ------
    ValueError
        If names or labels are not different, or sizes, names and labels do not fit each other.

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
    missing_user: str = field(default="refuse", compare=False)

    def __post_init__(self) -> None:
        fix = object.__setattr__
        if self.missing_user not in ("refuse", "drop"):
            raise ValueError(
                f"{_MISSING_USER} = {shown(self.missing_user)} is not allowed: need 'refuse' or 'drop'"
            )
        try:
            fix(self, "attributes", tuple(self.attributes))
            fix(self, "shape", tuple(index(n) for n in self.shape))
        except TypeError:
            raise ValueError(
                f"Domain(attributes={shown(self.attributes)}, shape={shown(self.shape)}) is not "
                "allowed: need a list of names, and a list of integers as long"
            ) from None
        names = self.attributes
        if not names or len(names) != len(self.shape) or len(set(names)) != len(names):
            raise ValueError(
                f"Domain.attributes = {shown(names)} must be unique and as many as shape {self.shape}"
            )
        for name in names:
            need = why_no_unicode(name) if isinstance(name, str) else "need text"
            if need is not None:
                raise ValueError(f"Domain.attributes holds {shown(name)}: {need}")
        reserved = {"count", "noisy"} & set(names)
        if reserved:
            raise ValueError(
                f"Domain.attributes may not be called {sorted(reserved)}: releases have such columns"
            )
        if any(n < 1 for n in self.shape):
            raise ValueError(f"Domain.shape = {self.shape!r} is not allowed: need sizes >= 1")
        if max(self.shape) > MAX_CELLS:
            raise ValueError(
                f"Domain.shape = {self.shape!r} is not allowed: need sizes up to {MAX_CELLS}"
            )
        if self.labels is not None:
            fix(self, "labels", _checked_labels(names, self.shape, self.labels))
        if self.preparation is not None:
            self._refuse_rules_of_other_labels(tuple(self.preparation))

    def _refuse_rules_of_other_labels(self, rules: tuple[Rule | None, ...]) -> None:
        labels = self.labels or (None,) * len(self.shape)
        if len(rules) != len(self.shape):
            raise ValueError(f"Domain.preparation has {len(rules)} rules for {len(self.shape)}")
        for name, rule, own in zip(self.attributes, rules, labels, strict=True):
            if rule is not None and rule.all_labels != own:
                raise ValueError(f"Domain.labels of {shown(name)} must be those of its rule")
        fix = rules if any(rule is not None for rule in rules) else None
        object.__setattr__(self, "preparation", fix)

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Rule per attribute that turns a row into a label."""
        stated = self.preparation or (None,) * len(self.shape)
        labels = self.labels or (None,) * len(self.shape)
        return {
            name: rule or Labels(range(n) if own is None else own)
            for name, n, own, rule in zip(
                self.attributes, self.shape, labels, stated, strict=True
            )
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that its attributes follow from, each once."""
        names = [
            leaf.column or name for name, rule in self.rules.items() for leaf in rule.leaves
        ]
        return tuple(dict.fromkeys(names))

    def row_keys(
        self,
        columns: Mapping[str, Any],
        refusal: Callable[[int, str, str], Exception] | None = None,
    ) -> tuple[Int[np.ndarray, " kept"], Bool[np.ndarray, " rows"] | None]:
        """Keys of the cells of rows, as the preparation has them.

        Parameters
        ----------
        columns : polars frame, or mapping from name to Series
            At least those of `columns`, all of one length.
        refusal : callable, optional
            Of the number of a row, a column and what is needed: the error that names the row's place.

        Returns
        -------
        keys : int64[kept]
            Of the rows that are not left out.
        kept : bool[rows] or None
            Which rows these are; None, if all.

        Raises
        ------
        ValueError
            A value that is missing or has no label, where neither is stated.
        """
        return row_keys(self.rules, columns, refusal)

    def refusals(self, columns: Mapping[str, Any]) -> tuple[list[Refusal], int]:
        """Return the values that `row_keys` would refuse per column, and the number of rows it would drop.

        For the owner's eyes alone: it tells about the data.
        """
        return refusals(self.rules, columns)

    @property
    def size(self) -> int:
        """Number of cells of the domain."""
        return prod(self.shape)

    @property
    def is_wide(self) -> bool:
        """Whether it has too many cells for keys."""
        return self.size > MAX_CELLS

    @cached_property
    def parts(self) -> tuple[Domain, ...]:
        """Runs of attributes whose cells have keys: the domain itself unless it is wide."""
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
        """A ValueError for a wide domain, which says what can be asked of one."""
        if self.is_wide:
            raise ValueError(
                f"the domain has about 10^{log10(self.size):.0f} cells, and only 2^63 can be numbered. Choose "
                "some of its attributes (domain.project, table.project), or ask about few at a time: "
                "LaplaceQueries, GaussianQueries and sessions take a WideTable"
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """Step of a key when one attribute's code grows by one."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def axis(self, attribute: str) -> int:
        """The column number of an attribute."""
        if attribute not in self.attributes:
            raise ValueError(f"attribute {shown(attribute)} is not in {shown(self.attributes)}")
        return self.attributes.index(attribute)

    def keys(self, codes: Int[np.ndarray, "cells attributes"]) -> Int[np.ndarray, " cells"]:
        """Return the keys of cells.

        Parameters
        ----------
        codes : int[cells, attributes]
            A code of each attribute, from 0.

        Returns
        -------
        int64[cells]
            The number of each cell.

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
        """Keys back to cells."""
        return np.stack([self.column(keys, a) for a in self.attributes], axis=1)

    def column(
        self, keys: Int[np.ndarray, " cells"], attribute: str
    ) -> Int[np.ndarray, " cells"]:
        """Return the codes of one attribute; of a wide domain from keys of all its parts."""
        axis = self.axis(attribute)
        if self.is_wide:
            i = next(i for i, part in enumerate(self.parts) if attribute in part.attributes)
            return self.parts[i].column(keys[i], attribute)
        high = keys // self.strides[axis] if self.strides[axis] > 1 else keys
        return high % self.shape[axis] if axis else high

    def project(self, attributes: Sequence[str]) -> Domain:
        """The domain of a marginal."""
        axes = [self.axis(a) for a in attributes]
        labels = self.labels and tuple(self.labels[i] for i in axes)
        rules = self.preparation and tuple(self.preparation[i] for i in axes)
        shape = tuple(self.shape[i] for i in axes)
        return Domain(tuple(attributes), shape, labels, rules, self.missing_user)

    @cached_property
    def _indexes(self) -> dict[str, Any]:
        return {}

    def encode(self, attribute: str, values: Any) -> Int[np.ndarray, " cells"]:
        """Return the codes of labels.

        Labels are compared as text where the column and the labels are of different kinds, so that
        a CSV file read as text fits a range of integers.

        Parameters
        ----------
        attribute : str
            Its name.
        values : sequence
            Labels; a pandas Series as well.

        Returns
        -------
        int64[cells]
            The code of each value; −1 where a value is not in the domain.
        """
        axis = self.axis(attribute)
        labels = (self.labels and self.labels[axis]) or range(self.shape[axis])
        values = pd.Series(values)
        if isinstance(labels, range) and pd.api.types.is_integer_dtype(values.dtype):
            steps, rest = np.divmod(values.to_numpy(np.int64) - labels.start, labels.step)
            return np.where((rest == 0) & (steps >= 0) & (steps < len(labels)), steps, -1)
        kinds, different = values.factorize(use_na_sentinel=True)
        texts = [str(x) for x in different]
        if isinstance(labels, range):
            codes = np.array([_code_in_range(text, labels) for text in texts], np.int64)
        else:
            if attribute not in self._indexes:
                self._indexes[attribute] = pd.Index([str(label) for label in labels])
            codes = self._indexes[attribute].get_indexer(texts)
        return np.append(codes, -1)[kinds].astype(np.int64)

    def decode(self, attribute: str, codes: Int[np.ndarray, " cells"]) -> np.ndarray:
        """Return the labels of codes."""
        labels = self.labels and self.labels[self.axis(attribute)]
        if labels is None:
            return np.asarray(codes)
        if isinstance(labels, range):
            return labels.start + labels.step * np.asarray(codes)
        return np.asarray(labels, dtype=object)[codes]

    def frame(self, keys: Int[np.ndarray, " cells"]) -> pd.DataFrame:
        """The cells of `keys`, one labelled column an attribute."""
        return pd.DataFrame({a: self.decode(a, self.column(keys, a)) for a in self.attributes})

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads: number of values, integer range, labels or rule per attribute."""
        attributes: dict[str, Any] = {}
        rules = self.preparation or (None,) * len(self.shape)
        for i, (name, n) in enumerate(zip(self.attributes, self.shape, strict=True)):
            labels = self.labels and self.labels[i]
            rule = rules[i]
            if rule is not None:
                attributes[name] = rule_to_dict(rule)
            elif isinstance(labels, range):
                attributes[name] = range_to_dict(labels)
            else:
                attributes[name] = n if labels is None else list(labels)
        if self.missing_user != "refuse":
            attributes[_MISSING_USER] = self.missing_user
        return attributes

    @classmethod
    def from_dict(cls, attributes: dict[str, Any], folder: Path | None = Path()) -> Domain:
        """A domain from plain values, as JSON has them.

        Parameters
        ----------
        attributes : dict
            In the order of keys, each attribute is a number of values (codes 0, 1, …),
            {"from": a, "to": b} (integers, both ends included; "step" if not 1), a list of
            labels, {"file": name} (labels, one a line), or a rule of `workbench.spaces`: itself,
            or an object of its fields. Beside them `"missing_user": "drop"` leaves out rows that name
            no user.
        folder : Path, optional
            Where files of labels and maps are: beside the JSON file. None: files are not read, as those
            that a stranger's file names.

        Returns
        -------
        Domain
            Of these attributes.

        Raises
        ------
        ValueError
            If an attribute is something else.

        Examples
        --------
        >>> Domain.from_dict({"age": {"from": 0, "to": 99}, "sex": ["F", "M"]}).shape
        (100, 2)
        >>> Domain.from_dict({"age": {"low": 0, "high": 90, "width": 30, "missing": "label"}}).labels
        (('0 to under 30', '30 to under 60', '60 to under 90', 'missing'),)
        """
        if not isinstance(attributes, dict) or not attributes:
            raise ValueError(f"a domain is an object of attributes, got {shown(attributes)}")
        missing_user = attributes.get(_MISSING_USER)
        if isinstance(missing_user, str):
            attributes = {x: of for x, of in attributes.items() if x != _MISSING_USER}
        else:
            missing_user = "refuse"
        refuse_blanks(attributes)
        shape = []
        labels: list[tuple[Any, ...] | range | None] = []
        rules: list[Rule | None] = []
        for name, stated in attributes.items():
            rule = rule_from_dict(name, stated, folder)
            is_number = isinstance(stated, int)
            is_plain = isinstance(rule, Labels) and rule.is_plain
            all_labels = None if is_number else rule.all_labels
            labels.append(all_labels)
            rules.append(None if is_plain else rule)
            shape.append(stated if all_labels is None else len(all_labels))
        made = tuple(attributes), tuple(shape), tuple(labels), tuple(rules)
        return cls(*made, missing_user)

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """A domain from a JSON file, as `from_dict` reads it.

        Beside its attributes the file may say `"truth_public"`, which `states_public_truth` reads.
        """
        attributes, _ = read_domain_file(Path(path))
        try:
            return cls.from_dict(attributes, Path(path).parent)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None


def _code_in_range(text: str, numbers: range) -> int:
    """The code of a number as text; −1 if it is not in the range, or is not written plainly."""
    try:
        number = int(text)
    except ValueError:
        return -1
    return numbers.index(number) if number in numbers and str(number) == text else -1


def _checked_labels(
    names: Sequence[str], shape: Sequence[int], labels: Sequence[Any]
) -> tuple[tuple[Any, ...] | range | None, ...] | None:
    """Labels as Python's own values, all checked; None where no attribute has any."""
    if len(labels) != len(names):
        raise ValueError(f"Domain.labels has {len(labels)} lists for {len(names)} attributes")
    checked = []
    for name, n, values in zip(names, shape, labels, strict=True):
        if values is not None and not isinstance(values, range):
            try:
                values = of_one_kind(values)
            except ValueError as e:
                raise ValueError(f"Domain.labels of {shown(name)}: {e}") from None
        if values is not None and len(values) != n:
            raise ValueError(
                f"Domain.labels of {shown(name)} must be {n} labels, got {len(values)}"
            )
        if isinstance(values, tuple) and len(set(map(str, values))) != n:
            twice = next(text for text, k in Counter(map(str, values)).items() if k > 1)
            raise ValueError(
                f"Domain.labels of {shown(name)} must be different: {shown(twice)} stands twice"
            )
        checked.append(values)
    return None if all(values is None for values in checked) else tuple(checked)
