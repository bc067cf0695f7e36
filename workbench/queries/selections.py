"""Queries that select a set of codes per attribute. The workbench converts queries by label to these."""

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
)  # that sums are read off; where there are more, each query looks at all keys
MAX_MARGINAL_CELLS = 2**22
_MAX_FACTOR_VALUES = 2**27  # that linear queries lay out for one attribute: 1 GiB


class CodeSets(NamedTuple):
    """Sets of codes (integers that stand for the values of one attribute). A set consists of runs [lo, hi), and
    the runs of set i begin at position offsets[i].

    Set 0 contains all codes.
    """

    lo: Int[np.ndarray, " runs"]
    hi: Int[np.ndarray, " runs"]
    offsets: Int[np.ndarray, " sets+1"]

    @property
    def sizes(self) -> Int[np.ndarray, " sets"]:
        """Number of codes of each set."""
        return np.add.reduceat(self.hi - self.lo, self.offsets[:-1])

    def members(self, i: int) -> Bool[np.ndarray, " codes"]:
        """Return a mask of the codes in set i."""
        runs = slice(self.offsets[i], self.offsets[i + 1])
        inside = np.zeros(int(self.hi[0]), bool)
        for lo, hi in zip(self.lo[runs], self.hi[runs], strict=True):
            inside[lo:hi] = True
        return inside

    @classmethod
    def singles(cls, n: int) -> CodeSets:
        """Make n + 1 sets of codes. The first has all n codes, and each of the others has one code."""
        codes = np.arange(n)
        return cls(np.append(0, codes), np.append(n, codes + 1), np.arange(n + 2))

    @classmethod
    def of(cls, n: int, sets: Sequence[Sequence[tuple[int, int]]]) -> CodeSets:
        """Make sets of codes from lists of runs [lo, hi). An additional first set has all n codes."""
        runs = [(0, n), *(run for runs in sets for run in runs)]
        lo, hi = np.array(runs, np.int64).T
        return cls(lo, hi, np.cumsum([0, 1, *map(len, sets)]))


@dataclass(frozen=True, eq=False, repr=False)
class Selections:
    """Queries that count records by their codes, which are integers that stand for values. A query has a set of
    codes for each attribute, and counts a record if all of its codes are in these sets.

    Parameters
    ----------
    attributes : tuple of str
        All attributes of the domain.
    sets : tuple of CodeSets
        Distinct non-empty sets of codes for each attribute.
    which : int64[queries, attributes]
        Number of the set for each query and attribute.

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
        """Make one query per combination of codes of some attributes. The code of the last of them varies
        fastest, and all other attributes may have any code.
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
            if domain.shape[k] > 1:  # the one code of an attribute is all of it
                sets[k] = CodeSets.singles(domain.shape[k])
                which[:, k] = code + 1
        return cls(domain.attributes, tuple(sets), which)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of codes per attribute."""
        return tuple(int(sets.hi[0]) for sets in self.sets)

    def on(self, domain: Domain) -> Selections:
        """Return the queries unchanged, after checking that the domain has the same attributes."""
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
        """Return the number of cells that each query covers. It is the product of the sizes of its sets of
        codes.
        """
        cells = np.ones(len(self))
        for sets, which in zip(self.sets, self.which.T, strict=True):
            cells *= sets.sizes[which]
        return cells

    @cached_property
    def boxes(self) -> tuple[Int[np.ndarray, " boxes"], Boxes]:
        """Return disjoint boxes with one run of codes per attribute, and the query to which each box
        belongs. Boxes are in the order of the queries.
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
        """Add up, for each query, the answers to the `boxes` that make it up. With `error`, also combine the
        errors of the boxes, which are independent.
        """
        query, _ = self.boxes
        if not error:
            return np.bincount(query, answers, len(self))
        values, errors = answers
        variance = np.bincount(query, errors**2, len(self))
        return np.bincount(query, values, len(self)), np.sqrt(variance)

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " ranges"], Ranges]:
        """Return the queries as ranges of keys (the numbers of cells)."""
        query, boxes = self.boxes
        box, ranges = boxes.intervals(domain)
        return query[box], ranges

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the sum of the values that each query selects. It is computed from running sums over those
        attributes that at least one query restricts.
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
        """Return the number of ranges of the queries, with one range per combination of codes of the
        `outer` attributes.
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
        """Check, query by query, whether the codes of each key are in the sets."""
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
        """Same queries as factors for `Products`. A factor is 1 for the codes of a set, and 0 for other
        codes.
        """
        factors = []
        for name, sets in zip(self.attributes, self.sets, strict=True):
            n = int(sets.hi[0])
            if len(sets.sizes) * n > _MAX_FACTOR_VALUES:
                raise ValueError(
                    f"{len(sets.sizes) - 1:,} sets of {n:,} values of {name!r} are too many for this "
                    "release: ask fewer at a time"
                )
            edges = np.zeros((len(sets.sizes), n + 1))
            owner = np.repeat(np.arange(len(sets.sizes)), np.diff(sets.offsets))
            np.add.at(edges, (owner, sets.lo), 1)
            np.add.at(edges, (owner, sets.hi), -1)
            factors.append(sealed(edges.cumsum(axis=1)[:, :n]))
        return tuple(factors)
