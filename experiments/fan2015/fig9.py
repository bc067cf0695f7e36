"""Fan & Jin 2015, Figure 9: how many of the K most popular items are found, K = 1 … 1000.

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 9.
Read    from the text; of the plots our copy has the axes only.
Open    as in Figure 7, with which it shares its runs. K = 1, 2, 3, 5, 10, … 1000. Ties at the K-th
        place count by what a random order would give.
"""

from __future__ import annotations

from typing import Any

from experiments.fan2015._counts import TOPS, FiveMethods, count_metrics, drawn_rows
from experiments.fan2015._five_methods import DRAWN, IN_TITLES, PRECISION, TEN
from experiments.fan2015._paper import paper_first
from experiments.fan2015.data import one_law
from experiments.fan2015.precision import AHEAD, LAST
from workbench.compiled import pd
from workbench.figures.fields import whole
from workbench.figures.plots import Panel
from workbench.value import value


@value
class Fig9(FiveMethods):
    """Precision over K, a panel a dataset."""

    title = "Finding the K most popular items"
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 9"
    height = 1.7
    main = 4
    sharey = True

    tops: tuple[int, ...] = whole(TOPS, "K", unit="items")

    def metrics(self) -> list[Any]:
        """With the precision of every K."""
        return count_metrics(self.tops, TEN)

    def rows(self, store) -> pd.DataFrame:
        """The precision of the K highest item counts, for every K."""
        rows = super().rows(store)
        chosen = (rows.metric == PRECISION) & (rows.of == "items")
        return rows[chosen].astype({"top": int}).reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """The paper's datasets with ε of the whole release, then all others."""
        return [
            Panel(
                f"{name}, {IN_TITLES[reading]}",
                {"panel": name, "reading": reading},
                "top",
                log="x",
            )
            for reading in DRAWN
            for name in paper_first(rows)
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The five methods, on twins as built."""
        return drawn_rows(rows)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Means at four K: a row a dataset, reading of ε and method, those beside included."""
        chosen = one_law(rows[rows.top.isin((1, 10, AHEAD, LAST))])
        lines = ["panel", "reading", "series"]
        shares = chosen.pivot_table("value", lines, "top", "mean", sort=False)
        table = shares[sorted(shares)].map("{:.0%}".format)
        return table.rename_axis(["dataset", "ε", "method"]).rename_axis("K", axis=1)
