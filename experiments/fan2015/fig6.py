"""Figure 6 and Theorem 2 of Fan & Jin (2015): how many records of each user (l) to keep.

Paper   Fan & Jin, WWW 2015: sections 4.1 and 6.2, Figure 6, Theorem 2 and Appendix A.
Read    We read all numbers from the text. Our copy of the plots has only the marks on the axes: l up to 100,
        errors of items from 10⁴ to 5·10⁴, and errors of edges from 10⁶ to 10⁹. The errors of items do not fit
        a budget of ε/2 = ½ for each table, because the noise alone has 8·10⁴ at l = 100. The mean error of
        edges cannot be 10⁶ for small l under any reading. The plot for edges may show a sum. So we only
        compare where the smallest error is.
Open    The paper shows Foursquare. We run it under both readings of ε. The exponent of popularity of its
        stand-in is the one that gives the numbers printed for Figure 5. Quick runs have three other
        exponents. All other datasets are run for comparison. l goes up to M, where no record is dropped. The
        figure also shows the exact expected error and Equation 22 (`SamplingTheory`). In a stand-in, n, M and
        the mean number of records per user are the paper's. How evenly records are spread over users is
        invented, and the best l depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted
from experiments.fan2015._counts import (
    DRAWN,
    IN_TITLES,
    OURS,
    READINGS,
    SQUARED,
    five_methods,
    mechanism_of_trials,
    swept,
)
from experiments.fan2015.data import (
    CALIBRATED,
    TWIN,
    Case,
    FanFigure,
    cases,
    datasets,
    one_law,
    panel_of,
    paper_first,
    popularities,
    records_for_popularity,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.unreleased import AllRecords
from workbench import DP, Sweep, run
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.figures import EFFORT, Figure
from workbench.figures.fields import choice, epsilon, epsilons, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import SRA
from workbench.noise import variance
from workbench.trials.claims import (
    SOMEWHERE,
    Finding,
    Intervals,
    MissingPoints,
    Printed,
    all_of,
    check_lower,
    interpolate_log_log,
    mean_curve,
    paired_ratios,
    steps,
)
from workbench.trials.metrics import MeanSquaredCountError, sampling_error
from workbench.value import format_number, parameter, value

OF = ("items", "edges")
EXACT = "exact"
PRINTED = "Equation 22"
CORRECTED = "corrected"
PRINTED_UP_TO = 100
FOURSQUARE = ["Foursquare"]
THIN = (1, 2, 5, 10, 20, 30, 50, 100, 300, 1000, 3000, 10_000)
DENSE = (
    *(1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100),
    *(200, 300, 500, 1000, 2000, 3000, 5000, 10_000),
)
AS_PRINTED, INVENTED = "printed", "invented"
TWIN_OF_FOURSQUARE = "Foursquare" + TWIN
PAPER = {
    "items": Printed.approximately("l = 30", 30, axis="x"),
    "edges": Printed.approximately("l = 5", 5, axis="x"),
}


# What SRA's squared error is on average, exactly and by the paper's Equation 22.
#
# The error is the squared loss by truncation, the variance of sampling without replacement, and the noise.
# All three are known exactly for given data. Equation 22 assumes independent users of M records each, and its
# variance of sampling is wrong: a part of it remains at l = M. The equation is for one item. We sum it over all
# items, as printed and corrected, with M = records / users and the true popularity.


@value
class SamplingTheory:
    """Metric: expected squared error of the mechanism SRA for each l (records kept per user) and ε, the part
    of it from noise, the best l, and the error of a table of zeros.
    """

    ls: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="records of each user")
    epsilons: tuple[float, ...] = parameter(low=0, strict=True, many=True, doc="ε of SRA")

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Return rows with the metrics `theory`, `noise`, `BestFactor` and `Zeros`, for items and for edges."""
        rows = []
        for of in OF:
            counts = truth.edge_counts() if of == "edges" else truth.item_counts()
            zeros = {"series": "all zeros", "metric": "Zeros", "value": (counts**2).mean()}
            rows.append({"of": of, "epsilon": self.epsilons[0]} | zeros)
            sampled = sampling_error(truth, self.ls, of)
            for budget in self.epsilons:
                share = SRA(DP(budget), 1).budgets()[OF.index(of)]
                noise = [variance(size, share, "geometric") for size in self.ls]
                errors = pd.Series(sampled + noise, self.ls)
                columns = {"of": of, "epsilon": budget}
                law = {"series": "SRA", "metric": "theory"}
                rows += [columns | law | {"l": size, "value": x} for size, x in errors.items()]
                by_noise = columns | {"series": "noise", "metric": "noise"}
                sizes = zip(self.ls, noise, strict=True)
                rows += [by_noise | {"l": size, "value": x} for size, x in sizes]
                best = {EXACT: errors.idxmin()}
                if of == "items":
                    best |= formulas(truth, share)
                rows += [
                    columns | {"series": series, "metric": "BestFactor", "value": float(size)}
                    for series, size in best.items()
                ]
        return pd.DataFrame(rows)


def formulas(data: Interactions, epsilon: float) -> dict[str, float]:
    """Return the best l (records kept per user) for items by Equation 22 of Fan & Jin (2015), summed over
    items, as printed and corrected. The result is between 1 and M.

    The formula assumes n users, each with M = records/n records.
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


# The checks of what Figure 6 and Theorem 2 say of the best l.
#
# A step is clearly up, or down, where its interval says so; what is left within noise counts for neither.


def error_curve(rows, series: str, panel: str, of: str, reading: str, metric=SQUARED):
    """Return the squared error by l (records kept per user), for one curve on one dataset. Stand-ins have
    their own assumed law of popularity.
    """
    where = dict(series=series, panel=panel, of=of, reading=reading, metric=metric)
    return mean_curve(one_law(rows), "l", **where)


def _printed(rows, of: str) -> pd.DataFrame:
    """Return the results of items or of edges for the l (records kept per user) that the paper draws."""
    return rows[(rows.of == of) & (rows.l <= PRINTED_UP_TO)]


def _against(curve: pd.DataFrame, l: int) -> Intervals:  # noqa: E741
    """Return the error at every other l divided by the error at the given l, by seed."""
    at = curve[curve.l == l].set_index("seed").value
    others = curve[curve.l != l].assign(series="other l")
    there = others.assign(series="that l", value=others.seed.map(at))
    return paired_ratios(pd.concat([others, there]), "other l", "that l", "l")


def _best(curve: pd.DataFrame) -> int:
    return int(curve.groupby("l").value.mean().idxmin())


def check_side(rows, level, of: str, after: bool) -> Finding:
    """Check whether the errors of the mechanisms SRA and HPA fall from l = 1 to their minimum. If `after` is
    True, check whether they grow from there on.
    """
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
    """Check that the error does not clearly fall after its minimum, or does not clearly grow before it."""
    numbers = steps(side, series, "l")
    table = numbers.at(1 - (1 - level) / len(numbers))
    back = table.high < 1 if after else table.low > 1
    which = ", ".join(f"{l:.0f}" for l in back.index[back])  # noqa: E741
    return Finding(not back.any(), f"steps back to l = {which}" if which else "no step back")


def check_best(rows, level, of: str, printed: int) -> Finding:
    """Check whether the smallest error is within one step of the printed l (records kept per user), or is not
    clearly smaller than the error at the printed l.

    For the mechanism SRA, the exact expected error decides. For HPA, the measured error decides.
    """
    own = _printed(rows, of)

    def check(own, level):
        measured = own[(own.metric == SQUARED) & (own.series == "HPA")]
        parts = {
            "SRA": partial(_near, own[own.metric == "theory"], printed, by_law=True),
            "HPA": partial(_near, measured, printed),
        }
        return all_of(parts, level)

    return swept(own, level, check, FOURSQUARE, as_built=True)


def _near(curve: pd.DataFrame, printed: int, level: float, by_law: bool = False) -> Finding:
    sizes = sorted(curve.l.unique())
    if printed not in sizes:
        raise MissingPoints(f"l = {printed}")
    best = _best(curve)
    near = abs(sizes.index(best) - sizes.index(printed)) <= 1
    measured = f"least at l = {best}" + " by the exact law" * by_law
    if near or by_law:
        return Finding(near, measured)
    ratio = _against(curve[curve.l.isin((best, printed))], best).at(level).iloc[0]
    return Finding(bool(ratio.low <= 1), f"{measured}, {ratio.estimate:.2f}× there")


def check_noise_makes_it(rows, level) -> Finding:
    """Check whether the increase of SRA's expected error from its minimum to l = 100 comes from noise alone."""
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
    """Return the expected errors of items, with one row per dataset and l, and one column per ε."""
    law = one_law(rows[(rows.metric == "theory") & (rows.of == "items")])
    return law.pivot(index=["panel", "l"], columns="epsilon", values="value")


def check_best_grows(rows, level) -> Finding:
    """Check whether SRA's best l (records kept per user) for items never becomes smaller for a larger ε, on
    any dataset.
    """
    best = _by_budget(rows).groupby("panel").idxmin().map(lambda place: place[1])
    told = [
        f"{name}: {' → '.join(f'{x:,.0f}' for x in line)}" for name, line in best.iterrows()
    ]
    return Finding(bool((best.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)), "; ".join(told))


def check_small_budgets_gain(rows, level) -> Finding:
    """Check whether the smallest expected error, divided by the error without a limit on records, never
    becomes smaller for a larger ε, on any dataset.
    """
    by_panel = _by_budget(rows).groupby("panel")
    shares = by_panel.min() / by_panel.last()
    told = [
        f"{name}: {format_number(line.iloc[0])} … {format_number(line.iloc[-1])}"
        for name, line in shares.iterrows()
    ]
    steps_up = shares.iloc[:, 1:].to_numpy() >= shares.iloc[:, :-1].to_numpy() * (1 - 1e-9)
    return Finding(bool(steps_up.all()), "; ".join(told))


@value
class Fig6(FanFigure, Figure):
    """Squared errors of the mechanisms SRA and HPA by l, the number of records that are kept per user."""

    title = "How many records of each user to keep"
    headline = "Keeping more records of each user first reduces the error, then increases it"
    rests_on = ("f-6.1", "f-6.2", "f-6.3", "f-6.4")
    main = 4
    page = "Fan & Jin, WWW 2015, sections 4.1 and 6.2, Figure 6; Theorem 2"
    quick = {"exponent": INVENTED, "netflix_users": 2000, "netflix_seeds": 1, "seeds": 1}
    rough = {"netflix_users": 2000, "netflix_seeds": 1, "seeds": 1}

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    epsilons: tuple[float, ...] = epsilons(
        (0.1, 0.3, 1.0, 3.0, 10.0), "values of ε of SRA for the best l"
    )
    l: tuple[int, ...] = effort(  # noqa: E741
        DENSE, "records of each user that are kept, and M", unit="records"
    )
    netflix_l: tuple[int, ...] = effort(THIN, "l on Netflix", unit="records")
    d: int | None = records_for_popularity()
    most: int | None = whole(None, "largest l, M (none: largest in the data)")
    exponent: str = choice(
        AS_PRINTED,
        (AS_PRINTED, INVENTED),
        "popularity of places in Foursquare's stand-in: as figure 5 prints, or all `popularities`",
        kind=EFFORT,
    )
    popularities: tuple[float, ...] = popularities()
    drawn_to: int = unprinted(PRINTED_UP_TO, "largest l that is drawn", 2)
    netflix_users: int = users_of_netflix()
    netflix_seeds: int = seeds(3, "number of releases on Netflix")
    seeds: int = seeds(20)

    def cases(self) -> dict[str, Case]:
        """Return the datasets, by the names of their panels."""
        chosen = cases(self.data, self.netflix_users, d=self.d, most=self.most)
        case = chosen.get(TWIN_OF_FOURSQUARE)
        if case and self.exponent == AS_PRINTED:
            twin = replace(case.dataset, popularity=CALIBRATED)
            chosen[case.name] = replace(case, dataset=twin)
        return chosen

    def laws(self, case: Case) -> dict[str, Any]:
        """Return a dataset under each assumed law of popularity. Only Foursquare's synthetic stand-in has
        several.
        """
        swept = case.of == "Foursquare" and self.exponent == INVENTED
        return case.laws(self.popularities if swept else ())

    def readings(self, case: Case) -> tuple[str, ...]:
        """Return the meanings of ε for a dataset (of the whole release, or of each table). Only the paper's
        Foursquare has several.
        """
        return DRAWN if case.of == "Foursquare" else DRAWN[:1]

    def sample_sizes(self, case: Case) -> tuple[int, ...]:
        """Return the numbers of records l that are tried. The last one is M."""
        tried = self.netflix_l if case.of == "Netflix" else self.l
        return (*sorted(size for size in tried if size < case.most), case.most)

    def mechanisms(self, case: Case, reading: str) -> list[Any]:
        """Return the mechanisms SRA and HPA for every l (records kept per user)."""
        mechanisms = []
        for size in self.sample_sizes(case):
            methods = five_methods(replace(case, l=size), self.epsilon, reading)
            mechanisms += [methods[series] for series in OURS]
        return mechanisms

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep (plan of runs) per dataset."""
        metrics = [MeanSquaredCountError(of) for of in OF]
        sweeps = {}
        for name, case in self.cases().items():
            by_reading = [self.mechanisms(case, reading) for reading in self.readings(case)]
            times = self.netflix_seeds if case.of == "Netflix" else self.seeds
            laws = [*self.laws(case).values()]
            sweeps[name] = Sweep(laws, sum(by_reading, []), metrics, times)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the meaning of ε and the assumed law of popularity. They include
        the exact expected errors of each dataset.
        """
        spent = {self.epsilon: READINGS[0], 2 * self.epsilon: READINGS[1]}  # by SRA
        budgets = tuple(sorted({*spent, *self.epsilons}))
        frames = []
        for name, sweep in self.sweeps().items():
            case = self.cases()[name]
            measured = run(sweep, store)
            readings = {
                repr(m): reading
                for reading in self.readings(case)
                for m in self.mechanisms(case, reading)
            }
            reading = mechanism_of_trials(measured).map(readings)
            measured = measured.assign(series=measured.mechanism_name, reading=reading)
            theory = SamplingTheory(self.sample_sizes(case), budgets)
            exactly = run(Sweep([case.dataset], [AllRecords()], [theory], 1), store)
            exactly = exactly.assign(reading=exactly.epsilon.map(spent))
            rows = pd.concat([measured, exactly])
            laws = {repr(x): law for law, x in self.laws(case).items()}
            frames.append(rows.assign(panel=name, law=rows.dataset.map(laws)))
        return pd.concat(frames, ignore_index=True)

    def curves(self, rows: pd.DataFrame) -> list[tuple[str, str, str]]:
        """Return the panels to draw. Each has a dataset, a meaning of ε, and a table (items or edges)."""
        measured = rows[rows.metric == "MeanSquaredCountError"]
        pairs = measured[["panel", "reading"]].drop_duplicates().itertuples(index=False)
        return [(name, reading, of) for name, reading in pairs for of in OF]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels for items and edges of each dataset, with Foursquare first. A dashed
        line shows SRA's expected error.
        """
        grid = []
        order = paper_first(rows, "Foursquare")
        for name, reading, of in sorted(self.curves(rows), key=lambda x: order.index(x[0])):
            theory = error_curve(rows, "SRA", name, of, reading, "theory")["mean"]
            law = ("SRA, expected", interpolate_log_log(theory.index, theory))
            printed = PAPER[of] if name == panel_of(rows, "Foursquare") else ()
            where = {"panel": name, "of": of, "reading": reading}
            where["metric"] = "MeanSquaredCountError"
            title = f"{name}: {of}, {IN_TITLES[reading].format(self.epsilon)}"
            grid.append(Panel(title, where, "l", log="y", theory=law, printed=printed))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results up to the largest l (records kept per user) that the paper draws. The axis of l
        is linear, as printed.
        """
        return one_law(rows[rows.l <= self.drawn_to])

    def best_sample_sizes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the best l (records kept per user) for items by the ε of a whole release: the
        exact best l, and those of the two formulas.
        """
        factors = rows[(rows.metric == "BestFactor") & (rows.of == "items")]
        factors = factors[factors.epsilon.isin(self.epsilons)]
        table = factors.pivot_table("value", ["panel", "epsilon"], "series", sort=False)
        table = table[[EXACT, PRINTED, CORRECTED]].map(format_number)
        return table.rename_axis(["dataset", "ε"]).rename_axis(None, axis=1)
