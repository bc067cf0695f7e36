"""Theorem 3 of "Synthetic Data via Differential Privacy" (2009): the exact privacy cost of the structure of
an improved adaptive histogram.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 3, Theorem 3. A node is split if its
        noisy count is above a threshold b. Each child gets a count that is lower by at least t, the discount.
Read    We take from the text: if each decision has noise for ε and t ≥ b + ln 2/ε, all decisions together
        cost at most 2ε, at any depth.
Open    Nothing is drawn at random. For given ε, b and t, we compute the worst case over all counts that fall
        by at least t at every split. If a record is added, it is a maximum over the starts of an arithmetic
        progression, because r(x) = ln p(x+1)/p(x) never increases. Here p(x) is the probability that a node
        with count x is split. If a record is removed, it is a maximum over all counts at which a path may
        stop. The noise is Laplace noise, as printed, or the integer noise that the mechanism draws. The
        thresholds are ln 2/ε, ln k/ε for k = 16 and 38 children, and three times ln 16/ε. The paper says that
        with a threshold below ln k/ε, empty nodes may split without end. The discounts are ⌈b + ln 2/ε⌉ (that
        of the theorem), and all smaller ones. For comparison, we compute the cost of the basic histogram,
        which is ε per level, and that of PrivTree, whose ε is that of its whole tree.
"""

from __future__ import annotations

from math import ceil, exp, log, log1p
from typing import Any

import numpy as np

from experiments._fields import effort_number, unprinted, unprinted_number
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import number
from workbench.figures.plots import Panel
from workbench.mechanisms import PrivTree
from workbench.mechanisms.adaptive import certified_discount, structural_loss
from workbench.privacy import DP
from workbench.spaces import Quadtree
from workbench.trials.claims import Finding, check_between, exact
from workbench.value import value

LAPLACE = "laplace"
WHOLE = "geometric"
LOSS = "StructuralLoss"
TREE_LOSS = "TreeLoss"
ADDED = "added"
REMOVED = "removed"
BASIC = "basic histogram"
IMPROVED = "improved histogram"
PATHS = "paths"  # of so many splits, at every ε and threshold
TREE_DIMS = range(1, 7)  # of PrivTree's tree, of 2^dims children
TREE_EPSILONS = (0.1, 1.0)
ROUNDING = 1e-9


# What decisions to split cost at most, in closed form (adaptive2009, Theorem 3).


def theorem_discount(epsilon: float, threshold: float) -> int:
    """Return the discount ⌈b + ln 2/ε⌉ of Theorem 3 of the 2009 paper, for a threshold b.

    >>> theorem_discount(0.1, 27.7)
    35
    """
    return ceil(threshold + log(2) / epsilon)


def log_above(over: np.ndarray, epsilon: float, law: str) -> np.ndarray:
    """Return ln Pr[over + noise ≥ 0], for Laplace or geometric noise."""
    front, shift = (log(2), 0) if law == LAPLACE else (log1p(exp(-epsilon)), 1)
    below = epsilon * np.minimum(over, 0) - front
    above = np.log1p(-np.exp(-epsilon * (np.maximum(over, 0) + shift) - front))
    return np.where(over < 0, below, above)


def worst_by_splits(epsilon: float, threshold: float, t: int, splits: int) -> np.ndarray:
    """Return the largest privacy loss Σ r(x_i) on a path with 1 … `splits` splits, if counts fall by at least
    t at each split (Laplace noise). The function r is defined at the top of this module.
    """
    start = np.arange(t)[:, None] + t * np.arange(splits)
    one_more = log_above(start + 1 - threshold, epsilon, LAPLACE)
    ratio = one_more - log_above(start - threshold, epsilon, LAPLACE)
    return ratio.cumsum(axis=1).max(axis=0)


def removed_loss(epsilon: float, threshold: float, law: str) -> float:
    """Return the worst privacy loss if a record is removed: the largest ln (1 − p(x))/(1 − p(x+1)) of the
    last decision, over all counts x.

    Earlier decisions have a loss in the other direction, so the worst path stops at once.
    """
    over = np.arange(ceil(threshold + 5 / epsilon) + 2) - threshold
    stopping = log_above(-over - (law == WHOLE), epsilon, law)
    return float((stopping[:-1] - stopping[1:]).max())


def check_cost(rows, level, panel: str, by: list[str]) -> Finding:
    """Check whether no privacy loss in a panel is more than 2ε, where ε is that of one decision to split a
    node.
    """
    losses = rows[(rows.panel == panel) & (rows.noise == LAPLACE) & (rows.series != BASIC)]
    numbers = exact(losses.set_index(by).value, ratios=False)
    return check_between(numbers, level, high=2 + ROUNDING, words="at most 2ε", unit=" ε")


def _both_ways(epsilon: float, name: str, k: int) -> list[dict]:
    """Return the privacy losses if a record is added and if one is removed, for both kinds of noise. The
    threshold is b = ln k/ε, and the discount is that of Theorem 3 of the 2009 paper.
    """
    losses = []
    for law in (LAPLACE, WHOLE):
        b = log(k) / epsilon if law == LAPLACE else ceil(log(k) / epsilon)
        t = theorem_discount(epsilon, b)
        added = structural_loss(epsilon, b, t, law) / epsilon
        removed = removed_loss(epsilon, b, law) / epsilon
        columns = dict(
            panel="ε", series=name, epsilon=epsilon, threshold=b, discount=t, noise=law
        )
        losses.append(columns | dict(value=added, way=ADDED))
        losses.append(columns | dict(value=removed, way=REMOVED))
    return losses


@value
class Thm3(Figure):
    """Exact privacy losses of a histogram's structure, in units of the ε of one decision to split a node.
    They are shown by ε, by discount and by the number of splits, and for PrivTree.
    """

    title = "The exact cost of the improved histogram's structure"
    headline = "The structure of the improved histogram costs at most 2ε, however deep it grows"
    rests_on = ("a-th3.1", "a-th3.2")
    page = "adaptive2009, section 3, Theorem 3"
    quick = {"epsilons": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)}
    no_data = True  # every number is a formula's

    epsilons: tuple[float, ...] = effort_number(
        tuple(np.round(np.geomspace(0.01, 10, 25), 4).tolist()), "ε of a decision", 1e-3, 100
    )
    fanouts: tuple[int, ...] = unprinted((2, 16, 38), "children k", 2, 1000)
    epsilon: float = unprinted_number(0.1, "ε where discount and depth vary", 1e-3, 100)
    fanout: int = unprinted(16, "children k where the depth varies or b = 3 ln k/ε", 2, 1000)
    splits: int = unprinted(20, "largest length of a path", 1, 1000)

    def rows(self, store=None) -> pd.DataFrame:
        """Return all privacy losses, which are computed by formulas."""
        thresholds = {f"k = {k}": k for k in self.fanouts}
        thresholds[f"k = {self.fanout}, b thrice"] = self.fanout**3
        losses = []
        for epsilon in self.epsilons:
            for name, k in thresholds.items():
                losses += _both_ways(epsilon, name, k)
                losses += self._paths(epsilon, name, k)
        for k in self.fanouts:
            losses += self._by_discount(k)
        losses += self._by_splits()
        frame = pd.DataFrame(losses).assign(metric=LOSS)
        both = pd.concat([frame, self.privtree_losses()], ignore_index=True)
        return both.assign(seed=0, dataset="no data")

    def _paths(self, epsilon: float, name: str, k: int) -> list[dict]:
        """Return the worst privacy loss of all paths with a given number of splits, and of paths with any
        number of splits.
        """
        b = log(k) / epsilon
        t = theorem_discount(epsilon, b)
        worst = worst_by_splits(epsilon, b, t, self.splits).tolist()
        worst.append(structural_loss(epsilon, b, t, LAPLACE))
        columns = dict(panel=PATHS, series=name, epsilon=epsilon, threshold=b, discount=t)
        columns |= dict(noise=LAPLACE, way=ADDED)
        ends = [*range(1, self.splits + 1), np.inf]
        pairs = zip(ends, worst, strict=True)
        return [columns | dict(splits=n, value=loss / epsilon) for n, loss in pairs]

    def _by_discount(self, k: int) -> list[dict]:
        """Return the privacy loss for every discount up to a little above that of the theorem, at an integer
        threshold.
        """
        epsilon = self.epsilon
        b = ceil(log(k) / epsilon)
        columns = dict(
            panel="t", series=f"k = {k}", epsilon=epsilon, threshold=b, noise=LAPLACE, way=ADDED
        )
        return [
            columns | dict(discount=t, value=structural_loss(epsilon, b, t, LAPLACE) / epsilon)
            for t in range(2, theorem_discount(epsilon, b) + 3)
        ]

    def _by_splits(self) -> list[dict]:
        """Return the privacy loss by the number of splits on a path, for the improved and the basic
        histogram.
        """
        epsilon = self.epsilon
        b = ceil(log(self.fanout) / epsilon)
        t = theorem_discount(epsilon, b)
        shared = dict(epsilon=epsilon, threshold=b, noise=LAPLACE, way=ADDED)
        worst = worst_by_splits(epsilon, b, t, self.splits) / epsilon
        losses = []
        for splits, loss in enumerate(worst, start=1):
            columns = dict(panel="depth", splits=splits) | shared
            losses.append(columns | dict(series=IMPROVED, discount=t, value=loss))
            losses.append(columns | dict(series=BASIC, value=float(splits)))
        return losses

    def privtree_losses(self) -> pd.DataFrame:
        """Return PrivTree's exact privacy loss in units of the ε of its tree. Its scores fall by δ per level,
        down to a smallest value θ − δ.

        Above this value, the scores are counts with threshold δ + 1 and discount δ.
        """
        losses = []
        for dims in TREE_DIMS:
            tree = Quadtree(dims, 1)
            for epsilon in TREE_EPSILONS:
                mechanism = PrivTree(DP(2 * epsilon))  # half of it for the tree
                scale, fall = mechanism.scale(tree, 1)
                loss = structural_loss(1 / scale, fall + 1, fall, WHOLE) / epsilon
                columns = dict(
                    panel="PrivTree", series=f"PrivTree, ε = {epsilon:g}", fanout=2**dims
                )
                columns |= dict(epsilon=epsilon, value=loss, discount=fall, noise=WHOLE)
                losses.append(columns)
        return pd.DataFrame(losses).assign(metric=TREE_LOSS)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: losses by depth, by ε, by discount, and those of PrivTree."""
        bound = ("2ε, the theorem", lambda x: 2 + 0 * x)
        first = {"panel": "ε", "noise": LAPLACE, "way": ADDED}
        discount = f"b = ln k/ε, any t, ε = {self.epsilon:g}"
        depth = f"k = {self.fanout}, t of Theorem 3, ε = {self.epsilon:g}"
        costs: dict[str, Any] = dict(log="x", theory=bound, fit_theory=True)
        return [
            Panel(depth, {"panel": "depth"}, "splits", log="y", theory=bound),
            Panel("b = ln k/ε, t of Theorem 3", first, "epsilon", **costs),
            Panel(discount, {"panel": "t"}, "discount", log="y", theory=bound),
            Panel("PrivTree", {"panel": "PrivTree"}, "fanout", log="x"),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the losses to draw, with the number of children in the names of the improved histogram's
        curves.
        """
        own = rows.series.str.startswith("k = ")
        named = rows.series.mask(own, f"{IMPROVED}, " + rows.series)
        depth = rows.series == IMPROVED
        return rows.assign(series=named.mask(depth, f"{IMPROVED}, k = {self.fanout}"))

    def discounts(self) -> pd.DataFrame:
        """Return a table with the smallest discount whose exact loss is at most 2ε, and with the discount of
        the theorem.
        """
        lines = []
        for k in self.fanouts:
            exact = log(k) / self.epsilon
            for b, label in ((exact, "ln k/ε"), (ceil(exact), "⌈ln k/ε⌉")):
                line = {"k": k, "b": label, "records": number(b, 4)}
                line["theorem"] = theorem_discount(self.epsilon, b)
                line["certified"] = certified_discount(self.epsilon, b)
                in_whole = certified_discount(self.epsilon, b, WHOLE) if b == ceil(b) else "–"
                lines.append(line | {"certified, whole noise": in_whole})
        return pd.DataFrame(lines).set_index(["k", "b"])
