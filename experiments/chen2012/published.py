"""Chen et al. 2012: what Figures 6 and 7 publish, and how joints and answers are read off it.

Maximum entropy makes a database of all cells of all bivariate marginals. Both randomised responses
change each tuple by itself, at γ = e an attribute: with nine attributes a tuple's ε is 9, under local
privacy. All methods know the number of people, which is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from experiments.chen2012.data import TOTALS, datasets
from workbench import DP, Marginals, SparseTable, Sweep
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, MaximumEntropyAsPrinted
from workbench.mechanisms import Flipping, LaplaceQueries, RetentionReplacement
from workbench.value import value
from workbench.workload import Margins, Workload

ENTROPY = "maximum entropy"
PRINTED = "SGD as printed"
NOISY = "noisy marginals"
FLAT = "everyone alike"
RESPONSES = {"retention": RetentionReplacement, "flipping": Flipping}
RIVALS = tuple(f"{name}, γ = e" for name in RESPONSES)
SERIES = {
    "MaximumEntropy": ENTROPY,
    "MaximumEntropyAsPrinted": PRINTED,
    "LaplaceQueries": NOISY,
    "EveryoneAlike": FLAT,
    "RetentionReplacement": "retention",
    "Flipping": "flipping",
}
SHORT = {
    "Gender": "Sex",
    "Education": "Educ",
    "Birthplace": "Birth",
    "Workclass": "Work",
    "Marital": "Mar",
    "MaritalStatus": "Mar",
    "Occupation": "Occ",
    "Income": "Inc",
    "Salary": "Sal",
}
Joint = Callable[[tuple[int, ...]], Float[np.ndarray, "..."] | None]


@dataclass(frozen=True)
class Database:
    """Tuples of a model, and how near its optimum the model is."""

    table: SparseTable
    gap: float
    steps: int

    @property
    def total(self) -> int:
        """Tuples."""
        return self.table.total

    def answer(self, workload: Workload) -> np.ndarray:
        """Those that queries count."""
        return self.table.answer(workload)


@value
class Synthetic:
    """A database of so many tuples of the model that is fitted to noisy answers."""

    fit: MaximumEntropy | MaximumEntropyAsPrinted
    size: int

    def __call__(self, answers: NoisyAnswers) -> Database:
        """The database."""
        model = self.fit(answers)
        return Database(model.synthetic(self.size, self.fit.seed), model.gap, model.steps)


def marginal_sweeps(figure, metric, *more: Any) -> dict[str, Sweep]:
    """A dataset each: noisy marginals, databases made of them, and what `more` makes of them."""
    bought = LaplaceQueries(DP(figure.epsilon), Marginals(2))
    sweeps = {}
    for name, data in datasets(figure.data).items():
        total = TOTALS[name]
        fits = (
            MaximumEntropy(figure.alpha, total, steps=figure.steps),
            MaximumEntropyAsPrinted(figure.alpha, total),
        )
        made = [Synthetic(fit, figure.size or total) for fit in fits]
        sweeps[f"{name}: "] = Sweep([data], [bought], [metric], figure.seeds, [*made, *more])
    return sweeps


def response_sweeps(figure, metric, runs: int) -> dict[str, Sweep]:
    """A dataset each: both responses at γ for each of the attributes."""
    power = f"^{figure.log_gamma:g}" if figure.log_gamma != 1 else ""
    sweeps = {}
    for name, data in datasets(figure.data).items():
        used = sum(n > 1 for n in data.domain.shape)
        responses = [response(DP(used * figure.log_gamma)) for response in RESPONSES.values()]
        sweeps[f"{name}: , γ = e{power}"] = Sweep([data], responses, [metric], runs)
    return sweeps


def with_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of such sweeps, with the case and the method's name."""
    names = rows.panel.str.split(": ", n=1, expand=True)
    made = rows.estimator.str.extract(r"^(?:Synthetic\(fit=)?(\w+)\(", expand=False)
    series = made.fillna(rows.mechanism).map(SERIES) + names[1]
    return rows.assign(case=names[0], series=series)


def joint_shares(estimate: Any) -> Joint:
    """Shares of any attributes' codes, as an estimate publishes them, without negative cells."""
    if isinstance(estimate, Database):
        estimate = estimate.table
    if isinstance(estimate, SparseTable):
        domain = estimate.domain
        return Margins(domain, estimate.keys, estimate.counts / estimate.total).dense
    if isinstance(estimate, NoisyAnswers):
        return _marginal_shares(estimate)
    names = estimate.domain.attributes
    return lambda axes: estimate.joint([names[k] for k in axes], clipped=True) / estimate.total


def _marginal_shares(answers: NoisyAnswers) -> Joint:
    """Of noisy bivariate tables; of three attributes None."""
    shape = answers.domain.shape
    pairs = [*combinations(range(len(shape)), 2)]
    sizes = [shape[a] * shape[b] for a, b in pairs]
    tables = np.split(answers.values, np.cumsum(sizes)[:-1])
    shares = {}
    for (a, b), noisy in zip(pairs, tables, strict=True):
        cells = np.maximum(noisy, 0).reshape(shape[a], shape[b])
        shares[a, b] = cells / cells.sum()
    return shares.get
