"""Mechanisms that release only some of the noisy cells: high-pass filter, threshold sampling, priority
sampling, and the stability histogram.
"""

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
    """Return the field `sides` of a filter, which drops noisy values v below a threshold θ. If the field is
    2, the filter compares θ with the absolute value |v|. If the field is 1, the filter compares θ with v.
    """
    return parameter(
        2, choices=(1, 2), doc="noisy counts to keep: positive (1), or of both signs (2)"
    )


def filter_field() -> Any:
    """Return the field `theta` for a mechanism that draws a sample of cells. Before the draw, a filter drops
    cells whose noisy count is below this threshold. By default, the threshold is 0.
    """
    return parameter(
        0, 0, 2**50, unit="counts", doc="filter threshold before sampling (0: no filter)"
    )


def threshold_size_field(symbol: str) -> Any:
    """Return the field `size`. From this number, the mechanism computes its threshold, so that an empty table
    would release `size` cells on average. `symbol` is the threshold's symbol in the help text.
    """
    doc = f"average number of released cells if the table is empty (determines {symbol})"
    return parameter(None, 1, integer=True, unit="cells", doc=doc)


def summary_name(name: str, sides: int, theta: float = 0) -> str:
    """Return the name of a mechanism for the legends of figures. The name contains "filter" if a filter comes
    before the sample, and "one-sided" if the filter drops all negative counts.

    >>> summary_name("filter", 1), summary_name("priority", 2, theta=40)
    ('one-sided filter', 'filter-priority')
    """
    if theta > 0:
        name = f"filter-{name}"
    return f"one-sided {name}" if sides == 1 else name


class SparseSummary(Mechanism):
    """Base of mechanisms that release only some of the noisy cells. With a `transform`, such a mechanism
    releases nodes (sums or differences of cells) instead of cells.

    The definition of such a mechanism has two steps. The first step adds noise to the counts of all cells. In
    the second step, the method `summarise` selects some of these cells. The mechanism does not run the two
    steps, because empty cells would take too much time. Instead, it directly draws a release with the same
    distribution. The time is proportional to the number of released and non-empty cells. A subclass defines
    the thresholds and `summarise`.
    """

    cite = "cormode2012"
    fixed_price = True
    transform: Any
    sides: int
    consistent: bool

    def refuse_inconsistent(self, theta: float | None) -> None:
        """Raise a ValueError if `consistent` is True, and the transform is not `Dyadic()` or the filter's
        threshold `theta` is below 1.
        """
        if self.consistent and not isinstance(self.transform, Dyadic):
            given = f" with transform = {self.transform!r}"
            raise not_allowed(
                self, "consistent", "need Dyadic(), whose nodes have ancestors", given
            )
        if self.consistent and theta is not None and theta < 1:
            why = "need at least 1, since an ancestor can only be missed after a filter"
            raise not_allowed(self, "theta", why, " with consistent = True")

    def _thresholds(self, blocks: list[Any]) -> tuple[float, float]:
        """Return the threshold θ of the filter and the threshold τ of the sampling. Return τ = 0 if τ depends
        on the noisy counts.
        """
        raise NotImplementedError

    def _select(
        self, noisy: Summary, theta: float, tau: float, rng: np.random.Generator | None
    ) -> Summary:
        """Return the noisy nodes that the second step, the selection, keeps."""
        raise NotImplementedError

    def _draw(
        self, table: SparseTable, basis: Basis, blocks: list[Any], tau: float, **how: Any
    ) -> tuple[np.ndarray, np.ndarray, float, tuple[Receipt, ...]]:
        """Draw the result of both steps (noise and selection) at once. Return the keys of the kept nodes,
        their noisy values, τ, and the receipts, which record the privacy cost.
        """
        keys, values, ledger = _measured(
            noise.threshold_sample, table, basis, blocks, tau=tau, **how
        )
        return keys, values, tau, ledger

    def _blocks(self, domain: Domain, bound: Bound | float) -> list[Any]:
        basis = basis_of(self.transform, domain)
        return blocks_within(basis, as_bound(bound), self.budget)

    def _consistent(self, noisy: Summary, theta: float) -> Summary:
        """Return the nodes that reach θ, if all of their ancestors reach θ, too."""
        passes = noise.threshold_sample_public(noisy.values, theta=theta, sides=self.sides)
        return consistent(noisy.where(passes, theta=theta, sides=self.sides))

    def summarise(
        self, noisy: Summary, l1: Bound | float, rng: np.random.Generator | None = None
    ) -> Summary:
        """Select the cells to release from the noisy cells in `noisy`. `noisy` must contain all cells whose
        noisy count passes the filter, and may contain more cells.

        `l1` is the largest total change of the counts that one protected unit can cause. If the budget is a
        ρ, pass the table's `Bound` as `l1` instead.
        """
        theta, tau = self._thresholds(self._blocks(noisy.domain, l1))
        return self._select(noisy, theta, tau, rng)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that the mechanism keeps, with their noisy counts. With a `transform`, release
        nodes (sums or differences of cells) instead.
        """
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
    """Return the noisy nodes that the function `draw` of the package `noise` keeps. If the table is counted
    in parts, which are intervals of keys, noise is drawn for each part separately.
    """
    if hasattr(table, "measured"):
        return table.measured(basis, blocks, **how)
    return draw(*basis.forward(table.keys, table.counts), blocks, **how)


# High pass filter


@value
class HighPassFilter(SparseSummary):
    """Release the noisy counts that reach a threshold θ.

    The threshold θ is the parameter `theta`, or the mechanism computes θ from `size`. With `sides` = 2, the
    filter keeps a noisy count v if |v| >= θ, so it also keeps large negative counts. With `sides` = 1, the
    filter keeps v if v >= θ.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. The whole budget pays for the
               noise on the counts. The filter uses only noisy counts, so the filter costs no budget. With a
               `transform`, the mechanism adds noise to nodes instead of cells. A node is a sum of cells, or a
               difference of two such sums. The budget is divided among the nodes that one record changes. For m
               cells, one record changes ⌈log₂m⌉ + 1 nodes. With `Dyadic(2)`, nodes are boxes over two
               attributes, and one record changes more nodes.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose θ, or
               the `size` from which the mechanism computes θ, without looking at the data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.2, Theorem 1, and appendix C.1.
               Section 3 (Theorem 4) is about transforms, and section 4.3 is about the option `consistent`.
    Differs    Our formulas hold for every real number θ. The formulas of the paper hold only for integers. The
               threshold that we compute from `size` depends on the number m of all cells. A threshold that
               depends on the number of empty cells would reveal how many cells are not empty. Even if a release
               contains few cells, the mechanism does not draw the noise again, because repeated draws could
               cost 2ε.
    Cost       Time and memory are O(non-empty cells + released cells). Neither time nor memory depends on the
               number m of possible cells. With a transform other than `Dyadic(2)`, n non-empty cells lead to
               O(n·log(m/n)) non-empty nodes.
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
        """Name of the mechanism in the legends of figures, for example "filter"."""
        return summary_name("filter", self.sides)

    def survival(self, alpha: float, theta: float | None = None) -> float:
        """Return the probability p_θ that an empty cell passes the filter because of its noise. `alpha` is the
        parameter α of the geometric noise. `theta` is the threshold θ, by default that of the mechanism.

        For a budget in ε, α = exp(−ε/Δ), where Δ is the largest total change of the counts that one protected
        unit can cause. The noise has the value x with probability (1−α)/(1+α)·α^|x|. The sum of these
        probabilities over all x that pass the filter is sides·α^⌈θ⌉/(1+α). For two sides and θ = 0, every cell
        passes the filter, so the probability is 1.
        """
        theta = self.theta if theta is None else theta
        if theta == 0 and self.sides == 2:
            return 1.0
        return self.sides * alpha ** ceil(theta) / (1 + alpha)

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """Return the threshold θ, as a number of records. If you gave `theta`, the threshold is `theta`. If you
        gave `size`, the threshold is the smallest integer >= 1 with which a release of an empty table contains
        at most `size` cells on average.

        If all m cells get noise of the same scale, the function solves sides·m·α^θ/(1+α) = size for θ, where
        α = exp(−ε/l1). If nodes of a transform get noise of different scales, the function searches for θ by
        bisection. The function does not use the number of non-empty cells, so θ reveals nothing about this
        number. `l1` is the largest total change of the counts that one protected unit can cause. If the
        budget is a ρ, pass the table's `Bound` as `l1` instead.
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
        """Return an example of the mechanism for tests. Its threshold is four times the scale of the noise."""
        return cls(budget, theta=ceil(4 / inverse_scale(budget)))


# Threshold sampling


@value
class ThresholdSampling(SparseSummary):
    """Sample noisy cells in proportion to their counts.

    If the absolute value |v| of a noisy count v is at least a threshold τ, the mechanism always keeps the
    count. If |v| is below τ, the mechanism keeps the count with probability |v|/τ. The threshold τ is the
    parameter `tau`, or the mechanism computes τ from `size`. If you give `theta`, the mechanism first applies a
    high-pass filter with the threshold θ = `theta`.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. The whole budget pays for the
               noise on the counts. The mechanism draws the sample from noisy counts, so the draw costs no
               budget. With a `transform`, the mechanism adds noise to nodes instead of cells. A node is a sum
               of cells, or a difference of two such sums. The budget is divided among the nodes that one record
               changes. For m cells, one record changes ⌈log₂m⌉ + 1 nodes. With `Dyadic(2)`, nodes are boxes
               over two attributes, and one record changes more nodes.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose `theta`,
               `tau` and `size` without looking at the data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 2, and appendix C.2.
               Appendix C.4 is about sampling with a filter, section 3 about transforms, and section 4.3 about
               the option `consistent`. Threshold sampling itself is due to Duffield, Lund & Thorup, SIGCOMM
               2003.
    Differs    Our formulas hold for all real thresholds θ and τ. Let m be the number of cells, and p_τ the
               probability that an empty cell is released. If you give `size`, τ is the solution of m·p_τ =
               size. Cormode et al. compute τ from the sum of all counts, ‖M‖₁, which would reveal this sum. We
               divide each sampled value by the probability with which it is kept. Cormode et al. write only
               "scaled by".
    Cost       Time and memory are O(non-empty cells + released cells). Neither time nor memory depends on the
               number m of possible cells. With a transform other than `Dyadic(2)`, n non-empty cells lead to
               O(n·log(m/n)) non-empty nodes. With `consistent`, every node that passes the filter takes time
               and memory, even if the sample does not contain the node.
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
        """Name of the mechanism in the legends of figures, for example "threshold"."""
        return summary_name("threshold", self.sides, self.theta)

    def survival(self, decay: Law | float, tau: float | None = None) -> float:
        """Return the probability p_θτ that an empty cell is released. Pass the distribution of the noise as
        `decay`. For geometric noise, you can instead pass the number ε/Δ, where Δ is the largest total change
        of the counts that one protected unit can cause.

        Let v be the noisy value of an empty cell, and θ the threshold of the filter. For geometric noise with
        α = exp(−ε/Δ) and `sides` = 2, the probability is a sum over all v with |v| >= θ: Σ
        (1−α)/(1+α)·α^|v|·min(|v|/τ, 1). The formula holds for all real θ and τ (see `noise.empty_cell`).
        """
        tau = self.tau if tau is None else tau
        law = decay if isinstance(decay, Law) else Law(GEOMETRIC, Fraction(decay))
        return noise.empty_cell(law, self.theta, self.sides, tau).chance

    def threshold(self, domain: Domain, l1: Bound | float) -> float:
        """Return the threshold τ, as a number of records. If you gave `tau`, the threshold is `tau`. If you
        gave `size`, the function computes τ so that a release of an empty table contains `size` cells on
        average. If the filter alone keeps at most `size` cells on average, τ is 0.

        `l1` is the largest total change of the counts that one protected unit can cause. If the budget is a
        ρ, pass the table's `Bound` as `l1` instead.
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
        """Return an example of the mechanism for tests. It keeps every value of at least ten times the scale
        of the noise.
        """
        return cls(budget, tau=10 / inverse_scale(budget))


@lru_cache(maxsize=256)  # a sweep asks once a seed, of what depends on no data
def _smallest_tau(mechanism: ThresholdSampling, blocks: tuple[tuple[Law, int], ...]) -> float:
    """Return the τ for which `mechanism.size` empty cells are released on average. Each block is a pair: a
    noise distribution, and the number of cells that get this noise.
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
    """Release `size` cells, mostly with large counts.

    The mechanism draws `size` noisy cells without replacement. Cells with large counts are more likely to be
    drawn. The mechanism weights the released counts so that answers are unbiased. If you give a filter
    threshold `theta`, the mechanism first drops the cells with a smaller noisy count. This filter makes answers
    biased. If fewer than `size` cells remain, the mechanism releases all of them.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. The whole budget pays for the
               noise on the counts. The mechanism draws the sample from noisy counts, so the draw costs no
               budget. With a `transform`, the mechanism adds noise to nodes instead of cells. A node is a sum
               of cells, or a difference of two such sums. The budget is divided among the nodes that one record
               changes. For m cells, one record changes ⌈log₂m⌉ + 1 nodes. With `Dyadic(2)`, nodes are boxes
               over two attributes, and one record changes more nodes.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose `size`
               and `theta` without looking at the data.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, Theorem 3, and appendix C.3. With
               `theta` > 0, their paper calls the mechanism filter-priority sampling (sections 2.4 and C.4).
               Section 3 is about transforms, and section 4.3 is about the option `consistent`. Priority
               sampling itself is due to Duffield, Lund & Thorup, J. ACM 2007.
    Differs    Cormode et al. guess a sampling threshold τ_s, which determines how many cells are sampled. If
               the guess is too high, the sample has too few cells. We then lower τ_s and add cells to the same
               sample. If we instead drew new samples until one is large enough, τ_s would be biased. If at most
               `size` cells pass the filter, we release all of these cells, and τ_s is 0. We round τ_s down to a
               fixed grid of numbers, and compute the weights of cells from the rounded value.
    Cost       Time and memory are O(non-empty cells + size). Neither time nor memory depends on the number m of
               possible cells. With a transform other than `Dyadic(2)`, n non-empty cells lead to O(n·log(m/n))
               non-empty nodes. With `consistent`, every node that passes the filter takes time and memory, even
               if the sample does not contain the node.
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
        """Name of the mechanism in the legends of figures, for example "priority"."""
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
        """Return an example of the mechanism for tests. It samples ten cells, and its filter drops counts
        below twice the scale of the noise.
        """
        return cls(budget, size=10, theta=ceil(2 / inverse_scale(budget)))


# Stability histogram


@value
class StabilityHistogram(Mechanism):
    """Release large noisy counts of non-empty cells.

    Guarantee  The release is (ε, δ)-DP for each unit. With a budget in ρ and δ, the release is ρ-zCDP except
               with probability δ (δ-approximate ρ-zCDP). The ε, or the ρ, pays for the noise on the counts.
               Consider the cells in which only one given unit has records. The probability that the mechanism
               releases any of these cells is at most δ. The mechanism never releases an empty cell.
    Assumes    No protected unit changes the counts by more than the table's bound allows.
    Source     Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009, Algorithm 1. Bun, Nissim & Stemmer, ITCS
               2016, call the mechanism the stability-based histogram.
    Differs    The noise is geometric for a budget in ε, and Gaussian for a budget in ρ. δ limits the
               probability that the release contains a cell in which only one given unit has records. We compute
               this probability exactly. The threshold is the smallest integer for which the probability is at
               most δ, for every unit that the bound allows. The receipt, which records the privacy cost,
               contains this probability instead of δ.
    Cost       Time and memory are O(non-empty cells). Neither time nor memory depends on the number of possible
               cells.
    """

    budget: DP | ZCDP = budget_field(delta="some", zcdp=True)
    cite = "korolova2009"
    title = "stability histogram"
    audited = audited_at(2, 0)
    series = "stability histogram"
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> int:
        """Return the threshold T, as a number of records, for tables with the given bound. The mechanism
        releases a non-empty cell if its noisy count is at least T.

        Suppose that one unit adds records to several empty cells, c_j records to cell j. The probability that
        at least one of these cells is released is 1 − Π (1 − Pr[c_j + X >= T]), where X is the noise. T is the
        smallest integer >= 1 for which this probability is at most δ, for every unit that the bound allows. For
        example, if a unit adds one record to one cell, T is 1 + ln(1/(δ(1+α)))/ε, rounded up, where α =
        exp(−ε).
        """
        theta, _ = noise.stability_threshold(bound, **self.price)
        return theta

    @property
    def price(self) -> dict[str, float]:
        """Dictionary with the two numbers of the budget. The key of the first number is "epsilon" or "rho", and
        this number pays for the noise on the counts. The key of the second number is "delta".
        """
        kind = "rho" if isinstance(self.budget, ZCDP) else "epsilon"
        return {kind: amount(self.budget), "delta": self.budget.delta}

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the non-empty cells whose noisy count reaches the threshold."""
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
