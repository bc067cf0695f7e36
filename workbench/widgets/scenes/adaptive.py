"""Adaptive histograms: where a tree is refined, and what its leaves tell of a map or of strings."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench import noise
from workbench.datasets import QueryLogTwin, Towns
from workbench.estimates import Leaves
from workbench.mechanism import Release
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
    PrivTree,
)
from workbench.mechanisms.improved_adaptive_histogram import certified_discount
from workbench.metrics import EarthMover, MeanSquaredError, RecoveredFraction, match_strings
from workbench.plots import MECHANISM_NAMES, Panel
from workbench.privacy import DP
from workbench.records import Records
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, loaded
from workbench.widgets.scenes.summaries import refuse_many
from workbench.workload import Level

IMPROVED, BASIC, DIRECT = (
    MECHANISM_NAMES[m.__name__]
    for m in (ImprovedAdaptiveHistogram, BasicAdaptiveHistogram, DirectSynthesis)
)
TREE, MAP, STRINGS = "PrivTree", "map", "strings"
TRUTH, RELEASE, ERROR, TOP, EXPECTED = "truth", "release", "error", "top", "expected"
GRID = 6  # level of the truth's cells: 64 × 64
MOST = 4**GRID  # leaves on a map
LEVELS = range(1, 8)  # of boxes that are asked about
WIDE = 400  # prefixes of less than so many-th of all records are not drawn
LISTED = 40  # strings
CERTIFIED = 10**4  # records; what is certified for a larger threshold takes long


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
    grid: ClassVar[dict[str, tuple]] = {
        "mechanism": (IMPROVED, BASIC, DIRECT, TREE),
        "epsilon": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
        "threshold": (30, 100, 300, 1000),
    }

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on points or strings."""
        v, some = values, values["mechanism"]
        refuse_many("records", v["records"])
        data = Towns(v["records"], spread=v["spread"])
        if v["data"] == STRINGS:
            data = QueryLogTwin(v["records"])
        budget, told = DP(v["epsilon"]), dict(threshold=v["threshold"], measure=v["measure"])
        if some == DIRECT:
            return Setup(data, DirectSynthesis(budget, v["depth"], stop=v["stop"]))
        if some == BASIC:
            return Setup(data, BasicAdaptiveHistogram(budget, depth=v["depth"], **told))
        if some == TREE:
            return Setup(data, PrivTree(budget, **told))
        told["discount"] = v["discount"] if v["own_discount"] else None
        return Setup(data, ImprovedAdaptiveHistogram(budget, **told))

    def look(
        self, values: Values, data: Records, release: Release, seed: int, exact: bool
    ) -> Picture:
        """The truth's cells and the release's leaves; errors of boxes, or counts of strings."""
        dataset, view = self.setup(values).dataset, _strings if _of_strings(values) else _map
        rows, facts = view(dataset, data, release, values["mechanism"])
        return Picture(pd.concat(rows, ignore_index=True), [*facts, *_priced(release, data)])

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Truth and release; errors by the size of boxes, or the most frequent strings."""
        first, strings = rows.seed.min(), _of_strings(values)
        way = "prefix by prefix" if strings else "records per km²"
        pair = []
        for panel in (TRUTH, RELEASE):
            where, leaves = dict(panel=panel, seed=first), panel == RELEASE
            title = f"{panel.title()}, {way}"
            told = dict(cells=True, outlines=leaves, equal=not strings)
            pair.append(Panel(title, where, "", **told))
        if strings:
            title = "The most frequent strings, if found"
            return [*pair, Panel(title, {"panel": TOP}, "place", log="y")]
        theory = [
            (words, partial(_between, law.groupby("side").value.mean()))
            for words, law in rows[rows.panel == EXPECTED].groupby("series", sort=False)
        ]
        told = dict(theory=theory, whole=True)
        return [*pair, Panel("Error of all boxes", {"panel": ERROR}, "side", **told)]


def _of_strings(values: Values) -> bool:
    return values["data"] == STRINGS


# points


def _map(dataset: Towns, data: Records, release: Release, name: str) -> tuple[list, list]:
    """Homes per km², in cells and in leaves; squared errors of boxes, with what noise makes of them."""
    tree, leaves = data.hierarchy, release.estimate
    facts = [("depth reached", f"{leaves.levels.max(initial=0)} of {tree.depth} levels")]
    drawn = leaves
    if len(leaves) > MOST:
        drawn = leaves.coarsened(GRID)
        facts.append(("drawn", f"{len(drawn):,} boxes: leaves below 1 km² are added up"))
    side, told = tree.box[1][0], []
    for level in LEVELS:
        row = dict(side=side / 2**level, metric="MeanSquaredError")
        off = MeanSquaredError(Level(level))(data, leaves)
        told.append(row | dict(panel=ERROR, series=name, value=off))
        law = expected(release.mechanism, leaves, data.bound.l1, level)
        told += [row | dict(panel=EXPECTED, series=words, value=x) for words, x in law.items()]
    moved = EarthMover(tree.depth)(data, leaves)
    facts.append(("earth mover's distance", f"{moved:,.0f} records × side"))
    return [_true_map(dataset), _boxes(drawn, RELEASE, name), pd.DataFrame(told)], facts


def expected(mechanism: Any, leaves: Leaves, l1: float, level: int) -> dict[str, float]:
    """What noise adds to the squared error of a box of a level: here, and in a grid of such boxes."""
    found = {}
    if not isinstance(mechanism, DirectSynthesis):
        found["noise of the leaves, expected"] = leaves.noise_variance(level)
    elif level <= mechanism.depth:
        each = mechanism.budgets()[2][level - 1]
        found["noise of a count"] = noise.variance(l1, each, "geometric")
    alone = noise.variance(l1, mechanism.budget.epsilon, "geometric")
    return found | {"a grid of such boxes, expected": alone}


def _between(law: pd.Series, side: np.ndarray) -> np.ndarray:
    """Straight lines on logarithmic axes; nothing beyond them."""
    with np.errstate(divide="ignore", invalid="ignore"):  # no noise is left at a large ε
        x, y = np.log(law.index.to_numpy(float)), np.log(law.to_numpy())
        return np.exp(np.interp(np.log(side), x, y, np.nan, np.nan))


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
    corners = tree.frame(np.append(0, leaves.levels), keys)
    x, y = tree.attributes
    told = corners.set_axis(["x0", "x1", "y0", "y1"], axis=1)
    value = np.append(0, leaves.values) / ((told.x1 - told.x0) * (told.y1 - told.y0))
    about = dict(metric="Density", labels=f"{x} (km)|{y} (km)", panel=panel, series=series)
    return told.assign(value=value, **about)


# strings


def _strings(
    dataset: QueryLogTwin, data: Records, release: Release, name: str
) -> tuple[list, list]:
    """Prefixes as wide as they have records; how often the most frequent strings are released."""
    tree, leaves = data.hierarchy, release.estimate
    view, reached = _prefixes(leaves, RELEASE, name)
    true, texts, counts = _true_strings(dataset)
    keys, copies, held = match_strings(data, leaves)
    often = held >= min(counts, default=1)
    found = dict(zip(tree.texts(keys[:, often]), copies[often].tolist(), strict=True))
    ours = [found.get(text, np.nan) for text in texts]  # what is not found has no count
    top = pd.DataFrame(dict(place=np.arange(len(texts)) + 1, panel=TOP, metric="Count"))
    rows = [top.assign(series=s, value=x) for s, x in (("truth", counts), (name, ours))]
    first = zip(texts[:3], np.nan_to_num(ours), counts, strict=False)
    return [true, view, *rows], [
        ("longest prefix", f"{reached} of {tree.depth} symbols"),
        ("recovered", f"{RecoveredFraction()(data, leaves):.1%} of all searches"),
        ("released (true)", ", ".join(f"{text}: {n:,.0f} ({m:,})" for text, n, m in first)),
    ]


@lru_cache(8)
def _true_strings(dataset: QueryLogTwin) -> tuple[pd.DataFrame, list[str], list[int]]:
    """Its prefixes; the most frequent strings, and how often they are there."""
    data = loaded(dataset)
    tree = data.hierarchy
    keys, counts = data.level(tree.depth)
    whole = Leaves(tree, np.full(len(counts), tree.depth), keys, counts)
    top = np.argsort(-counts, kind="stable")[:LISTED]
    return (
        _prefixes(whole, TRUTH, "truth")[0],
        tree.texts(keys[:, top]),
        counts[top].tolist(),
    )


def _prefixes(leaves: Leaves, panel: str, series: str) -> tuple[pd.DataFrame, int]:
    """A box for each prefix with many records, as wide as these, on that of its beginning; the longest.

    Empty leaves have noise too, so that boxes may stand a little beside the one that they stand on.
    """
    tree, found, reached = leaves.hierarchy, [], 0
    for level in range(1, tree.depth + 1):
        merged = leaves.coarsened(level)
        going_on = (merged.levels == level) & (tree.digits.digit(level - 1, merged.keys) > 0)
        if not going_on.any():
            break
        ends, reached = np.cumsum(merged.values), level
        wide = going_on & (merged.values * WIDE > max(0, ends[-1]))
        x1, n = ends[wide], merged.values[wide]
        found.append(pd.DataFrame(dict(x0=x1 - n, x1=x1, y0=level - 1, y1=level, value=n)))
    sheet = pd.DataFrame(
        dict(x0=[0], x1=[max(1, leaves.values.sum())], y0=0, y1=tree.depth, value=0.0)
    )
    about = dict(metric="Count", labels="records, in the order of their strings|symbols")
    told = pd.concat([sheet, *found], ignore_index=True)
    return told.assign(panel=panel, series=series, **about), reached


# what a mechanism knows of itself


def _priced(release: Release, data: Records) -> list[tuple[str, str]]:
    """What its closed forms say of its decisions."""
    made, tree, l1, found = release.mechanism, data.hierarchy, data.bound.l1, []
    if isinstance(made, DirectSynthesis):
        found.append(("noise of a level", f"ε = {made.budgets()[2][0]:.3g}"))
    if isinstance(made, BasicAdaptiveHistogram):
        found.append(("noise of a level", f"ε = {made.budgets()[0]:.3g}"))
    if isinstance(made, PrivTree):
        scale, fall = made.scale(tree, l1)
        found.append(("λ, δ", f"{scale:.3g}, {fall:,} records"))
    if isinstance(made, ImprovedAdaptiveHistogram):
        least, paid = replace(made, discount=None), made.budgets()[0]
        told = f"{made.effective_discount(l1):,} records a split; Theorem 3 asks for {least.effective_discount(l1):,}"
        if made.threshold <= CERTIFIED:
            loss, enough = _certified(least)
            told += f", and {enough:,} are certified to do"
            found.append(("structure", f"ε = {loss:.3g} at worst where {paid:.3g} is paid"))
        found.append(("discount", told))
    if isinstance(made, BasicAdaptiveHistogram | ImprovedAdaptiveHistogram):
        found.append(("an empty node splits", f"with probability {made.empty(tree, l1):.2g}"))
    return found


@lru_cache(256)
def _certified(mechanism: ImprovedAdaptiveHistogram) -> tuple[float, int]:
    """The exact loss of its structure, and the least discount that would keep it within 2ε."""
    each = mechanism.budgets()[0] / 2
    return mechanism.loss(), certified_discount(each, mechanism.threshold, "geometric")
