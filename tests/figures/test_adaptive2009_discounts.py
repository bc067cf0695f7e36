"""Appendix A of adaptive2009: checks tell true worlds from false ones, and shapes are what they say."""

import numpy as np
import pytest

from experiments.adaptive2009 import appA
from tests.figures.worlds import World, every, figure_of, noisy, outcomes_of
from workbench import DP, Bound, Trial
from workbench.data import Records
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.spaces import Prefixes, Quadtree
from workbench.trials.claims import DEPENDS, UNTESTABLE

APPENDIX = figure_of(appA)
SHAPES = {"uniform": 8, "proportional": 4, "progressive": 2, "fractional": 1, "skip": 4}


def world():
    metrics = (appA.DEEPEST, appA.MEAN, *appA.BREADTHS)
    panels = (appA.REAL, appA.NAMES)
    rows = every(panel=panels, epsilon=APPENDIX.epsilons, series=SHAPES, metric=metrics)
    depth = rows.series.map(SHAPES)
    return noisy(rows.assign(value=depth.mask(rows.metric.isin(appA.BREADTHS), 100 / depth)))


def alike(rows):
    """Two ways that make the same."""
    alike = rows[rows.series == "uniform"].assign(series="proportional")
    alike = alike.assign(value=alike.value * np.exp(0.01 * np.sin(np.arange(len(alike)))))
    return appA.pd.concat([rows[rows.series != "proportional"], alike])


BROKEN = [
    ("a-A-1.1", alike),
    ("a-A-2.1", ({"series": "uniform"}, 0.1)),
    ("a-A-2.2", ({"series": "uniform"}, 100)),
    ("a-A-2.1", ({"series": "uniform", "metric": appA.MEAN}, 0.1), DEPENDS),
    ("a-A-2.2", ({"series": "progressive", "metric": appA.WIDEST}, 0.01), DEPENDS),
]
WORLDS = [World(APPENDIX, world, BROKEN)]


def test_without_both_files_nothing_is_decided():
    rows = world()
    assert set(outcomes_of(APPENDIX(), rows[rows.panel == appA.REAL]).values()) == {UNTESTABLE}


def shape(records, threshold=2):
    mechanism = ImprovedAdaptiveHistogram(DP(50.0), threshold=threshold)
    leaves = Trial(None, mechanism, 0).release(records).estimate
    found = appA.Shape()(records, leaves).set_index("metric").value
    return leaves, found


def test_shapes_are_counted_on_a_tree_of_points():
    points = np.random.default_rng(0).random((300, 2)) ** 3
    records = Records.from_values(Quadtree(2, 6), points, Bound(), truth_public=True)
    leaves, found = shape(records)
    split = appA.split_nodes(leaves, appA.own_levels(leaves))
    assert len(leaves) == 1 + 3 * split.sum() == found[appA.LEAVES]
    assert found[appA.WIDEST] == split.max() and split[0] == 1
    held = records.counts_between(leaves.keys)
    assert found[appA.MEAN] == pytest.approx((leaves.levels * held).sum() / records.total)
    assert found[appA.DEEPEST] == leaves.levels[held > 0].max()


def test_a_string_that_has_ended_is_as_deep_as_it_is_long():
    texts = ["a"] * 30 + ["ab"] * 40 + ["b"] * 20
    records = Records.from_values(Prefixes("ab", 6), texts, Bound(), truth_public=True)
    leaves, found = shape(records, threshold=5)
    split = appA.split_nodes(leaves, appA.own_levels(leaves))
    assert len(leaves) == 1 + 2 * split.sum() and found[appA.DEEPEST] <= 4
