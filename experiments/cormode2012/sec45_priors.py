"""The prior of Dirichlet synthesis: what it draws of the records, and the least that conditions allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, isfinite
from typing import Any

from workbench.compiled import pd
from workbench.mechanisms import DirichletSynthesis

CONDITION = "condition"


def prior_shares(
    dataset: Any, made: Mapping[str, Sequence[DirichletSynthesis]]
) -> pd.DataFrame:
    """What share of the records the prior is expected to draw, A/(A + n), by series and ε."""
    k = dataset.domain.size
    shares = []
    for series, mechanisms in made.items():
        for mechanism in mechanisms:
            weight = k * mechanism.prior(k)
            shares.append(
                {
                    "series": series,
                    "epsilon": mechanism.budget.epsilon,
                    "delta": mechanism.budget.delta,
                    "mechanism": repr(mechanism),
                    "value": weight / (weight + mechanism.total),
                }
            )
    return _rows(shares, dataset, panel="prior", metric="PriorShare")


def least_priors(dataset: Any, made: Sequence[DirichletSynthesis]) -> pd.DataFrame:
    """The least α that a condition allows, infinite where there is none.

    The closed form bounds a tail, which is 0 once no count can exceed (e^ε − 1)·α, by δ·(e^ε − 2)
    over what is positive: below ln 2 nothing meets it, above that α does.
    """
    rows = []
    for mechanism in made:
        x = mechanism.budget.epsilon
        closed = mechanism.pure_alpha if exp(x) > 2 else inf
        least = {"closed form": closed, "exact tails": mechanism.prior(dataset.domain.size)}
        rows += [
            {"series": series, "epsilon": x, "value": alpha, "allowed": isfinite(alpha)}
            for series, alpha in least.items()
        ]
    return _rows(rows, dataset, panel=CONDITION, metric="LeastPrior")


def _rows(made: list[dict], dataset: Any, **columns: str) -> pd.DataFrame:
    frame = pd.DataFrame(made).assign(dataset=repr(dataset), **columns)
    return frame.assign(seed=0, truth_public=True)
