"""Chen et al. 2012: errors of both approaches over α, at a chosen α and from new answers, and the best α.

A best α is that of the least error in the mean over runs, of logarithms. It is not known where it may be
among larger ones whose fits did not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from experiments.chen2012.data import PAST, RECIPES, WITH, WITHOUT, Bank
from experiments.chen2012.shared import ENTROPY, KERNEL, TOLERANCE, convergence, unless_far
from workbench import SparseTable
from workbench.compiled import pd
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, cross_validated_errors, select_alpha
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.model import Model
from workbench.queries import Workload
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    Intervals,
    all_of,
    check_between,
    check_lower,
    exact,
    paired_ratios,
)
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


def error_of(estimate: Any, asked: Workload, exact: np.ndarray) -> dict[str, float]:
    """The error of an estimate, and how near its optimum it is."""
    return {"value": rmse(estimate.answer(asked), exact)} | convergence(estimate)


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
                    rows.append(row | error_of(model, workload, exact[kind]))
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
                    error = error_of(estimate, workload, exact[kind])
                    rows.append(where | {"approach": name} | error)
                answers = estimates[KERNEL].past.answer_at(workload, self.tried.alphas)
                least = {"value": min(rmse(own, exact[kind]) for own in answers)}
                rows.append(where | {"approach": LEAST} | least | convergence(None))
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
                chosen = self.tried.chosen(history, float(truth.total), prior)
                for approach, estimate in chosen.items():
                    row = {"approach": approach, "prior": label, "history": name}
                    rows.append(row | error_of(estimate, new, exact))
        deviation = float(bank.new.variances[0] ** 0.5)
        return pd.DataFrame(rows).assign(metric="RMSE", deviation=deviation)


def finite(curve) -> pd.DataFrame:
    """Without the unbiased answers."""
    return curve[np.isfinite(curve.alpha)]


def best_alpha(curve) -> float | None:
    """The α of least error; None where one that did not converge may be better."""
    grid = finite(curve)
    known = grid[~(grid.groupby("alpha").lacks.transform("max") > TOLERANCE)]
    if known.empty:
        return None
    best = np.log(known.value).groupby(known.alpha).mean().idxmin()
    return None if best == known.alpha.max() < grid.alpha.max() else best


def errors_at(curve, alpha: float) -> pd.Series:
    """By seed."""
    return curve[curve.alpha == alpha].set_index("seed").value


def gain_at_best(curves) -> pd.Series | None:
    """Error without prior over error with it, each at its best α, by seed."""
    errors = {}
    for prior, curve in curves.groupby("prior"):
        alpha = best_alpha(curve)
        if alpha is None:
            return None
        errors[prior] = errors_at(curve, alpha)
    return errors[WITHOUT] / errors[WITH]


def against(ours: pd.Series, other: pd.Series | float) -> Intervals:
    """Numbers by seed over others."""
    frames = []
    for name, values in {"ours": ours, "other": other + 0 * ours}.items():
        frames.append(values.rename("value").reset_index().assign(series=name, point=""))
    return paired_ratios(pd.concat(frames), "ours", "other", "point")


def unknown(curves) -> Finding:
    """Of curves whose best α is not known."""
    return unless_far(curves.lacks.max(), Finding(None, "the best α is not known"))


def check_boost(curves, level: float) -> Finding:
    """Whether the prior lowers the least error of an approach."""
    gain = gain_at_best(curves)
    return unknown(curves) if gain is None else check_lower(against(1 / gain, 1.0), level)


def check_especially_kernel(curves, level: float) -> Finding:
    """Whether it does so more for kernel PCA than for maximum entropy."""
    gains = {name: gain_at_best(own) for name, own in curves.groupby("approach")}
    if any(gain is None for gain in gains.values()):
        return unknown(curves)
    return check_lower(against(gains[ENTROPY], gains[KERNEL]), level)


def check_vanishes(curves, level: float) -> Finding:
    """Whether at the largest α the prior changes errors by 1.25× at most, and less than at the best."""
    largest = finite(curves).alpha.max()
    there = curves[curves.alpha == largest]
    errors = {prior: errors_at(own, largest) for prior, own in there.groupby("prior")}
    gain = errors[WITHOUT] / errors[WITH]
    best = gain_at_best(curves)
    if best is None or there.lacks.max() > TOLERANCE:
        return unknown(curves)
    change = np.exp(np.abs(np.log(gain)))
    at_best = np.exp(np.abs(np.log(best)))
    parts = {
        "gone": partial(check_between, against(gain, 1.0), low=1 / ALIKE, high=ALIKE),
        "less than at the best α": partial(check_lower, against(change, at_best)),
    }
    return all_of(parts, level)


def cost(past, new) -> tuple[Intervals | None, float]:
    """What the best α of past queries costs new ones, or the other way round: the more of the two."""
    alphas = [best_alpha(past), best_alpha(new)]
    if None in alphas:
        return None, max(past.lacks.max(), new.lacks.max())
    costs = [
        against(errors_at(past, alphas[1]), errors_at(past, alphas[0])),
        against(errors_at(new, alphas[0]), errors_at(new, alphas[1])),
    ]
    return max(costs, key=lambda each: float(each.at(0.5).estimate.iloc[0])), np.nan


def check_same_alpha(rows, level: float) -> Finding:
    """Whether in most cases one α is good for past queries and for new ones.

    Where both best α are the same the cost is 1, whatever the runs.
    """
    found = {}
    lacks = np.nan
    for name, own in rows.groupby(["approach", "prior", "bought"], sort=False):
        past = own[own.asked == PAST]
        for asked in RECIPES:
            found[(*name, asked)], far = cost(past, own[own.asked == asked])
            lacks = np.fmax(lacks, far)

    def at(level: float) -> pd.DataFrame:
        unknown = pd.DataFrame({"estimate": [1.0], "low": 0.0, "high": np.inf, "runs": 1})
        points = [
            unknown if each is None else exact_if_one(each).at(level) for each in found.values()
        ]
        return pd.concat(points, keys=found, names=["approach", "prior", "bought", "asked"])

    found_often = check_between(Intervals(at), level, high=ALIKE, share=OFTEN, words="the same")
    return found_often if found_often.holds is not None else unless_far(lacks, found_often)


def exact_if_one(costs: Intervals) -> Intervals:
    """A cost that is 1 in all runs, as both α are the same, has no interval."""
    return exact(costs.at(0.5).estimate) if (costs.at(0.5).estimate == 1).all() else costs
