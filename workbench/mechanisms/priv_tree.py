"""PrivTree: a decomposition whose depth is free, since a node's score falls with its level.

Guarantee  ε-DP per unit; a share 1 − `measure` of ε pays for the tree, whatever its depth, the rest for
           the counts of its leaves.
Assumes    the records' bound; the threshold is stated without looking at the data.
Source     Zhang, Xiao & Xie, SIGMOD 2016, Algorithm 2 and Theorem 3.1.
Differs    whole-number noise, and the decrement δ is rounded up to a whole number; both keep the
           theorem's proof. With α = exp(−1/λ), f(x) = Pr[x + noise > θ] has f(x)/f(x−1) <= e^(1/λ),
           and for x > θ its logarithm is at most (1/λ)·α^(x−θ−1). Along a path scores fall by at least
           δ >= λ·ln β until they reach a floor that all data share, so that the loss is at most
           (1/λ)·(1 + Σ β^(−i)) = (2β−1)/((β−1)·λ), as for Laplace noise.
Cost       as an adaptive histogram: records, and what is released.
"""

from fractions import Fraction
from math import ceil, log
from typing import NamedTuple

import numpy as np

from workbench.hierarchy import Hierarchy
from workbench.mechanism import (
    DP,
    Release,
    noise,
    parameter,
    private_bound,
    pure_budget,
    value,
)
from workbench.mechanisms import _adaptive as shared
from workbench.records import Frontier, Records


class _Scale(NamedTuple):
    """λ in records, and by how many scores fall a level."""

    scale: float
    decrement: int


@value
class PrivTree(shared.StructuredHistogram):
    """Split v iff max(θ − δ, c(v) − δ·level) + noise > θ; measure the leaves."""

    budget: DP = pure_budget(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: int = parameter(0, 0, 2**50, integer=True, unit="records", doc="θ")
    measure: float = shared.measure_field()
    cite = "zhang2016"
    title = "PrivTree"
    converges = False  # a node of few records is not resolved, at any ε

    def scale(self, tree: Hierarchy, l1: float) -> _Scale:
        """λ in records, and δ: λ = l1·(2β−1)/((β−1)·ε) for β children, δ = ⌈λ·ln β⌉."""
        beta = _branching(tree)
        scale = l1 * (2 * beta - 1) / ((beta - 1) * self.budgets().structure)
        return _Scale(scale, ceil(scale * log(beta) * (1 + 1e-12)))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """What its closed forms say of its decisions, as a panel has it."""
        scale, fall = self.scale(tree, l1)
        return {"λ, δ": f"{scale:.3g}, {fall:,} records"}

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
        bound = private_bound(records)
        l1 = bound.l1
        budgets = self.budgets()
        beta = _branching(records.hierarchy)
        exact = Fraction(budgets.structure) * (beta - 1) / (2 * beta - 1)
        comparison_epsilon = float(exact * (1 - Fraction(1, 2**50)))
        noise.decay(l1, comparison_epsilon)  # refuses what is too small to compute with
        decrement = self.scale(records.hierarchy, l1).decrement
        floor = self.threshold - decrement

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, float, float]:
            scores = np.maximum(0, frontier.counts - level * decrement - floor)
            return scores, decrement + 1, comparison_epsilon

        root = Frontier.root(records)
        levels = records.hierarchy.digits.depth
        stopped, comparisons = shared.refined(root, levels, compare, l1, rng)
        leaves, receipt = shared.noisy_leaves(records, stopped, l1, budgets.leaves, rng)
        tree = noise.by_theorem(
            "tree",
            DP(budgets.structure),
            "Zhang, Xiao & Xie 2016, Theorem 3.1",
            replaces=comparisons,
        )
        return Release(leaves, (tree, receipt), self, bound)


def _branching(tree: Hierarchy) -> int:
    return max(2, max(tree.digits.radices))
