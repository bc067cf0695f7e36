"""The dual problem of maximum entropy, in which each query has a weight. The module also contains steps
towards the best weights, and covariances of queries. Both are estimated from records that were drawn from a
model.

The dual problem: the primal problem minimises KL(p ‖ p0) + Σ_i β_i |π_i − p[f_i]| over all models p. Here p0
is the prior, f_i is a query, p[f_i] is its mean under the model, π_i = answer/total, and β_i = α·total/b_i
for noise of scale b_i. With a larger α, the likelihood has more weight, and the entropy less. To derive the
dual problem, write β|r| as the maximum of w·r over |w| <= β. For given weights w, KL(p ‖ p0) − w·p[f] is
smallest for the model p_w ∝ p0 exp(w·f), and its value is then −ln p0[exp(w·f)]. The dual problem therefore
maximises w·π − ln p0[exp(w·f)] over |w_i| <= β_i. This objective is concave, and its gradient is r = π −
p_w[f].

The duality gap is the primal value at p_w minus the dual value at w, which is Σ (β_i |r_i| − w_i r_i). It
bounds the distance from the best model p*. The primal value at p_w is larger than the optimal value by at
least KL(p_w ‖ p*), because the primal objective is KL plus a convex function. The dual value at w is smaller
than the optimal value by at least KL(p* ‖ p_w), because Σ β|r*| >= w·r*. By Pinsker's inequality, each of
these two divergences is at least ‖p_w − p*‖₁²/2. So ‖p_w − p*‖₁ <= √gap.
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4; Dudík, Phillips & Schapire, JMLR 2007. Equation 39 of
           Chen, Zhou & Bhowmick omits the sign of the covariance.

The covariance matrix from drawn records: its product with a vector takes time proportional to the number of
records and to the number of cells of the queries' tables.

Steps from drawn records: a step d from the weights w raises the dual objective by r·d − ln p_w[e^x]. Here r
is the gradient, and x = d·(f − p_w[f]) is estimated from records that were drawn with the weights w. We use
the inequality ln p_w[e^x] <= p_w[e^x − 1 − x], and e^x − 1 − x <= x²/2 for negative x. The step maximises r·d
− p_w[e^x − 1 − x or x²/2]. Except for the noise of the drawn records, this expression never overestimates the
rise. Unlike a quadratic model, it takes into account how fast the probabilities of rare cells grow. There are
too few records for all directions. Therefore a damping term is subtracted, λd²/2 times the variances. λ is
large far from the optimum, and small near it.
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
    """Dual problem of maximum entropy, in which each query has a weight. `pi` contains the noisy shares π
    (answers divided by the total), and `box` the limits β of the weights. `terms` contains the queries,
    grouped by the attributes of their terms.

    `constants` contains, for each query, the part that is the same for every record. `peak` contains an upper
    bound on the absolute value of each query. If the best value of a weight does not depend on the other
    weights, `fixed` contains this value. Otherwise, it contains NaN.
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
        """Make the dual problem for some noisy answers. If the answers do not fit the other arguments, raise
        a ValueError that explains why.
        """
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

    @cached_property
    def shapes(self) -> list[list[int]]:
        """Shape of the table of each set of attributes."""
        return [[self.domain.shape[k] for k in axes] for axes in self.sets]

    @cached_property
    def first_cells(self) -> Int[np.ndarray, " ends"]:
        """Positions at which the table of each set of attributes starts, if all tables are stored in one
        vector. The last number is the length of the vector.
        """
        return np.cumsum([0, *map(prod, self.shapes)])

    @cached_property
    def set_of_terms(self) -> list[int]:
        """Number of the set of attributes to which each group of terms (parts of queries) belongs."""
        return [self.sets.index(part.axes) for part in self.terms]

    @cached_property
    def _parts(self) -> tuple[Rectangles, list[tuple[int, QueryTerms]]]:
        """Terms that are rectangles of a table, and all other terms, grouped by set of attributes."""
        rectangles: list[tuple[int, QueryTerms]] = []
        others: list[tuple[int, QueryTerms]] = []
        for s, part in zip(self.set_of_terms, self.terms, strict=True):
            kind = rectangles if rectangular(part, self.shapes[s]) else others
            kind.append((s, part))
        return Rectangles.of(rectangles, self.shapes, self.first_cells), others

    @cached_property
    def binary(self) -> bool:
        """Whether each query f has a single term with the values 0 and 1. Its mean square p[f²] is then its
        mean p[f].
        """
        count = np.zeros(len(self.pi), np.int64)
        for part in self.terms:
            np.add.at(count, part.query, 1)
        binary = all(part.binary for part in self.terms)
        return bool(binary and not self.constants.any() and count.max(initial=0) <= 1)

    def with_fixed(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the weights `w`, in which each weight with a value in `fixed` is replaced by this value."""
        return np.where(np.isnan(self.fixed), w, self.fixed)

    def potentials(self, w: Float[np.ndarray, " queries"]) -> list[Float[np.ndarray, "..."]]:
        """Return the weighted sum of queries, Σ w_i f_i, as one table per set of attributes."""
        return self.by_set(self.cells_of(w))

    def cells_of(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " cells"]:
        """Return the weighted sum of queries, Σ w_i f_i, as one vector that contains the cells of all
        tables.
        """
        rectangles, others = self._parts
        cells = rectangles.weighted_sum(w)
        for s, part in others:
            own = self._of_set(s, cells)
            own += part.weighted_sum(w[part.query], len(own))
        return cells

    def by_set(self, cells: Float[np.ndarray, " cells"]) -> list[Float[np.ndarray, "..."]]:
        """Divide a vector that contains the cells of all tables into one table per set of attributes."""
        return [self._of_set(s, cells).reshape(shape) for s, shape in enumerate(self.shapes)]

    def _of_set(self, s: int, cells: Float[np.ndarray, " cells"]) -> Float[np.ndarray, " own"]:
        return cells[self.first_cells[s] : self.first_cells[s + 1]]

    def means(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the mean p[f_i] of each query f_i under a model. `margins` contains the model's marginal
        distribution on each set of attributes.
        """
        return self.means_of_cells(flattened(margins))

    def means_of_cells(
        self, cells: Float[np.ndarray, " cells"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the mean p[f_i] of each query f_i under a model, given one vector that contains the cells of
        all marginal distributions of the model.
        """
        means = self.constants.copy()
        rectangles, others = self._parts
        rectangles.add_means(cells, means)
        for s, part in others:
            np.add.at(means, part.query, part.means(self._of_set(s, cells)))
        return means

    def mean_squares(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """For each query, return the sum of the mean squares of its terms. If the query has a single term,
        this is its mean square p[f²].
        """
        squares = self.constants**2
        for i, part in zip(self.set_of_terms, self.terms, strict=True):
            np.add.at(squares, part.query, part.mean_squares(margins[i]))
        return squares

    def prior_margins(self) -> list[Float[np.ndarray, "..."]]:
        """Return the marginal distribution of the prior on each set of attributes."""
        return [outer_product([self.prior[k] for k in axes]) for axes in self.sets]

    def variances(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return the variance of each query under a model, given the model's marginal distributions. If a
        query has several terms, products of different terms are left out of its mean square.
        """
        means = self.means(margins)
        squares = means if self.binary else self.mean_squares(margins)
        variances = squares - means**2
        rounding = _ROUNDING * self.peak**2
        return np.where(variances < rounding, 0.0, variances)

    def variances_or_residuals(
        self, margins: Sequence[Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, " queries"]:
        """Return a number above 0 for each query. It is the query's variance, or its residual (noisy share
        minus mean) times its largest absolute value if this is larger. A smaller variance would not be
        reliable.
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
        """Return the weights after one step along the gradient. Weights stay within their limits, and each
        weight changes by at most 1.
        """
        change = np.clip(step * (self.pi - self.means(margins)), -1.0, 1.0)
        return self.within(w + change)

    def within(self, w: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " queries"]:
        """Return the weights, limited to the range from −β to β. Each weight with a value in `fixed` is
        replaced by this value.
        """
        return self.with_fixed(np.clip(w, -self.box, self.box))

    def gap(
        self, w: Float[np.ndarray, " queries"], margins: Sequence[Float[np.ndarray, "..."]]
    ) -> float:
        """Return the duality gap Σ (β_i |r_i| − w_i r_i), where the residual r is the noisy shares π minus
        the queries' means.

        If the margins were estimated from drawn records, r is noisy. The estimated gap is then too large on
        average.
        """
        residual = self.pi - self.means(margins)
        gaps = self.box * np.abs(residual) - w * residual
        return float(gaps.sum())

    def model(
        self,
        potentials: Sequence[Float[np.ndarray, "..."]],
        margins: Sequence[Float[np.ndarray, "..."]],
        explicit: bool,
        gap: float,
        steps: int,
        lacks: float = np.inf,
    ) -> Model:
        """Make a model with the given potentials and marginal distributions, one per set of attributes."""
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
    """Covariance matrix of the queries, estimated from drawn records. The matrix itself is never computed,
    only its products with vectors.
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
        """Return the product of the covariance matrix with the vector `v`."""
        sums = self.sums(v)
        sums -= np.mean(sums)
        return self.means(sums)

    def sums(self, v: Float[np.ndarray, " queries"]) -> Float[np.ndarray, " tuples"]:
        """Return one number per record: the weighted sum of the queries' values for this record, with the
        weights `v`.
        """
        return _sums_of_cells(self.problem.cells_of(v), self.cells)

    def means(self, weights: Float[np.ndarray, " tuples"]) -> Float[np.ndarray, " queries"]:
        """Return the weighted mean of each query over the records, without the constant part of the query."""
        return self.problem.means_of_cells(self._mean_cells(weights)) - self.problem.constants

    def steepness(self, rng: np.random.Generator) -> float:
        """Return the largest eigenvalue of the queries' correlation matrix, but at least 1. It is computed by
        power iteration.
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
        """Return one number for each cell of all tables: the sum of the weights of the records in this cell,
        divided by the number of records.
        """
        sums = _sums_of_tuples(weights, self.cells, self.problem.first_cells[-1])
        return sums / len(self.cells)


@njit(cache=True, nogil=True)
def _sums_of_cells(tables, cells):
    """Return one number per record, the sum of the values of the cells to which the record belongs."""
    sums = np.empty(len(cells))
    for t in range(len(cells)):
        x = 0.0
        for s in range(cells.shape[1]):
            x += tables[cells[t, s]]
        sums[t] = x
    return sums


@njit(cache=True, nogil=True)
def _sums_of_tuples(weights, cells, size):
    """Return one number per cell, the sum of the weights of the records in this cell."""
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
    """Return the weights after one step from `w`, and the expected rise of the damped dual objective in nats.
    The step maximises the dual objective, as estimated from drawn records, minus a damping term. If the step
    is so long that the estimate is not accurate, only a part of the step is made.
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
    return problem.within(w + move), -float(found.fun)
