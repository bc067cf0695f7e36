"""Cormode et al. 2012, Figure 6(a): subset queries on commuting data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(a).
Read    from the text; the plot is not in our copy.
Open    The data, `data.py`. The filter gets the θ that goes with its size, from m, s and ε alone. The
        "small threshold" of filter-priority is not printed: θ = 5, the least of section 4.2. Nor are
        the sizes of the subsets.
Words   inaccurate = the greatest error of the four, intervals apart, at three quarters of the
        sizes; not much worse = less than 3× the error of geometric at three quarters of the sizes.
"""

from __future__ import annotations

import pandas as pd

from experiments.cormode2012.data import (
    COMMUTING,
    DATASETS,
    JUDGED,
    CommutingTables,
    published_tables,
    query_shares,
)
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import DP, RandomSubsets, claims
from workbench.claims import Finding, Printed, mean_curve
from workbench.claims.old import Claim, all_of, check_lower, check_printed
from workbench.domain import Domain
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import epsilon, queries, seeds, whole
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.plots import Panel
from workbench.value import value

SERIES = ("geometric", "filter", "priority", "filter-priority")
PAPER = {
    "relative": Printed(
        "less than 0.8 % from 5 % of the space on", 0.0, 0.008, over=(0.05, 0.5)
    )
}


def _errors(rows, metric: str, panel: str = JUDGED) -> dict[str, pd.DataFrame]:
    return {s: mean_curve(rows, "share", panel=panel, metric=metric, series=s) for s in SERIES}


def _from_5(relative: pd.DataFrame) -> Finding:
    return check_printed(PAPER["relative"], relative.loc[0.05:], percent=True)


def _subsets(rows) -> Finding:
    error = _errors(rows, ABSOLUTE)
    table = error["geometric"]
    parts = {}
    for name in ("geometric", "priority", "filter-priority"):
        parts[f"filter worse than {name}"] = check_lower(error[name], error["filter"])
    for name in ("priority", "filter-priority"):
        ratio = error[name]["mean"] / table["mean"]
        near = bool((ratio < 3).mean() >= 0.75)
        measured = f"{ratio.min():.3g}–{ratio.max():.3g}× its error"
        parts[f"{name} not much worse than geometric"] = Finding(near, measured)
        parts[f"{name} better from 20 % on"] = check_lower(
            error[name].loc[0.2:], table.loc[0.2:]
        )
    for name, relative in _errors(rows, RELATIVE).items():
        parts[f"{name} below 0.8 % from 5 % on"] = _from_5(relative)
    return all_of(parts)


CLAIMS = (
    Claim(
        "c-6a-1",
        "The filter is inaccurate; priority and filter-priority (small θ) are near geometric, and "
        "better for subsets of at least 20 % of the space; relative errors stay below 0.8 % from "
        "5 % on.",
        _subsets,
        "A sample is unbiased for the noisy table, so that its variance is the table's plus that of "
        "sampling, at every size: it can be near geometric and never better. What the filter loses is "
        "a fixed 0.9 % of every sum; up to 0.2 % of the space it is still the best summary.",
    ),
)


@value
class Fig6a(CommutingTables, Figure):
    """Random subsets of the pairs of places, from a thousandth to half of them."""

    title = "Subset queries on commuting data"
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(a)"
    quick = {"seeds": 5, "queries": 200}
    claims = CLAIMS
    shown = ("size",)

    epsilon: float = epsilon(0.1)
    size: int = whole(3_000_000, "s on the twin; elsewhere the same share", unit="cells")
    theta: int = whole(5, "θ of filter-priority", unit="counts", kind=UNPRINTED)
    data: tuple[str, ...] = published_tables(*COMMUTING)
    shares: tuple[float, ...] = query_shares(
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5), "subsets"
    )
    queries: int = queries(1000)
    seeds: int = seeds(50)

    def mechanisms(self, name: str) -> list:
        """The full table, and every summary of cells."""
        budget = DP(self.epsilon)
        size = self.summary_size(DATASETS[name].domain)
        return [
            GeometricHistogram(budget),
            HighPassFilter(budget, size=size),
            PrioritySampling(budget, size=size),
            PrioritySampling(budget, size=size, theta=self.theta),
        ]

    def metrics(self, domain: Domain) -> list:
        """Absolute and relative errors of random subsets."""
        subsets = [RandomSubsets(size, self.queries) for size in self.query_sizes(domain)]
        return [m(x) for m in (MeanAbsoluteError, MedianRelativeError) for x in subsets]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors above, relative errors below, a column a dataset at hand."""
        above = []
        below = []
        for name in rows.panel.unique():
            above.append(Panel(name, {"panel": name, "metric": ABSOLUTE}, "share"))
            printed = PAPER["relative"] if name == JUDGED else ()
            where = {"panel": name, "metric": RELATIVE}
            below.append(Panel("", where, "share", printed=printed))
        return above + below

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The relative error that the paper prints, beside ours on every dataset."""
        lines = []
        for panel in rows.panel.unique():
            for series, relative in _errors(rows, RELATIVE, panel).items():
                lines.append((f"{panel}: {series}", PAPER["relative"], _from_5(relative)))
        return claims.compare_with_paper(*lines)
