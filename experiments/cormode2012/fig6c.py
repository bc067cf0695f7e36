"""Cormode et al. 2012, Figure 6(c): what consistency does for dyadic ranges of commuting data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.5, Figure 6(c).
Read    from the text; the plot is not in our copy.
Open    Data, sizes, θ and queries are those of our Figure 6(b). Filter-priority is made consistent
        after the filter and before the sample, as section 3 says.
Words   about 10 % = 5 to 15 % off the error at three quarters of the range sizes, by either technique.
"""

from __future__ import annotations

import pandas as pd

from experiments.cormode2012.data import DATASETS, JUDGED
from experiments.cormode2012.fig6b import Fig6b
from experiments.cormode2012.shared import (
    ABSOLUTE,
    BOTH,
    CUT,
    FILTER,
    consistency_summaries,
    error_cut,
    mostly_as_printed,
)
from workbench import claims
from workbench.claims import Finding, Printed, mean_curve
from workbench.claims.old import Claim, all_of
from workbench.plots import Panel
from workbench.value import value

PAPER = {"cut": Printed.approximately("about 10 %", 0.1, 0.05)}


def _cut(rows, series: str, panel: str = JUDGED) -> Finding:
    cuts = mean_curve(rows, "share", panel=panel, series=series, metric=CUT)
    return mostly_as_printed(PAPER["cut"], cuts)


def _gains(rows) -> Finding:
    return all_of({f"{series}: about 10 %": _cut(rows, series) for series in (FILTER, BOTH)})


CLAIMS = (
    Claim(
        "c-6c-1",
        "Consistency improves the accuracy of filtering and filter-priority by about 10 %.",
        _gains,
        "The filter does, more on short ranges. Filter-priority gains four times as much, since after "
        "consistency fewer nodes than s are left: what it gains is that it is not sampled any more.",
    ),
)


@value
class Fig6c(Fig6b):
    """Data and ranges of Figure 6(b); the filters with and without consistency."""

    title = "Consistency of dyadic ranges on commuting data"
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(c)"
    claims = CLAIMS

    def mechanisms(self, name: str) -> list:
        """The filters, with and without."""
        domain = DATASETS[name].domain
        return consistency_summaries(domain, self.summary_size(domain), self.epsilon)

    def rows(self, store) -> pd.DataFrame:
        """Errors, and what consistency cuts, as the metric `ErrorCut`."""
        errors = super().rows(store)
        return pd.concat([errors, error_cut(errors, "share")], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors above, what is cut below, a column a dataset at hand."""
        above = []
        below = []
        for name in rows.panel.unique():
            above.append(Panel(name, {"panel": name, "metric": ABSOLUTE}, "share"))
            printed = PAPER["cut"] if name == JUDGED else ()
            where = {"panel": name, "metric": CUT}
            below.append(Panel("", where, "share", log="x", printed=printed))
        return above + below

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The cut that the paper prints, beside ours on every dataset."""
        lines = []
        for panel in rows.panel.unique():
            for series in (FILTER, BOTH):
                lines.append((f"{panel}: {series}", PAPER["cut"], _cut(rows, series, panel)))
        return claims.compare_with_paper(*lines)
