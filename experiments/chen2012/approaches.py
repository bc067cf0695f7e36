"""Errors of the two approaches of Chen et al. (2012), kernel PCA and maximum entropy, by their trade-off α:
for several α, for a chosen α, and with new answers. The module also finds the best α.

The best α has the smallest mean logarithm of errors over runs. It is unknown if it may be one of the larger
values whose fits did not converge.
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
    """Settings of both approaches that an experiment tries.

    `alphas` contains the values of α for kernel PCA, in records. `weights` contains the largest weights of
    maximum entropy in nats, αN/b, where b is the scale of the noise in the answers. If there are no weights,
    only kernel PCA is run.
    """

    alphas: tuple[float, ...]
    weights: tuple[float, ...]
    chains: int
    steps: int
    folds: int

    def entropy(self, history: NoisyAnswers, total: float, prior: Any) -> Iterator[Model]:
        """Yield a maximum-entropy model for each weight."""
        effort = dict(chains=self.chains, steps=self.steps, tolerance=TOLERANCE)
        for weight in self.weights:
            alpha = weight * float(history.scales[0]) / total
            yield MaximumEntropy(alpha, total, prior, **effort)(history)

    def chosen(self, history: NoisyAnswers, total: float, prior: Any) -> dict[str, Any]:
        """Return both approaches at the α with the smallest cross-validated error."""
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
    """Return the value with the smallest cross-validated error. For a given history, `fits` returns one
    estimate per value.
    """
    if len(values) == 1:
        return values[0]
    return values[int(np.argmin(cross_validated_errors(history, fits, folds)))]


def expected_squares(
    past: Eigenqueries, truth: SparseTable, asked: Workload, alphas: Sequence[float]
) -> Float[np.ndarray, "alphas queries"]:
    """Return the expected squared errors of kernel PCA (bias² plus variance) over the noise of past answers.

    Answers of kernel PCA are linear in the noise. So the answers that are computed from true past answers are
    the expected ones.
    """
    queries = past.project(asked)
    exact = truth.answer(asked)
    squares = [(queries.values(a) - exact) ** 2 + queries.sampling(a) ** 2 for a in alphas]
    return np.stack(squares)


def error_of(estimate: Any, asked: Workload, exact: np.ndarray) -> dict[str, float]:
    """Return the error of an estimate, with numbers that say how close it is to its optimum."""
    return {"value": rmse(estimate.answer(asked), exact)} | convergence(estimate)


@value
class ErrorsOverAlpha:
    """Metric: errors on past queries and on two kinds of new queries, for every α of both approaches.

    The errors of kernel PCA are expected values over the noise of past answers. At α = ∞, kernel PCA is
    unbiased. The α of maximum entropy is given as a weight, αN/b.
    """

    tried: Approaches
    queries: int

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """Return the metric's values, with one row per prior, approach, α and kind of queries."""
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
    """Metric: errors of both approaches at the α that cross-validation chooses. For kernel PCA, it also gives
    the error at its best α.
    """

    tried: Approaches
    queries: int

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """Return the metric's values, with one row per approach, prior and kind of queries, with numbers that
        say how close a fit is to its optimum.
        """
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
    """Metric: errors on new queries that are also bought, computed from their own answers alone, and from
    past and new answers together. α is chosen by cross-validation.
    """

    tried: Approaches

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """Return the metric's values, with one row per prior, approach and set of answers."""
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
    """Return the results without those at α = ∞."""
    return curve[np.isfinite(curve.alpha)]


def best_alpha(curve) -> float | None:
    """Return the α with the smallest error. Return None if an α whose fit did not converge may be better."""
    grid = finite(curve)
    known = grid[~(grid.groupby("alpha").lacks.transform("max") > TOLERANCE)]
    if known.empty:
        return None
    best = np.log(known.value).groupby(known.alpha).mean().idxmin()
    return None if best == known.alpha.max() < grid.alpha.max() else best


def errors_at(curve, alpha: float) -> pd.Series:
    """Return the errors at one α, by seed."""
    return curve[curve.alpha == alpha].set_index("seed").value


def gain_at_best(curves) -> pd.Series | None:
    """Return the error without the prior divided by the error with the prior, each at its best α, by seed.
    Return None if a best α is unknown.
    """
    errors = {}
    for prior, curve in curves.groupby("prior"):
        alpha = best_alpha(curve)
        if alpha is None:
            return None
        errors[prior] = errors_at(curve, alpha)
    return errors[WITHOUT] / errors[WITH]


def against(ours: pd.Series, other: pd.Series | float) -> Intervals:
    """Return numbers divided by other numbers, by seed."""
    frames = []
    for name, values in {"ours": ours, "other": other + 0 * ours}.items():
        frames.append(values.rename("value").reset_index().assign(series=name, point=""))
    return paired_ratios(pd.concat(frames), "ours", "other", "point")


def unknown(curves) -> Finding:
    """Return an undecided finding for curves whose best α is unknown."""
    return unless_far(curves.lacks.max(), Finding(None, "the best α is not known"))


def check_boost(curves, level: float) -> Finding:
    """Check whether the prior reduces the smallest error of an approach."""
    gain = gain_at_best(curves)
    return unknown(curves) if gain is None else check_lower(against(1 / gain, 1.0), level)


def check_especially_kernel(curves, level: float) -> Finding:
    """Check whether the prior reduces the smallest error of kernel PCA more than that of maximum entropy."""
    gains = {name: gain_at_best(own) for name, own in curves.groupby("approach")}
    if any(gain is None for gain in gains.values()):
        return unknown(curves)
    return check_lower(against(gains[ENTROPY], gains[KERNEL]), level)


def check_vanishes(curves, level: float) -> Finding:
    """Check whether, at the largest α, the prior changes errors by at most a factor of 1.25, and by less than
    at the best α.
    """
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
    """Return the factor by which errors grow if the best α of past queries is used for new queries, or the
    other way round. The larger of the two factors is returned.
    """
    alphas = [best_alpha(past), best_alpha(new)]
    if None in alphas:
        return None, max(past.lacks.max(), new.lacks.max())
    costs = [
        against(errors_at(past, alphas[1]), errors_at(past, alphas[0])),
        against(errors_at(new, alphas[0]), errors_at(new, alphas[1])),
    ]
    return max(costs, key=lambda each: float(each.at(0.5).estimate.iloc[0])), np.nan


def check_same_alpha(rows, level: float) -> Finding:
    """Check whether, in most cases, one α is good for both past and new queries. Errors at the best α of one
    kind may be at most 1.25 times the smallest errors of the other kind.

    If both best values of α are the same, this factor is 1 in all runs.
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
    """Return factors without a confidence interval if they are 1 in all runs."""
    return exact(costs.at(0.5).estimate) if (costs.at(0.5).estimate == 1).all() else costs
