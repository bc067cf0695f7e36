"""Conversion of ranges, boxes and subsets to linear queries, and concatenation of workloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.queries.linear import Linear, Margins, Prior
from workbench.queries.products import Products
from workbench.queries.ranges import Boxes, Ranges, Recipe, Subsets, digest_text
from workbench.queries.selections import Selections
from workbench.spaces import Domain
from workbench.value import Float, not_allowed, parameter, value

# Conversion

MAX_TERMS = 2**22  # that ranges, subsets or marginals may become


def linear_queries(workload: Any, domain: Domain) -> Linear:
    """Convert a workload over the domain, or a recipe of one, to linear queries over its attributes.

    A range of keys becomes at most 2d − 1 boxes over d attributes. A workload of too many scattered cells
    raises a ValueError.
    """
    workload = workload.on(domain)
    if isinstance(workload, Linear):
        return workload
    if isinstance(workload, Boxes):
        return Products.boxes(domain, workload.lo, workload.hi)
    if isinstance(workload, Selections):
        ones = np.ones(len(workload))
        ends = np.arange(len(workload) + 1)
        return Products(domain.attributes, workload.factors, workload.which, ones, ends)
    domain.refuse_wide()
    if isinstance(workload, Subsets) and len(workload.members) <= MAX_TERMS:
        codes = domain.codes(workload.members)
        return Products.boxes(domain, codes, codes + 1, workload.offsets)
    if isinstance(workload, Ranges) and len(workload) <= MAX_TERMS:
        return _products_of_ranges(workload, domain)
    raise ValueError(f"{workload!r} has no form as linear queries over {domain.attributes}")


def _products_of_ranges(ranges: Ranges, domain: Domain) -> Products:
    """Return the boxes that make up ranges of keys, attribute by attribute, with part of a block at either
    end.
    """
    boxes = []
    owners = []
    queries = np.flatnonzero(ranges.hi > ranges.lo)
    lo = ranges.lo[queries]
    hi = ranges.hi[queries]
    for axis in range(len(domain.shape) - 1, -1, -1):
        n = domain.shape[axis]
        up = -(-lo // n) * n  # whole blocks lie between up and down
        down = hi // n * n
        within = (up > down) | (axis == 0)
        head = ~within & (lo < up)
        tail = ~within & (down < hi)
        for part, first, last in ((within, lo, hi), (head, lo, up), (tail, down, hi)):
            boxes.append(_boxes_of_block(domain.shape, axis, first[part], last[part]))
            owners.append(queries[part])
        rest = ~within & (up < down)
        queries = queries[rest]
        lo = up[rest] // n
        hi = down[rest] // n
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ranges)))])
    lo = np.concatenate([box.lo for box in boxes])[order]
    hi = np.concatenate([box.hi for box in boxes])[order]
    return Products.boxes(domain, lo, hi, offsets)


def _boxes_of_block(
    shape: tuple[int, ...], axis: int, first: np.ndarray, last: np.ndarray
) -> Boxes:
    """Return boxes with the codes first … last − 1 of `axis`, for fixed codes before it and all codes after it.

    `first` and `last` number the codes of `axis` and all attributes before it together.
    """
    lo = np.zeros((len(first), len(shape)), np.int64)
    hi = np.tile(shape, (len(first), 1))
    outer = first // shape[axis]
    lo[:, axis] = first - outer * shape[axis]
    hi[:, axis] = last - outer * shape[axis]
    for k in range(axis - 1, -1, -1):
        lo[:, k] = outer % shape[k]
        hi[:, k] = lo[:, k] + 1
        outer = outer // shape[k]
    return Boxes(lo, hi)


# Together


@dataclass(frozen=True, eq=False, repr=False)
class Together(Linear):
    """Several workloads joined, one after the other, into one workload."""

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        parts: list[Any] = []
        for part in self.parts:
            parts += part.parts if isinstance(part, Together) else [part]
        object.__setattr__(self, "parts", tuple(parts))

    def on(self, domain: Domain) -> Together:
        """Return the queries of all parts as linear queries on the domain."""
        parts = tuple(linear_queries(part, domain) for part in self.parts)
        same = all(a is b for a, b in zip(parts, self.parts, strict=True))
        return self if same else Together(parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __repr__(self) -> str:
        return digest_text(
            self, *(np.frombuffer(repr(p).encode(), np.uint8) for p in self.parts)
        )

    def __getitem__(self, rows: Any) -> Together:
        """Return a selection of the queries, in the order of `rows`. Consecutive rows of one part stay one
        part.
        """
        rows = np.arange(len(self))[rows]
        starts = np.cumsum([0, *map(len, self.parts)])
        part_of_row = np.searchsorted(starts, rows, side="right") - 1
        first = np.flatnonzero(np.diff(part_of_row, prepend=-1))
        runs = np.split(rows, first[1:]) if len(rows) else []
        parts = part_of_row[first].tolist()
        return Together(
            tuple(self.parts[p][run - starts[p]] for p, run in zip(parts, runs, strict=True))
        )

    @property
    def max_term(self) -> float:
        """Upper bound on a term at any tuple."""
        return max((p.max_term for p in self.parts), default=0.0)

    @property
    def max_query(self) -> float:
        """Upper bound on a query at any tuple."""
        return max((p.max_query for p in self.parts), default=0.0)

    @property
    def integer_valued(self) -> bool:
        """Whether all answers on integer counts are integers."""
        return all(p.integer_valued for p in self.parts)

    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return each query's mean over a product prior."""
        return np.concatenate([np.empty(0), *(p.means(domain, prior) for p in self.parts)])

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers of all parts."""
        return np.concatenate([np.empty(0), *(p.sums_of_margins(margins) for p in self.parts)])

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers of all parts, in grid steps."""
        units = (p.grid_units_of_margins(margins, grid) for p in self.parts)
        return np.concatenate([np.empty(0, object), *units])


@value
class First:
    """The first `count` queries of a workload, so that each shorter list is the beginning of a longer one.

    >>> from workbench.queries import RandomMarginalRanges
    >>> len(First(2, RandomMarginalRanges(5)).on(Domain(("a", "b", "c"), (20, 3, 40))))
    2
    """

    count: int = parameter(low=1, integer=True, unit="queries", doc="number of queries")
    workload: Recipe = parameter(
        check=lambda x: None if hasattr(x, "on") else "need a workload or a recipe of one",
        doc="list of queries",
    )

    def on(self, domain: Domain) -> Linear:
        """Return those queries on a domain.

        Parameters
        ----------
        domain : Domain
            Domain on which the workload can be asked.

        Returns
        -------
        Products, TableQueries or Together
            In the order of the workload.

        Raises
        ------
        ValueError
            If the workload has fewer queries, or does not fit the domain.
        """
        queries = linear_queries(self.workload, domain)
        if self.count > len(queries):
            raise not_allowed(self, "count", f"need at most {len(queries)} (all queries)")
        return queries[np.arange(self.count)]
