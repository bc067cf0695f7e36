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

import numpy as np
import pandas as pd

from experiments.fan2015_data import SEEDS, TWIN, cases, dataset_columns, sampling_mechanisms
from workbench.claims import Claim, Finding, all_of, check_lower, format_number, mean_curve
from workbench.datasets.netflix_prize import WEEKDAYS
from workbench.metrics import ContextShare
from workbench.plots import Panel

TITLE = "The week of the sampled records"
PAGE = "Fan & Jin, WWW 2015, section 6.4, Figure 11"
ORIGINAL = "original"
SHORT = [day[:3] for day in WEEKDAYS]
LATE = {"Fri", "Sat", "Sun"}

PAPER: dict = {}  # no number is printed


def rows(profile: str, store) -> pd.DataFrame:
    """A row a dataset with days, sampling, seed and day; then the distance of each whole week."""
    found = []
    for case in cases(profile).values():
        data = case.dataset.load()
        labels = data.domain.labels[1]
        if tuple(labels) != WEEKDAYS:
            continue
        one, metrics = dataset_columns(case), [ContextShare(i) for i in range(len(WEEKDAYS))]
        week = np.array([metric(data, data) for metric in metrics])
        found += _days(one | {"series": ORIGINAL, "seed": 0}, week)
        for i, mechanism in enumerate(sampling_mechanisms(case)):
            for seed in range(SEEDS[profile]):
                kept = mechanism.bounded_data(data, np.random.default_rng([seed, i]))
                ours = np.array([metric(data, kept) for metric in metrics])
                told = one | {"series": type(mechanism).__name__, "seed": seed}
                distance = 0.5 * np.abs(ours - week).sum()
                found += _days(told, ours)
                found.append(told | {"metric": "TotalVariation", "value": distance})
    return pd.DataFrame(found)


def _days(told: dict, week: np.ndarray) -> list[dict]:
    days = zip(SHORT, week, strict=True)
    return [told | {"metric": "ContextShare", "day": day, "value": x} for day, x in days]


def panels(rows: pd.DataFrame) -> list[Panel]:
    """One a dataset."""
    return [
        Panel(name, {"panel": name, "metric": "ContextShare"}, "day", bars=True, log="")
        for name in rows.panel.unique()
    ]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset and sampling: how many percentage points each day gains, and the distance."""
    told = []
    for name in rows.panel.unique():
        week = _week(rows, name, ORIGINAL)["mean"]
        for series in ("SRA", "HPA"):
            gain = 100 * (_week(rows, name, series)["mean"] - week)
            line = {"dataset": name, "sampling": series}
            line |= {day: f"{gain[day]:+.2f}".replace("-", "−") for day in SHORT}
            far = _distance(rows, name, series)["mean"].iloc[0]
            told.append(line | {"distance": f"{far:.2%}"})
    return pd.DataFrame(told).set_index(["dataset", "sampling"])


def _week(rows, name: str, series: str) -> pd.DataFrame:
    return mean_curve(rows, "day", panel=name, series=series, metric="ContextShare")


def _distance(rows, name: str, series: str) -> pd.DataFrame:
    return mean_curve(rows, "metric", panel=name, series=series, metric="TotalVariation")


def _shift(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        if TWIN in name:
            continue
        week = _week(rows, name, ORIGINAL)["mean"]
        for series in ("SRA", "HPA"):
            ours, good, bad, words = _week(rows, name, series), [], [], []
            for day in (day for day in SHORT if week[day] > 0):
                sign = 1 if day in LATE else -1
                at, points = ours.loc[day], 100 * (ours["mean"][day] - week[day])
                above, below = at.low > week[day], at.high < week[day]
                good.append(above if sign > 0 else below)
                bad.append(below if sign > 0 else above)
                words.append(f"{day} {points:+.2f}".replace("-", "−"))
            holds = True if all(good) else False if any(bad) else None
            measured = ", ".join(words) + " percentage points"
            parts[f"{name}: {series} raises Friday to Sunday"] = Finding(holds, measured)
        near, far = (_distance(rows, name, series) for series in ("SRA", "HPA"))
        found = check_lower(near, far, 1)
        words = f"{format_number(100 * near['mean'].iloc[0])} % against {format_number(100 * far['mean'].iloc[0])} %"
        parts[f"{name}: SRA is closer"] = Finding(
            found.holds, words, if_unsettled=found.if_unsettled
        )
    if not parts:
        why = "No data with recorded days is at hand, and in the twins days are chance."
        return Finding(None, "", why, testable=False)
    return all_of(parts)


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
