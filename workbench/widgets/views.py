"""Views of an estimate (the noisy counts in a release). Each view compares the estimate with the true data
for one kind of query, if the estimate can answer such queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.data import Interactions, Records, SparseTable
from workbench.estimates import Leaves
from workbench.figures.plots import Panel
from workbench.queries import (
    Boxes,
    Level,
    RandomBoxes,
    RandomMarginalRanges,
    RandomRanges,
    Ranges,
    Recipe,
)
from workbench.spaces import Domain, Quadtree
from workbench.trials.metrics import MeanAbsoluteError, TopPrecision

PARTS = 64
QUERIES = {False: 60, True: 400}  # of each size, roughly and exactly
QUERY_SEED = 1  # that of the data would place the queries on its cells
MAP_LEVEL = 6  # of the truth's cells on a map, 64 × 64; finer leaves are added up
MAX_DIMS = 4  # attributes of a query
HALVINGS = 6  # of the sides of a box
SHOWN = 400  # queries, items or nodes whose counts are drawn
MAX_NODES = 2**12  # of a level whose errors are measured
TRUTH = "truth"

CHARTS = {
    "ranges": Panel("Error of ranges", {}, "query_size"),
    "whole": Panel(f"The domain in {PARTS} parts", {}, "cell", log=""),
    "sorted": Panel("Counts in ascending order", {}, "position", log="y"),
    "dims": Panel("Error of ranges over k attributes", {}, "dims", log="y"),
    "bought": Panel("What is released, by its truth", {}, "query", log=""),
    "off": Panel("How far off that is", {}, "query", log=""),
    "items": Panel("Items, the most popular first", {}, "place", log=""),
    "top": Panel("Most popular items found", {}, "top", log="x"),
    "levels": Panel("Error of nodes", {}, "node_level", log="y"),
    "places": Panel("Nodes of a level", {}, "node", log=""),
    "map": Panel("Records per unit of area", {}, "", cells=True, equal=True),
    "held": Panel("Nodes released", {}, "node_level", log=""),
    "boxes": Panel("Error of boxes", {}, "query_size"),
}
# of one release, not of their mean
COUNTS = {"whole", "sorted", "bought", "items", "places", "map"}


def range_sizes(m: int) -> tuple[int, ...]:
    """Return the sizes of ranges: 1, 10, 100 and so on, up to a tenth of the domain.

    >>> range_sizes(10_000)
    (1, 10, 100, 1000)
    """
    return tuple(10**k for k in range(len(str(m)) - 1)) or (1,)


def rows_of_views(truth: Any, estimate: Any, series: str, exact: bool) -> pd.DataFrame:
    """Compare an estimate with the true data in all views, and return the results, one number per row. Raise
    a ValueError if there are no results.
    """
    frames = []
    for view in VIEWS:
        with suppress(ValueError):  # what it cannot be asked
            frames += list(view(truth, estimate, series, exact))
    if not any(len(frame) for frame in frames):
        raise ValueError(f"{estimate!r} cannot answer any query that is drawn here")
    return pd.concat(frames)


def _rows(panel: str, series: str, metric: str, values: Any, at: Any) -> pd.DataFrame:
    row = {"panel": panel, "series": series, "metric": metric, CHARTS[panel].x: at}
    return pd.DataFrame(row | {"value": np.asarray(values, float)})


def _count_rows(
    panel: str, series: str, truth: Any, estimate: Any, at: Any
) -> list[pd.DataFrame]:
    """Return rows with the true counts and the released counts."""
    return [
        _rows(panel, TRUTH, "Count", truth, at),
        _rows(panel, series, "Count", estimate, at),
    ]


def _error_rows(
    panel: str, series: str, truth: Any, estimate: Any, workloads: Mapping[int, Recipe]
) -> pd.DataFrame:
    """Return rows with the mean absolute errors of those workloads (lists of queries) that the estimate can
    answer.
    """
    errors = {}
    for at, workload in workloads.items():
        with suppress(ValueError):
            errors[at] = MeanAbsoluteError(workload)(truth, estimate)
    return _rows(panel, series, "MeanAbsoluteError", [*errors.values()], [*errors])


def _ranges(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth.domain, Domain):
        sizes = range_sizes(truth.domain.size)
        ranges = {size: RandomRanges(size, QUERIES[exact], QUERY_SEED) for size in sizes}
        yield _error_rows("ranges", series, truth, estimate, ranges)


def _whole_domain(
    truth: Any, estimate: Any, series: str, exact: bool
) -> Iterator[pd.DataFrame]:
    if not isinstance(truth, SparseTable):
        return
    panel = "whole"
    m = truth.domain.size
    edges = np.linspace(0, m, min(PARTS, m) + 1).astype(np.int64)
    ranges = Ranges(edges[:-1], edges[1:])
    if truth.domain.attributes == ("rank",):
        panel = "sorted"
        ranks = np.unique(np.linspace(0, m - 1, SHOWN).astype(np.int64))
        ranges = Ranges(ranks, ranks + 1)
    counts = truth.answer(ranges), estimate.answer(ranges)
    yield from _count_rows(panel, series, *counts, ranges.lo)


def _attributes(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth, SparseTable) and len(truth.domain.shape) > 1:
        most = min(len(truth.domain.shape), MAX_DIMS)
        ranges = {
            k: RandomMarginalRanges(QUERIES[exact], k, seed=QUERY_SEED)
            for k in range(1, most + 1)
        }
        yield _error_rows("dims", series, truth, estimate, ranges)


def _noisy_answers(
    truth: Any, estimate: Any, series: str, exact: bool
) -> Iterator[pd.DataFrame]:
    workload = getattr(estimate, "workload", None)
    if hasattr(estimate, "lo"):
        workload = Boxes(estimate.lo, estimate.hi)
    if workload is None:
        return
    true_answers = truth.answer(workload)
    rank = np.unique(np.linspace(0, len(true_answers) - 1, SHOWN).astype(np.int64))
    query = np.argsort(true_answers, kind="stable")[rank]
    counts = true_answers[query]
    answers = estimate.values[query]
    yield from _count_rows("bought", series, counts, answers, rank + 1)
    yield _rows("off", series, "MeanSignedError", answers - counts, rank + 1)


def _items(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not (isinstance(truth, Interactions) and hasattr(estimate, "items")):
        return
    counts = truth.item_counts()
    n = truth.domain.shape[0]
    places = np.unique(np.geomspace(1, n, SHOWN).astype(np.int64))
    items = np.argsort(-counts, kind="stable")[places - 1]
    yield from _count_rows("items", series, counts[items], estimate.items.values[items], places)
    tops = np.unique(np.geomspace(1, n, 12).astype(np.int64))
    precisions = [TopPrecision(int(k))(truth, estimate) for k in tops]
    yield _rows("top", series, "TopPrecision", precisions, tops)


def _nodes(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not isinstance(truth, Records):
        return
    nodes = np.cumprod([1.0, *truth.hierarchy.digits.radices])  # of each level
    levels = {level: Level(level) for level in np.flatnonzero(nodes <= MAX_NODES).tolist()}
    yield _error_rows("levels", series, truth, estimate, levels)
    shown = Level(int(np.flatnonzero(nodes <= SHOWN)[-1]))
    counts = truth.answer(shown), estimate.answer(shown)
    yield from _count_rows("places", series, *counts, np.arange(len(counts[0])))
    if hasattr(estimate, "levels"):
        held = np.bincount(estimate.levels)
        yield _rows("held", series, "Nodes", held, np.arange(len(held)))


def _map(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not (isinstance(truth, Records) and isinstance(estimate, Leaves)):
        return
    tree = truth.hierarchy
    if not isinstance(tree, Quadtree) or len(tree.attributes) != 2:
        return
    keys, counts = truth.level(MAP_LEVEL)
    cells = Leaves(tree, np.full(len(counts), MAP_LEVEL), keys, counts)
    if len(estimate) > 4**MAP_LEVEL:
        estimate = estimate.coarsened(MAP_LEVEL)
    for name, leaves in ((TRUTH, cells), (series, estimate)):
        # A sheet of the map's size lies below: where there is no leaf, the density is 0.
        boxes = tree.frame(
            np.append(0, leaves.levels), np.append(tree.digits.root(), leaves.keys, axis=1)
        ).set_axis(["x0", "x1", "y0", "y1"], axis=1)
        areas = (boxes.x1 - boxes.x0) * (boxes.y1 - boxes.y0)
        row = dict(panel="map", series=name, metric="Density", labels="|".join(tree.attributes))
        yield boxes.assign(value=np.append(0, leaves.values) / areas, **row)


def _boxes(truth: Any, estimate: Any, series: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth, Records) and hasattr(estimate, "lo"):  # which answers nothing else
        boxes = {}
        for k in range(1, HALVINGS + 1):
            shape = tuple(max(1, n >> k) for n in truth.hierarchy.shape)
            boxes[prod(shape)] = RandomBoxes(shape, QUERIES[exact], QUERY_SEED)
        yield _error_rows("boxes", series, truth, estimate, boxes)


VIEWS: tuple[Callable[..., Iterator[pd.DataFrame]], ...] = (
    _items,
    _map,
    _nodes,
    _boxes,
    _noisy_answers,
    _ranges,
    _whole_domain,
    _attributes,
)
