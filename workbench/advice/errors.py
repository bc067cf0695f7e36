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
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, expm1, inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int, Num
from scipy.special import ndtr, xlog1py, xlogy

from workbench.domain import Domain
from workbench.estimates.summary import geometric_variance
from workbench.transform import Haar
from workbench.value import parameter, value
from workbench.workload import RandomRanges, Ranges

if TYPE_CHECKING:
    pass

_PLACES = 200  # of a range, where a domain has more
_STEPS = 6  # of the integral over t, for each factor e
NEGLIGIBLE = 0.01  # errors that differ by less than so many counts are the same


@value
class CountModel:
    """A model: cells are non-empty at random places, and hold normal counts."""

    density: float = parameter(low=0, high=1, doc="fraction of cells that are not empty")
    mean: float = parameter(low=0, high=2**40, unit="counts", doc="of non-empty cells")
    spread: float = parameter(low=0, high=2**40, unit="counts", doc="their standard deviation")

    def counts(self) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """What a non-empty cell holds, and how likely: whole numbers, some eighty at most."""
        low, high = (max(1, round(self.mean + 5 * s * self.spread)) for s in (-1, 1))
        step = -(-(high - low) // 80) or 1
        counts = np.arange(low, high + step, step, dtype=float)
        edges = (counts[1:] - step / 2 - self.mean) / max(self.spread, 1e-9)
        return counts, np.diff(ndtr(edges), prepend=0, append=1)

    def sums(self, cells: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """The same of `cells` cells together, 0 too: of j counts, j binomial; normal beyond 25."""
        (counts, weights), density = self.counts(), self.density
        mean, expected = counts @ weights, cells * density
        variance = (counts - mean) ** 2 @ weights
        if expected > 25:
            at = np.linspace(-4.5, 4.5, 25)
            spread = sqrt(expected * (variance + mean**2 * (1 - density)))
            normal = np.exp(-(at**2) / 2)
            found = np.maximum(np.rint(expected * mean + spread * at), 0)
            return found, normal / normal.sum()
        j = np.arange(1.0 + min(cells, int(expected + 6 * sqrt(expected) + 8)))
        ways = np.cumsum(np.log([1, *((cells - j[:-1]) / j[1:])]))
        chance = np.exp(ways + xlogy(j, density) + xlog1py(cells - j, -density))
        at, normal = np.polynomial.hermite_e.hermegauss(5)
        many = np.rint(np.maximum(j * mean + np.sqrt(j * variance) * at[:, None], j))[:, 2:]
        likely = (normal / normal.sum())[:, None] * chance[2:]
        counts = np.concatenate([counts, many.ravel()])
        weights = np.concatenate([chance[1] * weights, likely.ravel()])
        few = _fewer(counts, weights) if cells > 1 else (counts, weights)
        return np.append(few[0], 0), np.append(few[1], chance[0])


def _fewer(counts, weights):
    """Some twenty-five counts of about the same law."""
    order = np.argsort(counts)
    counts, weights = counts[order], weights[order]
    group = (24 * np.cumsum(weights) / (weights.sum() or 1)).astype(int)
    total, sums = (np.bincount(group, x) for x in (weights, weights * counts))
    some = total > 1e-9 * weights.sum()
    return np.rint(sums[some] / total[some]), total[some]


class NodeCounts(NamedTuple):
    """Levels of nodes: their sizes, and what the nodes of each `level` hold with which probability."""

    sizes: Float[np.ndarray, " levels"]
    level: Int[np.ndarray, " k"]
    counts: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]

    @classmethod
    def of(cls, model: CountModel | None, levels: Sequence[tuple[int, int]]) -> NodeCounts:
        """Of each level: how many nodes, and how many cells each sums."""
        sizes, cells = zip(*levels, strict=True)
        found = [(np.zeros(1), np.ones(1)) if model is None else model.sums(n) for n in cells]
        level = np.repeat(np.arange(len(levels)), [len(counts) for counts, _ in found])
        joined = map(np.concatenate, zip(*found, strict=True))
        return cls(np.array(sizes, float), level, *joined)

    def only(self, levels: Int[np.ndarray, " some"]) -> NodeCounts:
        """Those of some levels."""
        some = np.isin(self.level, levels)
        return NodeCounts(self.sizes[levels], *(x[some] for x in self[1:]))

    def mean(self, of: Num[np.ndarray, "k ..."]) -> Num[np.ndarray, "levels ..."]:
        """The mean over each level's nodes."""
        weights = self.weights.reshape(-1, *[1] * (of.ndim - 1))
        starts = np.flatnonzero(np.diff(self.level, prepend=-1))
        return np.add.reduceat(weights * of, starts, axis=0)


class Moments(NamedTuple):
    """Of nodes' errors: the chance of being released, bias, variance of noise and of sampling."""

    chance: Float[np.ndarray, " k"]
    bias: Float[np.ndarray, " k"]
    noise: Float[np.ndarray, " k"]
    sampling: Float[np.ndarray, " k"]


@dataclass(frozen=True)
class ReleaseRule:
    """What becomes of a node: noise ∝ exp(−decay·|x|), the cut θ, the threshold τ.

    Where `silent`, as in a stability histogram, empty nodes get no noise and are never released. What
    is large is never subtracted: sums over what lies below a count are series of their own.
    """

    decay: float
    theta: float = 0.0
    tau: float = 0.0
    sides: int = 2
    silent: bool = False

    @property
    def variance(self) -> float:
        """Of the noise, 2α/(1−α)²."""
        return geometric_variance(self.decay)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest whole |v| that can be released, and the smallest that always is."""
        low = max(ceil(self.theta), 1)
        return float(low), float(max(low, ceil(self.tau)))

    def _tail(self, x: float, c) -> Float[np.ndarray, "3 ..."]:
        """Σ k^j·Pr[X = k], j = 0, 1, 2, over c + k >= x; minus that over c + k < x where x <= c.

        A series that starts at k = y and goes outwards, Pr[X = y ± i] = Pr[X = y]·α^i.
        """
        a, b, s = exp(-self.decay), -expm1(-self.decay), np.where(x > c, 1.0, -1.0)
        y = x - c - (s < 0)
        p = s * np.exp(-self.decay * np.abs(y)) / (1 + a)
        square = y**2 + 2 * s * y * a / b + a * (1 + a) / b**2
        return np.stack([p, p * (y + s * a / b), p * square])

    def _side(self, c):
        """With v = c + k: Σ 1, k, k² over v >= low; Σ 1, v, v² over low <= v < top; Pr[v < low]."""
        low, top = self.ends
        whole = np.stack([np.ones_like(c), np.zeros_like(c), np.full_like(c, self.variance)])
        tail = self._tail(low, c)
        zero, one, two = tail - self._tail(top, c) + whole * ((low <= c) & (c < top))
        between = zero, one + c * zero, two + 2 * c * one + c**2 * zero
        return tail + whole * (low <= c), between, (c < low) - tail[0]

    def moments(self, c: Float[np.ndarray, " k"]) -> Moments:
        """Of nodes that hold c >= 0."""
        sides = [(s, *self._side(s * c)) for s in (1, -1)[: self.sides]]
        lost = sides[0][3] - sum(passing[0] for _, passing, _, _ in sides[1:])
        bias = sum(s * passing[1] for s, passing, _, _ in sides) - c * lost
        square = sum(passing[2] for _, passing, _, _ in sides) + c**2 * lost
        kept = sum(p[0] - b[0] + b[1] / max(self.tau, 1) for _, p, b, _ in sides)
        sampling = sum(self.tau * b[1] - b[2] for _, _, b, _ in sides)
        heard = ~(self.silent & (c == 0))
        told = kept, bias, np.maximum(square - bias**2, 0), np.maximum(sampling, 0)
        return Moments(*(heard * x for x in told))

    def turn(
        self, t: Float[np.ndarray, " t"], nodes: NodeCounts
    ) -> Complex[np.ndarray, "levels t"]:
        """log φ(t) of the error of a node of each level.

        With e(x) = exp(ix) − 1: Σ_{i>=0} α^i·e(t·(y+i)) = ((1−α)·e(ty) + α·e(t)) / ((1−α)(1−α−α·e(t))).
        What passes below −θ is what passes above θ, mirrored.
        """
        c, (_, top), stays = nodes.counts[:, None], self.ends, 0
        a, b, step, total = exp(-self.decay), -expm1(-self.decay), _e(t), 0
        noise_ = -4 * a * np.sin(t / 2) ** 2 / np.abs(b - a * step) ** 2  # all of it
        for sign in (1, -1)[: self.sides]:
            above = top > sign * c
            to = _e(t * (np.where(above, top, top - 1) - sign * c))
            way = np.where(above, step, step.conj())
            tail = self._tail(top, sign * c)[0] * (b * to + a * way) / (b - a * way)
            passing, between, lost = self._side(sign * c)
            chance = between[1] / max(self.tau, 1)
            turned = tail + noise_ * ~above + chance * _e(t * (self.tau - sign * c))
            total = total + (turned if sign == 1 else turned.conj())
            stays = stays + between[0] - chance + (lost if sign == 1 else -passing[0])
        z = nodes.mean((total + stays * _e(-t * c)) * ~(self.silent & (c == 0)))
        size = np.log1p(np.maximum(2 * z.real + np.abs(z) ** 2, 1e-15 - 1)) / 2
        return size + 1j * np.arctan2(z.imag, 1 + z.real)


def _e(x):
    """exp(ix) − 1, exact for small x."""
    return -2 * np.sin(x / 2) ** 2 + 1j * np.sin(x)


def _times(rmse: float, jump: float) -> Float[np.ndarray, " t"]:
    """Where φ is looked at: single errors are 0 or at least 1, and few exceed `jump`."""
    wide = max(rmse, jump)
    low, high = log(3e-3 / wide), log(min(100, 50 * wide / max(rmse, 1e-9) ** 2))
    return np.exp(np.linspace(low, high, ceil(_STEPS * (high - low)) + 1))


def _absolute(t, size, angle, share) -> float:
    """E|S| where φ = exp(size + i·angle) in a `share` of places; t is spaced by equal factors."""
    part = share @ (2 * np.sin(angle / 2) ** 2 - np.expm1(size) * np.cos(angle))
    beyond = part[-_STEPS:].mean() / t[-1]  # there its mean no longer changes
    return 2 / pi * float(np.trapezoid(part / t, np.log(t)) + beyond)


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
    if (places := domain.size - query + 1) > _PLACES:
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


def _squares(
    law: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]
) -> list[list[float]]:
    """The noise, bias and sampling parts of each query's mean square error."""
    of = law.moments(nodes.counts)
    bias, noisy, sampling = (nodes.mean(x) for x in of[1:])
    uneven, told = np.maximum(nodes.mean(of.bias**2) - bias**2, 0), []
    for needs, share in covers.values():
        parts = needs @ noisy, needs @ uneven + (needs @ bias) ** 2, needs @ sampling
        told.append([float(share @ x) for x in parts])
    return told


def _errors(law: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]) -> list[float]:
    """The mean absolute error of each query."""
    found, jump = [], law.ends[1] + nodes.counts.max() + 1 / law.decay
    squares = _squares(law, nodes, covers)
    for (needs, share), parts in zip(covers.values(), squares, strict=True):
        used = np.flatnonzero(needs.any(axis=0))
        t, needs = _times(sqrt(sum(parts)), jump), needs[:, used]
        turned = law.turn(t, nodes.only(used))
        found.append(_absolute(t, needs @ turned.real, needs @ turned.imag, share))
    return found


def query_errors(
    law: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover]
) -> tuple[QueryError, ...]:
    """How far off queries are, by the formulas above."""
    any_ = law.moments(np.unique(np.rint(np.linspace(0, law.ends[1] + 30 / law.decay, 999))))
    errors, squares, found = _errors(law, nodes, covers), _squares(law, nodes, covers), []
    for (query, cover), error, parts in zip(covers.items(), errors, squares, strict=True):
        k = cover.needs.sum(axis=1)
        worst = cover.share @ k * (any_.noise + any_.sampling)
        worst = (worst + cover.share @ k**2 * any_.bias**2).max()
        found.append(QueryError(query, error, *(sqrt(x) for x in (sum(parts), *parts, worst))))
    return tuple(found)


def haar_query_error(law: ReleaseRule, domain: Domain, query: int) -> QueryError:
    """Of the full table of Haar coefficients: noise, times the factors that a range needs."""
    ranges = _placed(domain, query)
    terms = list(Haar().on(domain).terms(ranges))
    factors = np.zeros((len(terms), len(ranges), 1))
    for factor, term in zip(factors, terms, strict=True):
        factor[term.pieces, 0] = term.factor
    rmse = sqrt(law.variance * float(np.square(factors).sum(axis=0).mean()))
    t = _times(rmse, 1 / law.decay)
    size = -sum(np.log1p(2 * np.sin(x * t / 2) ** 2 * law.variance) for x in factors)
    error = _absolute(t, size, 0 * size, np.full(len(ranges), 1 / len(ranges)))
    return QueryError(query, error, rmse, rmse, 0.0, 0.0, rmse)


def sketch_query_error(
    query: int, law: ReleaseRule, width: int, m: int, model: CountModel | None
) -> QueryError:
    """Of a sketch: each other cell shares a cell's bucket with probability 1/width.

    Of r cells the variance is (r·Σ c² over the other cells + Σ (c + c')² over pairs of their own) /
    width. Noise and strangers come r times as one cell has them; pairs, which are many or rare, are
    taken for normal.
    """
    counts, weights = model.counts() if model else np.ones((2, 1))
    density = model.density if model else 0
    hits, square = (m - 1) / width * density, float(weights @ counts**2)
    pairs = query * (query - 1) / width * (density * float(weights @ counts)) ** 2
    parts = query * law.variance, 0.0, query * hits * square + pairs
    rmse = sqrt(sum(parts))
    t = _times(rmse, counts.max() + 1 / law.decay)
    size = -np.log1p(2 * np.sin(t / 2) ** 2 * law.variance)
    size = query * (size - 2 * hits * (weights @ np.sin(np.outer(counts, t) / 2) ** 2))
    error = _absolute(t, (size - pairs * t**2 / 2)[None], 0 * size[None], np.ones(1))
    return QueryError(query, error, rmse, *map(sqrt, parts), inf)


def expected_released(law: ReleaseRule, nodes: NodeCounts) -> float:
    """How many nodes are expected in the summary."""
    return float(nodes.sizes @ nodes.mean(law.moments(nodes.counts).chance))


def with_priority_threshold(law: ReleaseRule, nodes: NodeCounts, size: int) -> ReleaseRule:
    """With the τ at which `size` nodes are expected; with none where no more pass θ."""
    if expected_released(law, nodes) <= size:
        return law
    low, high = max(law.theta, 1.0), 2 * max(law.theta, 1.0)
    while expected_released(replace(law, tau=high), nodes) > size:
        low, high = high, 2 * high
    while high > low * (1 + 1e-4):
        tau = sqrt(low * high)
        over = expected_released(replace(law, tau=tau), nodes) > size
        low, high = (tau, high) if over else (low, tau)
    return replace(law, tau=high)


def best_theta(law: ReleaseRule, nodes: NodeCounts, covers: dict, size: int, most: int) -> int:
    """The whole θ up to `most` whose filter-priority sample is least off, searched ever closer."""
    covers = {
        q: NodeCover(share[None] @ needs, np.ones(1)) for q, (needs, share) in covers.items()
    }

    @cache
    def off(theta: float) -> float:
        return mean_log_error(
            _errors(
                with_priority_threshold(replace(law, theta=theta), nodes, size), nodes, covers
            )
        )

    thetas = np.unique(np.rint(np.linspace(1, most, 8))).tolist()
    while True:
        best = min(range(len(thetas)), key=lambda i: off(thetas[i]))
        low, high = thetas[max(best - 1, 0)], thetas[min(best + 1, len(thetas) - 1)]
        if high - low <= max(2, thetas[best] / 10):
            return int(thetas[best])
        thetas = np.unique(np.rint(np.linspace(low, high, 5))).tolist()


def mean_log_error(errors: Sequence[float]) -> float:
    """How bad errors are at different queries: the logarithm of their geometric mean."""
    return float(np.log(np.add(errors, NEGLIGIBLE)).mean())
