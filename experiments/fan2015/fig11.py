"""Figure 11 of Fan & Jin (2015): distribution of the sampled records over the days of the week.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 11.
Read    We read all numbers from the text, because the plot is not in our copy.
Open    The paper's dataset is Foursquare, which nobody publishes. Sampling changes the distribution over days
        if users with few records come on other days than users with many, or if popular items are used on
        other days. In the stand-ins, days are independent of both, so only chance can change the
        distribution. They serve as controls. We also run datasets with recorded days. The shop never received
        an order on a Saturday, and the LGLMF copy of Gowalla has no times.
"""

from __future__ import annotations

from math import inf, nextafter

from experiments.fan2015.data import (
    TWIN,
    FanFigure,
    datasets,
    panel_of,
    paper_first,
    records_for_popularity,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.unreleased import SHORT, AllRecords, Habits, Week, with_samples
from workbench import DP, Sweep, run
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials.claims import Finding, check_between, check_lower, means, paired_ratios
from workbench.value import value

ORIGINAL = AllRecords.series
OF = "Foursquare"


def _shares(rows) -> tuple[pd.DataFrame, pd.Series]:
    """Return the shares of the days in Foursquare's samples, and in its original data."""
    own = rows_of(rows, OF)
    shares = own[own.metric == "ContextShare"]
    original = shares.series == ORIGINAL
    return shares[~original], shares[original].groupby("day").value.mean()


def check_days(rows, level, days: list[str], above: bool) -> Finding:
    """Check whether each of the given days has a larger (or a smaller) share in both samples than in the
    original data.
    """
    sampled, week = _shares(rows)
    sampled = sampled[sampled.day.isin(days)]
    ratios = sampled.value / sampled.day.map(week)
    points = sampled.assign(method=sampled.series, series="samples", value=ratios)
    by_day = means(points, "samples", ["method", "day"])
    low, high = (nextafter(1, 2), inf) if above else (0, nextafter(1, 0))
    return check_between(by_day, level, low, high, words="so", unit="× the original share")


def check_closer(rows, level) -> Finding:
    """Check whether the shares of the days in SRA's sample are closer to the original ones than those in
    HPA's sample.
    """
    sampled, week = _shares(rows)
    distances = (sampled.value - sampled.day.map(week)).abs()
    return check_lower(
        paired_ratios(sampled.assign(value=distances), "SRA", "HPA", "day"), level
    )


def _habits(rows) -> pd.Series:
    own = rows_of(rows, OF)
    return own[own.metric == "Habits"].set_index("group").value


def check_occasional(rows, level) -> Finding:
    """Check whether more than half of the users have fewer than l records, so that sampling keeps all of
    their records.
    """
    share = _habits(rows)[Habits.OCCASIONAL]
    return Finding(bool(share > 0.5), f"{share:.1%} of the users")


def check_late(rows, level, group: str, other: str = Habits.ALL) -> Finding:
    """Check whether one group of records is more often from Friday to Sunday than another group."""
    habits = _habits(rows)
    measured = f"{group} {habits[group]:.1%}, {other} {habits[other]:.1%}"
    return Finding(bool(habits[group] > habits[other]), measured)


@value
class Fig11(FanFigure, Figure):
    """Distribution of the sampled records over the days of the week, with one panel per dataset."""

    title = "The week of the sampled records"
    columns = 3
    height = 1.7
    sharey = True
    main = 3
    page = "Fan & Jin, WWW 2015, section 6.4, Figure 11"
    quick = {"netflix_users": 20_000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 2}
    shown = ("l", "d")  # each dataset has its own

    data: tuple[str, ...] = datasets(without=("Gowalla (LGLMF)", "MovieLens"))
    epsilon: float = epsilon(1.0, "ε, a tenth for HPA's popularity")
    l: int = whole(10, "number of records kept per user", unit="records")  # noqa: E741
    d: int | None = records_for_popularity()
    netflix_users: int = users_of_netflix()
    seeds: int = seeds(20, "number of samples")

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs. The sampled records have no noise."""
        return self.sweep_all(
            lambda case: with_samples(case, DP(self.epsilon)), lambda case: [Week()], self.seeds
        )

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, and for real data and Foursquare also the days on which groups of
        records occur.
        """
        frames = [super().rows(store)]
        for name, case in self.cases().items():
            if case.of == OF or not case.twin:
                habits = Sweep([case.dataset], [AllRecords()], [Habits(self.l)], 1)
                frames.append(run(habits, store).assign(panel=name, series=ORIGINAL))
        return pd.concat(frames, ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per dataset: the paper's Foursquare, then datasets with recorded days, and then
        the synthetic stand-ins, which are controls.
        """
        names = paper_first(rows, OF)
        names.sort(key=lambda name: name != panel_of(rows, OF) and TWIN in name)
        return [
            Panel(name, {"panel": name, "metric": "ContextShare"}, "day", bars=True, log="")
            for name in names
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results with the days in order from Sunday, as printed."""
        days = pd.Categorical(rows.day, [SHORT[-1], *SHORT[:-1]])
        order = days.codes.argsort(kind="stable")
        return rows.iloc[order]
