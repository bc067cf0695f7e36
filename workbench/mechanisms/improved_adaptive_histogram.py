"""Improved adaptive histogram: records are discarded at every split, which makes depth free of charge.

Guarantee  ε-DP per unit; the structure costs 2ε_s, ε_s = (1 − `measure`)·ε/2, whatever its depth, and
           the share `measure` pays for the counts of the leaves, of all records. With
           `strategy` = "progressive" nothing is guaranteed.
Assumes    the records' bound; a threshold stated without looking at the data; a discount t of at least
           b + ln 2/ε_s, in records, for units of one record (ln 2·l1/ε_s in general).
Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 3, Theorem 3, appendix A.
Differs    leaves are counted in a second pass only: with the counts of the first it would cost 3ε_s.
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

from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, log, log1p
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Int, Num

from workbench import noise
from workbench.hierarchy import Hierarchy
from workbench.mechanism import (
    Release,
    empty_split_probability,
    noisy_leaves,
    parameter,
    pure_budget,
    sensitivity,
    split_epsilon,
)
from workbench.privacy import DP, Receipt
from workbench.records import Frontier, Records
from workbench.value import sealed, value

STRATEGIES = "skip", "uniform", "proportional", "fractional", "progressive"


@value
class ImprovedAdaptiveHistogram:
    """Split the nodes with noisy counts >= `threshold`, less `discount` records; measure the leaves."""

    budget: DP = pure_budget()
    threshold: float = parameter(low=0, high=2**50, strict=True, unit="records", doc="splits b")
    discount: int = parameter(
        None, 1, 2**51, integer=True, unit="records", doc="t; ⌈b + ln 2·l1/ε_s⌉ if not given"
    )
    strategy: str = parameter("skip", choices=STRATEGIES, doc="which records are discarded")
    measure: float = parameter(0.5, 0.01, 0.99, doc="share of ε for the leaves' counts")
    takes: ClassVar[type] = Records
    cite: ClassVar[str] = "adaptive2009"
    converges: ClassVar[bool] = False  # what is discarded is not resolved, however large ε is

    def __post_init__(self):
        self.effective_discount(1)

    def budgets(self) -> tuple[float, float]:
        """ε of the whole structure, and of the leaves' counts."""
        share = Fraction(self.measure)
        return tuple(split_epsilon(self.budget.epsilon, [1 - share, share]))

    def effective_discount(self, l1: float = 1) -> int:
        """t: as given, or the least that Theorem 3 allows, ⌈b + ln 2·l1/ε_s⌉; less is a ValueError."""
        each = self.budgets()[0] / 2
        noise.decay(l1, each)  # refuses what is too small to reckon with
        least = ceil(self.threshold + log(2) * l1 / each)
        if self.discount is not None and self.discount < least:
            raise ValueError(
                f"ImprovedAdaptiveHistogram.discount = {self.discount!r} is not allowed: the guarantee "
                f"needs at least threshold + ln 2·l1/ε_s, here {least} (records)"
            )
        return self.discount or least

    def empty(self, tree: Hierarchy, l1: float) -> float:
        """p(0), the chance that an empty node is split: α^b/(1+α); a ValueError if that never ends."""
        return empty_split_probability(
            self, tree, float(noise.decay(l1, self.budgets()[0] / 2))
        )

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
        l1, (structure, last) = sensitivity(records, Records), self.budgets()
        self.empty(records.hierarchy, l1)
        discount = Discount(self.strategy, self.effective_discount(l1))
        front, stopped, comparisons = discount.root(records, rng), [], []
        for _ in range(records.hierarchy.digits.depth):
            passed, spawning, receipt = noise.noisy_threshold(
                discount.counts(front),
                front.empty_nodes,
                threshold=self.threshold,
                l1=l1,
                epsilon=structure / 2,
                rng=rng,
            )
            comparisons.append(receipt)
            front, ended = front.next_level(passed, spawning, discount)
            stopped += ended
        leaves, receipt = noisy_leaves(records, [*stopped, *front.all_nodes()], l1, last, rng)
        price = self._price(structure, comparisons)
        return Release(leaves, (price, receipt), self, records.bound)

    def _price(self, structure: float, comparisons: list[Receipt]) -> Receipt:
        if self.strategy == "progressive":
            return noise.withdrawn("structure", replaces=comparisons)
        return noise.by_theorem(
            "structure", DP(structure), "adaptive2009, Theorem 3", replaces=comparisons
        )

    def loss(self, l1: float = 1) -> float:
        """The exact worst-case loss of the structure for one unit, at most 2ε_s; see the function."""
        each = self.budgets()[0] / 2 / l1
        return l1 * structural_loss(
            each, self.threshold, self.effective_discount(l1), law="geometric"
        )

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A threshold of a few noise scales."""
        return cls(budget, threshold=max(1, ceil(16 / budget.epsilon)))


class Discount:
    """Takes t records off every node that is split, so that each child has at least t fewer.

    What it takes depends on the records alone, in a way that is stable: of two sets of records that
    differ by one, what is left differs by one at most (but for "progressive").
    """

    def __init__(self, strategy: str, t: int):
        self.strategy, self.t = strategy, t
        self.arrival = None

    def root(self, records: Records, rng: np.random.Generator | None) -> Frontier:
        """Everything in one node; in proportional discounting every record arrives at random, once."""
        if self.strategy == "proportional":
            try:
                if records.counts is not None:
                    keys = np.repeat(records.keys, records.counts, axis=1)
                    records = replace(records, keys=sealed(keys), counts=None)
                self.arrival = noise.random_words(len(records), rng=rng)
            except MemoryError:  # whose own words would tell how many records there are
                raise MemoryError("strategy = 'proportional' needs memory a record") from None
        front = Frontier.root(records)
        return replace(front, share_left=np.ones(1)) if self.strategy == "fractional" else front

    def counts(self, front: Frontier) -> Num[np.ndarray, " n"]:
        """What nodes hold, in records; a floating-point number where these are diminished."""
        return front.counts if front.share_left is None else front.counts * front.share_left

    def __call__(self, front: Frontier) -> tuple[Frontier, tuple]:
        """Nodes that are split, with what is left to them, and their occupied children."""
        if self.strategy == "skip":
            front = replace(front, start=front.start + self.t)
        if self.strategy == "proportional":
            front = self._arrived(front)
        if self.strategy == "fractional":
            held = front.counts * front.share_left
            front = replace(
                front, share_left=front.share_left * (1 - self.t / np.maximum(held, self.t))
            )
        whose, digit, start, stop = front.children()
        if self.strategy == "uniform":
            start = start + self.t
        if self.strategy == "progressive":
            start = start + levelled(whose, stop - start, self.t)
        return front, (whose, digit, start, stop)

    def _arrived(self, front: Frontier) -> Frontier:
        """The records of the nodes, but for the first t of each that arrived."""
        held = front.counts
        first = np.cumsum(held) - held
        at = np.arange(held.sum()) + np.repeat(front.start - first, held)
        whose, arrival = np.repeat(np.arange(len(held)), held), self.arrival[at]
        rank = np.empty(len(at), np.int64)
        rank[np.lexsort((arrival, whose))] = np.arange(len(at)) - np.repeat(first, held)
        kept = rank >= self.t
        self.arrival = arrival[kept]
        left = np.maximum(held - self.t, 0)
        stop = np.cumsum(left)
        records = replace(front.records, keys=sealed(front.records.keys[:, at[kept]]))
        return replace(front, records=records, start=stop - left, stop=stop)


def levelled(
    whose: Int[np.ndarray, " k"], counts: Int[np.ndarray, " k"], t: int
) -> Int[np.ndarray, " k"]:
    """How much each child loses when its siblings lose t in all, one at a time from the largest."""
    lost = np.zeros(len(counts), np.int64)
    ends = np.flatnonzero(np.diff(whose)) + 1
    for here in np.split(np.arange(len(whose)), ends) if len(whose) else ():
        left, high = counts[here], int(counts[here].max())
        low = 0
        if left.sum() <= t:
            lost[here] = left
            continue
        while high - low > 1:  # the smallest cap above which there are no more than t
            middle = (low + high) // 2
            over = np.maximum(left - middle, 0).sum() <= t
            low, high = (low, middle) if over else (middle, high)
        lost[here] = np.maximum(left - high, 0)
        rest = t - lost[here].sum()
        lost[here[left >= high][:rest]] += 1  # ties in the order of keys
    return lost


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
    decay = epsilon
    x = np.arange(-(-top // discount) * discount + discount + 1, dtype=float)

    def log_passing(x):
        over = x - threshold
        if law == "geometric":
            low = decay * np.minimum(over, 0) - log1p(exp(-decay))
            high = np.log1p(-np.exp(-decay * (np.maximum(over, 0) + 1)) / (1 + exp(-decay)))
            return np.where(over <= 0, low, high)
        low = decay * np.minimum(over, 0) - log(2)
        return np.where(over < 0, low, np.log1p(-np.exp(-decay * np.maximum(over, 0)) / 2))

    ratio = log_passing(x + 1) - log_passing(x)
    columns = ratio[: len(ratio) // discount * discount].reshape(-1, discount)
    return float(max(columns.sum(axis=0).max(), epsilon))


def certified_discount(epsilon: float, threshold: float, law: str = "laplace") -> int:
    """The smallest t whose exact worst-case loss is at most 2ε: less than Theorem 3 asks for."""
    low, high = 0, ceil(threshold + log(2) / epsilon)
    while high - low > 1:
        middle = (low + high) // 2
        good = structural_loss(epsilon, threshold, middle, law) <= 2 * epsilon
        low, high = (low, middle) if good else (middle, high)
    return high
