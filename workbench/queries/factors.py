"""Factors of queries, and compiled loops that evaluate such queries. The value of a query for a record is a
sum of products with one factor per attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import njit, prange
from workbench.queries.linear import MAX_DENSE_CELLS
from workbench.spaces import Domain
from workbench.value import Float, Int

# Kernels


@njit(cache=True, nogil=True, parallel=True)
def inner(offsets, times, which, table, starts, widths, sets, sizes, ends, cols, other, out):
    """Compute the inner products of all queries of one workload with all queries of another.

    A query is a sum of terms, and a term is a coefficient times one factor per attribute. Consider term s of
    query i and term t of query j. Their inner product is the product of their coefficients and of one number
    H_k[s, t] for each attribute k. The function adds these products to out[i, j].

    `table` contains the matrices H_k of all attributes, one after the other. Matrix k begins at position
    `starts[k]`, and each of its rows has `widths[k]` numbers. Row 0 and column 0 are for terms that do not
    use the attribute. For the terms s, `times` contains the coefficients and `which` the rows of H_k.

    The terms t are sorted into groups of terms that use the same attributes. Row g of `sets` begins with the
    `sizes[g]` attributes of group g, and the last term of the group is just before `ends[g]`. `cols`
    contains, for each attribute and term t, the column of H_k. `other` contains the coefficient and the query
    number of each term t.
    """
    queries, owner = other
    d = which.shape[1]
    for i in prange(offsets.size - 1):
        for s in range(offsets[i], offsets[i + 1]):
            begin = 0
            for g in range(ends.size):
                scale = times[s]
                used = sizes[g]
                for k in range(d):
                    if which[s, k]:
                        shared = False
                        for j in range(used):
                            shared |= sets[g, j] == k
                        if not shared:
                            scale *= table[starts[k] + which[s, k] * widths[k]]
                if used == 2:
                    a = sets[g, 0]
                    b = sets[g, 1]
                    at = starts[a] + which[s, a] * widths[a]
                    bt = starts[b] + which[s, b] * widths[b]
                    for t in range(begin, ends[g]):
                        out[i, owner[t]] += (
                            scale * queries[t] * table[at + cols[a, t]] * table[bt + cols[b, t]]
                        )
                else:
                    for t in range(begin, ends[g]):
                        x = scale * queries[t]
                        for j in range(used):
                            k = sets[g, j]
                            x *= table[starts[k] + which[s, k] * widths[k] + cols[k, t]]
                        out[i, owner[t]] += x
                begin = ends[g]


@njit(cache=True, nogil=True, parallel=True)
def diagonal(offsets, times, which, table, starts, widths, out):
    """Compute the inner product of each query i with itself, and write it to out[i]. The arguments are those
    of `inner`.
    """
    for i in prange(offsets.size - 1):
        total = 0.0
        for s in range(offsets[i], offsets[i + 1]):
            for t in range(offsets[i], offsets[i + 1]):
                x = times[s] * times[t]
                for k in range(which.shape[1]):
                    x *= table[starts[k] + which[s, k] * widths[k] + which[t, k]]
                total += x
        out[i] = total


@njit(cache=True, nogil=True, parallel=True)
def scattered(which, factors, starts, widths, codes, values, out):
    """Compute for each term t a sum over the given cells, and write it to out[t]. A cell adds its value times
    the factors that the term has for the codes of the cell. `codes` contains one row per attribute and one
    column per cell.
    """
    for t in prange(which.shape[0]):
        total = 0.0
        for c in range(codes.shape[1]):
            x = values[c]
            for k in range(codes.shape[0]):
                x *= factors[starts[k] + which[t, k] * widths[k] + codes[k, c]]
                if x == 0:
                    break
            total += x
        out[t] = total


@njit(cache=True, nogil=True, parallel=True)
def limbs(times, which, factors, starts, widths, codes, counts, grid, out):
    """Compute for each term a sum over cells: the count of the cell times the value of the term, rounded to
    multiples of `grid`. The multiples are split into three parts of 9 bits that are added up separately, so
    no sum overflows.
    """
    for t in prange(which.shape[0]):
        high = np.int64(0)
        middle = np.int64(0)
        low = np.int64(0)
        for c in range(codes.shape[1]):
            x = times[t]
            for k in range(codes.shape[0]):
                x *= factors[starts[k] + which[t, k] * widths[k] + codes[k, c]]
                if x == 0:
                    break
            units = np.int64(np.rint(x / grid))
            high += (units >> 18) * counts[c]
            middle += ((units >> 9) & 511) * counts[c]
            low += (units & 511) * counts[c]
        out[t, 0] = high
        out[t, 1] = middle
        out[t, 2] = low


# Factors

Factors = Sequence["Float[np.ndarray, 'rows values']"]


def factor_values(domain: Domain, name: str, factor: Any) -> Float[np.ndarray, " values"]:
    """Return a factor, which is a function of one attribute, as an array. The array has one value per code
    (number of a value) of the attribute. The factor is given as an interval (lo, hi), as a set of codes, or
    as such an array. Codes in the interval or set get the value 1, and others 0.
    """
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
                f"range {factor} of {name!r} is not allowed: need integers 0 <= lo <= hi <= {n}"
            )
        indicator[int(lo) : int(hi)] = 1
        return indicator
    values = np.asarray(factor, float)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(
            f"a factor of {name!r} must be (lo, hi), a set of codes, or {n} finite values"
        )
    return values + 0.0  # turns −0 into 0, so equal queries have equal bytes


def haar_factors(n: int) -> list[Float[np.ndarray, " n"]]:
    """Return the Haar wavelets for an attribute with n codes, one array of n values per wavelet. The first is
    constantly 1.

    The wavelets are those over the next power of two above n. Wavelets that are 0 on all n codes are left
    out.
    """
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
    """Matrices, one per attribute, stored one after the other in one vector. Compiled loops use this form."""

    values: Float[np.ndarray, " n"]
    starts: Int[np.ndarray, " attributes"]
    widths: Int[np.ndarray, " attributes"]  # numbers in each row


def flat_tables(tables: Sequence[Float[np.ndarray, "rows columns"]]) -> FlatTables:
    """Join matrices, one per attribute, into one vector. Also return the position and the row length of each
    matrix.
    """
    starts = np.cumsum([0, *(t.size for t in tables)])[:-1].astype(np.int64)
    values = np.concatenate([np.empty(0), *(t.ravel() for t in tables)])
    return FlatTables(values, starts, np.array([t.shape[1] for t in tables], np.int64))


def sums_over_dense_cells(
    factors: Factors, rows: Int[np.ndarray, "terms factors"], dense: Float[np.ndarray, "..."]
) -> Float[np.ndarray, " terms"]:
    """Return for each term a sum over all cells of an array: the number in the cell times the term's factors
    for the codes of the cell. `rows` says which row of each factor matrix a term uses.
    """
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
    """Return the sums of `sums_over_dense_cells` if the array has one or two attributes. A factor that
    several terms use is multiplied only once.
    """
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
    """Return for each term a sum over the cells that are not empty: the value of the cell times the term's
    factors for the codes of the cell. `rows` says which row of each factor matrix a term uses.
    """
    sums = np.zeros(len(rows))
    scattered(np.ascontiguousarray(rows), *flat_tables(factors), codes, values, sums)
    return sums


def limbs_over_occupied_cells(
    coefficients: Float[np.ndarray, " terms"],
    factors: Factors,
    rows: Int[np.ndarray, "terms factors"],
    codes: Int[np.ndarray, "factors cells"],
    counts: Int[np.ndarray, " cells"],
    grid: float,
) -> Int[np.ndarray, "terms 3"]:
    """Return for each term a sum over the cells that are not empty: the count of the cell times the value of
    the term, rounded to multiples of `grid`. The multiples are split into three parts of 9 bits that are
    added up separately, so no sum overflows.
    """
    parts = np.zeros((len(rows), 3), np.int64)
    rows = np.ascontiguousarray(rows)
    limbs(coefficients, rows, *flat_tables(factors), codes, counts, grid, parts)
    return parts
