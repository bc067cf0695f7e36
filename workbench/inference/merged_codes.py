"""Neighbouring codes that no query tells apart, as one code: the same answers over a smaller domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.arrays import Bool, Float, Int
from workbench.domain import Domain
from workbench.workload import Products, TableQueries, Together
from workbench.workload.linear import Linear, Prior


@dataclass(frozen=True, eq=False)
class MergedCodes:
    """Runs of codes of each attribute: `starts` holds the first code of each, ascending from 0."""

    domain: Domain
    starts: tuple[Int[np.ndarray, " runs"], ...]

    @classmethod
    def of(cls, queries: Linear, domain: Domain) -> MergedCodes:
        """The longest runs on which every query is constant."""
        changes = [np.zeros(n, bool) for n in domain.shape]
        for first in changes:
            first[0] = True
        _mark_changes(queries, domain, changes)
        return cls(domain, tuple(map(np.flatnonzero, changes)))

    @property
    def merges(self) -> bool:
        """Whether any run has several codes."""
        return self.small.shape != self.domain.shape

    @cached_property
    def small(self) -> Domain:
        """A domain with a code for each run."""
        return Domain(self.domain.attributes, tuple(map(len, self.starts)))

    def queries(self, queries: Linear) -> Linear:
        """Queries that are constant on each run, over the small domain."""
        if isinstance(queries, Together):
            return Together(tuple(map(self.queries, queries.parts)))
        if isinstance(queries, TableQueries):
            groups = []
            for names, tables in queries.groups:
                for i, name in enumerate(names):
                    tables = tables.take(self.starts[self.domain.axis(name)], axis=i + 1)
                groups.append((names, tables))
            return TableQueries(tuple(groups), queries.order)
        assert isinstance(queries, Products)
        factors = tuple(
            factor[:, starts]
            for factor, starts in zip(queries.factors, self.starts, strict=True)
        )
        return Products(
            queries.attributes, factors, queries.which, queries.times, queries.offsets
        )

    def prior(self, prior: Prior) -> tuple[Float[np.ndarray, " runs"], ...]:
        """The weight of each run."""
        return tuple(map(np.add.reduceat, prior, self.starts))

    def run_of_code(self, axis: int) -> Int[np.ndarray, " codes"]:
        """The run that each code of an attribute is in."""
        sizes = np.diff(self.starts[axis], append=self.domain.shape[axis])
        return np.repeat(np.arange(len(sizes)), sizes)

    def spread(
        self,
        table: Float[np.ndarray, "..."],
        axes: Sequence[int],
        prior: Prior | None = None,
    ) -> Float[np.ndarray, "..."]:
        """A table over runs of some attributes as one over codes.

        Each code has its run's value, or if a prior is given its share of that.
        """
        for i, axis in enumerate(axes):
            runs = self.run_of_code(axis)
            table = table.take(runs, axis=i)
            if prior is not None:
                share = prior[axis] / np.add.reduceat(prior[axis], self.starts[axis])[runs]
                table = table * share.reshape([-1 if j == i else 1 for j in range(table.ndim)])
        return table


def _mark_changes(
    queries: Linear, domain: Domain, changes: Sequence[Bool[np.ndarray, " codes"]]
) -> None:
    """Set, in place, at which codes of each attribute any query differs from the code before."""
    if isinstance(queries, Together):
        for part in queries.parts:
            _mark_changes(part, domain, changes)
    elif isinstance(queries, TableQueries):
        for names, tables, _ in queries.numbered_groups():
            for i, name in enumerate(names):
                by_code = np.moveaxis(tables, i + 1, 0)
                differs = (by_code[1:] != by_code[:-1]).any(axis=tuple(range(1, tables.ndim)))
                changes[domain.axis(name)][1:] |= differs
    else:
        assert isinstance(queries, Products)
        for k, factor in enumerate(queries.factors):
            for row in np.unique(queries.which[:, k]):
                changes[k][1:] |= factor[row, 1:] != factor[row, :-1]
