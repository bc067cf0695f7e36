"""Improved adaptive histogram: records are discarded at every split, which makes depth free of charge.

Guarantee  ε-DP per unit; the structure costs 2ε_s, ε_s = (1 − `measure`)·ε/2, whatever its depth, and
           the share `measure` pays for the counts of the leaves, of all records. With
           `strategy` = "progressive" nothing is guaranteed.
Assumes    the records' bound; a threshold stated without looking at the data; a discount t of at least
           b + ln 2/ε_s, in records, for units of one record (ln 2·l1/ε_s in general).
Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 3, Theorem 3, appendix A.
Differs    leaves are counted in a second pass only, of all records: the proof is of the structure alone
           (docs/errata.md#adaptive2009-counts-of-the-leaves).
           Noise is whole: p(x) = Pr[x + noise >= b] is α^(b−x)/(1+α) up to b, so that the sum in the
           proof is at most (ε(t+b) + ln(1+α))/t, no more than the paper's. The strategies of
           appendix A are made precise: which records go is fixed by the order of keys ("skip"), or
           of a random arrival ("proportional"), or is t of every child ("uniform": t/k of each
           would not make counts fall by t). "fractional" takes a share of every record: what a unit
           moves then flows down many paths, and since ln p is concave the loss is an average of that
           of single paths; but whole noise would turn its tiny moves into whole ones, so its noise is
           Laplace's, in floating point, and idealised. "progressive", which the paper calls stable,
           is not: children of N and N + 1 records, against N and N, lose different records.
Cost       O(distinct records) to find the nodes, and what is released; "proportional" takes time and
           memory a record, copies of equal ones included, at every level.
"""

from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from math import ceil, exp, log, log1p
from typing import Self

import numpy as np

from workbench.arrays import Float
from workbench.hierarchy import Hierarchy
from workbench.mechanism import (
    Release,
    noise,
    parameter,
    private_bound,
    pure_budget,
)
from workbench.mechanisms import _adaptive as shared
from workbench.mechanisms._discount import STRATEGIES, Discount
from workbench.privacy import DP, Receipt
from workbench.records import Frontier, Records
from workbench.records.frontier import LevelKeys
from workbench.value import not_allowed, value

_CERTIFIED = 10**4  # records; what is certified for a larger threshold takes long


@value
class ImprovedAdaptiveHistogram(shared.StructuredHistogram):
    """Split the nodes with noisy counts >= `threshold`, less `discount` records; measure the leaves."""

    budget: DP = pure_budget(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: float = parameter(low=0, high=2**50, strict=True, unit="records", doc="splits b")
    discount: int | None = parameter(
        None, 1, 2**51, integer=True, unit="records", doc="t; ⌈b + ln 2·l1/ε_s⌉ if not given"
    )
    strategy: str = parameter("skip", choices=STRATEGIES, doc="which records are discarded")
    measure: float = shared.measure_field()
    cite = "adaptive2009"
    title = "improved adaptive histogram"
    series = "improved histogram"
    converges = False  # what is discarded is not resolved, however large ε is

    def __post_init__(self) -> None:
        self.effective_discount(1)

    @property
    def withdrawn(self) -> bool:
        """Whether its guarantee, as the paper prints it, is wrong."""
        return self.strategy == "progressive"

    def _decision_epsilon(self) -> float:
        """ε_s, of the noise on each comparison."""
        return self.budgets().structure / 2

    def effective_discount(self, l1: float = 1) -> int:
        """t: as given, or the least that Theorem 3 allows, ⌈b + ln 2·l1/ε_s⌉; less is a ValueError."""
        epsilon = self._decision_epsilon()
        noise.decay(l1, epsilon)  # refuses what is too small to compute with
        least = ceil(self.threshold + log(2) * l1 / epsilon)
        if self.discount is not None and self.discount < least:
            why = (
                f"the guarantee needs at least threshold + ln 2·l1/ε_s, here {least} (records)"
            )
            raise not_allowed(self, "discount", why)
        return self.discount or least

    def empty_split_probability(self, tree: Hierarchy, l1: float) -> float:
        """p(0), the chance that an empty node is split: α^b/(1+α); a ValueError if that never ends."""
        decay = float(noise.decay(l1, self._decision_epsilon()))
        return self._split_probability(tree, decay)

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """What its closed forms say of its decisions, as a panel has it."""
        theorem = replace(self, discount=None)
        discards = (
            f"{self.effective_discount(l1):,} records a split; "
            f"Theorem 3 asks for {theorem.effective_discount(l1):,}"
        )
        facts = {"discount": discards}
        if self.threshold <= _CERTIFIED:
            loss, enough = _certified(theorem)
            paid = self.budgets()[0]
            facts = {
                "structure": f"ε = {loss:.3g} at worst where {paid:.3g} is paid",
                "discount": f"{discards}, and {enough:,} are certified to do",
            }
        chance = self.empty_split_probability(tree, l1)
        return facts | {"an empty node splits": f"with probability {chance:.2g}"}

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
        bound = private_bound(records)
        stopped, structure = self._structure(records, bound.l1, rng)
        budget = self.budgets().leaves
        leaves, receipt = shared.noisy_leaves(records, stopped, bound.l1, budget, rng)
        return Release(leaves, (structure, receipt), self, bound)

    def _structure(
        self, records: Records, l1: float, rng: np.random.Generator | None
    ) -> tuple[list[LevelKeys], Receipt]:
        """Where nodes stop, and what that costs."""
        self.empty_split_probability(records.hierarchy, l1)
        discount = Discount(self.strategy, self.effective_discount(l1))

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, float, float]:
            return discount.counts(frontier), self.threshold, self._decision_epsilon()

        root = discount.root(records, rng)
        levels = records.hierarchy.digits.depth
        stopped, comparisons = shared.refined(root, levels, compare, l1, rng, discount)
        return stopped, self._price(comparisons)

    def _price(self, comparisons: list[Receipt]) -> Receipt:
        """What the structure costs: 2ε_s whatever its depth, or nothing that could be promised."""
        if self.withdrawn:
            return noise.withdrawn("structure", replaces=comparisons)
        price = DP(self.budgets().structure)
        return noise.by_theorem(
            "structure", price, "adaptive2009, Theorem 3", replaces=comparisons
        )

    def worst_case_loss(self, l1: float = 1) -> float:
        """The exact worst-case loss of the structure for one unit, at most 2ε_s; see the function."""
        epsilon = self._decision_epsilon() / l1
        discount = self.effective_discount(l1)
        return l1 * structural_loss(epsilon, self.threshold, discount, law="geometric")

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A threshold of a few noise scales."""
        return cls(budget, threshold=max(1, ceil(16 / budget.epsilon)))


def structural_loss(
    epsilon: float, threshold: float, discount: int, law: str = "laplace"
) -> float:
    """The exact worst-case loss of the decisions, for one record and noise of ε: Theorem 3 says 2ε.

    A record moves the counts x_0 > x_1 > … of a path by one, and these fall by at least t. If it is
    added the loss is Σ r(x_i), r(x) = ln p(x+1)/p(x), and since r never rises it is largest where
    counts are as low as they may be: x0 + j·t for some x0 in 0 … t. If it is removed only the last
    decision can lose, and loses ε where it stops at a large count. `law` is the noise: "laplace", as
    printed, or "geometric".

    >>> structural_loss(0.1, 28, 35) < 0.2
    True
    """
    top = ceil(threshold + 60 / epsilon)
    if law == "geometric":
        threshold = ceil(threshold)

    def log_passing(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        over = x - threshold
        if law == "geometric":
            low = epsilon * np.minimum(over, 0) - log1p(exp(-epsilon))
            high = np.log1p(-np.exp(-epsilon * (np.maximum(over, 0) + 1)) / (1 + exp(-epsilon)))
            return np.where(over <= 0, low, high)
        low = epsilon * np.minimum(over, 0) - log(2)
        return np.where(over < 0, low, np.log1p(-np.exp(-epsilon * np.maximum(over, 0)) / 2))

    x = np.arange(-(-top // discount) * discount + discount + 1, dtype=float)
    ratios = log_passing(x + 1) - log_passing(x)
    paths = ratios[: len(ratios) // discount * discount].reshape(-1, discount)
    return float(max(paths.sum(axis=0).max(), epsilon))


def certified_discount(epsilon: float, threshold: float, law: str = "laplace") -> int:
    """The smallest t whose exact worst-case loss is at most 2ε: less than Theorem 3 asks for."""

    def suffices(discount: int) -> bool:
        return structural_loss(epsilon, threshold, discount, law) <= 2 * epsilon

    proved = ceil(threshold + log(2) / epsilon)
    return 1 + bisect_left(range(1, proved), True, key=suffices)


@lru_cache(256)
def _certified(mechanism: ImprovedAdaptiveHistogram) -> tuple[float, int]:
    """The exact loss of its structure, and the least discount that would keep it within 2ε."""
    epsilon = mechanism.budgets()[0] / 2
    enough = certified_discount(epsilon, mechanism.threshold, "geometric")
    return mechanism.worst_case_loss(), enough
