"""Cormode et al. 2012, Figure 6(b): range queries on commuting data, by dyadic ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(b).
Read    from the text; the plot is not in our copy.
Open    The data, `data.py`. The filter has the θ that goes with s, from m, s and ε alone,
        filter-priority 4/5 of it (Figure 5): 1041 and 833 on the twin. Range sizes are not printed.
Words   pay off from about 1 % = at every size from 1 % on, the full dyadic table and the filtered one
        below the full table of cells; where they cross is told. Filtering improves = on the full
        dyadic table.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from experiments.cormode2012.data import (
    COUNTIES,
    DATASETS,
    JUDGED,
    TRACTS,
    CommutingTables,
    published_tables,
    query_shares,
)
from experiments.cormode2012.shared import (
    ABSOLUTE,
    BOTH,
    CELLS,
    FILTER,
    FULL,
    PRIORITY,
    summaries,
)
from workbench import claims
from workbench.claims import Finding, Printed, crossing, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.figures import Figure
from workbench.figures.parameters import epsilon, queries, seeds, whole
from workbench.plots import Panel
from workbench.value import value

FROM = 0.01
PAPER = {"from": Printed.approximately("around 1 % of the data size", FROM, 0.005, axis="x")}


def _error(rows, series: str, panel: str = JUDGED) -> pd.DataFrame:
    return mean_curve(rows, "share", panel=panel, series=series, metric=ABSOLUTE)


def _from(rows, panel: str, series: str) -> Finding:
    share = crossing(_error(rows, series, panel), _error(rows, CELLS, panel))
    return Finding(None, f"from {100 * share:.2g} %" if share == share else "nowhere")


def _dyadic(rows) -> Finding:
    cells = _error(rows, CELLS)
    parts = {}
    for name, series in (("full table", FULL), ("filter", FILTER)):
        ahead = check_lower(_error(rows, series).loc[FROM:], cells.loc[FROM:], share=1)
        measured = f"{ahead.measured}; {_from(rows, JUDGED, series).measured}"
        parts[f"dyadic {name} better than cells from 1 %"] = replace(ahead, measured=measured)
    parts["dyadic filter better than full"] = check_lower(
        _error(rows, FILTER), _error(rows, FULL)
    )
    return all_of(parts)


CLAIMS = (
    Claim(
        "c-6b-1",
        "Dyadic ranges pay off from about 1 % of the data on, and filtering them improves on the full "
        "geometric table.",
        _dyadic,
    ),
)


@value
class Fig6b(CommutingTables, Figure):
    """Random ranges in the order of work places, answered by nodes of a tree."""

    title = "Range queries on commuting data, by dyadic ranges"
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(b)"
    quick = {"seeds": 5, "queries": 200}
    claims = CLAIMS
    shown = ("size", "theta")

    epsilon: float = epsilon(0.1)
    size: int = whole(500_000, "s on the twin; elsewhere the same share of cells", unit="nodes")
    data: tuple[str, ...] = published_tables(JUDGED, COUNTIES, TRACTS)
    shares: tuple[float, ...] = query_shares(
        (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "ranges"
    )
    queries: int = queries(1000)
    seeds: int = seeds(50)

    def mechanisms(self, name: str) -> list:
        """Full tables of nodes and of cells, and every summary of nodes."""
        domain = DATASETS[name].domain
        return summaries(domain, self.summary_size(domain), self.epsilon)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a dataset at hand."""
        return [
            Panel(
                name, {"panel": name}, "share", printed=PAPER["from"] if name == JUDGED else ()
            )
            for name in rows.panel.unique()
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Where dyadic ranges begin to pay off, beside what the paper prints, on every dataset."""
        lines = []
        for panel in rows.panel.unique():
            for series in (FULL, FILTER, BOTH, PRIORITY):
                line = f"{panel}: {series} beats cells"
                lines.append((line, PAPER["from"], _from(rows, panel, series)))
        return claims.compare_with_paper(*lines)
