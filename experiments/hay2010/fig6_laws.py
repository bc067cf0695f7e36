"""Hay et al. 2010, Figure 6: what decides the statements that are decided by theory, and on which rows."""

from __future__ import annotations

from functools import partial

from experiments.hay2010.compared import beside
from experiments.hay2010.data import LEAVES, NOISY_TREE, TWIN
from experiments.hay2010.ranges import (
    ERROR,
    EXACT,
    HEIGHTS,
    by_panel,
    error_curve,
)
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    SOMEWHERE,
    Finding,
    MissingPoints,
    Printed,
    all_of,
    check_between,
    check_lower,
    check_similar,
    crossing,
    exact,
    paired_ratios,
)
from workbench.value import format_number

PAPER = {
    "crossing": Printed("larger than about 2000 units", 1024, 4096, axis="x"),
    "largest": Printed("4–8 times larger", 3.5, 8.5),
    "cut": Printed("by 45–98 %", 0.445, 0.985),
}
DATA = ("NetTrace", "Search Logs")
POINTS = ["panel", "epsilon", "query_size"]


def of_paper(rows: pd.DataFrame, metric: str = ERROR) -> pd.DataFrame:
    """The rows of one metric, of the panels of the paper's data or its twins."""
    own = rows[rows.panel.str.removesuffix(TWIN).isin(DATA) & (rows.metric == metric)]
    return own[[*POINTS, "series", "seed", "value", "dataset", "metric"]]


def plotted(rows: pd.DataFrame) -> pd.DataFrame:
    """Without ranges of one cell, which the paper's plots do not show."""
    return rows[rows.query_size > 1]


def _exact_ratios(rows: pd.DataFrame, metric: str = EXACT) -> pd.Series:
    """error(L̃)/error(H̃) by closed forms, by panel, and by size if it has one; ε changes none."""
    own = of_paper(rows, metric)
    own = own[own.epsilon == own.epsilon.max()]
    keys = ["panel", "query_size"] if metric == EXACT else ["panel"]
    series = own.pivot_table(index=keys, columns="series", values="value")
    return (series[LEAVES] / series[NOISY_TREE]).rename("ratio")


def _measured(rows: pd.DataFrame, ours: str, other: str) -> pd.Series:
    return paired_ratios(of_paper(rows), ours, other, POINTS).at(0.95).estimate


def check_unit_ranges(rows, level: float) -> Finding:
    """Whether L̃ has less error than H̃ at one cell."""
    one = _exact_ratios(rows).xs(1, level="query_size")
    finding = check_lower(exact(one), level)
    measured = _measured(rows, LEAVES, NOISY_TREE).xs(1, level="query_size")
    return beside(
        finding, f"measured lower in {(measured < 1).sum()} of {len(measured)} panels"
    )


def check_linear(rows, level: float) -> Finding:
    """Whether the error of L̃ is the size times that of a cell, as measured too."""
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
    """Whether the mean error of H̃ rises, and by less than double with every doubling of the size."""
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
    """From which size on H̃ beats L̃."""
    sizes = {}
    for panel, ratio in _exact_ratios(rows).groupby("panel"):
        above = ratio.droplevel("panel").to_frame("mean")
        sizes[panel] = crossing(1 / above, 1 + 0 * above)
    numbers = exact(pd.Series(sizes), ratios=False)
    finding = claims.check_printed(numbers, level, PAPER["crossing"], unit=" cells")
    words = [f"{name} from {format_number(overtaken(own))}" for name, own in by_panel(rows)]
    return beside(finding, "measured: " + ", ".join(words))


def overtaken(rows) -> float:
    """Where the measured errors of one panel cross."""
    return crossing(error_curve(rows, NOISY_TREE), error_curve(rows, LEAVES))


def check_largest(rows, level: float) -> Finding:
    """How many times the error of H̃ that of L̃ is at the largest plotted sizes."""
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
    """Whether H̃ is better than L̃ over all ranges."""
    return check_lower(exact(1 / _exact_ratios(rows, metric)), level)


def check_heights(rows, level: float) -> Finding:
    """Whether the error of the worst range of H̄ grows no faster than ℓ³/ε², at 4ℓ³/ε² or less."""
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
