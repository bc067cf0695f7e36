"""Chen et al. 2012, Figure 3: what cross-validation estimates, and what it is an estimate of."""

from __future__ import annotations

import numpy as np

from experiments.chen2012.data import Bank
from workbench.compiled import pd
from workbench.inference import select_alpha
from workbench.inference.kernel_ridge import ridge_or_eigenqueries
from workbench.trials.metrics import rmse
from workbench.trials.metrics.answers import refuse_private
from workbench.value import value

ESTIMATED = ", cross-validated"
PART = ", from a stage's queries"
GENERAL = ", from general queries"
DRAWN = "RMSE"
CHOSEN = "chosen"  # the metric of what a fresh split says of the chosen α


@value
class CrossValidated:
    """Errors on new ranges, the true ones from all and from a stage's answers; and their estimates."""

    alphas: tuple[float, ...]
    queries: int
    folds: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior, α, and error: true, cross-validated; and that of a fresh split."""
        refuse_private(truth)
        new = bank.unbought("ranges", self.queries)
        exact = truth.answer(new)
        grid = dict(low=self.alphas[0], high=self.alphas[-1], points=len(self.alphas), refine=0)
        order = np.random.default_rng(bank.seed).permutation(len(bank))
        stage = bank.history[np.sort(order[len(bank) // self.folds :])]
        errors = []
        for name, prior in bank.priors.items():
            known = dict(total=float(truth.total), prior=prior)
            selected = select_alpha(bank.history, self.folds, seed=bank.seed, **known, **grid)
            past = {name: selected.past}
            past[name + PART] = ridge_or_eigenqueries(stage, **known, largest=self.alphas[-1])
            for series, own in past.items():
                for alpha, answers in zip(
                    self.alphas, own.answer_at(new, self.alphas), strict=True
                ):
                    errors.append((series, DRAWN, alpha, rmse(answers, exact) ** 2))
            for alpha, squared in zip(self.alphas, selected.errors.tolist(), strict=True):
                errors.append((name + ESTIMATED, DRAWN, alpha, squared))
            errors.append((name, CHOSEN, selected.alpha, selected.error))
        rows = pd.DataFrame(errors, columns=["prior", "metric", "alpha", "squared"])
        return rows.assign(value=np.sqrt(rows.squared.clip(lower=0)))


@value
class FromGeneral:
    """True errors of new ranges, from general queries."""

    alphas: tuple[float, ...]
    queries: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior and α."""
        refuse_private(truth)
        new = bank.unbought("ranges", self.queries)
        exact = truth.answer(new)
        errors = []
        for name, prior in bank.priors.items():
            known = dict(total=float(truth.total), prior=prior, largest=self.alphas[-1])
            answers = ridge_or_eigenqueries(bank.history, **known).answer_at(new, self.alphas)
            errors += [
                (name, alpha, rmse(own, exact))
                for alpha, own in zip(self.alphas, answers, strict=True)
            ]
        rows = pd.DataFrame(errors, columns=["prior", "alpha", "value"])
        return rows.assign(prior=rows.prior + GENERAL, metric=DRAWN, squared=rows.value**2)
