"""Chen et al. 2012, Figure 7: range queries on k attributes, from what was published.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.2, Figure 7.
Read    from the text; the plot is not in our copy, and neither errors nor the range of k are printed.
Open    Random sets of k attributes, intervals uniform among all that are not empty; the same queries in
        all runs. Data, methods and α are those of Figure 6. Responses answer without bias; an answer
        below 0 or above the total is not cut. "Everyone alike" answers each query by its share of the
        cells, with no look at data; it is ours, for comparison.
Words   the RMSE of a run is over its queries, in tuples. Lowest for every k = below retention and below
        flipping at γ = e at each k, intervals apart, on each dataset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.chen2012.data import CENSUS, TWIN
from experiments.chen2012.published import (
    ENTROPY,
    RIVALS,
    marginal_sweeps,
    response_sweeps,
    with_methods,
)
from experiments.chen2012.shared import convergence
from workbench import Domain, SparseTable, Sweep
from workbench.claims import Finding, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.estimates import NoisyAnswers
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import (
    epsilon,
    number,
    queries,
    seeds,
    selection,
    whole,
    wholes,
)
from workbench.metrics import rmse
from workbench.metrics.refusal import refuse_private
from workbench.plots import Panel
from workbench.value import value
from workbench.workload import RandomMarginalRanges, Workload


@dataclass(frozen=True)
class Uniform:
    """The same number of people in every cell."""

    domain: Domain
    total: float = 1.0

    def answer(self, workload: Workload) -> np.ndarray:
        """Shares of the cells."""
        return workload.cells(self.domain) / float(self.domain.size)


@value
class EveryoneAlike:
    """What is known before anything is bought."""

    def __call__(self, answers: NoisyAnswers) -> Uniform:
        """On the domain of the answers, whose values are not used."""
        return Uniform(answers.domain)


@value
class RangeErrors:
    """RMSE of range queries on k attributes, for several k; answers add up to the public total."""

    dims: tuple[int, ...]
    queries: int

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """A row a k; none of noisy marginals, which have no answers."""
        refuse_private(truth)
        rows = []
        for k in () if isinstance(estimate, NoisyAnswers) else self.dims:
            ranges = RandomMarginalRanges(self.queries, k, seed=k).on(truth.domain)
            answers = truth.total / estimate.total * estimate.answer(ranges)
            rows.append({"dims": k, "value": rmse(answers, truth.answer(ranges))})
        return pd.DataFrame(rows).assign(metric="RMSE", **convergence(estimate))


def _lowest(rows) -> Finding:
    parts = {}
    for case in rows.case.unique():
        ours = mean_curve(rows, "dims", case=case, series=ENTROPY)
        for rival in RIVALS:
            theirs = mean_curve(rows, "dims", case=case, series=rival)
            parts[f"{case}, below {rival}"] = check_lower(ours, theirs, 1)
    return all_of(parts)


CLAIMS = (
    Claim(
        "n-7",
        "Maximum entropy has the lowest RMSE for k-D range queries, at every k.",
        _lowest,
        "Every mean is lower, by 2 times and more; on Census Income errors of responses vary so "
        "much with the queries of a run that three runs do not set all intervals apart.",
    ),
)


@value
class Fig7(Figure):
    """The methods of Figure 6, on range queries."""

    title = "Error of range queries on k attributes"
    page = "Chen et al., EDBT 2012, section 5.2, Figure 7"
    quick = {"data": (CENSUS,), "size": 60_000, "steps": 150, "queries": 50, "seeds": 2}
    claims = CLAIMS

    data: tuple[str, ...] = selection((CENSUS, TWIN), (CENSUS, TWIN), "datasets", kind=EFFORT)
    epsilon: float = epsilon(1.0)
    log_gamma: float = number(1.0, "ln γ, the ε of a response for one attribute", 1e-3, 100)
    alpha: float = number(3e-4, "α of maximum entropy", strict=True, kind=UNPRINTED)
    dims: tuple[int, ...] = wholes((1, 2, 3, 4, 5), "k, attributes", 1, 9, kind=UNPRINTED)
    size: int | None = whole(None, "tuples of a database; None: as many as people", kind=EFFORT)
    steps: int = whole(750, "steps of maximum entropy, at most", kind=EFFORT)
    queries: int = queries(150, "queries of each k")
    seeds: int = seeds(3)

    def sweeps(self) -> dict[str, Sweep]:
        """Databases of noisy pair tables, and responses at γ."""
        errors = RangeErrors(self.dims, self.queries)
        marginals = marginal_sweeps(self, errors, EveryoneAlike())
        return marginals | response_sweeps(self, errors, self.seeds)

    def rows(self, store) -> pd.DataFrame:
        """Methods are the series."""
        return with_methods(super().rows(store))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One a dataset."""
        return [Panel(case, {"case": case}, "dims", log="y") for case in rows.case.unique()]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """RMSE, a row a dataset and method, a column a k."""
        methods = rows.groupby(["case", "series"], sort=False).size().index
        means = rows.groupby(["case", "series", "dims"]).value.mean().unstack().reindex(methods)
        means.columns = [f"k = {k}" for k in means.columns]
        return means.map(format_number).rename_axis(["dataset", "method"])
