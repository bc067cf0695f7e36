"""Factors of product queries: made from what a user writes, and multiplied with a table's cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float, Int
from workbench.domain import Domain
from workbench.workload import kernels
from workbench.workload.linear import MAX_DENSE_CELLS

Factors = Sequence["Float[np.ndarray, 'rows values']"]


def factor_values(domain: Domain, name: str, factor: Any) -> Float[np.ndarray, " values"]:
    """A value for each code, from (lo, hi), a set of codes, or values."""
    n = domain.shape[domain.axis(name)]
    indicator = np.zeros(n)
    if isinstance(factor, set | frozenset):
        codes = np.array(sorted(factor))
        if len(codes) and (codes.dtype.kind not in "iu" or codes[0] < 0 or codes[-1] >= n):
            raise ValueError(
                f"codes {factor} of {name!r} are not allowed: need 0 <= code < {n}"
            )
        indicator[codes.astype(np.int64)] = 1
        return indicator
    if isinstance(factor, tuple) and len(factor) == 2 and not isinstance(factor[0], bool):
        lo, hi = factor
        if not (lo == int(lo) and hi == int(hi) and 0 <= lo <= hi <= n):
            raise ValueError(
                f"range {factor} of {name!r} is not allowed: need whole 0 <= lo <= hi <= {n}"
            )
        indicator[int(lo) : int(hi)] = 1
        return indicator
    values = np.asarray(factor, float)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(
            f"a factor of {name!r} must be (lo, hi), a set of codes, or {n} finite values"
        )
    return values + 0.0  # no negative zero, which is another text


def haar_factors(n: int) -> list[Float[np.ndarray, " n"]]:
    """1, and the Haar wavelets over the next power of two of n codes that are not 0 on all of them."""
    factors = [np.ones(n)]
    code = np.arange(n)
    width = 1 << (n - 1).bit_length()
    while width > 1:
        for start in range(0, n, width):
            inside = (code >= start) & (code < start + width)
            sign = np.where(code < start + width // 2, 1.0, -1.0)
            factors.append(np.where(inside, sign, 0.0))
        width //= 2
    return factors


class FlatTables(NamedTuple):
    """Tables of several attributes one after the other, for compiled loops."""

    values: Float[np.ndarray, " n"]
    starts: Int[np.ndarray, " attributes"]
    widths: Int[np.ndarray, " attributes"]  # of a row


def flat_tables(tables: Sequence[Float[np.ndarray, "rows columns"]]) -> FlatTables:
    """Tables (rows, columns), one an attribute, as one vector."""
    starts = np.cumsum([0, *(t.size for t in tables)])[:-1].astype(np.int64)
    values = np.concatenate([np.empty(0), *(t.ravel() for t in tables)])
    return FlatTables(values, starts, np.array([t.shape[1] for t in tables], np.int64))


def sums_over_dense_cells(
    factors: Factors, rows: Int[np.ndarray, "terms factors"], dense: Float[np.ndarray, "..."]
) -> Float[np.ndarray, " terms"]:
    """Σ over all cells of dense·Π factor[row], attribute by attribute."""
    if not factors:
        return np.full(len(rows), float(dense))
    if len(factors) <= 2:
        return _sums_over_plane(factors, rows, dense)
    sums = np.empty(len(rows))
    step = max(1, MAX_DENSE_CELLS // (dense.size // dense.shape[0]))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        left = factors[0][block[:, 0]] @ dense.reshape(dense.shape[0], -1)
        for k, factor in enumerate(factors[1:], 1):
            left = left.reshape(len(block), factor.shape[1], -1)
            left = np.matmul(factor[block[:, k]][:, None, :], left)[:, 0]
        sums[start : start + step] = left[:, 0]
    return sums


def _sums_over_plane(
    factors: Factors, rows: Int[np.ndarray, "terms factors"], dense: Float[np.ndarray, "..."]
) -> Float[np.ndarray, " terms"]:
    """The same over one or two attributes: the product with each different factor once."""
    different, first = np.unique(rows[:, 0], return_inverse=True)
    left = factors[0][different] @ dense
    if len(factors) == 1:
        return left[first]
    columns, second = np.unique(rows[:, 1], return_inverse=True)
    if len(different) * len(columns) <= 64 * len(rows):
        return (left @ factors[1][columns].T)[first, second]
    return np.einsum("tj,tj->t", left[first], factors[1][rows[:, 1]])


def sums_over_occupied_cells(
    factors: Factors,
    rows: Int[np.ndarray, "terms factors"],
    codes: Int[np.ndarray, "factors cells"],
    values: Float[np.ndarray, " cells"],
) -> Float[np.ndarray, " terms"]:
    """Σ over the occupied cells of value·Π factor[row]."""
    sums = np.zeros(len(rows))
    kernels.scattered(np.ascontiguousarray(rows), *flat_tables(factors), codes, values, sums)
    return sums


def limbs_over_occupied_cells(
    coefficients: Float[np.ndarray, " terms"],
    factors: Factors,
    rows: Int[np.ndarray, "terms factors"],
    codes: Int[np.ndarray, "factors cells"],
    counts: Int[np.ndarray, " cells"],
    grid: float,
) -> Int[np.ndarray, "terms 3"]:
    """Σ over the occupied cells of count·round(term/grid), in three parts of 9 bits."""
    limbs = np.zeros((len(rows), 3), np.int64)
    rows = np.ascontiguousarray(rows)
    kernels.limbs(coefficients, rows, *flat_tables(factors), codes, counts, grid, limbs)
    return limbs
