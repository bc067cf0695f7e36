"""Figure 5 of Fan & Jin (2015): how many popular items the first step of HPA (the handpicked algorithm)
finds.

Paper   Fan & Jin, WWW 2015: sections 4.2 and 6.1, Figure 5.
Read    We read all numbers from the text, because the plots are not in our copy.
Open    The paper plots Foursquare and Netflix. HPA's first step takes d records of each user at random, where
        d is the smallest number of records of a user. It spends a tenth of ε = 1 on the counts of items, with
        noise of scale 10·d. Negative counts become 0, as in Equation 11, so there are ties at the end of the
        list. The paper does not say how ties are broken. Here the precision is the mean over random orders. A
        stand-in has the paper's number of users, but its popularity of items is invented. The column "records
        over noise" shows how hard the task is. It is the expected count of the K-th most popular item among d
        records per user, divided by the standard deviation of the noise.
"""

from __future__ import annotations

from math import nextafter
from typing import Any

import numpy as np

from experiments.fan2015.data import (
    Case,
    FanFigure,
    datasets,
    panel_of,
    paper_first,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.unreleased import Unreleased
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import HPA
from workbench.noise import variance
from workbench.trials.claims import Finding, Printed, check_printed, mean_curve, means
from workbench.trials.metrics import TopPrecision, weighted_counts
from workbench.value import format_number, parameter, value

PAPER = {
    "Foursquare": (
        Printed("more than 60 %", nextafter(0.6, 1), 1, at=20),
        Printed("40 %", 0.35, 1, at=100, value=0.4),
    ),
    "Netflix": (
        Printed("70 %", 0.65, 1, at=20, value=0.7),
        Printed("almost 80 %", 0.64, 1, at=100, value=0.8),
    ),
}


@value
class FirstStep:
    """First step of HPA alone, which computes noisy scores of items. It runs in trials, but its result is not
    a release.
    """

    mechanism: HPA
    series = "HPA"

    @property
    def budget(self) -> DP:
        """Budget that this step spends."""
        return DP(self.mechanism.budgets()[0])

    def __call__(self, data: Interactions, rng: np.random.Generator) -> Unreleased:
        """Return the scores."""
        scores, _ = self.mechanism.scores(data, rng)
        noise = variance(self.mechanism.d, self.budget.epsilon, "geometric")
        return Unreleased(score_tables(data, scores, noise))


def score_tables(data: Interactions, scores: np.ndarray, noise: float) -> ItemEdgeCounts:
    """Return the scores as an estimate of item counts, with the given variance of the noise. All edge counts
    are 0.
    """
    domain = data.domain
    items = Histogram(domain.project(domain.attributes[:1]), scores, noise)
    return ItemEdgeCounts(items, Histogram(domain, np.zeros(domain.size)))


@value
class SignalToNoise:
    """Metric: expected count of the K-th most popular item among d records per user, divided by the standard
    deviation of the noise.
    """

    d: int = parameter(low=1, integer=True, unit="records", doc="records of each user")
    tops: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="K")

    def __call__(self, truth: Interactions, estimate: ItemEdgeCounts) -> pd.DataFrame:
        """Return the metric's values, with one row per K."""
        sizes = truth.records_per_user()
        counts = -np.sort(-weighted_counts(truth, np.minimum(sizes, self.d) / sizes))
        ratios = counts[np.array(self.tops) - 1] / np.sqrt(estimate.items.variance)
        return pd.DataFrame({"top": self.tops, "value": ratios})


def check_share(rows, level, of: str, top: int) -> Finding:
    """Check whether the mean precision for one K on one dataset agrees with the printed number."""
    (point,) = (point for point in PAPER[of] if point.at == top)
    own = rows_of(rows, of)
    own = own[(own.metric == "TopPrecision") & (own.top == top)]
    own = own.assign(
        series="HPA"
    )  # where l varies it is named with it, which this step has not
    return check_printed(means(own, "HPA", "top"), level, point)


@value
class Fig5(FanFigure, Figure):
    """Precision of the K items with the highest scores of HPA's first step."""

    title = "Popular items, found by the first step of HPA alone"
    page = "Fan & Jin, WWW 2015, section 6.1, Figure 5"
    quick = {"netflix_users": 20_000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 2}
    shown = ("d",)  # each dataset has its own
    height = 1.6
    sharey = True
    main = 4

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0, "privacy budget ε of HPA")
    popularity_share: float = number(0.1, "share of ε for popularity", 0.001, 0.999)
    d: int | None = whole(None, "records kept per user (none: published minimum)")
    tops: tuple[int, ...] = whole((1, 2, 5, 10, 20, 30, 50, 70, 100), "K", unit="items")
    netflix_users: int = users_of_netflix()
    seeds: int = seeds(20)

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep (plan of runs) per dataset."""

        def first_step(case: Case) -> list[FirstStep]:
            share = {"popularity_share": self.popularity_share}
            return [FirstStep(HPA(DP(self.epsilon), case.l, case.d, **share))]

        def metrics(case: Case) -> list[Any]:
            return [*map(TopPrecision, self.tops), SignalToNoise(case.d, self.tops)]

        return self.sweep_all(first_step, metrics, self.seeds)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per dataset, with the paper's datasets first. Brackets show the numbers that the
        paper prints.
        """
        printed = {panel_of(rows, of): points for of, points in PAPER.items()}
        grid = []
        for name in paper_first(rows, *PAPER):
            where = {"panel": name, "metric": "TopPrecision"}
            grid.append(Panel(name, where, "top", log="", printed=printed.get(name, ())))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. There is one curve for HPA's first step, whatever l
        (records kept per user) is.
        """
        return rows.assign(series=FirstStep.series)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with one row per dataset for K = 20 and K = 100: the printed precision, ours, and
        the records divided by the noise.
        """
        printed = {panel_of(rows, of): points for of, points in PAPER.items()}
        lines = []
        for name in rows.panel.unique():
            ratio = mean_curve(rows, "top", panel=name, metric="SignalToNoise")["mean"]
            precision = mean_curve(rows, "top", panel=name, metric="TopPrecision")["mean"]
            for point in printed.get(name, PAPER["Foursquare"]):  # or beside the least printed
                line = {"dataset": name, "K": point.at}
                line["the paper prints"] = point.says if name in printed else ""
                line["we measure"] = f"{precision[point.at]:.0%}"
                line["records over noise"] = format_number(ratio[point.at])
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "K"])
