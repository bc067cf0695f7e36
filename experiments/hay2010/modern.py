"""Comparison of two ways to release sorted counts: isotonic regression, and numbers of large counts
(prevalences). It extends the figures of Hay et al. (2010).

Paper   This is not a figure of a paper. It compares S̃ and S̄ of Hay, Rastogi, Miklau & Suciu, PVLDB 2010,
        section 3, with a release of our own. Our release adds noise to φ(r), the number of counts of at least
        r, and fits a descending sequence of integers. It is only a reference for the anonymised histograms of
        Suresh, NeurIPS 2019, whose algorithm we have not seen.
Read    We read nothing from a paper, and test no statement.
Open    All releases are ε-DP for adding or removing one unit, with the true l1. For example, a friendship
        changes two degrees. The limit R on counts is public, and no count is larger. The paper measures
        squared errors. The sum of absolute errors is the number of records by which two sorted histograms
        differ.
Found   (Quick runs.) In absolute error, prevalences are better by a factor of 2.5 to 4.3 for ε of 0.1 or more
        on NetTrace and the social network, and for ε of 0.3 or more on keywords. In squared error, which the
        paper uses, isotonic regression is always better, by a factor of 4 or more. Prevalences have large
        errors on the few largest counts, because there is noise on each r up to R.
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
    """Metric: sum of |estimate − truth| over all cells, in counts."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare all cells of the domain with the true counts."""
        refuse_private(truth)
        cells = np.arange(truth.domain.size)
        each = Ranges(cells, cells + 1)
        return float(np.abs(estimate.answer(each) - truth.answer(each)).sum())


@value
class Modern(Figure):
    """Absolute and squared errors of sorted counts by ε."""

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
        """Return one sweep (plan of runs) per dataset."""
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
        """Return the figure's results, with the paper's names for the curves."""
        rows = super().rows(store)
        return rows.assign(series=rows.estimator.map(ESTIMATORS))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels, with one column per dataset. Absolute errors are in the first row, and
        squared errors in the second.
        """
        return [
            Panel(name, {"panel": name, "metric": metric}, "epsilon")
            for metric in ERRORS.values()
            for name in rows.panel.unique()
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return all results, with metric names that label the axes."""
        return rows.assign(metric=rows.metric.map(ERRORS))

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the errors of the other methods divided by the error of the isotonic sequence
        S̄. It has one row per dataset and ε.
        """
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
