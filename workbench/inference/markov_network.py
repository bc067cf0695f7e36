"""Markov networks, which are models on a junction tree. They are fitted to noisy answers by Newton steps.

The objective: the fit minimises κ·KL(p ‖ p0) + Σ_i (a_i − N·p[f_i])²/(2σ_i²) over models p. Here p0 is the
prior and κ its strength, a_i is a noisy answer to the query f_i with noise variance σ_i², N is the total, and
p[f_i] is the mean of the query under the model. `MaximumEntropy` has absolute residuals where this objective
has squares. With squares, no answer is fitted more closely than its noise justifies. The dual problem is
smooth and strongly convex. It minimises ln p0[exp(w·f)] − w·π + Σ_i s_i w_i²/2 over weights w, with π_i =
a_i/N and s_i = κσ_i²/N². At the minimum, the residual is π_i − p[f_i] = s_i w_i. For κ → 0 the fit becomes
least squares over all distributions, as in Private-PGM.
Source     McKenna, Sheldon & Miklau, ICML 2019; Chen, Zhou & Bhowmick, EDBT 2012, section 4.
Differs    Our objective contains the entropy, with a strength κ that the caller chooses. If the tree of all
           sets of attributes would be too large, the least informative sets are left out, and
           `NetworkProblem.left_out` is the number of their queries.
Cost       The cost of the search, which is described below.

The search: the Hessian of the dual problem is the covariance matrix of the queries under the model, plus the
numbers s_i on its diagonal. The product of this matrix with a vector takes two passes of messages over the
junction tree. So a Newton step can be computed by conjugate gradients. If noise makes an answer negative, the
probability of the query's cells goes to 0, and the size of its weight grows like 1/κ. For a weak prior (small
κ), it is thousands of nats. A Newton step is accurate if the prior becomes only a few times weaker. Longer
steps, or steps along the gradient, do not reach the minimum. The fit therefore makes the prior weaker step by
step.
Source     Nocedal & Wright 2006, chapter 7, for the steps. Allgower & Georg 1990 for the path of priors.
Cost       A step takes about a hundred products of the Hessian with a vector, each with two passes of
           messages. One or two steps are needed per prior. The search stops when the allowed number of
           products is used up. Its residual then shows the remaining distance from the minimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.dual_problem import DualProblem
from workbench.inference.eigenqueries import prior_vectors
from workbench.inference.junction_tree import CalibratedTree, JunctionTree, cliques_of
from workbench.inference.marginals import BankMarginals
from workbench.inference.model import TreeModel
from workbench.inference.query_terms import MergedCodes
from workbench.queries import NamedMarginals
from workbench.spaces import Domain
from workbench.value import Float, Int, sealed

# Network descent

_STRONG = 1000.0  # tuples: a prior from which steps may start anywhere
_STEPS = 25  # at one prior
_SHORTEST = 1e-8  # of a step
_PRODUCTS = 1000  # a step
# times that a prior of the path is weaker than the last, and deviations of the noise that are near enough
# there. Where one path does not arrive the next is tried: at once from the strong prior, then with care
_PATHS = ((3.2, 0.3), (1e9, 0.3), (1.8, 0.03))
_SOLVED = 0.25  # of what is near enough, that conjugate gradients may leave
_SUFFICIENT = 1e-4  # of the decrease that the slope tells
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Point:
    """Point that a search for the best weights has reached. It consists of the weights of queries, and of the
    value and the gradient of the dual objective at these weights. `residual` is the largest component of the
    gradient, in units of the noise.
    """

    weights: Float[np.ndarray, " queries"]
    value: float
    gradient: Float[np.ndarray, " queries"]
    calibrated: CalibratedTree
    residual: float
    strength: float


@dataclass(eq=False)
class Descent:
    """Search for the weights w that minimise the dual objective, ln p0[exp(w·f)] − w·π + κ Σ noise_i w_i²/2.
    The symbols are defined at the top of this module. Only the queries in `used` have weights, and all other
    weights are 0.

    `noise` contains the variances of the noisy shares, and `unit` is the unit in which residuals are
    measured. `products` is the number of times that the Hessian may still be multiplied by a vector.
    """

    dual: DualProblem
    tree: JunctionTree
    pi: Float[np.ndarray, " queries"]
    noise: Float[np.ndarray, " queries"]
    unit: Float[np.ndarray, " queries"]
    used: np.ndarray
    products: int

    def minimum(
        self, strength: float, start: Float[np.ndarray, " queries"] | None, near: float
    ) -> tuple[Point, int]:
        """Search for a point whose residuals are at most `near`. Return this point, or the best point that
        was reached, and the number of points that were tried.
        """
        steps = 0
        if start is not None:
            weights = np.where(self.used, start, 0.0)
            found, steps = self._newton(weights, strength, near, shortest=1.0)
            if found.residual <= near:
                return found, steps
        for path in _PATHS:
            found, more = self._along(strength, near, *path, stop=path != _PATHS[-1])
            steps += more
            if not self.products or found.strength == strength and found.residual <= near:
                break
        return self.at(found.weights, strength) if found.strength != strength else found, steps

    def _along(
        self, strength: float, near: float, weaker: float, on_the_way: float, stop: bool
    ) -> tuple[Point, int]:
        """Make the prior weaker step by step until it has the given strength. Return the last point, and the
        number of Newton steps. If `stop` is True, stop at the first point that is not near its minimum, and
        return this point. Before the last prior, residuals up to `on_the_way` are near enough.
        """
        weights = np.zeros(len(self.pi))
        steps = 0
        for prior in _path(strength, weaker):
            enough = near if prior == strength else max(near, on_the_way)
            found, more = self._newton(weights, prior, enough)
            weights = found.weights
            steps += more
            if not self.products or stop and found.residual > enough:
                break
        return found, steps

    def at(self, weights: Float[np.ndarray, " queries"], strength: float) -> Point:
        """Return the point with the given weights, for a prior of the given strength."""
        calibrated = self.tree.calibrate(self.dual.potentials(weights))
        expected = self.dual.means(calibrated.of_sets()) - self.dual.constants
        penalty = strength * self.noise * weights
        gradient = np.where(self.used, expected - self.pi + penalty, 0.0)
        value = calibrated.log_normaliser - weights @ self.pi + 0.5 * penalty @ weights
        residual = float(np.max(np.abs(gradient) / self.unit, initial=0.0))
        return Point(weights, float(value), gradient, calibrated, residual, strength)

    def _newton(
        self,
        weights: Float[np.ndarray, " queries"],
        strength: float,
        near: float,
        shortest: float = _SHORTEST,
    ) -> tuple[Point, int]:
        """Make at least one damped Newton step. Stop if all residuals are at most `near`, or if no step
        lowers the dual objective enough.
        """
        point = self.at(weights, strength)
        for steps in range(1, _STEPS + 1):
            following = self._step(point, strength, near, shortest)
            if following is None:
                return point, steps
            point = following
            if point.residual <= near or not self.products:
                break
        return point, steps

    def _step(
        self, point: Point, strength: float, near: float, shortest: float
    ) -> Point | None:
        direction = self._direction(point, strength, near)
        slope = float(point.gradient @ direction)
        length = 1.0
        while length >= shortest:
            trial = self.at(point.weights + length * direction, strength)
            decrease = point.value - trial.value
            if decrease >= -_SUFFICIENT * length * slope:
                return trial
            rounding = _ROUNDING * (1 + abs(point.value))
            if abs(decrease) <= rounding and trial.residual < point.residual:
                return trial
            bent = -decrease - slope * length
            parabola = -slope * length**2 / (2 * bent) if bent > 0 else 0.0
            length = float(np.clip(parabola, 0.1 * length, 0.5 * length))
        return None

    def _direction(
        self, point: Point, strength: float, near: float
    ) -> Float[np.ndarray, " queries"]:
        """Return the direction of a Newton step, computed by conjugate gradients. The computation stops when
        the remaining residual is at most a quarter of `near`.
        """
        dual = self.dual
        margins = point.calibrated.of_sets()
        penalty = strength * self.noise
        scale = 1 / (np.maximum(dual.variances(margins), 0.0) + penalty)
        x = np.zeros(len(self.pi))
        left = -point.gradient
        conjugate = scaled = scale * left
        size = left @ scaled
        for _ in range(min(_PRODUCTS, self.products) if size > 0 else 0):
            self.products -= 1
            moved = point.calibrated.derivatives(dual.potentials(conjugate))
            product = dual.means(moved) - dual.constants + penalty * conjugate
            product = np.where(self.used, product, 0.0)
            step = size / (conjugate @ product)
            x += step * conjugate
            left = left - step * product
            if np.max(np.abs(left) / self.unit) <= _SOLVED * near:
                break
            scaled = scale * left
            previous, size = size, left @ scaled
            conjugate = scaled + size / previous * conjugate
        return x


def _path(strength: float, weaker: float) -> Iterator[float]:
    """Yield strengths of priors, from strong to weak. The last one is `strength`. Each prior is weaker than
    the prior before by at most the factor `weaker`.
    """
    steps = int(np.ceil(np.log(max(1.0, _STRONG / strength)) / np.log(weaker)))
    for i in range(steps, 0, -1):
        yield strength * (_STRONG / strength) ** (i / steps)
    yield strength


# Markov network

NEAR = 0.02  # deviations of the noise: residuals of the dual's gradient that are near enough
_NEAR_SHARE = 2e-5  # of the total, where the noise is less
# of products with the dual's Hessian in one fit, and of the numbers that these go through: half a minute.
# Trees of tens of thousands of cells need four thousand products
_MOST_PRODUCTS = 20_000
_MOST_NUMBERS = 4e9
_FEWEST_PRODUCTS = 100


@dataclass(frozen=True, eq=False)
class NetworkFit:
    """Result of fitting a network (model on a junction tree) to noisy answers: one weight per query.
    `residual` is the largest component of the gradient at these weights, in standard deviations of the noise.
    It is 0 for the best weights.

    If there is very little noise, the unit of `residual` is a thousandth of the total instead.
    """

    problem: NetworkProblem
    weights: Float[np.ndarray, " queries"]
    residual: float
    steps: int

    @property
    def converged(self) -> bool:
        """Whether the largest residual is so small that the fit is complete."""
        return self.residual <= NEAR

    @cached_property
    def model(self) -> TreeModel:
        """Model with the fitted weights."""
        dual = self.problem.dual
        codes = self.problem.codes
        prior = self.problem.prior
        potentials = dual.potentials(self.weights)
        margins = self.problem.tree.calibrate(potentials).of_sets()
        if codes.merges:
            potentials = [
                codes.spread(*each) for each in zip(potentials, dual.sets, strict=True)
            ]
            margins = [
                codes.spread(table, axes, prior)
                for table, axes in zip(margins, dual.sets, strict=True)
            ]
        return TreeModel(
            codes.domain,
            dual.total,
            prior,
            dual.sets,
            tuple(map(sealed, potentials)),
            tuple(map(sealed, margins)),
            steps=self.steps,
        )


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Problem of fitting a network (model on a junction tree) to noisy answers. It uses only answers that a
    junction tree with few cells can represent. `rows` contains their positions among the given answers, and
    `left_out` is the number of the other answers.

    If no answer distinguishes neighbouring codes of an attribute, these codes are merged to one run. `codes`
    contains the runs. `dual` and `tree` use the runs instead of codes, and `prior` uses the original codes.
    """

    codes: MergedCodes
    prior: tuple[Float[np.ndarray, " values"], ...]
    dual: DualProblem
    tree: JunctionTree
    rows: Int[np.ndarray, " queries"]
    left_out: int

    @classmethod
    def of(
        cls,
        answers: NoisyAnswers,
        total: float | None,
        prior: tuple[Any, ...] | None,
        limit: int,
    ) -> NetworkProblem:
        """Make the problem from noisy answers. It uses the answers about the most informative sets of
        attributes, as long as the junction tree for these sets has at most `limit` cells.
        """
        shape = answers.domain.shape
        prior = prior_vectors(prior, answers.domain)
        codes = MergedCodes.of(answers.workload, answers.domain)
        whole = prior
        if codes.merges:
            queries = codes.queries(answers.workload)
            answers = NoisyAnswers(codes.small, queries, answers.values, answers.variances)
            prior = codes.prior(prior)
        dual = DualProblem.of(answers, total, 1.0, prior, consistent=False)
        variances = answers.variances
        rows = np.arange(len(answers))
        if cliques_of([s for s in dual.sets if s], shape, limit) is None:
            # tables of others are never laid out
            small = {s for s in dual.sets if prod(shape[k] for k in s) <= limit}
            rows = _rows_of_sets(dual, small)
            if len(rows):
                dual = DualProblem.of(answers[rows], total, 1.0, prior, consistent=False)
                rows = rows[
                    _rows_of_sets(dual, _sets_that_fit(dual, variances[rows], shape, limit))
                ]
            if not len(rows):
                raise ValueError(f"no set of attributes has at most {limit} cells")
            dual = DualProblem.of(answers[rows], total, 1.0, prior, consistent=False)
            variances = variances[rows]
        tree = JunctionTree(dual.domain.shape, dual.prior, dual.sets)
        # the box holds the noise of shares from here on
        dual = replace(dual, box=variances / dual.total**2)
        return cls(codes, whole, dual, tree, rows, len(answers) - len(rows))

    def at(self, total: float) -> NetworkProblem:
        """Return the same problem for another total number of records."""
        ratio = self.dual.total / total
        dual = replace(
            self.dual, total=total, pi=self.dual.pi * ratio, box=self.dual.box * ratio**2
        )
        return replace(self, dual=dual)

    @property
    def _products(self) -> int:
        """Number of times that a fit may multiply the Hessian of the dual objective by a vector."""
        entries = self.tree.cells + sum(p.left.size + p.right.size for p in self.dual.terms)
        return int(np.clip(_MOST_NUMBERS / entries, _FEWEST_PRODUCTS, _MOST_PRODUCTS))

    def fit(
        self,
        strength: float,
        start: Float[np.ndarray, " queries"] | None = None,
        values: Float[np.ndarray, " queries"] | None = None,
        used: np.ndarray | None = None,
        near: float = NEAR,
    ) -> NetworkFit:
        """Fit the network for one strength of the prior. The search begins at the weights `start`, and stops
        when all residuals are at most `near`.

        With `values`, you can replace the original answers by others. With `used`, you can restrict the fit
        to some of the answers.
        """
        dual = self.dual
        noise = dual.box
        pi = (dual.pi if values is None else values[self.rows] / dual.total) - dual.constants
        unit = np.maximum(np.sqrt(noise), _NEAR_SHARE / NEAR)
        chosen = np.ones(len(noise), bool) if used is None else used
        descent = Descent(dual, self.tree, pi, noise, unit, chosen, self._products)
        found, steps = descent.minimum(strength, start, near)
        return NetworkFit(self, found.weights, found.residual, steps)


def _rows_of_sets(dual: DualProblem, sets: set[tuple[int, ...]]) -> Int[np.ndarray, " queries"]:
    """Return the positions of the queries whose terms all belong to the given sets of attributes."""
    outside = np.zeros(len(dual.pi), bool)
    for part in dual.terms:
        if part.axes not in sets:
            outside[part.query] = True
    return np.flatnonzero(~outside)


def _sets_that_fit(
    dual: DualProblem,
    variances: Float[np.ndarray, " queries"],
    shape: Sequence[int],
    limit: int,
) -> set[tuple[int, ...]]:
    """Choose the sets of attributes that a junction tree with at most `limit` cells can represent. Sets of
    one attribute come first, and then the sets whose answers differ most from the prior. Sets that would make
    the tree too large are left out.
    """
    expected = dual.means(dual.prior_margins())
    noise = variances / dual.total**2
    told = (dual.pi - expected) ** 2 - noise
    information: dict[tuple[int, ...], float] = {}
    for part in dual.terms:
        each = told[part.query] / np.maximum(
            np.maximum(expected, noise**0.5)[part.query], 1e-12
        )
        information[part.axes] = information.get(part.axes, 0.0) + float(each.sum())
    chosen: set[tuple[int, ...]] = set()
    for axes in sorted(information, key=lambda axes: (len(axes) > 1, -information[axes], axes)):
        trial = [s for s in {*chosen, axes} if s]
        if cliques_of(trial, shape, limit) is not None:
            chosen.add(axes)
    return chosen


# Measured marginals

STRENGTH = 100.0  # tuples that the prior of a tree weighs; from 30 to 300 errors differ by 7 %


class MeasuredMarginals:
    """Noisy marginals that are measured one by one. After each measurement, a model can be fitted to all of
    them.

    If a marginal is measured again, the object keeps the mean of its measurements, weighted by inverse
    variance. The total and the prior are computed by `BankMarginals`. A fit starts from the weights of the
    previous fit.

    Parameters
    ----------
    domain : Domain
        Domain of the model.
    cells : int
        Largest number of cells of the model, over all cliques of its junction tree.
    """

    def __init__(self, domain: Domain, cells: int):
        self.domain = domain
        self.cells = cells
        self.sets: dict[tuple[int, ...], tuple[Float[np.ndarray, " cells"], float]] = {}
        self._weights = np.empty(0)

    def add(
        self, axes: tuple[int, ...], values: Float[np.ndarray, " cells"], variance: float
    ) -> None:
        """Add a measured marginal, with its noisy counts and the variance of their noise."""
        if axes in self.sets:
            before, spread = self.sets[axes]
            share = spread / (spread + variance)
            values = before + share * (values - before)
            variance = share * variance
        self.sets[axes] = values, variance

    def admits(self, axes: tuple[int, ...], cells: Any) -> bool:
        """Return whether a marginal can be added. This is possible if the model already contains it, or if
        the model with this marginal has at most `cells` cells.
        """
        if any(set(axes) <= set(held) for held in self.sets):
            return True
        return cliques_of([*self.sets, axes], self.domain.shape, cells) is not None

    def fit(self, near: float = NEAR) -> TreeModel:
        """Fit a model to all marginals that were added. Its residuals are at most `near` standard deviations
        of the noise.
        """
        names = tuple(tuple(self.domain.attributes[k] for k in axes) for axes in self.sets)
        values, variances = zip(*self.sets.values(), strict=True)
        each = np.repeat(variances, [len(table) for table in values])
        answers = NoisyAnswers(
            self.domain, NamedMarginals(names).on(self.domain), np.concatenate(values), each
        )
        found = BankMarginals(answers)
        problem = NetworkProblem.of(answers, found.total or 1.0, found.prior(), self.cells)
        start = np.zeros(len(answers))
        start[: len(self._weights)] = self._weights
        fitted = problem.fit(STRENGTH, start, near=near)
        self._weights = fitted.weights
        return fitted.model
