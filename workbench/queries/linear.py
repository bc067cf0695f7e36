"""Common base of linear queries. A query is a function f of a tuple, and its answer is the sum of f over
tuples.

The cost grows with the number of queries, the sizes of attributes and the number of non-empty cells, but
not with the size of the domain. Source: Chen, Zhou & Bhowmick, EDBT 2012, section 3.2 (Equation 9, Theorem
2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, Num

MAX_DENSE_CELLS = 2**22  # laid out in full at a time: 32 MiB
MAX_INTEGER_TERM = 2**27  # the largest term of queries whose answers are released as integers
_EXACT = 2**53
_EXTREME = 1e100
_LARGEST_PRIOR = 2**27  # numbers: a gigabyte

Prior = Sequence["Float[np.ndarray, ' values']"]


class Linear(ABC):
    """Base class of linear queries, whose answer is a weighted sum of counts. Its subclasses are `Products`,
    `TableQueries` and `Together`.
    """

    @abstractmethod
    def on(self, domain: Domain) -> Linear:
        """Return the same queries on a domain."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of queries."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Linear:
        """Return a selection of the queries, in the order of `rows`."""

    @property
    @abstractmethod
    def max_term(self) -> float:
        """Largest absolute value that one term of a query takes for a record, or an upper bound on it."""

    @property
    @abstractmethod
    def max_query(self) -> float:
        """Largest absolute value that a query takes for one record, or an upper bound on it."""

    @property
    @abstractmethod
    def integer_valued(self) -> bool:
        """Whether the answers to all queries are integers if the counts are."""

    @abstractmethod
    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return the mean of each query under a prior with independent attributes."""

    @abstractmethod
    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers. They are computed from the marginals on the attributes that each query uses."""

    @abstractmethod
    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers as integers, in multiples of the step `grid`. Each term is rounded separately for
        each record.
        """

    def intervals(self, domain: Domain) -> NoReturn:
        """Raise a ValueError. A linear query over a few attributes covers cells in many places of the domain,
        which do not form a few ranges of keys.
        """
        raise ValueError(
            f"{self!r} has no ranges of keys. Ask a table, or use inference from NoisyAnswers"
        )

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the sum of its weights over all cells of the domain. For a query that counts
        records, this is the number of cells that it covers.
        """
        return self.on(domain).means(domain, uniform_prior(domain)) * float(domain.size)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the sum of its weights times `values` over the given cells. The time grows
        with the number of cells and of queries. Sums of integers are exact.
        """
        return self.on(domain).sums_of_margins(TableMargins(domain, keys, values))

    def grid_units(
        self,
        domain: Domain,
        keys: Int[np.ndarray, " n"],
        counts: Num[np.ndarray, " n"],
        grid: float,
    ) -> Int[np.ndarray, " queries"]:
        """Return the answers as integers, in multiples of the step `grid`. The weights are rounded to such
        multiples, and the sums are exact. Results beyond ±2⁶² are clipped.

        Each term of a query is rounded separately for each tuple. So what a tuple adds depends on this
        tuple only. A term may have at most 2²⁷ grid steps.
        """
        queries = self.on(domain)
        if queries.max_term > grid * 2**27:
            raise ValueError(
                f"grid = {grid!r} is not allowed: need at least {queries.max_term}/2^27"
            )
        largest_answer = float(np.abs(counts).sum(dtype=float)) * queries.max_query
        if grid == 1 and queries.integer_valued and largest_answer < _EXACT:
            return queries.sums(domain, keys, counts).astype(np.int64)  # exact, and faster
        units = queries.grid_units_of_margins(TableMargins(domain, keys, counts), grid)
        return np.clip(units, -(2**62), 2**62).astype(np.int64)


class Margins(ABC):
    """Marginals of a table. A marginal has the sums of the counts over all attributes except a few."""

    domain: Domain

    @abstractmethod
    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        """Return a marginal as an array of all its cells, or None if there are too many cells."""

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of a marginal that are not empty, as codes (attributes × cells), and their sums.
        This is for marginals for which `dense` returns None.
        """
        raise NotImplementedError


class TableMargins(Margins):
    """Marginals of a table, which is given as the sorted keys (numbers) of its cells and their values. The
    codes of each attribute are computed once and kept.
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
        """Return the cell number of each key in `axes`, with the last attribute fastest."""
        cells = np.zeros(len(self.values), np.int64)
        for k in axes:
            cells *= self.domain.shape[k]
            cells += self._column(k)
        return cells

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        """Return the marginal as an array. Sums below 2⁵³ are exact."""
        shape = [self.domain.shape[k] for k in axes]
        if prod(shape) > min(MAX_DENSE_CELLS, max(2**16, 8 * len(self.values))):
            return None
        if not axes:
            return np.asarray(self.values.sum(dtype=float))
        return np.bincount(self._cells(axes), self.values, prod(shape)).reshape(shape)

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of a marginal that are not empty, and their sums. The sums are integers if the
        values are.
        """
        cells, rows = np.unique(self._cells(axes), return_inverse=True)
        sums = np.zeros(len(cells), np.int64 if self.values.dtype.kind in "iub" else float)
        np.add.at(sums, rows, self.values)
        shape = [self.domain.shape[k] for k in axes]
        codes = np.unravel_index(cells, shape) if axes else np.empty((0, len(cells)), np.int64)
        return np.ascontiguousarray(codes, np.int64), sums


def uniform_prior(domain: Domain) -> tuple[Float[np.ndarray, " values"], ...]:
    """Return a uniform prior. It has one vector of equal probabilities per attribute.

    Raise a ValueError if the vectors would need gigabytes of memory.
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
    """Average tables over all attributes except those to keep. The axes of a table are (queries, attribute
    1, attribute 2, …).
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
    """Return the axis of each attribute that is used. Raise a ValueError if the domain does not have this
    attribute with the same codes.
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
    """Raise a ValueError for extreme values. Their product with a floating-point count could overflow or
    underflow.
    """
    small = any(((a != 0) & (np.abs(a) < 1 / _EXTREME)).any() for a in arrays)
    if small or (products > _EXTREME).any():
        raise ValueError(
            f"{name}: need values that are 0 or between 1e-100 and 1e100, also for products of "
            "factors"
        )


def whole_numbers(limbs: Int[np.ndarray, "n 3"]) -> np.ndarray:
    """Put numbers together from parts of 9 bits. The results are Python integers, which do not overflow."""
    high, middle, low = limbs.astype(object).T
    return high * 2**18 + middle * 2**9 + low
