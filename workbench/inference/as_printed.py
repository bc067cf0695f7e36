"""The maximum entropy method exactly as Chen, Zhou & Bhowmick print it. A single Markov chain changes the
weights of the model after each record that the chain draws.

Source     EDBT 2012, section 4.2. The docstring of the module `maximum_entropy` explains what we improved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import njit
from workbench.estimates import NoisyAnswers
from workbench.inference.dual_problem import DualProblem
from workbench.inference.eigenqueries import normalised_prior, prior_field
from workbench.inference.gibbs import Chains
from workbench.inference.maximum_entropy import likelihood_weight, total_field
from workbench.inference.model import Model
from workbench.value import parameter, value

_CHAINS = 4096  # that say what the last weights expect
_SWEEPS = 40


@value
class MaximumEntropyAsPrinted:
    """Method that fits a maximum-entropy model exactly as Chen, Zhou & Bhowmick (EDBT 2012) print the
    algorithm. The model has one weight per past answer. A Markov chain makes Metropolis steps and changes the
    weights in steps of `gamma`. The fitted model uses the weights after the last step, so the method does not
    average over steps. To get good answers, use `MaximumEntropy` instead.

    Each past answer must be the count of one cell of a marginal (a table of counts for some of the attributes).
    The algorithm stops long before it converges. Suppose that the cell of a past answer contains a share π of
    the records. Then all `steps` together raise the weight of this answer by at most gamma·steps·π. With the
    default values, this bound is 0.1 for a cell with a thousandth of the records. The early stop acts as a
    regularisation, which the paper does not mention.
    """

    alpha: float = likelihood_weight()
    total: float = total_field()
    prior: tuple[Any, ...] | None = prior_field()
    gamma: float = parameter(1e-4, 0, strict=True, doc="length of a step")
    steps: int = parameter(10**6, 1, integer=True, unit="steps")
    seed: int = parameter(0, 0, integer=True)
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> Model:
        """Fit the model to past answers. The fitted model uses the weights after the last step.

        Parameters
        ----------
        history : NoisyAnswers, or several
            Past noisy counts of different cells of marginals. All answers must be about the same domain.

        Returns
        -------
        Model
            Fitted model. Because the algorithm stops early, the attribute `gap` is large. This attribute bounds
            the distance between the fitted model and the best model.

        Raises
        ------
        ValueError
            If there are no answers or no total, or if the prior does not fit the domain. Also if a query is not
            the count of a cell of a marginal.
        """
        problem = DualProblem.of(history, self.total, self.alpha, self.prior, False)
        if any(part.cells is None for part in problem.terms):
            raise ValueError("the printed fit needs cells of marginals: ask Marginals(k)")
        shape = problem.domain.shape
        rng = np.random.default_rng(self.seed)
        chains = Chains(shape, problem.prior, problem.sets)
        starts = problem.first_cells
        offsets = starts[problem.set_of_terms]
        cell = np.concatenate(
            [start + part.cells for start, part in zip(offsets, problem.terms, strict=True)]
        )
        query = np.concatenate([part.query for part in problem.terms])
        if len(np.unique(cell)) < len(cell):
            raise ValueError("the printed fit needs different cells: ask each once")
        pi = np.zeros(starts[-1])
        box = np.zeros(starts[-1])
        w = np.zeros(starts[-1])
        pi[cell] = problem.pi[query]
        box[cell] = problem.box[query]
        state = chains.draw_from_prior(1, rng)[0].astype(np.int64)
        touching = np.array([copy.set_index for copy in chains.copies], np.int64)
        strides = np.zeros((len(problem.sets), len(shape)), np.int64)
        for i, axes in enumerate(problem.sets):
            strides[i, list(axes)] = chains.steps[i, : len(axes)]
        _walk(
            w, pi, box, state, np.array(shape), chains.prior, chains.start, touching, chains.first,
            starts, strides, self.gamma, self.steps, rng,
        )  # fmt: skip
        potentials = problem.by_set(w)
        chains.set_potentials(potentials)
        chains.set_proposal(problem.prior_margins())
        states = chains.draw_from_prior(_CHAINS, rng)
        for _ in range(_SWEEPS // 2):  # not counted
            chains.step(states, rng)
        sums = chains.sums()
        for _ in range(_SWEEPS):
            chains.step(states, rng, sums)
        margins = chains.margins(sums)
        weights = np.zeros(len(problem.pi))
        weights[query] = w[cell]
        gap = problem.gap(weights, margins)
        return problem.model(potentials, margins, False, gap, self.steps)


@njit(cache=True, nogil=True)
def _walk(
    w, pi, box, t, shape, prior, begin, touching, first, starts, strides, gamma, steps, rng
):
    """Run the Markov chain of section 4.2 of Chen, Zhou & Bhowmick (EDBT 2012). The weight of a cell grows
    with every step, but the code computes the new weight only when it is next needed.
    """
    last = np.zeros(w.size, np.int64)
    places = starts[:-1].copy()  # of the tuple, in the table of each set
    for i in range(places.size):
        for j in range(shape.size):
            places[i] += strides[i, j] * t[j]
    for step in range(steps):
        for k in range(shape.size):
            o = rng.integers(0, shape[k])
            if o == t[k]:
                continue
            if prior[begin[k] + o] == 0:
                continue
            change = np.log(prior[begin[k] + o] / prior[begin[k] + t[k]])
            for e in range(first[k], first[k + 1]):
                i = touching[e]
                place = places[i]
                other = place + strides[i, k] * (o - t[k])
                for at in (place, other):
                    w[at] = min(
                        max(w[at] + gamma * pi[at] * (step - last[at]), -box[at]), box[at]
                    )
                    last[at] = step
                change += w[other] - w[place]
            if change >= 0 or rng.random() < np.exp(change):
                for e in range(first[k], first[k + 1]):
                    places[touching[e]] += strides[touching[e], k] * (o - t[k])
                t[k] = o
        for place in places:
            moved = w[place] + gamma * pi[place] * (step - last[place])
            moved = min(max(moved, -box[place]), box[place])
            w[place] = min(max(moved + gamma * (pi[place] - 1), -box[place]), box[place])
            last[place] = step + 1
    for at in range(w.size):
        w[at] = min(max(w[at] + gamma * pi[at] * (steps - last[at]), -box[at]), box[at])
