"""Synthetic data via differential privacy (2009), Theorem 3: what the structure costs, exactly.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 3, Theorem 3.
Read    from the text: decisions of noise ε cost 2ε in all, at any depth, if t ≥ b + ln 2/ε.
Open    Nothing is drawn. For (ε, b, t) the worst case over all counts that fall by t or more at every
        split is a maximum over where an arithmetic progression starts, since r(x) = ln p(x+1)/p(x)
        never rises: for a record that is added. For one that is removed it is found over all counts at
        which a path may stop. Noise is Laplace's, as printed, and the whole-number noise that the
        mechanism draws. Thresholds: ln 2/ε; ln k/ε for k = 16 and 38 children, the paper's least for
        which empty nodes do not spawn for ever; three times ln 16/ε. Discounts: the theorem's, ⌈b +
        ln 2/ε⌉, and all below it. Beside it the basic histogram, ε a level, and PrivTree, whose ε is
        that of its whole tree.
Words   costs 2ε = the exact loss is at most 2ε at every ε and threshold, both ways and for both noises;
        whatever the depth = so it is for every number of splits on a path.
"""

from __future__ import annotations

from math import ceil, exp, log, log1p

import numpy as np
import pandas as pd

from workbench import claims
from workbench.claims import Claim, Finding, Printed, all_of, format_number
from workbench.hierarchy import Quadtree
from workbench.mechanisms import PrivTree
from workbench.mechanisms.improved_adaptive_histogram import certified_discount, structural_loss
from workbench.plots import Panel
from workbench.privacy import DP

TITLE = "The exact cost of the improved histogram's structure"
PAGE = "adaptive2009, section 3, Theorem 3"
NO_DATA = True  # every number is a formula's
COLUMNS = 2
EPSILONS = {
    "quick": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "paper": tuple(np.round(np.geomspace(0.01, 10, 25), 4).tolist()),
}
THRESHOLDS = {"k = 2": 2, "k = 16": 16, "k = 38": 38, "k = 16, b thrice": 16**3}
LAPLACE = "laplace"
WHOLE = "geometric"
AT = 0.1  # ε where the discount varies
FANOUTS = (2, 16, 38)
SPLITS = 20
CHILDREN = (2, 4, 8, 16, 32, 64)  # of PrivTree
LOSS = "StructuralLoss"
TREE_LOSS = "TreeLoss"
ADDED = "added"
REMOVED = "removed"
BASIC = "basic histogram"
IMPROVED = "improved histogram"

PAPER = {"2": Printed("2ε", 0, 2, value=2)}


def theorem_discount(epsilon: float, threshold: float) -> int:
    """The discount of Theorem 3, ⌈b + ln 2/ε⌉.

    >>> theorem_discount(0.1, 27.7)
    35
    """
    return ceil(threshold + log(2) / epsilon)


def rows(profile: str, store) -> pd.DataFrame:
    """Losses over the ε of a decision: by ε, by discount, by the number of splits; and PrivTree's."""
    losses = []
    for epsilon in EPSILONS[profile]:
        for name, k in THRESHOLDS.items():
            losses += _both_ways(epsilon, name, k)
    for k in FANOUTS:
        losses += _discounts(k)
    losses += _depths()
    frame = pd.DataFrame(losses).assign(metric=LOSS)
    both = pd.concat([frame, privtree_losses()], ignore_index=True)
    return both.assign(seed=0, dataset="no data")


def _both_ways(epsilon: float, name: str, k: int) -> list[dict]:
    """A record added and one removed, at b = ln k/ε and the theorem's discount, for both noises."""
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


def _discounts(k: int) -> list[dict]:
    """Every discount up to a little over the theorem's, at ε = 0.1 and a whole threshold."""
    b = ceil(log(k) / AT)
    columns = dict(
        panel="t", series=f"k = {k}", epsilon=AT, threshold=b, noise=LAPLACE, way=ADDED
    )
    return [
        columns | dict(discount=t, value=structural_loss(AT, b, t, LAPLACE) / AT)
        for t in range(2, theorem_discount(AT, b) + 3)
    ]


def _depths() -> list[dict]:
    """A path of so many splits: the improved histogram at ε = 0.1 and k = 16, and the basic one."""
    b = ceil(log(16) / AT)
    t = theorem_discount(AT, b)
    shared = dict(epsilon=AT, threshold=b, noise=LAPLACE, way=ADDED)
    losses = []
    for splits, worst in enumerate(worst_by_splits(AT, b, t, SPLITS), start=1):
        columns = dict(panel="depth", splits=splits) | shared
        losses.append(columns | dict(series=IMPROVED, discount=t, value=worst / AT))
        losses.append(columns | dict(series=BASIC, value=float(splits)))
    return losses


def log_passing(x: np.ndarray, epsilon: float, threshold: float, law: str) -> np.ndarray:
    """ln p(x), p(x) = Pr[x + noise ≥ b]."""
    over = np.asarray(x, float) - threshold
    front, shift = _tail(epsilon, law)
    below = epsilon * np.minimum(over, 0) - front
    above = np.log1p(-np.exp(-epsilon * (np.maximum(over, 0) + shift) - front))
    return np.where(over < 0, below, above)


def _tail(epsilon: float, law: str) -> tuple[float, int]:
    """−ln Pr[noise ≥ 0], and the least value above 0 that counts as above."""
    return (log(2), 0) if law == LAPLACE else (log1p(exp(-epsilon)), 1)


def worst_by_splits(epsilon: float, threshold: float, t: int, splits: int) -> np.ndarray:
    """The largest Σ r(x_i) of 1 … `splits` splits whose counts fall by t at least (Laplace noise)."""
    start = np.arange(t)[:, None] + t * np.arange(splits)
    ratio = log_passing(start + 1, epsilon, threshold, LAPLACE)
    ratio = ratio - log_passing(start, epsilon, threshold, LAPLACE)
    return ratio.cumsum(axis=1).max(axis=0)


def removed_loss(epsilon: float, threshold: float, law: str) -> float:
    """The worst case where a record is removed: ln (1 − p(x))/(1 − p(x+1)) at the last decision.

    Earlier decisions speak against it, so that the worst path stops at once: the largest over all x.
    """
    x = np.arange(ceil(threshold + 5 / epsilon) + 2, dtype=float)
    over = x - threshold
    front, shift = _tail(epsilon, law)
    tail = -epsilon * (over + shift) - front  # ln(1 − p) from the threshold on
    with np.errstate(divide="ignore"):
        below = np.log1p(-np.exp(np.minimum(log_passing(x, epsilon, threshold, law), 0)))
    stopping = np.where(over >= 0, tail, below)
    return float((stopping[:-1] - stopping[1:]).max())


def privtree_losses() -> pd.DataFrame:
    """PrivTree's exact loss over the ε of its tree: scores fall by δ a level, down to a common floor.

    Above the floor θ − δ they are counts with threshold δ + 1 and discount δ.
    """
    losses = []
    for k in CHILDREN:
        for epsilon in (0.1, 1.0):
            mechanism = PrivTree(DP(2 * epsilon))  # half of it for the tree
            scale, fall = mechanism.scale(Quadtree(k.bit_length() - 1, 1), 1)
            columns = dict(panel="PrivTree", series=f"PrivTree, ε = {epsilon:g}", fanout=k)
            columns |= dict(epsilon=epsilon)
            columns |= dict(value=structural_loss(1 / scale, fall + 1, fall, WHOLE) / epsilon)
            losses.append(columns | dict(discount=fall, noise=WHOLE))
    return pd.DataFrame(losses).assign(metric=TREE_LOSS)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """By ε, by discount, by depth, and PrivTree."""
    bound = ("2ε, the theorem", lambda x: 2 + 0 * x)
    first = {"panel": "ε", "noise": LAPLACE, "way": ADDED}
    depth = "k = 16, t of Theorem 3, ε = 0.1"
    return [
        Panel("b = ln k/ε, t of Theorem 3", first, "epsilon", log="x"),
        Panel("b = ln k/ε, any t, ε = 0.1", {"panel": "t"}, "discount", log="y", theory=bound),
        Panel(depth, {"panel": "depth"}, "splits", log="y", theory=bound),
        Panel("PrivTree", {"panel": "PrivTree"}, "fanout", log="x"),
    ]


def discounts() -> pd.DataFrame:
    """The smallest discount whose exact loss is at most 2ε, beside the theorem's; ε = 0.1."""
    lines = []
    for k in FANOUTS:
        exact = log(k) / AT
        for b, label in ((exact, "ln k/ε"), (ceil(exact), "⌈ln k/ε⌉")):
            line = {
                "k": k,
                "b": label,
                "records": f"{b:.4g}",
                "theorem": theorem_discount(AT, b),
            }
            line["certified"] = certified_discount(AT, b)
            whole = certified_discount(AT, b, WHOLE) if b == ceil(b) else "–"
            lines.append(line | {"certified, whole noise": whole})
    return pd.DataFrame(lines).set_index(["k", "b"])


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The printed cost, beside the exact one, by noise and way."""
    lines = []
    losses = rows[rows.panel == "ε"]
    for (noise, way), loss in losses.groupby(["noise", "way"], sort=False).value:
        measured = f"{format_number(loss.min())} … {format_number(loss.max())} ε"
        finding = Finding(bool(loss.max() <= 2), measured)
        lines.append((f"{noise} noise, a record {way}", PAPER["2"], finding))
    return claims.compare_with_paper(*lines)


def _costs(rows) -> Finding:
    parts = {}
    losses = rows[rows.panel == "ε"]
    for (noise, way), loss in losses.groupby(["noise", "way"], sort=False).value:
        measured = f"{format_number(loss.min())}–{format_number(loss.max())} ε"
        parts[f"{noise}, {way}"] = Finding(bool(loss.max() <= 2 + 1e-9), measured)
    depths = rows[(rows.panel == "depth") & (rows.series == IMPROVED)]
    loss = depths.sort_values("splits").value
    measured = f"{format_number(loss.iloc[0])} ε after one split, "
    measured += f"{format_number(loss.iloc[-1])} ε after {len(loss)}"
    parts["whatever the depth"] = Finding(bool((loss <= 2 + 1e-9).all()), measured)
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-th3",
        "The structure costs 2ε, whatever its depth, when t ≥ b + ln 2/ε.",
        _costs,
    ),
)
