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
from typing import ClassVar, Self

import numpy as np

from workbench import noise
from workbench.hierarchy import Hierarchy
from workbench.mechanism import (
    Release,
    noisy_leaves,
    parameter,
    pure_budget,
    sensitivity,
    split_epsilon,
)
from workbench.privacy import DP
from workbench.records import Frontier, Records
from workbench.value import value


@value
class PrivTree:
    """Split v iff max(θ − δ, c(v) − δ·level) + noise > θ; measure the leaves."""

    budget: DP = pure_budget()
    threshold: int = parameter(0, 0, 2**50, integer=True, unit="records", doc="θ")
    measure: float = parameter(0.5, 0.01, 0.99, doc="share of ε for the leaves' counts")
    takes: ClassVar[type] = Records
    cite: ClassVar[str] = "zhang2016"
    converges: ClassVar[bool] = (
        False  # a node of few records is not resolved, however large ε is
    )

    def budgets(self) -> tuple[float, float]:
        """ε of the tree, and of the leaves' counts."""
        share = Fraction(self.measure)
        return tuple(split_epsilon(self.budget.epsilon, [1 - share, share]))

    def scale(self, tree: Hierarchy, l1: float) -> tuple[float, int]:
        """λ in records, and δ: λ = l1·(2β−1)/((β−1)·ε) for β children, δ = ⌈λ·ln β⌉."""
        beta = max(2, max(tree.digits.radices))
        scale = l1 * (2 * beta - 1) / ((beta - 1) * self.budgets()[0])
        return scale, ceil(scale * log(beta) * (1 + 1e-12))

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
        l1, (structure, last) = sensitivity(records, Records), self.budgets()
        beta = max(2, max(records.hierarchy.digits.radices))
        each = float(
            Fraction(structure) * (beta - 1) / (2 * beta - 1) * (1 - Fraction(1, 2**50))
        )
        noise.decay(l1, each)  # refuses what is too small to reckon with
        fall = self.scale(records.hierarchy, l1)[1]
        front, stopped, floor = Frontier.root(records), [], self.threshold - fall
        comparisons = []
        for level in range(records.hierarchy.digits.depth):
            scores = np.maximum(0, front.counts - level * fall - floor)
            passed, spawning, receipt = noise.noisy_threshold(
                scores, front.empty_nodes, threshold=fall + 1, l1=l1, epsilon=each, rng=rng
            )
            comparisons.append(receipt)
            front, ended = front.next_level(passed, spawning)
            stopped += ended
        leaves, receipt = noisy_leaves(records, [*stopped, *front.all_nodes()], l1, last, rng)
        theorem = noise.by_theorem(
            "tree",
            DP(structure),
            "Zhang, Xiao & Xie 2016, Theorem 3.1",
            replaces=comparisons,
        )
        return Release(leaves, (theorem, receipt), self, records.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """The authors' threshold."""
        return cls(budget)
