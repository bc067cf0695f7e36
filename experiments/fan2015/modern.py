"""Comparison of ways to choose how many records of each user to count: stated, or chosen from the data. It
extends the figures of Fan & Jin (2015).

Paper   This is not a figure of a paper. It compares SRA of Fan & Jin, WWW 2015, with the l of its section 6,
        and SRA with an l that is chosen privately. One rule chooses by estimated error (after McSherry &
        Talwar, FOCS 2007). The other chooses by rank (after Liu, Suresh, Zhu, Kairouz & Gruteser, 2022, whose
        algorithm we have not seen). Both rules are ours.
Read    We read nothing from a paper, and test no statement.
Open    Candidates for l are 1, 2, 5, 10, … up to M, which is public. A choice costs a tenth of ε, and its
        release gets the rest, of which half is for items. The figure shows the errors of items: Σ|released −
        true| over all items, as a share of the records. "Best in hindsight" is the candidate with the
        smallest mean error, with the whole ε. It is not a release, because nobody pays for this choice. Each
        release is ε-DP for adding or removing one user with all records.
Found   (Quick runs, six datasets.) For ε up to 0.3, the rule by error has at most 2.6 times the error of the
        best in hindsight. The rule by rank has up to 34 times this error, because a few thousand users cannot
        outweigh the noise of its choice. On the three stand-ins with 6,000 users or more, it has at most 2.8
        times the error. For ε of 1 or more, the rule by error has at most 1.2 times the error, and the rule
        by rank and the paper's l have at most 1.6 times. For ε up to 0.1, no l is better than an empty
        release by more than 1 %.
Words   none.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.fan2015._counts import mechanism_of_trials
from experiments.fan2015.data import Case, FanFigure, datasets, paper_first
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.figures import Figure
from workbench.figures.fields import epsilons, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import SRA, ChosenContributions
from workbench.trials.metrics.contributions import count_pair
from workbench.value import format_number, value

HINDSIGHT = "best in hindsight"
OF_PAPER = "l of the paper"
RULES = {"error": "l by error", "rank": "l by rank"}


@value
class ItemError:
    """Metric: Σ|estimate − truth| over all items, as a share of the records."""

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """Compare the counts of items with the true counts."""
        exact, estimated = count_pair(truth, estimate, "items")
        return float(np.abs(estimated - exact).sum() / exact.sum())


@value
class Modern(FanFigure, Figure):
    """Errors of item counts by ε, for an l that is stated, that is chosen by two rules, or that is best in
    hindsight.
    """

    title = "How many records of each user, stated or chosen from the data"
    page = "no figure of the paper: beside Fan & Jin, WWW 2015"
    quick = {"netflix_users": 2000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 1}
    shown = ("epsilon",)

    data: tuple[str, ...] = datasets(without=("Foursquare New York", "Foursquare Tokyo"))
    epsilons: tuple[float, ...] = epsilons((0.03, 0.1, 0.3, 1.0, 3.0))
    share: float = unprinted_number(0.1, "share of ε for a choice", 0.001, 0.9)
    candidates: tuple[int, ...] = unprinted(
        (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000),
        "numbers of records to choose from, up to M of each dataset",
        unit="records",
    )
    l: int = whole(10, "number of records kept per user in the paper", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "records kept per user (l) on MovieLens", unit="records")
    netflix_users: int = effort(20_000, "users of Netflix' stand-in", 1000)
    seeds: int = seeds(20)

    def mechanisms(self, case: Case) -> list[tuple[float, str, Any]]:
        """Return all mechanisms for a dataset, each with the ε of its whole release and the name of its
        curve.
        """
        counts = tuple(x for x in self.candidates if x <= case.most)
        made: list[tuple[float, str, Any]] = []
        for epsilon in self.epsilons:
            choice = self.share * epsilon
            rest = SRA(DP(epsilon - choice), counts[0])
            made += [(epsilon, HINDSIGHT, SRA(DP(epsilon), count)) for count in counts]
            made.append((epsilon, OF_PAPER, SRA(DP(epsilon), case.l)))
            for rule, series in RULES.items():
                chosen = ChosenContributions(rest, counts, choice, rule)
                made.append((epsilon, series, chosen))
        return made

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep (plan of runs) per dataset."""
        return self.sweep_all(
            lambda case: [*dict.fromkeys(x for *_, x in self.mechanisms(case))],
            lambda case: [ItemError()],
            self.seeds,
        )

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the ε of each whole release. Only one
        candidate for "best in hindsight" is returned, the one with the smallest mean error.
        """
        rows = super().rows(store)
        made = mechanism_of_trials(rows)
        frames = []
        for name, case in self.cases().items():
            for epsilon, series, mechanism in self.mechanisms(case):
                own = rows[(rows.panel == name) & (made == repr(mechanism))]
                frames.append(own.assign(series=series, epsilon=epsilon, mean=own.value.mean()))
        every = pd.concat(frames, ignore_index=True)
        least = every.groupby(["panel", "epsilon", "series"])["mean"].transform("min")
        return every[every["mean"] == least].drop(columns="mean").reset_index(drop=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per dataset, with the paper's datasets first."""
        nothing = ("nothing released", partial(np.full_like, fill_value=1.0))
        return [
            Panel(name, {"panel": name}, "epsilon", theory=nothing)
            for name in paper_first(rows)
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return all results, with a metric name that labels the axis."""
        return rows.assign(metric="item error (share of records)")

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of errors divided by the smallest error in hindsight. It has one row per dataset and
        ε.
        """
        means = rows.pivot_table(index=["panel", "epsilon"], columns="series", values="value")
        ratios = means.div(means[HINDSIGHT], axis=0)[[OF_PAPER, *RULES.values()]]
        best = rows[rows.series == HINDSIGHT].groupby(["panel", "epsilon"]).l.first()
        table = ratios.map(lambda x: f"{format_number(x)}×")
        table.insert(0, "best l", best.map("{:,.0f}".format))
        return table.rename_axis(["dataset", "ε"])
