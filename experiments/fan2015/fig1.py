"""Fan & Jin 2015, Figure 1: how many records each user has.

Paper   Fan & Jin, WWW 2015: section 1 and Figure 1.
Read    from the text; the plot is not in our copy.
Open    Figure 1 is of Netflix. A twin is built to the number of users and records and to the most of a
        user; what lies between is its maker's choice, so that it can test nothing of this claim. All
        curves are shown; data that someone recorded is judged.
Words   few users = the most active fifth; most records = more than half of them; one user of around
        17 K = exactly one has 17,000 within 1.25× or more; the majority = more than half of the users.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from experiments.fan2015.data import TWIN, cases, dataset_columns
from workbench.claims import Claim, Finding, Printed, all_of, format_number
from workbench.plots import Panel

TITLE = "Few users contribute most records"
PAGE = "Fan & Jin, WWW 2015, section 1, Figure 1"
FEW = 0.2
MOST = 0.5

PAPER = {
    "largest": Printed.approximately("around 17 K", 17_000),
    "ordinary": Printed("less than 2 K", 0, 2000),
}


def rows(profile: str, store) -> pd.DataFrame:
    """A row a dataset and rank, 1 the most active; statistics of all users in rows of their own."""
    entries = []
    for case in cases(profile).values():
        sizes = -np.sort(-case.dataset.load().records_per_user())
        ranks = np.unique(np.geomspace(1, len(sizes), 50).round().astype(int))
        columns = dataset_columns(case) | {"series": "original", "cut": case.l}
        for rank in ranks:
            entries.append(
                columns | {"metric": "Records", "rank": rank, "value": sizes[rank - 1]}
            )
        entries += [columns | {"metric": m, "value": v} for m, v in statistics(sizes).items()]
    return pd.DataFrame(entries).assign(seed=0)


def statistics(sizes: np.ndarray) -> dict[str, float]:
    """Of the numbers of records of users, the largest first."""
    few = sizes[: max(1, round(FEW * len(sizes)))]
    return {
        "users": len(sizes),
        "records": sizes.sum(),
        "most of a user": sizes[0],
        "users of 13,600 or more": (sizes >= PAPER["largest"].low).sum(),
        "users below 2,000": (sizes < PAPER["ordinary"].high).mean(),
        "records of the top 1 %": sizes[: max(1, len(sizes) // 100)].sum() / sizes.sum(),
        "records of the top 20 %": few.sum() / sizes.sum(),
    }


def panels(rows: pd.DataFrame) -> list[Panel]:
    """One a dataset, with the l at which SRA and HPA cut dashed."""
    grid = []
    for name, cut in rows.groupby("panel", sort=False).cut.first().items():
        dashes = ("l, where sampling cuts", partial(np.full_like, fill_value=cut))
        where = {"panel": name, "metric": "Records"}
        grid.append(Panel(name, where, "rank", theory=dashes))
    return grid


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset: how unequal its users are."""
    unequal = rows[rows.metric != "Records"]
    table = unequal.pivot(index="panel", columns="metric", values="value")
    table = table.loc[rows.panel.unique(), unequal.metric.unique()]
    for name in table:
        share = table[name].max() <= 1 and "most" not in name
        table[name] = table[name].map(("{:.1%}" if share else "{:,.0f}").format)
    return table


def _statistics(rows, name: str) -> pd.Series:
    return rows[(rows.panel == name) & (rows.metric != "Records")].set_index("metric").value


def _few(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        if TWIN not in name:
            share = _statistics(rows, name)["records of the top 20 %"]
            measured = f"a fifth of the users has {share:.0%} of the records"
            parts[name] = Finding(bool(share > MOST), measured)
    if not parts:
        return Finding(None, "", "No recorded data is at hand.", testable=False)
    if "Netflix" in parts:
        netflix = _statistics(rows, "Netflix")
        largest = netflix["users of 13,600 or more"]
        measured = f"{largest:.0f} user, {format_number(netflix['most of a user'])}"
        parts["Netflix: one user of around 17 K"] = Finding(bool(largest == 1), measured)
        ordinary = netflix["users below 2,000"]
        finding = Finding(bool(ordinary > 0.5), f"{ordinary:.1%}")
        parts["Netflix: the majority below 2 K"] = finding
    return all_of(parts)


CLAIMS = (
    Claim(
        "f-1",
        "Few users contribute most records; of Netflix' users one has around 17 K, most less than 2 K.",
        _few,
    ),
)
