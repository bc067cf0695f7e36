"""Chen et al. 2012, Figure 3: what cross-validation estimates, and what it is an estimate of.

All errors are expected over the noise of the past answers. By Theorem 4 an estimate is then the squared
error at what is held out, from the rest.
"""

from __future__ import annotations

import numpy as np

from experiments.chen2012.approaches import expected_squares
from experiments.chen2012.data import RECIPES, Bank
from workbench.compiled import pd
from workbench.inference.eigenqueries import Eigenqueries
from workbench.queries import Workload
from workbench.trials.metrics.answers import refuse_private
from workbench.value import value

ESTIMATED = ", cross-validated"
PART = ", from a stage's queries"
GENERAL = ", from general queries"
DRAWN = "RMSE"


@value
class CrossValidated:
    """Errors on ranges drawn anew, from all answers and from those of a stage; and their estimates.

    Some were bought, as some of those were that a stage holds out.
    """

    alphas: tuple[float, ...]
    queries: int
    folds: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior, α, and error: true, from a stage, cross-validated."""
        refuse_private(truth)
        history = bank.noiseless(truth)
        new = _drawn_anew(bank, self.queries)
        order = np.random.default_rng(bank.seed).permutation(len(bank))
        errors = {}
        for name, prior in bank.priors.items():
            whole = Eigenqueries.of(history, float(truth.total), prior)
            errors[name] = expected_squares(whole, truth, new, self.alphas)
            held_out = []
            stages = []
            for part in np.array_split(order, self.folds):
                rest = history[np.setdiff1d(order, part)]
                stage = Eigenqueries.of(rest, float(truth.total), prior)
                asked = history.workload[part]
                held_out.append(expected_squares(stage, truth, asked, self.alphas))
                stages.append(expected_squares(stage, truth, new, self.alphas))
            errors[name + ESTIMATED] = np.concatenate(held_out, axis=1)
            errors[name + PART] = np.concatenate(stages, axis=1)
        return _rows(errors, self.alphas)


@value
class FromGeneral:
    """True errors of new ranges, from general queries."""

    alphas: tuple[float, ...]
    queries: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior and α."""
        refuse_private(truth)
        new = _drawn_anew(bank, self.queries)
        errors = {}
        for name, prior in bank.priors.items():
            past = Eigenqueries.of(bank.noiseless(truth), float(truth.total), prior)
            errors[name + GENERAL] = expected_squares(past, truth, new, self.alphas)
        return _rows(errors, self.alphas)


def _drawn_anew(bank: Bank, count: int) -> Workload:
    """Ranges by the law of the past ones, which may repeat them."""
    return RECIPES["ranges"](count, seed=bank.seed + 1).on(bank.history.domain)


def _rows(errors: dict[str, np.ndarray], alphas: tuple[float, ...]) -> pd.DataFrame:
    """The roots of mean squares, a row a curve and α."""
    rows = [
        {"prior": name, "metric": DRAWN, "alpha": alpha, "value": error}
        for name, squares in errors.items()
        for alpha, error in zip(alphas, np.sqrt(squares.mean(axis=1)).tolist(), strict=True)
    ]
    return pd.DataFrame(rows)
