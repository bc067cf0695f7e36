"""What Cormode et al. 2012 say of the count sketch in appendix C.6: a check a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import inf

from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, format_size
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, Printed, check_lower
from workbench.value import format_number

PAPER = {
    "depth": Printed("small values of d, such as d = 1", 1, 1, value=1, axis="x"),
    "theory": Printed("O(‖M‖₂/wd + d/ε²)", 0, inf),
}
SQUARED = "MeanSquaredError"
HELD = ("w·d", "w")
WIDTHS = (100_000, 1_000_000, 10_000_000)
OTHERS = ("filter", "priority")
ESTIMATES = ("mean", "median")
MARKS = {"mean": "x̄", "median": "x̃"}


def by_depth(rows: pd.DataFrame, panel: str, estimate: str) -> pd.DataFrame:
    """Errors of single cells by d; of one or two rows mean and median are the same."""
    own = select(rows, panel=panel, metric=ABSOLUTE)
    return own[(own.estimate == estimate) | (own.depth <= 2)]


def held(what: str, size: int) -> str:
    """The panel in which `w·d` or `w` is the same for all d."""
    return f"{what} = {format_size(size)}"


def _higher(rows, level) -> Finding:
    errors = select(rows, panel="range", metric=ABSOLUTE)

    def at(width, level):
        sketch = select(errors, mechanism="CountSketch", width=width)
        parts = {
            f"{other} lower": partial(
                check_lower,
                ratios(select(errors, series=other), sketch, "query_size"),
                share=OFTEN,
            )
            for other in OTHERS
        }
        return claims.all_of(parts, level)

    return claims.over("w", WIDTHS, at, level)


def _noise_dominates(rows, level) -> Finding:
    def at(width, level):
        own = select(rows, panel="theory", width=width).set_index("metric").value
        noise, sketching = own["NoiseVariance"], own["SketchingVariance"]
        measured = f"{format_number(noise)} of noise, {format_number(sketching)} of sketching"
        return Finding(bool(noise > sketching), measured)

    return claims.over("w", WIDTHS, at, level)


def _one_row(rows, level) -> Finding:
    cases = {
        f"{what} {format_size(size)} {MARKS[how]}": (held(what, size), how)
        for what in ("w·d", "w")
        for size in WIDTHS
        for how in ESTIMATES
    }

    def at(case, level):
        errors = by_depth(rows, *cases[case])
        more = errors[errors.depth > 1]
        one = select(errors, depth=1).drop(columns="depth")
        return check_lower(
            ratios(more[["depth", "seed"]].merge(one, on="seed"), more, "depth"), level
        )

    return claims.over("held", tuple(cases), at, level)


CHECKS = {"c-c6-1.1": _higher, "c-c6-1.2": _noise_dominates, "c-c6-1.3": _one_row}


def comparison(
    rows: pd.DataFrame, widths: Sequence[int], theory: Callable[[str, int], Callable]
) -> pd.DataFrame:
    """The best number of rows, beside the paper's; and the theory, beside what is measured."""
    lines = []
    for what, size in product(HELD, widths):
        panel = held(what, size)
        for estimate in ESTIMATES:
            error = by_depth(rows, panel, estimate).groupby("depth").value.mean()
            best = error.idxmin()
            measured = f"d = {best:g}, at {format_number(error[best])} counts"
            measured += f" (d = {error.index[-1]:g}: {format_number(error.iloc[-1])})"
            finding = Finding(PAPER["depth"].covers(best), measured)
            lines.append((f"{panel}, {estimate}: best d", PAPER["depth"], finding))
        squared = rows[(rows.panel == panel) & (rows.metric == SQUARED)]
        square = squared[squared.estimate == "mean"].groupby("depth").value.mean()
        ratio = square / theory(what, size)(square.index.to_numpy(float))
        finding = Finding(None, f"{ratio.min():.3f} … {ratio.max():.3f}")
        lines.append((f"{panel}: squared error / theory", PAPER["theory"], finding))
    return claims.compare_with_paper(*lines)
