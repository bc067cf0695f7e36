"""Figure 6(c) of Cormode et al. (2012): how consistency changes the errors of dyadic ranges on jobs by
workplace and home. Consistency drops each released node with an ancestor that was not released.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: sections 3 and 4.5, Figure 6(c).
Read    We read all numbers from the text, because the plot is not in our copy.
Open    Data, sizes and queries are those of our Figure 6(b). The paper does not print the θ of
        filter-priority sampling. We use several fractions of the filter's θ. The tree is made consistent
        after the filter and before the sample, as section 3 says.
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
    """Errors on the data and ranges of Figure 6(b) of Cormode et al. (2012), for filters with and without
    consistency.
    """

    title = "Consistency of dyadic ranges on commuting data"
    headline = ""
    rests_on = ()
    columns = 2
    sharey = False
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(c)"

    factors: tuple[float, ...] = unprinted_number(FACTORS, FACTOR, 0, 10, strict=True)

    def mechanisms(self, name: str) -> list:
        """Return the filters for a table, with and without consistency."""
        return self.summaries(name).with_consistency()

    def rows(self, store) -> pd.DataFrame:
        """Return the errors, and the part of the error that consistency removes (the metric `ErrorCut`)."""
        errors = self.errors(store)
        return pd.concat([errors, error_cut(errors, "share")], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: errors, and the part of the error that consistency removes, with one
        row of panels per dataset.
        """
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
        """Return the results that the figure draws. Filter-priority sampling is drawn only for the
        largest θ.
        """
        return super().to_draw(largest_factor(rows))
