"""Numbers and counts as people write them: one formatter for commands, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context
from difflib import get_close_matches
from math import floor, isfinite, log10, ulp
from typing import Any

from workbench.value import plain

_MINUS = str.maketrans("-", "−")
_COMPARED = 20_000  # names among which the nearest is looked for
_LONGEST = 60  # letters of such a name
_LISTED = 6


def number(x: float, digits: int = 6) -> str:
    """A number with at most so many digits, thousands parted, no binary dust and no exponent on its own.

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
    """A number of which no digit is dropped but binary dust: a promise is never rounded.

    >>> stated(0.9999999999999999), stated(0.1 + 0.2), stated(0.123456789012), stated(2.0)
    ('1', '0.3', '0.123456789012', '2')
    """
    clean = float(f"{x:.14g}")
    shown = clean if abs(clean - x) <= 4 * ulp(x) else float(x)
    return repr(shown).removesuffix(".0")


def stated_at_most(x: float, digits: int = 4) -> str:
    """The least number of so many digits that is no less: a weaker promise, which is easier to read.

    >>> stated_at_most(2.141938928385474), stated_at_most(0.1 + 0.2), stated_at_most(12345.0)
    ('2.142', '0.3', '12350')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(stated(x))
    return stated(float(rounded))


def format_number(x: float) -> str:
    """Three digits, as sentences have them.

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
    """A number by its power of ten.

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
    """How many of a thing, in words, with three digits where it is no whole number.

    >>> counted(1, "count"), counted(2_000, "count"), counted(2, "query", "queries")
    ('1 count', '2,000 counts', '2 queries')
    """
    text = number(n) if float(n).is_integer() else format_number(n)
    return f"{text} {one if text == '1' else several or f'{one}s'}"


def cell(x: Any) -> str:
    """What a cell of a table says: numbers as people write them, nothing for what is missing."""
    if x is None or x != x:
        return ""
    if isinstance(x, bool) or not hasattr(x, "__float__"):
        return str(x)
    return number(int(x) if float(x).is_integer() and abs(x) < 1e15 else float(x))


def nearest(name: str, names: Sequence[str]) -> str:
    """The names nearest to one that is none of them, else the first few, to end a sentence with.

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
    """The names nearest to one that does not exist, else all of them, to end a sentence with."""
    names = list(names)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are: {', '.join(names)}"
