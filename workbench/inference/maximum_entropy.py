"""Maximum entropy: the model of the tuples nearest to a prior that noisy answers allow.

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4. Consistency of noisy tables: Qardaji, Yang & Li,
           SIGMOD 2014, section 4.4.
Differs    Few cells: the dual exactly, by L-BFGS-B. Many: thousands of chains in place of one, whole
           conditionals averaged, steps divided by each query's variance, iterates averaged; then steps to
           the top of the dual's quadratic model, with covariances of the tuples drawn. Complete
           noisy tables are first made to agree with the total and each other: otherwise weights drift
           to the box along directions in which p does not change. `MaximumEntropyAsPrinted` is theirs.
           A fit says how near the optimum it came: a duality gap, of which `dual_problem` says why it
           bounds the answers, and a warning above `tolerance`; and an estimate of what is left, from the
           moves of its stages: `Model.lacks`.
Cost       a step is a sweep of all chains: some µs a chain, whatever the domain's size.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float
from workbench.estimates import NoisyAnswers
from workbench.estimates.model import CellProbabilities, Model, cell_probabilities
from workbench.inference.chain_ascent import ascend_dual
from workbench.inference.dual_problem import DualProblem
from workbench.inference.kernel_pca import check_alpha
from workbench.inference.priors import normalised_prior, prior_field
from workbench.value import parameter, value


class NotConverged(UserWarning):
    """A fit stopped above the duality gap that was asked for."""


_OPTIONS = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}


def likelihood_weight() -> Any:
    """The field of a fit that weighs the likelihood against the entropy."""
    return parameter(check=check_alpha, doc="weight of the likelihood against the entropy")


def total_field() -> Any:
    """The field of a fit that needs the number of tuples."""
    return parameter(
        None, 0, strict=True, unit="tuples", doc="public, or bought; never counted"
    )


@value
class MaximumEntropy:
    """Fit the maximum-entropy model to noisy answers; public in, public out, so it costs nothing.

    `prior` is a vector of weights for each attribute (uniform if not given). Up to `limit` cells of the
    attributes that are asked about, the fit is exact. Beyond, `chains` draw tuples, in stages, each of
    more steps than the one before; a step is a sweep of all chains. It ends when the estimated duality
    gap is at most `tolerance`, or after `steps`, with the warning `NotConverged`. At tolerance 0 it takes
    all steps, as asked, without one.
    """

    alpha: float = likelihood_weight()
    total: float = total_field()
    prior: tuple[Any, ...] | None = prior_field()
    limit: int = parameter(2**16, 0, 2**24, integer=True, unit="cells", doc="exact up to here")
    chains: int = parameter(2048, 64, 2**22, integer=True, unit="chains")
    steps: int = parameter(3150, 1, integer=True, unit="steps")
    tolerance: float = parameter(0.1, 0, unit="nats", doc="the largest duality gap")
    consistent: bool = parameter(True, choices=(False, True), doc="make complete tables agree")
    seed: int = parameter(0, 0, integer=True)
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> Model:
        """The model that the history allows.

        Parameters
        ----------
        history : NoisyAnswers, or several
            All over one domain.

        Returns
        -------
        Model
            Its answers add up to `total`. `gap` and `steps` say how near the optimum it is, and
            `distance` what that means for its answers.

        Raises
        ------
        ValueError
            For an empty history, a prior that does not fit it, or no total.

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
        cells = prod(problem.domain.shape[k] for k in problem.modelled_axes)
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
    """The optimum of the dual over all cells."""
    from scipy.optimize import minimize

    def distribution(potentials: Sequence[Float[np.ndarray, "..."]]) -> CellProbabilities:
        return cell_probabilities(problem.domain.shape, problem.prior, problem.sets, potentials)

    def negative_dual(w: Float[np.ndarray, " queries"]) -> tuple[float, np.ndarray]:
        joint, log_normaliser = distribution(problem.potentials(w))
        gradient = problem.pi - problem.means(problem.margins_of_joint(joint))
        return log_normaliser - w @ problem.pi, -gradient

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
    margins = problem.margins_of_joint(distribution(potentials).probabilities)
    return problem.model(potentials, margins, True, problem.gap(w, margins), optimum.nfev)
