"""Fan & Jin 2015: what Figure 6 and Theorem 2 say of the best l, and whether errors are so.

Words   U-shaped = the least mean error lies at neither end of l = 1 … M, both ends are above it with
        intervals apart, and no step is clearly the wrong way (more than 1.25×, intervals apart); items
        and edges, SRA and HPA, on every dataset. Best l = 30 (items) and 5 (edges) = on Foursquare, for
        l up to 100, the error there is within 1.25× of the least, SRA and HPA. Increases with ε = SRA's
        least mean error of items is at a larger l for ε = 1 than for 0.1, and for 10 than for 1 (as
        large where it is M already), on every dataset.
"""

from __future__ import annotations

import pandas as pd

from experiments.fan2015.data import panel_of, undecided_on_slice
from experiments.fan2015.sampling_theory import OF
from workbench.claims import ALIKE, Finding, Printed, decide, format_number, mean_curve
from workbench.claims.old import Claim, all_of

PRINTED_UP_TO = 100
EPSILONS = (0.1, 1.0, 10.0)
PAPER = {
    "items": Printed.approximately("l = 30", 30, axis="x"),
    "edges": Printed.approximately("l = 5", 5, axis="x"),
}


def error_curve(
    rows, series: str, panel: str, of: str, epsilon=1.0, metric="MeanSquaredCountError"
):
    """The squared error over l, of one series on one dataset."""
    where = dict(series=series, panel=panel, of=of, epsilon=epsilon, metric=metric)
    return mean_curve(rows, "l", **where)


def _valley(error: pd.DataFrame) -> Finding:
    """Whether it falls to a least value inside, and rises from there."""
    best = error["mean"].idxmin()
    least = error.loc[best]
    ends = error.iloc[[0, -1]]
    wrong = _clearly_up(error.loc[:best]) or _clearly_up(error.loc[best:][::-1])
    ratios = ends["mean"] / least["mean"]
    measured = f"least at {best:,.0f}, "
    measured += " and ".join(
        f"{format_number(ratio)}× at {at:,.0f}" for at, ratio in ratios.items()
    )
    if wrong or best in ends.index:
        return Finding(False, measured, if_unsettled=True)
    return Finding(decide((ends.low > least.high).all(), False), measured, if_unsettled=True)


def _clearly_up(error: pd.DataFrame) -> bool:
    """Whether any point is more than 1.25× the one before, intervals apart."""
    before = error.iloc[:-1]
    after = error.iloc[1:].set_axis(before.index)
    up = (after["mean"] > ALIKE * before["mean"]) & (after.low > before.high)
    return bool(up.any())


def _shaped(rows) -> Finding:
    valleys = {}
    for name in rows.panel.unique():
        for of in OF:
            for series in ("SRA", "HPA"):
                valley = _valley(error_curve(rows, series, name, of))
                valleys[f"{name}, {of}, {series}"] = undecided_on_slice(name, valley)
    whole = all_of(valleys)
    rest = {name: valley for name, valley in valleys.items() if not valley.holds}
    measured = f"{len(valleys) - len(rest)} of {len(valleys)} curves are U-shaped"
    if rest:
        measured += f"; {all_of(rest).measured}"
    return Finding(whole.holds, measured, if_unsettled=whole.if_unsettled)


def _best(rows) -> Finding:
    name = panel_of(rows, "Foursquare")
    near = rows[rows.l <= PRINTED_UP_TO]
    findings = {}
    for of in OF:
        there = near[near.l == PAPER[of].value]
        for series in ("SRA", "HPA"):
            at = error_curve(there, series, name, of).iloc[0]
            error = error_curve(near, series, name, of)
            least = error.loc[error["mean"].idxmin()]
            ratio = at["mean"] / least["mean"]
            holds = decide(ratio <= ALIKE, at.low > ALIKE * least.high)
            measured = f"{format_number(ratio)}× the least, which is at l = {least.name:.0f}"
            findings[f"{of}, {series}, {PAPER[of].says}"] = Finding(holds, measured)
    return all_of(findings)


def _u_shaped(rows) -> Finding:
    best = f"best on {panel_of(rows, 'Foursquare')}"
    return all_of({"U-shaped": _shaped(rows), best: _best(rows)})


def _increases(rows) -> Finding:
    findings = {}
    for name in rows.panel.unique():
        curves = [error_curve(rows, "SRA", name, "items", epsilon) for epsilon in EPSILONS]
        best = [error["mean"].idxmin() for error in curves]
        top = curves[0].index[-1]
        steps = zip(best, best[1:], strict=False)
        holds = all(a < b or a == b == top for a, b in steps)
        possible = [_candidates(error) for error in curves]
        steps = zip(possible, possible[1:], strict=False)
        against = any(a.min() >= b.max() and b.max() < top for a, b in steps)
        finding = Finding(decide(holds, against), " → ".join(f"{x:,.0f}" for x in best))
        findings[name] = undecided_on_slice(name, finding)
    return all_of(findings)


def _candidates(error: pd.DataFrame) -> pd.Index:
    """The l whose error may be the least, as far as intervals tell."""
    return error.index[error.low <= error.high[error["mean"].idxmin()]]


CLAIMS = (
    Claim(
        "f-6",
        "The squared error over l is U-shaped; on Foursquare it is least at l = 30 (items) and 5 "
        "(edges).",
        _u_shaped,
        "Edges are so few records each that one record a user is best on three datasets: all zeros "
        "would be no worse. On Foursquare's twin l = 30 and 5 are within 1.25× of the least for SRA; "
        "HPA, which loses less of the popular items, is best at a smaller l, 15 instead of 30.",
    ),
    Claim("f-th2", "The l of least squared error increases with ε.", _increases),
)
