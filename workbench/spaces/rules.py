"""Preparation rules, which compute the label of a value. A rule also determines what happens to missing values
and to values without a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from workbench.compiled import pd, pl
from workbench.value import Int, not_allowed, parameter, plain, shown, value

# Matching

_EXACT = 2**53  # a float of this size may be a rounded integer
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-][0-9]{1,3})?")
OTHERWISE = r"^-?[0-9].*[.eE]|^-0$|[^\x00-\x7F]"  # texts that may have other spellings


def canonical(x: Any) -> str:
    """Return a value as text in a standard spelling. The workbench compares values with labels by this text.

    A text counts as a number if it is a decimal without a plus sign or leading zeros. An exponent counts only
    if it has a sign. So 3, 3.0, "3" and "3.00" are the same label, but "007" and "1e5" stay different texts.
    Letters with accents are converted to one character (Unicode NFC).
    """
    text = str(x)
    if not _NUMBER.fullmatch(text):
        return normalize("NFC", text)
    if "e" in text or "E" in text:
        text = format(Decimal(text), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_of(x: Any) -> str | None:
    """Return a Python value as text, or None if the value is missing."""
    if isinstance(x, str):
        return str(x)
    return None if pd.isna(x) else canonical(x)


def each_as_text(values: Iterable[Any]) -> pl.Series:
    """Return each of several Python values as text. No value changes the text of another value, as it would if
    all values got the type that fits all of them.
    """
    return pl.Series(map(text_of, values), dtype=pl.String)


def as_texts(values: pl.Series) -> pl.Series:
    """Return each value of a column as text. For example, the float 12.0 becomes "12"."""
    if not values.dtype.is_float():
        return values.cast(pl.String)
    different = values.unique()
    texts = [None if x is None else canonical(x) for x in different]
    return values.replace_strict(different, texts, return_dtype=pl.String)


@dataclass(frozen=True, eq=False)
class Texts:
    """Table of texts, with a position for each text. The table looks up the values of a column of any type, and
    accepts different spellings of a number.
    """

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
        """Positions of those texts that are numbers. One dictionary has integers as keys, and the other has
        floats.
        """
        numbers: dict[Any, dict[Any, int]] = {int: {}, float: {}}
        for text, place in self._canonical.items():
            for kind, places in numbers.items():
                with suppress(ValueError):
                    if canonical(kind(text)) == text:
                        places[kind(text)] = place
        return numbers

    def have(self, values: pl.Series) -> pl.Series:
        """Return a mask that is true for the values that are in this table of texts."""
        if not self.places_of:
            return pl.Series([False]).new_from_index(0, len(values))
        return self.places(values).is_not_null()

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position that this table gives for each value, or null for a value that is not in the
        table.
        """
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
    """Raise a ValueError if the mask `rounded` is true for any of the floats.

    The caller marks floats of at least 2⁵³. They may be rounded integers, so it is not certain which label
    they mean.
    """
    if rounded.any():
        found = values.filter(rounded.fill_null(False))[0]
        raise ValueError(
            f"column {shown(values.name)} holds {found:.0f} as a float, which may be a rounded integer. "
            "Convert the column to integers or text before the workbench reads it."
        )


def places_in_range(values: pl.Series, labels: range) -> pl.Series:
    """Return the position of each value in a range of integers, counted from 0. The position is null for
    values that are not in the range.
    """
    low, high = min(labels[0], labels[-1]), max(labels[0], labels[-1])
    if values.dtype.is_float():
        _refuse_rounded(values, (values.abs() >= _EXACT) & values.is_between(low, high))
    numbers = whole_numbers(values)
    places = only(numbers, numbers.is_between(low, high)) - labels.start
    if labels.step == 1:
        return places
    return only(places, places % labels.step == 0) // labels.step


def only(values: pl.Series, kept: pl.Series) -> pl.Series:
    """Return the values, with null in place of each value for which the mask `kept` is not true."""
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
MAX_LABELS = 10**6  # limit for the labels that a rule creates
_ACTIONS = ("refuse", "drop", "label")
_SHOWN = 60  # characters of a list of labels in an error


def is_text(x: Any) -> str | None:
    """Return None if the value is a non-empty text. Otherwise return a text that says which values are
    allowed. The function is meant for the argument `check` of `parameter`, which declares a field.
    """
    return None if isinstance(x, str) and x else "need text"


def is_list(x: Any) -> str | None:
    """Return None if the value is a non-empty list, tuple or range. Otherwise return a text that says which
    values are allowed.

    The function is meant for the argument `check` of `parameter`, which declares a field. The members of the
    list are not checked here.
    """
    return None if isinstance(x, list | tuple | range) and len(x) else "need a list"


def check_texts(x: Any) -> str | None:
    """Return None if the value is a list or tuple of texts or integers. Otherwise return a text that says
    which values are allowed. The function is meant for the argument `check` of `parameter`, which declares a
    field.
    """
    good = isinstance(x, list | tuple) and all(type(text) in (str, int) for text in x)
    return None if good else "need a list of texts, or integers"


@value
class Rule:
    """Base class of rules that compute an attribute of a table from the data. Most rules read one column.

    A rule turns each value of its column into a code. The code is the position of a label (the name of a
    value) in the list of all labels of the attribute.

    The rule decides which code a row gets, and whether the row is left out. Both decisions depend only on this
    row. So the rows of one person do not affect the codes of other rows. For this reason, a bound on the number
    of rows per person still holds after the rule is applied.

    Parameters
    ----------
    column : str, optional
        Name of the column of the data that this rule reads. Default: the name of the attribute.
    other : "refuse", "drop" or "label"
        Treatment of a value that has no label. "refuse" raises an error, "drop" leaves the row out, and
        "label" gives the row the label in `other_label`. Default "refuse".
    missing : "refuse", "drop" or "label"
        Treatment of a missing value (null, an empty field or NaN). "refuse" raises an error, "drop" leaves
        the row out, and "label" gives the row the label in `missing_label`. Default "refuse".
    missing_values : texts, optional
        Other values that count as missing, for example "NA" or "999". Different spellings of a number are the
        same value.
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

    if TYPE_CHECKING:  # a field of some subclasses, a property of others

        @property
        def labels(self) -> Any:
            """Labels for the values, in the order of their codes."""

    def _name(self, usual: Any, stated: Any) -> None:
        """Set the field `labels` to the `stated` labels, or to the `usual` ones if no labels are stated.

        Raise a ValueError if there are too many or too few stated labels.
        """
        labels = tuple(usual if stated is None else stated)
        if len(labels) != len(usual):
            raise not_allowed(self, "labels", f"need {len(usual)}")
        object.__setattr__(self, "labels", usual if labels == tuple(usual) else labels)

    @property
    def all_labels(self) -> tuple[Any, ...] | range:
        """All labels of the attribute. First come the labels of values that have a label. If the rule has the
        label `other_label` for values without a label, or the label `missing_label` for missing values, these
        come last.
        """
        labels: tuple[Any, ...] | range = self.labels
        added = [self.other_label] * (self.other == "label")
        added += [self.missing_label] * (self.missing == "label")
        return (*map(str, labels), *added) if added else labels

    @property
    def leaves(self) -> tuple[Rule, ...]:
        """Rules of the single columns that this rule combines. If this rule reads only one column, the result
        contains only the rule itself.
        """
        return (self,)

    @property
    def need(self) -> str:
        """Text for an error message that says which values the column may contain."""
        raise NotImplementedError

    @property
    def _texts(self) -> Texts:
        raise NotImplementedError

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position of each value's label in `labels`, counted from 0. The position is null if the
        value has no label.
        """
        return self._texts.places(values)

    def codes(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Return the code of each value, which is the position of its label in `all_labels`.

        If the rule raises an error for a value, the code is −1 (`REFUSED`). If the rule leaves out the row of a
        value, the code is −2 (`DROPPED`).
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
    """Return the first labels of a list as text for an error message. The text has at most 60 characters, and
    an ellipsis if it was shortened.
    """
    text = plain(", ".join(str(label)[:_SHOWN] for label in labels[:_SHOWN]))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Rows

Refused = list[tuple[str, str, Any]]  # column, allowed values, mask of the other rows


def distinct(values: pl.Series) -> tuple[pl.Series, Int[np.ndarray, " rows"]]:
    """Return the different values of a categorical column as text. Also return, for each row, the position of
    the row's value in this list.
    """
    rows = values.to_physical().cast(pl.UInt32)
    none = int(rows.max() or 0) + 1
    numbers = rows.fill_null(none).to_numpy()
    last_row = np.full(none + 1, -1)
    last_row[numbers] = np.arange(len(numbers))
    is_there = last_row >= 0
    places = np.cumsum(is_there) - 1
    return values.gather(last_row[is_there]).cast(pl.String), places[numbers]
