"""Chen et al. 2012, Figure 2: the error of kernel PCA over its trade-off α.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 2.
Read    from the text; the plots are not in our copy, and no number is printed. (c) and (d) are, by the
        text, of one kind of queries and of two; which two is not said. Here (c) is new ranges from past
        ranges, (d) new ranges from past tables, what the caption of Figure 3 calls general queries.
Open    Data, m, noise and prior: `chen2012_data`. α from 10 to 10⁷ tuples, two a decade: the ends are
        the prior alone and, for as few queries, the unbiased answer. The paper does not say over which
        values it draws. Intervals are uniform among all that are not empty. Inner products are averages
        over the prior, where the paper's may be sums: its α is then another by √N.
        With fewer queries than the paper's 5000 and sensitivities that are computed, the noise is a
        tenth of its Lap(5000). "Lap(5000)" is the twin with that noise, which costs ε = 0.1 to 0.2 for
        1500 queries; it was added after the first run, and is not judged.
        Kernel PCA only; maximum entropy stands beside it in Figure 4.
Words   a suitable α beats both ends = the least mean error lies inside the grid, both ends above it,
        intervals apart. The prior helps most at small α = error without over error with prior is above
        1 at the smallest α, its interval too, and nowhere more than 1.25× what it is there; vanishes =
        it is within 1.25× of 1 at the largest. Reasonable answers = the least error is below the noise
        of an answer that was bought, interval included; need a small, suitable α = that α lies inside
        the grid, the smallest above it with intervals apart, the largest 3× above it; across kinds =
        both in (c) and in (d). Much the same α = that of past queries costs new ones no more than
        1.25× their least error, and the other way round. Everything on every dataset, with and without
        prior.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.chen2012.data import (
    ALPHAS,
    KINDS,
    NEW,
    PAST,
    SEEDS,
    WITH,
    WITHOUT,
    Case,
    cases,
    dataset_columns,
    exact_answers,
    noise_budget,
    noisy_answers,
    prior,
    random_queries,
)
from workbench.claims import (
    ALIKE,
    MUCH,
    Claim,
    Finding,
    all_of,
    decide,
    format_number,
    mean_curve,
)
from workbench.inference import KernelPCA
from workbench.metrics import rmse
from workbench.plots import Panel

TITLE = "Error of kernel PCA over its trade-off α"
PAGE = "Chen et al., EDBT 2012, section 5.1, Figure 2"
PAPER: dict = {}  # no number is printed
PANELS = {
    "a": "past ranges",
    "b": "past tables",
    "c": "new ranges, from ranges",
    "d": "new ranges, from tables",
}
PRINTED = 5000.0
AS_PRINTED = ", Lap(5000)"
PAIRS = (("a", "c"), ("b", "d"))  # of past and new queries, by what was bought


def rows(profile: str, store) -> pd.DataFrame:
    """A row a dataset, panel, prior, α and seed; cheap enough not to be stored."""
    measured = []
    for case in cases().values():
        table = case.dataset.load()
        for seed in range(SEEDS[profile]):
            for kind in KINDS:
                for scale in (None, PRINTED) if case.twin else (None,):
                    measured += error_rows(case, table, kind, seed, profile, scale)
    return pd.DataFrame(measured).sort_values("case", kind="stable", ignore_index=True)


def error_rows(
    case: Case, table, kind: str, seed: int, profile: str, scale: float | None
) -> Iterator[dict]:
    """Of one history: errors on its own queries and on new ranges, at every α.

    The noise costs ε = 1, or whatever a `scale` of Laplace's law costs.
    """
    place = [*KINDS].index(kind)
    past = random_queries(kind, PAST[profile], seed)
    budget = noise_budget(table, past, scale)
    history = noisy_answers(table, past, place, seed, budget=budget)
    new = random_queries("ranges", NEW[profile], seed, new=True)
    columns = dataset_columns(case, seed=seed, metric="RMSE", queries=len(history))
    columns["epsilon"] = budget.epsilon
    columns["deviation"] = float(history.variances[0] ** 0.5)
    if scale is not None:
        columns["case"] += AS_PRINTED
    queries = dict(zip(PAIRS[place], (history.workload, new), strict=True))
    exact = {panel: exact_answers(table, workload) for panel, workload in queries.items()}
    for series, weights in {WITHOUT: None, WITH: prior(table, seed)}.items():
        eigen = KernelPCA(1.0, case.total, weights)(history).eigen
        for panel, workload in queries.items():
            answers = eigen.project(workload)
            for alpha in ALPHAS.tolist():
                value = rmse(answers.values(alpha), exact[panel])
                yield columns | dict(panel=panel, series=series, alpha=alpha, value=value)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Four a dataset; the noise of a bought answer is dashed."""
    grid = []
    for case in rows.case.unique():
        for panel, label in PANELS.items():
            noise = _noise(rows, case, panel)
            dashes = ("noise of a bought answer", lambda x, noise=noise: np.full(len(x), noise))
            where = {"case": case, "panel": panel}
            grid.append(Panel(f"({panel}) {label}: {case}", where, "alpha", theory=dashes))
    return grid


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset, panel and prior: the best α, and errors there, at both ends, and bought."""
    lines = []
    for case, panel, series, error in _curves(rows, rows.case.unique()):
        best = error["mean"].idxmin()
        line = {"dataset": case, "panel": f"({panel}) {PANELS[panel]}", "": series}
        line |= {
            "best α": format_number(best),
            "RMSE there": format_number(error["mean"][best]),
        }
        line["at α = 10"] = format_number(error["mean"].iloc[0])
        line["at α = 10⁷"] = format_number(error["mean"].iloc[-1])
        line["noise bought"] = format_number(_noise(rows, case, panel))
        lines.append(line)
    return pd.DataFrame(lines).set_index(["dataset", "panel", ""])


def _judged(rows) -> list[str]:
    return [case for case in rows.case.unique() if not case.endswith(AS_PRINTED)]


def _curves(rows, cases, panels=tuple(PANELS)) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    for case in cases:
        for panel in panels:
            for series in (WITHOUT, WITH):
                yield case, panel, series, _error(rows, case, panel, series)


def _error(rows, case: str, panel: str, series: str) -> pd.DataFrame:
    return mean_curve(rows, "alpha", case=case, panel=panel, series=series)


def _noise(rows, case: str, panel: str) -> float:
    return float(rows[(rows.case == case) & (rows.panel == panel)].deviation.mean())


def _best_inside(error: pd.DataFrame, times: float = 1.0) -> Finding:
    """Whether the least error is at neither end; the largest α has `times` as much, or more."""
    best = error["mean"].idxmin()
    least = error.loc[best]
    first = error.iloc[0]
    last = error.iloc[-1]
    measured = f"least {format_number(least['mean'])} at α = {format_number(best)}, "
    measured += f"{format_number(first['mean'] / least['mean'])}× and "
    measured += f"{format_number(last['mean'] / least['mean'])}×"
    if best in (error.index[0], error.index[-1]) or last.high < times * least.low:
        return Finding(False, measured)
    apart = first.low > least.high and last.low > times * least.high
    leans = last["mean"] >= times * least["mean"]
    return Finding(True if apart else None, measured, if_unsettled=leans)


def gains(rows: pd.DataFrame, case: str, panel: str) -> pd.DataFrame:
    """Error without prior over error with it, seed by seed, and its interval at every α."""
    errors = rows[(rows.case == case) & (rows.panel == panel)]
    errors = errors.pivot_table("value", ["alpha", "seed"], "series")
    return mean_curve((errors[WITHOUT] / errors[WITH]).rename("value").reset_index(), "alpha")


def _prior_gain(rows, case: str, panel: str) -> Finding:
    gain = gains(rows, case, panel)
    first = gain.iloc[0]
    last = gain["mean"].iloc[-1]
    largest = gain["mean"].max()
    measured = (
        f"{format_number(first['mean'])}× at the smallest α, at most {format_number(largest)}× "
    )
    measured += (
        f"(α = {format_number(gain['mean'].idxmax())}), {format_number(last)}× at the largest"
    )
    vanishes = 1 / ALIKE <= last <= ALIKE
    if not vanishes or first.high < 1 or largest > ALIKE * first["mean"]:
        return Finding(False, measured)
    return Finding(True if first.low > 1 else None, measured, if_unsettled=first["mean"] > 1)


def _past(rows) -> Finding:
    parts = {}
    for case, panel, series, error in _curves(rows, _judged(rows), "ab"):
        parts[f"{case}, ({panel}), {series}"] = _best_inside(error)
    for case in _judged(rows):
        for panel in "ab":
            parts[f"{case}, ({panel}), gain of the prior"] = _prior_gain(rows, case, panel)
    return all_of(parts)


def _new(rows) -> Finding:
    parts = {}
    for case, panel, series, error in _curves(rows, _judged(rows), "cd"):
        name = f"{case}, ({panel}), {series}"
        noise = _noise(rows, case, panel)
        least = error.loc[error["mean"].idxmin()]
        holds = decide(least.high < noise, least.low > noise)
        measured = f"{format_number(least['mean'] / noise)}× the noise bought"
        parts[f"{name}: reasonable"] = Finding(
            holds, measured, if_unsettled=least["mean"] < noise
        )
        parts[f"{name}: small and suitable"] = _best_inside(error, MUCH)
    return all_of(parts)


def _same_alpha(rows) -> Finding:
    parts = {}
    for case in _judged(rows):
        for past_panel, new_panel in PAIRS:
            for series in (WITHOUT, WITH):
                past = _error(rows, case, past_panel, series)
                new = _error(rows, case, new_panel, series)
                both = {
                    "for new": near_least(new, past["mean"].idxmin()),
                    "for past": near_least(past, new["mean"].idxmin()),
                }
                parts[f"{case}, ({past_panel}) and ({new_panel}), {series}"] = all_of(both)
    return all_of(parts)


def near_least(error: pd.DataFrame, alpha: float) -> Finding:
    """Whether the error at α is within 1.25× of the least."""
    at = error.loc[alpha]
    least = error.loc[error["mean"].idxmin()]
    ratio = at["mean"] / least["mean"]
    measured = f"{format_number(ratio)}× at α = {format_number(alpha)}, best {format_number(least.name)}"
    return Finding(decide(ratio <= ALIKE, at.low > ALIKE * least.high), measured)


CLAIMS = (
    Claim(
        "n-2a",
        "On past queries a suitable α beats both ends; the prior helps most at small α, and its effect "
        "vanishes as α grows.",
        _past,
        "The noise is a tenth of the paper's: a larger α than the best costs 1.4× at most with prior, "
        "and nothing without. On tables the prior gains most at α = 3,000. With the paper's noise and "
        "the prior there is a best α.",
    ),
    Claim(
        "n-2b",
        "New queries get reasonable answers from past ones alone, at a small, suitable α, across kinds "
        "of queries.",
        _new,
        "At so little noise 1500 questions do not answer a new one as well as buying it would; at "
        "Lap(5000), with prior, they do. A large α costs little: so few queries hardly overlap.",
    ),
    Claim(
        "n-2c",
        "The best α is much the same for past and for new queries.",
        _same_alpha,
        "It is in all but one of eight: on the twin without prior new ranges do best at a tenth of the "
        "α, where past ones err half as much again.",
    ),
)
