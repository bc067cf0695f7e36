"""Cormode et al. 2012, Figure 6(a): subset queries on commuting data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(a).
Read    from the text; the plot is not in our copy.
Open    OnTheMap in 47 states (2008) is not at hand. Its twin has the printed numbers of cells,
        non-empty cells and their mean, and is judged. Beside it real data: all US counties (another
        survey), and Rhode Island by tract and by tract2, the paper's unit, which makes 10 × 10
        cells of one state. Their summaries hold the same share of the cells, s/m = 3·10⁶/4001².
        The filter gets the θ that goes with its size, from m, s and ε alone. The "small threshold" of
        filter-priority is not printed: θ = 5, the least of section 4.2. Nor are the sizes of
        the subsets: 0.1 % to 50 % of all cells. 200 queries a size (quick), 1000 (paper).
Words   inaccurate = the greatest error of the four, intervals apart, at three quarters of the
        sizes; not much worse = less than 3× the error of geometric at three quarters of the sizes.
"""

from __future__ import annotations

import pandas as pd

from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import DP, RandomSubsets, Sweep, claims, run
from workbench.claims import (
    Claim,
    Finding,
    Printed,
    all_of,
    check_lower,
    check_printed,
    mean_curve,
)
from workbench.datasets import CommutingFlows, OnTheMap, OnTheMapTwin
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.plots import Panel, name_series

TITLE = "Subset queries on commuting data"
PAGE = "Cormode et al., ICDT 2012, section 4.5, Figure 6(a)"

SEEDS = {"quick": 5, "paper": 50}
QUERIES = {"quick": 200, "paper": 1000}
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SIZE = 3_000_000
BUDGET = DP(0.1)
THETA = 5
JUDGED = "OnTheMap twin"
DATASETS = {
    JUDGED: OnTheMapTwin(),
    "US counties": CommutingFlows(),
    "Rhode Island, tracts": OnTheMap(level="tract"),
    "Rhode Island, tract2": OnTheMap(level="tract2"),
}
SERIES = ("geometric", "filter", "priority", "filter-priority")

PAPER = {
    "relative": Printed(
        "less than 0.8 % from 5 % of the space on", 0.0, 0.008, over=(0.05, 0.5)
    )
}


def rows(profile: str, store) -> pd.DataFrame:
    """One sweep a dataset at hand, named in `panel`; `share` is a subset's part of all cells."""
    frames = []
    for name, dataset in DATASETS.items():
        try:
            m = dataset.domain.size
            frame = run(_sweep(dataset, m, profile), store)
        except FileNotFoundError:
            continue
        share = frame.query_size.map(_shares(m))
        frames.append(frame.assign(panel=name, cells=m, share=share))
    return name_series(pd.concat(frames, ignore_index=True), shown=["size"])


def _sweep(dataset, m: int, profile: str) -> Sweep:
    size = round(SIZE / DATASETS[JUDGED].domain.size * m)
    mechanisms = [
        GeometricHistogram(BUDGET),
        HighPassFilter(BUDGET, size=size),
        PrioritySampling(BUDGET, size=size),
        PrioritySampling(BUDGET, size=size, theta=THETA),
    ]
    metrics = [
        metric(RandomSubsets(cells, QUERIES[profile]))
        for metric in (MeanAbsoluteError, MedianRelativeError)
        for cells in _shares(m)
    ]
    return Sweep([dataset], mechanisms, metrics, SEEDS[profile])


def _shares(m: int) -> dict[int, float]:
    """Shares of the space by subset size; shares that do not fill a cell are left out."""
    return {round(share * m): share for share in SHARES if share * m >= 1}


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Absolute errors above, relative errors below, a column a dataset at hand."""
    above = []
    below = []
    for name in rows.panel.unique():
        above.append(Panel(name, {"panel": name, "metric": ABSOLUTE}, "share"))
        printed = PAPER["relative"] if name == JUDGED else ()
        where = {"panel": name, "metric": RELATIVE}
        below.append(Panel("", where, "share", printed=printed))
    return above + below


def missing_datasets(rows: pd.DataFrame) -> list[str]:
    """The datasets whose files are not at hand, so that the rows lack them."""
    return [f"{name}: not at hand" for name in DATASETS if name not in set(rows.panel)]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The relative error that the paper prints, beside ours on every dataset."""
    lines = []
    for panel in rows.panel.unique():
        for series, relative in _errors(rows, RELATIVE, panel).items():
            lines.append((f"{panel}: {series}", PAPER["relative"], _from_5(relative)))
    return claims.compare_with_paper(*lines)


def _from_5(relative: pd.DataFrame) -> Finding:
    return check_printed(PAPER["relative"], relative.loc[0.05:], percent=True)


def _errors(rows, metric: str, panel: str = JUDGED) -> dict[str, pd.DataFrame]:
    return {s: mean_curve(rows, "share", panel=panel, metric=metric, series=s) for s in SERIES}


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
