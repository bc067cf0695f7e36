"""Comparison of an answer bank that buys all pairs of attributes with AIM, which chooses what to measure. It
extends the figures of Chen et al. (2012).

Paper   This is not a figure of a paper. It compares kernel PCA and maximum entropy, the approaches of Chen,
        Zhou & Bhowmick, EDBT 2012, as the answer bank uses them, with AIM (McKenna, Mullins, Sheldon &
        Miklau, PVLDB 2022).
Read    We read nothing from a paper, and test no statement.
Open    The data have nine attributes, and neighbouring values are merged so that one model can represent all
        pairs. All methods spend the same ρ, the largest within (ε, δ), and protect one person who is added or
        removed. The bank buys all cells of all pairs at once with Gaussian noise, and answers questions by
        either method. Its maximum entropy uses squared instead of absolute residuals, and a prior with the
        weight of 100 people. AIM gets all pairs as its workload, and 16 rounds per attribute. The bank uses
        the number of people, which is public, and AIM estimates it. Triples, and ranges on five attributes,
        are not bought.
Found   On simulated people (quick run), attributes depend only weakly on each other, and all three have about
        the same error. For example, it is 77 to 82 people for triples at ε = 0.1. On Census Income (two
        runs), the bank has smaller errors on pairs. For example, at ε = 0.1 it has 133 people by kernel PCA
        and 137 by maximum entropy, and AIM has 178. On triples, maximum entropy has the smallest error (178
        people), then AIM (210) and kernel PCA (237). For ε of 0.3 or more, the error of kernel PCA on triples
        is much larger than those of both others. The comparison assumes that the pairs are wanted from the
        start, as AIM needs. It also assumes that one model can represent all pairs, which favours the bank.
Words   none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.chen2012._published import NOISY
from experiments.chen2012.data import TWIN, data_parameter, datasets, people_of
from experiments.chen2012.shared import ENTROPY, KERNEL, fewer_codes
from workbench import DP, ZCDP, Domain, Marginals, RandomMarginalRanges, SparseTable, Sweep
from workbench.compiled import pd
from workbench.datasets.synthetic import OfDataset
from workbench.estimates import NoisyAnswers
from workbench.figures import Figure
from workbench.figures.fields import queries, seeds
from workbench.figures.plots import Panel
from workbench.inference.answer_bank import METHODS, AnswerBank
from workbench.mechanisms import AIM, GaussianQueries
from workbench.queries import Recipe
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, value

PAIRS, TRIPLES, RANGES = "pairs", "triples", "ranges"
SERIES = {**dict(zip(METHODS, (KERNEL, ENTROPY), strict=True)), "": NOISY}


class Bank:
    """Answer bank that uses one method for all questions."""

    def __init__(self, answers: NoisyAnswers, total: float, by: str):
        self.domain = answers.domain
        self._fits = AnswerBank(answers, total)
        self._by = by

    def answer(self, workload: Recipe) -> np.ndarray:
        """Return the bank's answers to questions."""
        return self._fits.recall(workload, self._by, error=False).values


@value
class FewerCodes(OfDataset):
    """Dataset in which `codes` neighbouring values of each attribute are merged."""

    dataset: Any
    codes: int

    @property
    def domain(self) -> Domain:
        """Domain of the merged values."""
        return self.load().domain

    def load(self) -> SparseTable:
        """Return the table of the merged values."""
        return fewer_codes(self.dataset.load(), self.codes)


@value
class Recall:
    """Step after a release that makes an answer bank with one method, for a public number of people."""

    by: str
    total: int

    def __call__(self, answers: NoisyAnswers) -> Bank:
        """Return the bank."""
        return Bank(answers, float(self.total), self.by)


@value
class Errors:
    """Metric: mean absolute error for each kind of question. For noisy answers, only the pairs are compared,
    because they were asked.
    """

    queries: int

    def asked(self) -> dict[str, Any]:
        """Return the questions, by their kind."""
        ranges = RandomMarginalRanges(self.queries, 5, seed=1)
        return {PAIRS: Marginals(2), TRIPLES: Marginals(3), RANGES: ranges}

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per kind of question."""
        refuse_private(truth)
        rows = []
        for kind, recipe in self.asked().items():
            if isinstance(estimate, NoisyAnswers) and kind != PAIRS:
                continue
            workload = recipe.on(truth.domain)
            off = np.abs(estimate.answer(workload) - truth.answer(workload))
            rows.append({"asked": kind, "metric": "error (people)", "value": float(off.mean())})
        return pd.DataFrame(rows)


@value
class Modern(Figure):
    """Errors of pairs, triples and ranges by ε, for an answer bank and for AIM."""

    title = "An answer bank that buys all pairs, beside AIM"
    page = "no figure of the paper: beside Chen et al., EDBT 2012"
    sized_by = ("people",)
    quick = {"data": (TWIN,), "people": 50_000, "seeds": 2}
    columns = 3

    data: tuple[str, ...] = data_parameter()
    epsilons: tuple[float, ...] = unprinted_number((0.03, 0.1, 0.3, 1.0), "ε", 1e-6, 1000)
    delta: float = unprinted_number(1e-9, "δ", 0, 0.1, strict=True)
    codes: int = unprinted(40, "number of neighbouring codes that are merged")
    people: int = effort(500_000, "number of people in the stand-in")
    queries: int = queries(200, "number of random ranges")
    seeds: int = seeds(10)

    def tables(self) -> dict[str, FewerCodes]:
        """Return the datasets with merged values."""
        found = datasets(self.data, self.people)
        return {name: FewerCodes(data, self.codes) for name, data in found.items()}

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: a bank and AIM for each dataset."""
        pairs = Marginals(2)
        budgets = [ZCDP.within(DP(epsilon, self.delta)) for epsilon in self.epsilons]
        metrics = [Errors(self.queries)]
        sweeps = {}
        for name, table in self.tables().items():
            bought = [GaussianQueries(rho, pairs) for rho in budgets]
            methods = [Recall(by, people_of(name, table.dataset)) for by in METHODS]
            sweeps[f"{name}: bank"] = Sweep([table], bought, metrics, self.seeds, methods)
            rivals = [AIM(rho, pairs) for rho in budgets]
            sweeps[f"{name}: AIM"] = Sweep([table], rivals, metrics, self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with ε instead of ρ, the name of the dataset (`case`), and one curve
        per method.
        """
        rows = super().rows(store)
        within = {ZCDP.within(DP(e, self.delta)).rho: e for e in self.epsilons}
        names = rows.panel.str.split(": ", n=1, expand=True)
        by = rows.estimator.fillna("").str.extract(r"by='([\w ]+)'", expand=False).fillna("")
        return rows.assign(
            epsilon=rows.rho.map(within),
            delta=self.delta,
            case=names[0],
            series=by.map(SERIES).where(names[1] == "bank", names[1]),
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels, with one row per dataset and one column per kind of question."""
        return [
            Panel(f"{kind}, {case}", {"case": case, "asked": kind}, "epsilon", log="xy")
            for case in rows.case.unique()
            for kind in (PAIRS, TRIPLES, RANGES)
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of mean absolute errors, with one row per dataset, kind of question and method, and
        one column per ε.
        """
        means = rows.groupby(["case", "asked", "series", "epsilon"], sort=False).value.mean()
        table = means.unstack().map(format_number)
        return table.rename_axis(["dataset", "asked", "method"]).add_prefix("ε = ")
