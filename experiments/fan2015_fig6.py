"""Fan & Jin 2015, Figure 6 and Theorem 2: how many records of each user to keep.

Paper   Fan & Jin, WWW 2015: sections 4.1 and 6.2, Figure 6; Theorem 2 and Appendix A.
Read    from the text; of the plots our copy has only the marks on the axes: l to 100, errors of items
        from 10⁴ to 5·10⁴, of edges from 10⁶ to 10⁹. Neither fits ε/2 = ½ for each: the noise alone has
        8·10⁴ at l = 100, and the mean error of edges cannot be 10⁶ for small l. What was plotted for
        edges may be a sum. Only where the least error lies is compared.
Open    The paper shows Foursquare; every dataset is shown here, and l goes on to M, where nothing is
        dropped. What SRA's squared error is on average, over all that is drawn, is known exactly for
        given data: what the users lose, squared, the variance of sampling without replacement, and the
        noise. Equation 22 takes users of M records each, independent, and has the variance of sampling
        wrong (it keeps a part at l = M); it is for one item, and is summed over all here, once as
        printed and once corrected, with M = records / users and the true popularity: both are shown,
        not judged. Netflix has a third of the l and three seeds.
        In a twin, n, M and what users have on average are the paper's; how equal users and items are
        is its maker's choice, and the best l depends on both.
Words   U-shaped = the least mean error lies at neither end of l = 1 … M, both ends are above it with
        intervals apart, and no step is clearly the wrong way (more than 1.25×, intervals apart); items
        and edges, SRA and HPA, on every dataset. Best l = 30 (items) and 5 (edges) = on Foursquare, for
        l up to 100, the error there is within 1.25× of the least, SRA and HPA. Increases with ε = SRA's
        least mean error of items is at a larger l for ε = 1 than for 0.1, and for 10 than for 1 (as
        large where it is M already), on every dataset.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.fan2015_data import (
    BUDGET,
    SEEDS,
    Case,
    cases,
    dataset_columns,
    panel_of,
    sampling_mechanisms,
    undecided_on_slice,
    with_metric_columns,
)
from workbench import DP, Sweep, run
from workbench.claims import ALIKE, Claim, Finding, Printed, all_of, format_number, mean_curve
from workbench.mechanisms import SRA
from workbench.metrics import MeanSquaredCountError, sampling_error
from workbench.noise import variance
from workbench.plots import Panel, name_series

TITLE = "How many records of each user to keep"
PAGE = "Fan & Jin, WWW 2015, sections 4.1 and 6.2, Figure 6; Theorem 2"
KEPT = {
    "quick": (1, 2, 5, 10, 20, 30, 50, 100, 300, 1000, 3000, 10_000),
    "paper": (
        *(1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100),
        *(200, 300, 500, 1000, 2000, 3000, 5000, 10_000),
    ),
}
PRINTED_UP_TO, SHOWN = 100, 300
EPSILONS = (0.1, 1.0, 10.0)
OF = ("items", "edges")
EXACT, PRINTED, CORRECTED = "exact", "Equation 22", "corrected"
ZEROS = "all zeros"

PAPER = {
    "items": Printed.approximately("l = 30", 30, axis="x"),
    "edges": Printed.approximately("l = 5", 5, axis="x"),
}


def rows(profile: str, store) -> pd.DataFrame:
    """A row a dataset, method, ε, l, seed and table; what is known exactly in rows `theory`."""
    found = []
    for case in cases(profile).values():
        kept, seeds = sample_sizes(case, profile), SEEDS[profile]
        if case.of == "Netflix" and profile == "paper":
            seeds = 3
        mechanisms = [m for l in kept for m in sampling_mechanisms(case, l=l)]  # noqa: E741
        mechanisms += [SRA(DP(e), l) for e in EPSILONS if e != BUDGET.epsilon for l in kept]  # noqa: E741
        metrics = [MeanSquaredCountError(of) for of in OF]
        one = with_metric_columns(
            run(Sweep([case.dataset], mechanisms, metrics, seeds), store), metrics
        )
        found.append(name_series(one).assign(panel=case.name))
        found.append(theory_rows(case, kept))
    return pd.concat(found, ignore_index=True)


def sample_sizes(case: Case, profile: str) -> list[int]:
    """The l that are tried: fewer of the largest dataset, and M at the end."""
    thin = profile == "paper" and case.of == "Netflix"
    return [l for l in KEPT["quick" if thin else profile] if l < case.most] + [case.most]  # noqa: E741


def theory_rows(case: Case, kept: list[int]) -> pd.DataFrame:
    """SRA's squared error for this data at each l, and the best l by it and by two formulas."""
    data, rows = case.dataset.load(), []
    one = dataset_columns(case) | {"seed": 0}
    for of in OF:
        counts = data.edge_counts() if of == "edges" else data.item_counts()
        zeros = {"of": of, "epsilon": BUDGET.epsilon, "series": ZEROS, "metric": "Zeros"}
        rows.append(one | zeros | {"value": float((counts**2).mean())})
        sampled = sampling_error(data, kept, of)
        for epsilon in EPSILONS:
            share = SRA(DP(epsilon), 1).budgets()[OF.index(of)]
            errors = [
                before + variance(l, share, "geometric")
                for before, l in zip(sampled, kept, strict=True)  # noqa: E741
            ]
            here = one | {"of": of, "epsilon": epsilon}
            rows += [
                here | {"series": "SRA", "metric": "theory", "l": l, "value": error}
                for l, error in zip(kept, errors, strict=True)  # noqa: E741
            ]
            best = {EXACT: kept[int(np.argmin(errors))]}
            if of == "items":
                best |= formulas(data, share)
            rows += [
                here | {"series": s, "metric": "BestFactor", "value": x}
                for s, x in best.items()
            ]
    return pd.DataFrame(rows)


def formulas(data, epsilon: float) -> dict[str, float]:
    """The best l for items by Equation 22, summed over items, as printed and corrected; 1 … M.

    n users, each of M = records / n.
    """
    counts, n = data.item_counts(), len(data.records_per_user())
    p, most = counts / len(data), len(data) / n
    squares, noise = float((p**2).sum()), 4 * len(counts) / epsilon**2
    printed = (2 * n**2 * most * squares - n) / (
        noise + 2 * n**2 * squares - 2 * n * squares / most
    )
    corrected = (2 * n**2 * most * squares + n * (1 - squares)) / (noise + 2 * n**2 * squares)
    found = {PRINTED: printed, CORRECTED: corrected}
    return {name: float(np.clip(x, 1, most)) for name, x in found.items()}


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A line a dataset: items and edges, SRA's exact error dashed, and the best l over ε.

    Only l up to 300 of the `drawn` rows: from there on the error is the noise's.
    """
    found = []
    for name in rows.panel.unique():
        for of in OF:
            where = {"panel": name, "of": of, "epsilon": 1.0, "metric": "MeanSquaredCountError"}
            law = ("SRA, expected", _between(_error(rows, "SRA", name, of, 1.0, "theory")))
            printed = [PAPER[of]] * (name == panel_of(rows, "Foursquare"))
            found.append(Panel(f"{name}: {of}", where, "l", theory=law, printed=printed))
        where = {"panel": name, "of": "items", "metric": "BestFactor"}
        found.append(Panel(f"{name}: best l", where, "epsilon"))
    return found


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are drawn; the corrected formula's l lie on those of Equation 22."""
    known = rows[rows.metric == "BestFactor"]
    return pd.concat([rows[rows.l <= SHOWN], known[known.series != CORRECTED]])


def _between(line: pd.DataFrame):
    x, y = np.log(line.index.to_numpy(float)), np.log(line["mean"].to_numpy())
    return lambda at: np.exp(np.interp(np.log(at), x, y, np.nan, np.nan))


def _error(rows, series: str, panel: str, of: str, epsilon=1.0, metric="MeanSquaredCountError"):
    where = dict(series=series, panel=panel, of=of, epsilon=epsilon, metric=metric)
    return mean_curve(rows, "l", **where)


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset and table: where the least error lies, and how much l = 10 or 30 costs."""
    lines = []
    for name in rows.panel.unique():
        for of in OF:
            line = {"dataset": name, "counts": of}
            printed = PAPER[of].says * (name == panel_of(rows, "Foursquare"))
            line["the paper prints"] = printed
            for series in ("SRA", "HPA"):
                ours = _error(rows, series, name, of)["mean"]
                line[f"best l, {series}"] = f"{ours.idxmin():,.0f}"
                line[f"error there, {series}"] = format_number(ours.min())
            nothing = mean_curve(rows, "of", panel=name, of=of, metric="Zeros")["mean"].iloc[0]
            line["error of all zeros"] = format_number(nothing)
            law = _error(rows, "SRA", name, of, metric="theory")["mean"]
            measured = _error(rows, "SRA", name, of)["mean"]
            off = measured / law
            line["SRA, measured over expected"] = f"{off.min():.3f} … {off.max():.3f}"
            lines.append(line)
    return pd.DataFrame(lines).set_index(["dataset", "counts"])


def best_sample_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """The best l for items over ε: by the exact error, measured, and by the two formulas."""
    some = rows[(rows.metric == "BestFactor") & (rows.of == "items")]
    lines = []
    for (name, epsilon), there in some.groupby(["panel", "epsilon"], sort=False):
        known = there.set_index("series").value.map(format_number)
        ours = _error(rows, "SRA", name, "items", epsilon)["mean"]
        line = {"dataset": name, "ε": epsilon, "exact": known[EXACT]}
        line |= {"measured": f"{ours.idxmin():,.0f}"}
        lines.append(line | {s: known[s] for s in (PRINTED, CORRECTED)})
    return pd.DataFrame(lines).set_index(["dataset", "ε"])


def _valley(error: pd.DataFrame) -> Finding:
    """Whether it falls to a least value inside, and rises from there."""
    best = error["mean"].idxmin()
    least, ends = error.loc[best], error.iloc[[0, -1]]
    before, after = error.loc[:best], error.loc[best:]
    wrong = sum(
        (b["mean"] > ALIKE * a["mean"]) & (b.low > a.high)
        for part in (before, after[::-1])
        for (_, a), (_, b) in zip(
            part.iloc[:-1].iterrows(), part.iloc[1:].iterrows(), strict=True
        )
    )
    inside = best not in ends.index
    apart = bool((ends.low > least.high).all())
    measured = f"least at {best:,.0f}, " + " and ".join(
        f"{format_number(x / least['mean'])}× at {at:,.0f}" for at, x in ends["mean"].items()
    )
    holds = False if wrong or not inside else True if apart else None
    return Finding(holds, measured, if_unsettled=True)


def _shaped(rows) -> Finding:
    found = {}
    for name in rows.panel.unique():
        for of in OF:
            for series in ("SRA", "HPA"):
                told = _valley(_error(rows, series, name, of))
                found[f"{name}, {of}, {series}"] = undecided_on_slice(name, told)
    return _short(found)


def _short(parts: dict[str, Finding]) -> Finding:
    """As `every`, telling those that hold by their number of curves."""
    whole = all_of(parts)
    good = [name for name, part in parts.items() if part.holds]
    rest = {name: part for name, part in parts.items() if not part.holds}
    words = f"{len(good)} of {len(parts)} curves are U-shaped"
    told = f"{words}; {all_of(rest).measured}" if rest else words
    return Finding(whole.holds, told, if_unsettled=whole.if_unsettled)


def _best(rows) -> Finding:
    name, found = panel_of(rows, "Foursquare"), {}
    for of in OF:
        for series in ("SRA", "HPA"):
            error = _error(rows, series, name, of).loc[:PRINTED_UP_TO]
            at, least = error.loc[PAPER[of].value], error.loc[error["mean"].idxmin()]
            ratio = at["mean"] / least["mean"]
            maybe = at.low <= ALIKE * least.high
            holds = True if ratio <= ALIKE else None if maybe else False
            words = f"{format_number(ratio)}× the least, which is at l = {least.name:.0f}"
            found[f"{of}, {series}, {PAPER[of].says}"] = Finding(holds, words)
    return all_of(found)


def _u_shaped(rows) -> Finding:
    return all_of(
        {"U-shaped": _shaped(rows), f"best on {panel_of(rows, 'Foursquare')}": _best(rows)}
    )


def _increases(rows) -> Finding:
    found = {}
    for name in rows.panel.unique():
        curves = [_error(rows, "SRA", name, "items", epsilon) for epsilon in EPSILONS]
        at = [error["mean"].idxmin() for error in curves]
        top = curves[0].index[-1]
        ranges = [_candidates(error) for error in curves]
        pairs = list(zip(at[:-1], at[1:], strict=True))
        holds = all(a < b or a == b == top for a, b in pairs)
        against = any(
            a.min() >= b.max() and b.max() < top
            for a, b in zip(ranges[:-1], ranges[1:], strict=True)
        )
        words = " → ".join(f"{x:,.0f}" for x in at)
        found[name] = undecided_on_slice(
            name, Finding(True if holds else False if against else None, words)
        )
    return all_of(found)


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
