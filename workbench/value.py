"""Frozen values with checked fields, numbers as people write them, and types of arrays."""

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
    """Declare one field of a value. Validation, widgets, the command line and the docs all use this
    declaration.

    A number may be from `low` to `high`. With `strict`, it may not be `low` itself. `choices` lists the
    allowed values. `check` returns None for a value that is allowed, and otherwise a description of the
    fault. If both are given, a value needs to satisfy only one. With `many`, the value is a tuple of one or
    more such values, all different. If the default is None, None is allowed and means that the object
    chooses the value. `kind` is for the parameters of figures (`figures.KINDS`).
    """
    limits = dict(low=low, high=high, unit=unit, integer=integer, strict=strict)
    rules = limits | dict(choices=choices, check=check, many=many)
    return field(default=default, metadata=rules | {"doc": doc, "kind": kind})


def subset_of(names: Collection[str]) -> Callable[[Any], str | None]:
    """Return a check for `parameter`. It accepts a tuple of one or more of `names`, each at most once."""

    def wrong(chosen: Any) -> str | None:
        good = isinstance(chosen, tuple) and 0 < len(set(chosen)) == len(chosen)
        good = good and all(name in names for name in chosen)
        return None if good else f"need a tuple of different names out of {', '.join(names)}"

    return wrong


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type) -> type:
    """Make `cls` a frozen dataclass that checks its fields and omits defaults from its `repr`.

    Numpy scalars become Python numbers, so that equal values have equal text.

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
    """Return the error for a value that a field of `owner` does not allow. `given` describes other fields
    or data that matter.
    """
    text = (
        f"{type(owner).__name__}.{field} = {shown(getattr(owner, field))} is not allowed{given}"
    )
    return ValueError(f"{text}: {why}")


def shown(x: Any) -> str:
    """Return a value for an error message, shortened if it is long.

    >>> shown("Bern"), shown("x" * 200_000)
    ("'Bern'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (200,000 characters)")
    """
    text = repr(x)
    if len(text) <= 2 * _SHOWN:
        return text
    size = f" ({len(x):,} characters)" if isinstance(x, str) else ""
    return f"{text[:_SHOWN]}…{size}"


def plain(text: Any) -> str:
    """Return text on one line. Control characters that could change a terminal are escaped.

    >>> plain("a\\x1b[2J\\nb"), plain("zone\\u00a0é")
    ('a\\\\x1b[2J\\\\nb', 'zone\\xa0é')
    """
    return "".join(c if _harmless(c) else ascii(c)[1:-1] for c in str(text))


def _harmless(character: str) -> bool:
    """Return whether a terminal just displays a character. Unusual spaces are harmless too."""
    return character.isprintable() or category(character) == "Zs"


def read_only(array: Any) -> Any:
    """Return a read-only array. It is the array itself if that is read-only, and otherwise a copy."""
    return sealed(array.copy()) if array.flags.writeable else array


def sealed(array: Any) -> Any:
    """Make an array read-only and return it. Use this for arrays that no other code holds."""
    array.flags.writeable = False
    return array


def _repr(self: Any) -> str:
    told = (f for f in fields(self) if f.repr and not _is_default(self, f))
    return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in told)})"


def _is_default(self: Any, f: Field[Any]) -> bool:
    x = getattr(self, f.name)
    return f.default is not MISSING and type(x) is type(f.default) and x == f.default


def _wrong(x: Any, rules: Mapping[str, Any]) -> str | None:
    """Return a description of the fault of `x`, or None."""
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
            need += f"; did you mean {' or '.join(map(repr, near))}?"
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
    """Return the allowed values, in words. A large upper limit is named if it `is_beyond`."""
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
    """Return the fields declared by `parameter` in the form of numpy docstrings."""
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
    """Return the text of a number, as people write it. It has at most `digits` digits, and commas for
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
    """Return the text of a number that is promised. Only digits that come from floating-point rounding are
    left out.

    >>> stated(0.9999999999999999), stated(0.1 + 0.2), stated(0.123456789012), stated(2.0)
    ('1', '0.3', '0.123456789012', '2')
    """
    clean = float(f"{x:.14g}")
    shown = clean if abs(clean - x) <= 4 * ulp(x) else float(x)
    return repr(shown).removesuffix(".0")


def stated_at_most(x: float, digits: int = 4) -> str:
    """Return the text of `x`, rounded up to `digits` digits. This is a slightly weaker promise that is
    easier to read.

    >>> stated_at_most(2.141938928385474), stated_at_most(0.1 + 0.2), stated_at_most(12345.0)
    ('2.142', '0.3', '12350')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(stated(x))
    return stated(float(rounded))


def format_number(x: float) -> str:
    """Return the text of a number with three digits, for use in a sentence.

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
    """Return a number as a power of ten.

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
    """Return a number and its noun, for example "2 cells". A number that is not an integer gets three
    digits.

    >>> counted(1, "count"), counted(2_000, "count"), counted(2, "query", "queries")
    ('1 count', '2,000 counts', '2 queries')
    """
    text = number(n) if float(n).is_integer() else format_number(n)
    return f"{text} {one if text == '1' else several or f'{one}s'}"


def cell(x: Any) -> str:
    """Return the text of a table cell. Numbers are written as people write them, and missing values are
    empty.
    """
    if x is None or x != x:
        return ""
    if isinstance(x, bool) or not hasattr(x, "__float__"):
        return str(x)
    return number(int(x) if float(x).is_integer() and abs(x) < 1e15 else float(x))


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name. It lists the most similar names or, if there are
    none, the first few names.

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
    """Return the end of a sentence about an unknown name. It lists the most similar names or, if there are
    none, all names.
    """
    names = list(names)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are: {', '.join(names)}"


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
    """Return, for each row number, the outer product of these rows of two arrays. It is flattened to one
    row.
    """
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def number_array(
    name: str, values: Num[np.ndarray, "..."], dimensions: int | None = None
) -> Float[np.ndarray, "..."]:
    """Return the values as an array of floats. Raise a ValueError if it has another number of dimensions."""
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
    """Return the values as floats. If one is not finite, raise a ValueError that names the first."""
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
