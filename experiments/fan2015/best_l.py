"""Fan & Jin 2015: the checks of what Figure 6 and Theorem 2 say of the best l.

A step is clearly up, or down, where its interval says so; what is left within noise counts for neither.
"""

from __future__ import annotations

from functools import partial

from experiments.fan2015._five_methods import OURS, SQUARED
from experiments.fan2015._paper import rows_of
from experiments.fan2015.data import one_law
from experiments.fan2015.judged import swept
from workbench.compiled import pd
from workbench.trials.claims import (
    SOMEWHERE,
    Finding,
    Intervals,
    MissingPoints,
    all_of,
    check_lower,
    mean_curve,
    paired_ratios,
    steps,
)
from workbench.value import format_number

PRINTED_UP_TO = 100
FOURSQUARE = ["Foursquare"]


def error_curve(rows, series: str, panel: str, of: str, reading: str, metric=SQUARED):
    """The squared error over l, of one series on one dataset as built."""
    where = dict(series=series, panel=panel, of=of, reading=reading, metric=metric)
    return mean_curve(one_law(rows), "l", **where)


def _printed(rows, of: str) -> pd.DataFrame:
    """The rows of items or edges, for the l that the paper draws."""
    return rows[(rows.of == of) & (rows.l <= PRINTED_UP_TO)]


def _against(curve: pd.DataFrame, l: int) -> Intervals:  # noqa: E741
    """The error at every other l over that at one, seed by seed."""
    at = curve[curve.l == l].set_index("seed").value
    others = curve[curve.l != l].assign(series="other l")
    there = others.assign(series="that l", value=others.seed.map(at))
    return paired_ratios(pd.concat([others, there]), "other l", "that l", "l")


def _best(curve: pd.DataFrame) -> int:
    return int(curve.groupby("l").value.mean().idxmin())


def check_side(rows, level, of: str, after: bool) -> Finding:
    """The error falls from l = 1 to where it is least, or (`after`) grows from there; SRA and HPA."""
    own = _printed(rows[rows.metric == SQUARED], of)

    def check(own, level):
        parts = {}
        for series in OURS:
            curve = own[own.series == series]
            best = _best(curve)
            end = int(curve.l.max() if after else curve.l.min())
            side = curve[curve.l >= best] if after else curve[curve.l <= best]
            lower = partial(check_lower, _against(curve, end), share=SOMEWHERE)
            parts[f"{series} lower than at l = {end}"] = lower
            if best != end:
                back = partial(_no_step_back, side, series, after=after)
                parts[f"{series} least at l = {best}"] = back
        return all_of(parts, level)

    return swept(own, level, check, FOURSQUARE)


def _no_step_back(side, series: str, level: float, after: bool) -> Finding:
    """No step is clearly down after the least error, nor up before it."""
    numbers = steps(side, series, "l")
    table = numbers.at(1 - (1 - level) / len(numbers))
    back = table.high < 1 if after else table.low > 1
    which = ", ".join(f"{l:.0f}" for l in back.index[back])  # noqa: E741
    return Finding(not back.any(), f"steps back to l = {which}" if which else "no step back")


def check_best(rows, level, of: str, printed: int) -> Finding:
    """The least error lies within one step of the printed l, or is not clearly less than there.

    The exact law decides for SRA, what is measured for HPA.
    """
    own = _printed(rows, of)

    def check(own, level):
        parts = {
            "SRA": partial(_near_by_law, own[own.metric == "theory"], printed),
            "HPA": partial(
                _near, own[(own.metric == SQUARED) & (own.series == "HPA")], printed
            ),
        }
        return all_of(parts, level)

    return swept(own, level, check, FOURSQUARE, as_built=True)


def _steps_apart(curve: pd.DataFrame, best: int, printed: int) -> int:
    sizes = sorted(curve.l.unique())
    if printed not in sizes:
        raise MissingPoints(f"l = {printed}")
    return abs(sizes.index(best) - sizes.index(printed))


def _near_by_law(law: pd.DataFrame, printed: int, level: float) -> Finding:
    best = _best(law)
    return Finding(
        _steps_apart(law, best, printed) <= 1, f"least at l = {best} by the exact law"
    )


def _near(curve: pd.DataFrame, printed: int, level: float) -> Finding:
    best = _best(curve)
    measured = f"least at l = {best}"
    if _steps_apart(curve, best, printed) <= 1:
        return Finding(True, measured)
    ratio = _against(curve[curve.l.isin((best, printed))], best).at(level).iloc[0]
    return Finding(bool(ratio.low <= 1), f"{measured}, {ratio.estimate:.2f}× there")


def check_noise_makes_it(rows, level) -> Finding:
    """All of the rise of SRA's expected error from its least to l = 100, or more, is noise."""
    shares = {}
    for (reading, of), own in one_law(rows_of(rows, "Foursquare")).groupby(["reading", "of"]):
        by_metric = own[own.metric.isin(("theory", "noise"))]
        law = by_metric.pivot(index="l", columns="metric", values="value").loc[:PRINTED_UP_TO]
        rise = law.iloc[-1] - law.loc[law.theory.idxmin()]
        if rise.theory > 0:
            shares[f"{of}, ε {reading}"] = rise.noise / rise.theory
    measured = ", ".join(f"{name}: {share:.3f}×" for name, share in shares.items())
    return Finding(min(shares.values(), default=1) >= 1 - 1e-9, f"noise over rise: {measured}")


def _by_budget(rows) -> pd.DataFrame:
    """The expected errors of items on each dataset: a line a panel and l, a column an ε."""
    law = one_law(rows[(rows.metric == "theory") & (rows.of == "items")])
    return law.pivot(index=["panel", "l"], columns="epsilon", values="value")


def check_best_grows(rows, level) -> Finding:
    """SRA's best l for items never falls as ε grows, on any dataset."""
    best = _by_budget(rows).groupby("panel").idxmin().map(lambda place: place[1])
    told = [
        f"{name}: {' → '.join(f'{x:,.0f}' for x in line)}" for name, line in best.iterrows()
    ]
    return Finding(bool((best.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)), "; ".join(told))


def check_small_budgets_gain(rows, level) -> Finding:
    """The least expected error, over that without a bound, never falls as ε grows, on any dataset."""
    by_panel = _by_budget(rows).groupby("panel")
    shares = by_panel.min() / by_panel.last()
    told = [
        f"{name}: {format_number(line.iloc[0])} … {format_number(line.iloc[-1])}"
        for name, line in shares.iterrows()
    ]
    steps_up = shares.iloc[:, 1:].to_numpy() >= shares.iloc[:, :-1].to_numpy() * (1 - 1e-9)
    return Finding(bool(steps_up.all()), "; ".join(told))
