"""The weights of a Markov network by Newton's method, along a path of weaker and weaker priors.

The dual's Hessian is the covariance of the queries under the model, plus s on its diagonal: the tree
multiplies a vector by it in two passes of messages, so that conjugate gradients solve for a step. Where
noise makes an answer negative, its cells leave the model and their weights grow as 1/κ, by thousands of
nats at weak priors. One step of Newton's follows them exactly from a prior a few times as strong, while
steps from afar, or by first derivatives, stop on the way.
Source     Nocedal & Wright 2006, chapter 7, for the steps; Allgower & Georg 1990 for the path.
Cost       some hundred products a step, each of two passes of messages; one or two steps a prior. A
           descent stops where its `products` are used up, and its residual says how far it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Float
from workbench.estimates.junction_tree import CalibratedTree, JunctionTree
from workbench.inference.dual_problem import DualProblem

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
    """Weights of queries, the dual there, its gradient, and the largest of that in units of the noise."""

    weights: Float[np.ndarray, " queries"]
    value: float
    gradient: Float[np.ndarray, " queries"]
    calibrated: CalibratedTree
    residual: float
    strength: float


@dataclass(eq=False)
class Descent:
    """The dual ln p0[exp(w·f)] − w·π + κ Σ noise_i w_i²/2, of the queries that are `used`.

    `noise` is the variance of shares, `unit` what residuals are told in, and `products` how many of the
    Hessian with a vector are left.
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
        """Where residuals are at most `near`, or as near to it as steps came; and how many these were."""
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
        """The end of a path of priors, or the first point of it that is not near, where it may stop."""
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
        """The dual at some weights."""
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
        """Damped steps, at least one, until residuals are near or no step lowers the dual enough."""
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
        """Newton's, by conjugate gradients, until what is left is well below what is near enough."""
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
    """Priors from a strong one to this one, each a few times weaker than the last."""
    steps = int(np.ceil(np.log(max(1.0, _STRONG / strength)) / np.log(weaker)))
    for i in range(steps, 0, -1):
        yield strength * (_STRONG / strength) ** (i / steps)
    yield strength
