"""Hay et al. 2010, Theorem 4: consistent trees are unbiased, and have the least variance there is.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Theorem 4 and its proof in Appendix D; section 4.2.
Read    the factor is restored from the proof: error(H̃)/error(H̄) ≥ (2(ℓ − 1)(k − 1) − k)/3 for the
        range of all cells but the first and the last.
Open    Trees of k children and ℓ levels, over made-up counts; no zeroing. "No linear unbiased
        estimator" cannot be tried out; beside the exact variance of H̄ stand those of H̃, of the sum
        of the noisy leaves, of the best mix of the two, and of random unbiased ones: H̄'s weights and
        a random vector that sums to nothing over every cell. All ranges of small trees.
        2000 samples a tree (paper), 300 (quick), in batches of equal size.
Words   unbiased = the mean error of H̄ on the range lies within 4 of its standard errors of 0, for
        every tree; lower variance = that of any rival on any range is below 0.999999 of H̄'s; the factor
        holds if the exact ratio is at least it, and the measured one's interval does not exclude it
        (95 % for all trees together).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from experiments.hay2010.data import PoissonCounts, Samples
from experiments.hay2010.trees import (
    RATIO,
    MiddleErrors,
    error_ratios,
    exact_ratio,
    factor,
    least_variances,
)
from workbench import DP, Sweep, claims
from workbench.claims import Finding, Printed, format_number, mean_curve
from workbench.claims.old import Claim, all_of
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import number, seeds, whole, wholes
from workbench.mechanisms import HierarchicalHistogram
from workbench.plots import Panel
from workbench.value import value

SMALL = ((2, 4), (2, 5), (3, 3), (4, 3))  # k, ℓ of the trees with rivals


HEIGHT_16 = "9.33 for a binary tree of height 16"
PAPER = {"16": Printed(HEIGHT_16, 9.333, 9.334, at=16, value=factor(2, 16))}


def _theorem(rows) -> Finding:
    others = rows[rows.panel == "rivals"].value
    least = f"{len(others)} of them, at least {others.min():.6g}×"
    return all_of(
        {
            "unbiased": _unbiased(rows),
            "no rival has less variance": Finding(bool((others >= 0.999999).all()), least),
            "the factor": _factor(rows),
        }
    )


def _unbiased(rows) -> Finding:
    groups = rows[rows.metric == "bias"].groupby(["k", "levels"]).value
    errors = (groups.mean() / (groups.std() / np.sqrt(groups.count()))).abs()
    return Finding(not (errors >= 4).any(), f"at most {errors.max():.2g} standard errors")


def _factor(rows) -> Finding:
    ratios = rows[rows.metric == RATIO]
    exact = ratios[ratios.series == "exact"].set_index(["k", "levels"]).value
    bound = pd.Series({tree: factor(*tree) for tree in exact.index})
    measured = ratios[ratios.series == "measured"]
    level = 1 - 0.05 / len(exact)
    ours = claims.confidence_intervals(measured, ["k", "levels"], level)
    measured = f"exact {_span(exact / bound)} the bound, measured {_span(ours['mean'] / bound)}"
    holds = (exact >= bound).all() and (ours.high >= bound).all()
    return Finding(bool(holds), measured)


def _span(ratio: pd.Series) -> str:
    return f"{ratio.min():.3g}–{ratio.max():.3g}×"


CLAIMS = (
    Claim(
        "h-th4",
        "H̄ is unbiased; no linear unbiased estimator from the same counts has lower variance; on all "
        "cells but the ends its variance is lower than that of H̃ by (2(ℓ − 1)(k − 1) − k)/3 or more.",
        _theorem,
    ),
)


@value
class Thm4(Figure):
    """The ratio of the two errors, measured and exact, over the bound, a panel a k."""

    title = "The variance of consistent trees against the bound"
    page = "Hay et al., PVLDB 2010, section 4.2, Theorem 4"
    quick = {"samples": 30, "seeds": 10}
    claims = CLAIMS
    columns = 3

    epsilon: float = number(1.0, "privacy budget ε", 1e-6, 1000, kind=UNPRINTED)
    mean: float = number(3.0, "of the made-up counts", 0, 1e9, unit="counts", kind=UNPRINTED)
    levels_2: tuple[int, ...] = wholes(
        (3, 4, 6, 8, 11, 14, 16), "levels of trees of 2 children", 3, 20, kind=UNPRINTED
    )
    levels_4: tuple[int, ...] = wholes(
        (3, 4, 5, 6, 7, 8), "levels of trees of 4 children", 3, 10, kind=UNPRINTED
    )
    levels_8: tuple[int, ...] = wholes(
        (3, 4, 5), "levels of trees of 8 children", 3, 7, kind=UNPRINTED
    )
    random: int = whole(200, "random rivals of each small tree", kind=EFFORT)
    samples: int = whole(100, "releases of a batch", kind=EFFORT)
    seeds: int = seeds(20, "batches")

    def trees(self) -> dict[int, tuple[int, ...]]:
        """Levels, by k."""
        return {2: self.levels_2, 4: self.levels_4, 8: self.levels_8}

    def sweeps(self) -> dict[int, Sweep]:
        """A panel a k."""
        sweeps = {}
        for k, heights in self.trees().items():
            tables = [PoissonCounts(k ** (levels - 1), self.mean) for levels in heights]
            noisy = HierarchicalHistogram(DP(self.epsilon), k, consistent=False)
            samples = Samples(noisy, self.samples)
            sweeps[k] = Sweep(tables, [samples], [MiddleErrors()], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Ratios and mean errors of batches; exact ratios; and exact variances of rivals."""
        rows = super().rows(store)
        rows = rows.assign(k=rows.panel)
        bias = rows.assign(series="H̄", metric="bias", value=rows.bias)
        rng = np.random.default_rng(4)
        rivals = pd.concat([least_variances(*tree, self.random, rng) for tree in SMALL])
        rivals = rivals.assign(panel="rivals", metric="least variance over H̄'s")
        exact = [
            dict(panel=k, k=k, levels=levels, series="exact", value=exact_ratio(k, levels))
            for k, heights in self.trees().items()
            for levels in heights
        ]
        made = pd.concat([pd.DataFrame(exact).assign(metric=RATIO), rivals])
        made = made.assign(seed=0, truth_public=True, epsilon=self.epsilon)
        frames = [error_ratios(rows), bias, made]
        return pd.concat(frames, ignore_index=True).drop(columns=["noisy", "bias"])

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a k, with the bound."""
        return [
            Panel(
                f"k = {k}",
                {"panel": k, "metric": RATIO},
                "levels",
                log="",
                theory=("bound of Theorem 4", partial(factor, k)),
                printed=PAPER["16"] if k == 2 else (),
            )
            for k in self.trees()
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Bound, exact and measured ratio: a line a tree."""
        lines = []
        for (k, levels), values in rows[rows.metric == RATIO].groupby(["k", "levels"]):
            ours = mean_curve(values, "levels", series="measured").iloc[0]
            (exact,) = values[values.series == "exact"].value
            line = {"k": int(k), "ℓ": levels, "bound": format_number(factor(k, levels))}
            line["exact"] = format_number(exact)
            line["measured"] = f"{ours['mean']:.3g} ({ours.low:.3g} … {ours.high:.3g})"
            lines.append(line)
        return pd.DataFrame(lines).set_index(["k", "ℓ"])
