"""How deep and how broad a hierarchical histogram is."""

from __future__ import annotations

import numpy as np

from workbench.compiled import pd
from workbench.data import Records
from workbench.estimates import Leaves
from workbench.spaces import Prefixes
from workbench.value import value

DEEPEST = "deepest leaf with a record"
MEAN = "mean level over records"
LEAVES = "leaves"
WIDEST = "split nodes of the widest level"
DEPTHS = (DEEPEST, MEAN)
BREADTHS = (LEAVES, WIDEST)
SHORT = {DEEPEST: "deepest", MEAN: "mean level", LEAVES: "leaves", WIDEST: "widest level"}


@value
class Shape:
    """How deep and how broad a histogram is, in two ways each."""

    def __call__(self, truth: Records, estimate: Leaves) -> pd.DataFrame:
        """A row each."""
        held = truth.counts_between(estimate.keys)
        levels = own_levels(estimate)
        values = {
            DEEPEST: levels[held > 0].max(),
            MEAN: np.average(levels, weights=held),
            LEAVES: len(estimate),
            WIDEST: split_nodes(estimate, levels).max(),
        }
        return pd.DataFrame({"metric": [*values], "value": [*map(float, values.values())]})


def own_levels(leaves: Leaves) -> np.ndarray:
    """The level of each leaf; of a string that is known to end, how many symbols it has, and one."""
    if not isinstance(leaves.hierarchy, Prefixes):
        return leaves.levels
    digits = leaves.hierarchy.digits
    levels = leaves.levels.copy()
    for level in range(digits.depth - 1, -1, -1):
        ended = (leaves.levels > level) & (digits.digit(level, leaves.keys) == 0)
        levels[ended] = level + 1
    return levels


def split_nodes(leaves: Leaves, levels: np.ndarray) -> np.ndarray:
    """How many nodes of each level are split: those that have leaves below."""
    digits = leaves.hierarchy.digits
    changed = np.zeros(len(leaves), bool)
    changed[:1] = True
    counts = np.zeros(digits.depth, int)
    for level in range(digits.depth):
        if level:
            symbol = digits.digit(level - 1, leaves.keys)
            changed[1:] |= symbol[1:] != symbol[:-1]
        first = changed & (levels > level)  # a node's leaves are side by side
        counts[level] = first.sum()
    return counts
