"""Queries that count the records whose values are in a set, with one set per attribute. Queries that you
write with labels are converted to this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from workbench.queries.ranges import Boxes, Ranges, digest_text
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, Num, sealed

_MAX_RANGES = (
    2**22
)  # limit for the ranges of all queries. If there are more, each query checks all keys
MAX_MARGINAL_CELLS = 2**22
_MAX_FACTOR_VALUES = 2**27  # numbers in the matrix of one attribute: 1 GiB


class CodeSets(NamedTuple):
    """Sets of values of one attribute. The codes 0, 1, 2, … stand for the values. A set consists of runs of
    consecutive codes, and the arrays `lo` and `hi` list the runs of all sets. Run j contains the codes from
    lo[j] to hi[j] − 1. Set i consists of the runs from offsets[i] to offsets[i + 1] − 1.

    Set 0 always contains all codes.
    """

    lo: Int[np.ndarray, " runs"]
    hi: Int[np.ndarray, " runs"]
    offsets: Int[np.ndarray, " sets+1"]

    @property
    def sizes(self) -> Int[np.ndarray, " sets"]:
        """Number of codes in each set. The codes 0, 1, 2, … stand for the values of an attribute."""
        return np.add.reduceat(self.hi - self.lo, self.offsets[:-1])

    def members(self, i: int) -> Bool[np.ndarray, " codes"]:
        """Return an array with one entry per code of the attribute. The codes 0, 1, 2, … stand for its
        values. An entry is True if its code is in set i.
        """
        runs = slice(self.offsets[i], self.offsets[i + 1])
        inside = np.zeros(int(self.hi[0]), bool)
        for lo, hi in zip(self.lo[runs], self.hi[runs], strict=True):
            inside[lo:hi] = True
        return inside

    @classmethod
    def singles(cls, n: int) -> CodeSets:
        """Create n + 1 sets of codes for an attribute with n values. The codes 0 to n − 1 stand for these
        values. Set 0 contains all codes, and each other set contains one code.
        """
        codes = np.arange(n)
        return cls(np.append(0, codes), np.append(n, codes + 1), np.arange(n + 2))

    @classmethod
    def of(cls, n: int, sets: Sequence[Sequence[tuple[int, int]]]) -> CodeSets:
        """Create sets of codes for an attribute with n values. The codes 0 to n − 1 stand for these values.
        You give each set as a list of runs. A run (lo, hi) contains the codes from lo to hi − 1. The method
        adds set 0, which contains all codes, in front of your sets.
        """
        runs = [(0, n), *(run for runs in sets for run in runs)]
        lo, hi = np.array(runs, np.int64).T
        return cls(lo, hi, np.cumsum([0, 1, *map(len, sets)]))


@dataclass(frozen=True, eq=False, repr=False)
class Selections:
    """Queries that count the records with certain values. A query has one set of values per attribute. The
    query counts a record if, for every attribute, the record's value is in the query's set. The codes 0, 1,
    2, … stand for the values of an attribute.

    Parameters
    ----------
    attributes : tuple of str
        Names of all attributes of the domain.
    sets : tuple of CodeSets
        For each attribute, the sets of codes that the queries use. No set is empty, and no set occurs twice.
    which : int64[queries, attributes]
        Position of the set that each query uses for each attribute, in the sets of this attribute. Set 0
        contains all codes.

    Examples
    --------
    >>> from workbench.queries.typed import labelled_queries
    >>> domain = Domain(("town", "hour"), (2, 24), (("Bern", "Genf"), None))
    >>> labelled_queries(domain, {"town": "Bern", "hour": (7, 9)}).cells(domain)
    array([3.])
    """

    attributes: tuple[str, ...]
    sets: tuple[CodeSets, ...]
    which: Int[np.ndarray, "queries attributes"]

    @classmethod
    def cells_of(cls, domain: Domain, attributes: tuple[str, ...]) -> Selections:
        """Create one query for each combination of values of the given attributes. All other attributes may
        have any value.

        The values of the last attribute change fastest from query to query. Raise a ValueError if there are
        more than 2²² combinations.
        """
        axes = [domain.axis(name) for name in attributes]
        shape = [domain.shape[k] for k in axes]
        if prod(shape) > MAX_MARGINAL_CELLS:
            raise ValueError(
                f"a marginal of {prod(shape):,} cells is too large: at most {MAX_MARGINAL_CELLS:,}"
            )
        sets = [CodeSets.of(n, []) for n in domain.shape]
        which = np.zeros((prod(shape), len(domain.shape)), np.int64)
        codes = np.unravel_index(np.arange(prod(shape)), shape)
        for k, code in zip(axes, codes, strict=True):
            if domain.shape[k] > 1:  # a single value is no condition
                sets[k] = CodeSets.singles(domain.shape[k])
                which[:, k] = code + 1
        return cls(domain.attributes, tuple(sets), which)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of possible values of each attribute."""
        return tuple(int(sets.hi[0]) for sets in self.sets)

    def on(self, domain: Domain) -> Selections:
        """Return the queries unchanged. Raise a ValueError if the domain has other attributes or another
        number of values for an attribute.
        """
        if domain.attributes != self.attributes or tuple(domain.shape) != self.shape:
            raise ValueError(
                f"queries over {self.attributes} do not fit a domain of {domain.attributes}"
            )
        return self

    def __len__(self) -> int:
        return len(self.which)

    def __repr__(self) -> str:
        return digest_text(self, self.which, *(x for sets in self.sets for x in sets))

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the number of cells whose records the query counts. This number is the
        product of the sizes of the query's sets.
        """
        cells = np.ones(len(self))
        for sets, which in zip(self.sets, self.which.T, strict=True):
            cells *= sets.sizes[which]
        return cells

    @cached_property
    def boxes(self) -> tuple[Int[np.ndarray, " boxes"], Boxes]:
        """Boxes that together make up the queries, and for each box the position of its query in the list. A
        box has one run of consecutive codes per attribute. The boxes of a query do not overlap. They are in
        the order of the queries.
        """
        query = np.arange(len(self))
        lo: list[np.ndarray] = []
        hi: list[np.ndarray] = []
        for sets, which in zip(self.sets, self.which.T, strict=True):
            chosen = which[query]
            runs = np.diff(sets.offsets)[chosen]
            first = np.repeat(np.cumsum(runs) - runs, runs)
            run = np.arange(len(first)) - first + np.repeat(sets.offsets[chosen], runs)
            lo = [np.repeat(column, runs) for column in lo] + [sets.lo[run]]
            hi = [np.repeat(column, runs) for column in hi] + [sets.hi[run]]
            query = np.repeat(query, runs)
        return query, Boxes(np.stack(lo, axis=1), np.stack(hi, axis=1))

    def summed(self, answers: Any, error: bool) -> Any:
        """Add up the answers for the `boxes` of each query, and return the sums as the answers to the
        queries. If `error` is True, `answers` is a pair of arrays: the answers for the boxes, and the
        standard deviations of these answers. The result is then also a pair: the answers to the queries, and
        the standard deviations of these answers. The errors of the boxes must be independent, because the
        method adds up their variances.
        """
        query, _ = self.boxes
        if not error:
            return np.bincount(query, answers, len(self))
        values, errors = answers
        variance = np.bincount(query, errors**2, len(self))
        return np.bincount(query, values, len(self)), np.sqrt(variance)

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " ranges"], Ranges]:
        """Return ranges of consecutive cells that together make up the queries. Also return, for each range,
        the position of its query in the list of queries.
        """
        query, boxes = self.boxes
        box, ranges = boxes.intervals(domain)
        return query[box], ranges

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of the cells that the query selects. The
        value of the cell with the key (identifier) keys[j] is values[j]. The keys are in ascending order.
        """
        used = [k for k, sets in enumerate(self.which.T) if sets.any()]
        if not used:
            return np.full(len(self), float(values.sum()))
        margin = domain.project([domain.attributes[k] for k in used])
        if len(used) < len(domain.shape):
            codes = np.stack([domain.column(keys, a) for a in margin.attributes], axis=1)
            cells = margin.keys(codes)
            order = np.argsort(cells, kind="stable")
            keys = cells[order]
            values = values[order]
        if self._ranges_over(used[:-1]) > _MAX_RANGES:
            return self._sums_of_members(margin, used, keys, values)
        query, boxes = self.boxes
        boxes = Boxes(boxes.lo[:, used], boxes.hi[:, used])
        box, ranges = boxes.intervals(margin)
        sums = np.bincount(box, ranges.sums(margin, keys, values), len(query))
        return np.bincount(query, sums, len(self))

    def _ranges_over(self, outer: list[int]) -> float:
        """Return the number of ranges of cells that make up the queries, if each combination of codes of the
        `outer` attributes gives ranges of its own.
        """
        ranges = np.ones(len(self))
        for k, (sets, which) in enumerate(zip(self.sets, self.which.T, strict=True)):
            each = sets.sizes if k in outer else np.diff(sets.offsets)
            ranges *= each[which]
        return float(ranges.sum())

    def _sums_of_members(
        self,
        margin: Domain,
        used: list[int],
        keys: Int[np.ndarray, " n"],
        values: Num[np.ndarray, " n"],
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query. For each query, the method checks for every key whether its codes
        are in the sets of the query.
        """
        sums = np.zeros(len(self))
        columns = [margin.column(keys, name) for name in margin.attributes]
        for i, which in enumerate(self.which[:, used]):
            inside = np.ones(len(keys), bool)
            for k, column, place in zip(used, columns, which, strict=True):
                if place:
                    inside &= self.sets[k].members(place)[column]
            sums[i] = values[inside].sum()
        return sums

    @cached_property
    def factors(self) -> tuple[Float[np.ndarray, "sets codes"], ...]:
        """Sets of codes as matrices, in the form that `Products` uses. The codes 0, 1, 2, … stand for the
        values of an attribute. Each attribute has a matrix with one row per set. A row contains 1 for the
        codes in the set, and 0 for other codes.
        """
        factors = []
        for name, sets in zip(self.attributes, self.sets, strict=True):
            n = int(sets.hi[0])
            if len(sets.sizes) * n > _MAX_FACTOR_VALUES:
                raise ValueError(
                    f"{len(sets.sizes) - 1:,} sets of {n:,} values of {name!r} are too many for this "
                    "release: ask fewer at a time"
                )
            rows = [sets.members(i) for i in range(len(sets.sizes))]
            factors.append(sealed(np.stack(rows).astype(float)))
        return tuple(factors)
