"""Controls: what can be moved, over which notches; words and units come from the fields they set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np

from workbench.plots import SYMBOLS

SOME = 100  # where a number has no setting to start from
MANTISSAS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # notches of a decade


@dataclass(frozen=True)
class Control:
    """One thing that can be moved.

    `kind` is "slider" (over `stops`; a box beside it takes any number), "choice" (of `stops`) or
    "switch". Where `when` is given, its setting is used only if, for one of the mappings there, each
    control that it names has one of the settings listed; else it is greyed out.
    """

    name: str
    value: Any
    stops: tuple = (False, True)
    kind: str = "slider"
    label: str = ""
    unit: str = ""
    doc: str = ""
    when: tuple[Mapping[str, tuple], ...] = ()

    def told(self) -> dict[str, Any]:
        """What a page needs to draw it; settings that are no plain values are told as their text."""
        stops, value = list(map(page_value, self.stops)), page_value(self.value)
        when = [{name: list(some) for name, some in each.items()} for each in self.when]
        about = dict(kind=self.kind, unit=self.unit, doc=self.doc, when=when)
        return (
            dict(name=self.name, label=self.label or self.name, value=value, stops=stops)
            | about
        )

    def read(self, told: Any) -> Any:
        """A setting as a page sends it; a ValueError names the control and what it takes."""
        if self.kind == "slider":
            if (
                isinstance(told, bool)
                or not isinstance(told, int | float)
                or not isfinite(told)
            ):
                raise ValueError(f"{self.name} = {told!r} is not allowed: need a number")
            if not all(isinstance(s, int) for s in self.stops):
                return float(told)
            return int(told) if told == int(told) else told
        for stop in self.stops:
            if type(told) is type(stop) and told == stop or told == repr(stop):
                return stop
        need = ", ".join(map(str, self.stops))
        raise ValueError(f"{self.name} = {told!r} is not allowed: need one of {need}")


def page_value(x: Any) -> Any:
    """A setting as pages are told it: a plain value, or the text of another."""
    return x if x is None or isinstance(x, str | int | float) else repr(x)


def decades(low: float, high: float, *, zero: bool = False, whole: bool = False) -> tuple:
    """Round numbers from `low` to `high`, ten a decade; `zero` puts 0 before them.

    >>> decades(1, 10, whole=True)
    (1, 2, 3, 4, 5, 6, 8, 10)
    """
    found = [0.0] * zero
    for power in range(floor(log10(low)), floor(log10(high)) + 1):
        found += [float(f"{m * 10.0**power:.6g}") for m in MANTISSAS]
    found = [x for x in found if low <= x <= high or (zero and x == 0)]
    return tuple(dict.fromkeys(int(x) for x in found if x == int(x))) if whole else tuple(found)


def field_control(
    cls: type, name: str, value: Any, stops: Sequence = (), **told: Any
) -> Control:
    """A control of the field `name` of a class, in the words and the unit of its declaration."""
    f = next(f for f in fields(cls) if f.name == name)
    label = told.pop("label", SYMBOLS.get(name, name.replace("_", " ")))
    about = dict(label=label, unit=f.metadata["unit"], doc=f.metadata["doc"]) | told
    stops = tuple(stops) or f.metadata["choices"]
    if f.metadata["choices"]:
        kind = "switch" if set(stops) == {True, False} else "choice"
        return Control(name, value, stops, kind, **about)
    return Control(name, value, stops, **about)


def controls_of_field(f: Field, value: Any) -> tuple[Control, ...]:
    """What sets a field, made of its declaration alone; nothing where it holds no plain setting.

    A number gets round settings around `value`, inside its bounds. One that may be left out (None)
    also gets a switch, `set_<name>`, and its slider is used where that is on.
    """
    told = f.metadata
    words = dict(unit=told.get("unit", ""), doc=told.get("doc", ""))
    label = SYMBOLS.get(f.name, f.name.replace("_", " "))
    choices = told.get("choices") or (isinstance(value, bool) and (False, True))
    if choices:
        both = set(map(repr, choices)) == {"True", "False"}
        kind, stops = ("switch", (False, True)) if both else ("choice", choices)
        return (Control(f.name, value, stops, kind, label, **words),)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    free = f.default is None and "low" in told and not told["check"]
    if not (plain or free and value is None):
        return ()
    low, strict = told.get("low"), told.get("strict", False)
    if low is None:  # not declared: a number above 0 is taken to stay there
        low, strict = (0, True) if plain and value > 0 else (-inf, False)
    high = inf if told.get("high") is None else told["high"]
    whole = told.get("integer") or (isinstance(value, int) and "float" not in str(f.type))
    at = value if plain else min(max(low, 0.5 if high <= 1 else SOME), high)
    stops = stops_around(at, low, high, strict=strict, whole=whole)
    slider = Control(f.name, at if whole else float(at), stops, label=label, **words)
    if not free:
        return (slider,)
    switch = f"set_{f.name}"
    doc = "off: None, and chosen by the mechanism itself"
    used = replace(slider, when=({switch: (True,)},))
    return Control(switch, plain, kind="switch", label=f"set {label}", doc=doc), used


def stops_around(at: float, low: float, high: float, *, strict: bool, whole: bool) -> tuple:
    """Round settings around a number: shares by twentieths, else a hundredth to a hundredfold.

    >>> around(0.5, 0, 1, strict=True, whole=False)[:3], around(3, 1, 9, strict=False, whole=True)
    ((0.05, 0.1, 0.15), (1, 2, 3, 4, 5, 6, 7, 8, 9))
    """
    size = abs(at) or SOME / 10
    if low >= 0 and high <= 1 and not 0 < at < 0.05:
        stops = [k / 20 for k in range(21)]
    elif low < 0:
        ends = max(low, at - 10 * size), min(high, at + 10 * size)
        stops = [float(f"{x:.3g}") for x in np.linspace(*ends, 21)]
    else:
        ends = max(size / 100, low, float(whole)), min(size * 100, high)
        stops = decades(*ends, zero=low == 0)
    if whole:
        stops = [*map(round, stops), *range(max(1, round(size / 100)), 21)]
    fit = {at, *(x for x in stops if low <= x <= high and (x > low or not strict))}
    return tuple(sorted(fit if whole else map(float, fit)))
