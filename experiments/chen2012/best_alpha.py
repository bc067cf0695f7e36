"""Chen et al. 2012, Figure 2: what the best α is, what a prior gains there, and whether it is one α.

A best α is that of the least error in the mean over runs, of logarithms. It is not known where it may be
among larger ones whose fits did not converge.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.chen2012.data import PAST, RECIPES, WITH, WITHOUT
from experiments.chen2012.shared import ENTROPY, KERNEL, TOLERANCE, unless_far
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    Intervals,
    all_of,
    check_between,
    check_lower,
    exact,
    paired_ratios,
)


def finite(curve) -> pd.DataFrame:
    """Without the unbiased answers."""
    return curve[np.isfinite(curve.alpha)]


def best_alpha(curve) -> float | None:
    """The α of least error; None where one that did not converge may be better."""
    grid = finite(curve)
    known = grid[~(grid.groupby("alpha").lacks.transform("max") > TOLERANCE)]
    if known.empty:
        return None
    best = np.log(known.value).groupby(known.alpha).mean().idxmin()
    return None if best == known.alpha.max() < grid.alpha.max() else best


def errors_at(curve, alpha: float) -> pd.Series:
    """By seed."""
    return curve[curve.alpha == alpha].set_index("seed").value


def gain_at_best(curves) -> pd.Series | None:
    """Error without prior over error with it, each at its best α, by seed."""
    errors = {}
    for prior, curve in curves.groupby("prior"):
        alpha = best_alpha(curve)
        if alpha is None:
            return None
        errors[prior] = errors_at(curve, alpha)
    return errors[WITHOUT] / errors[WITH]


def against(ours: pd.Series, other: pd.Series | float) -> Intervals:
    """Numbers by seed over others."""
    frames = []
    for name, values in {"ours": ours, "other": other + 0 * ours}.items():
        frames.append(values.rename("value").reset_index().assign(series=name, point=""))
    return paired_ratios(pd.concat(frames), "ours", "other", "point")


def unknown(curves) -> Finding:
    """Of curves whose best α is not known."""
    return unless_far(curves.lacks.max(), Finding(None, "the best α is not known"))


def check_boost(curves, level: float) -> Finding:
    """Whether the prior lowers the least error of an approach."""
    gain = gain_at_best(curves)
    return unknown(curves) if gain is None else check_lower(against(1 / gain, 1.0), level)


def check_especially_kernel(curves, level: float) -> Finding:
    """Whether it does so more for kernel PCA than for maximum entropy."""
    gains = {name: gain_at_best(own) for name, own in curves.groupby("approach")}
    if any(gain is None for gain in gains.values()):
        return unknown(curves)
    return check_lower(against(gains[ENTROPY], gains[KERNEL]), level)


def check_vanishes(curves, level: float) -> Finding:
    """Whether at the largest α the prior changes errors by 1.25× at most, and less than at the best."""
    largest = finite(curves).alpha.max()
    there = curves[curves.alpha == largest]
    errors = {prior: errors_at(own, largest) for prior, own in there.groupby("prior")}
    gain = errors[WITHOUT] / errors[WITH]
    best = gain_at_best(curves)
    if best is None or there.lacks.max() > TOLERANCE:
        return unknown(curves)
    change = np.exp(np.abs(np.log(gain)))
    at_best = np.exp(np.abs(np.log(best)))
    parts = {
        "gone": partial(check_between, against(gain, 1.0), low=1 / ALIKE, high=ALIKE),
        "less than at the best α": partial(check_lower, against(change, at_best)),
    }
    return all_of(parts, level)


def cost(past, new) -> tuple[Intervals | None, float]:
    """What the best α of past queries costs new ones, or the other way round: the more of the two."""
    alphas = [best_alpha(past), best_alpha(new)]
    if None in alphas:
        return None, max(past.lacks.max(), new.lacks.max())
    costs = [
        against(errors_at(past, alphas[1]), errors_at(past, alphas[0])),
        against(errors_at(new, alphas[0]), errors_at(new, alphas[1])),
    ]
    return max(costs, key=lambda each: float(each.at(0.5).estimate.iloc[0])), np.nan


def check_same_alpha(rows, level: float) -> Finding:
    """Whether in most cases one α is good for past queries and for new ones.

    Where both best α are the same the cost is 1, whatever the runs.
    """
    found = {}
    lacks = np.nan
    for name, own in rows.groupby(["approach", "prior", "bought"], sort=False):
        past = own[own.asked == PAST]
        for asked in RECIPES:
            found[(*name, asked)], far = cost(past, own[own.asked == asked])
            lacks = np.fmax(lacks, far)

    def at(level: float) -> pd.DataFrame:
        unknown = pd.DataFrame({"estimate": [1.0], "low": 0.0, "high": np.inf, "runs": 1})
        points = [
            unknown if each is None else exact_if_one(each).at(level) for each in found.values()
        ]
        return pd.concat(points, keys=found, names=["approach", "prior", "bought", "asked"])

    found_often = check_between(Intervals(at), level, high=ALIKE, share=OFTEN, words="the same")
    return found_often if found_often.holds is not None else unless_far(lacks, found_often)


def exact_if_one(costs: Intervals) -> Intervals:
    """A cost that is 1 in all runs, as both α are the same, has no interval."""
    return exact(costs.at(0.5).estimate) if (costs.at(0.5).estimate == 1).all() else costs
