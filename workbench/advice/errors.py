"""Errors of a range query in closed form, for each kind of summary.

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
from math import ceil, inf, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.advice.model import CountModel, NodeCounts
from workbench.advice.rule import ReleaseRule
from workbench.arrays import Float
from workbench.domain import Domain
from workbench.transform import Haar
from workbench.workload import RandomRanges, Ranges

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
