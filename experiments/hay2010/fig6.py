"""Figure 6 of Hay et al. (2010): errors of range queries by their size, for noisy leaves (L̃), a noisy tree
(H̃) and a consistent tree (H̄).

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 4.2 and 5.2, Figure 6, and the abstract.
Read    We read all numbers from the text, because the plots are not in our copy. Printed numbers may have an
        error of half of their last digit.
Open    NetTrace has 2¹⁶ cells (ℓ = 17 levels), and Search Logs has 2¹⁵ (ℓ = 16). As printed, the sizes are 2ⁱ
        for i = 1 … ℓ − 2. We add the size 1, which the text mentions. The published file of NetTrace is
        sorted by count, although it claims to be sorted by address. So nobody knows the order of cells in the
        paper's figure. We run the order of the file, and the stand-in's order with clusters of addresses.
        Statements that depend on the order are tested in both. H̄ is zeroed (negative subtrees are set to 0),
        so it is no longer consistent. A range is the sum of the fewest nodes of the zeroed tree. For
        comparison, we also use the sum of its leaves ("by leaves", dotted), and a tree that is not zeroed.
        The paper says that all methods round to integers >= 0, but not what they round. We run both: no
        rounding, and rounded answers of L̃ and H̃ ("rounded"). Some data and methods are not in the paper,
        and no statement is tested on them: the shop's invoices, exact non-negative least squares, Privelet,
        and HB, a tree that is not zeroed and has the number of children that is best for the domain. H̄ by
        nodes and the non-negative H̄ are computed from the noise of H̃. All other methods have their own
        noise. The error of the worst range of H̄ without zeroing is computed for several heights at ε = 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np

from experiments._fields import unprinted
from experiments.hay2010.data import (
    LEAVES,
    NOISY_TREE,
    TREE_NOT_ZEROED,
    TWIN,
    at_hand,
    beside,
    datasets,
    panel_of,
    ratios_by_seed,
)
from experiments.hay2010.ranges import (
    BEST,
    ERROR,
    EXACT,
    HEIGHTS,
    LEAF_SUMS,
    ROUNDED,
    WORST,
    WholeAnswers,
    by_panel,
    error_curve,
    errors_by_height,
    exact_errors,
    expected_errors,
    laws_of,
)
from workbench import DP, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilons, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.inference import NonnegativeLeastSquares, Zeroed
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, Privelet
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    OFTEN,
    SOMEWHERE,
    Finding,
    Intervals,
    MissingPoints,
    Printed,
    all_of,
    any_of,
    check_between,
    check_lower,
    check_similar,
    crossing,
    exact,
    interpolate_log_log,
    paired_ratios,
)
from workbench.trials.metrics import MeanSquaredError
from workbench.value import format_number, value

PAPER = {
    "crossing": Printed("larger than about 2000 units", 1024, 4096, axis="x"),
    "largest": Printed("4–8 times larger", 3.5, 8.5),
    "cut": Printed("by 45–98 %", 0.445, 0.985),
}
DATA = ("NetTrace", "Search Logs")
POINTS = ["panel", "epsilon", "query_size"]
BELOW = float(np.nextafter(1, 0))
TRACE = "NetTrace"
ROUNDINGS = {"nothing": "", "answers": ROUNDED}
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


# What decides the statements that are decided by theory, and on which rows.


def of_paper(rows: pd.DataFrame, metric: str = ERROR) -> pd.DataFrame:
    """Return the results of one metric, on the paper's datasets or their synthetic stand-ins."""
    own = rows[rows.panel.str.removesuffix(TWIN).isin(DATA) & (rows.metric == metric)]
    return own[[*POINTS, "series", "seed", "value", "dataset", "metric"]]


def plotted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results without ranges of one cell, which the paper's plots do not show."""
    return rows[rows.query_size > 1]


def _exact_ratios(rows: pd.DataFrame, metric: str = EXACT) -> pd.Series:
    """Return the theoretical error of noisy leaves L̃ divided by that of the noisy tree H̃, by panel, and by
    size for a metric that has sizes. The ratio does not depend on ε.
    """
    own = of_paper(rows, metric)
    own = own[own.epsilon == own.epsilon.max()]
    keys = ["panel", "query_size"] if metric == EXACT else ["panel"]
    series = own.pivot_table(index=keys, columns="series", values="value")
    return (series[LEAVES] / series[NOISY_TREE]).rename("ratio")


def _measured(rows: pd.DataFrame, ours: str, other: str) -> pd.Series:
    return paired_ratios(of_paper(rows), ours, other, POINTS).at(0.95).estimate


def check_unit_ranges(rows, level: float) -> Finding:
    """Check whether noisy leaves L̃ have a smaller error than the noisy tree H̃ for one cell."""
    one = _exact_ratios(rows).xs(1, level="query_size")
    finding = check_lower(exact(one), level)
    measured = _measured(rows, LEAVES, NOISY_TREE).xs(1, level="query_size")
    return beside(
        finding, f"measured lower in {(measured < 1).sum()} of {len(measured)} panels"
    )


def check_linear(rows, level: float) -> Finding:
    """Check whether the theoretical error of noisy leaves L̃ is proportional to the size of the range. The
    finding also says how well the measured errors agree.
    """
    law = plotted(of_paper(rows, EXACT))
    law = law[law.series == LEAVES].set_index(POINTS).value
    sizes = law.index.get_level_values("query_size")
    steps = (law / sizes).groupby(["panel", "epsilon"]).transform(lambda own: own / own.iloc[0])
    finding = check_similar(exact(steps), level, EVERYWHERE, within=1.001)
    measured = claims.means(plotted(of_paper(rows)), LEAVES, POINTS).over(law).at(0.95).estimate
    near = measured.between(1 / claims.ALIKE, claims.ALIKE).sum()
    words = f"measured over 2·size/ε² within 1.25× at {near} of {len(measured)} points"
    return beside(finding, words)


def check_slowly(rows, level: float) -> Finding:
    """Check whether the mean error of the noisy tree H̃ increases with the size of the range, but less than
    doubles if the size is doubled.
    """
    own = plotted(of_paper(rows, EXACT))
    own = own[(own.series == NOISY_TREE) & (own.epsilon == own.epsilon.max())]
    curve = own.set_index(["panel", "query_size"]).value.sort_index()
    doublings = curve.groupby("panel").pct_change().dropna() + 1
    whole = curve.groupby("panel").last() / curve.groupby("panel").first()
    parts = {
        "a doubling of the size": lambda at: check_between(exact(doublings), at, high=1.999),
        "smallest to largest": lambda at: check_between(exact(whole), at, low=1.001),
    }
    return all_of(parts, level)


def check_overtaken(rows, level: float) -> Finding:
    """Check from which size of range on the noisy tree H̃ has a smaller error than noisy leaves L̃."""
    sizes = {}
    for panel, ratio in _exact_ratios(rows).groupby("panel"):
        above = ratio.droplevel("panel").to_frame("mean")
        sizes[panel] = crossing(1 / above, 1 + 0 * above)
    numbers = exact(pd.Series(sizes), ratios=False)
    finding = claims.check_printed(numbers, level, PAPER["crossing"], unit=" cells")
    words = [f"{name} from {format_number(overtaken(own))}" for name, own in by_panel(rows)]
    return beside(finding, "measured: " + ", ".join(words))


def overtaken(rows) -> float:
    """Return the size of range at which the measured errors of the noisy tree H̃ and of noisy leaves L̃ cross
    in one panel.
    """
    return crossing(error_curve(rows, NOISY_TREE), error_curve(rows, LEAVES))


def check_largest(rows, level: float) -> Finding:
    """Check by which factor the error of noisy leaves L̃ is larger than that of the noisy tree H̃ for the
    largest plotted sizes.
    """
    ratios = _exact_ratios(rows)
    largest = ratios.groupby("panel").tail(2)

    def at(panel: str, level: float) -> Finding:
        own = exact(largest.loc[[panel]])
        return claims.check_printed(own, level, PAPER["largest"], SOMEWHERE)

    panels = largest.index.unique("panel")
    finding = all_of({panel: partial(at, panel) for panel in panels}, level)
    measured = _measured(rows, LEAVES, NOISY_TREE).groupby(["panel", "epsilon"]).last()
    low, high = (format_number(x) for x in (measured.min(), measured.max()))
    return beside(finding, f"measured {low}–{high}× at the largest")


def check_preferred(rows, level: float, metric: str) -> Finding:
    """Check whether the noisy tree H̃ is better than noisy leaves L̃ over all ranges, by the given metric."""
    return check_lower(exact(1 / _exact_ratios(rows, metric)), level)


def check_heights(rows, level: float) -> Finding:
    """Check whether the error of the worst range of the consistent tree H̄ grows at most as fast as ℓ³/ε²
    with the number of levels ℓ, and is at most 4ℓ³/ε².
    """
    own = rows[rows.panel == HEIGHTS]
    if own.empty:
        raise MissingPoints("no heights")
    rate = own.set_index("levels").value
    rate /= rate.index.to_numpy() ** 3.0
    steps = (rate / rate.shift()).dropna()
    parts = {
        "error over ℓ³/ε²": lambda at: check_between(exact(rate, ratios=False), at, high=4),
        "from a height to the next": lambda at: check_between(
            exact(steps), at, high=claims.ALIKE
        ),
    }
    return all_of(parts, level)


# What decides each statement.


def swept(rows, level: float, check: Callable, name: str = "", **values: Sequence) -> Finding:
    """Repeat a check for all given values of parameters that the paper does not print. For NetTrace, also
    repeat it for both orders of its cells.
    """
    orders = {"as published": TRACE + TWIN, "in clusters": TRACE}  # without which panel
    in_orders = name in ("", TRACE) and {*orders.values()} <= {*rows.panel}
    places = ({"order": [*orders]} if in_orders else {}) | values

    def at(place: tuple, level: float) -> Finding:
        setting = dict(zip(places, place, strict=True))
        own = rows[rows.panel != orders[setting.pop("order")]] if in_orders else rows
        own = of_paper(panel_of(own, name) if name else own)
        found = check(own, level, *setting.values())
        classes = {re.match(r"\w*", text)[0] for text in own.dataset.unique()}
        order = " and ".join(sorted(classes))
        return beside(found, f"the order of the cells is that of {order}")

    if not places:
        return at((), level)
    return claims.over(", ".join(places), [*product(*places.values())], at, level)


rounded = partial(swept, rounded=[*ROUNDINGS])
above = partial(swept, **{"up to": [2**i for i in range(9)]})
rivals = {"rival": [LEAVES, NOISY_TREE], "from": [512, 1024, 2048, 4096, 8192]}
beside_rivals = partial(swept, **rivals)


def beats(
    rows, level: float, rounded: str = "nothing", *, rival=LEAVES, sizes=(0, np.inf), **how
) -> Finding:
    """Check whether the consistent tree H̄ has smaller errors than another method, for ranges with sizes
    between the two numbers in `sizes`.
    """
    own = rows[rows.query_size.between(*sizes)]
    ratios = paired_ratios(own, BEST, rival + ROUNDINGS[rounded], POINTS)
    return check_between(ratios, level, **{"high": BELOW, "words": "lower"} | how)


def check_uniformly(rows, level: float, rounded: str) -> Finding:
    """Check whether the consistent tree H̄ has a smaller error than the noisy tree H̃ for every size and ε."""
    finding = beats(rows, level, rounded, rival=NOISY_TREE)
    leaves = paired_ratios(rows, LEAF_SUMS, NOISY_TREE, POINTS).at(0.95).estimate
    words = f"the sum of leaves is lower at {(leaves < 1).sum()} of {len(leaves)} points"
    return beside(finding, words)


def check_sparse(rows, level: float) -> Finding:
    """Check whether, for one cell, a consistent tree without zeroing has a larger error than noisy leaves
    wherever the zeroed tree H̄ has a smaller one. Zeroing sets negative subtrees to 0.
    """
    own = of_paper(rows)
    own = own[own.query_size == 1]
    panels = own.groupby(["panel", "epsilon"]).ngroups
    points = paired_ratios(own, BEST, LEAVES, POINTS).at(1 - (1 - level) / panels)
    won = points.index[points.high < 1]
    words = f"H̄ is lower in {len(won)} of {len(points)} panels"
    if won.empty:
        return Finding(None, f"{words}: nothing to explain", runs=np.nan)
    theory = rows[(rows.metric == "theory") & (rows.query_size == 1)]
    law = theory.pivot_table(index=POINTS, columns="series", values="value")
    ratios = (law[TREE_NOT_ZEROED] / law[LEAVES]).loc[won]
    finding = check_between(exact(ratios), level, low=1.001, words="higher if not zeroed")
    return beside(finding, words)


def check_cut(rows, level: float, rival: str, size: int, **how) -> Finding:
    """Check by which factor the error of the consistent tree H̄ is smaller than that of another method, for
    ranges of at least `size` cells.
    """
    return beats(rows, level, rival=rival, sizes=(size, np.inf), **how)


def check_some_cases(rows, level: float, rounded: str) -> Finding:
    """Check whether there is a panel in which the consistent tree H̄ has smaller errors than noisy leaves L̃
    for every size.
    """
    parts = {name: partial(beats, own, rounded=rounded) for name, own in by_panel(rows)}
    return any_of(parts, level)


def check_other_cases(rows, level: float, size: int) -> Finding:
    """Check whether the consistent tree H̄ has smaller errors than noisy leaves L̃ for ranges of more than
    `size` cells, in the panels where this does not hold for all sizes.
    """
    panels = dict(by_panel(rows))
    half = 1 - (1 - level) / 2
    each = 1 - (1 - half) / len(panels)
    others = [own for own in panels.values() if beats(own, each).holds is False]
    words = f"in {len(others)} of {len(panels)} panels"
    if not others:
        return Finding(None, f"there are other cases {words}", runs=np.nan)
    found = beats(pd.concat(others), half, sizes=(size + 1, np.inf))
    return beside(found, f"judged {words}")


def check_steps(rows, level: float, rounded: str, rival: str) -> Finding:
    """Check whether the error of the consistent tree H̄, divided by another method's, becomes smaller with
    each smaller ε, for at least three quarters of the sizes.
    """
    by = ["epsilon", "query_size"]
    shares = ratios_by_seed(plotted(rows), BEST, rival + ROUNDINGS[rounded], by)
    return all_of(_steps(shares), level)


def _steps(shares: pd.DataFrame) -> dict:
    """Return one check for each step from an ε to the next smaller one."""
    epsilons = sorted(shares.epsilon.unique(), reverse=True)

    def step(larger: float, smaller: float) -> Intervals:
        at = {x: shares[shares.epsilon == x] for x in (smaller, larger)}
        return claims.ratios(at[smaller], at[larger], "query_size")

    pairs = zip(epsilons, epsilons[1:], strict=False)
    return {f"{a:g} → {b:g}": partial(check_lower, step(a, b), share=OFTEN) for a, b in pairs}


@value
class Fig6(Figure):
    """Errors of noisy leaves L̃, the noisy tree H̃ and the consistent tree H̄ by the size of the range, with
    theoretical curves. There is one panel per dataset and ε.
    """

    title = "Error of range queries against their size"
    headline = (
        "Trees beat noisy leaves on long ranges, and consistency improves trees on all ranges"
    )
    rests_on = ("h-6-1.4", "h-6-2.1", "h-6-2.2")
    columns = 3
    page = "Hay et al., PVLDB 2010, section 5.2, Figure 6; Theorem 4"
    quick = {"seeds": 5, "queries": 200}

    data: tuple[str, ...] = datasets("NetTrace", "Search Logs", "shop hours")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    branching: int = whole(2, "number of children of a tree's node", 2, 1024)
    sizes: tuple[int, ...] | None = whole(
        None, "sizes of ranges (none: powers of 2 up to a quarter)", unit="cells", many=True
    )
    heights: tuple[int, ...] = unprinted(
        (4, 8, 12, 16), "levels of the trees whose worst range is sought", 2, 18
    )
    queries: int = queries(1000)
    seeds: int = seeds(640)

    def ranges(self, dataset) -> list[RandomRanges]:
        """Return the range queries on a dataset. By default, their sizes are 1, 2, 4, … up to a quarter of
        the domain, whose size is rounded up to a power of two.
        """
        m = dataset.domain.size
        sizes = self.sizes or [2**i for i in range((m - 1).bit_length())]
        return [RandomRanges(size, self.queries) for size in sizes]

    def sweeps(self) -> dict[str, Sweep]:
        """Return three sweeps per dataset: mechanisms, noisy cells with and without rounding, and noisy trees
        from which other estimates are computed.
        """
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
        """Return the figure's results. Theoretical errors have rows of their own, with the metrics `theory`
        and `exact …`.
        """
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
        """Return the figure's panels: the paper's methods with theoretical curves on two datasets, and then
        other datasets and methods.
        """
        middle = sorted(self.epsilons)[len(self.epsilons) // 2]
        names = [name for name in rows.panel.unique() if name != HEIGHTS]
        beside = [x for x in names if x.endswith(TWIN) and x.removesuffix(TWIN) in names]
        first = [x for x in names if x not in beside][:2]
        others = [x for x in names if x not in first]
        grid = [self._printed(rows, *place) for place in product(first, self.epsilons)]
        for name, shown in product(first, (VERSIONS, LATER, ROUNDS)):
            where = {"panel": name, "epsilon": middle, "metric": ERROR, "shown": shown}
            title = f"{name}:\n{shown}, ε = {middle:g}"
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
        """Return the results to draw: the errors of the methods that each panel shows, the theoretical
        curves, and the errors by height.
        """
        errors = rows[rows.metric == ERROR]
        frames = [
            errors[errors.series.isin(series)].assign(shown=shown)
            for shown, series in DRAWN.items()
        ]
        return pd.concat([*frames, rows[rows.metric != ERROR]])

    def against_theory(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of measured errors divided by theoretical errors, with one row per panel and curve.
        It also lists the sizes at which the 95 % confidence interval does not contain the theoretical error.
        """
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
