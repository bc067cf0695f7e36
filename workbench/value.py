"""Frozen dataclasses that check their fields, numbers as text, and checks of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from decimal import ROUND_CEILING, Context
from difflib import get_close_matches
from inspect import formatannotation
from math import floor, inf, isfinite, log10, ulp
from typing import TYPE_CHECKING, Any, dataclass_transform
from unicodedata import category

# Value

_SHOWN = 60  # characters of a long value in an error
LARGE_LIMIT = 10**6  # a higher limit is named only to someone who exceeds it


def parameter(
    default: Any = MISSING,
    low: float | None = None,
    high: float | None = None,
    *,
    unit: str = "",
    doc: str = "",
    integer: bool = False,
    strict: bool = False,
    choices: tuple[Any, ...] = (),
    check: Callable[[Any], str | None] | None = None,
    many: bool = False,
    kind: str = "setting",
) -> Any:
    """Declare one field of a class that is decorated with `value`: its default, its allowed values and its
    description.

    The workbench uses the declaration to check the field, to build sliders and command-line options, and to
    write the docs.

    A number must be at least `low` and at most `high`. If `strict` is true, the number must be above `low`.
    If `integer` is true, the number must be an integer. `unit` and `doc` are the unit and a description of
    the field, as text. `choices` is a tuple of the allowed values. `check` is a function that is called with
    the value. It returns None if the value is allowed, and otherwise a text that says which values are
    allowed. If you give both `choices` and `check`, a value has to pass only one of the two.

    If `many` is true, the value is a tuple of one or more values that are all different, and each of them is
    checked. If the default is None, then None is allowed and means that the object chooses the value itself.
    Only figures use `kind`, which says what a parameter stands for (see `figures.KINDS`).
    """
    limits = dict(low=low, high=high, unit=unit, integer=integer, strict=strict)
    rules = limits | dict(choices=choices, check=check, many=many)
    return field(default=default, metadata=rules | {"doc": doc, "kind": kind})


def subset_of(names: Collection[str]) -> Callable[[Any], str | None]:
    """Return a function for the argument `check` of `parameter`. The function accepts a tuple of one or more
    of `names`, each at most once.
    """

    def wrong(chosen: Any) -> str | None:
        good = isinstance(chosen, tuple) and 0 < len(set(chosen)) == len(chosen)
        good = good and all(name in names for name in chosen)
        return None if good else f"need a tuple of different names out of {', '.join(names)}"

    return wrong


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type) -> type:
    """Turn `cls` into a frozen dataclass that checks its fields. The `repr` of its objects leaves out fields
    that have their default value.

    If a field is given as a numpy number, it is converted to a Python number. So equal objects have the same
    `repr`.

    >>> @value
    ... class Filter:
    ...     theta: float = parameter(low=0, unit="counts")
    ...     sides: int = parameter(2, choices=(1, 2))
    >>> Filter(40.0)
    Filter(theta=40.0)
    >>> Filter(-1)
    Traceback (most recent call last):
    ValueError: Filter.theta = -1 is not allowed: need a number >= 0 (counts)
    """
    after = getattr(cls, "__post_init__", None)

    def __post_init__(self: Any) -> None:
        for f in fields(self):
            x = getattr(self, f.name)
            if type(x).__module__ == "numpy" and getattr(x, "shape", None) == ():
                object.__setattr__(self, f.name, x := x.item())
            if "check" in f.metadata and not (x is None and f.default is None):
                if wrong := _wrong(x, f.metadata):
                    raise not_allowed(self, f.name, wrong)
        if after:
            after(self)

    own = {"__post_init__": __post_init__, "__repr__": _repr}
    for name, method in own.items():
        setattr(cls, name, method)
    made: Any = dataclass(frozen=True, repr=False)(cls)
    if documented := [f for f in fields(made) if f.metadata.get("doc")]:
        made.__init__.__doc__ = _parameters_text(documented)
    return made


def not_allowed(owner: Any, field: str, why: str, given: str = "") -> ValueError:
    """Return the ValueError to raise if the value of a field of `owner` is not allowed.

    The message names the class, the field and its value, and ends with `why`. The text `given` may name other
    fields or data on which the rule depends.
    """
    text = (
        f"{type(owner).__name__}.{field} = {shown(getattr(owner, field))} is not allowed{given}"
    )
    return ValueError(f"{text}: {why}")


def shown(x: Any) -> str:
    """Return the `repr` of a value for an error message. A long `repr` is shortened, and the length of a
    string is added.

    >>> shown("Bern"), shown("x" * 200_000)
    ("'Bern'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (200,000 characters)")
    """
    text = repr(x)
    if len(text) <= 2 * _SHOWN:
        return text
    size = f" ({len(x):,} characters)" if isinstance(x, str) else ""
    return f"{text[:_SHOWN]}…{size}"


def plain(text: Any) -> str:
    """Return the text on one line, safe to print. Control characters, for example a line break, are replaced
    by escapes such as `\\n`.

    >>> plain("a\\x1b[2J\\nb"), plain("zone\\u00a0é")
    ('a\\\\x1b[2J\\\\nb', 'zone\\xa0é')
    """
    return "".join(c if _harmless(c) else ascii(c)[1:-1] for c in str(text))


def _harmless(character: str) -> bool:
    """Return whether a terminal displays a character and does nothing else. All kinds of spaces count as
    harmless.
    """
    return character.isprintable() or category(character) == "Zs"


def read_only(array: Any) -> Any:
    """Return the array itself if it is read-only, and otherwise a read-only copy of it."""
    return sealed(array.copy()) if array.flags.writeable else array


def sealed(array: Any) -> Any:
    """Make an array read-only and return it. The array must not be used by other code, because it is not
    copied.
    """
    array.flags.writeable = False
    return array


def _repr(self: Any) -> str:
    told = (f for f in fields(self) if f.repr and not _is_default(self, f))
    return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in told)})"


def _is_default(self: Any, f: Field[Any]) -> bool:
    x = getattr(self, f.name)
    return f.default is not MISSING and type(x) is type(f.default) and x == f.default


def _wrong(x: Any, rules: Mapping[str, Any]) -> str | None:
    """Return a text that says which values are needed if `rules` do not allow `x`, and otherwise None."""
    if not rules["many"]:
        return _wrong_one(x, rules)
    if not isinstance(x, tuple) or not x:
        return "need a tuple of at least one value"
    if len(set(x)) < len(x):
        return "need different values"
    return next(filter(None, (_wrong_one(one, rules) for one in x)), None)


def _wrong_one(x: Any, rules: Mapping[str, Any]) -> str | None:
    choices = rules["choices"]
    low = rules["low"]
    high = rules["high"]
    strict = rules["strict"]
    if choices:
        if any(type(x) is type(c) and x == c for c in choices):
            return None
        need = _need(rules)
        names = [c for c in choices if isinstance(c, str)]
        near = get_close_matches(x, names) if isinstance(x, str) else []
        if near:
            need += f". Did you mean {' or '.join(map(repr, near))}?"
        return rules["check"](x) and need if rules["check"] else need
    if rules["check"]:
        return rules["check"](x)
    kind = int if rules["integer"] else (int, float)
    good = isinstance(x, kind) and not isinstance(x, bool) and -inf < x < inf
    good = good and (low is None or x > low or (x == low and not strict))
    good = good and (high is None or x <= high)
    is_beyond = high is not None and isinstance(x, kind) and x > high
    return None if good else _need(rules, is_beyond)


def _need(rules: Mapping[str, Any], is_beyond: bool = False) -> str:
    """Return the allowed values in words, for example "need an integer >= 1". An upper limit above one
    million is named only if `is_beyond` is true, which means that the value exceeds the limit.
    """
    if rules["choices"]:
        return f"need one of {', '.join(map(repr, rules['choices']))}"
    low, high = rules["low"], rules["high"]
    need = "need an integer" if rules["integer"] else "need a number"
    if low is not None:
        need += f" {'>' if rules['strict'] else '>='} {low}"
    if high is not None and (is_beyond or high <= LARGE_LIMIT):
        need += f"{' and' if low is not None else ''} <= {high}"
    if rules["unit"]:
        need += f" ({rules['unit']})"
    return need


def _parameters_text(declared: list[Field[Any]]) -> str:
    """Return a numpy-style docstring with one entry for each field that was declared by `parameter`."""
    lines = ["Parameters", "----------"]
    for f in declared:
        kind = f.type if isinstance(f.type, str) else formatannotation(f.type)
        kind = re.sub(r"\w+\.", "", kind)  # of classes their names alone
        lines.append(f"{f.name} : {kind}" + (", optional" if f.default is not MISSING else ""))
        text = f"    {f.metadata['doc']}"
        if not f.metadata["check"]:
            text += "; " + _need(f.metadata).removeprefix("need ")
        if f.default not in (MISSING, None):
            text += f"; by default {f.default!r}"
        lines.append(text)
    return "\n".join(
        [*lines, "", "Raises", "------", "ValueError", "    For a value not allowed."]
    )


# Wording

_MINUS = str.maketrans("-", "−")
_COMPARED = 20_000  # names among which the nearest is looked for
_LONGEST = 60  # letters of such a name
_LISTED = 6


def number(x: float, digits: int = 6) -> str:
    """Return a number as text, the way people write it: with at most `digits` digits, and with commas between
    thousands.

    >>> number(0.9999999999999999), number(1_000_000), number(0.30000000000000004)
    ('1', '1,000,000', '0.3')
    >>> number(1e-9), number(2.5e20), number(-3), number(float("inf"))
    ('10⁻⁹', '2.5·10²⁰', '−3', '∞')
    """
    if isinstance(x, int) or (isfinite(x) and float(x).is_integer() and abs(x) < 1e15):
        return f"{int(x):,}".translate(_MINUS)
    if not isfinite(x):
        return _not_finite(x)
    if 1e-4 <= abs(x) < 1e15:
        decimals = max(digits - 1 - floor(log10(abs(x))), 0)
        text = f"{x:,.{decimals}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).translate(_MINUS)
    return power_of_ten(x, digits)


def stated(x: float) -> str:
    """Return a number as text without rounding it, for example the ε of a guarantee. Only the digits that
    come from floating-point errors are left out.

    >>> stated(0.9999999999999999), stated(0.1 + 0.2), stated(0.123456789012), stated(2.0)
    ('1', '0.3', '0.123456789012', '2')
    """
    clean = float(f"{x:.14g}")
    shown = clean if abs(clean - x) <= 4 * ulp(x) else float(x)
    return repr(shown).removesuffix(".0")


def stated_at_most(x: float, digits: int = 4) -> str:
    """Return a number as text, rounded up to `digits` digits. Use this function for an upper limit, for
    example δ, because a limit stays true if it is rounded up.

    >>> stated_at_most(2.141938928385474), stated_at_most(0.1 + 0.2), stated_at_most(12345.0)
    ('2.142', '0.3', '12350')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(stated(x))
    return stated(float(rounded))


def format_number(x: float) -> str:
    """Return a number as text with three significant digits, for use in a sentence.

    >>> format_number(0.01234), format_number(-20749.8), format_number(999.9), format_number(5.38e-52)
    ('0.0123', '−20,700', '1,000', '5.38·10⁻⁵²')
    """
    if not isfinite(x):
        return _not_finite(x)
    if 999.5 <= abs(x) < 1e15:
        return f"{round(x, 2 - floor(log10(abs(x)))):,.0f}".translate(_MINUS)
    if x and not 1e-4 <= abs(x) < 1e15:
        return power_of_ten(x)
    return f"{x:.3g}".translate(_MINUS)


def _not_finite(x: float) -> str:
    return "∞" if x > 0 else "−∞" if x < 0 else "unknown"


def power_of_ten(x: float, digits: int = 3) -> str:
    """Return a number as text with a power of ten. The factor before the power has at most `digits` digits.

    >>> power_of_ten(1e6), power_of_ten(-2.5e-7)
    ('10⁶', '−2.5·10⁻⁷')
    """
    mantissa, _, exponent = f"{x:.{digits - 1}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {"1": f"10{raised}", "-1": f"−10{raised}"}.get(
        mantissa, f"{mantissa}·10{raised}".replace("-", "−", 1)
    )


def counted(n: float, one: str, several: str = "") -> str:
    """Return a number with its noun in singular or plural, for example "2 cells". A number that is not an
    integer is rounded to three digits.

    >>> counted(1, "count"), counted(2_000, "count"), counted(2, "query", "queries")
    ('1 count', '2,000 counts', '2 queries')
    """
    text = number(n) if float(n).is_integer() else format_number(n)
    return f"{text} {one if text == '1' else several or f'{one}s'}"


def cell(x: Any) -> str:
    """Return a value as text for a cell of a printed table. A missing value (None or NaN) gives an empty
    text.
    """
    if x is None or x != x:
        return ""
    if isinstance(x, bool) or not hasattr(x, "__float__"):
        return str(x)
    return number(int(x) if float(x).is_integer() and abs(x) < 1e15 else float(x))


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the end of an error message about an unknown name. The text names up to three similar names. If
    no name is similar, it lists the first six names.

    >>> nearest("Bren", ["Bern", "Genf"]), nearest("x", ["Bern", "Genf"])
    ('the nearest is Bern', 'there are Bern, Genf')
    """
    by_lower = {other.lower(): other for other in names[:_COMPARED] if len(other) <= _LONGEST}
    near = get_close_matches(name[:_LONGEST].lower(), by_lower, n=3, cutoff=0.6)
    if near:
        verb = "is" if len(near) == 1 else "are"
        return f"the nearest {verb} {plain(', '.join(by_lower[other] for other in near))}"
    shown = ", ".join(other[:_LONGEST] for other in names[:_LISTED])
    more = f", and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"there {'is' if len(names) == 1 else 'are'} {plain(shown)}{more}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name. The text names up to three similar names. If
    no name is similar, it lists all names.
    """
    names = list(names)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f". Did you mean {' or '.join(near)}?"
    return f". There are: {', '.join(names)}"


# Arrays

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Bool, Complex, Float, Int, Num, UInt8, UInt32, UInt64
else:

    class _Shaped:
        def __class_getitem__(cls, item: Any) -> Any:
            return item[0]

    Bool = Complex = Float = Int = Num = UInt8 = UInt32 = UInt64 = _Shaped


def outer_rows(
    left: Num[np.ndarray, "rows m"], right: Num[np.ndarray, "rows n"]
) -> Num[np.ndarray, "rows mn"]:
    """Return an array whose row i is the outer product of row i of `left` and row i of `right`, flattened to
    one dimension.
    """
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def number_array(
    name: str, values: Num[np.ndarray, "..."], dimensions: int | None = None
) -> Float[np.ndarray, "..."]:
    """Return the values as an array of floats. Raise a ValueError if they are not numbers, or if the array
    does not have the stated number of `dimensions`.
    """
    import numpy as np

    try:
        values = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {np.asarray(values).dtype}") from None
    if dimensions is not None and values.ndim != dimensions:
        raise ValueError(
            f"{name} of shape {values.shape} is not allowed: need a plain sequence"
        )
    return values


def finite_array(
    name: str, values: Num[np.ndarray, "..."], dimensions: int | None = None
) -> Float[np.ndarray, "..."]:
    """Return the values as an array of floats. If a value is infinite or NaN, a ValueError names the first
    such value and its place.
    """
    import numpy as np

    values = number_array(name, values, dimensions)
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):  # then all are, in one pass
            return values
    bad = ~np.isfinite(values)
    if bad.any():  # finite numbers may have a sum that is not
        at = int(np.flatnonzero(bad.ravel())[0])
        raise ValueError(
            f"{name}[{at}] = {values.ravel()[at]} is not allowed: need finite numbers"
        )
    return values
