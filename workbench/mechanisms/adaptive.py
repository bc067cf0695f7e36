"""Adaptive histograms: basic, improved, and PrivTree."""

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
    """Two budgets in ε: one for the structure of the tree, one for the counts of its leaves."""

    structure: float
    leaves: float


def measure_field() -> Any:
    """Return the field `measure`, the share of ε that pays for the counts of the leaves."""
    return parameter(0.5, 0.01, 0.99, doc="share of ε for the counts of the leaves")


def refuse_depth_above(mechanism: Any, depth: int) -> None:
    """Raise a ValueError if `mechanism.depth` asks for more levels than the hierarchy has."""
    if mechanism.depth > depth:
        raise not_allowed(
            mechanism, "depth", f"need at most {depth}, the levels of the hierarchy"
        )


class AdaptiveHistogram(Mechanism):
    """Base of mechanisms that split nodes with many records, and release noisy counts of the leaves."""

    takes = Records
    budget: DP
    measure: float
    threshold: float

    def _split_probability(self, tree: Hierarchy, decay: float) -> float:
        """Return p(0) = α^b/(1+α), α = exp(−decay), the probability that an empty node is split."""
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
    """Base of mechanisms that spend one share of ε on the structure of the tree, and the rest on the counts
    of its leaves.
    """

    def budgets(self) -> StructureBudgets:
        """Return the ε for the structure and the ε for the counts of the leaves."""
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
    """Split the nodes of a hierarchy level by level. Return the nodes that were not split, and one receipt
    per level.

    `compare(frontier, level)` returns three things: the counts of the nodes, the threshold to compare them
    with, and the ε of this comparison.
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
    """Return noisy counts of the records below each node in `stopped`, a list of (level, keys).

    Each record is below exactly one of the nodes. The function empties the list.
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
    """Return the sorted levels and keys of all nodes. Each list of nodes is freed after it is copied."""
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
    """Rule that removes t records from every node that is split, so that each child has at least t fewer
    than its parent.
    """

    def __init__(self, strategy: str, t: int):
        self.strategy = strategy
        self.t = t
        self.arrival = np.zeros(0, np.int64)

    def root(self, records: Records, rng: np.random.Generator | None) -> Frontier:
        """Return the root, which holds all records. For proportional discounting, the records first get a
        random order.
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
        """Return the number of records in each node. The numbers are floats if the rule removes shares of
        records.
        """
        if frontier.share_left is None:
            return frontier.counts
        return frontier.counts * frontier.share_left

    def __call__(self, frontier: Frontier) -> tuple[Frontier, Children]:
        """Return the nodes to split, with their records after the discount, and their occupied children."""
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
        """Return the records of the nodes, without the first t that arrived in each."""
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
    """Return the number of records that each child loses. Children of one node lose t records in total, one
    at a time, always from the child that is then the largest.
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
    """Return, for each group of siblings, the smallest number above which there are at most t records."""
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
    """Split nodes with large noisy counts, then measure.

    The mechanism splits a node if its noisy count is at least `threshold`, down to level `depth`.

    Guarantee  ε-DP per unit. The share 1 − `measure` of ε pays for the decisions, in equal parts for
               `depth` levels. The nodes of one level have no records in common, so they share the ε of the
               level. The rest pays for the counts of the leaves.
    Assumes    the records' bound. Threshold and depth are stated without looking at the data.
    Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 2.3, Figure 1, Corollary 2.
    Differs    Noise is an integer. We measure the leaves again, as the paper's text describes and
               its figure omits. Otherwise the release would contain the counts that did not reach the
               threshold. These are too low on average, and their release costs one more level.
    Cost       O(records) to find the nodes, plus O(released nodes). Released nodes include the empty
               children of nodes that were split.
    """

    budget: DP = budget_field()
    threshold: float = parameter(
        low=0, high=2**50, strict=True, unit="records", doc="count b from which a node is split"
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
        """Return two budgets in ε, one for the decisions on one level of the tree, and one for the counts of
        the leaves. The first is the share (1 − `measure`)/`depth` of the whole ε.
        """
        share = Fraction(self.measure)
        levels = [(1 - share) / self.depth] * self.depth
        return split_epsilon(self.budget.epsilon, [*levels, share])

    def empty_split_probability(self, tree: Hierarchy, l1: float) -> float:
        """Return the probability that a node without records is split. It is α^b/(1+α), where b is the
        threshold and α = exp(−ε/l1), with the ε of the decisions on one level.
        """
        return self._split_probability(tree, float(noise.decay(l1, self.budgets()[0])))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return facts about the mechanism's decisions to split nodes, for display in a widget. They follow
        from formulas and use no data.
        """
        chance = self.empty_split_probability(tree, l1)
        return {
            "noise of a level": f"ε = {self.budgets()[0]:.3g}",
            "an empty node splits": f"with probability {chance:.2g}",
        }

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the leaves and their noisy counts."""
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
        """Return an example of the mechanism with three levels. Its threshold is a few times the scale of the
        noise.
        """
        return cls(budget, threshold=max(1, ceil(24 / budget.epsilon)), depth=3)


# Priv tree


class _Scale(NamedTuple):
    """Scale λ of the noise in records, and δ, by which scores fall per level."""

    scale: float
    decrement: int


@value
class PrivTree(StructuredHistogram):
    """Split nodes by biased noisy counts, then measure.

    The mechanism splits node v with count c(v) if max(θ − δ, c(v) − δ·level) + noise > θ.

    Guarantee  ε-DP per unit. A share 1 − `measure` of ε pays for the tree, at any depth, and the rest for
               the counts of its leaves.
    Assumes    the records' bound, and a threshold that is stated without looking at the data.
    Source     Zhang, Xiao & Xie, SIGMOD 2016, Algorithm 2 and Theorem 3.1.
    Differs    The noise is an integer, and δ is rounded up to an integer. The proof of the theorem
               still holds. Let α = exp(−1/λ) and f(x) = Pr[x + noise > θ]. Then f(x)/f(x−1) <= e^(1/λ), and
               for x > θ the logarithm of this ratio is at most (1/λ)·α^(x−θ−1). Along a path, scores fall
               by at least δ >= λ·ln β per level, until they reach a lower limit that is the same for all
               data. The loss is therefore at most (1/λ)·(1 + Σ β^(−i)) = (2β−1)/((β−1)·λ), as for Laplace
               noise.
    Cost       the same as for an adaptive histogram: O(records + released nodes).
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: int = parameter(
        0, 0, 2**50, integer=True, unit="records", doc="count θ from which a node is split"
    )
    measure: float = measure_field()
    cite = "zhang2016"
    title = "PrivTree"
    audited = audited_at(1, measure=0.9, threshold=lambda budget: ceil(8 / budget.epsilon))
    converges = False  # a node of few records is not resolved, at any ε

    def scale(self, tree: Hierarchy, l1: float) -> _Scale:
        """Return the scale λ of the noise, and the number δ of records by which a node's score falls per level.
        If a node has β children and a unit changes the counts by at most `l1` in total, λ =
        l1·(2β−1)/((β−1)·ε), where ε pays for the tree, and δ = ⌈λ·ln β⌉.
        """
        beta = _branching(tree)
        scale = l1 * (2 * beta - 1) / ((beta - 1) * self.budgets().structure)
        return _Scale(scale, ceil(scale * log(beta) * (1 + 1e-12)))

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return facts about the mechanism's decisions to split nodes, for display in a widget. They follow
        from formulas and use no data.
        """
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
    """Split nodes by discounted counts, then measure.

    The mechanism splits a node if its noisy count is at least `threshold`. Before it looks at the children,
    it removes `discount` records of the node.

    Guarantee  ε-DP per unit. The structure costs 2ε_s, with ε_s = (1 − `measure`)·ε/2, at any depth. The
               share `measure` pays for the counts of the leaves, which count all records. With `strategy` =
               "progressive" there is no guarantee.
    Assumes    the records' bound, a threshold b that is stated without looking at the data, and a discount
               t of at least b + ln 2·l1/ε_s records (b + ln 2/ε_s if a unit is one record).
    Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 3, Theorem 3, appendix A.
    Differs    We count the leaves in a second pass over all records, because the paper's proof
               covers the structure alone (docs/errata.md#adaptive2009-counts-of-the-leaves). The noise is
               an integer. For x up to b, p(x) = Pr[x + noise >= b] is α^(b−x)/(1+α), so the sum in the
               proof is at most (ε(t+b) + ln(1+α))/t, which is no more than the paper's. We define the
               strategies of appendix A exactly. "skip" removes t records by the order of keys, and
               "proportional" by a random order of arrival. "uniform" removes t records of every child. If
               it removed t/k of each, a child could have fewer than t records less than its parent.
               "fractional" removes a share of every record. A unit then affects many paths. Because ln p is
               concave, its loss is an average over the losses of single paths. Integer noise would round
               these small changes up. Therefore "fractional" uses Laplace noise in floating point, and its
               releases are marked as idealised. The paper calls "progressive" stable, but it is not
               (docs/errata.md#adaptive2009-progressive).
    Cost       O(distinct records) to find the nodes, plus O(released nodes). "proportional" takes time and
               memory for every record at every level, even if records are equal.
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    threshold: float = parameter(
        low=0, high=2**50, strict=True, unit="records", doc="count b from which a node is split"
    )
    discount: int | None = parameter(
        None,
        1,
        2**51,
        integer=True,
        unit="records",
        doc="discount t of each count; ⌈b + ln 2·l1/ε_s⌉ by default",
    )
    strategy: str = parameter(
        "skip", choices=STRATEGIES, doc="rule that chooses the discarded records"
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
        """Whether the guarantee that the paper states for the chosen strategy is wrong."""
        return self.strategy == "progressive"

    def _decision_epsilon(self) -> float:
        """Return ε_s, for the noise on each comparison."""
        return self.budgets().structure / 2

    def effective_discount(self, l1: float = 1) -> int:
        """Return the discount t: the given one, or the smallest that Theorem 3 allows, ⌈b + ln 2·l1/ε_s⌉."""
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
        """Return the probability that a node without records is split. It is α^b/(1+α), where b is the
        threshold and α = exp(−ε/l1), with the ε of a decision.
        """
        decay = float(noise.decay(l1, self._decision_epsilon()))
        return self._split_probability(tree, decay)

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return facts about the mechanism's decisions to split nodes, for display in a widget. They follow
        from formulas and use no data.
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
        """Release the leaves and their noisy counts."""
        bound = private_bound(records)
        stopped, structure = self._structure(records, bound.l1, rng)
        budget = self.budgets().leaves
        leaves, receipt = noisy_leaves(records, stopped, bound.l1, budget, rng)
        return Release(leaves, (structure, receipt), self, bound)

    def _structure(
        self, records: Records, l1: float, rng: np.random.Generator | None
    ) -> tuple[list[LevelKeys], Receipt]:
        """Return the nodes that are not split, and the receipt for the structure."""
        self.empty_split_probability(records.hierarchy, l1)
        discount = Discount(self.strategy, self.effective_discount(l1))

        def compare(frontier: Frontier, level: int) -> tuple[np.ndarray, float, float]:
            return discount.counts(frontier), self.threshold, self._decision_epsilon()

        root = discount.root(records, rng)
        levels = records.hierarchy.digits.depth
        stopped, comparisons = refined(root, levels, compare, l1, rng, discount)
        return stopped, self._price(comparisons)

    def _price(self, comparisons: list[Receipt]) -> Receipt:
        """Return the cost of the structure: 2ε_s at any depth, or ∞ if no guarantee is known."""
        if self.withdrawn:
            return noise.withdrawn("structure", replaces=comparisons)
        price = DP(self.budgets().structure)
        return noise.by_theorem(
            "structure", price, "adaptive2009, Theorem 3", replaces=comparisons
        )

    def worst_case_loss(self, l1: float = 1) -> float:
        """Return the largest privacy loss that the released tree without its counts can cause for one unit. It
        is at most 2ε_s, where ε_s is the budget of the tree.
        """
        epsilon = self._decision_epsilon() / l1
        discount = self.effective_discount(l1)
        return l1 * structural_loss(epsilon, self.threshold, discount, law="geometric")

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism. Its threshold is a few times the scale of the noise."""
        return cls(budget, threshold=max(1, ceil(16 / budget.epsilon)))


def structural_loss(
    epsilon: float, threshold: float, discount: int, law: str = "laplace"
) -> float:
    """Return the largest privacy loss that the decisions can cause for one record, with noise at ε. Theorem
    3 proves that it is at most 2ε.

    A record changes the counts x_0 > x_1 > … on one path by one each. Consecutive counts differ by at least
    t. If the record is added, the loss is Σ r(x_i) with r(x) = ln p(x+1)/p(x). Because r never increases,
    the loss is largest if the counts are as small as possible. Then they are x0 + j·t for some x0 in 0 … t.
    If the record is removed, only the last split on the path adds to the loss, by at most ε. `law` is the
    noise: "laplace", as in the paper, or "geometric".

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
    """Return the smallest discount for which the largest loss is at most 2ε. The discount of Theorem 3 is
    never smaller.
    """

    def suffices(discount: int) -> bool:
        return structural_loss(epsilon, threshold, discount, law) <= 2 * epsilon

    proved = ceil(threshold + log(2) / epsilon)
    return 1 + bisect_left(range(1, proved), True, key=suffices)


@lru_cache(256)
def _certified(mechanism: ImprovedAdaptiveHistogram) -> tuple[float, int]:
    """Return the exact loss of the structure, and the smallest discount that keeps the loss within 2ε."""
    epsilon = mechanism.budgets()[0] / 2
    enough = certified_discount(epsilon, mechanism.threshold, "geometric")
    return mechanism.worst_case_loss(), enough
