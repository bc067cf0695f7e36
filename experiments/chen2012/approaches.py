"""Chen et al. 2012: errors of both approaches over α, at a chosen α, and from new answers as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from experiments.chen2012.data import PAST, RECIPES, Bank
from experiments.chen2012.shared import ENTROPY, KERNEL, TOLERANCE, convergence
from workbench import SparseTable
from workbench.compiled import pd
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, cross_validated_errors, select_alpha
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.model import Model
from workbench.queries import Workload
from workbench.trials.metrics import rmse
from workbench.trials.metrics.answers import refuse_private
from workbench.value import Float, value

ALONE = "new"
UNION = "past and new"
LEAST = f"{KERNEL}, at the least true error"


@value
class Approaches:
    """What both approaches try.

    `alphas` are those of kernel PCA, in tuples. `weights` are the largest weights of maximum entropy, in
    nats: αN/b, with b the noise of the answers. Without weights there is kernel PCA alone.
    """

    alphas: tuple[float, ...]
    weights: tuple[float, ...]
    chains: int
    steps: int
    folds: int

    def entropy(self, history: NoisyAnswers, total: float, prior: Any) -> Iterator[Model]:
        """A model at each weight."""
        effort = dict(chains=self.chains, steps=self.steps, tolerance=TOLERANCE)
        for weight in self.weights:
            alpha = weight * float(history.scales[0]) / total
            yield MaximumEntropy(alpha, total, prior, **effort)(history)

    def chosen(self, history: NoisyAnswers, total: float, prior: Any) -> dict[str, Any]:
        """Both approaches at the α of the least cross-validated error."""
        grid = dict(low=self.alphas[0], high=self.alphas[-1], points=len(self.alphas), refine=0)
        selected = select_alpha(history, self.folds, total=total, prior=prior, **grid)

        def fits(rest: NoisyAnswers) -> list[Model]:
            return list(self.entropy(rest, total, prior))

        weight = choose(self.weights, history, fits, self.folds)
        (model,) = replace(self, weights=(weight,)).entropy(history, total, prior)
        return {KERNEL: selected, ENTROPY: model}


def choose(
    values: Sequence[float], history: NoisyAnswers, fits: Callable, folds: int = 5
) -> float:
    """The value of the least cross-validated error; `fits` makes an estimate at each from a history."""
    if len(values) == 1:
        return values[0]
    return values[int(np.argmin(cross_validated_errors(history, fits, folds)))]


def expected_squares(
    past: Eigenqueries, truth: SparseTable, asked: Workload, alphas: Sequence[float]
) -> Float[np.ndarray, "alphas queries"]:
    """Squared errors of kernel PCA, expected over the noise of past answers: bias² and variance.

    Answers are linear in that noise, so that those of true past answers are their expectations.
    """
    queries = past.project(asked)
    exact = truth.answer(asked)
    squares = [(queries.values(a) - exact) ** 2 + queries.sampling(a) ** 2 for a in alphas]
    return np.stack(squares)


@value
class ErrorsOverAlpha:
    """Errors on past queries and on new ones of both kinds, at every α of both approaches.

    Those of kernel PCA are expected over the noise of the past answers; it is unbiased at α = ∞. α of
    maximum entropy is told as a weight, αN/b.
    """

    tried: Approaches
    queries: int

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """A row a prior, approach, α and kind of queries."""
        refuse_private(truth)
        total = float(truth.total)
        asked = {PAST: bank.history.workload}
        asked |= {kind: bank.unbought(kind, self.queries) for kind in RECIPES}
        exact = {kind: truth.answer(workload) for kind, workload in asked.items()}
        rows = []
        for label, prior in bank.priors.items():
            past = Eigenqueries.of(bank.noiseless(truth), total, prior)
            alphas = (*self.tried.alphas, inf)
            for kind, workload in asked.items():
                squares = expected_squares(past, truth, workload, alphas).mean(axis=1)
                for alpha, error in zip(alphas, np.sqrt(squares).tolist(), strict=True):
                    row = {"approach": KERNEL, "prior": label, "asked": kind, "alpha": alpha}
                    rows.append(row | {"value": error} | convergence(None))
            models = self.tried.entropy(bank.history, total, prior)
            for weight, model in zip(self.tried.weights, models, strict=True):
                for kind, workload in asked.items():
                    row = {"approach": ENTROPY, "prior": label, "asked": kind, "alpha": weight}
                    row["value"] = rmse(model.answer(workload), exact[kind])
                    rows.append(row | convergence(model))
        return pd.DataFrame(rows).assign(metric="RMSE", deviation=bank.deviation)


@value
class ErrorsOfBoth:
    """Errors of both approaches, at the α that held-out answers choose; kernel PCA's at its best α too."""

    tried: Approaches
    queries: int

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """A row an approach, prior and kind of queries; fits that take steps say how near they came."""
        refuse_private(truth)
        queries = bank.queries(self.queries)
        exact = {kind: truth.answer(workload) for kind, workload in queries.items()}
        rows = []
        for label, prior in bank.priors.items():
            estimates = self.tried.chosen(bank.history, float(truth.total), prior)
            for kind, workload in queries.items():
                where = {"prior": label, "kind": kind}
                for name, estimate in estimates.items():
                    error = rmse(estimate.answer(workload), exact[kind])
                    rows.append(
                        where | {"approach": name, "value": error} | convergence(estimate)
                    )
                answers = estimates[KERNEL].past.answer_at(workload, self.tried.alphas)
                errors = [rmse(own, exact[kind]) for own in answers]
                rows.append(
                    where | {"approach": LEAST, "value": min(errors)} | convergence(None)
                )
        sizes = {"attributes": len(truth.domain.shape), "tuples": int(truth.total)}
        return pd.DataFrame(rows).assign(metric="RMSE", deviation=bank.deviation, **sizes)


@value
class ErrorsOfUnion:
    """Errors on new queries that are bought too, from their own answers and from all, at a chosen α."""

    tried: Approaches

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """A row a prior, approach and history."""
        refuse_private(truth)
        new = bank.new.workload
        exact = truth.answer(new)
        histories = {ALONE: bank.new, UNION: NoisyAnswers.history([bank.history, bank.new])}
        rows = []
        for label, prior in bank.priors.items():
            for name, history in histories.items():
                for approach, estimate in self.tried.chosen(
                    history, float(truth.total), prior
                ).items():
                    row = {"approach": approach, "prior": label, "history": name}
                    row["value"] = rmse(estimate.answer(new), exact)
                    rows.append(row | convergence(estimate))
        deviation = float(bank.new.variances[0] ** 0.5)
        return pd.DataFrame(rows).assign(metric="RMSE", deviation=deviation)
