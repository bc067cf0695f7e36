"""Figure 1 of Fan & Jin (2015): number of records per user.

Paper   Fan & Jin, WWW 2015: section 1 and Figure 1.
Read    We read all numbers from the text, because the plot is not in our copy.
Open    Figure 1 is about Netflix. A stand-in has the numbers of users and of records, and the largest number
        of records of a user. The numbers of the other users are invented. The figure shows all datasets, and
        statements are tested on Netflix.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments._fields import unprinted
from experiments.fan2015.data import (
    FanFigure,
    datasets,
    panel_of,
    paper_first,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.unreleased import AllRecords
from workbench import Sweep
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.figures import Figure
from workbench.figures.fields import whole
from workbench.figures.plots import Panel
from workbench.trials.claims import ORDERS, Finding
from workbench.value import parameter, value

FEW = 0.2  # of the users, the most active
MOST = (16_000, 18_000)  # 17 K, give or take a step of the printed thousands
LARGE = 2000
OVER_MOST = f"users of {MOST[0]:,} or more"
SMALL_USERS = f"users below {LARGE:,}"
LARGE_RECORDS = f"records of users of {LARGE:,} or more"


@value
class RecordsPerUser:
    """Metric: number of records per user by rank, where rank 1 is the most active user, and statistics of all
    users.
    """

    points: int = parameter(low=2, integer=True, doc="ranks, as many in each decade")

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per rank and one row per statistic."""
        sizes = -np.sort(-truth.records_per_user())
        ranks = np.unique(np.geomspace(1, len(sizes), self.points).round().astype(int))
        curve = pd.DataFrame({"metric": "Records", "rank": ranks, "value": sizes[ranks - 1]})
        of_all = pd.Series(statistics(sizes), name="value").rename_axis("metric")
        return pd.concat([curve, of_all.reset_index()], ignore_index=True)


def statistics(sizes: np.ndarray) -> dict[str, float]:
    """Return statistics of the numbers of records per user, which are sorted in descending order."""
    few = sizes[: max(1, round(FEW * len(sizes)))]
    large = sizes >= LARGE
    return {
        "users": len(sizes),
        "records": sizes.sum(),
        "most of a user": sizes[0],
        OVER_MOST: (sizes >= MOST[0]).sum(),
        SMALL_USERS: 1 - large.mean(),
        LARGE_RECORDS: sizes[large].sum() / sizes.sum(),
        "records of the top 1 %": sizes[: max(1, len(sizes) // 100)].sum() / sizes.sum(),
        "records of the top 20 %": few.sum() / sizes.sum(),
    }


def _netflix(rows) -> pd.Series:
    own = rows_of(rows, "Netflix")
    return own[own.metric != "Records"].set_index("metric").value


def check_one(rows, level) -> Finding:
    """Check whether exactly one user has about 17,000 records or more."""
    netflix = _netflix(rows)
    count = netflix[OVER_MOST]
    most = netflix["most of a user"]
    measured = f"{count:,.0f} of {netflix.users:,.0f} {OVER_MOST}, the most {most:,.0f}"
    return Finding(bool(count == 1 and most <= MOST[1]), measured)


def check_majority(rows, level) -> Finding:
    """Check whether more than half of the users have fewer than 2,000 records. At most a share of mean/2,000
    can have as many.
    """
    netflix = _netflix(rows)
    bound = netflix.records / netflix.users / LARGE
    measured = f"{netflix[SMALL_USERS]:.1%}; by the mean at least {1 - bound:.1%}"
    return Finding(bool(netflix[SMALL_USERS] > 0.5), measured)


def check_few(rows, level) -> Finding:
    """Check whether at most a tenth as many users have 2,000 records or more as have fewer."""
    netflix = _netflix(rows)
    small = netflix[SMALL_USERS]
    measured = f"{1 - small:.2%} of the users have {netflix[LARGE_RECORDS]:.1%} of the records"
    return Finding(bool(small >= ORDERS * (1 - small)), measured)


@value
class Fig1(FanFigure, Figure):
    """Number of records per user, sorted in descending order, and the limit at which sampling truncates
    users.
    """

    title = "Few users contribute most records"
    headline = "Most Netflix users contribute fewer than 2,000 records each"
    rests_on = ("f-1.2",)
    height = 1.6
    main = 4
    page = "Fan & Jin, WWW 2015, section 1, Figure 1"
    quick = {"netflix_users": 20_000}
    rough = {"netflix_users": 2000}

    data: tuple[str, ...] = datasets()
    l: int = whole(10, "number of records that sampling keeps per user", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "records kept per user (l) on MovieLens", unit="records")
    points: int = unprinted(50, "ranks that are drawn", 2, 10_000)
    netflix_users: int = users_of_netflix()

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs. Nothing in this figure is random."""
        return self.sweep_all(
            lambda case: [AllRecords()], lambda case: [RecordsPerUser(self.points)]
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per dataset. As printed, the axis of records is linear. A dashed line shows l, the
        number of records that the mechanisms SRA and HPA keep per user.
        """
        grid = []
        all_cases = self.cases()
        for name in paper_first(rows, "Netflix"):
            cut = all_cases[name].l if name in all_cases else self.l
            dashes = ("l, where sampling cuts", partial(np.full_like, fill_value=cut))
            where = {"panel": name, "metric": "Records"}
            ylim = (0, MOST[1]) if name == panel_of(rows, "Netflix") else None
            grid.append(Panel(name, where, "rank", log="x", theory=dashes, ylim=ylim))
        return grid
