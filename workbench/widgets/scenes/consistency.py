"""Consistency: what a tree or a sequence of noisy counts gains from it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.datasets import (
    KeywordFrequenciesTwin,
    NetTraceTwin,
    SearchLogsTwin,
    SocialNetworkTwin,
)
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, UnattributedHistogram
from workbench.mechanisms.protocol import sensitivity
from workbench.noise import Aligned
from workbench.privacy import DP
from workbench.queries import RandomRanges, Ranges, level_sizes
from workbench.trials.claims import interpolate_log_log
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values
from workbench.widgets.view import Setting

if TYPE_CHECKING:
    from jaxtyping import Float, Int


# Estimators

LEAVES, TREE = "L̃, noisy cells", "H̃, noisy nodes"
PLAIN, NODES = "H̄ not zeroed, consistent", "H̄ by nodes, consistent"
ESTIMATORS = {"noisy": "S̃, noisy", "sorted": "S̃ᵣ, sorted", "isotonic": "S̄, isotonic"}
WHOLE, NEAR = "whole", "near"
PARTS = CELLS = 64
FIRST = 1000  # of the neighbouring positions that are shown


class View(NamedTuple):
    """Ranges side by side: a chart, its column along x, the places on it, and what lies there."""

    panel: str
    x: str
    places: Int[np.ndarray, " n"]
    ranges: Ranges


class Questions(NamedTuple):
    """Ranges of a table: along an axis, side by side, and those that facts are about."""

    truth: SparseTable
    x: str
    errors: dict[int, Ranges]
    views: list[View]
    example_text: str
    example: Ranges


def questions_about_ranges(table: SparseTable, size: int, count: int) -> Questions:
    """Ranges of 1, 2, 4, … cells and of `size`; the domain in parts, and some of its cells."""
    m = table.domain.size
    sizes = sorted({*(2**i for i in range((m - 1).bit_length())), size})
    errors = {s: RandomRanges(s, count).on(table.domain) for s in sizes}
    edges = np.linspace(0, m, PARTS + 1).astype(np.int64)
    largest = int(table.keys[table.counts.argmax()])
    start = max(0, min(largest - CELLS // 2, m - CELLS))
    near = np.arange(start, start + CELLS)
    views = [
        View(WHOLE, "cell", edges[:-1], Ranges(edges[:-1], edges[1:])),
        View(NEAR, "cell", near - start, Ranges(near, near + 1)),
    ]
    return Questions(table, "query_size", errors, views, f"{size:,} cells", errors[size])


def questions_about_ranks(table: SparseTable) -> Questions:
    """Positions 1, 2–3, 4–7, … from the largest count down; some above 0, and some in a row."""
    m = table.domain.size

    def at(positions: Int[np.ndarray, " n"]) -> Ranges:
        return Ranges(m - positions, m - positions + 1)

    starts = [2**i for i in range((m - 1).bit_length())]
    ends = [*starts[1:], m + 1]
    errors = {s: at(np.arange(s, end)) for s, end in zip(starts, ends, strict=True)}
    above_zero = np.unique(np.geomspace(1, len(table), PARTS).round().astype(np.int64))
    near = np.arange(FIRST, FIRST + CELLS)
    views = [
        View(WHOLE, "position", above_zero, at(above_zero)),
        View(NEAR, "position", near, at(near)),
    ]
    everywhere = at(np.arange(1, m + 1))
    return Questions(table.ranked(), "position", errors, views, f"mean of {m:,}", everywhere)


def estimators_compared(mechanism: Any) -> dict[str, Any]:
    """What is compared, by series: the mechanism itself is among them, noisy answers come first."""
    if isinstance(mechanism, UnattributedHistogram):
        return {name: replace(mechanism, estimator=e) for e, name in ESTIMATORS.items()}
    return {
        LEAVES: LaplaceHistogram(mechanism.budget, str(mechanism.noise)),
        TREE: replace(mechanism, consistent=False, nonnegative=True),
        NODES if mechanism.nonnegative else PLAIN: replace(mechanism, consistent=True),
    }


def measured_errors(
    releases: dict[str, Release], truth: SparseTable, asked: Sequence[Ranges]
) -> dict[str, list[float]]:
    """The mean squared error of each of several lists of ranges, by series."""
    refuse_private(truth)
    ranges = _joined(asked)
    exact = truth.answer(ranges)
    return {
        name: _means((release.estimate.answer(ranges) - exact) ** 2, asked)
        for name, release in releases.items()
    }


def expected_errors(
    releases: dict[str, Release], data: SparseTable, asked: Sequence[Ranges]
) -> dict[str, list[float]]:
    """The same by closed forms, where noise is independent, or a consistent tree complete."""
    ranges = _joined(asked)
    errors = {}
    for name, release in releases.items():
        if release.estimate.variance is not None:
            _, deviations = release.estimate.answer(ranges, error=True)
            errors[name] = _means(deviations**2, asked)
        elif isinstance(release.mechanism, HierarchicalHistogram):
            with suppress(ValueError):
                variances = release.mechanism.variance(data.domain, ranges, sensitivity(data))
                errors[PLAIN] = _means(variances, asked)
    return errors


def _joined(asked: Sequence[Ranges]) -> Ranges:
    """All ranges in one list: a call takes longer than the ranges of one size."""
    lo = np.concatenate([ranges.lo for ranges in asked])
    hi = np.concatenate([ranges.hi for ranges in asked])
    return Ranges(lo, hi)


def _means(x: Float[np.ndarray, " queries"], asked: Sequence[Ranges]) -> list[float]:
    """The mean over each of the lists that were joined."""
    ends = np.cumsum([len(ranges) for ranges in asked])
    return [float(part.mean()) for part in np.split(x, ends[:-1])]


# Consistency

RANGES, SORTED = "ranges", "sorted counts"
DATA = {
    "NetTrace twin": NetTraceTwin(),
    "Search Logs twin": SearchLogsTwin(),
    "Social Network twin": SocialNetworkTwin(),
    "keywords twin": KeywordFrequenciesTwin(),
}
ERROR, EXPECTED = "error", "expected"
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

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on one of the twins."""
        v = values
        data = DATA[v["data"]]
        budget = DP(v["epsilon"])
        if v["task"] == SORTED:
            return Setup(data, UnattributedHistogram(budget, v["estimator"], v["noise"]))
        k = "optimal" if v["optimal"] else v["branching"]
        nonnegative = v["nonnegative"] or not v["consistent"]  # where it says nothing
        mechanism = HierarchicalHistogram(
            budget, k, v["consistent"], nonnegative, noise=v["noise"]
        )
        return Setup(data, mechanism)

    def picture(
        self, setting: Setting, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors of the release and its rivals, measured and expected; truth beside release."""
        if _of_ranges(setting):
            questions = questions_about_ranges(data, setting.values["size"], QUERIES[exact])
        else:
            questions = questions_about_ranks(data)
        releases = {}
        for name, mechanism in estimators_compared(release.mechanism).items():
            same = mechanism == release.mechanism
            releases[name] = release if same else mechanism(data, Aligned(seed))
        labels = {
            name: f"{name}, released" if one is release else name
            for name, one in releases.items()
        }
        frames = [_error_rows(questions, releases, labels, data)]
        noisy = next(iter(releases))
        sources: dict[str, Any] = {"truth": questions.truth}
        for name, one in releases.items():
            if name == noisy or one is release:
                sources[labels[name]] = one.estimate
        for view in questions.views:
            for name, source in sources.items():
                line: dict[str, Any] = {"panel": view.panel, "series": name, "metric": "Count"}
                line |= {view.x: view.places, "value": source.answer(view.ranges)}
                frames.append(pd.DataFrame(line))
        facts = [*_tree_facts(release, data), *_error_facts(releases, data, questions)]
        return Picture(pd.concat(frames, ignore_index=True), facts)

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Errors with what closed forms expect; the whole domain or sequence; some of it."""
        ranges = _of_ranges(setting)
        x = "query_size" if ranges else "position"
        first = rows.seed.min()
        laws = rows[(rows.panel == EXPECTED) & (rows.seed == first) & (rows.value > 0)]
        theory = [
            (f"{name}, expected", interpolate_log_log(law[x], law.value))
            for name, law in laws.groupby("series", sort=False)
        ]
        mark = setting.values["size"] if ranges else None
        title = "Error of ranges" if ranges else "Error by position, the largest count first"
        errors = Panel(title, {"panel": ERROR}, x, theory=theory, fit_theory=True, mark=mark)
        whole = dict(panel=WHOLE, seed=first)
        near = dict(panel=NEAR, seed=first)
        if ranges:
            return [
                errors,
                Panel(f"The domain in {PARTS} parts", whole, "cell", log=""),
                Panel(f"{CELLS} cells around the largest count", near, "cell", log=""),
            ]
        return [
            errors,
            Panel("Counts above 0, the largest first", whole, x),
            Panel(f"{CELLS} neighbouring positions", near, x, log=""),
        ]


def _of_ranges(setting: Setting) -> bool:
    return setting.values["task"] == RANGES


def _error_rows(
    questions: Questions, releases: dict[str, Release], labels: dict[str, str], data: Any
) -> pd.DataFrame:
    """Squared errors along the axis, measured and expected."""
    rows = []
    asked = [*questions.errors.values()]
    measured = measured_errors(releases, questions.truth, asked)
    expected = expected_errors(releases, data, asked)
    for i, place in enumerate(questions.errors):
        row = {questions.x: place, "metric": "MeanSquaredError"}
        for name, errors in measured.items():
            rows.append(row | dict(panel=ERROR, series=labels[name], value=errors[i]))
        for name, errors in expected.items():
            rows.append(row | dict(panel=EXPECTED, series=name, value=errors[i]))
    return pd.DataFrame(rows)


def _error_facts(
    releases: dict[str, Release], data: SparseTable, questions: Questions
) -> list[tuple[str, str]]:
    """Errors measured and expected, in words."""
    facts = []
    asked = [questions.example]
    law = expected_errors(releases, data, asked)
    for name, (error,) in measured_errors(releases, questions.truth, asked).items():
        text = f"squared error {format_number(error)}"
        if name in law:
            text += f"; {format_number(law[name][0])} expected"
        elif PLAIN in law:
            text += f"; {format_number(law[PLAIN][0])} expected if not zeroed"
        facts.append((f"{name}, {questions.example_text}", text))
    return facts


def _tree_facts(release: Release, data: SparseTable) -> list[tuple[str, str]]:
    """How a tree shares its budget."""
    mechanism = release.mechanism
    if not isinstance(mechanism, HierarchicalHistogram):
        return []
    k = mechanism.branching_factor(data.domain.size)
    sizes = level_sizes(data.domain.size, k)
    complete = "complete" if k ** (len(sizes) - 1) == sizes[-1] else "not complete"
    return [("tree", f"k = {k}, {len(sizes)} levels with ε/{len(sizes)} each, {complete}")]
