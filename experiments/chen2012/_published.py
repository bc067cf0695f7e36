"""Definitions that Figures 6 and 7 of Chen et al. (2012) share: the publication methods, and joint
distributions and answers from what they publish.

Maximum entropy fits a model to the noisy cells of all bivariate marginals, and draws a database from it. The
two randomised responses change each record by itself, under local privacy, with γ = e. Here γ is for each
attribute, so that ε is 9 for a record with nine attributes, or it is for the whole record. All methods use
the number of people, which the paper prints. If a fit did not converge, no statement is tested on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from experiments._fields import effort, unprinted_number
from experiments.chen2012.data import TWIN, data_parameter, datasets, people_of
from experiments.chen2012.shared import ENTROPY, TOLERANCE, convergence, of_case, unless_far
from workbench import DP, Marginals, SparseTable, Sweep
from workbench.compiled import pd
from workbench.estimates import NoisyAnswers
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, seeds
from workbench.inference import MaximumEntropy, MaximumEntropyAsPrinted
from workbench.mechanisms import Flipping, LaplaceQueries, RetentionReplacement
from workbench.queries import Workload
from workbench.trials import claims
from workbench.trials.claims import EVERYWHERE, Finding, all_of, check_lower, paired_ratios
from workbench.value import value

PRINTED = "SGD as printed"
NOISY = "noisy marginals"
FLAT = "everyone alike"
RESPONSES = {"retention": RetentionReplacement, "flipping": Flipping}
GAMMAS = {"an attribute's": ", γ = e", "a tuple's": ", γ = e a tuple"}
RIVALS = {of: [name + gamma for name in RESPONSES] for of, gamma in GAMMAS.items()}
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
    """Records that were drawn from a model, with numbers that say how close the model is to its optimum."""

    table: SparseTable
    gap: float
    steps: int
    lacks: float

    @property
    def total(self) -> int:
        """Number of records."""
        return self.table.total

    def answer(self, workload: Workload) -> np.ndarray:
        """Return the answers to queries, counted in the records."""
        return self.table.answer(workload)


@value
class Synthetic:
    """Step after a release that fits a model to noisy answers, and draws `size` records from it."""

    fit: MaximumEntropy | MaximumEntropyAsPrinted
    size: int

    def __call__(self, answers: NoisyAnswers) -> Database:
        """Return the drawn database."""
        model = self.fit(answers)
        return Database(model.synthetic(self.size, self.fit.seed).table, **convergence(model))


@value
class PublishedFigure(Figure):
    """Base class of figures about maximum entropy from noisy pair tables, and about randomised responses."""

    sized_by = ("size", "people")

    data: tuple[str, ...] = data_parameter()
    epsilon: float = epsilon(1.0)
    log_gamma: float = number(1.0, "ln γ, of an attribute or a tuple", 1e-3, 100)
    alpha: float = unprinted_number(3e-4, "α of maximum entropy", strict=True)
    size: int | None = effort(None, "number of records (none: as many as people)")
    people: int = effort(500_000, "number of people in the stand-in")
    steps: int = effort(3150, "largest number of steps of maximum entropy")
    seeds: int = seeds(10)

    def sweeps_of(self, metric: Any, *more: Any) -> dict[str, Sweep]:
        """Return the runs for each dataset: noisy marginals, databases drawn from fitted models, the steps in
        `more`, and both randomised responses.
        """
        bought = LaplaceQueries(DP(self.epsilon), Marginals(2))
        power = f"^{self.log_gamma:g}" if self.log_gamma != 1 else ""
        sweeps = {}
        for name, data in datasets(self.data, self.people).items():
            total = people_of(name, data)
            fits = (
                MaximumEntropy(self.alpha, total, steps=self.steps, tolerance=TOLERANCE),
                MaximumEntropyAsPrinted(self.alpha, total),
            )
            made = [Synthetic(fit, self.size or total) for fit in fits]
            used = sum(n > 1 for n in data.domain.shape)
            sweeps[f"{name}: "] = Sweep([data], [bought], [metric], self.seeds, [*made, *more])
            for gamma, times in zip(GAMMAS.values(), (used, 1), strict=True):
                responses = [r(DP(times * self.log_gamma)) for r in RESPONSES.values()]
                label = f"{name}: {gamma.replace('e', f'e{power}', 1)}"
                sweeps[label] = Sweep([data], responses, [metric], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with one curve per method."""
        return with_methods(super().rows(store))


def if_converged(rows: pd.DataFrame, finding: Finding) -> Finding:
    """Return the finding about maximum entropy, or an undecided finding if a fit did not converge."""
    return unless_far(rows[rows.series == ENTROPY].lacks.max(), finding)


def over_gammas(rows: pd.DataFrame, level: float, check: Callable) -> Finding:
    """Repeat a check on the synthetic stand-in, for γ = e of each attribute and γ = e of the whole record."""
    own = of_case(rows, TWIN)
    return claims.over(
        "γ", tuple(GAMMAS), lambda of, level: check(own, RIVALS[of], level), level
    )


def check_below_rivals(
    rows: pd.DataFrame, rivals: list[str], level: float, by: str, share: float = EVERYWHERE
) -> Finding:
    """Check whether maximum entropy has smaller errors than each randomised response, if its fits converged."""

    def below(rival: str, level: float) -> Finding:
        return check_lower(paired_ratios(rows, ENTROPY, rival, by), level, share)

    parts = {f"below {rival}": partial(below, rival) for rival in rivals}
    return if_converged(rows, all_of(parts, level))


def with_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results with the name of the dataset (`case`) and of the method (`series`)."""
    names = rows.panel.str.split(": ", n=1, expand=True)
    made = rows.estimator.str.extract(r"^(?:Synthetic\(fit=)?(\w+)\(", expand=False)
    series = made.fillna(rows.mechanism).map(SERIES) + names[1]
    return rows.assign(case=names[0], series=series)


def joint_shares(estimate: Any) -> Joint:
    """Return a function that computes the joint distribution of some attributes from an estimate. Negative
    cells become 0.
    """
    if isinstance(estimate, Database):
        estimate = estimate.table
    if isinstance(estimate, SparseTable):
        domain = estimate.domain
        codes = domain.codes(estimate.keys)
        return partial(_table_shares, domain.shape, codes, estimate.counts / estimate.total)
    if isinstance(estimate, NoisyAnswers):
        return _marginal_shares(estimate)
    names = estimate.domain.attributes
    return lambda axes: estimate.joint([names[k] for k in axes], clipped=True) / estimate.total


def _table_shares(shape, codes, weights, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Return the joint distribution of some attributes in a table of records."""
    own = [shape[axis] for axis in axes]
    cells = np.ravel_multi_index(codes[:, list(axes)].T, own)
    return np.bincount(cells, weights, prod(own)).reshape(own)


def _marginal_shares(answers: NoisyAnswers) -> Joint:
    """Return a function that computes joint distributions from noisy bivariate tables. For three attributes,
    its result is None.
    """
    shape = answers.domain.shape
    pairs = [*combinations(range(len(shape)), 2)]
    sizes = [shape[a] * shape[b] for a, b in pairs]
    tables = np.split(answers.values, np.cumsum(sizes)[:-1])
    shares = {}
    for (a, b), noisy in zip(pairs, tables, strict=True):
        cells = np.maximum(noisy, 0).reshape(shape[a], shape[b])
        shares[a, b] = cells / cells.sum()
    return shares.get
