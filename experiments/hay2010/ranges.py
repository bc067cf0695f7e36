"""Hay et al. 2010: the errors of ranges, what closed forms say of them and whether they are as printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from experiments.hay2010.data import LEAVES, NOISY_TREE, TREE_NOT_ZEROED
from workbench import DP, Bound, RandomRanges, SparseTable
from workbench.claims import (
    Finding,
    Printed,
    crossing,
    decide_printed,
    format_number,
    mean_curve,
)
from workbench.claims.old import all_of, check_lower, check_similar
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram
from workbench.noise import variance
from workbench.transform import level_sizes

SMALL = 16
LARGER = 2048
PAPER = {
    "crossing": Printed.approximately("larger than about 2000 units", 2000, 500, axis="x"),
    "largest": Printed("4–8 times larger", 3.5, 8.5),
    "cut": Printed("by 45–98 %", 0.445, 0.985),
}
BEST = "H̄"
NODES = "H̄ by nodes"
ERROR = "MeanSquaredError"


def expected_errors(
    dataset: Any, workloads: Sequence[RandomRanges], epsilon: float, branching: int = 2
) -> pd.DataFrame:
    """What the errors should be on average over the ranges that are asked, a row each.

    L̃: a cell's variance times the size. H̃: a node's times the fewest nodes. H̄ before zeroing: the
    closed form, where the tree is complete.
    """
    domain = dataset.domain
    bound = _bound(dataset)
    budget = DP(epsilon)
    empty = SparseTable.from_keys(domain, [], [], bound)
    noisy = HierarchicalHistogram(budget, branching, consistent=False)
    tree = noisy(empty, np.random.default_rng(0)).estimate
    plain = HierarchicalHistogram(budget, branching, nonnegative=False)
    complete = branching ** (len(level_sizes(domain.size, branching)) - 1) == domain.size
    cell = variance(bound.l1, epsilon, LaplaceHistogram(budget).noise)
    laws = []
    for ranges in workloads:
        _, errors = tree.answer(ranges.on(domain), error=True)
        expected = {LEAVES: ranges.size * cell, NOISY_TREE: float((errors**2).mean())}
        if complete:
            errors = plain.variance(domain, ranges, bound.l1)
            expected[TREE_NOT_ZEROED] = float(errors.mean())
        for series, law in expected.items():
            laws.append(dict(series=series, query_size=ranges.size, value=law))
    columns = dict(metric="theory", epsilon=epsilon, dataset=repr(dataset), truth_public=True)
    return pd.DataFrame(laws).assign(seed=0, **columns)


@cache
def _bound(dataset: Any) -> Bound:
    return dataset.load().bound


def by_panel(rows) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each dataset and ε, by the title of their panel."""
    for (name, epsilon), own in rows.groupby(["panel", "epsilon"], sort=False):
        yield f"{name}, ε = {epsilon:g}", own


def _each(rows, check, *args) -> Finding:
    """A check of the rows of every panel, one a dataset and ε."""
    return all_of({name: check(own, *args) for name, own in by_panel(rows)})


def error_curve(rows, series: str, metric: str = ERROR) -> pd.DataFrame:
    """The error of one series of one panel, over the size of the range."""
    return mean_curve(rows, "query_size", series=series, metric=metric)


def laws_of(rows) -> dict[str, pd.Series]:
    """What is expected, by series, where there is a closed form."""
    known = rows[rows.metric == "theory"].series.unique()
    series = [s for s in (NOISY_TREE, TREE_NOT_ZEROED, LEAVES) if s in known]
    return {s: error_curve(rows, s, "theory")["mean"] for s in series}


def _judged(rows) -> pd.DataFrame:
    """The panels of the paper's own data, or of what stands in for it."""
    return rows[~rows.panel.str.startswith("shop")]


def check_crossover(rows) -> Finding:
    """Claim h-6-1."""
    rows = _judged(rows)
    return all_of(
        {
            "L̃ wins at unit ranges": _each(rows, _best_at_unit_ranges),
            "H̃ from about 2000": _each(rows, check_overtaken),
            "4–8× at the largest": _each(rows, check_largest),
        }
    )


def _best_at_unit_ranges(rows) -> Finding:
    return check_lower(error_curve(rows, LEAVES).iloc[:1], error_curve(rows, NOISY_TREE))


def check_overtaken(rows) -> Finding:
    """From which size on H̃ beats L̃."""
    size = crossing(error_curve(rows, NOISY_TREE), error_curve(rows, LEAVES))
    return Finding(PAPER["crossing"].covers(size), f"from {format_number(size)} cells")


def check_largest(rows) -> Finding:
    """How many times the error of H̃ that of L̃ is at the largest size."""
    flat = error_curve(rows, LEAVES).iloc[-1]
    tree = error_curve(rows, NOISY_TREE).iloc[-1]
    ratio = {"mean": flat["mean"] / tree["mean"]}
    ratio |= {"low": flat.low / tree.high, "high": flat.high / tree.low}
    holds = decide_printed(PAPER["largest"], pd.Series(ratio))
    return Finding(holds, f"{format_number(ratio['mean'])}×")


def check_cut(rows, series: str = BEST) -> Finding:
    """By how much a series is below H̃ on larger ranges."""
    ours = error_curve(rows, series)["mean"].loc[LARGER:]
    cut = 1 - ours / error_curve(rows, NOISY_TREE)["mean"].loc[LARGER:]
    measured = f"{format_number(100 * cut.min())} … {format_number(100 * cut.max())} %"
    return Finding(bool(cut.map(PAPER["cut"].covers).all()), measured)


def _below_tree(rows, series: str) -> Finding:
    return check_lower(error_curve(rows, series), error_curve(rows, NOISY_TREE), share=1)


def _below_leaves(rows, series: str) -> Finding:
    ours = error_curve(rows, series).loc[:SMALL]
    return check_lower(ours, error_curve(rows, LEAVES), share=1)


def _beside(finding: Finding, notes: dict[str, str]) -> Finding:
    """The same finding, with what is measured of series that are not judged."""
    measured = [finding.measured, *(f"{series}: {note}" for series, note in notes.items())]
    return Finding(finding.holds, "; ".join(measured), if_unsettled=finding.if_unsettled)


def check_uniformly(rows) -> Finding:
    """Claim h-6-2."""
    rows = _judged(rows)
    marks = {True: "at every size of every panel", False: "not everywhere", None: "not settled"}
    others = (NODES, TREE_NOT_ZEROED)
    notes = {series: marks[_each(rows, _below_tree, series).holds] for series in others}
    return _beside(_each(rows, _below_tree, BEST), notes)


def check_sparse(rows) -> Finding:
    """Claim h-6-3."""
    rows = rows[rows.panel.str.startswith("NetTrace")]
    notes = {NODES: _each(rows, _below_leaves, NODES).measured}
    return _beside(_each(rows, _below_leaves, BEST), notes)


def check_reduced(rows) -> Finding:
    """Claim h-6-4."""
    rows = _judged(rows)
    notes = {s: _each(rows, check_cut, s).measured for s in (NODES, TREE_NOT_ZEROED)}
    return _beside(_each(rows, check_cut), notes)


def check_rates(rows) -> Finding:
    """Claim h-6-5."""
    rows = _judged(rows)
    rows = rows.assign(value=rows.value * rows.epsilon**2)
    parts = {}
    for name, own in by_panel(rows):
        law = pd.DataFrame(dict.fromkeys(("mean", "low", "high"), laws_of(own)[LEAVES]))
        parts[f"{name}: L̃ is 2·size/ε²"] = check_similar(error_curve(own, LEAVES), law)
    for name, own in rows.groupby("panel", sort=False):
        trees = {x: error_curve(some, TREE_NOT_ZEROED) for x, some in own.groupby("epsilon")}
        at_one = trees.pop(1.0)
        levels = len(at_one) + 1
        rate = max(tree["mean"].max() for tree in (at_one, *trees.values())) / levels**3
        parts[f"{name}: H̄ at most 4ℓ³/ε²"] = Finding(bool(rate <= 4), f"{rate:.3g}·ℓ³/ε²")
        for epsilon, tree in trees.items():
            parts[f"{name}: H̄·ε² at {epsilon:g} as at 1"] = check_similar(tree, at_one)
    return all_of(parts)
