"""Estimators of Hay et al. side by side: the ranges that they answer, and their squared errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.mechanism import Release
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, UnattributedHistogram
from workbench.metrics.refusal import refuse_private
from workbench.shares import sensitivity
from workbench.table import SparseTable
from workbench.workload import RandomRanges, Ranges

if TYPE_CHECKING:
    from jaxtyping import Float, Int

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
