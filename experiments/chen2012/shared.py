"""Chen et al. 2012: people by fewer attributes, what Figures 2 to 4 measure, and checks they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.chen2012.data import WITH, WITHOUT, Bank
from workbench import Domain, SparseTable
from workbench.claims import ALIKE, Finding, Intervals, decide, format_number, mean_curve
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, MaximumEntropy, cross_validated_errors
from workbench.metrics import rmse
from workbench.metrics.refusal import refuse_private
from workbench.value import value

KERNEL = "kernel PCA"
ENTROPY = "maximum entropy"


@value
class ErrorsOverAlpha:
    """Errors of kernel PCA on past queries and on new ranges, at every α."""

    alphas: tuple[float, ...]
    queries: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior, kind of queries and α."""
        refuse_private(truth)
        errors = []
        for prior, weights in bank.priors.items():
            eigen = KernelPCA(1.0, float(truth.total), weights)(bank.history).eigen
            for kind, workload in bank.queries(self.queries).items():
                answers = eigen.project(workload)
                exact = truth.answer(workload)
                for alpha in self.alphas:
                    error = rmse(answers.values(alpha), exact)
                    errors.append((prior, kind, alpha, error))
        rows = pd.DataFrame(errors, columns=["prior", "kind", "alpha", "value"])
        return rows.assign(metric="RMSE", deviation=bank.deviation)


@value
class FirstAttributes:
    """People by the first attributes of a dataset."""

    dataset: IPUMSTwin
    count: int
    truth_public = True

    def load(self) -> SparseTable:
        """The table."""
        table = self.dataset.load()
        return table.project(table.domain.attributes[: self.count])


def fewer_attributes(table: SparseTable, d: int) -> SparseTable:
    """The same people by their d largest attributes."""
    shape = table.domain.shape
    axes = sorted(np.argsort([-n for n in shape], kind="stable")[:d].tolist())
    names = tuple(table.domain.attributes[axis] for axis in axes)
    domain = Domain(names, tuple(shape[axis] for axis in axes))
    codes = np.stack([table.domain.column(table.keys, name) for name in names], axis=1)
    return _recoded(table, domain, codes)


def fewer_codes(table: SparseTable, codes: int) -> SparseTable:
    """The same people with so many codes of each attribute made one, but two left at least."""
    widths = [min(codes, n // 2) for n in table.domain.shape]
    shape = tuple(-(-n // w) for n, w in zip(table.domain.shape, widths, strict=True))
    domain = Domain(table.domain.attributes, shape)
    return _recoded(table, domain, table.domain.codes(table.keys) // widths)


def _recoded(table: SparseTable, domain: Domain, codes: np.ndarray) -> SparseTable:
    keys = domain.keys(codes)
    public = table.truth_public
    return SparseTable.from_keys(domain, keys, table.counts, table.bound, truth_public=public)


class Method(NamedTuple):
    """A way to answer: from a history and several α to an estimate at each, and the α to try."""

    fit: Callable[[NoisyAnswers, Sequence[float]], list]
    alphas: Sequence[float]


@value
class ErrorsOfBoth:
    """Errors of both approaches, at the α that held-out answers choose.

    `weights` are the largest weights of maximum entropy that are tried, in nats: αN/b.
    """

    alphas: tuple[float, ...]
    weights: tuple[float, ...]
    queries: int
    chains: int
    steps: int

    def __call__(self, truth: SparseTable, bank: Bank) -> pd.DataFrame:
        """A row a method, prior and kind of queries; fits that take steps say how near they came."""
        refuse_private(truth)
        queries = bank.queries(self.queries)
        exact = {kind: truth.answer(workload) for kind, workload in queries.items()}
        errors = []
        for label, prior in bank.priors.items():
            for name, method in self.methods(bank.history, float(truth.total), prior).items():
                alpha = choose_alpha(bank.history, *method)
                (estimate,) = method.fit(bank.history, [alpha])
                for kind, workload in queries.items():
                    error = rmse(estimate.answer(workload), exact[kind])
                    row = {"method": f"{name}, {label}", "kind": kind, "alpha": alpha}
                    errors.append(row | {"value": error} | convergence(estimate))
        rows = pd.DataFrame(errors)
        sizes = {"attributes": len(truth.domain.shape), "tuples": int(truth.total)}
        return rows.assign(metric="RMSE", deviation=bank.deviation, **sizes)

    def methods(
        self, history: NoisyAnswers, total: float, prior: tuple | None
    ) -> dict[str, Method]:
        """Both approaches, by name."""

        def kernel(history: NoisyAnswers, alphas) -> list:
            fitted = KernelPCA(1.0, total, prior)(history)
            return [fitted.with_alpha(alpha) for alpha in alphas]

        def entropy(history: NoisyAnswers, alphas) -> list:
            effort = dict(chains=self.chains, steps=self.steps)
            fit = partial(MaximumEntropy, total=total, prior=prior, **effort)
            return [fit(alpha)(history) for alpha in alphas]

        scale = float(history.scales[0])
        return {
            ENTROPY: Method(entropy, [x * scale / total for x in self.weights]),
            KERNEL: Method(kernel, self.alphas),
        }


def choose_alpha(history: NoisyAnswers, fit: Callable, alphas: Sequence[float]) -> float:
    """The α of the least cross-validated error."""
    if len(alphas) == 1:
        return alphas[0]
    errors = cross_validated_errors(history, partial(fit, alphas=alphas))
    return alphas[int(np.argmin(errors))]


def convergence(fitted) -> dict[str, float]:
    """The duality gap in nats that a fit reached, and in how many steps; NaN where there is none."""
    return {name: getattr(fitted, name, np.nan) for name in ("gap", "steps")}


def share_of_runs(good: np.ndarray) -> Intervals:
    """In how large a share of all runs something is so, by Clopper and Pearson."""
    yes = int(np.sum(good))
    runs = len(good)

    def at(level: float) -> pd.DataFrame:
        from scipy.special import betaincinv

        tail = (1 - level) / 2
        low = betaincinv(yes, runs - yes + 1, tail) if yes else 0.0
        high = betaincinv(yes + 1, runs - yes, 1 - tail) if yes < runs else 1.0
        return pd.DataFrame({"estimate": [yes / runs], "low": low, "high": high, "runs": runs})

    return Intervals(at, ratios=False)


def best_inside(error: pd.DataFrame, times: float = 1.0) -> Finding:
    """Whether the least error is at neither end; the largest α has `times` as much, or more."""
    best = error["mean"].idxmin()
    least = error.loc[best]
    first = error.iloc[0]
    last = error.iloc[-1]
    measured = f"least {format_number(least['mean'])} at α = {format_number(best)}, "
    measured += f"{format_number(first['mean'] / least['mean'])}× and "
    measured += f"{format_number(last['mean'] / least['mean'])}×"
    if best in (error.index[0], error.index[-1]) or last.high < times * least.low:
        return Finding(False, measured)
    apart = first.low > least.high and last.low > times * least.high
    leans = last["mean"] >= times * least["mean"]
    return Finding(True if apart else None, measured, if_unsettled=leans)


def near_least(error: pd.DataFrame, alpha: float) -> Finding:
    """Whether the error at α is within 1.25× of the least."""
    at = error.loc[alpha]
    least = error.loc[error["mean"].idxmin()]
    ratio = at["mean"] / least["mean"]
    measured = f"{format_number(ratio)}× at α = {format_number(alpha)}, best {format_number(least.name)}"
    return Finding(decide(ratio <= ALIKE, at.low > ALIKE * least.high), measured)


def gains(rows: pd.DataFrame, case: str, panel: str) -> pd.DataFrame:
    """Error without prior over error with it, seed by seed, and its interval at every α."""
    errors = rows[(rows.case == case) & (rows.panel == panel)]
    errors = errors.pivot_table("value", ["alpha", "seed"], "series")
    return mean_curve((errors[WITHOUT] / errors[WITH]).rename("value").reset_index(), "alpha")


def prior_gain(rows, case: str, panel: str) -> Finding:
    """Whether a prior helps most at the smallest α, and no more at the largest."""
    gain = gains(rows, case, panel)
    first = gain.iloc[0]
    last = gain["mean"].iloc[-1]
    largest = gain["mean"].max()
    measured = (
        f"{format_number(first['mean'])}× at the smallest α, at most {format_number(largest)}× "
    )
    measured += (
        f"(α = {format_number(gain['mean'].idxmax())}), {format_number(last)}× at the largest"
    )
    vanishes = 1 / ALIKE <= last <= ALIKE
    if not vanishes or first.high < 1 or largest > ALIKE * first["mean"]:
        return Finding(False, measured)
    return Finding(True if first.low > 1 else None, measured, if_unsettled=first["mean"] > 1)
