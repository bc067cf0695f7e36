"""Controls: what can be moved, over which notches; words and units come from the fields they set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from math import floor, isfinite, log10
from typing import Any

from workbench.plots import SYMBOLS

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
        own = self.kind == "choice" and not all(map(_plain, self.stops))
        stops = [repr(s) for s in self.stops] if own else list(self.stops)
        value = repr(self.value) if own else self.value
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
            whole = all(isinstance(s, int) for s in self.stops)
            return int(told) if whole and told == int(told) else told if whole else float(told)
        for stop in self.stops:
            if type(told) is type(stop) and told == stop or told == repr(stop):
                return stop
        need = ", ".join(map(str, self.stops))
        raise ValueError(f"{self.name} = {told!r} is not allowed: need one of {need}")


def _plain(x: Any) -> bool:
    return x is None or isinstance(x, str | int | float)


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


def of(cls: type, name: str, value: Any, stops: Sequence = (), **told: Any) -> Control:
    """A control of the field `name` of a class, in the words and the unit of its declaration."""
    f = next(f for f in fields(cls) if f.name == name)
    label = told.pop("label", SYMBOLS.get(name, name.replace("_", " ")))
    about = dict(label=label, unit=f.metadata["unit"], doc=f.metadata["doc"]) | told
    stops = tuple(stops) or f.metadata["choices"]
    if f.metadata["choices"]:
        kind = "switch" if set(stops) == {True, False} else "choice"
        return Control(name, value, stops, kind, **about)
    return Control(name, value, stops, **about)


def guessed(f: Field, value: Any) -> Control | None:
    """A control made of a field's declaration alone, or None where it holds no plain setting.

    A number gets three decades around `value`, inside its declared bounds; where there is none to
    start from it can be left out (None), or be typed.
    """
    told = f.metadata
    label = SYMBOLS.get(f.name, f.name.replace("_", " "))
    about = dict(label=label, unit=told["unit"], doc=told["doc"])
    if told["choices"]:
        both = set(map(repr, told["choices"])) == {"True", "False"}
        stops = (False, True) if both else told["choices"]
        return Control(f.name, value, stops, "switch" if both else "choice", **about)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low = -float("inf") if told["low"] is None else told["low"]
    high = float("inf") if told["high"] is None else told["high"]
    at = abs(value) or 1.0
    whole = told["integer"] or (isinstance(value, int) and f.type in (int, "int"))
    start = max(at / 100, 1.0 if whole else 0.0, low if low > 0 else 0.0)
    zero = low == 0 and not told["strict"]
    if high <= 1 and low >= 0:  # a share
        stops = tuple(round(k / 20, 2) for k in range(21))
        stops = tuple(s for s in stops if low <= s <= high and (s > low or not told["strict"]))
    else:
        stops = decades(start, min(at * 100, high), zero=zero, whole=whole)
    stops = tuple(sorted({*stops, value if whole else float(value)}))
    return Control(f.name, value if whole else float(value), stops, **about)


def has_default(f: Field) -> bool:
    """Whether a field may be left out."""
    return f.default is not MISSING
