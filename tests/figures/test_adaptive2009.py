"""Specs of adaptive2009 on points: each check tells a world where its claim is true from others."""

import math
from itertools import product

import matplotlib
import numpy as np
import pandas as pd
import pytest

from experiments.adaptive2009 import fig5 as adaptive2009_fig5
from experiments.adaptive2009 import fig6_7 as adaptive2009_fig6_7
from experiments.adaptive2009 import shared as commutes
from experiments.adaptive2009 import table1 as adaptive2009_table1
from experiments.adaptive2009 import thm3 as adaptive2009_thm3
from experiments.adaptive2009.shared import SETTINGS, basic, direct, improved
from experiments.adaptive2009.thm3 import worst_by_splits
from tests.figures.worlds import World, changed, every, figure_of, noisy, outcomes_of
from workbench import Sweep
from workbench.datasets import CommuteTwin
from workbench.trials import run
from workbench.trials.claims import DEPENDS, HOLDS, UNDECIDED, UNTESTABLE

matplotlib.use("Agg")

FIG5, FIG6_7, TABLE1 = map(
    figure_of, (adaptive2009_fig5, adaptive2009_fig6_7, adaptive2009_table1)
)
EPSILONS = commutes.Commutes.epsilons
THM3 = figure_of(adaptive2009_thm3)


def fig5():
    """Rows of figure 5 in which all that the paper says is so; `completed` derives what follows."""
    spec = adaptive2009_fig5
    made = []
    for epsilon, level in product(EPSILONS, range(1, 11)):
        about = {"panel": commutes.REAL, "epsilon": epsilon, "down_to": level}
        about |= {"metric": spec.DISTANCE}
        for setting in ("total", "each", *SETTINGS):
            scale = level / epsilon**0.5 * (1 if setting.startswith("total") else 0.5)
            known = {spec.IMPROVED: 25, spec.BASIC: 40}
            if setting in ("total", "each"):
                known = {spec.DIRECT: 20}
            for series, x in known.items():
                row = {"series": series, "setting": setting, "value": x * scale}
                made.append(about | row)
        about = {"panel": commutes.REAL, "epsilon": epsilon, "series": spec.DIRECT}
        about |= {"metric": spec.NODE, "setting": "total", "node_level": level, "scale": 9.0}
        known = {"R": 0.9, "R²": 0.5, "largest": 0.1}
        made += [
            about | {"at_least": name, "value": x, "nodes": 20, "resampled": 1.0}
            for name, x in known.items()
        ]
        beside = {"series": spec.IMPROVED, "setting": "total k", "at_least": "largest"}
        made.append(about | beside | {"value": -2.0})
    made += [
        {"panel": commutes.REAL, "epsilon": np.inf, "series": spec.RESAMPLE, "down_to": level}
        | {"metric": spec.THEORY, "value": 20.0 * level}
        for level in range(1, 11)
    ]
    return noisy(made)


def completed(world):
    own = world.value / 10 * np.where(world.series == commutes.DIRECT, 1, 10)
    return world.assign(own=own, all_nodes=world.value / 1e6, drawn=True)


DIRECTLY = {"series": "direct synthesis"}
BROKEN5 = [
    ("a-5-1.2", (DIRECTLY | {"setting": "total", "epsilon": 0.1, "metric": "EarthMover"}, 0.2)),
    ("a-5-1.3", (DIRECTLY | {"setting": "total", "epsilon": 0.1, "metric": "EarthMover"}, 5)),
    ("a-5-2.1", ({"metric": "ExpectedResampling"}, 0.1)),
    ("a-5-2.2", ({"at_least": "R²"}, 3)),
    ("a-4.1", ({"at_least": "R"}, 15)),
    ("a-4.2", ({"at_least": "R"}, 20)),
    ("a-4.3", ({"at_least": "R", "node_level": 4}, 30)),
    ("a-4-2.1", (DIRECTLY | {"metric": "EarthMover"}, 4)),
    ("a-13-2.1", ({"series": "basic histogram"}, 0.3)),
    ("a-13-2.2", ({"series": "basic histogram"}, 0.3)),
    ("a-13-3.1", ({"series": "improved histogram"}, 0.03)),
    ("a-13-3.2", ({"at_least": "largest"}, 30)),
]


def test_what_is_not_printed_can_decide():
    where = DIRECTLY | {"metric": "EarthMover", "setting": "each"}
    world = completed(changed(fig5(), where, 4))
    found = {verdict.id: verdict for verdict in FIG5().judge(world)}
    assert found["a-4-2.1"].outcome == DEPENDS
    assert "(total, ln k, improved histogram) ✓" in str(found["a-4-2.1"].strip)
    assert "(each, ln k, improved histogram) ✗" in str(found["a-4-2.1"].strip)
    quick = world[~(world.setting.isin(SETTINGS) & (world.setting != "total k"))]
    assert outcomes_of(FIG5(), quick)["a-13-2.1"] == UNDECIDED, "other settings were not run"


def test_other_data_stands_beside_what_decides():
    world = completed(fig5())
    both = pd.concat([world, world.assign(panel=commutes.TWIN)], ignore_index=True)
    found = {verdict.id: verdict for verdict in FIG5().judge(both)}
    assert found["a-4.2"].outcome == HOLDS
    assert f"{commutes.TWIN}: holds" in found["a-4.2"].measured
    assert f"{commutes.IMPROVED} " in found["a-13-3.2"].measured


def test_without_rhode_island_nothing_is_decided():
    world = completed(fig5()).assign(panel=commutes.TWIN)
    assert set(outcomes_of(FIG5(), world).values()) == {UNTESTABLE}


def fig6_7():
    gaps = {"City": 0.005, "Town": 0.006, "Island": 0.2, "Village": 0.008}
    kinds = {"City": "populous", "Town": "populous", "Island": "sparse", "Village": "sparse"}
    about = dict(panel=commutes.REAL, origin=gaps, population=9, commuters=5)
    about |= dict(metric=adaptive2009_fig6_7.GAP, product="matched", series=commutes.IMPROVED)
    rows = every(**about, epsilon=EPSILONS, setting=SETTINGS)
    rows = rows.assign(kind=rows.origin.map(kinds), value=rows.origin.map(gaps))
    return noisy(rows, seeds=20)


def table1():
    spec = adaptive2009_table1
    made = [dict(series=spec.SOURCE, epsilon=np.inf, metric=spec.SQUARES, value=100.0)]
    for epsilon in EPSILONS:
        away = 0.2 / (1 + math.log10(epsilon) / 2)
        for metric, x in ((spec.AWAY, away), (spec.SQUARES, 140.0)):
            made.append(dict(series=spec.DIRECT, epsilon=epsilon, metric=metric, value=x))
    return noisy(made).assign(panel=commutes.REAL)


def test_how_wide_a_line_is_can_decide():
    world = changed(fig6_7(), {"origin": "Town"}, 5)
    (verdict, *_) = FIG6_7().judge(world)
    assert verdict.outcome == DEPENDS and "(total, k, 5) ✓" in str(verdict.strip)
    assert "(total, k, 1) ✗" in str(verdict.strip)


def thm3():
    return THM3.at("quick").rows()


BROKEN = [
    ("a-6.1", ({"origin": "Town", "epsilon": 0.1}, 20)),
    ("a-7.1", ({"origin": "Island", "epsilon": 10.0}, 0.01)),
    ("a-7.2", ({"origin": "Town", "epsilon": 1.0}, 100)),
    ("a-t1.1", ({"metric": "TotalVariation", "epsilon": 10.0}, 3)),
    ("a-t1.2", ({"metric": "EffectiveSquares", "epsilon": 1.0}, 0.5)),
]
BROKEN_THM3 = [
    ("a-th3.1", ({"panel": "ε", "noise": "laplace", "way": "added", "epsilon": 0.1}, 1.6)),
    ("a-th3.1", ({"panel": "ε", "noise": "laplace", "way": "removed"}, 2.1)),
    ("a-th3.2", ({"panel": "paths", "splits": 20.0}, 2)),
    ("a-th3.2", ({"panel": "paths", "splits": np.inf}, 2)),
    ("", ({"panel": "ε", "noise": "geometric"}, 3)),
]
WORLDS = [
    World(FIG5, fig5, BROKEN5, derive=completed),
    World(FIG6_7, fig6_7, BROKEN),
    World(TABLE1, table1, BROKEN),
    World(THM3, thm3, BROKEN_THM3, alone=True),
]


# --- what the specs compute themselves


def test_data_that_is_not_at_hand_has_a_twin(no_files):
    for profile in ("quick", "paper"):
        assert list(FIG5.at(profile).datasets()) == [commutes.TWIN]
    assert list(FIG5.at("quick", data=commutes.TWIN).datasets()) == [commutes.TWIN]


def test_each_noisy_count_has_epsilon_where_that_is_meant():
    for epsilon in FIG5.epsilons:
        structure, leaves = improved(epsilon, "each k", 16).budgets()
        assert [structure / 2, leaves] == pytest.approx([epsilon, epsilon])
        assert basic(epsilon, "each k", 16, 10).budgets() == pytest.approx([epsilon] * 11)
        assert direct(epsilon, "each", 10, 99).budgets().counts == pytest.approx([epsilon] * 10)


SMALL = CommuteTwin(3000, depth=8)


@pytest.mark.slow
def test_resampling_costs_what_is_expected(tmp_path):
    metrics = [adaptive2009_fig5.DistanceByLevel(8), adaptive2009_fig5.ExpectedResampling(8)]
    rows = run(Sweep([SMALL], [commutes.Resample()], metrics, 40), tmp_path)
    rows["value"] = rows.groupby(["metric", "seed"]).value.diff().fillna(rows.value)
    found = rows[rows.metric == adaptive2009_fig5.DISTANCE].groupby("down_to").value
    law = rows[rows.metric == "ExpectedResampling"].groupby("down_to").value.mean()
    assert (rows.records.dropna() == 3000).all(), "as many records as the source"
    assert ((found.mean() - law).abs() <= 5 * found.std() / np.sqrt(40) + 1e-9).all()


def test_origins_are_chosen_by_public_population():
    found = commutes.origins(SMALL, 1)
    assert list(found.kind) == ["populous", "sparse"]
    assert list(found.place) == ["city 1", "city 3000"]


# --- Theorem 3


def test_the_loss_of_endless_paths_is_that_of_long_ones():
    paths = THM3.at("quick", epsilons=1.0, splits=60).rows().query("panel == 'paths'")
    by_splits = paths.pivot(index="series", columns="splits", values="value")
    endless = np.maximum(by_splits[60.0], 1)  # a record that is removed costs ε
    assert by_splits[np.inf].to_numpy() == pytest.approx(endless.to_numpy())


def test_more_splits_cost_no_more():
    found = worst_by_splits(0.1, 28, 35, 20) / 0.1
    assert (np.diff(found) >= 0).all() and found[-1] < 1.4 and found[0] == pytest.approx(1)


def test_trees_cost_no_more_than_they_pay():
    found = THM3().privtree_losses()
    assert found.value.max() < 1 and found.value.min() > 0.7


def test_losses_follow_their_setting():
    changed = THM3.at("quick", epsilons=1.0, fanouts="4,8", epsilon=0.5, fanout=4, splits=3)
    rows = changed.rows()
    assert set(rows[rows.panel == "ε"].series) == {"k = 4", "k = 8", "k = 4, b thrice"}
    assert set(rows[rows.panel == "t"].epsilon) == {0.5}
    assert rows[rows.panel == "depth"].splits.max() == 3
    assert len(changed.draw(rows).axes) == 4 and list(changed.discounts().index.levels[0]) == [
        4,
        8,
    ]
    assert {verdict.outcome for verdict in changed.judge(rows)} == {HOLDS}, "nothing is printed"
