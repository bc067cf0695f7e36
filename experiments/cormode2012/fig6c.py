"""Cormode et al. 2012, Figure 6(c): what consistency does for dyadic ranges of commuting data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.5, Figure 6(c).
Read    from the text; the plot is not in our copy.
Open    Data, sizes and queries are those of our Figure 6(b). θ of filter-priority is not printed:
        factors of the filter's. It is made consistent after the filter and before the sample, as
        section 3 says.
"""

from __future__ import annotations

from experiments._fields import unprinted_number
from experiments.cormode2012.data import PAPERS
from experiments.cormode2012.fig6b import Fig6b
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CUT,
    FACTOR,
    FACTORS,
    error_cut,
    largest_factor,
)
from workbench.compiled import pd
from workbench.figures.plots import Panel
from workbench.trials.claims import Printed
from workbench.value import value

PAPER = {"cut": Printed("about 10 %, or more", 0.05, 1.0)}


@value
class Fig6c(Fig6b):
    """Data and ranges of Figure 6(b); the filters with and without consistency."""

    title = "Consistency of dyadic ranges on commuting data"
    headline = ""
    rests_on = ()
    columns = 2
    sharey = False
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(c)"

    factors: tuple[float, ...] = unprinted_number(FACTORS, FACTOR, 0, 10, strict=True)

    def mechanisms(self, name: str) -> list:
        """The filters, with and without."""
        return self.summaries(name).with_consistency()

    def rows(self, store) -> pd.DataFrame:
        """Errors, and what consistency cuts, as the metric `ErrorCut`."""
        errors = self.errors(store)
        return pd.concat([errors, error_cut(errors, "share")], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors and what is cut, a line per dataset."""
        grid = []
        for name in rows.panel.unique():
            printed = PAPER["cut"] if name in PAPERS else ()
            where = {"panel": name, "metric": CUT}
            grid += [
                Panel(name, {"panel": name, "metric": ABSOLUTE}, "share"),
                Panel(f"{name}: error cut", where, "share", log="x", printed=printed),
            ]
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Of filter-priority the largest factor."""
        return super().to_draw(largest_factor(rows))
