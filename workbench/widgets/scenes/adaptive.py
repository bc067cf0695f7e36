"""Adaptive histograms: leaves of points on a map, and leaves of strings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench import noise
from workbench.compiled import pd
from workbench.data import Records
from workbench.datasets import QueryLogTwin, Towns
from workbench.estimates import Leaves
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
    PrivTree,
)
from workbench.mechanisms.protocol import sensitivity
from workbench.privacy import DP
from workbench.queries import Level
from workbench.trials.claims import interpolate_log_log
from workbench.trials.metrics import (
    EarthMover,
    MeanSquaredError,
    RecoveredFraction,
    match_strings,
)
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, loaded
from workbench.widgets.scenes.summaries import refuse_many
from workbench.widgets.view import Setting

# Leaf maps

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


# Leaf strings

TOP = "top"
WIDE = 400  # prefixes of less than so many-th of all records are not drawn
LISTED = 40  # strings


def string_picture(
    dataset: QueryLogTwin, data: Records, release: Release, series: str
) -> Picture:
    """Prefixes of truth and release; how often the most frequent strings are released."""
    tree = data.hierarchy
    truth = _truth(dataset)
    prefixes, longest = _prefixes(release.estimate, RELEASE, series)
    keys, copies, true_counts = match_strings(data, release.estimate)
    frequent = true_counts >= min(truth.counts, default=1)
    texts = tree.texts(keys[:, frequent])
    released = dict(zip(texts, copies[frequent].tolist(), strict=True))
    ours = [released.get(text, np.nan) for text in truth.texts]  # NaN: it was not found
    place = np.arange(len(truth.texts)) + 1
    top = pd.DataFrame(dict(place=place, panel=TOP, metric="Count"))
    rows = [
        truth.prefixes,
        prefixes,
        top.assign(series="truth", value=truth.counts),
        top.assign(series=series, value=ours),
    ]
    first = zip(truth.texts[:3], np.nan_to_num(ours), truth.counts, strict=False)
    examples = [f"{text}: {count:,.0f} ({true:,})" for text, count, true in first]
    facts = [
        ("longest prefix", f"{longest} of {tree.depth} symbols"),
        ("recovered", f"{RecoveredFraction()(data, release.estimate):.1%} of all searches"),
        ("released (true)", ", ".join(examples)),
    ]
    return Picture(pd.concat(rows, ignore_index=True), facts)


class _Truth(NamedTuple):
    """The prefixes of a dataset; its most frequent strings, and how often they are there."""

    prefixes: pd.DataFrame
    texts: list[str]
    counts: list[int]


@lru_cache(8)
def _truth(dataset: QueryLogTwin) -> _Truth:
    data = loaded(dataset)
    tree = data.hierarchy
    keys, counts = data.level(tree.depth)
    leaves = Leaves(tree, np.full(len(counts), tree.depth), keys, counts)
    prefixes, _ = _prefixes(leaves, TRUTH, "truth")
    top = np.argsort(-counts, kind="stable")[:LISTED]
    return _Truth(prefixes, tree.texts(keys[:, top]), counts[top].tolist())


def _prefixes(leaves: Leaves, panel: str, series: str) -> tuple[pd.DataFrame, int]:
    """A box for each prefix with many records, as wide as these, on that of its beginning; the longest.

    Empty leaves have noise too, so that boxes may stand a little beside the one that they stand on.
    """
    tree = leaves.hierarchy
    width = max(1, leaves.values.sum())
    sheet = pd.DataFrame(dict(x0=[0], x1=[width], y0=0, y1=tree.depth, value=0.0))
    boxes = [sheet]
    longest = 0
    for level in range(1, tree.depth + 1):
        merged = leaves.coarsened(level)
        last_symbol = tree.digits.digit(level - 1, merged.keys)
        goes_on = (merged.levels == level) & (last_symbol > 0)
        if not goes_on.any():
            break
        longest = level
        ends = np.cumsum(merged.values)
        wide = goes_on & (merged.values * WIDE > max(0, ends[-1]))
        right = ends[wide]
        counts = merged.values[wide]
        boxes.append(
            pd.DataFrame(
                dict(x0=right - counts, x1=right, y0=level - 1, y1=level, value=counts)
            )
        )
    rows = pd.concat(boxes, ignore_index=True).assign(
        panel=panel,
        series=series,
        metric="Count",
        labels="records, in the order of their strings|symbols",
    )
    return rows, longest


# Adaptive

IMPROVED = ImprovedAdaptiveHistogram.series
BASIC = BasicAdaptiveHistogram.series
DIRECT = DirectSynthesis.series
TREE = PrivTree.__name__
MAP, STRINGS = "map", "strings"


@value
class Adaptive:
    """Two adaptive histograms, PrivTree and direct synthesis of points on a map, or of strings."""

    name: ClassVar[str] = "adaptive"
    title: ClassVar[str] = "Adaptive histograms and direct synthesis"
    words: ClassVar[str] = (
        "Homes on a map, or strings, are counted in a tree that is refined where noisy counts reach "
        "the threshold; its leaves are drawn beside the truth, in one scale of colours. The improved "
        "histogram discards t records at every split, and PrivTree lowers counts by level, so that "
        "depth is free; the basic one and direct synthesis divide ε by the depth. Few leaves have "
        "little noise and blur the map, many the other way round."
    )
    noise_note: ClassVar[str] = (
        "Every level is drawn from a stream of its own. While the same nodes are asked, the threshold "
        "and the discount keep their noise and ε scales it; after the first that are others, and on "
        "the leaves, it is other noise from the same seed."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control("mechanism", IMPROVED, (IMPROVED, BASIC, DIRECT, TREE), "choice"),
        Control("epsilon", 1.0, decades(0.02, 10), label="ε", doc="privacy loss"),
        field_control(
            ImprovedAdaptiveHistogram,
            "threshold",
            100,
            decades(1, 10**4, zero=True, whole=True),
            doc="noisy count from which a node is split; 0 is PrivTree's own",
            when=({"mechanism": (IMPROVED, BASIC, TREE)},),
        ),
        Control(
            "own_discount",
            False,
            kind="switch",
            label="own discount",
            doc="else the least that Theorem 3 allows",
            when=({"mechanism": (IMPROVED,)},),
        ),
        field_control(
            ImprovedAdaptiveHistogram,
            "discount",
            200,
            decades(1, 10**4, whole=True),
            label="discount, t",
            doc="records discarded at every split",
            when=({"mechanism": (IMPROVED,), "own_discount": (True,)},),
        ),
        field_control(
            BasicAdaptiveHistogram,
            "depth",
            8,
            range(1, 25),
            doc="at most; it divides ε",
            when=({"mechanism": (BASIC, DIRECT)},),
        ),
        field_control(
            DirectSynthesis, "stop", None, label="stop early", when=({"mechanism": (DIRECT,)},)
        ),
        field_control(
            ImprovedAdaptiveHistogram,
            "measure",
            0.5,
            tuple(round(k / 20, 2) for k in range(1, 20)),
            label="share of the leaves",
            when=({"mechanism": (IMPROVED, BASIC, TREE)},),
        ),
        Control("data", MAP, (MAP, STRINGS), "choice", doc="homes in towns; searches"),
        field_control(Towns, "records", 100_000, decades(1000, 10**6, whole=True), unit=""),
        field_control(
            Towns,
            "spread",
            2.0,
            decades(0.1, 20),
            label="spread of a town",
            when=({"data": (MAP,)},),
        ),
    )

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on points or strings."""
        v = values
        refuse_many("records", v["records"])
        data = Towns(v["records"], spread=v["spread"])
        if v["data"] == STRINGS:
            data = QueryLogTwin(v["records"])
        budget = DP(v["epsilon"])
        splits = dict(threshold=v["threshold"], measure=v["measure"])
        if v["mechanism"] == DIRECT:
            return Setup(data, DirectSynthesis(budget, v["depth"], stop=v["stop"]))
        if v["mechanism"] == BASIC:
            return Setup(data, BasicAdaptiveHistogram(budget, depth=v["depth"], **splits))
        if v["mechanism"] == TREE:
            return Setup(data, PrivTree(budget, **splits))
        discount = v["discount"] if v["own_discount"] else None
        return Setup(data, ImprovedAdaptiveHistogram(budget, discount=discount, **splits))

    def picture(
        self, setting: Setting, data: Records, release: Release, seed: int, exact: bool
    ) -> Picture:
        """The truth's cells and the release's leaves; errors of boxes, or counts of strings."""
        series = setting.values["mechanism"]
        draw = string_picture if _of_strings(setting) else map_picture
        picture = draw(setting.dataset, data, release, series)
        facts = setting.mechanism.decision_facts(data.hierarchy, sensitivity(data))
        return picture._replace(facts=[*picture.facts, *facts.items()])

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Truth and release; errors by the size of boxes, or the most frequent strings."""
        strings = _of_strings(setting)
        drawn = "prefix by prefix" if strings else "records per km²"
        panels = []
        for panel in (TRUTH, RELEASE):
            where = dict(panel=panel, seed=rows.seed.min())
            outlines = panel == RELEASE
            title = f"{panel.title()}, {drawn}"
            panels.append(
                Panel(title, where, "", cells=True, outlines=outlines, equal=not strings)
            )
        if strings:
            title = "The most frequent strings, if found"
            return [*panels, Panel(title, {"panel": TOP}, "place", log="y")]
        theory = []
        for name, law in rows[rows.panel == EXPECTED].groupby("series", sort=False):
            errors = law.groupby("side").value.mean()
            theory.append((name, interpolate_log_log(errors.index, errors)))
        title = "Error of all boxes"
        return [*panels, Panel(title, {"panel": ERROR}, "side", theory=theory, fit_theory=True)]


def _of_strings(setting: Setting) -> bool:
    return setting.values["data"] == STRINGS
