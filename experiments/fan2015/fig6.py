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

from experiments.fan2015.data import (
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
from workbench.claims import (
    ALIKE,
    Claim,
    Finding,
    Printed,
    all_of,
    decide,
    format_number,
    interpolate_log_log,
    mean_curve,
)
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
PRINTED_UP_TO = 100
SHOWN = 300
EPSILONS = (0.1, 1.0, 10.0)
OF = ("items", "edges")
EXACT = "exact"
PRINTED = "Equation 22"
CORRECTED = "corrected"
ZEROS = "all zeros"

PAPER = {
    "items": Printed.approximately("l = 30", 30, axis="x"),
    "edges": Printed.approximately("l = 5", 5, axis="x"),
}


def rows(profile: str, store) -> pd.DataFrame:
    """A row a dataset, method, ε, l, seed and table; what is known exactly in rows `theory`."""
    metrics = [MeanSquaredCountError(of) for of in OF]
    frames = []
    for case in cases(profile).values():
        sizes = sample_sizes(case, profile)
        fewer = case.of == "Netflix" and profile == "paper"
        mechanisms = []
        for size in sizes:
            mechanisms += sampling_mechanisms(case, l=size)
        for epsilon in EPSILONS:
            if epsilon != BUDGET.epsilon:
                mechanisms += [SRA(DP(epsilon), size) for size in sizes]
        sweep = Sweep([case.dataset], mechanisms, metrics, 3 if fewer else SEEDS[profile])
        frame = with_metric_columns(run(sweep, store), metrics)
        frames.append(name_series(frame, shown=["epsilon", "l", "d"]).assign(panel=case.name))
        frames.append(theory_rows(case, sizes))
    return pd.concat(frames, ignore_index=True)


def sample_sizes(case: Case, profile: str) -> list[int]:
    """The l that are tried: fewer of the largest dataset, and M at the end."""
    thin = profile == "paper" and case.of == "Netflix"
    below = [size for size in KEPT["quick" if thin else profile] if size < case.most]
    return [*below, case.most]


def theory_rows(case: Case, sizes: list[int]) -> pd.DataFrame:
    """SRA's squared error for this data at each l, and the best l by it and by two formulas."""
    data = case.dataset.load()
    entries = []
    for of in OF:
        columns = dataset_columns(case) | {"seed": 0, "of": of}
        counts = data.edge_counts() if of == "edges" else data.item_counts()
        zeros = {"epsilon": BUDGET.epsilon, "series": ZEROS, "metric": "Zeros"}
        entries.append(columns | zeros | {"value": float((counts**2).mean())})
        sampled = sampling_error(data, sizes, of)
        for epsilon in EPSILONS:
            columns["epsilon"] = epsilon
            share = SRA(DP(epsilon), 1).budgets()[OF.index(of)]
            errors = {}
            for size, error in zip(sizes, sampled, strict=True):
                errors[size] = error + variance(size, share, "geometric")
                theory = {"series": "SRA", "metric": "theory", "l": size}
                entries.append(columns | theory | {"value": errors[size]})
            best = {EXACT: min(errors, key=errors.get)}
            if of == "items":
                best |= formulas(data, share)
            for series, size in best.items():
                factor = {"series": series, "metric": "BestFactor", "value": size}
                entries.append(columns | factor)
    return pd.DataFrame(entries)


def formulas(data, epsilon: float) -> dict[str, float]:
    """The best l for items by Equation 22, summed over items, as printed and corrected; 1 … M.

    n users, each of M = records / n.
    """
    counts = data.item_counts()
    n = len(data.records_per_user())
    p = counts / len(data)
    most = len(data) / n
    squares = float((p**2).sum())
    noise = 4 * len(counts) / epsilon**2
    signal = 2 * n**2 * most * squares
    printed = (signal - n) / (noise + 2 * n**2 * squares - 2 * n * squares / most)
    corrected = (signal + n * (1 - squares)) / (noise + 2 * n**2 * squares)
    best = {PRINTED: printed, CORRECTED: corrected}
    return {name: float(np.clip(x, 1, most)) for name, x in best.items()}


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A line a dataset: items and edges, SRA's exact error dashed, and the best l over ε.

    Only l up to 300 of the `drawn` rows: from there on the error is the noise's.
    """
    grid = []
    for name in rows.panel.unique():
        for of in OF:
            where = {"panel": name, "of": of, "epsilon": 1.0, "metric": "MeanSquaredCountError"}
            theory = _error(rows, "SRA", name, of, metric="theory")["mean"]
            law = ("SRA, expected", interpolate_log_log(theory.index, theory))
            printed = PAPER[of] if name == panel_of(rows, "Foursquare") else ()
            grid.append(Panel(f"{name}: {of}", where, "l", theory=law, printed=printed))
        where = {"panel": name, "of": "items", "metric": "BestFactor"}
        grid.append(Panel(f"{name}: best l", where, "epsilon"))
    return grid


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are drawn; the corrected formula's l lie on those of Equation 22."""
    best = rows[(rows.metric == "BestFactor") & (rows.series != CORRECTED)]
    return pd.concat([rows[rows.l <= SHOWN], best])


def _error(rows, series: str, panel: str, of: str, epsilon=1.0, metric="MeanSquaredCountError"):
    where = dict(series=series, panel=panel, of=of, epsilon=epsilon, metric=metric)
    return mean_curve(rows, "l", **where)


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset and table: where the least error lies, and how much l = 10 or 30 costs."""
    lines = []
    for name in rows.panel.unique():
        for of in OF:
            foursquare = name == panel_of(rows, "Foursquare")
            line = {"dataset": name, "counts": of}
            line["the paper prints"] = PAPER[of].says if foursquare else ""
            errors = {s: _error(rows, s, name, of)["mean"] for s in ("SRA", "HPA")}
            for series, error in errors.items():
                line[f"best l, {series}"] = f"{error.idxmin():,.0f}"
                line[f"error there, {series}"] = format_number(error.min())
            zeros = mean_curve(rows, "of", panel=name, of=of, metric="Zeros")["mean"].iloc[0]
            line["error of all zeros"] = format_number(zeros)
            ratio = errors["SRA"] / _error(rows, "SRA", name, of, metric="theory")["mean"]
            line["SRA, measured over expected"] = f"{ratio.min():.3f} … {ratio.max():.3f}"
            lines.append(line)
    return pd.DataFrame(lines).set_index(["dataset", "counts"])


def best_sample_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """The best l for items over ε: by the exact error, measured, and by the two formulas."""
    factors = rows[(rows.metric == "BestFactor") & (rows.of == "items")]
    lines = []
    for (name, epsilon), best in factors.groupby(["panel", "epsilon"], sort=False):
        by_series = best.set_index("series").value.map(format_number)
        ours = _error(rows, "SRA", name, "items", epsilon)["mean"]
        line = {"dataset": name, "ε": epsilon, "exact": by_series[EXACT]}
        line["measured"] = f"{ours.idxmin():,.0f}"
        lines.append(line | {series: by_series[series] for series in (PRINTED, CORRECTED)})
    return pd.DataFrame(lines).set_index(["dataset", "ε"])


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
                valley = _valley(_error(rows, series, name, of))
                valleys[f"{name}, {of}, {series}"] = undecided_on_slice(name, valley)
    whole = all_of(valleys)
    rest = {name: valley for name, valley in valleys.items() if not valley.holds}
    measured = f"{len(valleys) - len(rest)} of {len(valleys)} curves are U-shaped"
    if rest:
        measured += f"; {all_of(rest).measured}"
    return Finding(whole.holds, measured, if_unsettled=whole.if_unsettled)


def _best(rows) -> Finding:
    name = panel_of(rows, "Foursquare")
    findings = {}
    for of in OF:
        for series in ("SRA", "HPA"):
            error = _error(rows, series, name, of).loc[:PRINTED_UP_TO]
            at = error.loc[PAPER[of].value]
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
        curves = [_error(rows, "SRA", name, "items", epsilon) for epsilon in EPSILONS]
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
