"""Controls of a panel, for example sliders. A control is made from a field of a mechanism or figure, which
declares the range, the unit and the help text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass
from math import floor, inf, isfinite, log10
from typing import Any

from workbench.figures.plots import SYMBOLS
from workbench.mechanisms.options import (
    parameter_text,
    parse_choice,
    parse_number,
    parse_switch,
)

DEFAULT_NUMBER = 100  # where a number has no value to start from
MANTISSAS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # notches of a decade
# Names of the controls that come first, if a subject has them.
LEADING = "figure epsilon rho theta tau l alpha size threshold density m".split()
PRIMARY = 4  # controls above the picture; the others are under "More"
AUTO = "auto"


@dataclass(frozen=True)
class Control:
    """One control of a panel, for example a slider.

    Parameters
    ----------
    name : str
        Name of the setting that the control changes.
    value
        Initial value of the setting.
    stops : tuple
        Positions of a slider, or values to choose from.
    kind : str
        "slider" (with a box that takes any number), "choice" (one of `stops`), "several" (any number of
        `stops`), "switch" or "text".
    label, unit, doc : str
        Label, unit and help text.
    optional : bool
        Whether the setting may be None. The subject then chooses its value.
    shown : tuple of str
        Displayed texts of the choices in a list.
    resets : bool
        Whether a change of this control resets all others.
    place : str
        "tools" (among the buttons) or "more" (under "More"). Default: above the picture if there is room.
    """

    name: str
    value: Any
    stops: tuple[Any, ...] = (False, True)
    kind: str = "slider"
    label: str = ""
    unit: str = ""
    doc: str = ""
    optional: bool = False
    shown: tuple[str, ...] = ()
    resets: bool = False
    place: str = ""

    def to_dict(self, place: str) -> dict[str, Any]:
        """Return a description of the control that can be sent to a page. A setting that is not a text, a
        number or a list becomes text.
        """
        return vars(self) | dict(
            label=self.label or label_of(self.name),
            value=page_value(self.value),
            stops=[page_value(stop) for stop in self.stops],
            shown=self.shown or [str(s) if s not in (None, "") else "none" for s in self.stops],
            place=place,
        )

    def read(self, x: Any) -> Any:
        """Convert a setting to the type that the panel uses. The setting comes from a page or from Python, or
        is text from a command or a link.

        Raises
        ------
        ValueError
            If the setting is invalid. The message names the control.
        """
        if self.kind == "text":
            return x if isinstance(x, str) else parameter_text(x)
        if self.kind == "several":
            return [self._member(one) for one in (x.split("|") if isinstance(x, str) else x)]
        if self.kind == "switch" and isinstance(x, str):
            return parse_switch(self.name, x)
        if self.kind != "slider":
            return self._member(x)
        if self.optional and x in (None, AUTO):
            return None
        if isinstance(x, str):
            return self.read(parse_number(self.name, x))
        if isinstance(x, bool) or not isinstance(x, int | float) or not isfinite(x):
            raise ValueError(f"{self.name} = {x!r} is not allowed: need a number")
        if not all(isinstance(stop, int) for stop in self.stops):
            return float(x)
        return int(x) if x == int(x) else x

    def _member(self, x: Any) -> Any:
        if isinstance(x, str) and x == self.value:
            return self.value  # which may know that nobody has stated it
        typed = parse_choice(self.stops, x) if isinstance(x, str) else x
        for stop in self.stops:
            if any(type(one) is type(stop) and one == stop for one in (x, typed)):
                return stop
        need = ", ".join(map(str, self.stops))
        raise ValueError(f"{self.name} = {x!r} is not allowed: need one of {need}")

    def text(self, x: Any) -> str:
        """Return a setting as text, which the method `read` converts back."""
        if isinstance(x, bool):
            return "on" if x else "off"
        if self.kind == "several":
            return "|".join(x)
        return AUTO if x is None and self.kind == "slider" else str(x)


def in_places(controls: Sequence[Control]) -> list[dict[str, Any]]:
    """Return the controls in the order of the page. Sliders and the controls in `LEADING` come first. At
    most `PRIMARY` controls are at the top.
    """
    order = {name: i for i, name in enumerate(LEADING)}
    last = len(order)
    free = [c for c in controls if not c.place]
    top = sorted(free, key=lambda c: order.get(c.name, last + (c.kind != "slider")))[:PRIMARY]
    others = [c for c in controls if c not in top]
    return [*(c.to_dict("top") for c in top), *(c.to_dict(c.place or "more") for c in others)]


def page_value(x: Any) -> Any:
    """Return a setting in a form that can be sent to a page. A value that is not a text, a number or a list
    becomes text.
    """
    return x if x is None or isinstance(x, str | int | float | list) else repr(x)


def label_of(name: str) -> str:
    """Return the label of a field. The label is a symbol such as ε, or the field's name with spaces."""
    return SYMBOLS.get(name, name.replace("_", " ")) if name != "size" else name


def decades(
    low: float, high: float, *, zero: bool = False, whole: bool = False
) -> tuple[Any, ...]:
    """Return round numbers from `low` to `high`, ten for each power of ten. With `zero`, 0 comes first.

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


def control_of_field(f: Field[Any], value: Any) -> Control | None:
    """Make a control, for example a slider, with which a user changes a field of a mechanism or figure. The
    declaration of the field determines the control. Return None if the field cannot have a control.

    The slider of a number >= 0 has round positions around `value`, within the bounds of the field.
    """
    declared = f.metadata
    described: dict[str, Any] = dict(
        label=label_of(f.name), unit=declared.get("unit", ""), doc=declared.get("doc", "")
    )
    choices = declared.get("choices") or (isinstance(value, bool) and (False, True))
    if choices:
        kind = "switch" if set(map(repr, choices)) == {"True", "False"} else "choice"
        stops = (False, True) if kind == "switch" else choices
        return Control(f.name, value, stops, kind, **described)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    check = declared.get("check")
    optional = f.default is None and "low" in declared and (not check or declared["integer"])
    low, strict = declared.get("low"), declared.get("strict", False)
    if low is None:  # a number that is not declared is taken to stay above 0
        low, strict = 0, True
    if not (number or optional and value is None) or low < 0 or number and value < low:
        return None
    high = inf if declared.get("high") is None else declared["high"]
    whole = declared.get("integer") or (isinstance(value, int) and "float" not in str(f.type))
    start = value if number else min(max(low, 0.5 if high <= 1 else DEFAULT_NUMBER), high)
    stops = stops_around(start, low, high, strict=strict, whole=whole)
    if check:
        stops = tuple(stop for stop in stops if check(stop) is None)
    at = value if whole or not number else float(value)
    return Control(f.name, at, stops, optional=optional, **described)


def stops_around(
    at: float, low: float, high: float, *, strict: bool, whole: bool
) -> tuple[Any, ...]:
    """Return round positions of a slider around the number `at`. For a share (from 0 to 1), the positions are
    in steps of 1/20. For other numbers, they go from a hundredth of the number to a hundred times the number.

    >>> stops_around(0.5, 0, 1, strict=True, whole=False)[:3]
    (0.05, 0.1, 0.15)
    >>> stops_around(3, 1, 9, strict=False, whole=True)
    (1, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    size = abs(at) or DEFAULT_NUMBER / 10
    if high <= 1 and not 0 < at < 0.05:
        stops: Sequence[float] = [k / 20 for k in range(21)]
    else:
        lowest = max(size / 100, low, float(whole))
        stops = decades(lowest, min(size * 100, high), zero=low == 0)
    if whole:
        stops = [*map(round, stops), *range(max(1, round(size / 100)), 21)]
    allowed = {at, *(x for x in stops if low <= x <= high and (x > low or not strict))}
    return tuple(sorted(allowed if whole else map(float, allowed)))
