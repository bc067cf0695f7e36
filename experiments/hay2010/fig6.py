"""Hay et al. 2010, Figure 6: error of range queries from a universal histogram, against their size.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 4.2 and 5.2, Figure 6, and the abstract.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    NetTrace has 2¹⁶ cells (ℓ = 17 levels), Search Logs 2¹⁵ (ℓ = 16). Sizes are 2ⁱ, i = 1 … ℓ − 2,
        as printed, and 1, of which the text speaks.
        The published file of NetTrace is sorted by count, not by address: here its twin stands in.
        All methods are said to round to whole numbers >= 0. What is rounded is not said, and decides:
        the leaves of L̃ rounded up to 0 gain half a noise each, which ruins sparse ranges. Nothing is
        rounded here. How H̄ answers once zeroing has made it inconsistent is not said either: by its
        leaves, as the text has it for consistent trees, which is judged; by the fewest nodes of
        the same tree ("H̄ by nodes"), and not zeroed at all, which stand beside it.
        Not in the paper, and not judged: the shop; the exact non-negative least squares solution, HB, a
        tree of as many children as suit the domain best, not zeroed, and Privelet.
        H̄ by its nodes and non-negative H̄ are of the same draws as H̃; all others have their own.
Words   the error = squared, mean over ranges. Unit ranges: L̃ below H̃ in every panel; from about 2000
        = where the two cross for good, within 1.25×; 4–8 times = at the largest size, as printed;
        uniformly = at every size in every panel, intervals apart; sparse = NetTrace; small ranges =
        up to 16 cells, H̄ below L̃ at every ε; larger ranges = from 2048 cells, error(H̄) 45–98 % below
        error(H̃), in every panel; ℓ³/ε² and linear = the error of H̄ (not zeroed) at most 4ℓ³/ε² at
        every size, that of L̃ within 1.25× of 2·size/ε², and both in proportion to 1/ε² (1.25×).
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from experiments.hay2010.data import LEAVES, NOISY_TREE, TREE_NOT_ZEROED, at_hand, datasets
from experiments.hay2010.ranges import (
    BEST,
    ERROR,
    NODES,
    PAPER,
    by_panel,
    check_crossover,
    check_cut,
    check_largest,
    check_overtaken,
    check_rates,
    check_reduced,
    check_sparse,
    check_uniformly,
    error_curve,
    expected_errors,
    laws_of,
)
from workbench import DP, RandomRanges, Sweep, claims
from workbench.claims import interpolate_log_log
from workbench.claims.old import Claim
from workbench.figures import Figure
from workbench.figures.parameters import epsilons, queries, seeds, whole, wholes
from workbench.inference import NonnegativeLeastSquares, Zeroed
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, Privelet
from workbench.metrics import MeanSquaredError
from workbench.plots import Panel
from workbench.value import value

WIDE = "HB"
EXACT = "non-negative H̄"
ORDER = [LEAVES, NOISY_TREE, BEST, NODES, TREE_NOT_ZEROED, EXACT, WIDE, "Privelet"]
ESTIMATORS = {Zeroed(): NODES, NonnegativeLeastSquares(): EXACT}

CLAIMS = (
    Claim(
        "h-6-1",
        "L̃ wins at unit ranges; H̃ wins beyond about 2000 units; the error of L̃ is 4–8 times "
        "larger at the largest ranges.",
        check_crossover,
        "Both errors are what theory says, and that makes them cross at 2950 cells for ℓ = 16 and "
        "at 3500 for ℓ = 17: 2000 may be read off a plot with powers of ten. The rest holds.",
    ),
    Claim(
        "h-6-2",
        "H̄ is uniformly below H̃: at all sizes, ε, and datasets.",
        check_uniformly,
        "Zeroing takes away negative errors and leaves positive ones. A sum of leaves so gains a "
        "bias in proportion to its length, whose square passes H̃ from 32–256 cells on. Answered by "
        "the nodes of the zeroed tree, which the paper may have done, or not zeroed, H̄ is below H̃ "
        "everywhere.",
    ),
    Claim(
        "h-6-3",
        "On sparse data H̄ beats L̃ even on small ranges.",
        check_sparse,
        "Zeroing saves a factor of 16–86 at single cells, but L̃ is ahead of H̃ by 290. Four fifths and "
        "more of what is left is noise of empty cells that stay positive, 1–3 % of them, each with 170 "
        "times the variance of L̃. How well they are found depends on how hosts cluster, which in the "
        "twin is our invention. At ε = 0.01 H̄ by nodes is level with L̃ at 16 cells.",
    ),
    Claim(
        "h-6-4",
        "H̄ reduces the error of larger ranges by 45–98 %.",
        check_reduced,
        "Summed over zeroed leaves it has the bias of h-6-2. By nodes it cuts the error of H̃ by "
        "83–94 %, not zeroed by 77–83 %, both as printed.",
    ),
    Claim(
        "h-6-5",
        "The error of H̄ grows as ℓ³/ε², that of L̃ linearly in the range.",
        check_rates,
    ),
)


@value
class Fig6(Figure):
    """A panel a dataset and ε: L̃, H̃ and H̄ against the size of the range, with their laws."""

    title = "Error of range queries against their size"
    page = "Hay et al., PVLDB 2010, section 5.2, Figure 6; Theorem 4"
    quick = {"seeds": 5, "queries": 200}
    rough = {"seeds": 2, "queries": 50}
    claims = CLAIMS

    data: tuple[str, ...] = datasets("NetTrace", "Search Logs", "shop hours")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    branching: int = whole(2, "children of a node of the trees", 2, 1024)
    sizes: tuple[int, ...] | None = wholes(
        None, "of ranges; None: 2ⁱ up to a quarter", unit="cells"
    )
    queries: int = queries(1000)
    seeds: int = seeds(50)

    @property
    def columns(self) -> int:
        """A line a dataset."""
        return len(self.epsilons)

    def ranges(self, dataset) -> list[RandomRanges]:
        """Of the sizes that are asked, else 1, 2, 4, … up to a quarter of the padded domain."""
        m = dataset.domain.size
        sizes = self.sizes or [2**i for i in range((m - 1).bit_length())]
        return [RandomRanges(size, self.queries) for size in sizes]

    def sweeps(self) -> dict[str, Sweep]:
        """Of each dataset two: mechanisms, and trees of which more is made."""
        tree = partial(HierarchicalHistogram, branching=self.branching)
        alone = []
        for epsilon in self.epsilons:
            budget = DP(epsilon)
            alone += [
                LaplaceHistogram(budget),
                tree(budget, ranges="leaves"),
                tree(budget, nonnegative=False),
                HierarchicalHistogram(budget, branching="optimal", nonnegative=False),
                Privelet(budget),
            ]
        trees = [tree(DP(epsilon), consistent=False) for epsilon in self.epsilons]
        sweeps = {}
        for name, dataset in at_hand(self.data, in_order=True).items():
            metrics = [MeanSquaredError(ranges) for ranges in self.ranges(dataset)]
            sweeps[name] = Sweep([dataset], alone, metrics, self.seeds)
            of_trees = Sweep([dataset], trees, metrics, self.seeds, tuple(ESTIMATORS))
            sweeps[f"{name}, trees"] = of_trees
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """The laws stand in rows of their own, `theory`."""
        rows = super().rows(store)
        estimators = {repr(estimator): series for estimator, series in ESTIMATORS.items()}
        series = rows.mechanism.map({"LaplaceHistogram": LEAVES, "Privelet": "Privelet"})
        series = series.fillna(rows.estimator.map(estimators | {"None": NOISY_TREE}))
        series = series.mask(rows.branching == "optimal", WIDE)
        series = series.fillna(rows.nonnegative.map({True: BEST, False: TREE_NOT_ZEROED}))
        frames = [rows.assign(series=series, panel=rows.panel.str.removesuffix(", trees"))]
        tables = at_hand(self.data, in_order=True)
        for name, dataset in tables.items():
            for epsilon in self.epsilons:
                asked = self.ranges(dataset)
                laws = expected_errors(dataset, asked, epsilon, self.branching)
                frames.append(laws.assign(panel=name))
        order = [*ORDER, *tables]
        rows = pd.concat(frames, ignore_index=True)
        return rows.sort_values(["series", "panel"], key=lambda column: column.map(order.index))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A line a dataset, a column an ε, with the three laws dashed below."""
        grid = []
        for (name, epsilon), own in rows.groupby(["panel", "epsilon"], sort=False):
            laws = laws_of(own).values()
            theory = [("theory", interpolate_log_log(law.index, law)) for law in laws]
            where = {"panel": name, "epsilon": epsilon, "metric": ERROR}
            grid.append(Panel(f"{name}, ε = {epsilon:g}", where, "query_size", theory=theory))
        return grid

    def against_theory(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Measured over expected, a line a panel and law; where the 95 % band misses it."""
        lines = []
        for panel, own in by_panel(rows):
            for series, law in laws_of(own).items():
                ours = error_curve(own, series)
                ratio = ours["mean"] / law
                outside = law.index[(ours.low > law) | (ours.high < law)]
                line = {"panel": panel, "series": series}
                line |= {"lowest": f"{ratio.min():.3f}", "highest": f"{ratio.max():.3f}"}
                line["outside at"] = ", ".join(f"{size:,}" for size in outside) or "none"
                lines.append(line)
        return pd.DataFrame(lines).set_index(["panel", "series"])

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours."""
        lines = []
        for panel, own in by_panel(rows):
            lines.append((f"{panel}: H̃ beats L̃", PAPER["crossing"], check_overtaken(own)))
            lines.append((f"{panel}: L̃ over H̃", PAPER["largest"], check_largest(own)))
            for series in (BEST, NODES, TREE_NOT_ZEROED):
                cut = check_cut(own, series)
                lines.append((f"{panel}: {series} under H̃", PAPER["cut"], cut))
        return claims.compare_with_paper(*lines)
