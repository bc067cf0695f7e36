"""Cormode et al. 2012, Figure 6(b): range queries on commuting data, by dyadic ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(b).
Read    from the text; the plot is not in our copy.
Open    As in Figure 6(a) the twin, which has the printed numbers of OnTheMap's 47 states of 2008, is
        judged; beside it real data, all US counties (another survey) and Rhode Island by tract. Keys
        are ordered by work location and then by home. Summaries hold the same share of the cells
        everywhere, s/m = 5·10⁵/4001². The filter has the θ that goes with s, from m, s and ε alone,
        filter-priority 4/5 of it (Figure 5): 1041 and 833 on the twin.
        Range sizes are not printed: 0.01 % to 50 % of all cells. 200 queries a size (quick), 1000
        (paper).
Words   pay off from about 1 % = at every size from 1 % on, the full dyadic table and the filtered one
        below the full table of cells; where they cross is told. Filtering improves = on the full
        dyadic table.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from experiments.cormode2012.shared import (
    ABSOLUTE,
    BOTH,
    CELLS,
    FILTER,
    FULL,
    PRIORITY,
    summaries,
)
from workbench import RandomRanges, Sweep, claims, run
from workbench.claims import Claim, Finding, Printed, all_of, check_lower, crossing, mean_curve
from workbench.datasets import CommutingFlows, OnTheMap, OnTheMapTwin
from workbench.metrics import MeanAbsoluteError
from workbench.plots import Panel, name_series

TITLE = "Range queries on commuting data, by dyadic ranges"
PAGE = "Cormode et al., ICDT 2012, section 4.5, Figure 6(b)"

SEEDS = {"quick": 5, "paper": 50}
QUERIES = {"quick": 200, "paper": 1000}
SHARES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FROM = 0.01
SIZE = 500_000
EPSILON = 0.1
JUDGED = "OnTheMap twin"
DATASETS = {
    JUDGED: OnTheMapTwin(),
    "US counties": CommutingFlows(),
    "Rhode Island, tracts": OnTheMap(level="tract"),
}

PAPER = {"from": Printed.approximately("around 1 % of the data size", FROM, 0.005, axis="x")}


def rows(profile: str, store) -> pd.DataFrame:
    """One sweep a dataset at hand, named in `panel`; `share` is a range's part of all cells."""
    return sweep_rows(profile, store, summaries)


def sweep_rows(profile: str, store, mechanisms: Callable) -> pd.DataFrame:
    """The mechanisms for a domain, a size and ε, on every dataset at hand."""
    frames = []
    for name, dataset in DATASETS.items():
        try:
            m = dataset.domain.size
            size = round(SIZE / DATASETS[JUDGED].domain.size * m)
            shares = {round(share * m): share for share in SHARES}
            metrics = [MeanAbsoluteError(RandomRanges(n, QUERIES[profile])) for n in shares]
            made = mechanisms(dataset.domain, size, EPSILON)
            frame = run(Sweep([dataset], made, metrics, SEEDS[profile]), store)
        except FileNotFoundError:
            continue
        frames.append(frame.assign(panel=name, cells=m, share=frame.query_size.map(shares)))
    return name_series(pd.concat(frames, ignore_index=True), shown=["size", "theta"])


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A panel a dataset at hand."""
    return [
        Panel(name, {"panel": name}, "share", printed=PAPER["from"] if name == JUDGED else ())
        for name in rows.panel.unique()
    ]


def missing_datasets(rows: pd.DataFrame) -> list[str]:
    """The datasets whose files are not at hand, so that the rows lack them."""
    return [f"{name}: not at hand" for name in DATASETS if name not in set(rows.panel)]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Where dyadic ranges begin to pay off, beside what the paper prints, on every dataset."""
    lines = []
    for panel in rows.panel.unique():
        for series in (FULL, FILTER, BOTH, PRIORITY):
            line = f"{panel}: {series} beats cells"
            lines.append((line, PAPER["from"], _from(rows, panel, series)))
    return claims.compare_with_paper(*lines)


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
        parts[f"dyadic {name} better than cells from 1 %"] = Finding(ahead.holds, measured)
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
