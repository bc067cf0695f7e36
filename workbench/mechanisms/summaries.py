"""Sparse summaries: high-pass filter, threshold and priority sampling, stability histogram."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import Bound, SparseTable
from workbench.estimates import Summary, summary_in_basis
from workbench.estimates.release import Release
from workbench.inference import consistent
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    amount,
    as_bound,
    blocks_within,
    budget_field,
    consistent_field,
    inverse_scale,
    law_within,
    private_bound,
    transform_field,
)
from workbench.noise.law import GAUSSIAN, GEOMETRIC, Law
from workbench.privacy import DP, ZCDP, Receipt
from workbench.queries import Basis, Dyadic, Haar, basis_of
from workbench.spaces import Domain
from workbench.value import not_allowed, parameter, value

# Sparse summary


def sides_field() -> Any:
    """Return the field `sides` of a filter. If it is 2, the filter compares θ with the absolute value |v|
    of a noisy value v. If it is 1, it compares θ with v.
    """
    return parameter(
        2, choices=(1, 2), doc="2 also keeps large negative counts, 1 keeps positive ones only"
    )


def filter_field() -> Any:
    """Return the field `theta`, the threshold of a filter that is applied before sampling."""
    return parameter(
        0, 0, 2**50, unit="counts", doc="threshold of the filter before sampling (0: none)"
    )


def threshold_size_field(symbol: str) -> Any:
    """Return the field `size`, a target number of released cells from which the threshold is computed."""
    doc = f"number of cells that an empty table would release on average, from which {symbol} follows"
    return parameter(None, 1, integer=True, unit="cells", doc=doc)


def summary_name(name: str, sides: int, theta: float = 0) -> str:
    """Return the name of a summary in figures. The name says whether there is a filter before the sample,
    and whether the filter has one side.

    >>> summary_name("filter", 1), summary_name("priority", 2, theta=40)
    ('one-sided filter', 'filter-priority')
    """
    if theta > 0:
        name = f"filter-{name}"
    return f"one-sided {name}" if sides == 1 else name


class SparseSummary(Mechanism):
    """Base of mechanisms that release some of the noisy cells or nodes.

    One could add noise to all nodes, and then select some of them with `summarise`. A call draws a release
    with the same distribution directly, in time proportional to the released and the non-empty nodes. A
    subclass defines the thresholds and `summarise`.
    """

    cite = "cormode2012"
    fixed_price = True
    transform: Any
    sides: int
    consistent: bool

    def refuse_inconsistent(self, theta: float | None) -> None:
        """Raise a ValueError if `consistent` is set without a `Dyadic()` transform or without a filter."""
        if self.consistent and not isinstance(self.transform, Dyadic):
            given = f" with transform = {self.transform!r}"
            raise not_allowed(
                self, "consistent", "need Dyadic(), whose nodes have ancestors", given
            )
        if self.consistent and theta is not None and theta < 1:
            why = "need at least 1, since an ancestor can only be missed after a filter"
            raise not_allowed(self, "theta", why, " with consistent = True")

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        """Return θ of the filter and τ of the sampling. τ is 0 if it is not public in advance."""
        raise NotImplementedError

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        """Choose the nodes that the second step keeps."""
        raise NotImplementedError

    def _draw(
        self, table: SparseTable, basis: Basis, blocks: list[Any], tau: float, **how: Any
    ) -> tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]]:
        """Draw both steps at once. Return keys, noisy values, τ and receipts."""
        keys, values, ledger = _measured(
            noise.threshold_sample, table, basis, blocks, tau=tau, **how
        )
        return keys, values, tau, ledger

    def _blocks(self, domain: Domain, bound: Bound | float) -> list[Any]:
        basis = basis_of(self.transform, domain)
        return blocks_within(basis, as_bound(bound), self.budget)

    def _consistent(self, noisy: Summary, theta: float) -> Summary:
        """Return the nodes that reach θ together with all of their ancestors."""
        passes = noise.threshold_sample_public(noisy.values, theta=theta, sides=self.sides)
        return consistent(noisy.where(passes, theta=theta, sides=self.sides))

    def summarise(
        self, noisy: Summary, l1: Bound | float, rng: np.random.Generator | None = None
    ) -> Summary:
        """Select the cells to release from noisy cells. The noisy cells must include all that pass the
        filter.

        `l1` is the largest change of the table by one unit. For a budget in ρ, it must be the whole
        `Bound`.
        """
        theta, tau = self._thresholds(self._blocks(noisy.domain, l1))
        return self._select(noisy, theta, tau, rng)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells, or nodes, that the mechanism keeps."""
        bound = private_bound(table)
        basis = basis_of(self.transform, table.domain)
        blocks = blocks_within(basis, bound, self.budget)
        theta, tau = self._thresholds(blocks)
        law = law_within(basis, bound, self.budget)
        how: dict[str, Any] = {"theta": theta, "sides": self.sides, "rng": rng}
        if self.consistent:
            keys, values, ledger = _measured(
                noise.threshold_sample, table, basis, blocks, **how
            )
            passed = summary_in_basis(basis, keys, values, law, theta, sides=self.sides)
            summary = self._select(passed, theta, tau, rng)
        else:
            keys, values, tau, ledger = self._draw(table, basis, blocks, tau, **how)
            summary = summary_in_basis(basis, keys, values, law, theta, tau, self.sides)
        return Release(summary, ledger, self, bound)


def _measured(
    draw: Callable[..., Any], table: SparseTable, basis: Basis, blocks: list[Any], **how: Any
) -> Any:
    """Return the noisy nodes that a draw of `noise` keeps. A table that is counted in parts draws in
    each part.
    """
    if hasattr(table, "measured"):
        return table.measured(basis, blocks, **how)
    return draw(*basis.forward(table.keys, table.counts), blocks, **how)


# High pass filter


@value
class HighPassFilter(SparseSummary):
    """Release the cells whose noisy count passes θ.

    A noisy count v passes if |v| >= θ (`sides` = 2) or v >= θ (`sides` = 1).

    Guarantee  ε-DP per unit, or ρ-zCDP. The whole budget pays for the counts. The filter comes after the
               noise and costs nothing. With a `transform`, one record changes ⌈log₂m⌉ + 1 nodes, which
               share the budget.
    Assumes    the table's bound. θ, or the size from which it is computed, is stated without looking at the
               data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.2, Theorem 1, appendix C.1;
               transforms: section 3, Theorem 4; consistency: section 4.3.
    Differs    Formulas hold for real θ (the paper prints them for integers). If θ is computed from `size`,
               the formula uses m. With m − n it would reveal n. The mechanism draws once, even if the
               summary is small, because repeated draws could cost 2ε.
    Cost       time and memory O(non-empty cells + released cells), for a domain of any size m. With a
               transform, n non-empty cells give O(n·log(m/n)) non-empty nodes.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    theta: float = parameter(
        None, 0, 2**50, unit="counts", doc="threshold θ (higher values keep fewer cells)"
    )
    sides: int = sides_field()
    size: int = threshold_size_field("θ")
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "high-pass filter"
    audited = audited_at(1)

    def __post_init__(self) -> None:
        if (self.theta is None) == (self.size is None):
            raise ValueError("HighPassFilter needs either theta or size, and not both")
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures."""
        return summary_name("filter", self.sides)

    def survival(self, alpha: float, theta: float | None = None) -> float:
        """Return p_θ, the probability that an empty cell passes the filter.

        With α = exp(−ε/Δ), it is the sum of (1−α)/(1+α)·α^|x| over all x that pass. This is
        sides·α^⌈θ⌉/(1+α). For two sides and θ = 0, every cell passes.
        """
        theta = self.theta if theta is None else theta
        if theta == 0 and self.sides == 2:
            return 1.0
        return self.sides * alpha ** ceil(theta) / (1 + alpha)

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """Return the threshold θ in counts. It is the given θ or, if you gave `size`, the smallest integer >= 1
        for which the m cells would release at most `size` cells on average if all were empty.

        For one block of m cells, the function solves sides·m·α^θ/(1+α) = size for θ. For several blocks it
        searches by bisection. The number n of non-empty cells is not used, so θ reveals nothing about it.
        For a budget in ρ, `l1` must be the whole `Bound`.
        """
        if self.theta is not None:
            return self.theta
        return self._smallest_theta(self._blocks(domain, l1))

    def _smallest_theta(self, blocks: list[Any]) -> int:
        self.refuse_size_above(sum(block.size for block in blocks))
        laws = [block.law for block in blocks]

        def chance(law: Law, theta: int) -> float:
            if law.kind == GAUSSIAN:
                return noise.empty_cell(law, theta, self.sides).chance
            return self.survival(exp(-law.rate), theta)

        def suffices(theta: int) -> bool:
            survivors = sum(
                block.size * chance(law, theta) for block, law in zip(blocks, laws, strict=True)
            )
            return survivors <= self.size

        high = 1
        while not suffices(high):
            high *= 2
        low = high // 2 + 1
        return low + bisect_left(range(low, high), True, key=suffices)

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        theta = self._smallest_theta(blocks) if self.theta is None else self.theta
        return theta, 0.0

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            return self._consistent(noisy, theta)
        passes = noise.threshold_sample_public(
            noisy.values, theta=theta, sides=self.sides, rng=rng
        )
        return noisy.where(passes, theta=theta, sides=self.sides)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism. Its threshold is four times the scale of the noise."""
        return cls(budget, theta=ceil(4 / inverse_scale(budget)))


# Threshold sampling


@value
class ThresholdSampling(SparseSummary):
    """Sample noisy cells in proportion to their size.

    A noisy value v is kept with probability |v|/τ if |v| is below τ, and always above τ.

    Guarantee  ε-DP per unit, or ρ-zCDP. The whole budget pays for the counts. Sampling comes after the
               noise and costs nothing. With a `transform`, one record changes ⌈log₂m⌉ + 1 nodes, which
               share the budget.
    Assumes    the table's bound. τ, or the size from which it is computed, is stated without looking at the
               data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 2, appendix C.2, and
               C.4 (with a filter), section 3 (transforms), 4.3 (consistency); threshold sampling itself:
               Duffield, Lund & Thorup, SIGCOMM 2003.
    Differs    Formulas hold for real θ and τ. If τ is computed from `size`, it is the solution of m·p_τ =
               size. The paper uses ‖M‖₁, which would reveal the total. Sampled values are divided by their
               probability, where the paper writes "scaled by".
    Cost       time and memory O(non-empty cells + released cells), for a domain of any size m. With a
               transform, n non-empty cells give O(n·log(m/n)) non-empty nodes. With `consistent`, there is
               a cost for every cell that passes θ.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    tau: float = parameter(
        None,
        0,
        2**50,
        unit="counts",
        doc="count τ from which every cell is kept (higher values keep fewer cells)",
    )
    theta: float = filter_field()
    sides: int = sides_field()
    size: int = threshold_size_field("τ")
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "threshold sampling"
    audited = audited_at(2)

    def __post_init__(self) -> None:
        if (self.tau is None) == (self.size is None):
            raise ValueError("ThresholdSampling needs either tau or size, and not both")
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures."""
        return summary_name("threshold", self.sides, self.theta)

    def survival(self, decay: Law | float, tau: float | None = None) -> float:
        """Return p_θτ, the probability that an empty cell is released. It follows from the distribution of
        the noise, or from its decay ε/Δ.

        It is Σ_{|v|>=θ} (1−α)/(1+α)·α^|v|·min(|v|/τ, 1), for real θ and τ (see `noise.empty_cells`).
        """
        tau = self.tau if tau is None else tau
        law = decay if isinstance(decay, Law) else Law(GEOMETRIC, Fraction(decay))
        return noise.empty_cell(law, self.theta, self.sides, tau).chance

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """Return τ in counts. It is the given τ or, if you gave `size`, the solution of Σ m·p_θτ = size. It
        is 0 if the filter alone keeps few enough cells.

        For a budget in ρ, `l1` must be the whole `Bound`.
        """
        if self.tau is not None:
            return self.tau
        return self._smallest_tau(self._blocks(domain, l1))

    def _smallest_tau(self, blocks: list[Any]) -> float:
        self.refuse_size_above(sum(block.size for block in blocks))
        return _smallest_tau(self, tuple((block.law, block.size) for block in blocks))

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        tau = self._smallest_tau(blocks) if self.tau is None else self.tau
        return self.theta, max(tau, 1.0)

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            noisy = self._consistent(noisy, theta)
        kept = noise.threshold_sample_public(
            noisy.values, theta=theta, sides=self.sides, tau=tau, rng=rng
        )
        return noisy.where(kept, theta=theta, sides=self.sides, tau=tau)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism that keeps every value above ten times the scale of the noise."""
        return cls(budget, tau=10 / inverse_scale(budget))


@lru_cache(maxsize=256)  # a sweep asks once a seed, of what depends on no data
def _smallest_tau(mechanism: ThresholdSampling, blocks: tuple[tuple[Law, int], ...]) -> float:
    """Return the τ at which, on average, `mechanism.size` empty cells are released, over blocks of
    (law, cells).
    """

    def too_many(tau: float) -> bool:
        survivors = sum(cells * mechanism.survival(law, tau) for law, cells in blocks)
        return survivors > mechanism.size

    low = max(1.0, mechanism.theta)
    if not too_many(low):
        return 0.0
    high = 2 * low
    while too_many(high):
        low = high
        high = 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if too_many(middle):
            low = middle
        else:
            high = middle
    return high


# Priority sampling


@value
class PrioritySampling(SparseSummary):
    """Release `size` cells, favouring large counts.

    Estimates are unbiased. If fewer than `size` cells pass θ, the mechanism releases only these.

    Guarantee  ε-DP per unit, or ρ-zCDP. The whole budget pays for the counts. Sampling comes after the
               noise and costs nothing. With a `transform`, one record changes ⌈log₂m⌉ + 1 nodes, which
               share the budget.
    Assumes    the table's bound. `size` and θ are stated without looking at the data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 3, appendix C.3; with
               θ > 0 filter-priority sampling, section 2.4 and C.4; transforms: section 3; consistency: 4.3;
               priority sampling itself: Duffield, Lund & Thorup, J. ACM 2007.
    Differs    If the guessed threshold was too high, we extend the sample to a lower one. Drawing
               again until the sample is large enough would bias τ_s. If at most `size` cells pass θ, all
               are released and τ_s = 0. We round τ_s down to a fixed grid, and compute the weights of
               cells from the rounded value.
    Cost       time and memory O(non-empty cells + size), for a domain of any size m. With a transform, n
               non-empty cells give O(n·log(m/n)) non-empty nodes. With `consistent`, there is a cost for
               every cell that passes θ.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    size: int = parameter(
        low=1, high=2**28, integer=True, unit="cells", doc="number of cells to release"
    )
    theta: float = filter_field()
    sides: int = sides_field()
    transform: Dyadic | Haar | None = transform_field()
    consistent: bool = consistent_field()
    title = "priority sampling"
    audited = audited_at(2, size=16)

    def __post_init__(self) -> None:
        self.refuse_inconsistent(self.theta)

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures."""
        return summary_name("priority", self.sides, self.theta)

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        self.refuse_size_above(sum(block.size for block in blocks))
        return self.theta, 0.0  # τ_s is known only once cells are drawn

    def _draw(
        self, table: SparseTable, basis: Basis, blocks: list[Any], tau: float, **how: Any
    ) -> tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]]:
        drawn: tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]] = _measured(
            noise.priority_sample, table, basis, blocks, size=self.size, **how
        )
        return drawn

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        if self.consistent:
            noisy = self._consistent(noisy, theta)
        kept, tau = noise.priority_sample_public(
            noisy.values, theta=theta, sides=self.sides, size=self.size, rng=rng
        )
        return noisy.where(kept, theta=theta, sides=self.sides, tau=tau)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for ten cells, with a threshold of two noise scales."""
        return cls(budget, size=10, theta=ceil(2 / inverse_scale(budget)))


# Stability histogram


@value
class StabilityHistogram(Mechanism):
    """Release non-empty cells above a threshold from δ.

    Guarantee  (ε, δ)-DP per unit, or δ-approximate ρ-zCDP. The ε, or ρ, pays for the counts. A
               cell that only one unit fills is released with probability at most δ. An empty cell is never
               released.
    Assumes    the table's bound.
    Source     Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009, Algorithm 1; Bun, Nissim & Stemmer, ITCS
               2016, the stability-based histogram.
    Differs    Noise is geometric or Gaussian. The threshold is the smallest integer whose exact failure
               probability is at most δ, for every unit that the bound allows. The receipt charges this
               probability instead of δ.
    Cost       time and memory O(non-empty cells), for a domain of any size.
    """

    budget: DP | ZCDP = budget_field(delta="some", zcdp=True)
    cite = "korolova2009"
    title = "stability histogram"
    audited = audited_at(2, 0)
    series = "stability histogram"
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> int:
        """Return the threshold T, the smallest integer >= 1 with 1 − Π (1 − Pr[c_j + X >= T]) <= δ.

        The product is over the cells that were empty before one unit filled them, with c_j counts in cell
        j. The unit is the worst that the bound allows. For example, if a unit fills one cell with one
        count, T is 1 + ln(1/(δ(1+α)))/ε, rounded up.
        """
        theta, _ = noise.stability_threshold(bound, **self.price)
        return theta

    @property
    def price(self) -> dict[str, float]:
        """Return the part of the budget that pays for the noise on the counts."""
        kind = "rho" if isinstance(self.budget, ZCDP) else "epsilon"
        return {kind: amount(self.budget), "delta": self.budget.delta}

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that reach the threshold."""
        bound = private_bound(table)
        if hasattr(table, "stable_cells"):  # of a table that is counted in parts
            keys, noisy, theta, receipt = table.stable_cells(**self.price, rng=rng)
        else:
            keys, noisy, theta, receipt = noise.stability_histogram(
                table.keys, table.counts, bound, **self.price, rng=rng
            )
        # without a law: what holds for noise on every cell does not hold here
        summary = Summary(table.domain, keys, noisy, None, theta, sides=1)
        return Release(summary, (receipt,), self, bound)
