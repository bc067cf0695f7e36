"""Maximum entropy: a method that finds the model nearest to a prior distribution, among the models that agree
with noisy answers.

Fit with Markov chains: the model has one weight per query. If the model has many cells, Markov chains draw
records from the model with the current weights. Averages of the chains' conditional distributions estimate
the gradient of the dual problem (see `dual_problem`). The fit consists of stages. Each step follows the
gradient, divided by the variance of each query. Long stages use momentum. The result of a stage is the mean
of the weights over its second half. The variances are computed at the start of a stage, because variances
from the same records would bias the steps near the optimum. If there are many more records than queries,
later stages draw records at fixed weights, and maximise the dual objective that is estimated from these
records.

The method:

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4. Consistency of noisy tables: Qardaji, Yang & Li,
           SIGMOD 2014, section 4.4.
Differs    For few cells, we solve the dual problem exactly by L-BFGS-B. For many cells, we use thousands of
           Markov chains instead of one, as described above. We first adjust complete noisy tables so that
           they agree with the total and with each other. Otherwise, weights would drift to their bounds in
           directions in which the model does not change. The paper's method without these changes is
           `MaximumEntropyAsPrinted`. A fit reports its distance from the best model in two ways. The first is
           the duality gap, which bounds the error of answers (`dual_problem` explains why). The second is
           `Model.lacks`, an estimate of the remaining divergence.
Cost       In one step, every chain draws all of its attributes again. A step takes a few µs per chain, whatever
           the size of the domain.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from math import ceil, inf, prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.dual_problem import DualProblem, SampledCovariance, sampled_step
from workbench.inference.eigenqueries import normalised_prior, prior_field
from workbench.inference.gibbs import Chains
from workbench.inference.junction_tree import JunctionTree
from workbench.inference.kernel_pca import check_alpha
from workbench.inference.model import Model
from workbench.value import Float, Int, parameter, value

if TYPE_CHECKING:
    from tqdm import tqdm


# Chain ascent

_FIRST_STAGE = 50  # steps
_STEP_OF_STAGE = 3.0  # over the steepness and the root of how many times longer the stage is
_STEPS_A_PROPOSAL = 10
_MOMENTUM = 0.8  # of a step's move: more lets noise grow
_FIRST_WITH_MOMENTUM = 200  # steps: shorter stages take steps that are too long for it
_LEAST_LOOK = 24  # sweeps
_STEPS_A_LOOK = 5
_LONGER = 1.3
_SETTLING = 0.2  # the share of a stage's sweeps that are not counted, as the weights are new
_TUPLES = 25_000  # which tell covariances, of few queries
_MOST_TUPLES = 62_500
_CELLS = 2**24  # of all tuples in all sets: 128 MiB
_TUPLES_A_QUERY = 5  # with fewer, covariances are mostly noise
_DAMPING = 2.0
_LEAST_DAMPING = 1 / 32
_LESS_DAMPING = 0.125
_MORE_DAMPING = 8.0
_NEAR = 0.25  # of the tolerance: a step that promises less is the last
_WORSE = 2.0  # times the least gap: such a stage is gone back on
_SECONDS_TO_BAR = 0.5
_LEAST_MOVE = 1e-300


class _Seen(NamedTuple):
    """Weights of queries, the potentials of the model with these weights, and statistics of records that were
    drawn from this model.
    """

    w: Float[np.ndarray, " queries"]
    potentials: list[Float[np.ndarray, "..."]]
    margins: list[Float[np.ndarray, "..."]]
    tuples: Int[np.ndarray, "tuples attributes"]
    gap: float


def ascend_dual(
    problem: DualProblem, count: int, steps: int, tolerance: float, rng: np.random.Generator
) -> Model:
    """Fit a maximum-entropy model by `count` Markov chains. Return the first model with a duality gap of at
    most `tolerance`. If there is none within `steps` steps, return the last model.

    In one step, every chain draws all of its attributes again. Each stage has twice as many steps as the
    stage before, and the steps are shorter by the factor √2. If many more records than queries can be
    drawn, the function switches to `_by_sampled_steps` after two stages. If the first of these steps makes
    the fit worse, another stage along the gradient follows, and then sampled steps again.
    """
    ascent = _Ascent(problem, count, rng)
    sampled = len(problem.pi) * _TUPLES_A_QUERY <= ascent.most_tuples
    moves: list[float] = []  # of whole stages
    w = problem.with_fixed(np.zeros(len(problem.pi)))
    at = None
    done = 0
    length = _FIRST_STAGE
    with _progress_bar(steps) as bar:
        while True:
            whole = length <= steps - done
            length = min(length, steps - done)
            w = ascent.up_the_gradient(w, length, bar)
            done += length
            length *= 2
            before, at = at, ascent.look(w, max(_LEAST_LOOK, length // _STEPS_A_LOOK))
            bar.set_postfix_str(f"gap {at.gap:.3g} nats")
            if before is not None:
                moves.append(_move(before, at))
            if not whole:
                moves.clear()  # a shorter stage moves less, and says nothing
            lacks = estimate_left(moves)
            if at.gap <= tolerance or done >= steps:
                break
            if sampled and before is not None:
                start = at
                at, done, left = _by_sampled_steps(ascent, start, done, steps, tolerance, bar)
                if at is not start:
                    lacks = left
                    break
    return problem.model(at.potentials, at.margins, False, at.gap, done, lacks)


def _by_sampled_steps(
    ascent: _Ascent, at: _Seen, done: int, steps: int, tolerance: float, bar: tqdm
) -> tuple[_Seen, int, float]:
    """Improve the weights by `sampled_step` until the duality gap is small, until the last step was expected
    to improve the fit only a little, or until the steps are used up. If the gap is much larger after the
    first step, return to the start. Also return the number of steps, and an estimate of the KL divergence that
    remains between the model and the best model.

    Each stage has 1.3 times as many steps as the stage before, and an eighth of the damping. If a later stage
    makes the gap much larger, it is undone and repeated with more damping. The expected improvement of the
    last step is an estimate of the divergence before this step. This estimate is used only with the smallest
    damping, because the expected improvement of a damped step is small at any distance from the optimum.
    """
    start = at
    damping = _DAMPING
    sweeps: float = _FIRST_STAGE
    least = at.gap
    lacks = inf
    while at.gap > tolerance and done + round(sweeps) <= steps:
        covariance = SampledCovariance(ascent.problem, at.tuples)
        w, rise = sampled_step(ascent.problem, at.w, at.margins, covariance, damping)
        seen = ascent.look(w, round(sweeps), bar)
        done += round(sweeps)
        bar.set_postfix_str(f"gap {seen.gap:.3g} nats")
        if seen.gap > _WORSE * least:
            if at is start:
                break
            damping *= _MORE_DAMPING
            lacks = inf
            continue
        lacks = rise if damping <= _LEAST_DAMPING else inf
        least = min(least, seen.gap)
        damping = max(_LEAST_DAMPING, _LESS_DAMPING * damping)
        sweeps *= _LONGER
        at = seen
        if lacks < _NEAR * tolerance:
            break
    return at, done, lacks


def _move(at: _Seen, seen: _Seen) -> float:
    return divergence(at.potentials, at.margins, seen.potentials, seen.margins)


class _Ascent:
    """Markov chains that fit the weights of queries, with the current record of each chain."""

    def __init__(self, problem: DualProblem, count: int, rng: np.random.Generator):
        self.problem = problem
        self.rng = rng
        self.chains = Chains(problem.domain.shape, problem.prior, problem.sets)
        self.states = self.chains.draw_from_prior(count, rng)
        wanted = min(_MOST_TUPLES, max(_TUPLES, _TUPLES_A_QUERY * len(problem.pi)))
        self.most_tuples = min(wanted, _CELLS // max(1, len(problem.sets)))
        self.margins = problem.prior_margins()
        self.chains.set_proposal(self.margins)

    def up_the_gradient(
        self, w: Float[np.ndarray, " queries"], length: int, bar: tqdm
    ) -> Float[np.ndarray, " queries"]:
        """Make `length` steps along the gradient. Return the mean of the weights over the second half of
        these steps.
        """
        problem = self.problem
        steepness = SampledCovariance(problem, self.states).steepness(self.rng)
        longer = length / _FIRST_STAGE
        share = min(1.0, _STEP_OF_STAGE / (sqrt(max(1.0, longer)) * steepness))
        momentum = _MOMENTUM if length >= _FIRST_WITH_MOMENTUM else 0.0
        step = share / problem.variances_or_residuals(self.margins)
        mean = np.zeros_like(w)
        ahead = w
        self.chains.set_potentials(problem.potentials(w))
        for i in range(length):
            sums = self.chains.sums()
            self._sweep(bar, sums)
            self.margins = self.chains.margins(sums)
            before, w = w, problem.ascend(ahead, self.margins, step)
            ahead = problem.within(w + momentum * (w - before))
            mean += w if 2 * i >= length or length == 1 else 0
            self.chains.set_potentials(problem.potentials(ahead))
            if i % _STEPS_A_PROPOSAL == _STEPS_A_PROPOSAL - 1:
                self.chains.set_proposal(self.margins)
        return mean / max(1, length - (length + 1) // 2)

    def look(
        self, w: Float[np.ndarray, " queries"], sweeps: int, bar: tqdm | None = None
    ) -> _Seen:
        """Draw records from the model with the given weights, and return their statistics. The first sweeps
        of the chains are not counted.
        """
        problem = self.problem
        potentials = problem.potentials(w)
        self.chains.set_potentials(potentials)
        self.chains.set_proposal(self.margins)
        settling = round(_SETTLING * sweeps)
        for _ in range(settling):
            self._sweep(bar)
        apart = ceil((sweeps - settling) * len(self.states) / self.most_tuples)
        sums = self.chains.sums()
        tuples = []
        for i in range(sweeps - settling):
            self._sweep(bar, sums)
            if i % apart == 0:
                tuples.append(self.states.copy())
        self.margins = self.chains.margins(sums)
        gap = problem.gap(w, self.margins)
        return _Seen(w, potentials, self.margins, np.concatenate(tuples), gap)

    def _sweep(self, bar: tqdm | None, sums: np.ndarray | None = None) -> None:
        self.chains.step(self.states, self.rng, sums)
        if bar is not None:
            bar.update()


def divergence(
    potentials: Sequence[Float[np.ndarray, "..."]],
    margins: Sequence[Float[np.ndarray, "..."]],
    other_potentials: Sequence[Float[np.ndarray, "..."]],
    other_margins: Sequence[Float[np.ndarray, "..."]],
) -> float:
    """Return the sum of the two KL divergences between two models, one in each direction. The computation
    needs no normalising constants, and noise in estimated margins hardly changes the result.
    """
    tables = zip(potentials, margins, other_potentials, other_margins, strict=True)
    both_ways = sum(((v - w) * (p - q)).sum() for v, p, w, q in tables)
    return max(0.0, float(both_ways))


def estimate_left(moves: list[float]) -> float:
    """Estimate the KL divergence between the current model and the model to which the fit converges. `moves`
    contains the divergences between the models of consecutive stages. The estimate assumes that the
    divergence shrinks by the same factor from stage to stage. This factor is the ratio of the last two
    divergences, but at least ½.

    Each stage has twice as many steps as the stage before, so its noise is smaller by the factor √½. If the
    fit makes slow progress, divergences shrink more slowly. The square roots of divergences are distances.
    The estimate adds up the distances of all further stages, as if all had the same direction. If the last
    divergence is larger than the one before, the estimate is infinite.
    """
    if len(moves) < 2:
        return inf
    ratio = sqrt(max(0.5, moves[-1] / max(moves[-2], _LEAST_MOVE)))
    return inf if ratio >= 1 else moves[-1] / 2 * (ratio / (1 - ratio)) ** 2


def _progress_bar(steps: int) -> tqdm:
    """Return a progress bar for a fit of `steps` steps."""
    from tqdm.auto import tqdm

    return tqdm(
        total=steps, desc="maximum entropy", unit="step", disable=None, delay=_SECONDS_TO_BAR
    )


# Maximum entropy


class NotConverged(UserWarning):
    """Warning that the fit of a maximum-entropy model stopped early. The duality gap, which bounds the
    distance from the best model, is still larger than the field `tolerance` of `MaximumEntropy`.
    """


_OPTIONS = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}


def likelihood_weight() -> Any:
    """Return the declaration of the field `alpha`, the weight of the likelihood relative to the entropy."""
    return parameter(check=check_alpha, doc="weight of the likelihood relative to the entropy")


def total_field() -> Any:
    """Return the declaration of the field `total`, the number of records."""
    return parameter(
        None, 0, strict=True, unit="tuples", doc="number of records, public or from a release"
    )


@value
class MaximumEntropy:
    """Method that fits a model, a distribution over the cells of the domain, to noisy answers. Among all
    distributions that agree with the answers up to their noise, the model has the largest entropy. Noisy
    answers are public, so the fit costs no budget.

    The model is as close to a prior distribution as the answers allow. By default, the prior distribution is
    uniform. You can give another prior distribution as `prior`, with one vector of weights per attribute. With
    a larger `alpha`, the model follows the noisy answers more closely.

    If the queried attributes have at most `limit` combinations of values, the fit is exact. Otherwise, Markov
    chains draw records from the model. `chains` is the number of Markov chains. In one step, every chain draws
    all attributes of its record again. The fit consists of stages, and later stages have more steps. After a
    stage, the fit estimates the duality gap, which bounds the distance from the best model.

    The fit ends as soon as the gap is at most `tolerance`. It also ends after `steps` steps, or if the expected
    improvement in the last stage was below a quarter of `tolerance`. If the gap is larger than `tolerance` at
    the end, the fit gives the warning `NotConverged`. If `tolerance` is 0, the fit takes all steps and gives no
    warning.
    """

    alpha: float = likelihood_weight()
    total: float = total_field()
    prior: tuple[Any, ...] | None = prior_field()
    limit: int = parameter(2**16, 0, 2**24, integer=True, unit="cells", doc="largest exact fit")
    chains: int = parameter(2048, 64, 2**22, integer=True, unit="chains")
    steps: int = parameter(3150, 1, integer=True, unit="steps")
    tolerance: float = parameter(0.1, 0, unit="nats", doc="duality gap at which the fit ends")
    consistent: bool = parameter(True, choices=(False, True), doc="make noisy tables agree")
    seed: int = parameter(0, 0, integer=True)
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> Model:
        """Fit the model to past answers.

        Parameters
        ----------
        history : NoisyAnswers, or several
            Past noisy answers. All answers must be about the same domain.

        Returns
        -------
        Model
            Model of `total` records. The attribute `gap` of the model is the duality gap at the end of the fit.
            The attribute `distance` bounds the distance from the best model.

        Raises
        ------
        ValueError
            If the history is empty, if the prior does not fit the domain, or if there is no total.

        Examples
        --------
        >>> from workbench import Domain, Products
        >>> domain = Domain(("age", "sex"), (3, 2))
        >>> queries = Products.of(domain, [{"age": (0, 1)}, {"sex": {1}}])
        >>> history = NoisyAnswers(domain, queries, [60.0, 25.0], 2.0)
        >>> MaximumEntropy(1.0, total=100)(history).answer(queries).round(3)
        array([60., 25.])
        """
        problem = DualProblem.of(history, self.total, self.alpha, self.prior, self.consistent)
        modelled = {k for axes in problem.sets for k in axes}
        cells = prod(problem.domain.shape[k] for k in modelled)
        if cells <= self.limit:
            model = _exact(problem)
        else:
            rng = np.random.default_rng(self.seed)
            model = ascend_dual(problem, self.chains, self.steps, self.tolerance, rng)
        if model.gap > self.tolerance > 0:
            warnings.warn(
                f"maximum entropy stopped after {model.steps} steps at a duality gap of "
                f"{model.gap:.2g} nats, above {self.tolerance:g}: it may be {model.distance:.2g} in L1 "
                f"from its optimum, where its last stages let expect {sqrt(2 * model.lacks):.2g}; "
                "more steps or chains bring it closer, and a smaller alpha",
                NotConverged,
                stacklevel=2,
            )
        return model


def _exact(problem: DualProblem) -> Model:
    """Return the best model. The function maximises the exact dual objective, computed on a junction tree."""
    from scipy.optimize import minimize

    tree = JunctionTree(problem.domain.shape, problem.prior, problem.sets)

    def negative_dual(w: Float[np.ndarray, " queries"]) -> tuple[float, np.ndarray]:
        calibrated = tree.calibrate(problem.potentials(w))
        gradient = problem.pi - problem.means(calibrated.of_sets())
        return calibrated.log_normaliser - w @ problem.pi, -gradient

    optimum = minimize(
        negative_dual,
        problem.with_fixed(np.zeros(len(problem.pi))),
        jac=True,
        method="L-BFGS-B",
        bounds=np.stack([-problem.box, problem.box], axis=1),
        options=_OPTIONS,
    )
    w = np.clip(optimum.x, -problem.box, problem.box)
    potentials = problem.potentials(w)
    margins = tree.calibrate(potentials).of_sets()
    return problem.model(potentials, margins, True, problem.gap(w, margins), optimum.nfev)
