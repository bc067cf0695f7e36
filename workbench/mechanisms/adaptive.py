"""Adaptive histograms, which divide a domain into small regions where there are many records, and into large
regions elsewhere: the basic version, the improved version, and PrivTree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log, log1p
from typing import Any, NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.data import Frontier, Records
from workbench.data.frontier import LevelKeys
from workbench.data.records import Children
from workbench.estimates import Leaves
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import Mechanism, budget_field, private_bound, split_epsilon
from workbench.noise.law import Law
from workbench.privacy import DP, Receipt
from workbench.spaces import Hierarchy, Keys, argsort_keys
from workbench.value import Float, Int, Num, not_allowed, parameter, sealed, value

# Adaptive


class StructureBudgets(NamedTuple):
    """Two budgets in ε. One pays for the structure of a tree of regions, and the other for the counts of the
    leaves, which are the regions that were not split.
    """

    structure: float
    leaves: float


def measure_field() -> Any:
    """Return the field `measure`, the share of ε that pays for the noisy counts of the leaves. Leaves are the
    nodes (regions) that were not split.
    """
    return parameter(0.5, 0.01, 0.99, doc="share of ε that pays for the counts of leaves")


def refuse_depth_above(mechanism: Any, depth: int) -> None:
    """Raise a ValueError if `mechanism.depth` is larger than the number of levels of the hierarchy."""
    if mechanism.depth > depth:
        raise not_allowed(
            mechanism, "depth", f"need at most {depth}, the levels of the hierarchy"
        )


class AdaptiveHistogram(Mechanism):
    """Base of mechanisms that go down a tree of ever smaller regions, the nodes of the tree. Such a mechanism
    splits nodes with many records. Then it releases noisy counts of the leaves, which are the nodes that were
    not split.
    """

    takes = Records
    budget: DP
    measure: float
    threshold: float

    def _split_probability(self, tree: Hierarchy, decay: float) -> float:
        """Return the probability p(0) = α^b/(1+α) that an empty node is split. Here b is the threshold,
        rounded up, and α = exp(−decay).
        """
        chance = exp(-decay * ceil(self.threshold)) / (1 + exp(-decay))
        least = max(0.0, log(max(1, tree.branching)) - log1p(exp(-decay))) / decay
        if tree.branching * chance >= 1:
            raise not_allowed(
                self,
                "threshold",
                f"on average {tree.branching * chance:.3g} of the {tree.branching} children of an empty "
                f"node would be split, so the tree might never end: need more than {least:.6g}",
            )
        return chance


class StructuredHistogram(AdaptiveHistogram):
    """Base of mechanisms that spend one share of ε on building a tree of regions, and the rest on the counts of
    the leaves. Leaves are the regions that were not split.
    """

    def budgets(self) -> StructureBudgets:
        """Return two parts of ε. The first part pays for the decisions to split nodes (regions). The second
        part pays for the counts of the leaves, which are the nodes that were not split.
        """
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
    """Split the nodes (regions) of a hierarchy level by level. Return the nodes that were not split, and one
    receipt per level, which records what the level's decisions cost.

    The function calls `compare(frontier, level)` once per level, where the frontier contains the nodes that
    may be split. `compare` returns the counts of these nodes, the threshold for the noisy counts, and the ε
    that the comparison costs. A node whose noisy count is at least the threshold is split.
    """
    stopped = []
    ledger = []
    for level in range(levels):
        counts, threshold, epsilon = compare(frontier, level)
        passed, spawning, receipt = noise.noisy_threshold(
            counts,
            frontier.empty_nodes,
            threshold=threshold,
            l1=l1,
            epsilon=epsilon,
            rng=rng,
            names=(frontier.nodes, frontier.empty),
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
    """Return a noisy number of records for each node in `stopped`. This argument is a list of pairs: a level
    of the hierarchy, and the keys of nodes on this level.

    Each record belongs to exactly one of these nodes. The function empties the list to free memory.
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
    """Return two arrays with the level and the key of each node, in ascending order of the keys. The function
    empties `stopped`, to free memory.
    """
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


# Discount

STRATEGIES = "skip", "uniform", "proportional", "fractional", "progressive"


class Discount:
    """Rule that removes t records (the discount) from every node of a tree that is split. Each child then has
    at least t records fewer than its parent.
    """

    def __init__(self, strategy: str, t: int):
        self.strategy = strategy
        self.t = t
        self.arrival = np.zeros(0, np.int64)

    def root(self, records: Records, rng: np.random.Generator | None) -> Frontier:
        """Return the root of the tree, which contains all records. With the strategy "proportional", the
        records first get a random order.
        """
        if self.strategy == "proportional":
            try:
                if records.counts is not None:
                    keys = np.repeat(records.keys, records.counts, axis=1)
                    records = replace(records, keys=sealed(keys), counts=None)
                words = noise.random_words(len(records), rng=rng, names=records.keys)
                self.arrival = np.empty(len(records), np.int64)
                self.arrival[np.argsort(words, kind="stable")] = np.arange(len(records))
            except MemoryError:  # whose own words would tell how many records there are
                raise MemoryError("strategy = 'proportional' needs memory per record") from None
        frontier = Frontier.root(records)
        if self.strategy == "fractional":
            return replace(frontier, share_left=np.ones(1))
        return frontier

    def counts(self, frontier: Frontier) -> Num[np.ndarray, " n"]:
        """Return the number of records that remain in each node after all discounts. The numbers are floats
        if the rule removes fractions of records.
        """
        if frontier.share_left is None:
            return frontier.counts
        return frontier.counts * frontier.share_left

    def __call__(self, frontier: Frontier) -> tuple[Frontier, Children]:
        """Remove the discount from the nodes that will be split. Return these nodes with the remaining
        records, and their non-empty children.
        """
        if self.strategy == "skip":
            frontier = replace(frontier, start=frontier.start + self.t)
        if self.strategy == "proportional":
            frontier = self._without_first_arrived(frontier)
        if self.strategy == "fractional":
            lost = self.t / np.maximum(self.counts(frontier), self.t)
            frontier = replace(frontier, share_left=frontier.share_left * (1 - lost))
        children = frontier.children()
        if self.strategy == "uniform":
            children = children._replace(start=children.start + self.t)
        if self.strategy == "progressive":
            lost = level_losses(children.parents, children.stop - children.start, self.t)
            children = children._replace(start=children.start + lost)
        return frontier, children

    def _without_first_arrived(self, frontier: Frontier) -> Frontier:
        """Return the records of the nodes, without the first t records of each node in the order of arrival."""
        counts = frontier.counts
        first = np.cumsum(counts) - counts
        node = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(counts.sum()) + (frontier.start - first)[node]
        arrival = self.arrival[rows]
        rank = np.empty(len(rows), np.int64)
        after_all = arrival.max(initial=0) + 1
        rank[np.argsort(node * after_all + arrival)] = np.arange(len(rows)) - first[node]
        stays = rank >= self.t
        self.arrival = arrival[stays]
        left = np.maximum(counts - self.t, 0)
        stop = np.cumsum(left)
        keys = sealed(frontier.records.keys[:, rows[stays]])
        records = replace(frontier.records, keys=keys)
        return replace(frontier, records=records, start=stop - left, stop=stop)


def level_losses(
    parents: Int[np.ndarray, " k"], counts: Int[np.ndarray, " k"], t: int
) -> Int[np.ndarray, " k"]:
    """Return the number of records that each child loses with the strategy "progressive". The children of one
    node lose t records in total, one by one. Each time, the child that has the most records at this moment
    loses one.
    """
    if not len(parents):
        return np.zeros(0, np.int64)
    new = np.diff(parents, prepend=-1) != 0
    first = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    totals = np.add.reduceat(counts, first)
    cap = _smallest_caps(counts, t, first, group)[group]
    lost = np.maximum(counts - cap, 0)
    rest = t - np.add.reduceat(lost, first)
    tied = counts >= cap
    before = np.cumsum(tied) - tied
    lost += tied & (before - before[first][group] < rest[group])  # ties in the order of keys
    return np.where(totals[group] <= t, counts, lost)


def _smallest_caps(
    counts: Int[np.ndarray, " k"],
    t: int,
    first: Int[np.ndarray, " g"],
    group: Int[np.ndarray, " k"],
) -> Int[np.ndarray, " g"]:
    """Return the smallest limit on records per child, one per group of siblings, with which the siblings of
    the group lose at most t records together.
    """
    low = np.ones(len(first), np.int64)
    high = np.maximum.reduceat(counts, first).astype(np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        above = np.add.reduceat(np.maximum(counts - middle[group], 0), first)
        high = np.where(above <= t, middle, high)
        low = np.where(above <= t, low, np.minimum(middle + 1, high))
    return high


# Basic adaptive histogram


@value
class BasicAdaptiveHistogram(AdaptiveHistogram):
    """Divide crowded regions, and count their parts.

    The mechanism goes down a tree of regions, level by level, until level `depth`. It splits a node (a region)
    into its children if the node's noisy count is at least `threshold`. The nodes that were not split are the
    leaves. In a last step, the mechanism measures a new noisy count of each leaf.

    Guarantee  The release is ε-DP for each unit. The share 1 − `measure` of ε pays for the decisions to split.
               Each of the `depth` levels gets the same part of this share. The nodes of one level have no
               records in common. So all decisions on this level together cost no more than a single decision
               (parallel composition). The share `measure` of ε pays for the counts of the leaves.
    Assumes    One unit has no more records than the bound of the data allows. You choose `threshold` and
               `depth` without looking at the data.
    Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 2.3, Figure 1, Corollary 2.
    Differs    Our noise is an integer. We count the leaves again with new noise. The text of the paper
               describes this step, but the figure of the algorithm omits it. Without this step, the release
               would contain the noisy counts that were too small for a split. Such counts are too low on
               average. The release would also cost the ε of one more level.
    Cost       Time is O(records) to find the nodes, plus O(released nodes). The released nodes include the
               empty children of nodes that were split.
    """

    budget: DP = budget_field()
    threshold: float = parameter(
        low=0, high=2**50, strict=True, unit="records", doc="smallest noisy count b for a split"
    )
    depth: int = parameter(
        low=1, high=128, integer=True, unit="levels", doc="largest depth B of the tree"
    )
    measure: float = measure_field()
    cite = "adaptive2009"
    title = "basic adaptive histogram"
    audited = audited_at(1, depth=2)
    series = "basic histogram"

    def budgets(self) -> list[float]:
        """Return the parts of ε as a list. Each of the first `depth` parts pays for the decisions to split on
        one level, and is the share (1 − `measure`)/`depth` of ε. The last part pays for the counts of the
        leaves, which are the nodes that were not split.
        """
        share = Fraction(self.measure)
        levels = [(1 - share) / self.depth] * self.depth
        return split_epsilon(self.budget.epsilon, [*levels, share])

    def empty_split_probability(self, tree: Hierarchy, l1: float) -> float:
        """Return the probability that a node without records is split. Let ε be the part of the budget that
        pays for the decisions on one level, and α = exp(−ε/l1). The probability is α^b/(1+α), where b is the
        threshold, rounded up. `l1` is the largest total change of the counts that one protected unit can cause.
        """
        return self._split_probability(tree, float(noise.decay(l1, self.budgets()[0])))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return texts that a widget shows. The texts are about the decisions to split nodes, and contain only
        public numbers.
        """
        chance = self.empty_split_probability(tree, l1)
        return {
            "noise of a level": f"ε = {self.budgets()[0]:.3g}",
            "an empty node splits": f"with probability {chance:.2g}",
        }

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves (the nodes that were not split) and their noisy counts."""
        bound = private_bound(records)
        l1 = bound.l1
        refuse_depth_above(self, records.hierarchy.digits.depth)
        self.empty_split_probability(records.hierarchy, l1)
        *level_epsilons, leaves_epsilon = self.budgets()

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, int, float]:
            return frontier.counts, ceil(self.threshold), level_epsilons[level]

        root = Frontier.root(records)
        stopped, ledger = refined(root, self.depth, compare, l1, rng)
        leaves, receipt = noisy_leaves(records, stopped, l1, leaves_epsilon, rng)
        return Release(leaves, (*ledger, receipt), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It has three levels, and its threshold is a few times
        the scale of the noise.
        """
        return cls(budget, threshold=max(1, ceil(24 / budget.epsilon)), depth=3)


# Priv tree


class _Scale(NamedTuple):
    """Scale λ of the noise in records, and the number δ that is subtracted from counts for each level of
    depth (not the δ of a guarantee).
    """

    scale: float
    decrement: int


@value
class PrivTree(StructuredHistogram):
    """Divide regions with large biased counts.

    The mechanism goes down a tree of regions, the nodes. The root of the tree has level 0. Let v be a node, and
    c(v) its count. The biased count of v is the larger of c(v) − δ·level and θ − δ, where δ is a constant (not
    the δ of a guarantee). The mechanism adds noise to the biased count, and splits the node if the sum is above
    the threshold θ. As a formula, the mechanism splits v if max(θ − δ, c(v) − δ·level) + noise > θ. The nodes
    that were not split are the leaves. In a last step, the mechanism measures a new noisy count of each leaf.

    Guarantee  The release is ε-DP for each unit. The share 1 − `measure` of ε pays for the whole tree, however
               deep it becomes. The share `measure` pays for the counts of the leaves.
    Assumes    One unit has no more records than the bound of the data allows. You choose the threshold
               without looking at the data.
    Source     Zhang, Xiao & Xie, SIGMOD 2016, Algorithm 2 and Theorem 3.1.
    Differs    The noise is an integer, and δ is rounded up to an integer. Theorem 3.1 of Zhang, Xiao & Xie
               still holds, as the following argument shows. Let λ be the scale of the noise, α = exp(−1/λ), and
               β the number of children of a node. A node with the biased count x is split with probability f(x)
               = Pr[x + noise > θ]. The ratio f(x)/f(x−1) is at most e^(1/λ). For x > θ, the logarithm of this
               ratio is at most (1/λ)·α^(x−θ−1). On a path down the tree, the biased counts fall by at least δ
               >= λ·ln β per level. Below a node with the biased count θ − δ, all biased counts are θ − δ, so
               they no longer depend on the data. The sum of the logarithms along the path is therefore at most
               (1/λ)·(1 + Σ β^(−i)) = (2β−1)/((β−1)·λ). This bound on the privacy loss is the same as for
               Laplace noise.
    Cost       Time is O(records + released nodes), as for `BasicAdaptiveHistogram`.
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: int = parameter(
        0, 0, 2**50, integer=True, unit="records", doc="count θ above which a node is split"
    )
    measure: float = measure_field()
    cite = "zhang2016"
    title = "PrivTree"
    audited = audited_at(1, measure=0.9, threshold=lambda budget: ceil(8 / budget.epsilon))
    converges = False  # a node of few records is not resolved, at any ε

    def scale(self, tree: Hierarchy, l1: float) -> _Scale:
        """Return the scale λ of the noise, and the number δ that the mechanism subtracts from a node's count
        for each level of depth. This δ is not the δ of a guarantee. `l1` is the largest total change of the
        counts that one protected unit can cause.

        Let β be the largest number of children of a node, and ε the part of the budget that pays for the tree.
        Then λ = l1·(2β−1)/((β−1)·ε) and δ = ⌈λ·ln β⌉.
        """
        beta = _branching(tree)
        scale = l1 * (2 * beta - 1) / ((beta - 1) * self.budgets().structure)
        return _Scale(scale, ceil(scale * log(beta) * (1 + 1e-12)))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return texts that a widget shows. The texts are about the decisions to split nodes, and contain only
        public numbers.
        """
        scale, fall = self.scale(tree, l1)
        return {"λ, δ": f"{scale:.3g}, {fall:,} records"}

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves (the nodes that were not split) and their noisy counts."""
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
        stopped, comparisons = refined(root, levels, compare, l1, rng)
        leaves, receipt = noisy_leaves(records, stopped, l1, budgets.leaves, rng)
        tree = noise.by_theorem(
            "tree",
            DP(budgets.structure),
            "Zhang, Xiao & Xie 2016, Theorem 3.1",
            replaces=comparisons,
        )
        return Release(leaves, (tree, receipt), self, bound)


def _branching(tree: Hierarchy) -> int:
    return max(2, max(tree.digits.radices))


# Improved adaptive histogram

_CERTIFIED = 10**4  # records; what is certified for a larger threshold takes long


@value
class ImprovedAdaptiveHistogram(StructuredHistogram):
    """Divide crowded regions, and discard records.

    The mechanism goes down a tree of regions. It splits a node (a region) into its children if the node's noisy
    count is at least `threshold`. After a split, the mechanism removes `discount` records from the node before
    it counts the records of the children. The nodes that were not split are the leaves. In a last step, the
    mechanism measures a new noisy count of each leaf.

    Guarantee  The release is ε-DP for each unit. A single decision to split costs ε_s = (1 − `measure`)·ε/2.
               All decisions together cost 2ε_s, however deep the tree becomes. The share `measure` of ε pays
               for the counts of the leaves. These counts include the records that were removed. With `strategy`
               = "progressive" there is no guarantee.
    Assumes    One unit has at most l1 records. The bound of the data states l1. You choose the threshold b
               without looking at the data. The discount t is at least b + ln 2·l1/ε_s records. For example, t
               is at least b + ln 2/ε_s if a unit has one record.
    Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 3, Theorem 3, appendix A.
    Differs    We count the leaves in a second pass over all records. The reason is that the paper's proof
               covers the shape of the tree, but not the counts
               (docs/errata.md#adaptive2009-counts-of-the-leaves). The noise is an integer. A node with x
               records is split with probability p(x) = Pr[x + noise >= b]. For x up to b, this probability is
               α^(b−x)/(1+α) with α = exp(−ε_s/l1). The proof adds up the privacy losses of all decisions. If a
               unit has one record, this sum is at most (ε_s(t+b) + ln(1+α))/t, which is no larger than in the
               paper. `strategy` determines which records are removed. The paper describes the strategies in
               appendix A loosely, so we define them exactly. "skip" removes the t records with the smallest
               keys. The key of a record is the position of its value in the list of all possible values.
               "proportional" puts all records in a random order once. Then it removes the first t records of a
               node in this order. "uniform" removes t records of every child. If the mechanism removed only t/k
               records of each of k children, the proof would fail. The proof needs children with at least t
               records fewer than their parent. "fractional" removes a fraction of every record. One unit then
               affects many paths down the tree. Because ln p is concave, the unit's privacy loss is at most an
               average over the losses of single paths. On each path, the unit changes counts only by a fraction
               of a record. With integer noise, such a change would cost as much as a change by a whole record.
               Therefore "fractional" uses Laplace noise in floating-point numbers, which the proof does not
               cover exactly. For this reason, releases with this strategy are marked as idealised. The paper
               says that Theorem 3 also covers "progressive", but this is wrong
               (docs/errata.md#adaptive2009-progressive).
    Cost       Time is O(distinct records) to find the nodes, plus O(released nodes). The strategy
               "proportional" takes time and memory for every record at every level, even if records are
               equal.
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: float = parameter(
        low=0, high=2**50, strict=True, unit="records", doc="smallest noisy count b for a split"
    )
    discount: int | None = parameter(
        None,
        1,
        2**51,
        integer=True,
        unit="records",
        doc="number t of records removed from a split node (by default the smallest proven number)",
    )
    strategy: str = parameter(
        "skip", choices=STRATEGIES, doc="rule that chooses the records to remove"
    )
    measure: float = measure_field()
    cite = "adaptive2009"
    title = "improved adaptive histogram"
    audited = audited_at(1, measure=0.9)
    series = "improved histogram"
    converges = False  # what is discarded is not resolved, however large ε is

    def __post_init__(self) -> None:
        self.effective_discount(1)

    @property
    def withdrawn(self) -> bool:
        """Whether the guarantee that the paper "Synthetic Data via Differential Privacy" (adaptive2009) states
        for the chosen `strategy` is wrong. The strategy is the rule that chooses the records to remove.
        """
        return self.strategy == "progressive"

    def _decision_epsilon(self) -> float:
        """Return ε_s, the ε of the noise on each comparison with the threshold."""
        return self.budgets().structure / 2

    def effective_discount(self, l1: float = 1) -> int:
        """Return the discount t, the number of records that the mechanism removes from a node after a split. If
        you gave `discount`, t is this number. Otherwise, t is the smallest number that Theorem 3 of "Synthetic
        Data via Differential Privacy" (adaptive2009) allows. This number is ⌈b + ln 2·l1/ε_s⌉, where b is the
        threshold, and ε_s the ε of one decision to split. `l1` is the largest total change of the counts that
        one protected unit can cause.
        """
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
        """Return the probability that a node without records is split. Let ε_s be the ε of one decision to
        split, and α = exp(−ε_s/l1). The probability is α^b/(1+α), where b is the threshold, rounded up. `l1`
        is the largest total change of the counts that one protected unit can cause.
        """
        decay = float(noise.decay(l1, self._decision_epsilon()))
        return self._split_probability(tree, decay)

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return texts that a widget shows. The texts are about the decisions to split nodes, and contain only
        public numbers.
        """
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
        """Release the leaves (the nodes that were not split) and their noisy counts."""
        bound = private_bound(records)
        stopped, structure = self._structure(records, bound.l1, rng)
        budget = self.budgets().leaves
        leaves, receipt = noisy_leaves(records, stopped, bound.l1, budget, rng)
        return Release(leaves, (structure, receipt), self, bound)

    def _structure(
        self, records: Records, l1: float, rng: np.random.Generator | None
    ) -> tuple[list[LevelKeys], Receipt]:
        """Return the nodes that are not split, and the receipt that records the cost of the tree."""
        self.empty_split_probability(records.hierarchy, l1)
        discount = Discount(self.strategy, self.effective_discount(l1))

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, float, float]:
            return discount.counts(frontier), self.threshold, self._decision_epsilon()

        root = discount.root(records, rng)
        levels = records.hierarchy.digits.depth
        stopped, comparisons = refined(root, levels, compare, l1, rng, discount)
        return stopped, self._price(comparisons)

    def _price(self, comparisons: list[Receipt]) -> Receipt:
        """Return a receipt with the cost of the tree. The cost is 2ε_s, however deep the tree is, or ∞ if no
        guarantee is known.
        """
        if self.withdrawn:
            return noise.withdrawn("structure", replaces=comparisons)
        price = DP(self.budgets().structure)
        return noise.by_theorem(
            "structure", price, "adaptive2009, Theorem 3", replaces=comparisons
        )

    def worst_case_loss(self, l1: float = 1) -> float:
        """Return the largest privacy loss of one unit if the mechanism releases only the tree, without the
        counts of the leaves. Consider two probabilities that the mechanism releases a given tree: one if the
        unit is in the data, and one if it is not. The privacy loss is the logarithm of the ratio of these
        probabilities. The result is at most 2ε_s, where ε_s is the ε of one decision to split.
        """
        epsilon = self._decision_epsilon() / l1
        discount = self.effective_discount(l1)
        return l1 * structural_loss(epsilon, self.threshold, discount, law="geometric")

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. Its threshold is a few times the scale of the noise."""
        return cls(budget, threshold=max(1, ceil(16 / budget.epsilon)))


def structural_loss(
    epsilon: float, threshold: float, discount: int, law: str = "laplace"
) -> float:
    """Return the largest privacy loss of one record through the decisions to split nodes of a tree. Each
    decision compares a noisy count with `threshold`, and the noise has the scale 1/ε. Each node that is split
    loses `discount` records. If the discount is large enough, the loss is at most 2ε by Theorem 3 of
    "Synthetic Data via Differential Privacy" (adaptive2009).

    A record changes the counts x_0 > x_1 > … of the nodes on one path down the tree by one each. Consecutive
    counts differ by at least the discount t. Let p(x) be the probability that a node with count x is split.
    If the record is added, the loss is Σ r(x_i) with r(x) = ln p(x+1)/p(x). Because r never increases, the
    loss is largest if the counts are as small as possible. Then they are x0 + j·t for some x0 in 0 … t. If
    the record is removed, only the last decision on the path adds to the loss, by at most ε. `law` is the
    distribution of the noise: "laplace", as in the paper, or "geometric".

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
    """Return the smallest discount for which the largest privacy loss of the decisions to split nodes is at
    most 2ε. The discount is the number of records that a split node loses. Theorem 3 of "Synthetic Data via
    Differential Privacy" (adaptive2009) asks for at least as many records.
    """

    def suffices(discount: int) -> bool:
        return structural_loss(epsilon, threshold, discount, law) <= 2 * epsilon

    proved = ceil(threshold + log(2) / epsilon)
    return 1 + bisect_left(range(1, proved), True, key=suffices)


@lru_cache(256)
def _certified(mechanism: ImprovedAdaptiveHistogram) -> tuple[float, int]:
    """Return the largest privacy loss of the tree, and the smallest discount for which this loss is at most
    2ε.
    """
    epsilon = mechanism.budgets()[0] / 2
    enough = certified_discount(epsilon, mechanism.threshold, "geometric")
    return mechanism.worst_case_loss(), enough
