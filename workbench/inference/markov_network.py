"""A Markov network of the tuples, fitted exactly to noisy answers where a junction tree is small enough.

Minimises κ·KL(p ‖ p0) + Σ_i (a_i − N·p[f_i])²/(2σ_i²): the entropy of `MaximumEntropy`, with squares in
place of absolute residuals, so that no answer is fitted more closely than its noise deserves. Its dual
is smooth and strongly concave: the least ln p0[exp(w·f)] − w·π + Σ_i s_i w_i²/2, with π_i = a_i/N and
s_i = κσ_i²/N², where the residual is π_i − p[f_i] = s_i w_i. As κ goes to 0 it is least squares over all
distributions, as in Private-PGM.
Source     McKenna, Sheldon & Miklau, ICML 2019; Chen, Zhou & Bhowmick, EDBT 2012, section 4.
Differs    the entropy stays in, and κ is chosen by who calls. Where the tree of all sets of attributes
           were too large, those that tell least are left out, and `Fit.left_out` counts their queries.
Cost       `network_descent`: products of two passes of messages over the tree's cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.estimates import NoisyAnswers
from workbench.estimates.junction_tree import JunctionTree, cliques_of
from workbench.estimates.tree_model import TreeModel
from workbench.inference.dual_problem import DualProblem
from workbench.inference.maximum_entropy import NotConverged, total_field
from workbench.inference.merged_codes import MergedCodes
from workbench.inference.network_descent import Descent
from workbench.inference.priors import normalised_prior, prior_field, prior_vectors
from workbench.value import parameter, sealed, value

NEAR = 0.02  # deviations of the noise: residuals of the dual's gradient that are near enough
_NEAR_SHARE = 2e-5  # of the total, where the noise is less
# of products with the dual's Hessian in one fit, and of the numbers that these go through: half a minute.
# Trees of tens of thousands of cells need four thousand products
_MOST_PRODUCTS = 20_000
_MOST_NUMBERS = 4e9
_FEWEST_PRODUCTS = 100


@value
class MarkovNetwork:
    """Fit a Markov network to noisy answers; public in, public out, so it costs nothing.

    `strength` is κ: how many tuples' worth the prior weighs. `prior` is a vector of weights for each
    attribute (uniform if not given). `limit` is how many cells the cliques may have together.
    """

    strength: float = parameter(100.0, 0, strict=True, unit="tuples", doc="weight of the prior")
    total: float = total_field()
    prior: tuple[Any, ...] | None = prior_field()
    limit: int = parameter(2**17, 0, 2**24, integer=True, unit="cells", doc="of all cliques")
    cite: ClassVar[str] = "mckenna2019"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> TreeModel:
        """The network that the history makes most likely.

        Parameters
        ----------
        history : NoisyAnswers, or several
            All over one domain.

        Returns
        -------
        TreeModel
            Its answers add up to `total`, and agree with each other.

        Raises
        ------
        ValueError
            For an empty history, a prior that does not fit it, or no total.
        """
        answers = NoisyAnswers.history(history)
        fit = NetworkProblem.of(answers, self.total, self.prior, self.limit).fit(self.strength)
        if not fit.converged:
            warnings.warn(
                f"the network stopped after {fit.steps} steps at residuals of {fit.residual:.2g} "
                "deviations of the noise",
                NotConverged,
                stacklevel=2,
            )
        return fit.model


@dataclass(frozen=True, eq=False)
class NetworkFit:
    """Weights of queries, and how near the optimum they are: `residual` is in deviations of the noise.

    Where the noise is very little, in a thousandth of the total instead.
    """

    problem: NetworkProblem
    weights: Float[np.ndarray, " queries"]
    residual: float
    steps: int

    @property
    def converged(self) -> bool:
        """Whether residuals are near enough."""
        return self.residual <= NEAR

    @cached_property
    def model(self) -> TreeModel:
        """The network of these weights."""
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
    """Answers that a junction tree of few cells holds: `rows` of those that were given.

    `dual` and `tree` are over the runs of `codes` that these answers tell apart, `prior` is over codes.
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
        """Of the answers about the sets of attributes that tell most, as far as the tree stays small."""
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
        """The same answers, taken for those of another number of tuples."""
        ratio = self.dual.total / total
        dual = replace(
            self.dual, total=total, pi=self.dual.pi * ratio, box=self.dual.box * ratio**2
        )
        return replace(self, dual=dual)

    @property
    def _products(self) -> int:
        """How many products a fit may take."""
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
        """At one strength of the prior, from `start`, until residuals are at most `near`.

        Other answers may stand in for the given ones, and only those be used that are said.
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
    """The queries all of whose terms are about some of the sets."""
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
    """Sets by what they tell beyond the prior, each that leaves the tree small enough."""
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
