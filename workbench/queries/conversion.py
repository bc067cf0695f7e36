"""Conversion of ranges, boxes and subsets to linear queries (weighted sums of counts), and joining of several
workloads into one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.queries.linear import Linear, Margins, Prior
from workbench.queries.products import Products
from workbench.queries.ranges import Boxes, Ranges, Subsets, digest_text
from workbench.queries.selections import Selections
from workbench.spaces import Domain
from workbench.value import Float

# Conversion

MAX_TERMS = 2**22  # limit for the terms of converted ranges, subsets or marginals


def linear_queries(workload: Any, domain: Domain) -> Linear:
    """Convert a workload (list of queries) to linear queries, which are weighted sums of counts. If you give
    a recipe for random queries, the function first draws the queries.

    On a domain with d attributes, a range of cells becomes a sum of at most 2d − 1 boxes. Raise a ValueError
    if the workload cannot be converted, for example because it contains too many scattered cells.
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
        query, boxes = workload.boxes(domain)
        order = np.argsort(query, kind="stable")
        offsets = np.searchsorted(query[order], np.arange(len(workload) + 1))
        return Products.boxes(domain, boxes.lo[order], boxes.hi[order], offsets)
    raise ValueError(f"{workload!r} has no form as linear queries over {domain.attributes}")


# Together


@dataclass(frozen=True, eq=False, repr=False)
class Together(Linear):
    """Workload (list of queries) that joins several workloads. It contains the queries of the first workload,
    then the queries of the second, and so on.
    """

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        parts: list[Any] = []
        for part in self.parts:
            parts += part.parts if isinstance(part, Together) else [part]
        object.__setattr__(self, "parts", tuple(parts))

    def on(self, domain: Domain) -> Together:
        """Convert all parts to linear queries (weighted sums of counts) on a domain, and return the joined
        workload.
        """
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
        """Return the queries with the numbers `rows`, in this order. Consecutive queries from the same part
        (one of the joined workloads) stay together in one part.
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
        """Largest absolute value of a term, or an upper bound on this value. A query is a sum over records,
        and a record adds one or more terms to this sum.
        """
        return max((p.max_term for p in self.parts), default=0.0)

    @property
    def max_query(self) -> float:
        """Largest absolute change of any answer if one record is added, or an upper bound on this change."""
        return max((p.max_query for p in self.parts), default=0.0)

    @property
    def integer_valued(self) -> bool:
        """Whether all answers are integers if all counts are integers."""
        return all(p.integer_valued for p in self.parts)

    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return the expected answer to each query on a table with one random record. The record's value of
        each attribute is drawn independently. `prior` contains one vector of probabilities per attribute.
        """
        return np.concatenate([np.empty(0), *(p.means(domain, prior) for p in self.parts)])

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers to the queries of all parts, computed from marginals (tables of counts on some
        of the attributes).
        """
        return np.concatenate([np.empty(0), *(p.sums_of_margins(margins) for p in self.parts)])

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers to the queries of all parts as integers, in units of `grid`. The integer n
        stands for the answer n·`grid`. For each record, the method rounds every term of a query to a multiple
        of `grid`.
        """
        units = (p.grid_units_of_margins(margins, grid) for p in self.parts)
        return np.concatenate([np.empty(0, object), *units])
