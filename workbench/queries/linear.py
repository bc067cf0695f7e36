"""Base class of linear queries. A linear query is a function of a record, and its answer is the sum of the
function over all records of a table.

The time for answering grows with the number of queries, the sizes of the attributes and the number of
non-empty cells. It does not grow with the number of all cells. Source: section 3.2 of Chen, Zhou & Bhowmick
(EDBT 2012), Equation 9 and Theorem 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, Num

MAX_DENSE_CELLS = 2**22  # cells in one array in memory: 32 MiB
MAX_INTEGER_TERM = 2**27  # the largest term of queries whose answers are released as integers
_EXACT = 2**53
_EXTREME = 1e100
_LARGEST_PRIOR = 2**27  # numbers: a gigabyte

Prior = Sequence["Float[np.ndarray, ' values']"]


class Linear(ABC):
    """Base class of lists of linear queries. The answer to a linear query is a weighted sum of the counts of
    a table. The subclasses are `Products`, `TableQueries` and `Together`.
    """

    @abstractmethod
    def on(self, domain: Domain) -> Linear:
        """Return these queries, prepared for the given domain. Raise a ValueError if the queries do not fit
        the domain.
        """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of queries in the list."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Linear:
        """Return the queries with the numbers `rows`, in this order."""

    @property
    @abstractmethod
    def max_term(self) -> float:
        """Largest absolute value of a term, or an upper bound on this value. A query is a sum over records,
        and a record adds one or more terms to this sum.
        """

    @property
    @abstractmethod
    def max_query(self) -> float:
        """Largest absolute change of any answer if one record is added, or an upper bound on this change."""

    @property
    @abstractmethod
    def integer_valued(self) -> bool:
        """Whether all answers are integers if all counts are integers."""

    @abstractmethod
    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return the expected answer to each query on a table with one random record. The record's value of
        each attribute is drawn independently. `prior` contains one vector of probabilities per attribute.
        """

    @abstractmethod
    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers to the queries, computed from marginals (tables of counts on some of the
        attributes). For a query, the method needs only the marginal on this query's attributes.
        """

    @abstractmethod
    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers to the queries as integers, in units of `grid`. The integer n stands for the
        answer n·`grid`. A query is a sum of terms, and each record adds a value to each term. The method rounds
        each of these values to a multiple of `grid`.
        """

    def intervals(self, domain: Domain) -> NoReturn:
        """Raise a ValueError, because linear queries cannot be written as ranges of cells."""
        raise ValueError(
            f"{self!r} has no ranges of keys. Ask a table, or use inference from NoisyAnswers"
        )

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the sum of its weights over all cells of the domain. If all weights are 0
        or 1, the sum is the number of cells whose records the query counts.
        """
        return self.on(domain).means(domain, uniform_prior(domain)) * float(domain.size)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the weighted sum of the `values` of the cells. The value of the
        cell with the key (identifier) keys[j] is values[j]. All other cells are empty. If weights and values
        are integers, the answers are exact as long as all sums stay below 2⁵³.
        """
        return self.on(domain).sums_of_margins(TableMargins(domain, keys, values))

    def grid_units(
        self,
        domain: Domain,
        keys: Int[np.ndarray, " n"],
        counts: Num[np.ndarray, " n"],
        grid: float,
    ) -> np.ndarray:
        """Return the answers to the queries as integers, in units of `grid`. The integer n stands for the
        answer n·`grid`. The method rounds the weight of each record to a multiple of `grid`, and then adds up
        the rounded weights exactly. The results are Python integers, which have no limit, so the results for
        parts of a table can be added up.

        Each weight of each record (a term) is rounded separately, so one record does not change how another
        record is rounded. Raise a ValueError if a term is larger than 2²⁷·`grid`.
        """
        queries = self.on(domain)
        if queries.max_term > grid * 2**27:
            raise ValueError(
                f"grid = {grid!r} is not allowed: need at least {queries.max_term}/2^27"
            )
        largest_answer = float(np.abs(counts).sum(dtype=float)) * queries.max_query
        if grid == 1 and queries.integer_valued and largest_answer < _EXACT:
            sums = queries.sums(domain, keys, counts)  # exact, and faster
            return sums.astype(np.int64).astype(object)
        return queries.grid_units_of_margins(TableMargins(domain, keys, counts), grid)


class Margins(ABC):
    """Base class of objects that compute marginals of a table. A marginal is a table of counts on a few of
    the attributes. The counts are added up over the values of all other attributes.
    """

    domain: Domain

    @abstractmethod
    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        """Return a marginal (table of counts) as an array of all its cells. `axes` contains the positions of
        the marginal's attributes in the domain. Return None if there are too many cells.
        """

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-empty cells of a marginal (table of counts on some of the attributes), and their
        counts. The result is an array of codes, with one row per attribute and one column per cell, and an
        array of counts. The codes 0, 1, 2, … stand for the values of an attribute. Use this method if `dense`
        returns None.
        """
        raise NotImplementedError


class TableMargins(Margins):
    """Marginals of a table. A marginal is a table of counts on a few of the attributes. You give the table as
    the sorted keys (identifiers) of its cells, and the values of these cells.
    """

    def __init__(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ):
        self.domain = domain
        self.values = np.asarray(values)
        self._keys = np.asarray(keys)
        self._columns: dict[int, Int[np.ndarray, " n"]] = {}

    def _column(self, axis: int) -> Int[np.ndarray, " n"]:
        if axis not in self._columns:
            self._columns[axis] = self.domain.column(self._keys, self.domain.attributes[axis])
        return self._columns[axis]

    def _cells(self, axes: tuple[int, ...]) -> Int[np.ndarray, " n"]:
        """Return, for each key, the number of its cell in the marginal on `axes`. The cells are numbered as
        in a nested loop, with the last attribute in the innermost loop.
        """
        cells = np.zeros(len(self.values), np.int64)
        for k in axes:
            cells *= self.domain.shape[k]
            cells += self._column(k)
        return cells

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        """Return a marginal (table of counts) as an array of all its cells. `axes` contains the positions of
        the marginal's attributes in the domain. Sums of integers are exact below 2⁵³. Return None if there
        are too many cells.
        """
        shape = [self.domain.shape[k] for k in axes]
        if prod(shape) > min(MAX_DENSE_CELLS, max(2**16, 8 * len(self.values))):
            return None
        if not axes:
            return np.asarray(self.values.sum(dtype=float))
        return np.bincount(self._cells(axes), self.values, prod(shape)).reshape(shape)

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-empty cells of a marginal (table of counts on some of the attributes), and their
        counts. The result is an array of codes, with one row per attribute and one column per cell, and an
        array of counts. The codes 0, 1, 2, … stand for the values of an attribute. If the values of the table
        are integers, the counts are also integers.
        """
        cells, rows = np.unique(self._cells(axes), return_inverse=True)
        sums = np.zeros(len(cells), np.int64 if self.values.dtype.kind in "iub" else float)
        np.add.at(sums, rows, self.values)
        shape = [self.domain.shape[k] for k in axes]
        codes = np.unravel_index(cells, shape) if axes else np.empty((0, len(cells)), np.int64)
        return np.ascontiguousarray(codes, np.int64), sums


def uniform_prior(domain: Domain) -> tuple[Float[np.ndarray, " values"], ...]:
    """Return one vector of equal probabilities per attribute, as the prior distribution of a record.

    Raise a ValueError if the vectors would need more than a gigabyte of memory.
    """
    if sum(domain.shape) > _LARGEST_PRIOR:
        raise ValueError(
            f"attributes with {max(domain.shape):,} values are too large to recall answers: need "
            f"at most {_LARGEST_PRIOR:,} values in all attributes together"
        )
    return tuple(np.full(n, 1 / n) for n in domain.shape)


def prior_margin(
    tables: Float[np.ndarray, "..."], prior: Prior, kept: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Average tables over all attributes except those in `kept`, weighted by the probabilities in `prior`.
    The first axis of the array is the query, and the others are the attributes.
    """
    for axis in range(len(prior) - 1, -1, -1):
        if axis not in kept:
            before = tables.shape[: axis + 1]
            after = tables.shape[axis + 2 :]
            flat = tables.reshape(prod(before), len(prior[axis]), -1)
            if flat.shape[2] == 1:
                flat = flat[:, :, 0] @ prior[axis]
            else:
                flat = prior[axis] @ flat
            tables = flat.reshape(*before, *after)
    return tables


def axes_in_domain(
    domain: Domain,
    names: Sequence[str],
    sizes: Sequence[int],
    used: Bool[np.ndarray, " attributes"] | None = None,
) -> dict[int, int]:
    """Return the position in the domain of each attribute that queries use. Raise a ValueError if the domain
    lacks such an attribute, or has another number of values for this attribute.
    """
    axes = {}
    for k, (name, n) in enumerate(zip(names, sizes, strict=True)):
        if used is not None and not used[k]:
            continue
        axes[k] = domain.axis(name)
        if domain.shape[axes[k]] != n:
            raise ValueError(
                f"queries on {name!r} with {n} codes do not fit a domain with "
                f"{domain.shape[axes[k]]}"
            )
    return axes


def refuse_extreme(name: str, products: np.ndarray, *arrays: np.ndarray) -> None:
    """Raise a ValueError if the numbers are so large or small that their product with a count could overflow
    or underflow in floating point.
    """
    small = any(((a != 0) & (np.abs(a) < 1 / _EXTREME)).any() for a in arrays)
    if small or (products > _EXTREME).any():
        raise ValueError(
            f"{name}: need values that are 0 or between 1e-100 and 1e100, also for products of "
            "factors"
        )


def within_int64(units: np.ndarray) -> Int[np.ndarray, " queries"]:
    """Return Python integers as 64-bit integers. Integers beyond ±2⁶² are replaced by ±2⁶², because noise may
    be added to them.
    """
    return np.clip(units, -(2**62), 2**62).astype(np.int64)


def whole_numbers(limbs: Int[np.ndarray, "n 3"]) -> np.ndarray:
    """Return integers that were split into three parts. The parts count multiples of 2¹⁸, 2⁹ and 1. The
    results are Python integers, which cannot overflow.
    """
    high, middle, low = limbs.astype(object).T
    return high * 2**18 + middle * 2**9 + low
