"""The dual problem of maximum entropy, steps towards its optimum, and covariances, both estimated from drawn
tuples.

Dual problem. The primal problem minimises KL(p ‖ p0) + Σ_i β_i |π_i − p[f_i]|. Here p0 is the prior, f_i is
a query, p[f_i] is its mean under the model p, π_i = answer/total, and β_i = α·total/b_i for noise of scale
b_i. A larger α gives more weight to the likelihood, and less to the entropy. To derive the dual, write β|r|
as the maximum of w·r over |w| <= β. For given w, KL(p ‖ p0) − w·p[f] is smallest at p_w ∝ p0 exp(w·f), with
the value −ln p0[exp(w·f)]. The dual therefore maximises w·π − ln p0[exp(w·f)] over |w_i| <= β_i. It is
concave, and its gradient is r = π − p_w[f].

The duality gap is the primal value at p_w minus the dual value at w, which is Σ (β_i |r_i| − w_i r_i). It
bounds the distance from the optimum p*. The primal value at p_w exceeds the optimal value by at least
KL(p_w ‖ p*), because the primal is KL plus a convex function. The dual value at w is below the optimal
value by at least KL(p* ‖ p_w), because Σ β|r*| >= w·r*. By Pinsker's inequality, each is at least ‖p_w −
p*‖₁²/2, so ‖p_w − p*‖₁ <= √gap.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4; Dudík, Phillips & Schapire, JMLR 2007. Equation 39
           of the former omits the sign of the covariance.

Sampled covariance. A matrix-vector product takes time proportional to the number of tuples and to the cells
of the queries' tables.

Sampled step. A step d from weights w raises the dual by r·d − ln p_w[e^x]. Here r is the gradient, and x =
d·(f − p_w[f]), which tuples drawn at w sample. Because ln p_w[e^x] <= p_w[e^x − 1 − x] and, for negative x,
e^x − 1 − x <= x²/2, the step maximises r·d − p_w[e^x − 1 − x or x²/2], which is never too large, but for
the tuples' noise. Unlike a quadratic model, it sees how fast rare cells grow. Because there are too few
tuples for all directions, a damping term λd²/2 times the variances is subtracted. λ is large far from the
optimum and small near it.
Source     Geyer & Thompson, JRSS B 1992; Levenberg, Quarterly of Applied Mathematics 1944; Byrd, Lu, Nocedal
           & Zhu, SIAM J. Scientific Computing 1995 (L-BFGS-B).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any

import numpy as np

from workbench.compiled import njit
from workbench.estimates import NoisyAnswers
from workbench.inference.eigenqueries import prior_vectors
from workbench.inference.marginals import reconciled_shares
from workbench.inference.model import Model, flattened, outer_product
from workbench.inference.query_terms import QueryTerms, Rectangles, rectangular, terms_by_axes
from workbench.spaces import Domain
from workbench.value import Float, Int, sealed

# Dual problem

_WIDEST = 1000.0  # nats: no box is wider, as e^−1000 is no probability that a float holds
_LEAST_VARIANCE = 1e-300
_ROUNDING = 1e-14  # of the largest value, squared: what sums leave of no variance


@dataclass(frozen=True, eq=False)
class DualProblem:
    """Dual problem of maximum entropy. It consists of the noisy shares π, the limits β of the weights, and
    the queries, grouped by the axes of their terms.

    `constants` has the parts of queries that are the same at every tuple, and `peak` the largest absolute
    value of each query. `fixed` has the weights whose best value does not depend on other weights, and NaN
    for the rest.
    """

    domain: Domain
    total: float
    prior: tuple[Float[np.ndarray, " values"], ...]
    sets: tuple[tuple[int, ...], ...]
    terms: tuple[QueryTerms, ...]
    constants: Float[np.ndarray, " queries"]
    pi: Float[np.ndarray, " queries"]
    box: Float[np.ndarray, " queries"]
    peak: Float[np.ndarray, " queries"]
    fixed: Float[np.ndarray, " queries"]

    @classmethod
    def of(
        cls,
        history: NoisyAnswers | Iterable[NoisyAnswers],
        total: float | None,
        alpha: float,
        prior: tuple[Any, ...] | None,
        consistent: bool,
    ) -> DualProblem:
        """Make the problem from noisy answers. If they do not fit the problem, a ValueError explains why."""
        answers = NoisyAnswers.history(history)
        domain = answers.domain
        if total is None:
            raise ValueError(
                "total = None is not allowed: a model of tuples needs their number, public or paid for"
            )
        prior = prior_vectors(prior, domain)
        constants = np.zeros(len(answers))
        terms = tuple(terms_by_axes(answers.workload, domain, constants))
        sets = tuple(sorted({part.axes for part in terms}))
        pi = answers.values / total
        if consistent:
            pi = reconciled_shares(domain, terms, pi, answers.variances / total**2)
        box = np.minimum(alpha * total / answers.scales, _WIDEST)
        peak = np.abs(constants)
        least = constants.copy()
        for part in terms:
            low, high = part.bounds()
            np.add.at(least, part.query, low)
            np.add.at(peak, part.query, np.maximum(np.abs(low), np.abs(high)))
        # where π is below all that f can be, the gradient is never positive
        fixed = np.where(pi <= least, -box, np.nan)
        return cls(domain, float(total), prior, sets, terms, constants, pi, box, peak, fixed)

    @property
    def modelled_axes(self) -> tuple[int, ...]:
        """Axes that at least one query uses."""
        return tuple(sorted({k for axes in self.sets for k in axes}))

    @cached_property
    def shapes(self) -> list[list[int]]:
        """Shapes of the tables of all sets."""
        return [[self.domain.shape[k] for k in axes] for axes in self.sets]

    @cached_property
    def first_cells(self) -> Int[np.ndarray, " ends"]:
        """First cell of the table of each set, in one vector of all tables. The end of the last table
        follows.
        """
        return np.cumsum([0, *map(prod, self.shapes)])

    @cached_property
    def set_of_terms(self) -> list[int]:
        """Number of the set of axes to which each group of terms belongs."""
        return [self.sets.index(part.axes) for part in self.terms]

    @cached_property
    def _parts(self) -> tuple[Rectangles, list[tuple[int, QueryTerms]]]:
        """Terms that are rectangles, and the other terms by set."""
        rectangles: list[tuple[int, QueryTerms]] = []
        others: list[tuple[int, QueryTerms]] = []
        for s, part in zip(self.set_of_terms, self.terms, strict=True):
            kind = rectangles if rectangular(part, self.shapes[s]) else others
            kind.append((s, part))
        return Rectangles.of(rectangles, self.shapes, self.first_cells), others

    @cached_property
    def binary(self) -> bool:
        """Whether each query has a single term with the values 0 and 1. Then p[f²] = p[f]."""
        count = np.zeros(len(self.pi), np.int64)
        for part in self.terms:
            np.add.at(count, part.query, 1)
        binary = all(part.binary for part in self.terms)
        return bool(binary and not self.constants.any() and count.max(initial=0) <= 1)

    def with_fixed(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the weights, in which the fixed ones are set to their best values."""
        return np.where(np.isnan(self.fixed), w, self.fixed)

    def potentials(self, w: Float[np.ndarray, " queries"]) -> list[Float[np.ndarray, "..."]]:
        """Return the weighted sum of queries, Σ w_i f_i, as one table per set of axes."""
        return self.by_set(self.cells_of(w))

    def cells_of(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " cells"]:
        """Return the weighted sum of queries, Σ w_i f_i, for the cells of all tables in one vector."""
        rectangles, others = self._parts
        cells = rectangles.weighted_sum(w)
        for s, part in others:
            own = self._of_set(s, cells)
            own += part.weighted_sum(w[part.query], len(own))
        return cells

    def by_set(self, cells: Float[np.ndarray, " cells"]) -> list[Float[np.ndarray, "..."]]:
        """Split the vector of all cells into one table per set of axes."""
        return [self._of_set(s, cells).reshape(shape) for s, shape in enumerate(self.shapes)]

    def _of_set(self, s: int, cells: Float[np.ndarray, " cells"]) -> Float[np.ndarray, " own"]:
        return cells[self.first_cells[s] : self.first_cells[s + 1]]

    def means(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the mean of each query, p[f_i], from the expected tables."""
        return self.means_of_cells(flattened(margins))

    def means_of_cells(
        self, cells: Float[np.ndarray, " cells"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the mean of each query, p[f_i], from the vector of all cells."""
        means = self.constants.copy()
        rectangles, others = self._parts
        rectangles.add_means(cells, means)
        for s, part in others:
            np.add.at(means, part.query, part.means(self._of_set(s, cells)))
        return means

    def mean_squares(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the mean square p[f²] of each query, summed over its terms."""
        squares = self.constants**2
        for i, part in zip(self.set_of_terms, self.terms, strict=True):
            np.add.at(squares, part.query, part.mean_squares(margins[i]))
        return squares

    def prior_margins(self) -> list[Float[np.ndarray, "..."]]:
        """Expected tables under the prior."""
        return [outer_product([self.prior[k] for k in axes]) for axes in self.sets]

    def variances(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the variances of the queries, from the expected tables."""
        means = self.means(margins)
        squares = means if self.binary else self.mean_squares(margins)
        variances = squares - means**2
        return np.where(variances < _ROUNDING * self.peak**2, 0.0, variances)

    def variances_or_residuals(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the variance of each query, or its residual if that is larger. A variance below the
        residual is not reliable.
        """
        residual = np.abs(self.pi - self.means(margins))
        larger = np.maximum(self.variances(margins), residual * self.peak)
        return np.maximum(larger, _LEAST_VARIANCE)

    def ascend(
        self,
        w: Float[np.ndarray, " queries"],
        margins: Sequence[Float[np.ndarray, "..."]],
        step: Float[np.ndarray, " queries"],
    ) -> Float[np.ndarray, " queries"]:
        """Make a step along the gradient. Weights stay within their limits, and each changes by at most one
        nat.
        """
        change = np.clip(step * (self.pi - self.means(margins)), -1.0, 1.0)
        return self.within(w + change)

    def within(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the nearest weights that are within the limits ±β."""
        return self.with_fixed(np.clip(w, -self.box, self.box))

    def gap(
        self, w: Float[np.ndarray, " queries"], margins: Sequence[Float[np.ndarray, "..."]]
    ) -> float:
        """Return the duality gap, Σ (β_i |r_i| − w_i r_i) with r = π − p[f].

        If tuples are drawn, r is noisy. This makes the estimated gap too large on average.
        """
        residual = self.pi - self.means(margins)
        return float((self.box * np.abs(residual) - w * residual).sum())

    def model(
        self,
        potentials: Sequence[Float[np.ndarray, "..."]],
        margins: Sequence[Float[np.ndarray, "..."]],
        explicit: bool,
        gap: float,
        steps: int,
        lacks: float = np.inf,
    ) -> Model:
        """Return the model with the given potentials and expected tables."""
        return Model(
            self.domain,
            self.total,
            self.prior,
            self.sets,
            tuple(map(sealed, potentials)),
            tuple(map(sealed, margins)),
            explicit,
            gap,
            steps=steps,
            lacks=min(lacks, gap),
        )


# Sampled covariance

_FEW_CELLS = (
    2**16
)  # their numbers fit in two bytes, and pass through the caches in half the time
_POWER_STEPS = 12  # of the power iteration for the steepness


class SampledCovariance:
    """Covariance matrix of the queries, estimated from drawn tuples. Only its products with vectors are
    computed.
    """

    def __init__(self, problem: DualProblem, tuples: Int[np.ndarray, "tuples attributes"]):
        self.problem = problem
        small = problem.first_cells[-1] <= _FEW_CELLS
        kind = np.uint16 if small else np.int32
        self.cells = np.empty((len(tuples), len(problem.sets)), kind)
        for s, axes in enumerate(problem.sets):
            codes = tuples[:, list(axes)].T
            first = problem.first_cells[s]
            self.cells[:, s] = first + np.ravel_multi_index(codes, problem.shapes[s])

    def __matmul__(self, v: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the product of the covariance with a vector."""
        sums = self.sums(v)
        sums -= np.mean(sums)
        return self.means(sums)

    def sums(self, v: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " tuples"]:
        """Return the sum of the queries of each tuple, each times its component of a vector."""
        return _sums_of_cells(self.problem.cells_of(v), self.cells)

    def means(self, weights: Float[np.ndarray, " tuples"]) -> Float[np.ndarray, " queries"]:
        """Return the mean of each query, without its constant, over weighted tuples."""
        return self.problem.means_of_cells(self._mean_cells(weights)) - self.problem.constants

    def steepness(self, rng: np.random.Generator) -> float:
        """Return the largest eigenvalue of the queries' correlation matrix, or 1 if it is smaller. It is
        computed by power iteration.
        """
        margins = self.problem.by_set(self._mean_cells(np.ones(len(self.cells))))
        variance = self.problem.variances(margins)
        deviation = np.sqrt(np.maximum(variance, 0))
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        v = rng.normal(size=len(scale))
        eigenvalue = 1.0
        for _ in range(_POWER_STEPS):
            v /= np.linalg.norm(v) or 1
            v = (self @ (v * scale)) * scale
            eigenvalue = float(np.linalg.norm(v))
        return max(1.0, eigenvalue)

    def _mean_cells(self, weights: Float[np.ndarray, " tuples"]) -> Float[np.ndarray, " cells"]:
        """Return the average weight of tuples in each cell of all tables."""
        sums = _sums_of_tuples(weights, self.cells, self.problem.first_cells[-1])
        return sums / len(self.cells)


@njit(cache=True, nogil=True)
def _sums_of_cells(tables, cells):
    """Return, for each tuple, the sum over its cells."""
    sums = np.empty(len(cells))
    for t in range(len(cells)):
        x = 0.0
        for s in range(cells.shape[1]):
            x += tables[cells[t, s]]
        sums[t] = x
    return sums


@njit(cache=True, nogil=True)
def _sums_of_tuples(weights, cells, size):
    """Return, for each cell, the sum of the weights of its tuples."""
    sums = np.zeros(size)
    for t in range(len(cells)):
        for s in range(cells.shape[1]):
            sums[cells[t, s]] += weights[t]
    return sums


# Sampled step

_OPTIONS = {"maxiter": 100, "maxfun": 150, "maxcor": 10, "ftol": 1e-5, "gtol": 1e-9}
_FARTHEST = 1.0  # nats: few tuples say what happens farther away
_LEAST_STEP_VARIANCE = 1e-9
_LARGEST_POWER = 300.0  # nats


def sampled_step(
    problem: DualProblem,
    w: Float[np.ndarray, " queries"],
    margins: Sequence[Float[np.ndarray, "..."]],
    covariance: SampledCovariance,
    damping: float,
) -> tuple[Float[np.ndarray, " queries"], float]:
    """Return weights within their bounds that maximise the estimated dual minus the damping, and the rise
    of this maximum in nats. If the estimate is not accurate that far, return weights on the way there.
    """
    from scipy.optimize import minimize

    gradient = problem.pi - problem.means(margins)
    spread = np.maximum(problem.variances_or_residuals(margins), _LEAST_STEP_VARIANCE)
    unit = 1 / np.sqrt(spread)

    def negative_rise(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = unit * x
        sums = covariance.sums(d)
        sums -= sums.mean()
        down = np.minimum(sums, 0)
        up = np.clip(sums, 0, _LARGEST_POWER)
        growth = np.expm1(up)
        fall = float(np.mean(growth - up + down**2 / 2))
        slope = growth + down
        slope -= slope.mean()
        value = fall - d @ gradient + damping / 2 * (x @ x)
        return value, unit * (covariance.means(slope) - gradient) + damping * x

    bounds = np.stack([-problem.box - w, problem.box - w], axis=1) / unit[:, None]
    found = minimize(
        negative_rise,
        np.zeros(len(w)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=_OPTIONS,
    )
    move = unit * found.x
    far = float(move @ (covariance @ move)) / 2
    move *= min(1.0, sqrt(_FARTHEST / far)) if far > 0 else 1.0
    return problem.with_fixed(np.clip(w + move, -problem.box, problem.box)), -float(found.fun)
