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

from experiments.fan2015.data import TWIN, Case, cases, datasets, users_of_netflix
from experiments.fan2015.unreleased import AllRecords
from workbench import Sweep
from workbench.claims import Finding, Printed, format_number
from workbench.claims.old import Claim, all_of
from workbench.figures import UNPRINTED, Figure
from workbench.figures.parameters import whole
from workbench.interactions import Interactions
from workbench.plots import Panel
from workbench.value import parameter, value

FEW = 0.2
MOST = 0.5

PAPER = {
    "largest": Printed.approximately("around 17 K", 17_000),
    "ordinary": Printed("less than 2 K", 0, 2000),
}


@value
class RecordsPerUser:
    """How many records users have, by rank, 1 the most active; then statistics of all users."""

    points: int = parameter(low=2, integer=True, doc="ranks, as many in each decade")

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """A row a rank and a statistic."""
        sizes = -np.sort(-truth.records_per_user())
        ranks = np.unique(np.geomspace(1, len(sizes), self.points).round().astype(int))
        curve = pd.DataFrame({"metric": "Records", "rank": ranks, "value": sizes[ranks - 1]})
        of_all = pd.Series(statistics(sizes), name="value").rename_axis("metric")
        return pd.concat([curve, of_all.reset_index()], ignore_index=True)


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


@value
class Fig1(Figure):
    """Records of users, the most active first, and where sampling cuts."""

    title = "Few users contribute most records"
    page = "Fan & Jin, WWW 2015, section 1, Figure 1"
    quick = {"netflix_users": 20_000}
    rough = {"netflix_users": 2000}
    claims = CLAIMS
    columns = 3

    data: tuple[str, ...] = datasets()
    l: int = whole(10, "records of each user that sampling keeps", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "l on MovieLens", unit="records")
    points: int = whole(50, "ranks that are drawn", 2, 10_000, kind=UNPRINTED)
    netflix_users: int = users_of_netflix()

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel."""
        return cases(self.data, self.netflix_users, l=self.l, movielens_l=self.movielens_l)

    def sweeps(self) -> dict[str, Sweep]:
        """Nothing is random."""
        metrics = [RecordsPerUser(self.points)]
        return {
            name: Sweep([case.dataset], [AllRecords()], metrics, 1)
            for name, case in self.cases().items()
        }

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One a dataset, with the l at which SRA and HPA cut dashed."""
        grid = []
        for name, case in self.cases().items():
            dashes = ("l, where sampling cuts", partial(np.full_like, fill_value=case.l))
            where = {"panel": name, "metric": "Records"}
            grid.append(Panel(name, where, "rank", theory=dashes))
        return grid

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A line a dataset: how unequal its users are."""
        unequal = rows[rows.metric != "Records"]
        table = unequal.pivot(index="panel", columns="metric", values="value")
        table = table.loc[rows.panel.unique(), unequal.metric.unique()]
        for name in table:
            share = table[name].max() <= 1 and "most" not in name
            table[name] = table[name].map(("{:.1%}" if share else "{:,.0f}").format)
        return table
