"""Fields of an estimate that come from a file, checked one by one before anything is made of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from workbench.value import shown

_ARRAY = re.compile(r"(Int|UInt64|Float|Num)\[np\.ndarray, ['\"](.*)['\"]\]$")
_KINDS = {"Int": "iu", "UInt64": "u", "Float": "iuf", "Num": "iuf"}  # whole numbers are numbers
_MOST_WHOLE = 2**62  # the sum of two is still a number of 64 bits
_MOST = 1e100  # its square is still a float
_FINITE = "finite numbers up to 10^100"
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("step", "scale"), (lambda x: x > 0, "above 0")),
    "variance": (lambda x: x >= 0, "at least 0"),
    **dict.fromkeys(
        ("theta", "tau", "total"), (lambda x: 0 <= x <= _MOST_WHOLE, "from 0 to 2^62")
    ),
    "sides": (lambda x: x in (1, 2), "1 or 2"),
    "branching": (lambda x: x >= 2, "at least 2"),
    "flip_probability": (lambda x: 0 < x < 1, "between 0 and 1"),
    "estimate": (lambda x: x in ("mean", "median"), "'mean' or 'median'"),
    "sweeps": (lambda x: 0 <= x <= 10**6, "from 0 to a million"),
    "steps": (lambda x: 0 <= x <= 10**9, "from 0 to a billion"),
    "variances": (lambda x: bool((x >= 0).all()), "at least 0"),
    "retention": (lambda x: all(0 <= p <= 1 for p in x), "between 0 and 1"),
}


def check_fields(cls: type, given: dict[str, Any]) -> None:
    """Refuse what is not of a field's type, shape or range.

    Parameters
    ----------
    cls : type
        A dataclass, whose annotations say what fields are.
    given : dict
        Its fields from a file.

    Raises
    ------
    ValueError
        The field, what it holds, and what it needs.
    """
    sizes: dict[str, int] = {}
    for field in fields(cls):
        if field.name in given:
            x = given[field.name]
            need = _array_need(field.type, x, sizes) or _scalar_need(field, x)
            if not need and field.name in _RANGES and x is not None:
                good, allowed = _RANGES[field.name]
                need = "" if good(x) else allowed
            if need:
                raise ValueError(f"{field.name} = {shown(x)} is not allowed: need {need}")


def refuse_unless(holds: Any, name: str, need: str) -> None:
    """A ValueError if a field of a file is not as all of its kind are."""
    if not holds:
        raise ValueError(f"{name} are not allowed: need {need}")


def refuse_unless_finite(x: np.ndarray, name: str) -> None:
    """A ValueError if numbers of a file are too large, or none."""
    refuse_unless(_is_finite(x), name, _FINITE)


def _is_finite(x: np.ndarray) -> bool:
    return bool((np.abs(x) <= _MOST).all())


def _array_need(kind: Any, x: Any, sizes: dict[str, int]) -> str:
    """What an array of a file would have to be, "" if it is; arrays of one dimension name are as long."""
    match = _ARRAY.match("UInt64[np.ndarray, 'words n']" if kind == "Keys" else str(kind))
    if not match:
        return ""
    wanted, names = match[1], match[2].split()
    kinds = _KINDS[wanted]
    if not isinstance(x, np.ndarray) or x.dtype.kind not in kinds:
        return "numbers" if "f" in kinds else "whole numbers"
    if "i" in kinds and x.dtype == np.uint64:
        return "numbers that may be below 0"
    if x.ndim != len(names):
        return f"{len(names)} dimensions"
    for name, size in zip(names, x.shape, strict=True):
        if sizes.setdefault(name, size) != size:
            return f"{sizes[name]} numbers, as others have"
    if x.dtype.kind == "f":
        return "" if _is_finite(x) else _FINITE
    if "i" in kinds and x.size and not -_MOST_WHOLE <= x.min() <= x.max() <= _MOST_WHOLE:
        return "whole numbers up to 2^62"
    return ""


def _scalar_need(field: Any, x: Any) -> str:
    """What a number, truth value or text would have to be, "" if it is."""
    kind = str(field.type).removesuffix(" | None")
    if x is None and kind != field.type:
        return ""
    match kind:
        case "float":
            number = isinstance(x, int | float) and not isinstance(x, bool)
            may_be_nan = field.default != field.default  # not known
            if number and x != x:
                return "" if may_be_nan else "a finite number"
            most = _MOST_WHOLE if isinstance(x, int) else _MOST
            return "" if number and abs(x) <= most else "a finite number up to 10^100"
        case "int":
            good = isinstance(x, int) and not isinstance(x, bool) and abs(x) < 2**63
            return "" if good else "a whole number"
        case "bool":
            return "" if isinstance(x, bool) else "true or false"
        case "str":
            return "" if isinstance(x, str) else "text"
        case "Law":
            return "" if x is not None else "a law of noise"
    return ""
