"""Where counts live: named attributes, how many values each can take, and their labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from workbench.arrays import Int
from workbench.libraries import pd
from workbench.value import value

MAX_CELLS = 2**63 - 1  # keys are int64
_TRUTH_PUBLIC = "truth_public"  # the one key of a domain's file that is no attribute


@value
class Domain:
    """A finite product of attributes; public knowledge, never learnt from the data.

    A cell is a row of codes, one an attribute; its *key* numbers the cells row by row, the last
    attribute fastest.

    Parameters
    ----------
    attributes : tuple of str
        Different names, none of them "count" or "noisy".
    shape : tuple of int
        How many values each attribute has; at most 2⁶³ − 1 cells in all.
    labels : tuple, optional
        For each attribute a tuple of labels (text, whole numbers, numbers, or true and false), a
        `range` of whole numbers, or None where the codes are the values.

    Raises
    ------
    ValueError
        If names or labels are not different, or sizes, names and labels do not fit each other.

    Examples
    --------
    >>> Domain(("movie", "stars"), (17770, 5)).size
    88850
    >>> Domain(("home", "work"), (3037000500, 3037000500))
    Traceback (most recent call last):
    ValueError: Domain.shape has 9223372037000250000 cells; at most 9223372036854775807 are possible
    """

    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    labels: tuple[tuple | range | None, ...] | None = None

    def __post_init__(self):
        fix = object.__setattr__
        fix(self, "attributes", tuple(self.attributes))
        fix(self, "shape", tuple(int(n) for n in self.shape))
        names = self.attributes
        if not names or len(names) != len(self.shape) or len(set(names)) != len(names):
            raise ValueError(
                f"Domain.attributes = {names!r} must be unique and as many as shape {self.shape}"
            )
        reserved = {"count", "noisy"} & set(names)
        if reserved:
            raise ValueError(
                f"Domain.attributes may not be called {sorted(reserved)}: releases have such columns"
            )
        if any(n < 1 for n in self.shape):
            raise ValueError(f"Domain.shape = {self.shape!r} is not allowed: need sizes >= 1")
        if self.size > MAX_CELLS:
            raise ValueError(
                f"Domain.shape has {self.size} cells; at most {MAX_CELLS} are possible"
            )
        if self.labels is not None:
            fix(self, "labels", _checked_labels(names, self.shape, self.labels))

    @property
    def size(self) -> int:
        """How many cells the domain has."""
        return prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How far a key moves when one attribute's code moves by one."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def axis(self, attribute: str) -> int:
        """The column number of an attribute."""
        if attribute not in self.attributes:
            raise ValueError(f"attribute {attribute!r} is not in {self.attributes}")
        return self.attributes.index(attribute)

    def keys(self, codes: Int[np.ndarray, "cells attributes"]) -> Int[np.ndarray, " cells"]:
        """Cells to keys.

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
        """One attribute's codes."""
        axis = self.axis(attribute)
        high = keys // self.strides[axis] if self.strides[axis] > 1 else keys
        return high % self.shape[axis] if axis else high

    def project(self, attributes: Sequence[str]) -> Domain:
        """The domain of a marginal."""
        axes = [self.axis(a) for a in attributes]
        labels = self.labels and tuple(self.labels[i] for i in axes)
        return Domain(tuple(attributes), tuple(self.shape[i] for i in axes), labels)

    @cached_property
    def _indexes(self) -> dict:
        return {}

    def encode(self, attribute: str, values: Any) -> Int[np.ndarray, " cells"]:
        """Labels to codes.

        Labels are compared as text where the column and the labels are of different kinds, so that
        a CSV file read as text fits a range of whole numbers.

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
        """Codes to labels."""
        labels = self.labels and self.labels[self.axis(attribute)]
        if labels is None:
            return np.asarray(codes)
        if isinstance(labels, range):
            return labels.start + labels.step * np.asarray(codes)
        return np.asarray(labels, dtype=object)[codes]

    def frame(self, keys: Int[np.ndarray, " cells"]) -> pd.DataFrame:
        """The cells of `keys`, one labelled column an attribute."""
        return pd.DataFrame({a: self.decode(a, self.column(keys, a)) for a in self.attributes})

    def to_dict(self) -> dict:
        """What `from_dict` reads: attribute → number of values, whole-number range, or labels."""
        attributes: dict = {}
        for i, (name, n) in enumerate(zip(self.attributes, self.shape, strict=True)):
            labels = self.labels and self.labels[i]
            if isinstance(labels, range):
                attributes[name] = {"from": labels[0], "to": labels[-1]}
                if labels.step != 1:
                    attributes[name]["step"] = labels.step
            else:
                attributes[name] = n if labels is None else list(labels)
        return attributes

    @classmethod
    def from_dict(cls, attributes: dict, folder: Path = Path()) -> Domain:
        """A domain from plain values, as JSON has them.

        Parameters
        ----------
        attributes : dict
            In the order of keys, each attribute is a number of values (codes 0, 1, …),
            {"from": a, "to": b} (whole numbers, both ends included; "step" if not 1), a list of
            labels, or {"file": name} (labels, one a line).
        folder : Path
            Where files of labels are: beside the JSON file.

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
        """
        if not isinstance(attributes, dict) or not attributes:
            raise ValueError(
                f"a domain is an object of attributes, got {str(attributes)[:80]!r}"
            )
        shape = []
        labels = []
        for name, values in attributes.items():
            if isinstance(values, int) and not isinstance(values, bool):
                shape.append(values)
                labels.append(None)
            else:
                labels.append(_labels_from_json(name, values, folder))
                shape.append(len(labels[-1]))
        return cls(tuple(attributes), tuple(shape), tuple(labels))

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """A domain from a JSON file, as `from_dict` reads it.

        Beside its attributes the file may say `"truth_public"`, which `states_public_truth` reads.
        """
        attributes, _ = _read_domain_file(Path(path))
        return cls.from_dict(attributes, Path(path).parent)


def states_public_truth(path: str | Path) -> bool:
    """Whether a domain's JSON file states that exact counts of the table beside it may be shown.

    It does by `"truth_public": true`. Without it they may not, and nothing compares with them.

    Raises
    ------
    ValueError
        If what it states is neither true nor false.
    """
    _, public = _read_domain_file(Path(path))
    return public


def _read_domain_file(path: Path) -> tuple[Any, bool]:
    """The attributes of a domain's file, and whether the truth is stated to be public."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such domain file") from None
    except json.JSONDecodeError as e:
        raise ValueError(f"{path}, line {e.lineno}: not JSON ({e.msg})") from None
    public = content.pop(_TRUTH_PUBLIC, False) if isinstance(content, dict) else False
    if not isinstance(public, bool):
        raise ValueError(
            f"{path}: {_TRUTH_PUBLIC} = {str(public)[:40]!r} is not allowed: need true (exact counts may "
            "be shown) or false; no attribute of a domain's file may be called so"
        )
    return content, public


def _labels_from_json(name: str, values: Any, folder: Path) -> tuple | range:
    """Labels as `Domain.from_dict` takes them."""
    labels: tuple | range = ()
    match values:
        case {"from": int(a), "to": int(b), **more} if set(more) <= {"step"}:
            step = more.get("step", 1)
            labels = range(a, b + (1 if step > 0 else -1), step)
        case {"file": str(file)}:
            labels = _labels_from_file(folder / file, name)
        case [*_]:
            labels = tuple(values)
    if not labels:
        raise ValueError(
            f"attribute {name!r} of the domain: need a number of values, "
            '{"from": a, "to": b}, a list of labels, or {"file": name}; got '
            f"{str(values)[:60]!r}"
        )
    return labels


def _labels_from_file(path: Path, name: str) -> tuple[str, ...]:
    """Labels from a file, one a line; blank lines and a byte-order mark are not labels."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as e:
        raise ValueError(f"attribute {name!r} of the domain: {path}: {e.strerror}") from None
    return tuple(line.strip() for line in lines if line.strip())


def _code_in_range(text: str, numbers: range) -> int:
    """The code of a number as text; −1 if it is not in the range, or is not written plainly."""
    try:
        number = int(text)
    except ValueError:
        return -1
    return numbers.index(number) if number in numbers and str(number) == text else -1


def _checked_labels(names, shape, labels) -> tuple[tuple | range | None, ...] | None:
    """Labels as Python's own values, all checked; None where no attribute has any."""
    if len(labels) != len(names):
        raise ValueError(f"Domain.labels has {len(labels)} lists for {len(names)} attributes")
    checked = []
    for name, n, values in zip(names, shape, labels, strict=True):
        if values is not None and not isinstance(values, range):
            values = _of_one_kind(name, values)
        if values is not None and len(values) != n:
            raise ValueError(f"Domain.labels of {name!r} must be {n} labels, got {len(values)}")
        if isinstance(values, tuple) and len(set(map(str, values))) != n:
            twice = next(text for text, k in Counter(map(str, values)).items() if k > 1)
            raise ValueError(
                f"Domain.labels of {name!r} must be different: {twice!r} stands twice"
            )
        checked.append(values)
    return None if all(values is None for values in checked) else tuple(checked)


def _of_one_kind(name: str, labels) -> tuple:
    """Labels as Python's own values, or a ValueError if they are not all of one kind."""
    labels = tuple(label.item() if hasattr(label, "item") else label for label in labels)
    kinds = {type(label) for label in labels}
    allowed = len(kinds) <= 1 and kinds <= {str, int, float, bool}
    missing = any(label != label for label in labels)  # NaN
    if not allowed or missing or (kinds == {int} and max(map(abs, labels)) >= 2**63):
        raise ValueError(
            f"Domain.labels of {name!r} must be all text, all whole numbers (64 bits), all "
            "numbers, or all true or false"
        )
    if kinds == {str}:
        try:
            "".join(labels).encode()
        except UnicodeEncodeError as e:
            raise ValueError(f"Domain.labels of {name!r} must be valid Unicode: {e}") from None
    return labels
