"""The summaries that there is advice about, each with the errors to expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Any

import numpy as np

from workbench import noise
from workbench.advice.errors import (
    NodeCover,
    QueryError,
    haar_query_error,
    mean_log_error,
    node_cover,
    query_errors,
    sketch_query_error,
)
from workbench.advice.model import CountModel, NodeCounts
from workbench.advice.rule import ReleaseRule
from workbench.advice.thresholds import best_theta, expected_released, with_priority_threshold
from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.mechanism import blocks_within, series_name
from workbench.mechanisms import (
    CountSketch,
    GaussianHistogram,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.mechanisms._full_table import BYTES_PER_CELL, FullTable
from workbench.privacy import DP, ZCDP
from workbench.table import Bound
from workbench.transform import Dyadic, Haar, basis_of
from workbench.wording import power_of_ten

_SPARE = 2  # a summary does not fit if it releases more than so many times `size`


@dataclass(frozen=True)
class Option:
    """One summary: its thresholds, what it is expected to release, and how far off queries are.

    `kept` is the fraction of non-empty cells in it (NaN of nodes, and without a model). One that does
    not fit is not recommended.
    """

    summary: str
    mechanism: Any
    theta: float
    tau: float
    cells: float
    kept: float
    query_errors: tuple[QueryError, ...]
    fits: bool

    @property
    def transform(self) -> str:
        """The name of its transform; nothing where there is none."""
        transform = getattr(self.mechanism, "transform", None)
        return type(transform).__name__ if transform else ""

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian, and its budget a ρ."""
        return isinstance(self.mechanism.budget, ZCDP)

    def deciding_errors(self, model: CountModel | None) -> list[float]:
        """By which it is ranked: what is expected, or without a model the worst that there can be."""
        return [error.error if model else error.worst for error in self.query_errors]

    def __str__(self) -> str:
        name = self.summary.replace("filter-priority", "filter-priority sampling")
        if "sampling" not in name:
            name = f"a {name}"
        if self.transform:
            name += f" of {self.transform} nodes"
        if self.is_gaussian:
            name += " with Gaussian noise"
        thresholds = {"θ": self.theta, "τ": self.tau}
        at = ", ".join(f"{k} = {three_digits(x)}" for k, x in thresholds.items() if x)
        return f"{name} at {at}" if at else name


@dataclass(frozen=True)
class _Nodes:
    """The nodes of a transform, or the cells, of a domain, under a model; and what queries need."""

    domain: Domain
    bound: Bound
    model: CountModel | None
    queries: tuple[int, ...]
    transform: Any

    @cached_property
    def _basis(self) -> Any:
        return self.transform.on(self.domain)

    @cached_property
    def counts(self) -> NodeCounts:
        """What the nodes hold."""
        size = self.domain.size
        if self.transform is None:
            return NodeCounts.of(self.model, [(size, 1)])
        (axis,) = self._basis.axes
        levels = [(n, min(1 << axis.height - d, size)) for d, n in enumerate(axis.sizes)]
        return NodeCounts.of(self.model, levels)

    @cached_property
    def covers(self) -> dict[int, NodeCover]:
        """The nodes that each size of query needs."""
        if self.transform is None:
            return {q: NodeCover(np.full((1, 1), float(q)), np.ones(1)) for q in self.queries}
        return {q: node_cover(self._basis, q) for q in self.queries}

    def block(self, mechanism: Any) -> noise.Block | noise.GaussianBlock:
        """What the mechanism puts noise on."""
        basis = basis_of(self.transform, self.domain)
        (block,) = blocks_within(basis, self.bound, mechanism.budget)
        return block

    def noise_alone(self, mechanism: Any) -> ReleaseRule:
        """The mechanism's noise, and no thresholds."""
        return ReleaseRule(self.block(mechanism).law)

    def rule(self, mechanism: Any) -> ReleaseRule:
        """The mechanism's noise and thresholds, by its own formulas."""
        given = mechanism.release_rule(self.domain, self.bound)
        size = given.pop("size", None)
        rule = replace(self.noise_alone(mechanism), **given)
        return rule if size is None else with_priority_threshold(rule, self.counts, size)

    def option(self, mechanism: Any, summary: str = "") -> Option:
        """What to expect of the mechanism."""
        rule = self.rule(mechanism)
        if isinstance(mechanism, CountSketch):
            cells = mechanism.width
            size = self.domain.size
            errors = tuple(
                sketch_query_error(q, rule, cells, size, self.model) for q in self.queries
            )
        else:
            cells = expected_released(rule, self.counts)
            errors = query_errors(rule, self.counts, self.covers)
        if isinstance(mechanism, FullTable):
            cells = self.block(mechanism).size
        kept = self._kept(rule)
        return Option(summary, mechanism, rule.theta, rule.tau, cells, kept, errors, True)

    def haar_option(self, mechanism: Any) -> Option:
        """The full table of Haar coefficients."""
        basis = mechanism.transform.on(self.domain)
        (block,) = blocks_within(basis, self.bound, mechanism.budget)
        rule = ReleaseRule(block.law)
        errors = tuple(haar_query_error(rule, self.domain, q) for q in self.queries)
        cells = self.domain.size
        return Option("full table", mechanism, 0.0, 0.0, cells, nan, errors, True)

    def _kept(self, rule: ReleaseRule) -> float:
        """The fraction of non-empty cells that are released; NaN of nodes, and without a model."""
        if self.transform is not None or not self.model or not self.model.density:
            return nan
        counts, weights = self.model.counts()
        return float(weights @ rule.moments(counts).chance)


def all_options(
    domain: Domain,
    budget: DP,
    size: int,
    bound: Bound,
    model: CountModel | None,
    queries: tuple[int, ...],
    quick: bool,
    others: Sequence[Any] = (),
) -> tuple[tuple[Option, ...], tuple[str, ...]]:
    """Every summary that there is advice about; and what is to be said of those left out."""
    budgets: list[DP | ZCDP] = [DP(budget.epsilon)]
    if budget.delta:
        budgets.append(ZCDP.within(budget))
    options: list[Option] = []
    notes = []
    for transform in (None,) if quick else (None, Dyadic()):
        nodes = _Nodes(domain, bound, model, queries, transform)
        try:
            kinds = [_summaries(nodes, payment, size, quick) for payment in budgets]
        except ValueError as e:
            notes.append(f"Nothing is said of dyadic sums: {e}.")
            continue
        options += [_less_off(alike, model) for alike in zip(*kinds, strict=True)]
        if not transform:
            options.append(nodes.option(CountSketch(budgets[0], width=size), "count sketch"))
            if budget.delta:
                options.append(nodes.option(StabilityHistogram(budget), "stability histogram"))
    for mechanism in others:
        option = predict_errors(mechanism, domain, bound, model, queries)
        options.append(replace(option, summary=series_name(mechanism)))
    options = [_judged(option, size, max(queries)) for option in options]
    if not all(option.fits for option in options):
        notes.append(
            f"* not recommended: more than {_SPARE} times the size asked for, or than fits in memory, "
            "or than answers can visit."
        )
    return tuple(options), tuple(notes)


def _summaries(nodes: _Nodes, budget: DP | ZCDP, size: int, quick: bool) -> list[Option]:
    """What a budget pays for, with the noise that it pays for."""
    transform = nodes.transform
    full = GaussianHistogram if isinstance(budget, ZCDP) else GeometricHistogram
    options = [nodes.option(full(budget, transform=transform), "full table")]
    if transform:
        options.append(nodes.haar_option(full(budget, transform=Haar())))
    filter_ = HighPassFilter(budget, size=size, transform=transform)
    options.append(nodes.option(filter_, "filter"))
    threshold = ThresholdSampling(budget, size=size, transform=transform)
    options.append(nodes.option(threshold, "threshold sampling"))
    priority = PrioritySampling(budget, size=size, transform=transform)
    options.append(nodes.option(priority, "priority sampling"))
    if nodes.model and not quick:
        smallest = HighPassFilter(budget, size=1, transform=transform)
        most = smallest.threshold(nodes.domain, nodes.bound)
        rule = nodes.noise_alone(smallest)
        theta = best_theta(rule, nodes.counts, nodes.covers, size, most)
        options.append(nodes.option(replace(priority, theta=theta), "filter-priority"))
    return options


def _less_off(alike: Sequence[Option], model: CountModel | None) -> Option:
    """Of one summary with each kind of noise the one that is less off; pure where it is as good."""
    errors = [mean_log_error(option.deciding_errors(model)) for option in alike]
    return alike[int(np.argmin(np.round(errors, 3)))]


def _judged(option: Option, size: int, largest_query: int) -> Option:
    """Whether a summary can be recommended where about `size` cells are asked for."""
    mechanism = option.mechanism
    fits = option.cells <= min(_SPARE * size, noise.MAX_RELEASED_CELLS)
    if isinstance(mechanism, CountSketch):  # an answer visits each cell
        fits &= largest_query <= hashes.MAX_LOOKUPS // 16
    elif isinstance(mechanism, FullTable):
        fits &= option.cells * BYTES_PER_CELL <= mechanism.memory
    elif isinstance(mechanism, PrioritySampling):  # τ_s grows with the table
        errors = tuple(error._replace(worst=inf) for error in option.query_errors)
        option = replace(option, query_errors=errors)
    return replace(option, fits=fits)


def predict_errors(
    mechanism: Any,
    domain: Domain,
    bound: Bound,
    model: CountModel | None,
    queries: Sequence[int],
) -> Option:
    """What to expect of one mechanism at its own parameters, on a table that `model` describes.

    A mechanism has a formula if its class has a method `release_rule(domain, bound)`: it returns θ and τ
    as arguments of `ReleaseRule`, or in place of τ the `size` that decides it. A ValueError for those
    without, for transforms of which no formula is known here, and under a ρ for sketches and what
    spends a δ.
    """
    transform = getattr(mechanism, "transform", None)
    several = getattr(mechanism, "consistent", False) or getattr(mechanism, "depth", 1) > 1
    unknown = not hasattr(mechanism, "release_rule")
    if isinstance(mechanism.budget, ZCDP):
        unknown |= isinstance(mechanism, CountSketch | StabilityHistogram)
    if unknown or transform not in (None, Dyadic()) or several:
        raise ValueError(f"nothing is known beforehand of {mechanism!r}")
    return _Nodes(domain, bound, model, tuple(queries), transform).option(mechanism)


def three_digits(x: float) -> str:
    """Three digits at most, read at a glance.

    >>> three_digits(0.123), three_digits(12.34), three_digits(123_456), three_digits(1.5e12)
    ('0.12', '12', '123,000', '1.5·10¹²')
    """
    if x != x:
        return "?"
    if x == inf:
        return "∞"
    if x >= 1e6 or 0 < x < 1e-4:
        return power_of_ten(x, 2)
    if x < 10:
        return f"{x:.2g}"
    return f"{float(f'{x:.3g}'):,.0f}"
