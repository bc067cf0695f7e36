"""Numbers and counts as people write them: one formatter for commands, pages and notebooks."""

from __future__ import annotations

from math import floor, isfinite, log10
from typing import Any

_MINUS = str.maketrans("-", "−")


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
        return "∞" if x > 0 else "−∞" if x < 0 else "unknown"
    if 1e-4 <= abs(x) < 1e15:
        decimals = max(digits - 1 - floor(log10(abs(x))), 0)
        text = f"{x:,.{decimals}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).translate(_MINUS)
    return power_of_ten(x, digits)


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


def counted(n: int, one: str, several: str = "") -> str:
    """How many of a thing, in words.

    >>> counted(1, "count"), counted(2_000, "count"), counted(2, "query", "queries")
    ('1 count', '2,000 counts', '2 queries')
    """
    return f"{number(n)} {one if n == 1 else several or f'{one}s'}"


def cell(x: Any) -> str:
    """What a cell of a table says: numbers as people write them, nothing for what is missing."""
    if x is None or x != x:
        return ""
    if isinstance(x, bool) or not hasattr(x, "__float__"):
        return str(x)
    return number(int(x) if float(x).is_integer() and abs(x) < 1e15 else float(x))
