"""Reports, which are records that were randomised one by one, and the counts that are estimated from reports.

Randomised response changes each attribute separately. For one attribute, the matrix M
contains the probability of each reported value for each true value. For several attributes, M is the Kronecker
product of the attributes' matrices, and M⁻¹ is the Kronecker product of the inverses. A query f has the
unbiased answer Σ (M⁻¹ᵀ f)(report), summed over the reports. For fixed data, the variance of this answer also
has an unbiased estimate, Σ (M⁻¹ᵀ f)² − (the answer to f²). Source: Agrawal, Srikant & Thomas, SIGMOD 2005, and
Mishra & Sandler, PODS 2006.

Reports that consist of bits: joint distributions of a few attributes are computed from the number of reports
in which certain bits are set. Other answers are computed from an unbiased estimate of each original bit, and
so are the sums of squares in all variances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Answers, Estimate, check_weights
from workbench.estimates.stored import check_arrays, read_keys, refuse_unless
from workbench.noise import response
from workbench.noise.response import bit_layout
from workbench.queries import (
    Linear,
    Margins,
    Products,
    Recipe,
    TableQueries,
    Together,
    linear_queries,
)
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, UInt64, outer_rows, sealed

# Queries


def clip_to_total(joint: Float[np.ndarray, "..."], total: float) -> Float[np.ndarray, "..."]:
    """Set the negative counts in a table to 0, and multiply the other counts by one factor so that all counts
    add up to `total`. If no count is positive, all counts become equal.
    """
    joint = np.maximum(joint, 0)
    positive = joint.sum()
    if positive > 0:
        return joint * (total / positive)
    return np.full(joint.shape, total / joint.size)


def reweighted(queries: Linear, power: int, invert: Callable[..., np.ndarray]) -> Linear:
    """Return queries with other weights. First, `invert(weights, attribute, axis)` changes the weights along
    the axis of each attribute. Then all weights are raised to the given power.
    """
    if isinstance(queries, Together):
        return Together(tuple(reweighted(part, power, invert) for part in queries.parts))
    if isinstance(queries, TableQueries):
        groups = []
        for names, tables in queries.groups:
            for axis, name in enumerate(names, start=1):
                tables = invert(tables, name, axis)
            groups.append((names, sealed(tables**power)))
        return TableQueries(tuple(groups), queries.order)
    assert isinstance(queries, Products)
    factors = []
    for name, factor in zip(queries.attributes, queries.factors, strict=True):
        weights = invert(factor, name, -1) ** power
        weights[0] = 1  # but for rounding
        factors.append(sealed(weights))
    return replace(queries, factors=tuple(factors), times=queries.times**power)


def unchanged(weights: np.ndarray, attribute: str, axis: int) -> np.ndarray:
    """Return the weights."""
    return weights


def are_single(queries: Linear) -> Bool[np.ndarray, " queries"]:
    """Return a mask that is true for the queries that consist of a single product or table."""
    if isinstance(queries, Together):
        return np.concatenate([are_single(part) for part in queries.parts])
    if isinstance(queries, TableQueries):
        return np.ones(len(queries), bool)
    assert isinstance(queries, Products)
    return np.diff(queries.offsets) <= 1


# Reports

_MAX_JOINT_CELLS = 2**22
_MOST_REPORTS = 2**26  # of a file, which holds each of them in memory


class RandomisedReports(Estimate):
    """Base class of estimates that consist of randomised reports, namely `Reports` and `BitReports`."""

    contents: ClassVar[str] = "reports"
    rows_are_counts: ClassVar[bool] = False
    domain: Domain

    @property
    def total(self) -> int:
        """Number of reports. Each record of the data gives one report."""
        raise NotImplementedError

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        """Return, for each query, a sum over the reports. Each report adds its estimate of the answer, raised
        to the given power.
        """
        raise NotImplementedError

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """Return the estimated count of each combination of values of the attributes with the positions
        `axes`, which must be ascending.
        """
        raise NotImplementedError

    @property
    def held(self) -> str:
        """Text that says how many reports there are."""
        return f"{self.total:,} reports"

    def answer(self, workload: Recipe, weights: str = "unbiased", error: bool = False) -> Any:
        """Return estimated answers to linear queries. The answers are unbiased, and may be negative.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain of the reports.
        weights : "unbiased" or "raw"
            The two settings give the same answers, because reports are not sampled.
        error : bool
            Whether to return also the standard errors of the answers. Default False.

        Returns
        -------
        float64[queries], or a pair of them
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers and
            standard errors. A standard error is NaN if the query is a sum of several products (see `Products`).

        Raises
        ------
        ValueError
            If `weights` is neither "unbiased" nor "raw", or if the queries are not linear.
        """
        check_weights(weights)
        queries = linear_queries(workload, self.domain)
        answers = self._sums(queries)
        if not error:
            return answers
        variance = self._sums(queries, 2) - self._sums(reweighted(queries, 2, unchanged))
        errors = np.sqrt(np.maximum(variance, 0))
        return Answers(answers, np.where(are_single(queries), errors, np.nan))

    def joint(
        self, attributes: Sequence[str], clipped: bool = False
    ) -> Float[np.ndarray, "..."]:
        """Return the estimated counts for all combinations of values of a few attributes.

        Parameters
        ----------
        attributes : sequence of str
            Names of different attributes. Each attribute becomes one axis of the result.
        clipped : bool
            Whether to set negative counts to 0, and to scale the other counts so that they add up to the number
            of reports. Default False.

        Returns
        -------
        float64[...]
            Counts of records.

        Raises
        ------
        ValueError
            If an attribute is named twice or is not in the domain, or if there are more than 2²²
            combinations.
        """
        axes = tuple(self.domain.axis(name) for name in attributes)
        cells = prod(self.domain.shape[k] for k in axes)
        if not axes or len(set(axes)) < len(axes):
            raise ValueError(
                f"attributes = {attributes!r} are not allowed: need different attributes"
            )
        if cells > _MAX_JOINT_CELLS:
            raise ValueError(
                f"a joint table of {cells} cells is too large: need at most {_MAX_JOINT_CELLS}"
            )
        ascending = sorted(axes)
        joint = self._joint(tuple(ascending)).transpose([ascending.index(k) for k in axes])
        return clip_to_total(joint, self.total) if clipped else joint


@dataclass(frozen=True)
class _CellCounts:
    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]


@dataclass(frozen=True, eq=False, repr=False)
class Reports(RandomisedReports):
    """Reports of people whose values were kept or replaced at random. `keys` contains one key per report, in
    ascending order. The key is the number of the reported cell. Several reports may have the same cell.

    `retention` contains, for each attribute, the probability p with which the true value was kept. If the true
    value was not kept, the reported value was drawn uniformly from the attribute's n values. For each true
    value, the reported value has a probability distribution. These distributions are the rows of the matrix p·I
    + (1 − p)/n·11ᵀ, where I is the identity matrix and 11ᵀ is a matrix of ones. To estimate the true counts,
    the workbench multiplies the reported counts by the inverse of this matrix, which is (I − (1 − p)/n·11ᵀ)/p.
    """

    domain: Domain
    keys: Int[np.ndarray, " reports"]
    retention: tuple[float, ...]
    kind: ClassVar[str] = "reports"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "retention", tuple(map(float, self.retention)))

    @property
    def total(self) -> int:
        """Number of reports, which is the number of records in the data."""
        return len(self.keys)

    @cached_property
    def _cells(self) -> _CellCounts:
        first = np.flatnonzero(np.diff(self.keys, prepend=-1))
        return _CellCounts(self.keys[first], np.diff(first, append=len(self.keys)))

    def __len__(self) -> int:
        return len(self._cells.keys)

    def _invert(
        self, values: Float[np.ndarray, "..."], attribute: str, axis: int
    ) -> Float[np.ndarray, "..."]:
        """Multiply one axis of an array by M⁻¹, where M is the symmetric matrix of the randomised response
        for one attribute.
        """
        k = self.domain.axis(attribute)
        p = self.retention[k]
        n = self.domain.shape[k]
        return (values - (1 - p) / n * values.sum(axis=axis, keepdims=True)) / p

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        """Ask queries on the reports whose answers are unbiased estimates of the answers on true records."""
        on_reports = reweighted(queries, power, self._invert)
        return on_reports.sums(self.domain, self._cells.keys, self._cells.counts)

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        shape = [self.domain.shape[k] for k in axes]
        place = np.zeros(len(self), np.int64)
        for k, n in zip(axes, shape, strict=True):
            place *= n
            place += self.domain.column(self._cells.keys, self.domain.attributes[k])
        joint = np.bincount(place, self._cells.counts, prod(shape)).reshape(shape)
        for i, k in enumerate(axes):
            joint = self._invert(joint, self.domain.attributes[k], i)
        return joint

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the cells that occur in reports.

        Returns
        -------
        pandas.DataFrame
            One row per cell that was reported. The columns contain the labels of the cell, and the number of
            reports of this cell (`noisy`).
        """
        return self.domain.frame(self._cells.keys).assign(noisy=self._cells.counts)

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        domain = fields["domain"]
        cells = read_keys(domain, table)
        counts = table["noisy"].to_numpy()
        check_arrays(_CellCounts, {"keys": cells, "counts": counts})
        refuse_unless((np.diff(cells) > 0).all(), "cells", "sorted ones, each once")
        few = (counts > 0).all() and counts.sum(dtype=float) <= _MOST_REPORTS
        refuse_unless(few, "counts", f"numbers above 0, together at most {_MOST_REPORTS:,}")
        of_each = len(fields["retention"]) == len(domain.shape)
        refuse_unless(of_each, "kept", "a chance above 0 of each attribute")
        return {"keys": np.repeat(cells, counts)}


# Bit reports

_REPORTS_OF_PRODUCTS = 2**13  # that are laid out at a time
_REPORTS_OF_TABLES = 256
_TERMS = 512
_MAX_COUNTED_CELLS = 2**15  # of a joint of more than two attributes


@dataclass(frozen=True, eq=False, repr=False)
class BitReports(RandomisedReports, Margins):
    """Reports that consist of bits. A report contains the randomised values of one person. The report has one
    bit for each possible value of each attribute. At first, the bits of the person's own values are 1, and all
    other bits are 0. Then each bit is flipped with a probability f, and the report is sent.

    A report is stored as a row of 64-bit words. The lowest bit of the first word belongs to the first value of
    the first attribute. If b is a reported bit (0 or 1), then (b − f)/(1 − 2f) is an unbiased estimate of the
    original bit. To estimate the count of a combination of values, the workbench multiplies the estimates of
    the bits of these values within each report. Then the workbench adds up the products of all reports.
    """

    domain: Domain
    bits: UInt64[np.ndarray, "reports words"]
    flip_probability: float
    kind: ClassVar[str] = "bit-reports"

    def __post_init__(self) -> None:
        super().__post_init__()
        words = bit_layout(self.domain).words
        if self.bits.dtype != np.uint64 or self.bits.shape[1:] != (words,):
            raise ValueError(
                f"BitReports.bits {self.bits.shape} do not fit {words} words a row"
            )

    @property
    def total(self) -> int:
        """Number of reports, which is the number of records in the data."""
        return len(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def _columns_of_bits(self) -> UInt64[np.ndarray, "codes words"]:
        """Bits of all reports, rearranged to one row per code (value of an attribute). In the last row, all
        bits are 1.
        """
        codes = sum(n for n in self.domain.shape if n > 1)
        columns = np.zeros((codes + 1, -(-self.total // 64)), np.uint64)
        response.transpose(self.bits, columns)
        return columns

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        starts = bit_layout(self.domain).starts
        conditions = [k for k in axes if starts[k] >= 0]  # a code that all have is none
        sizes = np.array([self.domain.shape[k] for k in conditions], np.int64)
        counts = np.zeros(tuple(sizes + 1), np.int64)  # the last of each axis: any code
        if conditions:
            response.count_cells(
                self._columns_of_bits, starts[conditions], sizes, counts.reshape(-1)
            )
        else:
            counts[...] = self.total
        f = self.flip_probability
        joint = counts.astype(float)
        for i in range(len(conditions)):
            with_bit, all_reports = np.split(joint, [-1], axis=i)
            joint = (with_bit - f * all_reports) / (1 - 2 * f)
        return joint.reshape([self.domain.shape[k] for k in axes])

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """Return the estimated count of each combination of values of the attributes with the positions
        `axes`.
        """
        if not axes:
            return np.asarray(float(self.total))
        return self.joint([self.domain.attributes[k] for k in axes])

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        if isinstance(queries, Together):
            return np.concatenate([self._sums(part, power) for part in queries.parts])
        if isinstance(queries, TableQueries):
            if power == 1:
                return queries.sums_of_margins(self)
            return self._sums_of_tables(queries, power)
        assert isinstance(queries, Products)
        if power == 1 and all(self._countable(axes) for axes, _ in queries.sets):
            return queries.sums_of_margins(self)
        return self._sums_of_products(queries, power)

    def _countable(self, axes: tuple[int, ...]) -> bool:
        """Return whether the table over these attributes has few enough cells to count the reports in each
        cell.
        """
        cells = prod(self.domain.shape[k] + 1 for k in axes)
        return len(axes) <= 2 or cells <= _MAX_COUNTED_CELLS

    def _sums_of_products(self, queries: Products, power: int) -> Float[np.ndarray, " queries"]:
        sums = np.zeros(len(queries.times))
        for evidence in self._evidence(_REPORTS_OF_PRODUCTS):
            values = [
                factor @ codes.T
                for codes, factor in zip(evidence, queries.factors, strict=True)
            ]
            for axes, terms in queries.sets:
                for start in range(0, len(terms), _TERMS):
                    block = terms[start : start + _TERMS]
                    products = np.ones((len(block), len(evidence[0])))
                    for k in axes:
                        products *= values[k][queries.which[block, k]]
                    powers = products * products if power == 2 else products
                    sums[block] += powers.sum(axis=1)
        return np.bincount(queries.query, sums * queries.times**power, len(queries))

    def _sums_of_tables(
        self, queries: TableQueries, power: int
    ) -> Float[np.ndarray, " queries"]:
        sums = np.zeros(len(queries))
        for evidence in self._evidence(_REPORTS_OF_TABLES):
            reports = len(evidence[0])
            for names, tables, rows in queries.numbered_groups():
                cells = np.ones((reports, 1))
                for name in names:
                    codes = evidence[self.domain.axis(name)]
                    cells = outer_rows(cells, codes)
                values = cells @ tables.reshape(len(tables), -1).T
                sums[rows] += (values**power).sum(axis=0)
        return sums

    def _evidence(self, at_once: int) -> Iterator[list[Float[np.ndarray, "reports codes"]]]:
        """Yield unbiased estimates of the original bits, for `at_once` reports at a time. For a reported bit
        b and the flip probability f, the estimate is (b − f)/(1 − 2f).
        """
        starts = bit_layout(self.domain).starts
        for first in range(0, self.total, at_once):
            rows = np.ascontiguousarray(self.bits[first : first + at_once])
            bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
            evidence: list[np.ndarray] = []
            for start, n in zip(starts, self.domain.shape, strict=True):
                if start < 0:
                    evidence.append(np.ones((len(bits), n)))
                else:
                    centred = bits[:, start : start + n] - self.flip_probability
                    evidence.append(centred / (1 - 2 * self.flip_probability))
            yield evidence

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with all reports.

        Returns
        -------
        pandas.DataFrame
            One row per report. Each attribute has one column, which contains its bits in the order of the
            attribute's values. The last column, `noisy`, is 1 in every row.
        """
        starts = bit_layout(self.domain).starts
        digits = np.unpackbits(self.bits.view(np.uint8), axis=1, bitorder="little") + ord("0")
        columns: dict[str, Any] = {}
        for name, start, n in zip(
            self.domain.attributes, starts, self.domain.shape, strict=True
        ):
            if start < 0:
                columns[name] = "1"
            else:
                text = np.ascontiguousarray(digits[:, start : start + n]).view(f"S{n}")
                columns[name] = text.ravel().astype(str)
        return pd.DataFrame(columns, index=range(len(self))).assign(noisy=1)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the release file, one per word of 64 bits."""
        words = {f"word {i}": column for i, column in enumerate(self.bits.T)}
        return {**words, "noisy": np.ones(len(self), np.int64)}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = range(bit_layout(fields["domain"]).words)
        columns = [table[f"word {i}"].to_numpy() for i in words]
        bits = np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.uint64)
        return {"bits": np.ascontiguousarray(bits)}
