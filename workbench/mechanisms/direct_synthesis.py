"""Direct synthesis of records. The mechanism distributes a fixed number of synthetic records among smaller and
smaller regions of the domain, in agreement with noisy counts.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.compiled import njit
from workbench.data import Records
from workbench.estimates import Leaves, Partition
from workbench.estimates.release import Release
from workbench.mechanisms.adaptive import refuse_depth_above
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import Mechanism, budget_field, private_bound, split_epsilon
from workbench.privacy import DP, Receipt
from workbench.spaces import Hierarchy, argsort_keys
from workbench.value import Bool, Int, UInt64, not_allowed, parameter, value

# Allotment


def centred(
    allot: Int[np.ndarray, " nodes"],
    noisy: Int[np.ndarray, " children"],
    children: Int[np.ndarray, " nodes"],
    words: Int[np.ndarray, " nodes"],
) -> Int[np.ndarray, " children"]:
    """Adjust the noisy counts of each node's children to integers >= 0 that add up to `allot`, the node's
    number of synthetic records.

    Counts below 0 become 0. If the sum is then too small, the children gain one record each in turn, until
    the sum is right. If the sum is too large, the children that still have records lose one record each in
    turn. A random child has the first turn. `words` contains one random integer per node. This integer,
    modulo the number of children, is the position of that child.

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
def _centre(
    allot: Int[np.ndarray, " nodes"],
    given: Int[np.ndarray, " kids"],
    children: Int[np.ndarray, " nodes"],
    turns: Int[np.ndarray, " nodes"],
) -> None:
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


# Attribute boxes


class AttributeBoxes(NamedTuple):
    """Boxes, which are regions of the domain with one range of codes per attribute. For each box, the object
    contains the number of synthetic records, and how often each attribute was split.
    """

    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    splits: Int[np.ndarray, "boxes attributes"]
    allotted: Int[np.ndarray, " boxes"]

    @classmethod
    def root(cls, tree: Hierarchy, total: int) -> AttributeBoxes:
        """Return one box that contains the whole domain."""
        zeros = np.zeros((1, len(tree.shape)), np.int64)
        return cls(zeros, np.array([tree.shape], np.int64), zeros, np.array([total]))

    def where(self, rows: Bool[np.ndarray, " boxes"]) -> AttributeBoxes:
        """Return the boxes that the mask `rows` selects."""
        return AttributeBoxes(*(array[rows] for array in self))

    def parts(self, tree: Hierarchy) -> Int[np.ndarray, "attributes boxes"]:
        """Return, for each attribute and each box, the number of parts if the box is split by this attribute.
        The number is 1 if the attribute cannot be split further.
        """
        radices = [np.array([*axis, 1]) for axis in tree.axes]
        return np.stack([r[self.splits[:, axis]] for axis, r in enumerate(radices)])

    def cut(
        self,
        chosen: Int[np.ndarray, " boxes"],
        children: Int[np.ndarray, " boxes"],
        allotted: Int[np.ndarray, " children"],
    ) -> AttributeBoxes:
        """Split each box into equal parts by its chosen attribute. Return the parts in order, each with its
        number of synthetic records.
        """
        box = np.repeat(np.arange(len(children)), children)
        first = np.cumsum(children) - children
        row = np.arange(len(box))
        axis = chosen[box]
        width = (self.hi - self.lo)[box, axis] // children[box]
        lo = self.lo[box]
        hi = self.hi[box]
        splits = self.splits[box]
        lo[row, axis] += (row - first[box]) * width
        hi[row, axis] = lo[row, axis] + width
        splits[row, axis] += 1
        return AttributeBoxes(lo, hi, splits, allotted)


class LocatedRecords(NamedTuple):
    """Distinct records. For each record, the object contains its box (region), its codes, and in `alike` the
    number of equal copies.
    """

    box: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, "attributes n"]
    alike: Int[np.ndarray, " n"]

    @classmethod
    def root(cls, records: Records) -> LocatedRecords:
        """Return all records, located in one box."""
        count = records.counts
        if count is None:
            count = np.ones(len(records), np.int64)
        box = np.zeros(len(records), np.int64)
        return cls(box, records.hierarchy.corners(records.keys), count)

    def within(self, boxes: Bool[np.ndarray, " boxes"]) -> LocatedRecords:
        """Return the records in the boxes that the mask `boxes` keeps. The kept boxes get new numbers,
        starting at 0.
        """
        stays = boxes[self.box]
        number = np.cumsum(boxes) - 1
        return LocatedRecords(number[self.box[stays]], self.codes[:, stays], self.alike[stays])

    def digits(
        self, boxes: AttributeBoxes, parts: Int[np.ndarray, "attributes boxes"]
    ) -> Int[np.ndarray, "attributes n"]:
        """Return, for each attribute and each record, the number of the record's part if its box is split by
        this attribute.
        """
        widths = (boxes.hi - boxes.lo).T // parts
        return (self.codes - boxes.lo.T[:, self.box]) // widths[:, self.box]

    def largest_parts(
        self, digits: Int[np.ndarray, "attributes n"], boxes: int
    ) -> Int[np.ndarray, "boxes attributes"]:
        """Return, for each box and each attribute, the number of records in the largest part if the box is
        split by this attribute.
        """
        largest = [self._largest_part(digit, boxes) for digit in digits]
        return np.stack(largest, axis=1)

    def _largest_part(
        self, digit: Int[np.ndarray, " n"], boxes: int
    ) -> Int[np.ndarray, " boxes"]:
        largest = np.zeros(boxes, np.int64)
        if not len(digit):
            return largest
        order = np.lexsort((digit, self.box))
        box = self.box[order]
        digit = digit[order]
        changes = (np.diff(box) != 0) | (np.diff(digit) != 0)
        first = np.append(0, np.flatnonzero(changes) + 1)
        np.maximum.at(largest, box[first], np.add.reduceat(self.alike[order], first))
        return largest

    def in_children(
        self,
        digits: Int[np.ndarray, "attributes n"],
        chosen: Int[np.ndarray, " boxes"],
        children: Int[np.ndarray, " boxes"],
    ) -> LocatedRecords:
        """Return the same records after each box was split by its chosen attribute. Each record then belongs
        to one part of its former box.
        """
        first = np.cumsum(children) - children
        digit = digits[chosen[self.box], np.arange(len(self.box))]
        return self._replace(box=first[self.box] + digit)

    def totals(self, boxes: int) -> Int[np.ndarray, " boxes"]:
        """Return the number of records in each box."""
        return np.bincount(self.box, self.alike, boxes).astype(np.int64)


# Direct synthesis

_PORTION = 2**22  # children that noise is put on at a time
_MAX_CHILDREN = 2**33  # and in all, at a level


class _Budgets(NamedTuple):
    """Three parts of ε. `total` pays for the noisy number of records, and is None if this number is public.
    `choices` contains the ε of the choices of attributes on each level, and is empty if there are none.
    `counts` contains the ε of the counts on each level.
    """

    total: float | None
    choices: list[float]
    counts: list[float]


class _Nodes(NamedTuple):
    """Nodes of one level of the tree. For each node, `start` and `stop` give the places of its true records,
    and `allotted` the number of its synthetic records.
    """

    keys: UInt64[np.ndarray, "words n"]
    start: Int[np.ndarray, " n"]
    stop: Int[np.ndarray, " n"]
    allotted: Int[np.ndarray, " n"]

    def where(self, rows: Bool[np.ndarray, " n"] | slice) -> _Nodes:
        """Return the nodes that the mask or slice `rows` selects."""
        return _Nodes(
            self.keys[:, rows], self.start[rows], self.stop[rows], self.allotted[rows]
        )

    @classmethod
    def joined(cls, portions: list[_Nodes]) -> _Nodes:
        """Return one object with the nodes of several portions (groups of nodes)."""
        return cls(*(np.concatenate(arrays, axis=-1) for arrays in zip(*portions, strict=True)))


@value
class DirectSynthesis(Mechanism):
    """Draw synthetic records, level by level down a tree.

    The nodes of the tree are regions of the domain. The root is the whole domain, and the children of a node
    divide its region into smaller regions. The mechanism starts with `records` synthetic records at the root.
    At each node, the mechanism measures noisy counts of the children. It distributes the synthetic records of
    the node among the children in agreement with these counts. The mechanism stops at level `depth`.

    With `split` = "exponential", the mechanism chooses for every node the attribute by which the node is split.
    The mechanism prefers attributes for which one of the resulting parts has many records. With `stop` =
    "count", the mechanism does not split a node that has fewer synthetic records than the scale of the noise.
    By default, it splits every node that has more than one synthetic record and is above level `depth`.

    Guarantee  The release is ε-DP for each unit. By default, if you give `records`, the noisy counts on each of
               the `depth` levels cost ε/depth. If you do not give `records`, ε also pays for a noisy number of
               records. With `split` = "exponential", ε also pays for the choices of attributes. If ε pays for
               this number or for choices, the noisy counts get a smaller part of ε.
    Assumes    One unit has no more records than the bound of the data allows. You choose `records` and
               `depth` without looking at the data.
    Source     "Synthetic Data via Differential Privacy" (adaptive2009), section 4, Figures 3, 4 and 13.
               Section 4.1 describes `split` and `stop`. The exponential mechanism is due to McSherry &
               Talwar, FOCS 2007.
    Differs    The noise is an integer, because the children of a node must have as many synthetic records
               together as the node. We added two return statements that are missing in the algorithm as
               printed. The paper adjusts counts in steps of one. We adjust all counts at once, which gives the
               same result. A child's noisy count may exceed the parent's count. With `split` = "exponential"
               and a public number of `records`, the choices of attributes cost ε/(2·depth) per level. If a node
               is split by an attribute, the score of the attribute is the number of records in the largest
               part. Additional records never lower this score. Therefore, a choice with probabilities
               proportional to exp(ε·score) costs ε instead of 2ε.
    Cost       Time is proportional to the number of children that are measured. These are all children of nodes
               that are above level `depth` and have more than one synthetic record. Empty children are
               included.
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    depth: int = parameter(
        low=1, high=128, integer=True, unit="levels", doc="number of levels of the tree"
    )
    records: int = parameter(
        None,
        1,
        2**28,
        integer=True,
        unit="records",
        doc="public number of synthetic records (by default a noisy number, which ε pays for)",
    )
    split: str = parameter(
        None, choices=(None, "exponential"), doc="rule that chooses attributes for splits"
    )
    stop: str = parameter(None, choices=(None, "count"), doc="rule for an early stop")
    takes = Records
    cite = "adaptive2009"
    title = "direct synthesis"
    audited = audited_at(2, depth=1)
    series = "direct synthesis"

    def budgets(self) -> _Budgets:
        """Return three parts of ε: `total`, `choices` and `counts`. `total` pays for a noisy number of records,
        and is None if you gave `records`. `choices` is a list with one ε per level of the tree, and pays for
        the choices of attributes. If the mechanism does not choose attributes, this list is empty. `counts` is
        a list with one ε per level, and pays for the noisy counts.
        """
        levels = self.depth + (self.records is None)
        totals: list[Any] = [Fraction(1, levels)] if self.records is None else []
        if self.split is None:
            choices = []
            counts = [Fraction(1, levels)] * self.depth
        else:
            choices = [Fraction(1, 2 * levels)] * self.depth
            counts = choices
        parts = split_epsilon(self.budget.epsilon, [*totals, *choices, *counts])
        return _Budgets(
            total=parts[0] if totals else None,
            choices=parts[len(totals) : len(totals) + len(choices)],
            counts=parts[-self.depth :],
        )

    def _least_refined(self, l1: float) -> float:
        """Return the smallest number of synthetic records with which a node is split."""
        return 2 if self.stop is None else max(2, l1 / self.budgets().counts[0])

    def decision_facts(self, tree: Hierarchy, l1: float) -> dict[str, str]:
        """Return a text for a widget. The text contains the ε of the noisy counts on one level, which is a
        public number.
        """
        return {"noise of a level": f"ε = {self.budgets()[2][0]:.3g}"}

    def __call__(self, records: Records, rng: np.random.Generator | None = None) -> Release:
        """Release the synthetic records."""
        bound = private_bound(records)
        l1 = bound.l1
        tree = records.hierarchy
        if self.split and not hasattr(tree, "axes"):
            why = "need several attributes, Attributes or a Quadtree"
            raise not_allowed(self, "split", why, f" over {type(tree).__name__}")
        refuse_depth_above(self, sum(map(len, tree.axes)) if self.split else tree.digits.depth)
        total = self.records
        paid: list[Any] = []
        if total is None:
            exact = np.array([records.total])
            noisy, receipt = noise.geometric(
                exact, l1=l1, epsilon=self.budgets().total, rng=rng
            )
            total = max(0, int(noisy[0]))
            paid.append(receipt)
        self._refuse_large(tree, total)
        synthesise = self._refine_attributes if self.split else self._refine_levels
        estimate, ledger = synthesise(records, total, l1, rng)
        return Release(estimate, (*paid, *ledger), self, bound)

    def _refuse_large(self, tree: Hierarchy, total: int) -> None:
        """Raise a ValueError if too many children would get noise. The check uses only public numbers."""
        radices = [*tree.digits.radices[: self.depth]]
        if self.split:
            radices = sorted(tree.digits.radices)[-self.depth :]
        nodes = 1
        for radix in radices:
            children = min(nodes, total // 2) * radix
            if children > _MAX_CHILDREN:
                raise ValueError(
                    f"{total} records need noise on up to {children:.3g} children per level, and at most "
                    f"{_MAX_CHILDREN} are possible: need fewer records, or less depth"
                )
            nodes *= radix

    def _refine_levels(
        self, records: Records, total: int, l1: float, rng: np.random.Generator | None
    ) -> tuple[Leaves, list[Receipt]]:
        """Split every node into all of its children in the hierarchy, level by level."""
        tree = records.hierarchy
        ends = records.ends()
        none = np.zeros(1, np.int64)
        nodes = _Nodes(tree.digits.root(), none, np.array([records.total]), np.array([total]))
        finished = []
        ledger = []
        for level, epsilon in enumerate(self.budgets().counts):
            children = tree.children(level, nodes.keys)
            single = children == 0  # a single value
            refined = ~single & (nodes.allotted >= self._least_refined(l1))
            finished.append((level, nodes.where(~single & ~refined)))
            finished.append((tree.digits.depth, nodes.where(single)))
            nodes = nodes.where(refined)
            children = children[refined]
            add_noise = noise.PortionedGeometric(l1=l1, epsilon=epsilon, rng=rng)
            nodes = _Nodes.joined(
                [
                    _allot_children(
                        records, level, ends, nodes.where(part), children[part], add_noise, rng
                    )
                    for part in _portions(children)
                ]
            )
            ledger.append(add_noise.receipt)
        finished.append((self.depth, nodes))
        levels = np.concatenate(
            [np.full(len(done.allotted), level) for level, done in finished]
        )
        leaves = _Nodes.joined([done for _, done in finished])
        order = argsort_keys(leaves.keys)
        order = order[leaves.allotted[order] > 0]
        keys = leaves.keys[:, order]
        return Leaves(tree, levels[order], keys, leaves.allotted[order]), ledger

    def _refine_attributes(
        self, records: Records, total: int, l1: float, rng: np.random.Generator | None
    ) -> tuple[Partition, list[Receipt]]:
        """Split every node by the attribute that the exponential mechanism chooses for this node, level by
        level.
        """
        tree = records.hierarchy
        budgets = self.budgets()
        depths = np.array([len(axis) for axis in tree.axes])
        boxes = AttributeBoxes.root(tree, total)
        located = LocatedRecords.root(records)
        finished = []
        ledger = []
        for choice_epsilon, count_epsilon in zip(budgets.choices, budgets.counts, strict=True):
            divisible = boxes.splits < depths
            refined = divisible.any(axis=1) & (boxes.allotted >= self._least_refined(l1))
            finished.append(boxes.where(~refined))
            boxes = boxes.where(refined)
            located = located.within(refined)
            parts = boxes.parts(tree)
            digits = located.digits(boxes, parts)
            chosen, receipt = noise.exponential_mechanism(
                located.largest_parts(digits, len(boxes.allotted)),
                sensitivity=l1,
                epsilon=choice_epsilon,
                monotone=True,
                available=divisible[refined],
                rng=rng,
            )
            ledger.append(receipt)
            children = parts[chosen, np.arange(len(chosen))]
            located = located.in_children(digits, chosen, children)
            exact = located.totals(int(children.sum()))
            noisy, receipt = noise.geometric(exact, l1=l1, epsilon=count_epsilon, rng=rng)
            ledger.append(receipt)
            turns = noise.random_words(len(children), rng=rng)
            allotted = centred(boxes.allotted, noisy, children, turns)
            boxes = boxes.cut(chosen, children, allotted).where(allotted > 0)
            located = located.within(allotted > 0)
        finished.append(boxes)
        lo, hi, _, allotted = (np.concatenate(arrays) for arrays in zip(*finished, strict=True))
        return Partition(tree, lo, hi, allotted), ledger

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It has three levels, and also measures the number of
        records.
        """
        return cls(budget, depth=3)


def _portions(children: Int[np.ndarray, " n"]) -> list[slice]:
    """Return slices of consecutive nodes, so small that the children of all nodes in a slice fit in memory.
    There is at least one slice.
    """
    whole = np.cumsum(children) // _PORTION
    cuts = np.flatnonzero(np.diff(whole)) + 1
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(children)], strict=True)]


def _allot_children(
    records: Records,
    level: int,
    ends: Int[np.ndarray, " n"] | None,
    nodes: _Nodes,
    children: Int[np.ndarray, " n"],
    add_noise: Callable[..., Any],
    rng: np.random.Generator | None,
) -> _Nodes:
    """Return the children of the nodes, without the children that get no synthetic record."""
    below = records.occupied_children(level, nodes.keys, nodes.start, nodes.stop, ends)
    parent, digit, start, stop = below
    first = np.cumsum(children) - children
    places = np.zeros((2, int(children.sum())), np.int64)  # of the records in each child
    places[:, first[parent] + digit] = start, stop
    start, stop = places
    noisy = add_noise(stop - start)
    turns = noise.random_words(len(children), rng=rng)
    allotted = centred(nodes.allotted, noisy, children, turns)
    rows = np.flatnonzero(allotted)
    above = np.searchsorted(first, rows, side="right") - 1
    keys = records.hierarchy.digits.child(level, nodes.keys[:, above], rows - first[above])
    return _Nodes(keys, start[rows], stop[rows], allotted[rows])
