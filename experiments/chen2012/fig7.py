"""Figure 7 of Chen et al. (2012): errors of range queries on k attributes, answered from published data.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.2, Figure 7.
Read    The plot is not in our copy, and the text prints neither errors nor the values of k. We run all k.
Open    Statements are tested on the stand-in. A query has k random attributes, and intervals that are uniform
        among all non-empty ones. All runs have the same queries. Data, methods and α are those of Figure 6.
        Randomised responses give unbiased answers. We do not truncate answers below 0 or above the total.
        "Everyone alike" answers each query by its share of the cells, without using the data. It is our
        addition for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments._fields import unprinted
from experiments.chen2012._published import PublishedFigure
from experiments.chen2012.data import TWIN
from experiments.chen2012.shared import convergence
from workbench import Domain, SparseTable, Sweep
from workbench.compiled import pd
from workbench.estimates import NoisyAnswers
from workbench.figures.fields import queries
from workbench.figures.plots import Panel
from workbench.queries import RandomMarginalRanges, Workload
from workbench.trials.metrics import rmse
from workbench.trials.metrics.answers import refuse_private
from workbench.value import value


@dataclass(frozen=True)
class Uniform:
    """Estimate with the same number of people in every cell."""

    domain: Domain
    total: float = 1.0

    def answer(self, workload: Workload) -> np.ndarray:
        """Return the share of all cells that each query counts."""
        return workload.cells(self.domain) / float(self.domain.size)


@value
class EveryoneAlike:
    """Step after a release that ignores the released answers. It shows the errors without any data."""

    def __call__(self, answers: NoisyAnswers) -> Uniform:
        """Return the uniform estimate on the domain of the answers, whose values are not used."""
        return Uniform(answers.domain)


@value
class RangeErrors:
    """Metric: root mean squared error of range queries on k attributes, for several k. Answers are scaled to
    the public total.
    """

    dims: tuple[int, ...]
    queries: int

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per k. Noisy marginals have no rows, because they cannot
        answer these queries.
        """
        refuse_private(truth)
        rows = []
        for k in () if isinstance(estimate, NoisyAnswers) else self.dims:
            ranges = RandomMarginalRanges(self.queries, k, seed=k).on(truth.domain)
            answers = truth.total / estimate.total * estimate.answer(ranges)
            rows.append({"dims": k, "value": rmse(answers, truth.answer(ranges))})
        return pd.DataFrame(rows).assign(metric="RMSE", **convergence(estimate))


OF = ("each attribute", "the tuple")  # what the γ of a randomized response is for


@value
class Fig7(PublishedFigure):
    """Errors of range queries by the number of attributes k, for the methods of Figure 6 of Chen et al.
    (2012).
    """

    title = "Error of range queries on k attributes"
    headline = "Maximum entropy is far ahead on range queries over many attributes"
    rests_on = ("n-7.1",)
    main = 1
    page = "Chen et al., EDBT 2012, section 5.2, Figure 7"
    quick = {
        "data": (TWIN,),
        "size": 20_000,
        "people": 50_000,
        "steps": 50,
        "queries": 10,
        "seeds": 2,
    }

    dims: tuple[int, ...] = unprinted(tuple(range(1, 10)), "attributes k", 1, 9)
    queries: int = queries(150, "number of queries of each k")

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: databases from noisy pair tables, and randomised responses."""
        return self.sweeps_of(RangeErrors(self.dims, self.queries), EveryoneAlike())

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels, first with γ for an attribute, then with γ for a record. The synthetic
        stand-in, on which statements are tested, is first.
        """
        return [
            Panel(f"{case}, γ = e for {of}", {"case": case, "of": of}, "dims", log="y")
            for of in OF
            for case in sorted(rows.case.unique(), key=lambda case: case != TWIN)
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the randomised responses by what their γ is for, each time with the other methods."""
        a_tuple = rows.series.str.endswith("a tuple")
        responses = rows.series.str.contains(", γ")
        named = rows.assign(series=rows.series.str.partition(",")[0])
        return pd.concat(
            named[~responses | (a_tuple == (of == OF[1]))].assign(of=of) for of in OF
        )
