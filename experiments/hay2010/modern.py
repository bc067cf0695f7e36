"""Beside Hay et al. 2010: sorted counts by isotonic regression, and by way of prevalences.

Paper   none. S̃ and S̄ of Hay, Rastogi, Miklau & Suciu, PVLDB 2010, section 3, and a release of ours: noise on
        φ(r), the number of counts of at least r, to which falling integers are fitted. It is a reference line
        for the anonymised histograms of Suresh, NeurIPS 2019, whose algorithm we have not seen.
Read    nothing; no claim is judged.
Open    All are ε-DP for adding or removing one unit, with the l1 that is true: a friendship moves two degrees.
        The limit R on counts is public, and no count is larger. The paper measures squared errors. Absolute
        ones add up to the number of records by which a sorted histogram differs.
Found   (quick runs) In absolute error prevalences are better from ε = 0.1 on for NetTrace and the social
        network, by 2.5 to 4.3 times, and from ε = 0.3 on for keywords. In squared error, the paper's, isotonic
        regression is better everywhere, by 4 times and more. Prevalences err on the few largest counts, because
        noise lies on each r up to R.
Words   none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._fields import unprinted
from experiments.hay2010.data import INFERRED, NOISY, at_hand, datasets
from workbench import DP, Ranges, SparseTable, Sweep
from workbench.compiled import pd
from workbench.datasets import Ranked
from workbench.figures import Figure
from workbench.figures.fields import epsilons, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import UnattributedHistogram
from workbench.trials.metrics import SquaredError
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, value

PREVALENCE = "prevalence"
ESTIMATORS = {"noisy": NOISY, "isotonic": INFERRED, "prevalence": PREVALENCE}
ERRORS = {
    "AbsoluteError": "absolute error (counts)",
    "SquaredError": "squared error (counts²)",
}


@value
class AbsoluteError:
    """Sum over all cells of |estimate − truth|, in counts."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare all cells of the domain."""
        refuse_private(truth)
        cells = np.arange(truth.domain.size)
        each = Ranges(cells, cells + 1)
        return float(np.abs(estimate.answer(each) - truth.answer(each)).sum())


@value
class Modern(Figure):
    """Errors of sorted counts against ε, absolute and squared."""

    title = "Sorted counts: isotonic regression and prevalences"
    page = "no figure of the paper: beside Hay et al., PVLDB 2010, section 3"
    quick = {"seeds": 5}
    columns = 3
    shown = ("epsilon",)

    data: tuple[str, ...] = datasets("Social Network", "NetTrace", "keywords")
    epsilons: tuple[float, ...] = epsilons((0.01, 0.03, 0.1, 0.3, 1.0))
    largest: int = unprinted(500_000, "public limit R on counts", unit="counts")
    seeds: int = seeds(50)

    def sweeps(self) -> dict[str, Sweep]:
        """A panel a dataset."""
        mechanisms = [
            UnattributedHistogram(DP(epsilon), how, largest=self.largest)
            for epsilon in self.epsilons
            for how in ESTIMATORS
        ]
        metrics = [AbsoluteError(), SquaredError()]
        return {
            name: Sweep([Ranked(dataset)], mechanisms, metrics, self.seeds)
            for name, dataset in at_hand(self.data).items()
        }

    def rows(self, store) -> pd.DataFrame:
        """Series are called as in the paper."""
        rows = super().rows(store)
        return rows.assign(series=rows.estimator.map(ESTIMATORS))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A column per dataset: absolute errors above, squared ones below."""
        return [
            Panel(name, {"panel": name, "metric": metric}, "epsilon")
            for metric in ERRORS.values()
            for name in rows.panel.unique()
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """All of them, with the names of axes."""
        return rows.assign(metric=rows.metric.map(ERRORS))

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many times the error of S̄ the others have: a row a dataset and ε, columns by error."""
        means = rows.pivot_table(
            index=["panel", "epsilon"], columns=["metric", "series"], values="value"
        )
        table = {
            (words, series): means[metric][series] / means[metric][INFERRED]
            for metric, words in ERRORS.items()
            for series in (PREVALENCE, NOISY)
        }
        times = pd.DataFrame(table).map(lambda x: f"{format_number(x)}×")
        return times.rename_axis(["dataset", "ε"])
