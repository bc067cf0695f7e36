"""Values of any kind to places in a list of texts or in a range, each different text looked up once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.arrays import Bool, Int
from workbench.libraries import pl

OUTSIDE = -1  # places: the value is none of those looked for
MISSING = -2
_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")
_EXACT = 2**53  # a float of so much may have been written as more


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with places, found in columns of any kind as if each value were written out.

    A column of whole numbers with gaps becomes one of floats in other hands, so 50.0 is also 50.
    """

    places_of: Mapping[str, int]

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(list(self.places_of))

    @cached_property
    def _places(self) -> Int[np.ndarray, " texts"]:
        places = np.fromiter(self.places_of.values(), np.int64, len(self.places_of))
        return np.append(places, OUTSIDE)

    @cached_property
    def _whole(self) -> dict[int, int]:
        whole = {int(text): x for text, x in self.places_of.items() if _WHOLE.fullmatch(text)}
        return {number: place for number, place in whole.items() if abs(number) < 2**63}

    @cached_property
    def _numbers(self) -> dict[float, int]:
        numbers = {float(x): place for x, place in self._whole.items() if abs(x) < _EXACT}
        for text, place in self.places_of.items():
            try:
                number = float(text)
            except ValueError:
                continue
            if repr(number) == text:
                numbers[number] = place
        return numbers

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places, OUTSIDE or MISSING."""
        kind = values.dtype
        if kind.is_integer():
            places = _replaced(values.cast(pl.Int64, strict=False), self._whole)
        elif kind.is_float():
            places = _replaced(values.cast(pl.Float64), self._numbers)
        elif kind == pl.Boolean:
            places_of = {x: self.places_of.get(str(x), OUTSIDE) for x in (False, True)}
            places = _replaced(values, places_of)
        else:
            places = self._places_of_text(values.cast(pl.String))
        return with_missing(places, values)

    def _places_of_text(self, texts: pl.Series) -> Int[np.ndarray, " rows"]:
        codes = self._codes(texts)
        outside = codes == len(self.places_of)
        if self._whole and outside.sum() > texts.null_count():
            plain = self._codes(texts.str.replace(r"[.]0+$", ""))
            codes = np.where(outside & self._is_whole[plain], plain, codes)
        return self._places[codes]

    def _codes(self, texts: pl.Series) -> Int[np.ndarray, " rows"]:
        """Which of the texts each is; their number where it is none."""
        codes = texts.cast(self._enum, strict=False).to_physical().cast(pl.Int64)
        return codes.fill_null(len(self.places_of)).to_numpy()

    @cached_property
    def _is_whole(self) -> Bool[np.ndarray, " texts"]:
        return np.array([*(bool(_WHOLE.fullmatch(text)) for text in self.places_of), False])


def places_in_range(values: pl.Series, labels: range) -> Int[np.ndarray, " rows"]:
    """Places of whole numbers, OUTSIDE or MISSING."""
    if labels.step == 1 and values.dtype.is_integer() and not values.null_count():
        plain = values.to_numpy()  # most columns: the two ends say that all are inside
        if not len(plain) or labels.start <= plain.min() <= plain.max() < labels.stop:
            return plain.astype(np.int64, copy=False) - labels.start if labels.start else plain
    numbers = whole_numbers(values)
    inside = numbers.is_between(min(labels[0], labels[-1]), max(labels[0], labels[-1]))
    inside = inside.fill_null(False).to_numpy()
    if inside.all():
        places = numbers.to_numpy() - labels.start
    else:
        places = np.where(inside, numbers.fill_null(0).to_numpy(), labels.start) - labels.start
    if labels.step != 1:
        inside = inside & (places % labels.step == 0)
        places = places // labels.step
    return places if inside.all() else with_missing(np.where(inside, places, OUTSIDE), values)


def _text(values: pl.Series) -> pl.Series:
    """Bytes as text, all null where some are none."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(values.name, [None] * len(values), pl.String)


def whole_numbers(values: pl.Series) -> pl.Series:
    """Whole numbers, also where they are written 3.0; null where a value is none, or not exact."""
    if values.dtype.is_integer() or values.dtype == pl.Boolean:
        return values.cast(pl.Int64, strict=False)
    if not values.dtype.is_float():
        if values.dtype == pl.Binary:
            values = _text(values)
        values = values.cast(pl.String)
        whole = values.cast(pl.Int64, strict=False)
        if whole.null_count() == values.null_count():
            return whole
        floats = values.cast(pl.Float64, strict=False)
        return whole.zip_with(whole.is_not_null(), _whole_floats(floats))
    return _whole_floats(values.cast(pl.Float64))


def _whole_floats(floats: pl.Series) -> pl.Series:
    exact = (floats == floats.floor()) & (floats.abs() < _EXACT)
    return floats.set(~exact.fill_null(False), None).cast(pl.Int64)


def with_missing(places: Int[np.ndarray, " rows"], values: pl.Series) -> np.ndarray:
    """The same places, MISSING where a value is missing."""
    missing = values.is_null()
    if values.dtype.is_float():
        missing = missing | values.is_nan().fill_null(True)
    return np.where(missing.to_numpy(), MISSING, places) if missing.any() else places


def _replaced(values: pl.Series, places: Mapping[Any, Any]) -> Int[np.ndarray, " rows"]:
    if not places:
        return np.full(len(values), OUTSIDE)
    new = pl.Series(list(places.values()), dtype=pl.Int64)
    old = pl.Series(list(places), dtype=values.dtype)
    return values.replace_strict(old, new, default=OUTSIDE, return_dtype=pl.Int64).to_numpy()
