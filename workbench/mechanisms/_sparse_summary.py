"""What the three sparse summaries share: noise on all nodes of a basis, of which few are released."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.estimates import Summary, summary_in_basis
from workbench.inference import consistent
from workbench.mechanism import (
    Mechanism,
    Release,
    as_bound,
    blocks_within,
    law_within,
    noise,
    parameter,
    private_bound,
)
from workbench.privacy import Receipt
from workbench.table import Bound, SparseTable
from workbench.transform import Dyadic, basis_of
from workbench.value import not_allowed


def sides_field() -> Any:
    """The field that says which noisy values a filter compares with θ."""
    return parameter(2, choices=(1, 2), doc="2 keeps large negatives too, 1 is M'₊")


def filter_field() -> Any:
    """The field θ of a sample that is drawn of what passes a filter."""
    return parameter(0, 0, 2**50, unit="counts", doc="filter before sampling")


def threshold_size_field(symbol: str) -> Any:
    """The field `size` from which a threshold is chosen."""
    doc = f"chooses {symbol}: expected survivors of an empty table"
    return parameter(None, 1, integer=True, unit="cells", doc=doc)


def summary_name(name: str, sides: int, theta: float = 0) -> str:
    """What figures call a summary: whether a filter comes before a sample, and on how many sides.

    >>> summary_name("filter", 1), summary_name("priority", 2, theta=40)
    ('one-sided filter', 'filter-priority')
    """
    if theta > 0:
        name = f"filter-{name}"
    return f"one-sided {name}" if sides == 1 else name


class SparseSummary(Mechanism):
    """A release of few out of all noisy nodes.

    It is drawn in time of what is released, or, in two steps, out of noisy nodes among which are all
    that reach θ (`summarise`). A subclass says at which thresholds, and how the second step is done.
    """

    cite = "cormode2012"
    accepts_zcdp = True
    fixed_price = True
    transform: Any
    sides: int
    consistent: bool

    def refuse_inconsistent(self, theta: float | None) -> None:
        """A ValueError if `consistent` is asked for where it means nothing."""
        if self.consistent and not isinstance(self.transform, Dyadic):
            given = f" with transform = {self.transform!r}"
            raise not_allowed(
                self, "consistent", "need Dyadic(), whose nodes have ancestors", given
            )
        if self.consistent and theta is not None and theta < 1:
            why = "need at least 1, since an ancestor can only be missed after a filter"
            raise not_allowed(self, "theta", why, " with consistent = True")

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        """θ of the filter and τ of the sampling, 0 where it is not public beforehand."""
        raise NotImplementedError

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        """The second step."""
        raise NotImplementedError

    def _draw(
        self,
        exact: tuple[np.ndarray, np.ndarray],
        blocks: list[Any],
        theta: float,
        tau: float,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]]:
        """Keys, noisy values, τ and receipts of both steps at once."""
        keys, values, ledger = noise.threshold_sample(
            *exact, blocks, theta=theta, sides=self.sides, tau=tau, rng=rng
        )
        return keys, values, tau, ledger

    def _blocks(self, domain: Domain, bound: Bound | float) -> list[Any]:
        basis = basis_of(self.transform, domain)
        return blocks_within(basis, as_bound(bound), self.budget)

    def _consistent(self, noisy: Summary, theta: float) -> Summary:
        """The nodes that reach θ, and all of whose ancestors do."""
        passes = noise.threshold_sample_public(noisy.values, theta=theta, sides=self.sides)
        return consistent(noisy.where(passes, theta=theta, sides=self.sides))

    def summarise(
        self, noisy: Summary, l1: Bound | float, rng: np.random.Generator | None = None
    ) -> Summary:
        """The second step, on noisy cells among which are all that pass.

        `l1` is how far a unit moves the table, or, of a ρ, its whole bound.
        """
        theta, tau = self._thresholds(self._blocks(noisy.domain, l1))
        return self._select(noisy, theta, tau, rng)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells, or nodes, that are kept."""
        bound = private_bound(table)
        basis = basis_of(self.transform, table.domain)
        blocks = blocks_within(basis, bound, self.budget)
        theta, tau = self._thresholds(blocks)
        exact = basis.forward(table.keys, table.counts)
        law = law_within(basis, bound, self.budget)
        if self.consistent:
            keys, values, ledger = noise.threshold_sample(
                *exact, blocks, theta=theta, sides=self.sides, rng=rng
            )
            passed = summary_in_basis(basis, keys, values, law, theta, sides=self.sides)
            summary = self._select(passed, theta, tau, rng)
        else:
            keys, values, tau, ledger = self._draw(exact, blocks, theta, tau, rng)
            summary = summary_in_basis(basis, keys, values, law, theta, tau, self.sides)
        return Release(summary, ledger, self, bound)
