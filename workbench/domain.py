"""Where counts live: named attributes, how many values each can take, and their labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from workbench.value import value

if TYPE_CHECKING:
    import pandas as pd

MAX_CELLS = 2**63 - 1  # keys are int64


@value
class Domain:
    """A finite product of attributes; public knowledge, never learnt from the data.

    A cell is a row of codes, one per attribute; its *key* numbers the cells row by row, the last
    attribute fastest. `labels` holds, per attribute, a tuple of names, a `range` of whole numbers, or
    None where the codes are the values.

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
        if reserved := {"count", "noisy"} & set(names):
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
            kept = tuple(
                w if w is None or isinstance(w, range) else tuple(w) for w in self.labels
            )
            if len(kept) != len(names):
                raise ValueError(
                    f"Domain.labels has {len(kept)} lists for {len(names)} attributes"
                )
            kept = tuple(map(_plain, names, self.shape, kept))
            fix(self, "labels", None if all(w is None for w in kept) else kept)

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
        """Cells to keys; a code outside its attribute is a ValueError."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.shape):
            raise ValueError(
                f"codes of shape {codes.shape} do not fit {len(self.shape)} attributes"
            )
        keys = np.zeros(len(codes), np.int64)
        for column, (name, n) in enumerate(zip(self.attributes, self.shape, strict=True)):
            c = codes[:, column]
            outside = (c < 0) | (c >= n)
            if outside.any():
                row = int(outside.argmax())
                raise ValueError(f"{name} has code {c[row]} in row {row}: need 0 <= code < {n}")
            keys *= n
            keys += c
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
        """Labels to codes; −1 where a value is not in the domain.

        Labels are compared as text where the column and the labels are of different kinds, so that
        a CSV file read as text fits a range of whole numbers.
        """
        import pandas as pd

        axis = self.axis(attribute)
        words = (self.labels and self.labels[axis]) or range(self.shape[axis])
        values = pd.Series(values)
        if isinstance(words, range) and pd.api.types.is_integer_dtype(values.dtype):
            steps, rest = np.divmod(values.to_numpy(np.int64) - words.start, words.step)
            return np.where((rest == 0) & (steps >= 0) & (steps < len(words)), steps, -1)
        kinds, which = values.factorize(use_na_sentinel=True)
        texts = [str(w) for w in which]
        if isinstance(words, range):
            found = np.array([_place(t, words) for t in texts], np.int64)
        else:
            if attribute not in self._indexes:
                self._indexes[attribute] = pd.Index([str(w) for w in words])
            found = self._indexes[attribute].get_indexer(texts)
        return np.append(found, -1)[kinds].astype(np.int64)

    def decode(self, attribute: str, codes: Int[np.ndarray, " cells"]) -> np.ndarray:
        """Codes to labels."""
        words = self.labels and self.labels[self.axis(attribute)]
        if words is None:
            return np.asarray(codes)
        if isinstance(words, range):
            return words.start + words.step * np.asarray(codes)
        return np.asarray(words, dtype=object)[codes]

    def frame(self, keys: Int[np.ndarray, " cells"]) -> pd.DataFrame:
        """The cells of `keys`, one labelled column an attribute."""
        import pandas as pd

        return pd.DataFrame({a: self.decode(a, self.column(keys, a)) for a in self.attributes})

    def to_dict(self) -> dict:
        """What `from_dict` reads: attribute → number of values, whole-number range, or labels."""
        told: dict = {}
        for i, (name, n) in enumerate(zip(self.attributes, self.shape, strict=True)):
            words = self.labels and self.labels[i]
            if isinstance(words, range):
                told[name] = {"from": words[0], "to": words[-1]}
                told[name] |= {} if words.step == 1 else {"step": words.step}
            else:
                told[name] = n if words is None else list(words)
        return told

    @classmethod
    def from_dict(cls, told: dict, folder: Path = Path()) -> Domain:
        """A domain in plain words; the order of attributes is the order of keys.

        Each attribute is a number of values (codes 0, 1, …), {"from": a, "to": b} (whole numbers, both
        ends included), a list of labels, or {"file": name} (labels, one a line, beside the JSON file).

        >>> Domain.from_dict({"age": {"from": 0, "to": 99}, "sex": ["F", "M"]}).shape
        (100, 2)
        """
        if not isinstance(told, dict) or not told:
            raise ValueError(f"a domain is an object of attributes, got {str(told)[:80]!r}")
        shape, labels = [], []
        for name, words in told.items():
            match words:
                case bool():
                    words = None
                case int():
                    shape, labels = [*shape, words], [*labels, None]
                    continue
                case {"from": int(a), "to": int(b), **more} if set(more) <= {"step"}:
                    step = more.get("step", 1)
                    words = range(a, b + (1 if step > 0 else -1), step)
                case {"file": str(file)}:
                    words = _lines(folder / file, name)
                case [*_]:
                    words = tuple(words)
                case _:
                    words = None
            if not words:
                raise ValueError(
                    f"attribute {name!r} of the domain: need a number of values, "
                    '{"from": a, "to": b}, a list of labels, or {"file": name}; got '
                    f"{str(told[name])[:60]!r}"
                )
            shape, labels = [*shape, len(words)], [*labels, words]
        return cls(tuple(told), tuple(shape), tuple(labels))

    @classmethod
    def read(cls, path: str | Path) -> Domain:
        """A domain from a JSON file, as `from_dict` reads it."""
        path = Path(path)
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as e:
            raise ValueError(f"{path}, line {e.lineno}: not JSON ({e.msg})") from None
        return cls.from_dict(told, path.parent)


def _lines(path: Path, name: str) -> tuple[str, ...]:
    """Labels from a file, one a line; blank lines and a byte-order mark are not labels."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as e:
        raise ValueError(f"attribute {name!r} of the domain: {path}: {e.strerror}") from None
    return tuple(line.strip() for line in lines if line.strip())


def _place(text: str, numbers: range) -> int:
    """Where a number as text stands in a range; −1 if it does not, or is not written plainly."""
    try:
        number = int(text)
    except ValueError:
        return -1
    return numbers.index(number) if number in numbers and str(number) == text else -1


def _plain(name: str, n: int, words: tuple | range | None) -> tuple | range | None:
    """Labels as Python's own, or a ValueError: as many as values, different, all of one kind."""
    if isinstance(words, tuple):
        words = tuple(w.item() if hasattr(w, "item") else w for w in words)
        kinds = {type(w) for w in words}
        fit = len(kinds) <= 1 and kinds <= {str, int, float, bool}
        if (
            not fit
            or any(w != w for w in words)
            or (kinds == {int} and max(map(abs, words)) >= 2**63)
        ):
            raise ValueError(
                f"Domain.labels of {name!r} must be all text, all whole numbers (64 bits), all "
                "numbers, or all true or false"
            )
        if kinds == {str}:
            try:
                "".join(words).encode()
            except UnicodeEncodeError as e:
                raise ValueError(
                    f"Domain.labels of {name!r} must be valid Unicode: {e}"
                ) from None
    if words is not None and len(words) != n:
        raise ValueError(f"Domain.labels of {name!r} must be {n} labels, got {len(words)}")
    if isinstance(words, tuple) and len(set(map(str, words))) != n:
        twice = next(w for w, k in Counter(map(str, words)).items() if k > 1)
        raise ValueError(f"Domain.labels of {name!r} must be different: {twice!r} stands twice")
    return words
