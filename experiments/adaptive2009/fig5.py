"""Synthetic data via differential privacy (2009), Figure 5: earth mover's distance by depth.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): sections 1.3, 4, 5.1 and Figure 5.
Read    from the text; the plot is not in our copy, and the text prints no number.
Open    The paper has some 10⁸ commuters of the whole country, as blocks' centroids in a unit cube: a
        published release, which is itself synthetic and is taken for the truth. Here it is Rhode Island
        in 2019, of the same publisher, within the box of all its blocks, which alone decides; a twin of
        the country where its files are missing, or beside it if asked for.
        The depth of basic and direct is one at which a cell's side is 60–100 m in Rhode Island and
        340–800 m in the country, about a block's; finer cells would tell centroids apart, and nothing
        else. Sums go as deep. Direct synthesis is given the number of records, which the publisher tells.
        Whose ε it is, and the threshold of the histograms, are swept: `_unprinted`. The discount is
        Theorem 3's. Drawn is ε of a whole release and b = k scales of a decision's noise, and beside the
        histograms the same with counts that add up (`inference.project_to_simplex`).
        Resampling draws as many records from the source, with replacement. The dashes are its
        expectation, in closed form.
        The paper's second and third census release are not public. A stand-in: p ~ Dirichlet(counts),
        then as many records from p, the census's way of synthesis without the prior that makes it
        private. Its variance is twice the count, what two draws from one population differ by.
"""

from __future__ import annotations

from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np

from experiments.adaptive2009._commutes import CHILDREN, Commutes
from experiments.adaptive2009._fig5_claims import BALANCED, CHECKS
from experiments.adaptive2009._levels import (
    DISTANCE,
    DistanceByLevel,
    ExpectedResampling,
    NodeError,
)
from experiments.adaptive2009._techniques import (
    BASIC,
    DIRECT,
    IMPROVED,
    RESAMPLE,
    SECOND,
    Resample,
    SecondRelease,
)
from experiments.adaptive2009._unprinted import TOTAL
from workbench import Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.figure import seeds
from workbench.figures.plots import Panel
from workbench.noise import variance
from workbench.trials import claims
from workbench.value import format_number, value

NODE = NodeError.__name__
THEORY = ExpectedResampling.__name__
ORDER = [DIRECT, IMPROVED, IMPROVED + BALANCED, BASIC, BASIC + BALANCED, RESAMPLE, SECOND]


@value
class Fig5(Commutes, Figure):
    """Sums of distances by level, and errors at nodes."""

    title = "Earth mover's distance of synthetic commutes, by depth"
    page = "adaptive2009, section 5.1, Figure 5; sections 1.3 and 4"
    claims = claims.read(
        Path(__file__).with_name("statements.toml"), "adaptive2009_fig5", CHECKS
    )
    columns = 3

    seeds: int = seeds(10)

    def sweeps(self) -> dict[str, Sweep]:
        """Direct synthesis and histograms, whose nodes are measured too; and redraws of the source."""
        sweeps = {}
        for name, dataset in self.datasets().items():
            depth = self.depth_of(name)
            distance = DistanceByLevel(depth)
            for key, mechanisms in self.techniques(name, (DIRECT, IMPROVED, BASIC)).items():
                metrics = [distance]
                budgets = mechanisms[0].budgets()
                if mechanisms[0].series == DIRECT:
                    metrics.append(NodeError(depth, _deviation(budgets.counts[0])))
                elif f"|{self.drawn()}|" in key:
                    metrics.append(DistanceByLevel(depth, balanced=True))
                    metrics.append(NodeError(depth, _deviation(budgets.leaves)))
                sweeps[key] = Sweep([dataset], mechanisms, metrics, self.seeds)
            metrics = [distance, ExpectedResampling(depth)]
            redraws = [Resample(), SecondRelease()]
            sweeps[f"{name}||"] = Sweep([dataset], redraws, metrics, self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """The expectation stands once, with the seed of no run; what adds up is a series of its own."""
        rows = super().rows(store)
        expected = rows.metric == THEORY
        rows = rows[~expected | ((rows.series == RESAMPLE) & (rows.seed == 0))]
        balanced = rows.balanced.eq(True)
        dims = CHILDREN.bit_length() - 1
        apart = rows.own * 2**rows.down_to / sqrt(dims) / 2.0 ** (dims * rows.down_to)
        return rows.assign(
            series=rows.series.mask(balanced, rows.series + BALANCED),
            all_nodes=apart,  # the mean error over all nodes of a level, empty ones too
            drawn=rows.setting.isin([TOTAL, self.drawn()]) | rows.setting.isna(),
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Direct synthesis at all ε in one; all techniques at each ε; and the errors at nodes."""
        grid = []
        for name in rows.panel.unique():
            theory = rows[(rows.panel == name) & (rows.metric == THEORY)]
            law = theory.drop_duplicates("down_to").set_index("down_to").value
            dashes = ("resample, expected", partial(_between, law))
            where = {"panel": name, "metric": DISTANCE, "shown": "overlaid"}
            grid.append(Panel(f"{name}, direct", where, "down_to", log="y", theory=dashes))
            for epsilon in self.epsilons:
                where = {"panel": name, "metric": DISTANCE, "shown": f"at {epsilon:g}"}
                title = f"{name}, ε = {epsilon:g}"
                grid.append(Panel(title, where, "down_to", log="y", theory=dashes))
            where = {"panel": name, "shown": "nodes"}
            grid.append(Panel(f"{name}, direct, error at a node", where, "node_level", log=""))
        return grid

    def plot(self, rows: pd.DataFrame):
        """Rows whose series have what a panel varies in their names."""
        from workbench.figures import plots

        own = rows[rows.drawn]
        redrawn = own.setting.isna()
        with_epsilon = own.series + own.epsilon.map(", ε = {:g}".format)
        direct = own[(own.series == DIRECT) & (own.metric == DISTANCE)]
        frames = [
            direct.assign(series=with_epsilon, shown="overlaid"),
            own[redrawn].assign(shown="overlaid"),
            self._at_nodes(own).assign(series=with_epsilon, shown="nodes"),
        ]
        for epsilon in self.epsilons:
            at = (own.epsilon == epsilon) | redrawn
            frames.append(own[at & (own.metric == DISTANCE)].assign(shown=f"at {epsilon:g}"))
        frames.append(own[own.metric == THEORY])
        drawn = pd.concat(frames, ignore_index=True)
        return plots.grid(drawn, self.panels(drawn), columns=self.columns)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Sums over all levels, over that of resampling as expected; and how many records there are."""
        own = rows[rows.drawn & rows.metric.isin([DISTANCE, THEORY])]
        last = own[own.down_to == own.groupby("panel").down_to.transform("max")]
        lines = []
        for name, all_of_it in last.groupby("panel", sort=False):
            law = all_of_it[all_of_it.metric == THEORY].value.mean()
            sums = all_of_it[all_of_it.metric == DISTANCE]
            for epsilon in self.epsilons:
                line = {"dataset": name, "ε": epsilon}
                for series in ORDER:
                    mine = sums[(sums.series == series) & sums.epsilon.isin([epsilon, np.inf])]
                    line[series] = f"{format_number(mine.value.mean() / law)}×"
                for series in (IMPROVED, BASIC):
                    mine = sums[(sums.series == series) & (sums.epsilon == epsilon)]
                    direct = sums[sums.series == DIRECT].records.mean()
                    more = 100 * (mine.records.mean() / direct - 1)
                    line[f"records, {series}"] = f"{more:+.2g} %"
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "ε"])

    def _at_nodes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The errors of direct synthesis at nodes that hold the scale of its noise."""
        own = (rows.metric == NODE) & (rows.at_least == "R") & (rows.series == DIRECT)
        return rows[own]

    def node_errors(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The mean error of direct synthesis at a node of each level, in scales of its noise."""
        errors = self._at_nodes(rows[rows.drawn])
        table = errors.pivot_table("value", ["panel", "epsilon"], "node_level")
        table.columns = [int(level) for level in table.columns]
        return table.rename_axis(columns="level").map(
            lambda x: "" if x != x else format_number(x)
        )


def _deviation(epsilon: float) -> float:
    """R, the standard deviation of one noisy count."""
    return sqrt(variance(1, epsilon, "geometric"))


def _between(law: pd.Series, x):
    return np.interp(x, law.index, law, np.nan, np.nan)
