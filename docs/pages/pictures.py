"""One small release of every mechanism, drawn over the counts that it is made from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from workbench import (
    Bound,
    Domain,
    Interactions,
    Marginals,
    Quadtree,
    Ranges,
    Records,
    SparseTable,
)
from workbench.data import UnlistedValues
from workbench.figures.plots.style import with_style
from workbench.mechanisms.laws import Subject
from workbench.privacy import REPLACE

CELLS, ITEMS, CONTEXTS = 64, 16, 4
EACH = Ranges(np.arange(CELLS), np.arange(1, CELLS + 1))
PEAKS = {
    9: 3,
    10: 28,
    11: 41,
    12: 17,
    13: 2,
    30: 12,
    44: 6,
    45: 22,
    46: 31,
    47: 25,
    48: 8,
    59: 5,
}
USERS = (900, 700, 540, 410, 320, 240, 180, 140, 100, 70, 50, 35, 20, 10, 3, 1)  # of values
SMALL: dict[str, dict[str, Any]] = {  # fields fit for so little data; others are the example's
    "AIM": {"workload": Marginals(1)},
    "ALP": {"total": sum(PEAKS.values())},
    "BasicAdaptiveHistogram": {"threshold": 10},
    "CountSketch": {"width": 32, "depth": 1},
    "DirectSynthesis": {"records": sum(PEAKS.values())},
    "GaussianQueries": {"workload": Marginals(1)},
    "HPA": {"l": 3},
    "ImprovedAdaptiveHistogram": {"threshold": 10},
    "LaplaceQueries": {"workload": Marginals(1)},
    "LPA": {"bound": 3},
    "PrioritySampling": {"size": 16},
    "SRA": {"l": 3},
    "UniformSampling": {"size": 16},
}
COLOURS = {
    "light": ("#c3cfdc", "#0b5cad", "#50555c"),
    "dark": ("#4a5563", "#79b8ff", "#b4bac2"),
}


class Shown(NamedTuple):
    """A mechanism with the counts that it was given and those that it released."""

    mechanism: Any
    truth: np.ndarray
    noisy: np.ndarray
    axis: str


def draw(cls: type, folder: Path) -> None:
    """Write `<class>-light.svg` and `<class>-dark.svg`."""
    for mode, colours in COLOURS.items():
        _draw(shown(cls), *colours, folder / f"{cls.__name__}-{mode}.svg")


def markdown(cls: type) -> str:
    """The pictures of a mechanism, and what they show."""
    says = f"{shown(cls).axis}: made-up counts (bars) and one release of them (dots)."
    pictures = [
        f"```{{image}} {cls.__name__}-{mode}.svg\n:class: only-{mode}\n:alt: {says}\n```"
        for mode in COLOURS
    ]
    return "\n".join(pictures) + f"\n\n*{says}* `{shown(cls).mechanism!r}`, simulated noise."


@cache
def shown(cls: type) -> Shown:
    """One release of the small data, with noise from a seed."""
    mechanism, data = pictured(cls)
    release = mechanism(data, np.random.default_rng(0))
    if cls.takes is Interactions:
        noisy = release.estimate.items.values
        return Shown(mechanism, data.item_counts(), noisy, "Counts of sixteen items")
    if cls.takes is Records:
        truth = data.answer(EACH)
        return Shown(
            mechanism, truth, release.answer(EACH), "Counts of the 64 leaves of a tree"
        )
    if cls.takes is UnlistedValues:
        counts = release.to_frame().set_index("value")["count"]
        noisy = counts.reindex(data.labels).to_numpy()  # NaN where a value was not released
        return Shown(
            mechanism, data.counts, noisy, "Users of sixteen values that nobody listed"
        )
    if cls.__name__ in ("GaussianQueries", "LaplaceQueries"):
        noisy = np.asarray(release.estimate.values)
        return Shown(mechanism, table().answer(EACH), noisy, "Answers to 64 queries")
    if getattr(cls, "ranked", False):
        sorted_table = table().ranked()
        return Shown(
            mechanism, sorted_table.answer(EACH), release.answer(EACH), "Sorted counts"
        )
    return Shown(mechanism, table().answer(EACH), release.answer(EACH), "Counts of 64 cells")


def pictured(cls: type) -> tuple[Any, Any]:
    """A mechanism with fields that suit small data, and the data."""
    mechanism = replace(cls.example(Subject(cls).budget()), **SMALL.get(cls.__name__, {}))
    if cls.relation == REPLACE and mechanism.total is not None:
        mechanism = replace(mechanism, total=table().total, records=table().total)
    if cls.takes is Interactions:
        return mechanism, interactions()
    if cls.takes is Records:
        keys = table().keys.astype(np.uint64)
        return mechanism, Records(Quadtree(2, 3), keys, table().counts, Bound())
    if cls.takes is UnlistedValues:
        words = np.repeat([f"value {i:2}" for i in range(len(USERS))], USERS)
        return mechanism, UnlistedValues.from_values("value", words, Bound())
    return mechanism, table()


@cache
def table() -> SparseTable:
    """A made-up table of 64 cells, twelve of them not empty."""
    domain = Domain(("cell",), (CELLS,))
    return SparseTable.from_keys(domain, list(PEAKS), list(PEAKS.values()), Bound())


@cache
def interactions() -> Interactions:
    """Two hundred made-up users with one to six records each; the first items are popular."""
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(200), rng.integers(1, 7, 200))
    popularity = 1 / np.arange(1, ITEMS + 1)
    items = rng.choice(ITEMS, len(users), p=popularity / popularity.sum())
    contexts = rng.integers(CONTEXTS, size=len(users))
    domain = Domain(("item", "context"), (ITEMS, CONTEXTS))
    return Interactions.from_codes(domain, users, items, contexts, Bound(l0=6, linf=6, l1=6))


@with_style
def _draw(counts: Shown, bars: str, dots: str, ink: str, path: Path) -> None:
    """The true counts as bars, those released as dots on stems."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure = Figure(figsize=(7, 1.9), facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        places = np.arange(len(counts.truth))
        axes.bar(places, counts.truth, width=0.9, color=bars)
        axes.vlines(places, 0, counts.noisy, color=dots, linewidth=0.8)
        axes.plot(places, counts.noisy, "o", color=dots, markersize=3)
        axes.set(ylabel="count", xticks=[], xlabel=counts.axis)
        axes.tick_params(colors=ink)
        for part in (axes.xaxis.label, axes.yaxis.label, *axes.spines.values()):
            part.set_color(ink)
        axes.spines["bottom"].set_visible(False)
        axes.axhline(0, color=ink, linewidth=0.6)
        figure.savefig(path, metadata={"Date": None})
