"""Basic adaptive histogram: nodes whose noisy count reaches a threshold are split; leaves are measured.

Guarantee  ε-DP per unit; a share 1 − `measure` of ε pays for `depth` levels of decisions, as much each
           (the nodes of a level hold disjoint records), the rest for the counts of the leaves.
Assumes    the records' bound; threshold and depth are stated without looking at the data.
Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 2.3, Figure 1, Corollary 2.
Differs    whole-number noise; the leaves are measured afresh, as the text says and the figure does not
           (counts that failed a threshold are biased down, and would cost another level).
Cost       O(records) to find the nodes, and what is released: children of split nodes, empty ones too.
"""

from fractions import Fraction
from math import ceil
from typing import Self

import numpy as np

from workbench import noise
from workbench.hierarchy import Hierarchy
from workbench.mechanism import (
    DP,
    Release,
    parameter,
    private_bound,
    pure_budget,
    split_epsilon,
)
from workbench.mechanisms import _adaptive as shared
from workbench.records import Frontier, Records
from workbench.value import value


@value
class BasicAdaptiveHistogram(shared.AdaptiveHistogram):
    """Split the nodes with noisy counts >= `threshold`, down to `depth`; measure what is left."""

    budget: DP = pure_budget()
    threshold: float = parameter(low=0, high=2**50, strict=True, unit="records", doc="splits b")
    depth: int = parameter(low=1, high=128, integer=True, unit="levels", doc="at most, B")
    measure: float = shared.measure_field()
    cite = "adaptive2009"
    title = "basic adaptive histogram"
    series = "basic histogram"

    def budgets(self) -> list[float]:
        """ε of each level of decisions, and of the leaves' counts: 1/depth and `measure` shares."""
        share = Fraction(self.measure)
        levels = [(1 - share) / self.depth] * self.depth
        return split_epsilon(self.budget.epsilon, [*levels, share])

    def empty_split_probability(self, tree: Hierarchy, l1: float) -> float:
        """p(0), the chance that an empty node is split: α^b/(1+α); a ValueError if that never ends."""
        return self._split_probability(tree, float(noise.decay(l1, self.budgets()[0])))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """What its closed forms say of its decisions, as a panel has it."""
        chance = self.empty_split_probability(tree, l1)
        return {
            "noise of a level": f"ε = {self.budgets()[0]:.3g}",
            "an empty node splits": f"with probability {chance:.2g}",
        }

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
        bound = private_bound(records)
        l1 = bound.l1
        shared.refuse_depth_above(self, records.hierarchy.digits.depth)
        self.empty_split_probability(records.hierarchy, l1)
        *level_epsilons, leaves_epsilon = self.budgets()

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, int, float]:
            return frontier.counts, ceil(self.threshold), level_epsilons[level]

        root = Frontier.root(records)
        stopped, ledger = shared.refined(root, self.depth, compare, l1, rng)
        leaves, receipt = shared.noisy_leaves(records, stopped, l1, leaves_epsilon, rng)
        return Release(leaves, (*ledger, receipt), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Three levels, and a threshold of a few noise scales."""
        return cls(budget, threshold=max(1, ceil(24 / budget.epsilon)), depth=3)
