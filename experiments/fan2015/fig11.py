"""Fan & Jin 2015, Figure 11: on which days the records of the sampled databases are.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 11.
Read    from the text; the plot is not in our copy.
Open    The paper's is Foursquare, which nobody publishes. Whether sampling moves the week depends on
        whether those with few records come on other days than those with many, and on which days the
        popular items are asked for. In the twins neither has to do with the other: they are
        controls, where nothing but chance can move. Datasets with recorded days stand beside; nothing
        was ever ordered on a Saturday from the shop, and the LGLMF copy of Gowalla has no times.
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
    """The days of Foursquare's samples, and its original week."""
    own = rows_of(rows, OF)
    shares = own[own.metric == "ContextShare"]
    original = shares.series == ORIGINAL
    return shares[~original], shares[original].groupby("day").value.mean()


def check_days(rows, level, days: list[str], above: bool) -> Finding:
    """Each of these days, in both samplings, against the original week."""
    sampled, week = _shares(rows)
    sampled = sampled[sampled.day.isin(days)]
    ratios = sampled.value / sampled.day.map(week)
    points = sampled.assign(method=sampled.series, series="samples", value=ratios)
    by_day = means(points, "samples", ["method", "day"])
    low, high = (nextafter(1, 2), inf) if above else (0, nextafter(1, 0))
    return check_between(by_day, level, low, high, words="so", unit="× the original share")


def check_closer(rows, level) -> Finding:
    """SRA's days are nearer to the original's."""
    sampled, week = _shares(rows)
    distances = (sampled.value - sampled.day.map(week)).abs()
    return check_lower(
        paired_ratios(sampled.assign(value=distances), "SRA", "HPA", "day"), level
    )


def _habits(rows) -> pd.Series:
    own = rows_of(rows, OF)
    return own[own.metric == "Habits"].set_index("group").value


def check_occasional(rows, level) -> Finding:
    """More than half of the users keep all they have."""
    share = _habits(rows)[Habits.OCCASIONAL]
    return Finding(bool(share > 0.5), f"{share:.1%} of the users")


def check_late(rows, level, group: str, other: str = Habits.ALL) -> Finding:
    """One group of records is more often of Friday to Sunday than another."""
    habits = _habits(rows)
    measured = f"{group} {habits[group]:.1%}, {other} {habits[other]:.1%}"
    return Finding(bool(habits[group] > habits[other]), measured)


@value
class Fig11(FanFigure, Figure):
    """The week of the records that are kept, a panel a dataset."""

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
        """No noise on what is kept."""
        return self.sweep_all(
            lambda case: with_samples(case, DP(self.epsilon)), lambda case: [Week()], self.seeds
        )

    def rows(self, store) -> pd.DataFrame:
        """Also who comes when, of the data themselves; not of twins that stand for no figure of theirs."""
        frames = [super().rows(store)]
        for name, case in self.cases().items():
            if case.of == OF or not case.twin:
                habits = Sweep([case.dataset], [AllRecords()], [Habits(self.l)], 1)
                frames.append(run(habits, store).assign(panel=name, series=ORIGINAL))
        return pd.concat(frames, ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One a dataset: the paper's Foursquare, recorded days, then twins, which are controls."""
        names = paper_first(rows, OF)
        names.sort(key=lambda name: name != panel_of(rows, OF) and TWIN in name)
        return [
            Panel(name, {"panel": name, "metric": "ContextShare"}, "day", bars=True, log="")
            for name in names
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The week from Sunday, as printed."""
        days = pd.Categorical(rows.day, [SHORT[-1], *SHORT[:-1]])
        order = days.codes.argsort(kind="stable")
        return rows.iloc[order]
