"""What is drawn and told of all releases of sparse counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench import RandomRanges
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures.plots import Panel
from workbench.value import format_number

GAUSSIAN = "Gaussian noise"  # of a ρ, whatever the mechanism
FAMILIES = {  # of mechanisms, each with the series of others that stand beside it
    "full tables": (["GeometricHistogram"], []),
    "filters": (["HighPassFilter"], ["geometric"]),
    "samples": (["ThresholdSampling", "PrioritySampling"], ["geometric"]),
    "others": (
        ["ALP", "CountSketch", "StabilityHistogram", "DirichletSynthesis"],
        ["geometric", "filter"],
    ),
    GAUSSIAN: (
        [GAUSSIAN],
        ["geometric, Haar", "filter", "filter, dyadic", "filter-priority, dyadic"],
    ),
}


def panels(data: GaussianSparse, asked: Mapping[int, RandomRanges]) -> list[Panel]:
    """A line a family, a column a query; a full table has no size."""
    table = data.load()
    nothing = {
        n: _mean_answer(table.answer(workload.on(table.domain)))
        for n, workload in asked.items()
    }
    grid = []
    for family in FAMILIES:
        for n, law in nothing.items():
            where = {"panel": "ε", "family": family, "query_size": n}
            title = f"{family}: {_cells(n)}"
            grid.append(Panel(title, where, "epsilon", theory=law))
    for panel in grid[len(nothing) :]:
        where = {**panel.where, "panel": "size"}
        grid.append(Panel(panel.title, where, "bytes", at="target", theory=panel.theory))
    return grid


def by_family(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of each family, and of the releases that stand beside it."""
    frames = []
    kinds = rows.mechanism.mask(rows.rho.notna(), GAUSSIAN)
    for family, (mechanisms, references) in FAMILIES.items():
        members = kinds.isin(mechanisms)
        reference = rows.series.isin(references) & ~members
        frames += [rows[part].assign(family=family) for part in (reference, members)]
    return pd.concat(frames, ignore_index=True).assign(metric="error (counts)")


def best_releases(rows: pd.DataFrame) -> pd.DataFrame:
    """Which release has the least mean error, ε-DP and (ε, δ)-DP apart; a column a query."""
    table: dict[tuple, dict] = {}
    groups = rows[rows.panel == "ε"].groupby(["epsilon", "query_size"])
    for (epsilon, n), errors in groups:
        pure = errors.delta == 0
        for promise, chosen in (("ε", errors[pure]), ("ε, δ", errors[~pure])):
            means = chosen.groupby("series").value.mean()
            best = f"{means.idxmin()}: {format_number(means.min())}"
            table.setdefault((promise, epsilon), {})[_cells(n)] = best
    return pd.DataFrame(table).T.rename_axis(["promise", "ε"])


def _cells(n: int) -> str:
    return "one cell" if n == 1 else f"{n:,.0f} cells"


def _mean_answer(answers: np.ndarray) -> tuple[str, Callable]:
    """The error of a release of nothing: whatever lies above is of no use."""
    return "nothing released", lambda x: np.full(len(x), answers.mean())
