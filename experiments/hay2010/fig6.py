"""Hay et al. 2010, Figure 6: error of range queries from a universal histogram, against their size.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 4.2 and 5.2, Figure 6, and the abstract.
Read    from the text; the plots are not in our copy. Printed numbers may be off by half of their
        last digit.
Open    NetTrace has 2¹⁶ cells (ℓ = 17 levels), Search Logs 2¹⁵ (ℓ = 16). Sizes are 2ⁱ, i = 1 … ℓ − 2,
        as printed, and 1, of which the text speaks.
        The published file of NetTrace is sorted by count, though it says by address: the order of cells
        that the figure had is not known. The file's order and, of the twin, clusters of addresses are
        both run, and what rests on the order is judged in each.
        H̄ is zeroed, which makes it inconsistent, and is answered by the fewest nodes of the zeroed tree;
        by the sum of its leaves ("by leaves", dotted) and not zeroed at all it stands beside.
        All methods are said to round to integers >= 0. What is rounded is not said: nothing, and the
        answers of L̃ and H̃ ("rounded"), are both run.
        Not in the paper, and not judged: the shop; the exact non-negative least squares solution, HB, a
        tree of as many children as suit the domain best, not zeroed, and Privelet.
        H̄ by nodes and non-negative H̄ are of the same draws as H̃; all others have their own.
        The worst range of H̄ not zeroed is computed at several heights, at ε = 1.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from experiments.hay2010.data import (
    LEAVES,
    NOISY_TREE,
    TREE_NOT_ZEROED,
    TWIN,
    at_hand,
    datasets,
)
from experiments.hay2010.fig6_laws import PAPER, overtaken
from experiments.hay2010.ranges import (
    BEST,
    ERROR,
    HEIGHTS,
    LEAF_SUMS,
    ROUNDED,
    WORST,
    by_panel,
    error_curve,
    errors_by_height,
    exact_errors,
    expected_errors,
    laws_of,
)
from experiments.hay2010.rounded import WholeAnswers
from workbench import DP, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import epsilons, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.inference import NonnegativeLeastSquares, Zeroed
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, Privelet
from workbench.trials import claims
from workbench.trials.claims import Finding, interpolate_log_log
from workbench.trials.metrics import MeanSquaredError
from workbench.value import format_number, value

PRINTED = "the paper's methods"
VERSIONS = "consistent trees"
LATER = "later methods"
ROUNDS = "rounded"
WIDE = "HB"
EXACT_H = "non-negative H̄"
ROUND = WholeAnswers()
ORDER = [LEAVES, NOISY_TREE, BEST, LEAF_SUMS, TREE_NOT_ZEROED, EXACT_H, WIDE, "Privelet"]
ORDER += [LEAVES + ROUNDED, NOISY_TREE + ROUNDED]
DRAWN = {  # together
    PRINTED: [LEAVES, NOISY_TREE, BEST],
    VERSIONS: [BEST, LEAF_SUMS, TREE_NOT_ZEROED],
    LATER: [BEST, EXACT_H, WIDE, "Privelet"],
    ROUNDS: [LEAVES, LEAVES + ROUNDED, NOISY_TREE, NOISY_TREE + ROUNDED],
}
THEORY = {TREE_NOT_ZEROED: "theory, consistent but not zeroed"}
MADE_OF_TREES = {
    Zeroed(): BEST,
    NonnegativeLeastSquares(): EXACT_H,
    ROUND: NOISY_TREE + ROUNDED,
}


@value
class Fig6(Figure):
    """A panel a dataset and ε: L̃, H̃ and H̄ against the size of the range, with their laws."""

    title = "Error of range queries against their size"
    headline = (
        "Trees beat noisy leaves on long ranges, and consistency improves trees on all ranges"
    )
    rests_on = ("h-6-1.4", "h-6-2.1", "h-6-2.2")
    columns = 3
    page = "Hay et al., PVLDB 2010, section 5.2, Figure 6; Theorem 4"
    quick = {"seeds": 5, "queries": 200}
    rough = {"seeds": 2, "queries": 50}

    data: tuple[str, ...] = datasets("NetTrace", "Search Logs", "shop hours")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    branching: int = whole(2, "children of a node of the trees", 2, 1024)
    sizes: tuple[int, ...] | None = whole(
        None, "of ranges; none: 2ⁱ up to a quarter", unit="cells", many=True
    )
    heights: tuple[int, ...] = whole(
        (4, 8, 12, 16), "levels of the trees whose worst range is sought", 2, 18, kind=UNPRINTED
    )
    queries: int = queries(1000)
    seeds: int = seeds(640)

    def ranges(self, dataset) -> list[RandomRanges]:
        """Of the sizes that are asked, else 1, 2, 4, … up to a quarter of the padded domain."""
        m = dataset.domain.size
        sizes = self.sizes or [2**i for i in range((m - 1).bit_length())]
        return [RandomRanges(size, self.queries) for size in sizes]

    def sweeps(self) -> dict[str, Sweep]:
        """Of each dataset three: mechanisms, cells that are rounded, and trees that more is made of."""
        tree = partial(HierarchicalHistogram, branching=self.branching)
        budgets = [DP(epsilon) for epsilon in self.epsilons]
        alone = []
        for budget in budgets:
            alone += [
                tree(budget, ranges="leaves"),
                tree(budget, nonnegative=False),
                HierarchicalHistogram(budget, branching="optimal", nonnegative=False),
                Privelet(budget),
            ]
        cells = [LaplaceHistogram(budget) for budget in budgets]
        trees = [tree(budget, consistent=False) for budget in budgets]
        sweeps = {}
        for name, dataset in at_hand(self.data, in_order=True).items():
            metrics = [MeanSquaredError(ranges) for ranges in self.ranges(dataset)]
            sweeps[name] = Sweep([dataset], alone, metrics, self.seeds)
            sweeps[f"{name}, cells"] = Sweep([dataset], cells, metrics, self.seeds, [ROUND])
            made = [*MADE_OF_TREES]
            sweeps[f"{name}, trees"] = Sweep([dataset], trees, metrics, self.seeds, made)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """The laws stand in rows of their own, as metrics `theory` and `exact …`."""
        rows = super().rows(store)
        made = {repr(estimator): series for estimator, series in MADE_OF_TREES.items()}
        of_cells = rows.estimator.map({"None": LEAVES, repr(ROUND): LEAVES + ROUNDED})
        series = of_cells.where(rows.mechanism == "LaplaceHistogram")
        series = series.fillna(rows.mechanism.map({"Privelet": "Privelet"}))
        series = series.fillna(rows.estimator.map(made | {"None": NOISY_TREE}))
        series = series.mask(rows.branching == "optimal", WIDE)
        series = series.fillna(rows.nonnegative.map({True: LEAF_SUMS, False: TREE_NOT_ZEROED}))
        panel = rows.panel.str.replace(", (cells|trees)$", "", regex=True)
        frames = [rows.assign(series=series, panel=panel), errors_by_height(self.heights)]
        tables = at_hand(self.data, in_order=True)
        for name, dataset in tables.items():
            asked = self.ranges(dataset)
            sizes = [ranges.size for ranges in asked]
            for epsilon in self.epsilons:
                laws = expected_errors(dataset, asked, epsilon, self.branching)
                frames.append(laws.assign(panel=name))
                laws = exact_errors(dataset, sizes, epsilon, self.branching)
                frames.append(laws.assign(panel=name))
        order = [*ORDER, *tables, HEIGHTS]
        rows = pd.concat(frames, ignore_index=True)
        return rows.sort_values(["series", "panel"], key=lambda column: column.map(order.index))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """The paper's methods with their laws on two datasets, then other datasets and methods."""
        middle = sorted(self.epsilons)[len(self.epsilons) // 2]
        names = [name for name in rows.panel.unique() if name != HEIGHTS]
        beside = [x for x in names if x.endswith(TWIN) and x.removesuffix(TWIN) in names]
        first = [x for x in names if x not in beside][:2]
        others = [x for x in names if x not in first]
        grid = [self._printed(rows, *place) for place in product(first, self.epsilons)]
        for name, shown in product(first, (VERSIONS, LATER, ROUNDS)):
            where = {"panel": name, "epsilon": middle, "metric": ERROR, "shown": shown}
            title = f"{name}, ε = {middle:g}: {shown}"
            grid.append(Panel(title, where, "query_size"))
        grid += [self._printed(rows, name, middle) for name in others]
        where = {"panel": HEIGHTS, "metric": WORST}
        bound = ("at most 4ℓ³/ε²", lambda levels: 4 * levels**3)
        title = "worst range, ε = 1"
        return [*grid, Panel(title, where, "levels", log="y", theory=bound, fit_theory=True)]

    def _printed(self, rows: pd.DataFrame, name: str, epsilon: float) -> Panel:
        laws = laws_of(rows[(rows.panel == name) & (rows.epsilon == epsilon)])
        theory = [
            (THEORY.get(s, "theory"), interpolate_log_log(law.index, law))
            for s, law in laws.items()
        ]
        where = {"panel": name, "epsilon": epsilon, "metric": ERROR, "shown": PRINTED}
        return Panel(f"{name}, ε = {epsilon:g}", where, "query_size", theory=theory)

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Errors of the methods that stand together; the laws, and the heights."""
        errors = rows[rows.metric == ERROR]
        frames = [
            errors[errors.series.isin(series)].assign(shown=shown)
            for shown, series in DRAWN.items()
        ]
        return pd.concat([*frames, rows[rows.metric != ERROR]])

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
            curve = {s: error_curve(own, s)["mean"] for s in ORDER}
            cells = Finding(None, f"from {format_number(overtaken(own))} cells")
            largest = (curve[LEAVES] / curve[NOISY_TREE]).iloc[-1]
            lines.append((f"{panel}: H̃ beats L̃", PAPER["crossing"], cells))
            times = Finding(None, f"{format_number(largest)}×")
            lines.append((f"{panel}: L̃ over H̃", PAPER["largest"], times))
            for series in (BEST, LEAF_SUMS, TREE_NOT_ZEROED):
                cut = 100 * (1 - curve[series] / curve[NOISY_TREE]).loc[2048:]
                words = (
                    f"{format_number(cut.min())} … {format_number(cut.max())} % from 2048 cells"
                )
                lines.append((f"{panel}: {series} under H̃", PAPER["cut"], Finding(None, words)))
        return claims.compare_with_paper(*lines)
