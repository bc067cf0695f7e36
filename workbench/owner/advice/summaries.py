"""Expected errors of sparse summaries in closed form, and the options that have them.

A query is a range of r consecutive cells at a random place: a sum of nodes, its cells or those of a
transform. A node that holds c, with noise v = c + X, X geometric, is released with the weight

    v where |v| >= max(θ, τ),   ±τ with probability |v|/τ where θ <= |v| < τ,   0 elsewhere.

Given c, the weight's error has the bias E[v; passes] − c, the noise variance Var[v; passes], and the
sampling variance E[|v|·(τ − |v|)⁺; passes]. These and its characteristic function are geometric series.
Counts are averaged over the declared model: cells are non-empty independently, with probability
`density`, and then hold max(1, round(N(mean, spread²))). The error S of a query adds up over nodes,
which are independent, so that its φ is a product and its variance a sum, and

    E|S| = 2/π ∫ (1 − Re φ(t))/t² dt over t > 0,   E S² = Σ (noise + sampling) + squared bias.

Nothing is simulated, and nothing taken for normal but the sum of more than 25 non-empty cells; the grid
of t costs up to one percent.

Without a model the error is that of empty cells, and `worst` is the largest root mean square error that
any table can give: Σ V(c) + (Σ b(c))² is convex in the mix of a range's counts, so that it is largest
where all are the same, which is searched. A filter's bias stays below θ a cell, and the variance of
sampling below τ²/4, since |v|·(τ − |v|) <= τ²/4. No θ can then be chosen for filter-priority sampling.

Differs  a priority sample's τ_s is taken where the expected size is `size`; of a range's places, where
         there are more than 200, a fixed 200 are looked at. Haar is there for the full table alone: of
         nested coefficients what a filter loses is not independent. A sketch's hash functions are
         taken for independent, and its ranges for normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import ceil, inf, log, nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.data import Bound
from workbench.mechanisms import (
    CountSketch,
    GaussianHistogram,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.mechanisms.histograms import BYTES_PER_CELL, FullTable
from workbench.mechanisms.protocol import blocks_within, series_name
from workbench.noise import hashes
from workbench.owner.advice.noise import CountModel, NodeCounts, ReleaseRule
from workbench.privacy import DP, ZCDP
from workbench.queries import Dyadic, Haar, RandomRanges, Ranges, basis_of
from workbench.spaces import Domain
from workbench.value import Float, power_of_ten

# Errors

_PLACES = 200  # of a range, where a domain has more
_STEPS = 6  # of the integral over t, for each factor e
NEGLIGIBLE = 0.01  # errors that differ by less than so many counts are the same


class QueryError(NamedTuple):
    """How far off a query of `query` cells is, in counts; rmse² = noise² + bias² + sampling².

    `error` is the mean absolute one, `worst` the largest rmse that any table can give. NaN is unknown.
    """

    query: int
    error: float
    rmse: float
    noise: float
    bias: float
    sampling: float
    worst: float


class NodeCover(NamedTuple):
    """How many nodes of each level a query needs, and in what share of its places."""

    needs: Float[np.ndarray, "places levels"]
    share: Float[np.ndarray, " places"]


def _placed(domain: Domain, query: int) -> Ranges:
    """All places of a range, or a fixed choice of them."""
    places = domain.size - query + 1
    if places > _PLACES:
        return RandomRanges(query, _PLACES).on(domain)
    return Ranges(np.arange(places), np.arange(places) + query)


def node_cover(tree: Any, query: int) -> NodeCover:
    """Of its minimal cover by the tree's nodes."""
    ranges = _placed(tree.domain, query)
    needs = np.zeros((len(ranges), len(tree.levels)))
    for term in tree.terms(ranges):
        level = np.searchsorted(np.array(tree.starts), term.nodes, side="right") - 1
        np.add.at(needs, (term.pieces, level), 1)
    needs, times = np.unique(needs, axis=0, return_counts=True)
    return NodeCover(needs, times / times.sum())


def query_errors(
    rule: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]
) -> tuple[QueryError, ...]:
    """The errors of queries, by the formulas above."""
    counts = np.unique(np.rint(np.linspace(0, rule.ends[1] + 30 * rule.sums.scale, 999)))
    any_count = rule.moments(counts)
    errors = mean_absolute_errors(rule, nodes, covers)
    squares = _mean_squares(rule, nodes, covers)
    result = []
    for (query, cover), error, parts in zip(covers.items(), errors, squares, strict=True):
        k = cover.needs.sum(axis=1)
        worst = cover.share @ k * (any_count.noise + any_count.sampling)
        worst = (worst + cover.share @ k**2 * any_count.bias**2).max()
        noise, bias, sampling = parts
        result.append(
            QueryError(
                query,
                error,
                sqrt(sum(parts)),
                sqrt(noise),
                sqrt(bias),
                sqrt(sampling),
                sqrt(worst),
            )
        )
    return tuple(result)


def _mean_squares(
    rule: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]
) -> list[list[float]]:
    """The noise, bias and sampling parts of each query's mean square error."""
    moments = rule.moments(nodes.counts)
    bias = nodes.mean(moments.bias)
    noise = nodes.mean(moments.noise)
    sampling = nodes.mean(moments.sampling)
    uneven = np.maximum(nodes.mean(moments.bias**2) - bias**2, 0)
    result = []
    for needs, share in covers.values():
        parts = (needs @ noise, needs @ uneven + (needs @ bias) ** 2, needs @ sampling)
        result.append([float(share @ part) for part in parts])
    return result


def mean_absolute_errors(
    rule: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]
) -> list[float]:
    """The mean absolute error of each query."""
    largest_step = rule.ends[1] + nodes.counts.max() + rule.sums.scale
    squares = _mean_squares(rule, nodes, covers)
    result = []
    for (needs, share), parts in zip(covers.values(), squares, strict=True):
        used = np.flatnonzero(needs.any(axis=0))
        t = integration_points(sqrt(sum(parts)), largest_step)
        log_phi = rule.log_characteristic(t, nodes.only(used))
        needs = needs[:, used]
        result.append(mean_absolute(t, needs @ log_phi.real, needs @ log_phi.imag, share))
    return result


def integration_points(rmse: float, largest_step: float) -> Float[np.ndarray, " t"]:
    """The t at which φ is taken: single errors are 0 or at least 1, and few exceed `largest_step`."""
    wide = max(rmse, largest_step)
    low = log(3e-3 / wide)
    high = log(min(100, 50 * wide / max(rmse, 1e-9) ** 2))
    return np.exp(np.linspace(low, high, ceil(_STEPS * (high - low)) + 1))


def mean_absolute(
    t: Float[np.ndarray, "..."],
    log_size: Float[np.ndarray, "..."],
    angle: Float[np.ndarray, "..."],
    share: Float[np.ndarray, "..."],
) -> float:
    """E|S| where φ = exp(log_size + i·angle) in a `share` of places; t is spaced by equal factors."""
    part = share @ (2 * np.sin(angle / 2) ** 2 - np.expm1(log_size) * np.cos(angle))
    beyond = part[-_STEPS:].mean() / t[-1]  # there its mean no longer changes
    return 2 / pi * float(np.trapezoid(part / t, np.log(t)) + beyond)


def haar_query_error(rule: ReleaseRule, domain: Domain, query: int) -> QueryError:
    """Of the full table of Haar coefficients: noise, times the factors that a range needs."""
    ranges = _placed(domain, query)
    terms = list(Haar().on(domain).terms(ranges))
    factors = np.zeros((len(terms), len(ranges), 1))
    for factor, term in zip(factors, terms, strict=True):
        factor[term.pieces, 0] = term.factor
    rmse = sqrt(rule.variance * float(np.square(factors).sum(axis=0).mean()))
    t = integration_points(rmse, rule.sums.scale)
    log_size = np.zeros((len(ranges), len(t)))
    for x in factors:
        log_size += rule.sums.log_wave(x * t)
    share = np.full(len(ranges), 1 / len(ranges))
    error = mean_absolute(t, log_size, 0 * log_size, share)
    return QueryError(query, error, rmse, rmse, 0.0, 0.0, rmse)


def sketch_query_error(
    query: int, rule: ReleaseRule, width: int, cells: int, model: CountModel | None
) -> QueryError:
    """Of a sketch: each other cell shares a cell's bucket with probability 1/width.

    Of r cells the variance is (r·Σ c² over the other cells + Σ (c + c')² over pairs of their own) /
    width. Noise and strangers come r times as one cell has them; pairs, which are many or rare, are
    taken for normal.
    """
    counts, weights = model.counts() if model else np.ones((2, 1))
    density = model.density if model else 0
    hits = (cells - 1) / width * density
    square = float(weights @ counts**2)
    pairs = query * (query - 1) / width * (density * float(weights @ counts)) ** 2
    noise = query * rule.variance
    sampling = query * hits * square + pairs
    rmse = sqrt(noise + 0.0 + sampling)
    t = integration_points(rmse, counts.max() + rule.sums.scale)
    log_size = rule.sums.log_wave(t)
    strangers = weights @ np.sin(np.outer(counts, t) / 2) ** 2
    log_size = query * (log_size - 2 * hits * strangers)
    log_size = (log_size - pairs * t**2 / 2)[None]
    error = mean_absolute(t, log_size, 0 * log_size, np.ones(1))
    return QueryError(query, error, rmse, sqrt(noise), 0.0, sqrt(sampling), inf)


def mean_log_error(errors: Sequence[float]) -> float:
    """How bad errors are at different queries: the logarithm of their geometric mean."""
    return float(np.log(np.add(errors, NEGLIGIBLE)).mean())


# Thresholds


def expected_released(rule: ReleaseRule, nodes: NodeCounts) -> float:
    """How many nodes are expected in the summary."""
    return float(nodes.sizes @ nodes.mean(rule.moments(nodes.counts).chance))


def with_priority_threshold(rule: ReleaseRule, nodes: NodeCounts, size: int) -> ReleaseRule:
    """With the τ at which `size` nodes are expected; with none where no more pass θ."""

    def too_many(tau: float) -> bool:
        return expected_released(replace(rule, tau=tau), nodes) > size

    if expected_released(rule, nodes) <= size:
        return rule
    low = max(rule.theta, 1.0)
    high = 2 * low
    while too_many(high):
        low = high
        high = 2 * high
    while high > low * (1 + 1e-4):
        tau = sqrt(low * high)
        if too_many(tau):
            low = tau
        else:
            high = tau
    return replace(rule, tau=high)


def best_theta(
    rule: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover], size: int, most: int
) -> int:
    """The whole θ up to `most` whose filter-priority sample is least off, searched ever closer."""
    mean_covers = {
        query: NodeCover(share[None] @ needs, np.ones(1))
        for query, (needs, share) in covers.items()
    }

    @cache
    def error(theta: float) -> float:
        sampled = with_priority_threshold(replace(rule, theta=theta), nodes, size)
        return mean_log_error(mean_absolute_errors(sampled, nodes, mean_covers))

    thetas = np.unique(np.rint(np.linspace(1, most, 8))).tolist()
    while True:
        errors = [error(theta) for theta in thetas]
        best = errors.index(min(errors))
        low = thetas[max(best - 1, 0)]
        high = thetas[min(best + 1, len(thetas) - 1)]
        if high - low <= max(2, thetas[best] / 10):
            return int(thetas[best])
        thetas = np.unique(np.rint(np.linspace(low, high, 5))).tolist()


# Options

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
