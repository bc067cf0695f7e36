"""Fan & Jin 2015, Figure 11: on which days the records of the sampled databases are.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 11.
Read    from the text; the plot is not in our copy.
Open    The paper's is Foursquare, which nobody publishes. Whether sampling moves the week depends on
        whether those with few records come on other days than those with many, and on which days the
        popular items are asked for. In the twins neither has to do with the other: they are
        controls, where nothing but chance can move. Judged are datasets with days as recorded. Our
        copy of Gowalla has no times; nothing was ever ordered on a Saturday from the shop, a day that
        no sampling can raise, and which is left out.
Words   raises = a larger share of the sampled records than of all, beyond the 95 % interval over seeds,
        for each of Friday to Sunday, by both samplings; lowers = a smaller one, for each of Monday to
        Thursday; closer = a smaller total variation distance from the original week, intervals apart.
"""

from __future__ import annotations

import pandas as pd

from experiments.fan2015.data import (
    TWIN,
    Case,
    cases,
    datasets,
    sampling_mechanisms,
    users_of_netflix,
)
from experiments.fan2015.unreleased import SHORT, AllRecords, KeptRecords, Week
from workbench import DP, Sweep
from workbench.claims import Finding, decide, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.figures import Figure
from workbench.figures.parameters import epsilon, seeds, whole
from workbench.plots import Panel
from workbench.value import value

ORIGINAL = AllRecords.series
LATE = ["Fri", "Sat", "Sun"]


def _signed(points: float) -> str:
    return f"{points:+.2f}".replace("-", "−")


def _week(rows, name: str, series: str) -> pd.DataFrame:
    return mean_curve(rows, "day", panel=name, series=series, metric="ContextShare").loc[SHORT]


def _distance(rows, name: str, series: str) -> pd.DataFrame:
    return mean_curve(rows, "metric", panel=name, series=series, metric="TotalVariation")


def _shift(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        if TWIN in name:
            continue
        for series in ("SRA", "HPA"):
            finding = _raises_the_weekend(rows, name, series)
            parts[f"{name}: {series} raises Friday to Sunday"] = finding
        near = _distance(rows, name, "SRA")
        far = _distance(rows, name, "HPA")
        closer = check_lower(near, far, 1)
        measured = f"{format_number(100 * near['mean'].iloc[0])} % against "
        measured += f"{format_number(100 * far['mean'].iloc[0])} %"
        parts[f"{name}: SRA is closer"] = Finding(
            closer.holds, measured, if_unsettled=closer.if_unsettled
        )
    if not parts:
        why = "No data with recorded days is at hand, and in the twins days are chance."
        return Finding(None, "", why, testable=False)
    return all_of(parts)


def _raises_the_weekend(rows, name: str, series: str) -> Finding:
    """Whether the share of each late day rises, and that of each other falls; empty days left out."""
    week = _week(rows, name, ORIGINAL)["mean"]
    week = week[week > 0]
    ours = _week(rows, name, series).loc[week.index]
    late = week.index.isin(LATE)
    above = ours.low > week
    below = ours.high < week
    good = above.where(late, below)
    bad = below.where(late, above)
    points = 100 * (ours["mean"] - week)
    measured = ", ".join(f"{day} {_signed(x)}" for day, x in points.items())
    return Finding(decide(good.all(), bad.any()), measured + " percentage points")


CLAIMS = (
    Claim(
        "f-11",
        "Sampling raises the share of Friday to Sunday and lowers that of Monday to Thursday; SRA "
        "stays closer to the original week than HPA.",
        _shift,
        "The shop's occasional customers order on Thursdays and Fridays, its regular ones also on "
        "Sundays: which days sampling raises depends on who comes when. HPA's picks are nearly "
        "random there, so that both samplings are equally far.",
    ),
)


@value
class Fig11(Figure):
    """The week of the records that are kept, a panel a dataset."""

    title = "The week of the sampled records"
    page = "Fan & Jin, WWW 2015, section 6.4, Figure 11"
    quick = {"netflix_users": 20_000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 2}
    claims = CLAIMS
    shown = ("l", "d")  # each dataset has its own

    data: tuple[str, ...] = datasets(without=("Gowalla (LGLMF)", "MovieLens"))
    epsilon: float = epsilon(1.0, "ε, a tenth of which HPA learns popularity with")
    l: int = whole(10, "records kept of each user", unit="records")  # noqa: E741
    d: int | None = whole(None, "records of a user for popularity; none: the least of one")
    netflix_users: int = users_of_netflix()
    seeds: int = seeds(20, "samples")

    def cases(self) -> dict[str, Case]:
        """The datasets with days, by panel."""
        return cases(self.data, self.netflix_users, l=self.l, d=self.d)

    def sweeps(self) -> dict[str, Sweep]:
        """No noise on what is kept."""
        sweeps = {}
        for name, case in self.cases().items():
            mechanisms = sampling_mechanisms(case, DP(self.epsilon))
            samples = [KeptRecords(mechanism) for mechanism in mechanisms]
            sweeps[name] = Sweep([case.dataset], [AllRecords(), *samples], [Week()], self.seeds)
        return sweeps

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One a dataset."""
        return [
            Panel(name, {"panel": name, "metric": "ContextShare"}, "day", bars=True, log="")
            for name in rows.panel.unique()
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A line a dataset and sampling: percentage points that days gain, and the distance."""
        lines = []
        for name in rows.panel.unique():
            week = _week(rows, name, ORIGINAL)["mean"]
            for series in ("SRA", "HPA"):
                gain = 100 * (_week(rows, name, series)["mean"] - week)
                line = {"dataset": name, "sampling": series}
                line |= {day: _signed(gain[day]) for day in SHORT}
                line["distance"] = f"{_distance(rows, name, series)['mean'].iloc[0]:.2%}"
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "sampling"])
