"""What Cormode et al. 2012 say of Figure 6(b): a check a statement."""

from __future__ import annotations

from experiments.cormode2012.data import judged
from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, CELLS, FILTER, FULL
from experiments.cormode2012.trees import CROSSING, THEORY, VARIANCE
from workbench.compiled import pd
from workbench.trials.claims import (
    OFTEN,
    Finding,
    Printed,
    check_lower,
    compare_with_paper,
    crossing,
    mean_curve,
)
from workbench.value import format_number

FROM = 0.01
PAPER = {"from": Printed.approximately("around 1 % of the data size", FROM, 0.005, axis="x")}
CELLS_OF_PAPER = 4001**2
CELLS_OF_FIG5 = 10**6


def _benefit(rows, level) -> Finding:
    variance = select(rows, panel=THEORY, metric=VARIANCE, m=CELLS_OF_PAPER)
    full, cells = (select(variance, series=x).value.item() for x in (FULL, CELLS))
    at_one = judged(rows[rows.metric.eq(ABSOLUTE) & rows.share.eq(FROM)])
    errors = at_one.groupby("series").value.mean()
    measured = f"{format_number(full / cells)}× the variance"
    if {FILTER, CELLS} <= {*errors.index}:
        filtered = format_number(errors[FILTER] / errors[CELLS])
        measured += f"; the filtered one has {filtered}× the error"
    return Finding(bool(full < cells), measured)


def _starts(rows, level) -> Finding:
    starts = select(rows, panel=THEORY, metric=CROSSING).set_index("m").value
    share = starts[CELLS_OF_PAPER] / CELLS_OF_PAPER
    told = [
        f"at {100 * start / m:.2g} % of m = {m:,.0f}, {format_number(start)} cells"
        for m, start in starts.items()
    ]
    return Finding(bool(share <= 0.015), "; ".join(told))


def _improves(rows, level) -> Finding:
    errors = select(judged(rows), metric=ABSOLUTE)
    ours, other = (select(errors, series=x) for x in (FILTER, FULL))
    return check_lower(ratios(ours, other, "share"), level, OFTEN)


CHECKS = {"c-6b-1.1": _benefit, "c-6b-1.2": _starts, "c-6b-1.3": _improves}


def comparison(rows: pd.DataFrame) -> pd.DataFrame:
    """Where dyadic ranges begin to pay off, beside what the paper prints, on every dataset."""
    lines = []
    for panel, own in rows[rows.panel != THEORY].groupby("panel", sort=False):
        cells = mean_curve(own, "share", series=CELLS)
        for series in own.series[own.series != CELLS].unique():
            share = crossing(mean_curve(own, "share", series=series), cells)
            found = f"from {100 * share:.2g} %" if share == share else "nowhere"
            line = f"{panel}: {series} beats cells"
            lines.append((line, PAPER["from"], Finding(None, found)))
    return compare_with_paper(*lines)
