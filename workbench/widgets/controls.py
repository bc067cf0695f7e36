"""Controls: what can be moved, over which notches; words and units come from the fields they set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np

from workbench.figures.plots import SYMBOLS

DEFAULT_NUMBER = 100  # where a number has no setting to start from
MANTISSAS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # notches of a decade


@dataclass(frozen=True)
class Control:
    """One thing that can be moved.

    `kind` is "slider" (over `stops`; a box beside it takes any number), "choice" (of `stops`) or
    "switch". Where `when` is given, its setting is used only if, for one of the mappings there, each
    control that it names has one of the settings listed; else it is greyed out. `shown` says what a list
    calls its choices.
    """

    name: str
    value: Any
    stops: tuple[Any, ...] = (False, True)
    kind: str = "slider"
    label: str = ""
    unit: str = ""
    doc: str = ""
    when: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    shown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What a page needs to draw it; settings that are no plain values are their text."""
        conditions = []
        for condition in self.when:
            conditions.append({name: list(settings) for name, settings in condition.items()})
        return dict(
            name=self.name,
            label=self.label or self.name,
            value=page_value(self.value),
            stops=[page_value(stop) for stop in self.stops],
            shown=list(self.shown),
            kind=self.kind,
            unit=self.unit,
            doc=self.doc,
            when=conditions,
        )

    def used(self, values: Mapping[str, Any]) -> bool:
        """Whether it says anything at these settings of all controls."""
        met = (all(values[name] in some for name, some in each.items()) for each in self.when)
        return not self.when or any(met)

    def read(self, x: Any) -> Any:
        """A setting as a page sends it; a ValueError names the control and what it takes."""
        if self.kind == "slider":
            if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
                raise ValueError(f"{self.name} = {x!r} is not allowed: need a number")
            if not all(isinstance(stop, int) for stop in self.stops):
                return float(x)
            return int(x) if x == int(x) else x
        for stop in self.stops:
            if type(x) is type(stop) and x == stop or x == repr(stop):
                return stop
        need = ", ".join(map(str, self.stops))
        raise ValueError(f"{self.name} = {x!r} is not allowed: need one of {need}")


def page_value(x: Any) -> Any:
    """A setting as a page gets it: a plain value, or the text of another."""
    return x if x is None or isinstance(x, str | int | float) else repr(x)


def decades(
    low: float, high: float, *, zero: bool = False, whole: bool = False
) -> tuple[Any, ...]:
    """Round numbers from `low` to `high`, ten a decade; `zero` puts 0 before them.

    >>> decades(1, 10, whole=True)
    (1, 2, 3, 4, 5, 6, 8, 10)
    """
    numbers = [0.0] if zero else []
    for power in range(floor(log10(low)), floor(log10(high)) + 1):
        decade = [float(f"{mantissa * 10.0**power:.6g}") for mantissa in MANTISSAS]
        numbers += [x for x in decade if low <= x <= high]
    if whole:
        return tuple(dict.fromkeys(int(x) for x in numbers if x == int(x)))
    return tuple(numbers)


def field_control(
    cls: type, name: str, value: Any, stops: Sequence[Any] = (), **changes: Any
) -> Control:
    """A control of the field `name` of a class, in the words and the unit of its declaration."""
    f = next(f for f in fields(cls) if f.name == name)
    choices = f.metadata["choices"]
    described = dict(label=_label(name), unit=f.metadata["unit"], doc=f.metadata["doc"])
    described |= changes
    stops = tuple(stops) or choices
    if choices:
        kind = "switch" if set(stops) == {True, False} else "choice"
        return Control(name, value, stops, kind, **described)
    return Control(name, value, stops, **described)


def controls_of_field(f: Field[Any], value: Any) -> tuple[Control, ...]:
    """What sets a field, made of its declaration alone; nothing where it holds no plain setting.

    A number gets round settings around `value`, inside its bounds. One that may be left out (None)
    also gets a switch, `set_<name>`, and its slider is used where that is on.
    """
    declared = f.metadata
    described = dict(
        label=_label(f.name), unit=declared.get("unit", ""), doc=declared.get("doc", "")
    )
    choices = declared.get("choices") or (isinstance(value, bool) and (False, True))
    if choices:
        if set(map(repr, choices)) == {"True", "False"}:
            return (Control(f.name, value, (False, True), "switch", **described),)
        return (Control(f.name, value, choices, "choice", **described),)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    optional = f.default is None and "low" in declared and not declared["check"]
    if not (number or optional and value is None):
        return ()
    low = declared.get("low")
    strict = declared.get("strict", False)
    if low is None:  # not declared: a number above 0 is taken to stay there
        positive = number and value > 0
        low = 0 if positive else -inf
        strict = positive
    high = inf if declared.get("high") is None else declared["high"]
    whole = declared.get("integer") or (isinstance(value, int) and "float" not in str(f.type))
    start = value if number else min(max(low, 0.5 if high <= 1 else DEFAULT_NUMBER), high)
    stops = stops_around(start, low, high, strict=strict, whole=whole)
    slider = Control(f.name, start if whole else float(start), stops, **described)
    if not optional:
        return (slider,)
    switch = f"set_{f.name}"
    doc = "off: None, and chosen by the mechanism itself"
    slider = replace(slider, when=({switch: (True,)},))
    return Control(switch, number, kind="switch", label=f"set {slider.label}", doc=doc), slider


def stops_around(
    at: float, low: float, high: float, *, strict: bool, whole: bool
) -> tuple[Any, ...]:
    """Round settings around a number: shares by twentieths, else a hundredth to a hundredfold.

    >>> stops_around(0.5, 0, 1, strict=True, whole=False)[:3]
    (0.05, 0.1, 0.15)
    >>> stops_around(3, 1, 9, strict=False, whole=True)
    (1, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    size = abs(at) or DEFAULT_NUMBER / 10
    if low >= 0 and high <= 1 and not 0 < at < 0.05:
        stops: Sequence[float] = [k / 20 for k in range(21)]
    elif low < 0:
        numbers = np.linspace(max(low, at - 10 * size), min(high, at + 10 * size), 21)
        stops = [float(f"{x:.3g}") for x in numbers]
    else:
        lowest = max(size / 100, low, float(whole))
        stops = decades(lowest, min(size * 100, high), zero=low == 0)
    if whole:
        stops = [*map(round, stops), *range(max(1, round(size / 100)), 21)]
    allowed = {at, *(x for x in stops if low <= x <= high and (x > low or not strict))}
    return tuple(sorted(allowed if whole else map(float, allowed)))


def _label(name: str) -> str:
    """A field's name as it is shown."""
    return SYMBOLS.get(name, name.replace("_", " "))
