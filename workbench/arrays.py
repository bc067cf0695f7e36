"""Types of arrays with their shapes, for readers: their library is not loaded when code runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Complex, Float, Int, Num, UInt8, UInt32, UInt64
else:

    class _Shaped:
        def __class_getitem__(cls, item: Any) -> Any:
            return item[0]

    Bool = Complex = Float = Int = Num = UInt8 = UInt32 = UInt64 = _Shaped


def outer_rows(
    left: Num[np.ndarray, "rows m"], right: Num[np.ndarray, "rows n"]
) -> Num[np.ndarray, "rows mn"]:
    """The outer product of each row with the same row of another array, as a row."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def number_array(
    name: str, values: Num[np.ndarray, "..."], dimensions: int | None = None
) -> Float[np.ndarray, "..."]:
    """The values as floats of so many dimensions, or a ValueError."""
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
    """The values as floats, or a ValueError that names the first that is none."""
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
