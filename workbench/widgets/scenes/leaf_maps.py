"""Leaves of points: a map of their densities, and the errors of all boxes of a size."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from workbench import noise
from workbench.datasets import Towns
from workbench.estimates import Leaves
from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.mechanisms import DirectSynthesis
from workbench.metrics import EarthMover, MeanSquaredError
from workbench.records import Records
from workbench.shares import sensitivity
from workbench.widgets.scenes import Picture, loaded
from workbench.workload import Level

TRUTH, RELEASE, ERROR, EXPECTED = "truth", "release", "error", "expected"
GRID = 6  # level of the truth's cells: 64 × 64
MAX_LEAVES = 4**GRID  # on a map
LEVELS = range(1, 8)  # of boxes whose errors are shown


def map_picture(dataset: Towns, data: Records, release: Release, series: str) -> Picture:
    """Homes per km², in cells and in leaves; squared errors of boxes, with what noise makes of them."""
    tree = data.hierarchy
    leaves = release.estimate
    facts = [("depth reached", f"{leaves.levels.max(initial=0)} of {tree.depth} levels")]
    drawn = leaves
    if len(leaves) > MAX_LEAVES:
        drawn = leaves.coarsened(GRID)
        facts.append(("drawn", f"{len(drawn):,} boxes: leaves below 1 km² are added up"))
    moved = EarthMover(tree.depth)(data, leaves)
    facts.append(("earth mover's distance", f"{moved:,.0f} records × side"))
    errors = _error_rows(data, release, series)
    rows = [_true_map(dataset), _boxes(drawn, RELEASE, series), errors]
    return Picture(pd.concat(rows, ignore_index=True), facts)


def _error_rows(data: Records, release: Release, series: str) -> pd.DataFrame:
    """Squared errors of the boxes of each level, measured and expected."""
    width = data.hierarchy.box[1][0]
    leaves = release.estimate
    rows = []
    for level in LEVELS:
        row = dict(side=width / 2**level, metric="MeanSquaredError")
        error = MeanSquaredError(Level(level))(data, leaves)
        rows.append(row | dict(panel=ERROR, series=series, value=error))
        expected = expected_box_errors(release.mechanism, leaves, sensitivity(data), level)
        for name, variance in expected.items():
            rows.append(row | dict(panel=EXPECTED, series=name, value=variance))
    return pd.DataFrame(rows)


def expected_box_errors(
    mechanism: Any, leaves: Leaves, l1: float, level: int
) -> dict[str, float]:
    """What noise adds to the squared error of a box of a level: here, and in a grid of such boxes."""
    errors = {}
    if not isinstance(mechanism, DirectSynthesis):
        errors["noise of the leaves, expected"] = leaves.noise_variance(level)
    elif level <= mechanism.depth:
        epsilon = mechanism.budgets()[2][level - 1]
        errors["noise of a count"] = noise.variance(l1, epsilon, "geometric")
    alone = noise.variance(l1, mechanism.budget.epsilon, "geometric")
    errors["a grid of such boxes, expected"] = alone
    return errors


@lru_cache(8)
def _true_map(dataset: Towns) -> pd.DataFrame:
    """The occupied cells."""
    data = loaded(dataset)
    keys, counts = data.level(GRID)
    cells = Leaves(data.hierarchy, np.full(len(counts), GRID), keys, counts)
    return _boxes(cells, TRUTH, "truth")


def _boxes(leaves: Leaves, panel: str, series: str) -> pd.DataFrame:
    """Leaves on a map and their density, on a sheet of the map's size: where there is none it is 0."""
    tree = leaves.hierarchy
    keys = np.append(tree.digits.root(), leaves.keys, axis=1)
    boxes = tree.frame(np.append(0, leaves.levels), keys)
    boxes = boxes.set_axis(["x0", "x1", "y0", "y1"], axis=1)
    areas = (boxes.x1 - boxes.x0) * (boxes.y1 - boxes.y0)
    x, y = tree.attributes
    return boxes.assign(
        value=np.append(0, leaves.values) / areas,
        metric="Density",
        labels=f"{x} (km)|{y} (km)",
        panel=panel,
        series=series,
    )
