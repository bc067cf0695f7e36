"""What Cormode et al. 2012 say of the count sketch in appendix C.6: a check a statement."""

from __future__ import annotations

from functools import partial

import pandas as pd

from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, format_size
from workbench import claims
from workbench.claims import OFTEN, Finding, check_lower, format_number

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
