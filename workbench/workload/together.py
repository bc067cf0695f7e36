"""Several lists of linear queries as one, and the beginning of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.value import not_allowed, parameter, value
from workbench.workload.conversion import linear_queries
from workbench.workload.linear import Linear, Margins, Prior
from workbench.workload.queries import Recipe, digest_text


@dataclass(frozen=True, eq=False, repr=False)
class Together(Linear):
    """Several workloads, one after the other."""

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        parts: list[Any] = []
        for part in self.parts:
            parts += part.parts if isinstance(part, Together) else [part]
        object.__setattr__(self, "parts", tuple(parts))

    def on(self, domain: Domain) -> Together:
        """All of them as linear queries on the domain."""
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
        """A selection of the queries, in the order of `rows`: a part for each run of one part's."""
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
        """No term is larger at any tuple."""
        return max((p.max_term for p in self.parts), default=0.0)

    @property
    def max_query(self) -> float:
        """No query is larger at any tuple."""
        return max((p.max_query for p in self.parts), default=0.0)

    @property
    def integer_valued(self) -> bool:
        """Whether all answers on whole counts are whole numbers."""
        return all(p.integer_valued for p in self.parts)

    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Each query's mean over a product prior."""
        return np.concatenate([np.empty(0), *(p.means(domain, prior) for p in self.parts)])

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """The answers of each in turn."""
        return np.concatenate([np.empty(0), *(p.sums_of_margins(margins) for p in self.parts)])

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """The answers of each in turn, in grid steps."""
        units = (p.grid_units_of_margins(margins, grid) for p in self.parts)
        return np.concatenate([np.empty(0, object), *units])


@value
class First:
    """The first `count` queries of a workload: fewer or more of one list are asked the same.

    >>> from workbench.workload import RandomMarginalRanges
    >>> len(First(2, RandomMarginalRanges(5)).on(Domain(("a", "b", "c"), (20, 3, 40))))
    2
    """

    count: int = parameter(low=1, integer=True, unit="queries", doc="how many are asked")
    workload: Recipe = parameter(
        check=lambda x: None if hasattr(x, "on") else "need a workload or a recipe of one",
        doc="the list",
    )

    def on(self, domain: Domain) -> Linear:
        """Those queries on a domain.

        Parameters
        ----------
        domain : Domain
            Where the workload can be asked.

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
            raise not_allowed(self, "count", f"need at most {len(queries)}, all that there are")
        return queries[np.arange(self.count)]
