"""Preparation rules, which turn one value into a code, and define the treatment of other and missing
values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from workbench.compiled import pl
from workbench.value import Int, not_allowed, parameter, plain, shown, value

# Matching

_EXACT = 2**53  # a float of this size may be a rounded integer
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-][0-9]{1,3})?")
OTHERWISE = r"^-?[0-9].*[.eE]|^-0$|[^\x00-\x7F]"  # texts that may be written otherwise


def canonical(x: Any) -> str:
    """Return the text of a value in its standard spelling. Values are compared with labels by this text.

    Letters are in Unicode's composed form (NFC). A text counts as a number if it is a decimal without a
    plus sign or leading zeros. An exponent needs a sign. So 3, 3.0, "3" and "3.00" are one label, but "007"
    and "1e5" stay texts.
    """
    text = str(x)
    if not _NUMBER.fullmatch(text):
        return normalize("NFC", text)
    if "e" in text or "E" in text:
        text = format(Decimal(text), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def as_texts(values: pl.Series) -> pl.Series:
    """Return each value as text. For example, the float 12.0 becomes "12"."""
    if not values.dtype.is_float():
        return values.cast(pl.String)
    different = values.unique()
    texts = [None if x is None else canonical(x) for x in different]
    return values.replace_strict(different, texts, return_dtype=pl.String)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with their positions. In a column of any type, values are found by their standard spelling."""

    places_of: Mapping[str, int]

    def __post_init__(self) -> None:
        _ = self._canonical  # raises its error before any row is read

    @cached_property
    def _canonical(self) -> dict[str, int]:
        places: dict[str, int] = {}
        for text, place in self.places_of.items():
            if places.setdefault(canonical(text), place) != place:
                first = next(x for x in self.places_of if canonical(x) == canonical(text))
                raise ValueError(
                    f"{shown(first)} and {shown(text)} are one label, written in two ways. Keep one of them."
                )
        return places

    @cached_property
    def _known(self) -> tuple[pl.Enum, pl.Series]:
        places = self._canonical | dict(self.places_of)
        return pl.Enum([*places]), pl.Series([*places.values()], dtype=pl.Int64)

    @cached_property
    def _numbers(self) -> dict[Any, dict[Any, int]]:
        """Positions of the texts that are integers, and of those that are floats."""
        numbers: dict[Any, dict[Any, int]] = {int: {}, float: {}}
        for text, place in self._canonical.items():
            for kind, places in numbers.items():
                with suppress(ValueError):
                    if canonical(kind(text)) == text:
                        places[kind(text)] = place
        return numbers

    def have(self, values: pl.Series) -> pl.Series:
        """Return a mask of the values that are among the texts."""
        if not self.places_of:
            return pl.Series([False]).new_from_index(0, len(values))
        return self.places(values).is_not_null()

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position of each value among the texts. It is null for other values."""
        kind = values.dtype
        if kind.is_float():
            values = values.cast(pl.Float64)
            large = [float(x) for x in self._numbers[int] if abs(x) >= _EXACT]
            _refuse_rounded(values, values.is_in(large))
            return _replaced(values, self._numbers[float])
        if kind.is_integer():
            return _replaced(values, self._numbers[int])
        if kind == pl.Boolean:
            values = values.replace_strict(
                [False, True], ["False", "True"], return_dtype=pl.String
            )
        return self._places_of_texts(values.cast(pl.String))

    def _places_of_texts(self, texts: pl.Series) -> pl.Series:
        known, places_of = self._known
        places = places_of.gather(texts.cast(known, strict=False).to_physical())
        if places.has_nulls():
            others = texts.filter(places.is_null()).unique().drop_nulls()
            others = others.filter(others.str.contains(OTHERWISE))
            found = {x: self._canonical.get(canonical(x)) for x in others}
            if any(place is not None for place in found.values()):
                return places.fill_null(_replaced(texts, found))
        return places


def _replaced(values: pl.Series, places: Mapping[Any, int | None]) -> pl.Series:
    old = pl.Series([*places], dtype=values.dtype, strict=False)
    new = pl.Series([*places.values()], dtype=pl.Int64)
    fits = old.is_not_null()
    return values.replace_strict(
        old.filter(fits), new.filter(fits), default=None, return_dtype=pl.Int64
    )


def _refuse_rounded(values: pl.Series, rounded: pl.Series) -> None:
    """Raise a ValueError if a float is too large to identify one integer, because its label is then
    unknown.
    """
    if rounded.any():
        found = values.filter(rounded.fill_null(False))[0]
        raise ValueError(
            f"column {shown(values.name)} holds {found:.0f} as a float, which may be a rounded integer. "
            "Convert the column to integers or text before the workbench reads it."
        )


def places_in_range(values: pl.Series, labels: range) -> pl.Series:
    """Return the position of each integer in a range of labels. It is null for other values."""
    low, high = min(labels[0], labels[-1]), max(labels[0], labels[-1])
    if values.dtype.is_float():
        _refuse_rounded(values, (values.abs() >= _EXACT) & values.is_between(low, high))
    numbers = whole_numbers(values)
    places = only(numbers, numbers.is_between(low, high)) - labels.start
    if labels.step == 1:
        return places
    return only(places, places % labels.step == 0) // labels.step


def only(values: pl.Series, kept: pl.Series) -> pl.Series:
    """Return the values, with null for those that are not kept."""
    return values if kept.all(ignore_nulls=False) else values.set(~kept.fill_null(False), None)


def whole_numbers(values: pl.Series) -> pl.Series:
    """Convert values to integers. For example, 3.0 becomes 3. A value that is not an integer becomes null."""
    if values.dtype.is_integer():
        return values.cast(pl.Int64, strict=False)
    if values.dtype.is_float():
        exact = (values == values.floor()) & (values.abs() < _EXACT)
        return only(values, exact).cast(pl.Int64)
    texts = values.cast(pl.String)
    whole = texts.cast(pl.Int64, strict=False)
    if whole.null_count() == texts.null_count():
        return whole
    return whole.fill_null(whole_numbers(texts.cast(pl.Float64, strict=False)))


# Rule

REFUSED = -1  # codes
DROPPED = -2
MAX_LABELS = 10**6  # that a rule makes by itself
_ACTIONS = ("refuse", "drop", "label")
_SHOWN = 60  # characters of a list of labels in an error


def is_text(x: Any) -> str | None:
    """Return a check for `parameter`."""
    return None if isinstance(x, str) and x else "need text"


def is_list(x: Any) -> str | None:
    """Return what is wrong with a value that should be a list, for `parameter`. The class checks the
    members of the list.
    """
    return None if isinstance(x, list | tuple | range) and len(x) else "need a list"


def check_texts(x: Any) -> str | None:
    """Return a check for `parameter`."""
    good = isinstance(x, list | tuple) and all(type(text) in (str, int) for text in x)
    return None if good else "need a list of texts, or integers"


@value
class Rule:
    """Rule that turns the values of one column into codes (the numbers of the labels) of one attribute.

    The rule and the row alone determine the code of the row, and whether it is dropped. A unit therefore
    affects only its own rows. So a bound on the rows of a unit still holds after the preparation.

    Parameters
    ----------
    column : str, optional
        Name of the column. By default the attribute's name.
    other : "refuse", "drop" or "label"
        Treatment of a value without a label. "refuse" raises an error, "drop" leaves the row out, and
        "label" gives the row the label `other_label`.
    missing : "refuse", "drop" or "label"
        The same for a missing value (null, an empty field, NaN), with `missing_label`.
    missing_values : texts, optional
        Further values that mean missing, for example "NA" or "999". They are compared as in `Labels`.
    """

    _: KW_ONLY
    column: str | None = parameter(None, check=is_text)
    other: str = parameter("refuse", choices=_ACTIONS)
    missing: str = parameter("refuse", choices=_ACTIONS)
    missing_values: tuple[str, ...] = parameter((), check=check_texts)
    other_label: str = parameter("other", check=is_text)
    missing_label: str = parameter("missing", check=is_text)

    def __post_init__(self) -> None:
        texts = tuple(dict.fromkeys(map(str, self.missing_values)))
        object.__setattr__(self, "missing_values", texts)

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def labels(self) -> Any:
            """Labels in the order of codes."""

    def _name(self, usual: Any, stated: Any) -> None:
        """Set the labels to the stated ones, or else to the usual ones. Both must have the same number."""
        labels = tuple(usual if stated is None else stated)
        if len(labels) != len(usual):
            raise not_allowed(self, "labels", f"need {len(usual)}")
        object.__setattr__(self, "labels", usual if labels == tuple(usual) else labels)

    @property
    def all_labels(self) -> tuple[Any, ...] | range:
        """Return the labels of the attribute. They are the labels of the rule, then those for other and for
        missing values.
        """
        labels: tuple[Any, ...] | range = self.labels
        added = [self.other_label] * (self.other == "label")
        added += [self.missing_label] * (self.missing == "label")
        return (*map(str, labels), *added) if added else labels

    @property
    def leaves(self) -> tuple[Rule, ...]:
        """Rules of single columns that make up this rule. A rule of one column consists of itself."""
        return (self,)

    @property
    def need(self) -> str:
        """Allowed values of the column, in words for an error message."""
        raise NotImplementedError

    @property
    def _texts(self) -> Texts:
        raise NotImplementedError

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position of each value in `labels`. It is null if the value has no label."""
        return self._texts.places(values)

    def codes(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Return the code of each value (its position in `all_labels`). For values that are not allowed it is
        REFUSED or DROPPED.
        """
        kind = values.dtype
        if kind in (pl.Categorical, pl.Enum):
            different, rows = distinct(values)
            return self.codes(different)[rows]
        if kind == pl.Decimal or kind in (pl.Int128, pl.UInt128):
            values = values.cast(pl.String)  # so that no digit is lost
        places = self.places(values)
        missing = values.is_null()
        if values.dtype.is_float():
            missing |= values.is_nan().fill_null(True)
        missing |= self._missing_texts.have(values)
        size = len(self.labels)
        codes = {"refuse": REFUSED, "drop": DROPPED}
        places = places.fill_null((codes | {"label": size})[self.other])
        if missing.any():
            size += self.other == "label"
            places = places.set(missing, (codes | {"label": size})[self.missing])
        return places.to_numpy()

    @cached_property
    def _missing_texts(self) -> Texts:
        return Texts(dict.fromkeys(self.missing_values, 0))


def some(labels: Sequence[Any]) -> str:
    """Return the first labels of a list, in words for an error message."""
    text = plain(", ".join(str(label)[:_SHOWN] for label in labels[:_SHOWN]))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Rows

Refused = list[tuple[str, str, Any]]  # of a column: its name, what is needed, and which rows


def distinct(values: pl.Series) -> tuple[pl.Series, Int[np.ndarray, " rows"]]:
    """Return the distinct values of a categorical column as text. Also return, for each row, the position
    of its value among them.
    """
    rows = values.to_physical().cast(pl.UInt32)
    none = int(rows.max() or 0) + 1
    numbers = rows.fill_null(none).to_numpy()
    last_row = np.full(none + 1, -1)
    last_row[numbers] = np.arange(len(numbers))
    is_there = last_row >= 0
    places = np.cumsum(is_there) - 1
    return values.gather(last_row[is_there]).cast(pl.String), places[numbers]
