"""What the adaptive histograms share: limits on how far they refine, and the counts of their leaves."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp, log, log1p
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int
from workbench.estimates import Law, Leaves
from workbench.hierarchy import Hierarchy, Keys, argsort_keys
from workbench.mechanism import Mechanism, noise, not_allowed, parameter, split_epsilon
from workbench.privacy import DP, Receipt
from workbench.records import Frontier, Records
from workbench.records.frontier import LevelKeys
from workbench.value import sealed


class StructureBudgets(NamedTuple):
    """ε of the whole structure, and of the leaves' counts."""

    structure: float
    leaves: float


def measure_field() -> Any:
    """The field that says how much of ε is left for the leaves."""
    return parameter(0.5, 0.01, 0.99, doc="share of ε for the leaves' counts")


def refuse_depth_above(mechanism: Any, depth: int) -> None:
    """A ValueError if `mechanism.depth` asks for more levels than a hierarchy has."""
    if mechanism.depth > depth:
        raise not_allowed(
            mechanism, "depth", f"need at most {depth}, the levels of the hierarchy"
        )


class AdaptiveHistogram(Mechanism):
    """Nodes that are split where there are records, and noisy counts of those that are not."""

    takes = Records
    budget: DP
    measure: float
    threshold: float

    def _split_probability(self, tree: Hierarchy, decay: float) -> float:
        """p(0), the chance that an empty node is split: α^b/(1+α), α = exp(−decay).

        A ValueError if the k children of one that can be split are expected to split at least once.
        """
        chance = exp(-decay * ceil(self.threshold)) / (1 + exp(-decay))
        least = max(0.0, log(max(1, tree.branching)) - log1p(exp(-decay))) / decay
        if tree.branching * chance >= 1:
            raise not_allowed(
                self,
                "threshold",
                f"of an empty node's {tree.branching} children {tree.branching * chance:.3g} would be "
                f"split, so that empty nodes spawn for ever; need more than {least:.6g}",
            )
        return chance


class StructuredHistogram(AdaptiveHistogram):
    """Of which one ε pays for the whole structure, and another for the leaves' counts."""

    def budgets(self) -> StructureBudgets:
        """ε of the structure, and of the leaves' counts."""
        share = Fraction(self.measure)
        return StructureBudgets(*split_epsilon(self.budget.epsilon, [1 - share, share]))


def refined(
    frontier: Frontier,
    levels: int,
    compare: Callable[..., Any],
    l1: float,
    rng: np.random.Generator | None,
    discount: Any = None,
) -> tuple[list[LevelKeys], list[Receipt]]:
    """Where nodes stop, and the receipts of their comparisons, one a level.

    `compare(frontier, level)` says which counts are compared, with which threshold, at which ε.
    """
    stopped = []
    ledger = []
    for level in range(levels):
        counts, threshold, epsilon = compare(frontier, level)
        passed, spawning, receipt = noise.noisy_threshold(
            counts, frontier.empty_nodes, threshold=threshold, l1=l1, epsilon=epsilon, rng=rng
        )
        ledger.append(receipt)
        frontier, ended = frontier.next_level(passed, spawning, discount)
        stopped += ended
    return stopped + frontier.all_nodes(), ledger


def noisy_leaves(
    records: Records,
    stopped: list[LevelKeys],
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None,
) -> tuple[Leaves, Receipt]:
    """Noisy counts of the records below each of the nodes `stopped`, (level, keys) each.

    Together they are the whole space, none above another. The list is empty afterwards.
    """
    levels, keys = _in_order(stopped)
    counts, receipt = noise.geometric(
        records.counts_between(keys), l1=l1, epsilon=epsilon, rng=rng
    )
    law = Law("geometric", float(noise.decay(l1, epsilon)))
    levels = levels.astype(np.int64)
    leaves = Leaves(records.hierarchy, sealed(levels), sealed(keys), counts, law)  # not copied
    return leaves, receipt


def _in_order(stopped: list[LevelKeys]) -> tuple[Int[np.ndarray, " n"], Keys]:
    """The levels and keys of all nodes, sorted; each list of nodes is let go once it is copied."""
    sizes = [keys.shape[1] for _, keys in stopped]
    levels = np.empty(sum(sizes), np.int16)
    all_keys = np.empty((len(stopped[0][1]), sum(sizes)), np.uint64)
    end = sum(sizes)
    while stopped:
        level, keys = stopped.pop()
        here = slice(end - keys.shape[1], end)
        levels[here] = level
        all_keys[:, here] = keys
        end = here.start
    order = argsort_keys(all_keys)
    for word in all_keys:
        word[:] = word[order]
    return levels[order], all_keys
