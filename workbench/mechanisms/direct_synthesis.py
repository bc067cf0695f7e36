"""Direct synthesis: a fixed number of records, allotted among the children of a node by noisy counts.

Guarantee  ε-DP per unit: `depth` levels of noisy counts at ε/depth each, or less where there is more
           to pay for: a level of choices (`split`), and the total if `records` is not given.
Assumes    the records' bound; `records` and `depth` are stated without looking at the data.
Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 4, Figures 3, 4 and 13;
           section 4.1 for `split` and `stop`; McSherry & Talwar, FOCS 2007.
Differs    whole-number noise (counts must add up); the figure lacks two returns; counts are centred at
           once and not by unit steps, with the same result and no cap at the parent's count. `split`
           charges each level ε/(2·depth) for the choice of an attribute: the size of its largest part
           only grows as records are added, so that weights ∝ exp(ε·score) cost ε and not 2ε.
Cost       `depth` times the children of nodes that have more than one record to allot, empty ones too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Int

from workbench import noise
from workbench.compiled import njit
from workbench.estimates import Leaves, Partition
from workbench.hierarchy import Hierarchy, argsort_keys
from workbench.mechanism import (
    Release,
    parameter,
    pure_budget,
    refuse_depth_above,
    sensitivity,
    split_epsilon,
)
from workbench.privacy import DP, Receipt
from workbench.records import Records
from workbench.value import value

_CHILDREN = 2**22  # that noise is put on at a time
_MOST = 2**33  # and in all, at a level


@value
class DirectSynthesis:
    """`records` synthetic records, allotted level by level down to `depth`.

    `split` = "exponential" chooses at every node which attribute to refine next, one with a large part
    (hierarchies over several attributes). `stop` = "count" publishes a node and its count where fewer
    records are left to allot than the scale of the noise; else nodes are refined down to one record.
    """

    budget: DP = pure_budget()
    depth: int = parameter(low=1, high=128, integer=True, unit="levels", doc="maxdepth")
    records: int = parameter(
        None, 1, 2**28, integer=True, unit="records", doc="to synthesise; bought if not given"
    )
    split: str = parameter(None, choices=(None, "exponential"), doc="what to refine next")
    stop: str = parameter(None, choices=(None, "count"), doc="where signal ends")
    takes: ClassVar[type] = Records
    cite: ClassVar[str] = "adaptive2009"

    def budgets(self) -> tuple[float | None, list[float], list[float]]:
        """ε of the total, if it is bought, of each level's choices, if any, and of its counts."""
        bought, each = self.records is None, 1 if self.split is None else 2
        parts = [Fraction(1, self.depth + bought)] * bought
        parts += [Fraction(1, each * (self.depth + bought))] * (each * self.depth)
        paid = split_epsilon(self.budget.epsilon, parts)
        total, rest = (paid[0], paid[1:]) if bought else (None, paid)
        return total, rest[: len(rest) - self.depth], rest[-self.depth :]

    def _enough(self, l1: float) -> float:
        """A node with fewer records to allot than this is not refined."""
        return 2 if self.stop is None else max(2, l1 / self.budgets()[2][0])

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the synthetic records."""
        l1, tree = sensitivity(records, Records), records.hierarchy
        ledger, many = [], self.records
        if self.split and not hasattr(tree, "axes"):
            raise ValueError(
                f"DirectSynthesis.split = {self.split!r} is not allowed over {type(tree).__name__}: "
                "need several attributes, Attributes or a Quadtree"
            )
        most = sum(map(len, tree.axes)) if self.split else tree.digits.depth
        refuse_depth_above(self, most)
        total, choices, counts = self.budgets()
        if many is None:
            held = np.array([records.total])
            noisy, receipt = noise.geometric(held, l1=l1, epsilon=total, rng=rng)
            many, ledger = max(0, int(noisy[0])), [receipt]
        self._refuse_huge(tree, many)
        made = self._chosen if self.split else self._allotted
        estimate, receipts = made(records, many, l1, choices, counts, rng)
        return Release(estimate, (*ledger, *receipts), self, records.bound)

    def _refuse_huge(self, tree: Hierarchy, many: int) -> None:
        """A ValueError, from public quantities alone, if noise would be put on too many children."""
        nodes, radices = 1, sorted(tree.digits.radices) if self.split else tree.digits.radices
        for radix in radices[-self.depth :] if self.split else radices[: self.depth]:
            if (children := min(nodes, many // 2) * radix) > _MOST:
                raise ValueError(
                    f"{many} records need noise on up to {children:.3g} children at a level, and "
                    f"{_MOST} are possible: need fewer records, or less depth"
                )
            nodes *= radix

    def _allotted(
        self, records, many: int, l1: float, _, looks: list[float], rng
    ) -> tuple[Leaves, list[Receipt]]:
        tree, ends, ledger = records.hierarchy, records.ends(), []
        nodes, start, allot = tree.digits.root(), np.zeros(1, np.int64), np.array([many])
        stop, done = np.array([records.total]), []
        for level, epsilon in enumerate(looks):
            children = tree.children(level, nodes)
            open_, one = (children > 0) & (allot >= self._enough(l1)), children == 0
            done.append((level, nodes[:, ~open_ & ~one], allot[~open_ & ~one]))
            done.append((tree.digits.depth, nodes[:, one], allot[one]))  # a single value
            nodes, start, stop, allot = nodes[:, open_], start[open_], stop[open_], allot[open_]
            children, below = children[open_], []
            add_noise = noise.PortionedGeometric(l1=l1, epsilon=epsilon, rng=rng)
            for part in _portions(children):
                below.append(
                    _level(records, level, ends, nodes[:, part], start[part], stop[part],
                           allot[part], children[part], add_noise, rng)
                )  # fmt: skip
            ledger.append(add_noise.receipt)
            nodes, start, stop, allot = zip(*below, strict=True)
            nodes = np.concatenate(nodes, axis=1)
            start, stop, allot = map(np.concatenate, (start, stop, allot))
        done.append((len(looks), nodes, allot))
        levels = np.concatenate([np.full(len(a), level) for level, _, a in done])
        keys = np.concatenate([keys for _, keys, _ in done], axis=1)
        values = np.concatenate([a for *_, a in done])
        by = argsort_keys(keys)
        by = by[values[by] > 0]
        return Leaves(tree, levels[by], keys[:, by], values[by]), ledger

    def _chosen(
        self, records, many: int, l1: float, choices: list[float], looks: list[float], rng
    ) -> tuple[Partition, list[Receipt]]:
        """The same, where the exponential mechanism chooses the attribute that a node is split by."""
        tree, ledger, done = records.hierarchy, [], []
        places = tree.corners(records.keys)
        weight = np.ones(len(records), np.int64) if records.counts is None else records.counts
        whose = np.zeros(len(records), np.int64)
        lo, hi = np.zeros((1, len(tree.shape)), np.int64), np.array([tree.shape], np.int64)
        taken, allot = np.zeros((1, len(tree.shape)), np.int64), np.array([many])
        deep = np.array([len(axis) for axis in tree.axes])
        for choice, epsilon in zip(choices, looks, strict=True):
            open_ = (taken < deep).any(axis=1) & (allot >= self._enough(l1))
            done.append((lo[~open_], hi[~open_], allot[~open_]))
            kept = open_[whose]
            whose = (np.cumsum(open_) - 1)[whose[kept]]
            places, weight = places[:, kept], weight[kept]
            lo, hi, taken, allot = lo[open_], hi[open_], taken[open_], allot[open_]
            digits, many_, scores = [], [], []
            for axis, radices in enumerate(tree.axes):
                radix = np.array([*radices, 1])[taken[:, axis]]
                width = (hi - lo)[:, axis] // radix
                digits.append((places[axis] - lo[whose, axis]) // width[whose])
                many_.append(radix)
                scores.append(_largest(whose, digits[-1], weight, len(lo)))
            chosen, receipt = noise.exponential_mechanism(
                np.stack(scores, axis=1), sensitivity=l1, epsilon=choice, monotone=True,
                available=taken < deep, rng=rng,
            )  # fmt: skip
            ledger.append(receipt)
            at = np.arange(len(lo))
            children = np.stack(many_)[chosen, at]
            first = np.cumsum(children) - children
            digit = np.stack(digits)[chosen[whose], np.arange(len(whose))]
            held = np.bincount(first[whose] + digit, weight, children.sum()).astype(np.int64)
            noisy, receipt = noise.geometric(held, l1=l1, epsilon=epsilon, rng=rng)
            ledger.append(receipt)
            given = centred(allot, noisy, children, noise.random_words(len(lo), rng=rng))
            width = ((hi - lo)[at, chosen] // children)[np.repeat(at, children)]
            above = np.repeat(at, children)
            low, high, deeper = lo[above], hi[above], taken[above]
            rows, axis = np.arange(len(above)), chosen[above]
            low[rows, axis] += (rows - first[above]) * width
            high[rows, axis] = low[rows, axis] + width
            deeper[rows, axis] += 1
            some = given > 0
            kept = some[first[whose] + digit]
            whose = (np.cumsum(some) - 1)[(first[whose] + digit)[kept]]
            places, weight = places[:, kept], weight[kept]
            lo, hi, taken, allot = low[some], high[some], deeper[some], given[some]
        done.append((lo, hi, allot))
        lo, hi, values = (np.concatenate(x) for x in zip(*done, strict=True))
        return Partition(tree, lo, hi, values), ledger

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Three levels, and a bought total."""
        return cls(budget, depth=3)


def _largest(whose, digit, weight, nodes: int) -> Int[np.ndarray, " nodes"]:
    """How many records the largest part of each node holds; a cost in records, not in parts."""
    by = np.lexsort((digit, whose))
    new = np.append(True, np.diff(whose[by]) + np.diff(digit[by]) != 0)[: len(by)]
    new |= np.append(True, np.diff(whose[by]) != 0)[: len(by)]
    first, found = np.flatnonzero(new), np.zeros(nodes, np.int64)
    if len(first):
        np.maximum.at(found, whose[by][first], np.add.reduceat(weight[by], first))
    return found


def _portions(children: Int[np.ndarray, " n"]) -> list[slice]:
    """Runs of nodes whose children are not too many to hold at once; at least one run."""
    whole = np.cumsum(children) // _CHILDREN
    cuts = np.flatnonzero(np.diff(whole)) + 1
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(children)], strict=True)]


def _level(records, level, ends, nodes, start, stop, allot, children, add_noise, rng):
    """One level of some nodes: children with anything allotted, and their records."""
    tree = records.hierarchy
    whose, digit, first, last = records.occupied_children(level, nodes, start, stop, ends)
    at = np.cumsum(children) - children
    held = np.zeros((2, int(children.sum())), np.int64)  # which records lie in which child
    held[:, at[whose] + digit] = first, last
    noisy = add_noise(held[1] - held[0])
    given = centred(allot, noisy, children, noise.random_words(len(allot), rng=rng))
    some = np.flatnonzero(given)
    above = np.searchsorted(at, some, side="right") - 1
    below = tree.digits.child(level, nodes[:, above], some - at[above])
    return below, held[0, some], held[1, some], given[some]


def centred(
    allot: Int[np.ndarray, " nodes"],
    noisy: Int[np.ndarray, " children"],
    children: Int[np.ndarray, " nodes"],
    words: Int[np.ndarray, " nodes"],
) -> Int[np.ndarray, " children"]:
    """Noisy counts of each node's children, made to add up to what the node has to allot.

    Counts below 0 become 0; then all move by one, in turn from a random child on (`words` modulo
    their number), until the sum is right: up, or down where they are above 0.

    >>> one = np.array([10]), np.array([9, 5, -4, 1]), np.array([4]), np.zeros(1, np.uint64)
    >>> centred(*one)
    array([7, 3, 0, 0])
    """
    given = np.maximum(noisy, 0)
    _centre(
        allot, given, children, (words % np.maximum(children, 1).astype(np.uint64)).astype(int)
    )
    return given


@njit(cache=True, nogil=True)
def _centre(allot, given, children, turns):
    start = 0
    for node in range(allot.size):
        k = children[node]
        own = given[start : start + k]
        over = own.sum() - allot[node]
        if over > 0:
            down = np.sort(own)[::-1]
            total, cap = 0, 0
            for j in range(k):  # the most that all can lose without going too far
                total += down[j]
                cap = (total - allot[node]) // (j + 1)
                if cap >= 0 and (j + 1 == k or cap >= down[j + 1]):
                    break
            over = -allot[node]
            for j in range(k):
                own[j] = max(own[j] - cap, 0)
                over += own[j]
            step = -1
        else:
            over = -over
            for j in range(k):
                own[j] += over // k
            over, step = over % k, 1
        j = turns[node]
        while over > 0:
            if step > 0 or own[j] > 0:
                own[j] += step
                over -= 1
            j = (j + 1) % k
        start += k
