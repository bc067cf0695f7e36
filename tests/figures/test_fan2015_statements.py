"""Statements of Fan & Jin: each holds in a made-up world where it is true, and differs in broken ones."""

import numpy as np
import pandas as pd

from experiments.fan2015 import fig1 as fan2015_fig1
from experiments.fan2015 import fig5 as fan2015_fig5
from experiments.fan2015 import fig10 as fan2015_fig10
from experiments.fan2015 import fig11 as fan2015_fig11
from experiments.fan2015 import table4 as fan2015_table4
from experiments.fan2015 import table5 as fan2015_table5
from experiments.fan2015.table4 import TABLE
from experiments.fan2015.unreleased import Habits
from tests.figures.worlds import World, changed, every, figure_of, noisy, outcomes_of
from workbench.trials.claims import DEPENDS, DIFFERS, HOLDS, UNTESTABLE


def fig1():
    sizes = np.array([17_000] + 99 * [3000] + 4900 * [80])
    one = {"panel": "Netflix", "dataset": "NetflixPrize()", "seed": 0}
    numbers = fan2015_fig1.statistics(sizes).items()
    return pd.DataFrame([one | {"metric": metric, "value": value} for metric, value in numbers])


def table4():
    rows = []
    for of, known in TABLE.items():
        names = (*fan2015_table4.COUNTS, "mean")
        one = {"panel": of, "of": of, "dataset": of}
        rows += [one | {"metric": m, "value": x} for m, x in zip(names, known, strict=True)]
    return pd.DataFrame(rows)


def fig10():
    shares = {"Gowalla": 0.2, "Foursquare": 0.3, "Netflix": 0.04, "MovieLens": 0.1}
    units = {"StoredRecords": 1000, "SampledSize": 1, "bound": 1}
    rows = every(panel=shares, series=("original", "SRA", "HPA"), metric=units, seed=0)
    part = rows.panel.map(shares).where(rows.series != "original", 1)
    return rows.assign(value=part * rows.metric.map(units), dataset=rows.panel)


def fig5():
    tops = fan2015_fig5.Fig5().tops
    rows = every(panel=("Foursquare", "Netflix"), series="HPA, l = 10", top=tops)
    rows = rows.assign(dataset=rows.panel)  # MovieLens' has l = 30
    precision = rows.assign(metric="TopPrecision", value=np.where(rows.top < 50, 0.9, 0.8))
    return noisy(
        pd.concat([precision, rows.assign(metric="SignalToNoise", value=10 / rows.top)])
    )


def fig11():
    week = dict(
        zip(fan2015_fig11.SHORT, [0.15, 0.15, 0.15, 0.15, 0.15, 0.1, 0.15], strict=True)
    )
    rows = []
    for series, times in (("original", 0), ("SRA", 1), ("HPA", 3)):
        one = {"panel": "Foursquare", "dataset": "Foursquare", "series": series}
        for day, share in week.items():
            shift = 0.01 if day in ("Fri", "Sat", "Sun") else -0.01
            by_day = {"metric": "ContextShare", "day": day, "value": share + times * shift}
            rows.append(one | by_day)
        rows.append(one | {"metric": "TotalVariation", "value": 0.03 * times})
    shares = {Habits.ALL: 0.4, Habits.FEW: 0.5, Habits.MANY: 0.35, Habits.OCCASIONAL: 0.6}
    shares |= {Habits.popular(k): 0.45 for k in Habits.POPULAR}
    habits = {"panel": "Foursquare", "dataset": "Foursquare", "series": "original"}
    habits |= {"metric": "Habits", "seed": 0}
    exactly = [habits | {"group": group, "value": share} for group, share in shares.items()]
    sampled = noisy(rows, spread=0.001)
    return pd.concat([sampled, pd.DataFrame(exactly)], ignore_index=True)


def table5():
    laws = {"SRA": 0.2, "HPA": 0.8, "LPA": 0.0, "DFT": 0.0, "GS": 0.1}
    readings, tops = fan2015_table5.READINGS, fan2015_table5.Table5().tops
    rows = every(
        panel="MovieLens",
        dataset="MovieLens",
        metric="TopPrecision",
        reading=readings,
        series=laws,
        top=tops,
    )
    return noisy(rows.assign(value=rows.series.map(laws)))


# of what the paper prints itself, two numbers contradict the others
FALSE = {"f-t4.6": DIFFERS, "f-t4.7": DIFFERS}
ARITHMETIC = {"f-7a-2.2", "f-10.2"} | {
    f"f-t4.{i}" for i in range(5, 9)
}  # of printed numbers alone
BROKEN = [
    ("f-1.1", ({"metric": fan2015_fig1.OVER_MOST}, 2)),
    ("f-1.1", ({"metric": "most of a user"}, 1.1)),
    ("f-1.2", ({"metric": fan2015_fig1.SMALL_USERS}, 0.5)),
    ("f-1.3", ({"metric": fan2015_fig1.SMALL_USERS}, 0.9)),
    ("f-t4.1", ({"panel": "Gowalla", "metric": "users"}, 1.001)),
    ("f-t4.2", ({"panel": "Foursquare", "metric": "items"}, 1.001)),
    ("f-t4.3", ({"panel": "Netflix", "metric": "max"}, 1.07)),
    ("f-t4.4", ({"panel": "MovieLens", "metric": "min"}, 2)),
    ("f-5.1", ({"panel": "Foursquare", "metric": "TopPrecision", "top": 20}, 0.5)),
    ("f-5.2", ({"panel": "Netflix", "metric": "TopPrecision", "top": 20}, 0.65)),
    ("f-5.3", ({"panel": "Foursquare", "metric": "TopPrecision", "top": 100}, 0.4)),
    ("f-5.4", ({"panel": "Netflix", "metric": "TopPrecision", "top": 100}, 0.7)),
    ("f-11.1", ({"series": "SRA", "day": "Sun"}, 0.9)),
    ("f-11.2", ({"series": "HPA", "day": "Mon"}, 1.5)),
    ("f-11.3", ({"series": "SRA", "day": "Wed"}, 0.7)),
    ("f-11-2.1", ({"group": Habits.OCCASIONAL}, 0.5)),
    ("f-11-2.2", ({"group": Habits.FEW}, 0.5)),
    ("f-11-2.3", ({"metric": "Habits", "group": Habits.ALL}, 2)),
    ("f-11-2.3", ({"group": Habits.popular(1000)}, 0.5), DEPENDS),  # how many is not printed
    ("f-t5.1", ({"series": "HPA"}, 0.8)),
    ("f-t5.2", ({"series": "SRA"}, 5)),
    ("f-7a-2.1", ({"panel": "MovieLens", "metric": "SampledSize"}, 2.5)),
    ("f-10.1", ({"panel": "Gowalla", "series": "HPA", "metric": "SampledSize"}, 5)),
]
WORLDS = [
    World(figure_of(spec), make, BROKEN, otherwise=FALSE, forced=ARITHMETIC)
    for spec, make in (
        (fan2015_table5, table5),
        (fan2015_fig1, fig1),
        (fan2015_table4, table4),
        (fan2015_fig10, fig10),
        (fan2015_fig5, fig5),
        (fan2015_fig11, fig11),
    )
]


def outcomes(spec, world):
    return outcomes_of(figure_of(spec)(), world)


def test_what_needs_a_file_is_not_testable_on_its_twin():
    world = fig1().replace("Netflix", "Netflix twin, 20,000 users")
    found = outcomes(fan2015_fig1, world)
    assert found == {"f-1.1": UNTESTABLE, "f-1.2": HOLDS, "f-1.3": UNTESTABLE}


def test_without_netflix_its_publisher_counts_the_films():
    world = table4().replace({"panel": {"Netflix": "Netflix twin"}})
    finding = fan2015_table4.check_counts(world, 0.95, "Netflix")
    assert finding.holds is False and finding.why == "as its publisher counts"
    assert finding.measured == "items 17,770, printed 17,700"


def test_a_mean_is_checked_against_printed_counts(monkeypatch):
    monkeypatch.setitem(TABLE, "Foursquare", (*TABLE["Foursquare"][:-1], 28.2))
    found = outcomes(fan2015_table4, table4())
    assert found["f-t4.6"] == HOLDS and found["f-t4.7"] == DIFFERS
    monkeypatch.setitem(TABLE, "Gowalla", (*TABLE["Gowalla"][:-1], 61.0))
    assert outcomes(fan2015_table4, table4())["f-t4.5"] == DIFFERS
    assert outcomes(fan2015_fig10, fig10())["f-7a-2.2"] == HOLDS
    monkeypatch.setitem(TABLE, "Gowalla", (*TABLE["Gowalla"][:-1], 170.0))
    assert outcomes(fan2015_fig10, fig10())["f-7a-2.2"] == DIFFERS
    monkeypatch.setitem(TABLE, "Netflix", (600_000, *TABLE["Netflix"][1:]))
    assert outcomes(fan2015_fig10, fig10())["f-10.2"] == DIFFERS


def test_a_statement_that_holds_under_one_reading_of_the_budget_depends_on_it():
    world = changed(table5(), {"series": "HPA", "reading": "total"}, 0.5)
    (kept, _) = figure_of(fan2015_table5)().judge(world)
    assert (
        kept.outcome == DEPENDS
        and kept.strip.in_words()
        == "holds for ε = each … each, and popularity; differs for ε = total"
    )
