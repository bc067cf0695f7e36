"""Synthetic data via differential privacy (2009), Figure 5: earth mover's distance by depth.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): sections 4, 5.1 and Figure 5.
Read    from the text; the plot is not in our copy, and the text prints no number.
Open    The paper has some 10⁸ commuters of the whole country, as blocks' centroids in a unit cube: a
        published release, which is itself synthetic and is taken for the truth. Here it is Rhode Island
        in 2019, of the same publisher, within the box of all its blocks; and a twin of the country. ε
        is the whole budget, where the paper's may be that of one noisy count (methods.md 7.1).
        The depth of direct synthesis is one at which a cell's side is 60–100 m in Rhode Island and
        340–800 m in the country, about a block's; finer cells would tell centroids apart, and nothing
        else. Sums go as deep. It is given the number of records, which the publisher tells.
        Threshold and discount of the improved histogram are not printed: b = k/(ε/2), so that a node of
        k = 16 children is split if its records outnumber what the noise on the children's counts comes
        to; t as Theorem 3 asks. PrivTree, of later years, has its authors' threshold; it is not in the
        paper, and not judged.
        Resampling draws as many records from the source, with replacement. The dashes are its
        expectation, in closed form.
        The paper's second and third census release are not public. A stand-in: p ~ Dirichlet(counts),
        then as many records from p, the census's way of synthesis without the prior that makes it
        private. Its variance is twice the count, what two draws from one population differ by.
Words   can outperform = at some ε, on every dataset, the sum over all levels is lower, intervals apart.
        Smoothly = of two ε's, a tenfold apart, the larger has the lower sum down to three quarters of
        the levels, intervals apart, but by no more than 10×. A node's error is of the order of the
        noise's scale, depth/ε = at most 3× it, on average over all nodes of a level that hold at least
        as many records, at every level where there are 10 such nodes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from experiments.adaptive2009._commutes import Commutes
from experiments.adaptive2009._levels import (
    DISTANCE,
    DistanceByLevel,
    ExpectedResampling,
    NodeError,
)
from experiments.adaptive2009._techniques import (
    DIRECT,
    IMPROVED,
    RESAMPLE,
    SECOND,
    TREE,
    Resample,
    SecondRelease,
)
from workbench import Sweep, claims
from workbench.claims import MUCH, ORDERS, Finding, decide, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_lower
from workbench.figures import Figure
from workbench.plots import Panel
from workbench.value import value

EPSILONS = Commutes.epsilons
ORDER = [DIRECT, IMPROVED, TREE, RESAMPLE, SECOND]
NODE = NodeError.__name__
THEORY = ExpectedResampling.__name__


def _distance(rows, panel: str, series: str, epsilon: float, metric=DISTANCE):
    return mean_curve(
        rows, "down_to", panel=panel, series=series, epsilon=epsilon, metric=metric
    )


def _can_outperform(rows, other: str) -> Finding:
    """Whether there is an ε at which direct synthesis is ahead at the last level, on every dataset."""
    parts = {}
    for name in rows.panel.unique():
        outcomes = {}
        for epsilon in EPSILONS:
            ours = _distance(rows, name, DIRECT, epsilon)
            theirs = _distance(rows, name, other, epsilon)
            below = ours.index[ours["mean"] < theirs["mean"]]
            reach = f"lower down to level {below.max():.0f}" if len(below) else "lower nowhere"
            ratio = (ours["mean"] / theirs["mean"]).iloc[-1]
            measured = f"{format_number(ratio)}× at ε = {epsilon:g}, {reach}"
            outcomes[measured] = check_lower(ours.iloc[-1:], theirs.iloc[-1:]).holds
        holds = decide(True in outcomes.values(), None not in outcomes.values())
        parts[name] = Finding(holds, ", ".join(outcomes))
    return all_of(parts)


def _falls_smoothly(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        curves = [_distance(rows, name, DIRECT, e) for e in EPSILONS]
        for less, more, epsilon in zip(curves, curves[1:], EPSILONS[1:], strict=False):
            holds = check_lower(more, less).holds
            ratio = less["mean"].iloc[-1] / more["mean"].iloc[-1]
            if holds:
                holds = bool(ratio <= ORDERS)
            parts[f"{name}, to ε = {epsilon:g}"] = Finding(
                holds, f"{format_number(ratio)}× less"
            )
    return all_of(parts)


def _against_a_release(rows) -> Finding:
    return all_of(
        {
            "beats the stand-in for a second release": _can_outperform(rows, SECOND),
            "error falls smoothly": _falls_smoothly(rows),
        }
    )


def _of_the_order_of_noise(rows) -> Finding:
    parts = {}
    nodes = rows[rows.metric == NODE]
    for (name, epsilon), errors in nodes.groupby(["panel", "epsilon"], sort=False):
        error = claims.confidence_intervals(errors, "node_level")
        worst = error["mean"].idxmax()
        largest = error["mean"][worst]
        holds = decide((error.high <= MUCH).all(), (error.low > MUCH).any())
        measured = f"{format_number(largest)} scales at level {worst:.0f}, "
        measured += (
            f"{format_number(error['mean'].iloc[-1])} at {error.index[-1]:.0f}, the last"
        )
        parts[f"{name}, ε = {epsilon:g}"] = Finding(
            holds, measured, if_unsettled=largest <= MUCH
        )
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-5-1",
        "Direct synthesis can outperform a second independent release of the same data, and its error "
        "falls smoothly with ε.",
        _against_a_release,
    ),
    Claim(
        "a-5-2",
        "Direct synthesis can outperform resampling of the source, with a variance equal to the count.",
        lambda rows: _can_outperform(rows, RESAMPLE),
        "With 4 million people it does (0.92× at ε = 10), and in Rhode Island, with a tenth of them, "
        "down to level 8 of 10. Cells below hold one or two people, where resampling errs by less than "
        "one, and noise of one is as large.",
    ),
    Claim(
        "a-5-3",
        "The other census releases do not follow the line of resampling.",
        None,
        "The second and third synthetic release of the census are not public; what stands in for one "
        "here follows the line by construction, √2 above it.",
    ),
    Claim(
        "a-4",
        "The error of direct synthesis at a node stays of the order of the noise's scale, whatever the "
        "node's depth.",
        _of_the_order_of_noise,
    ),
)


@value
class Fig5(Commutes, Figure):
    """Sums of distances by level, and errors at nodes."""

    title = "Earth mover's distance of synthetic commutes, by depth"
    page = "adaptive2009, section 5.1, Figure 5; section 4"
    claims = CLAIMS

    def sweeps(self) -> dict[str, Sweep]:
        """Direct synthesis, of which nodes are measured too; histograms; and redraws of the source."""
        sweeps = {}
        for name, dataset in self.datasets().items():
            depth = self.depth_of(name)
            distance = DistanceByLevel(depth)
            nodes = [NodeError(depth, depth / epsilon) for epsilon in self.epsilons]
            histograms = [*self.improved(), *self.privtrees()]
            redraws = [Resample(), SecondRelease()]
            parts = {
                "direct": (self.direct(name), [distance, *nodes]),
                "histograms": (histograms, [distance]),
                "redraws": (redraws, [distance, ExpectedResampling(depth)]),
            }
            for part, (mechanisms, metrics) in parts.items():
                sweep = Sweep([dataset], mechanisms, metrics, self.seeds_of(name))
                sweeps[f"{name}, {part}"] = sweep
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """What has no ε stands at all of them, the expectation once; nodes are asked at their own ε."""
        rows = super().rows(store)
        expected = rows.metric == THEORY
        rows = rows[~expected | ((rows.series == RESAMPLE) & (rows.seed == 0))]
        rows = rows[(rows.metric != NODE) | (rows.scale == rows.depth / rows.epsilon)]
        at_node = rows.series + rows.epsilon.map(", ε = {:g}".format)
        rows = rows.assign(series=rows.series.mask(rows.metric == NODE, at_node))
        redrawn = np.isinf(rows.epsilon)
        copies = [rows[redrawn].assign(epsilon=epsilon) for epsilon in self.epsilons]
        return pd.concat([rows[~redrawn], *copies], ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Each ε of a dataset, and the errors at nodes."""
        grid = []
        for name in rows.panel.unique():
            theory = rows[(rows.panel == name) & (rows.metric == THEORY)]
            law = theory.drop_duplicates("down_to").set_index("down_to").value
            dashes = ("resample, expected", partial(_between, law))
            for epsilon in self.epsilons:
                where = {"panel": name, "epsilon": epsilon, "metric": DISTANCE}
                title = f"{name}, ε = {epsilon:g}"
                grid.append(Panel(title, where, "down_to", log="y", theory=dashes))
            where = {"panel": name, "metric": NODE}
            grid.append(Panel(f"{name}, error at a node", where, "node_level", log=""))
        return grid

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Sums over all levels, over that of resampling as expected."""
        lines = []
        for name in rows.panel.unique():
            for epsilon in EPSILONS:
                law = _distance(rows, name, RESAMPLE, epsilon, THEORY)["mean"].iloc[-1]
                line = {"dataset": name, "ε": epsilon}
                for series in ORDER:
                    mean = _distance(rows, name, series, epsilon)["mean"].iloc[-1]
                    line[series] = f"{mean / law:.3g}×"
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "ε"])

    def node_errors(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The mean error of direct synthesis at a node of each level, in scales of its noise."""
        errors = rows[rows.metric == NODE]
        table = errors.pivot_table("value", ["panel", "epsilon"], "node_level")
        table.columns = [int(level) for level in table.columns]
        return table.rename_axis(columns="level").map(lambda x: "" if x != x else f"{x:.2g}")


def _between(law: pd.Series, x):
    return np.interp(x, law.index, law, np.nan, np.nan)
