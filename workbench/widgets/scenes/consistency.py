"""Consistency: what a tree of noisy sums, or a noisy sequence, gains from being made to add up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from workbench.claims import format_number
from workbench.datasets import (
    KeywordFrequenciesTwin,
    NetTraceTwin,
    SearchLogsTwin,
    SocialNetworkTwin,
)
from workbench.mechanism import Release
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, UnattributedHistogram
from workbench.metrics import MeanSquaredError
from workbench.noise import Aligned
from workbench.plots import Panel
from workbench.privacy import DP
from workbench.table import SparseTable
from workbench.transform import level_sizes
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values
from workbench.workload import RandomRanges, Ranges

RANGES, SORTED = "ranges", "sorted counts"
DATA = {
    "NetTrace twin": NetTraceTwin(),
    "Search Logs twin": SearchLogsTwin(),
    "Social Network twin": SocialNetworkTwin(),
    "keywords twin": KeywordFrequenciesTwin(),
}
LEAVES, TREE = "L̃, noisy cells", "H̃, noisy nodes"
PLAIN, NODES = "H̄ not zeroed, consistent", "H̄ by nodes, consistent"
ESTIMATORS = {"noisy": "S̃, noisy", "sorted": "S̃ᵣ, sorted", "isotonic": "S̄, isotonic"}
ERROR, EXPECTED, WHOLE, NEAR = "error", "expected", "whole", "near"
PARTS = CELLS = 64
FIRST = 1000  # of the neighbouring positions that are shown
QUERIES = {False: 100, True: 1000}  # of each size, roughly and exactly
_RANGES, _SORTED = {"task": (RANGES,)}, {"task": (SORTED,)}


@value
class Consistency:
    """Universal and unattributed histograms of Hay et al., with and without consistency."""

    name: ClassVar[str] = "consistency"
    title: ClassVar[str] = "Consistency of noisy histograms"
    words: ClassVar[str] = (
        "Ranges are answered from L̃, noisy cells, from H̃, noisy nodes of a k-ary tree, or from H̄, the "
        "nearest consistent tree, which adds up and costs no further ε; a larger k lets fewer levels "
        "share ε and a range take more nodes, and the range size picks what is told in numbers. "
        "Sorted counts, of which only the order is known, are made noisy (S̃), then sorted and rounded "
        "(S̃ᵣ), or replaced by the nearest sequence in order, the isotonic one (S̄)."
    )
    noise_note: ClassVar[str] = (
        "The range size, consistency, zeroing and the estimator move no noise, and ε scales it: every "
        "node keeps its own (geometric noise is drawn another way once its scale passes 250 counts, "
        "and is other noise there). Another branching is another tree."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control(
            "task", RANGES, (RANGES, SORTED), "choice", doc="what the release is asked for"
        ),
        Control("data", "NetTrace twin", tuple(DATA), "choice"),
        Control("epsilon", 0.1, decades(0.01, 10), label="ε", doc="privacy loss"),
        field_control(
            HierarchicalHistogram,
            "branching",
            2,
            range(2, 17),
            label="branching, k",
            doc="children of a node",
            when=(_RANGES | {"optimal": (False,)},),
        ),
        Control(
            "optimal",
            False,
            kind="switch",
            label="optimal k",
            doc="the branching that suits ranges best",
            when=(_RANGES,),
        ),
        field_control(HierarchicalHistogram, "consistent", True, when=(_RANGES,)),
        field_control(
            HierarchicalHistogram,
            "nonnegative",
            True,
            when=(_RANGES | {"consistent": (True,)},),
        ),
        field_control(
            RandomRanges,
            "size",
            64,
            [2**i for i in range(16)],
            label="range size",
            when=(_RANGES,),
        ),
        field_control(UnattributedHistogram, "estimator", "isotonic", when=(_SORTED,)),
        field_control(HierarchicalHistogram, "noise", "laplace"),
    )
    grid: ClassVar[dict[str, tuple]] = {
        "task": (RANGES, SORTED),
        "epsilon": (0.01, 0.1, 1.0),
        "branching": (2, 4, 16),
        "consistent": (False, True),
        "size": (1, 64, 1024, 32768),
    }

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on one of the twins."""
        v, data, budget = values, DATA[values["data"]], DP(values["epsilon"])
        if v["task"] == SORTED:
            return Setup(data, UnattributedHistogram(budget, v["estimator"], v["noise"]))
        k = "optimal" if v["optimal"] else v["branching"]
        zeroed = v["nonnegative"] or not v["consistent"]  # where it says nothing
        made = HierarchicalHistogram(budget, k, v["consistent"], zeroed, noise=v["noise"])
        return Setup(data, made)

    def look(
        self, values: Values, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors of the release and its rivals, measured and expected; truth beside release."""
        ranges = values["task"] == RANGES
        asked = of_ranges(data, values["size"], QUERIES[exact]) if ranges else of_ranks(data)
        known = {
            name: release if m == release.mechanism else m(data, Aligned(seed))
            for name, m in rivals(release.mechanism).items()
        }
        told = {name: name + ", released" * (one is release) for name, one in known.items()}
        rows: list[dict] = []
        for at, queries in asked.errors.items():
            error, law = measured(known, asked.truth, queries), expected(known, data, queries)
            about = {asked.x: at, "metric": "MeanSquaredError"}
            rows += [
                about | dict(panel=ERROR, series=told[n], value=e) for n, e in error.items()
            ]
            rows += [about | dict(panel=EXPECTED, series=n, value=e) for n, e in law.items()]
        first, frames = next(iter(known)), [pd.DataFrame(rows)]
        shown = {told[n]: r.estimate for n, r in known.items() if n == first or r is release}
        for panel, x, at, queries in asked.views:
            for name, source in ({"truth": asked.truth} | shown).items():
                line = {"panel": panel, "series": name, "metric": "Count", x: at}
                frames.append(pd.DataFrame(line | {"value": source.answer(queries)}))
        facts = [*_levels(release, data), *_errors(known, data, asked)]
        return Picture(pd.concat(frames, ignore_index=True), facts)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Errors with what closed forms expect; the whole domain or sequence; some of it."""
        ranges = values["task"] == RANGES
        x = "query_size" if ranges else "position"
        known = rows[
            (rows.panel == EXPECTED) & (rows.seed == rows.seed.min()) & (rows.value > 0)
        ]
        laws = [
            (f"{n}, expected", _between(r, x)) for n, r in known.groupby("series", sort=False)
        ]
        told = dict(theory=laws, whole=True, mark=values["size"] if ranges else None)
        whole, near = (dict(panel=p, seed=rows.seed.min()) for p in (WHOLE, NEAR))
        if ranges:
            return [
                Panel("Error of ranges", {"panel": ERROR}, x, **told),
                Panel(f"The domain in {PARTS} parts", whole, "cell", log=""),
                Panel(f"{CELLS} cells around the largest count", near, "cell", log=""),
            ]
        return [
            Panel("Error by position, the largest count first", {"panel": ERROR}, x, **told),
            Panel("Counts above 0, the largest first", whole, x),
            Panel(f"{CELLS} neighbouring positions", near, x, log=""),
        ]


class Asked(NamedTuple):
    """Queries about a table: along an axis, side by side, and those that facts tell of, in words."""

    truth: SparseTable
    x: str
    errors: dict[int, Ranges]
    views: list[tuple[str, str, Int[np.ndarray, " n"], Ranges]]
    words: str
    noted: Ranges


def of_ranges(table: SparseTable, size: int, count: int) -> Asked:
    """Ranges of 1, 2, 4, … cells and of `size`; the domain in parts, and some of its cells."""
    m = table.domain.size
    sizes = sorted({*(2**i for i in range((m - 1).bit_length())), size})
    errors = {s: RandomRanges(s, count).on(table.domain) for s in sizes}
    edges = np.linspace(0, m, PARTS + 1).astype(np.int64)
    start = int(table.keys[table.counts.argmax()]) - CELLS // 2
    start = max(0, min(start, m - CELLS))
    near = np.arange(start, start + CELLS)
    views = [
        (WHOLE, "cell", edges[:-1], Ranges(edges[:-1], edges[1:])),
        (NEAR, "cell", near - start, Ranges(near, near + 1)),
    ]
    return Asked(table, "query_size", errors, views, f"{size:,} cells", errors[size])


def of_ranks(table: SparseTable) -> Asked:
    """Positions 1, 2–3, 4–7, … from the largest count down; some above 0, and some in a row."""
    m = table.domain.size

    def at(positions: Int[np.ndarray, " n"]) -> Ranges:
        return Ranges(m - positions, m - positions + 1)

    starts = [2**i for i in range((m - 1).bit_length())]
    ends = [*starts[1:], m + 1]
    errors = {p: at(np.arange(p, end)) for p, end in zip(starts, ends, strict=True)}
    some = np.unique(np.geomspace(1, len(table), PARTS).round().astype(np.int64))
    near = np.arange(FIRST, FIRST + CELLS)
    views = [(WHOLE, "position", some, at(some)), (NEAR, "position", near, at(near))]
    whole = at(np.arange(1, m + 1))
    return Asked(table.ranked(), "position", errors, views, f"mean of {m:,}", whole)


def rivals(made: Any) -> dict[str, Any]:
    """What is compared, by series: the mechanism itself is among them."""
    if isinstance(made, UnattributedHistogram):
        return {series: replace(made, estimator=e) for e, series in ESTIMATORS.items()}
    best = replace(made, consistent=True)
    noisy = replace(made, consistent=False, nonnegative=True)
    flat = LaplaceHistogram(made.budget, made.noise)
    return {LEAVES: flat, TREE: noisy, NODES if made.nonnegative else PLAIN: best}


def measured(
    known: dict[str, Release], truth: SparseTable, queries: Ranges
) -> dict[str, float]:
    """Mean squared errors, by series."""
    metric = MeanSquaredError(queries)
    return {name: metric(truth, one.estimate) for name, one in known.items()}


def expected(known: dict[str, Release], data: SparseTable, queries: Ranges) -> dict[str, float]:
    """The same by closed forms, where noise is independent, or a consistent tree complete."""
    found = {}
    for name, one in known.items():
        if one.estimate.variance is not None:
            spread = one.estimate.answer(queries, error=True)[1]
            found[name] = float((spread**2).mean())
        elif isinstance(one.mechanism, HierarchicalHistogram):
            with suppress(ValueError):
                exact = one.mechanism.variance(data.domain, queries, data.bound.l1)
                found[PLAIN] = float(exact.mean())
    return found


def _errors(
    known: dict[str, Release], data: SparseTable, asked: Asked
) -> list[tuple[str, str]]:
    """Errors measured and expected, in words."""
    facts, law = [], expected(known, data, asked.noted)
    for name, error in measured(known, asked.truth, asked.noted).items():
        words = f"squared error {format_number(error)}"
        if name in law:
            words += f"; {format_number(law[name])} expected"
        elif PLAIN in law:
            words += f"; {format_number(law[PLAIN])} expected if not zeroed"
        facts.append((f"{name}, {asked.words}", words))
    return facts


def _levels(release: Release, data: SparseTable) -> list[tuple[str, str]]:
    """How a tree shares its budget."""
    if not isinstance(made := release.mechanism, HierarchicalHistogram):
        return []
    k = made.branching_factor(data.domain.size)
    sizes = level_sizes(data.domain.size, k)
    whole = "complete" if k ** (len(sizes) - 1) == sizes[-1] else "not complete"
    return [("tree", f"k = {k}, {len(sizes)} levels with ε/{len(sizes)} each, {whole}")]


def _between(line: pd.DataFrame, x: str):
    """Expected errors, and straight lines between them on logarithmic axes."""
    at, errors = np.log(line[x].to_numpy(float)), np.log(line.value.to_numpy())
    return lambda there: np.exp(np.interp(np.log(there), at, errors, np.nan, np.nan))
