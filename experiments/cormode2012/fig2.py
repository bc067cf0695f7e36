"""Figure 2 of Cormode et al. (2012): how the error of each summary depends on its parameter. A summary is a
released part of the noisy counts.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.2 and Figure 2 (a)–(c). We also test what
        sections 2.1, C.2 and C.3 say in words. Theorems 1–4 of the paper are tested in the folder `tests`.
Read    We read all numbers from the text, because the plots are not in our copy.
Open    The paper prints the values of θ only for panel (c), and the lengths of ranges only for (a) and (b).
        Threshold sampling gets the τ for which the expected size is the stated size. We compute τ from the m,
        n and μ of the generator, which are public here (appendix C.2 uses ‖M‖₁ in the same way). For sections
        2.1 and C.2, we ask ten times as many queries, because few single cells of a sparse table have a
        count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from experiments._fields import unprinted, unprinted_number
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    Counts,
    OverEstimates,
    RoundedUp,
    above,
    expected_geometric_error,
    held_shares,
    may_be_best,
    metric_panel,
    to_best,
)
from workbench import DP, RandomRanges, RandomSubsets, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    ThresholdSampling,
    UniformSampling,
)
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    ORDERS,
    Finding,
    Printed,
    all_of,
    check_between,
    check_lower,
    decide,
    means,
    ratios,
    select,
)
from workbench.trials.metrics import (
    HeldCells,
    MeanAbsoluteError,
    MeanSignedError,
    MedianRelativeError,
)
from workbench.value import format_number, value

PAPER = {
    "a": Printed("consistently around 1 %", 0, 0.015),
    "b": Printed("in the range 1 % to 7 %", 0.005, 0.075),
    "c": Printed("within [0.3 %, 6 %]", 0.0025, 0.065),
}
SIGNED = "MeanSignedError"
OVER = "OverEstimates"
TWO = "filter"
ONE = "one-sided filter"
BOTH = "filter-priority"
LENGTH = 5000
DECADES = (100, 1000, 10_000, 100_000)
LENGTHS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000)
SMALL = (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
SAMPLES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)


# What Figure 2 takes from theory: what filters are expected to hold, and the τ of a sample's size.


def theory_rows(
    data: GaussianSparse, ranges: RandomRanges, thetas: Sequence[int], epsilon: float
) -> pd.DataFrame:
    """Return a data frame with expected values: which cells a filter is expected to release, and the mean
    answer to a range.
    """
    table = data.load()
    answers = table.answer(ranges.on(table.domain))
    rows = [{"metric": "MeanAnswer", "value": answers.mean()}]
    for series, sides in (("filter", 2), ("one-sided filter", 1)):
        for theta in thetas:
            _, held, true = held_shares(table, theta, sides, epsilon)
            shares = {"HeldShare": held, "TrueShare": true}
            point = {"series": series, "theta": theta}
            rows += [point | {"metric": name, "value": x} for name, x in shares.items()]
    columns = {"panel": "theory", "dataset": repr(data), "truth_public": True}
    return pd.DataFrame(rows).assign(**columns)


def tau_of_size(data: GaussianSparse, size: int, epsilon: float) -> float:
    """Return the threshold τ for which a threshold sample (a random sample that favours large noisy counts)
    is expected to contain `size` cells.

    It solves (m − n)·p_τ + n·min(μ/τ, 1) = size. Here p_τ is the probability that an empty cell is released,
    and each of the n non-empty cells is assumed to have the mean count μ.
    """
    from scipy.optimize import brentq

    n = round(data.density * data.m)

    def excess(tau: float) -> float:
        p = ThresholdSampling(DP(epsilon), tau=tau).survival(epsilon)
        return (data.m - n) * p + n * min(data.mean / tau, 1) - size

    if excess(1) <= 0:
        return 1.0
    most = max(10_000, data.m * (data.mean + 1 / epsilon) / size)
    return round(brentq(excess, 1, most), 1)


# What Cormode et al. 2012 say of Figure 2, and in words: the checks that reshape rows.


def errors(
    rows: pd.DataFrame, panel: str, metric: str = ABSOLUTE, **where: object
) -> pd.DataFrame:
    """Return the results of one metric in one panel."""
    return select(rows, panel=panel, metric=metric, **where)


def of_ranges(rows, panel: str, length: int, **where) -> pd.DataFrame:
    """Return the absolute errors of ranges with a given length."""
    return errors(rows, panel, query_size=length, **where)


def in_percent(rows) -> pd.DataFrame:
    """Return the same results with values in per cent."""
    return rows.assign(value=100 * rows.value)


def by_size(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the errors of the two-sided filter, and those of a one-sided filter of the same size. A
    two-sided filter keeps large absolute values, and a one-sided filter only large positive values.

    The errors of the one-sided filter are interpolated on logarithmic axes, for each seed. If a size is
    outside the range of one filter, its θ is left out.
    """
    two = select(rows, series=TWO)
    laws = {
        seed: claims.interpolate_log_log(own.released.tolist(), own.value.tolist())
        for seed, own in select(rows, series=ONE).sort_values("released").groupby("seed")
    }
    at = [float(laws[seed](size)) for seed, size in zip(two.seed, two.released, strict=True)]
    one = two.assign(value=at)
    missing = one.theta[one.value.isna()].unique()
    return two[~two.theta.isin(missing)], one[~one.theta.isin(missing)]


def _theory(rows, metric: str, **where) -> pd.Series:
    return errors(rows, "theory", metric, **where).set_index("theta").value


def varies(rows, level, largest: int) -> Finding:
    """Check whether the errors of filters with different θ (at most `largest`) differ by orders of
    magnitude.
    """
    asked = of_ranges(rows, "a", LENGTH)
    within = asked[asked.theta <= largest]
    by = within.groupby(["series", "theta"]).value.mean()
    (series, at), (other, least) = by.idxmax(), by.idxmin()
    most = select(within, series=series, theta=at).assign(theta=largest)
    least = select(within, series=other, theta=least).assign(theta=largest)
    return check_between(ratios(most, least, "theta"), level, low=ORDERS)


def two_sided_lower(rows, level, largest: int, place: int | str = LENGTH) -> Finding:
    """Check whether the two-sided filter has smaller errors than the one-sided filter of the same size, for θ
    up to `largest`.

    `place` is a length of ranges on the usual data, or the name of a panel with other data.
    """
    panel, length = (place, LENGTH) if isinstance(place, str) else ("a", place)
    two, one = by_size(of_ranges(rows, panel, length))
    asked = (own[own.theta <= largest] for own in (two, one))
    return check_lower(ratios(*asked, "theta"), level, OFTEN)


def unbiased_filter(rows, level, share: float) -> Finding:
    """Check whether the filter's bias is at most 0.5 % of a mean answer. Only θ up to 50 are tested for which
    the filter is expected to release at least the given share of the non-empty cells.
    """
    held = _theory(rows, "HeldShare", series=TWO)
    answer = errors(rows, "theory", "MeanAnswer").value.iloc[0]
    thetas = [theta for theta in held.index[held >= share] if theta <= 50]
    signed = select(errors(rows, "a", SIGNED, series=TWO), theta=thetas)
    bias = means(signed.assign(value=100 * signed.value / answer), TWO, "theta")
    return check_between(bias, level, -0.5, 0.5, words="within 0.5 %", unit=" %")


def around_one_percent(rows, level) -> Finding:
    """Check whether the relative error of the two-sided filter is at most about 1 % for θ up to 50."""
    relative = errors(rows, "a", RELATIVE, series=TWO)
    relative = in_percent(relative[relative.theta <= 50])
    return check_between(means(relative, TWO, "theta"), level, high=1.5, unit=" %")


def dominated(rows, level) -> Finding:
    """Check whether, for a large threshold θ, most cells that a filter releases are non-empty."""
    parts = {}
    for series in (TWO, ONE):
        share = _theory(rows, "TrueShare", series=series, theta=(50, 60, 70, 80, 90))
        rises = all(before < after for before, after in pairwise(share))
        ends = " → ".join(f"{share[theta]:.1%}" for theta in (50, 90))
        parts[series] = Finding(bool(rises and share[90] > 0.5), ends)
    return all_of({name: lambda _, f=f: f for name, f in parts.items()}, level)


def alike_when_small(rows, level) -> Finding:
    """Check whether the errors of the two filters become similar for small sizes."""
    two, one = by_size(of_ranges(rows, "a", LENGTH))
    against = ratios(one, two, "theta")
    points = against.at(1 - (1 - level) / 2).loc[[50, 90]]
    last = points.loc[90]
    inside = last.low >= 1 / ALIKE and last.high <= ALIKE
    outside = last.low > ALIKE or last.high < 1 / ALIKE
    away = points.map(lambda x: max(x, 1 / x) if x > 0 else float("inf"))
    most = away[["low", "high"]].max(axis=1)
    least = away[["low", "high"]].min(axis=1).where((points.low > 1) | (points.high < 1), 1)
    nearer = decide(most[90] < least[50], least[90] > most[50])
    measured = "; ".join(
        f"{format_number(points.estimate[theta])}× at the size of θ = {theta}"
        for theta in (50, 90)
    )
    return Finding(claims.decide_all([decide(inside, outside), nearer]), measured)


def over_estimates(rows, level) -> Finding:
    """Check whether the two-sided filter overestimates fewer answers than the one-sided filter. Values of θ
    for which neither filter overestimates are left out.
    """
    shares = errors(rows, "a", OVER)
    ever = shares.groupby("theta").value.max()
    shares = shares[shares.theta.isin(ever.index[ever > 0])]
    two = select(shares, series=TWO)
    return check_lower(ratios(two, select(shares, series=ONE), "theta"), level, OFTEN)


def least_error(rows, level, metric: str, low: float, high: float) -> Finding:
    """Check whether the filter with the smallest error has a share of cells between `low` and `high`.
    `metric` says which share is compared.
    """
    share = _theory(rows, metric, series=TWO)
    thetas = may_be_best(of_ranges(rows, "a", LENGTH, series=TWO), "theta", level)
    there = [low <= share[theta] <= high for theta in thetas]
    others = ", ".join(f"{theta:g}" for theta in sorted(thetas[1:]))
    measured = f"least at θ = {thetas[0]:g}: {share[thetas[0]]:.1%}"
    measured += f"; θ = {others} may be as good" * bool(others)
    return Finding(decide(all(there), not any(there)), measured)


def fixed_size(rows, level) -> Finding:
    """Check whether every priority sample has exactly the size that was requested."""
    sizes = errors(rows, "b", query_size=LENGTH)
    priority = select(sizes, series="priority")
    threshold = select(sizes, series="threshold")
    off = threshold.released / threshold.target
    measured = f"{(priority.released == priority.target).mean():.0%} of priority samples; "
    measured += f"threshold samples have {off.min():.1%} to {off.max():.1%} of theirs"
    return Finding(bool((priority.released == priority.target).all()), measured)


def relative_of_samples(rows, level, size: int) -> Finding:
    """Check whether threshold and priority samples of a given size have the relative errors that the paper
    prints.
    """
    relative = in_percent(
        errors(rows, "b", RELATIVE, target=size, series=("threshold", "priority"))
    )
    numbers = means(relative.assign(sample=relative.series, series="both"), "both", "sample")
    return check_between(numbers, level, 0.5, 7.5, words="as printed", unit=" %")


def end_of_relative(rows, level, length: int, low: float, high: float, end: str) -> Finding:
    """Check whether the smallest or the largest relative error over all θ is in the range that the paper
    prints.
    """
    relative = in_percent(_both(rows, length, RELATIVE))
    numbers = means(relative, BOTH, "theta")
    points = numbers.at(1 - (1 - level) / len(numbers))
    estimate, first, last = (getattr(points[c], end)() for c in ("estimate", "low", "high"))
    holds = decide(low <= first and last <= high, last < low or first > high)
    return Finding(holds, f"{format_number(estimate)} %")


def _both(rows, length: int, metric: str = ABSOLUTE, panel: str = "c") -> pd.DataFrame:
    return errors(rows, panel, metric, query_size=length).assign(series=BOTH)


def forty(rows, level, length: int) -> Finding:
    """Check whether θ = 40 is about as good for filter-priority sampling as any other θ."""
    error = _both(rows, length)
    others = error[error.theta != 40]
    at_forty = select(error, theta=40).drop(columns="theta")
    spread = others[["theta", "seed"]].merge(at_forty, on="seed")
    finding = check_between(ratios(spread, others, "theta"), level, high=ALIKE)
    best, _ = to_best(error, "theta")
    return replace(finding, measured=f"least at θ = {best:g}; {finding.measured}")


def neither(rows, level, length: int) -> Finding:
    """Check whether filter-priority sampling has larger errors for the smallest and for the largest θ than
    for a θ in between.
    """
    error = _both(rows, length)
    least = error[error.theta.between(10, 65)].groupby("theta").value.mean().idxmin()
    between = select(error, theta=least)
    parts = {
        f"θ = {end}": partial(
            above, ratios(select(error, theta=end).assign(theta=least), between, "theta")
        )
        for end in (5, 70)
    }
    finding = all_of(parts, 1 - (1 - level) / error.theta.nunique())
    return replace(finding, measured=f"against θ = {least:g}: {finding.measured}")


def smaller_for_larger(rows, level) -> Finding:
    """Check whether the best θ becomes smaller for longer ranges."""
    own = 1 - (1 - level) / len(DECADES)
    best = {r: may_be_best(_both(rows, r), "theta", own) for r in DECADES}
    small, large = best[DECADES[0]], best[DECADES[-1]]
    steps = [(best[before], best[after]) for before, after in pairwise(DECADES)]
    falls = all(after[0] <= before[0] for before, after in steps)
    surely_rises = any(min(after) > max(before) for before, after in steps)
    holds = decide(
        falls and large[0] < small[0] and small[0] not in large,
        surely_rises or min(large) >= max(small),
    )
    measured = "; ".join(f"R = {r:,}: {_thetas(best[r])}" for r in DECADES)
    return Finding(holds, measured)


def _thetas(best: list[float]) -> str:
    others = ", ".join(f"{theta:g}" for theta in sorted(best[1:]))
    return f"θ = {best[0]:g}" + f" (or {others})" * bool(others)


def density_matters(rows, level, length: int) -> Finding:
    """Check whether the best θ is different on sparser data."""
    dense = _both(rows, length)
    sparse = _both(rows, length, panel="c, sparse")
    own = 1 - (1 - level) / 2
    best = may_be_best(dense, "theta", own)
    best_sparse = may_be_best(sparse, "theta", own)
    measured = f"{_thetas(best)} at ρ = 0.1, {_thetas(best_sparse)} at ρ = 0.01"
    same = len({*best, *best_sparse}) == 1
    return Finding(decide(best[0] not in best_sparse, same), measured)


def unbiased(rows, level, series: str) -> Finding:
    """Check whether the mean error of a sample is 0 for every size, up to random variation."""
    numbers = means(errors(rows, "b", SIGNED, query_size=LENGTH), series, "target")
    points = numbers.at(1 - (1 - level) / len(numbers))
    zero = (points.low <= 0) & (points.high >= 0)
    largest = points.estimate.abs().max()
    measured = f"0 in the interval at {zero.sum()} of {len(zero)} sizes; "
    measured += f"at most {format_number(largest)} counts"
    return Finding(bool(zero.all()), measured)


@value
class Fig2(Counts, Figure):
    """Errors of range queries for each kind of summary, by the summary's parameter (its threshold or size)."""

    title = "Error of each summary by its size or threshold"
    headline = "A summary errs least when it keeps the true cells and few empty ones"
    rests_on = ("c-2a-5.1", "c-2a-5.2", "c-2c-2.1")
    page = "Cormode et al., ICDT 2012, section 4.2, Figure 2; sections 2.1, C.2, C.3"
    quick = {"seeds": 5, "queries": 200}
    rough = {"seeds": 2, "queries": 20}
    shown = ("theta", "tau", "size")
    columns = 3

    epsilon: float = epsilon(0.1)
    thetas: tuple[int, ...] = unprinted(
        tuple(range(5, 91, 5)), "thresholds θ of the filters", unit="counts"
    )
    both_thetas: tuple[int, ...] = whole(
        tuple(range(5, 71, 5)), "threshold θ of filter-priority", unit="counts"
    )
    sizes: tuple[int, ...] = unprinted(SAMPLES, "sizes s in (b)", unit="cells")
    size: int = whole(100_000, "size s of filter-priority", unit="cells")
    length: int = whole(5000, "length R of a range", unit="cells")
    lengths: tuple[int, ...] = unprinted(
        LENGTHS, "lengths R of the ranges in (c)", unit="cells"
    )
    wide_std: float = unprinted_number(40.0, "σ of other data", unit="counts")
    low_density: float = unprinted_number(0.01, "ρ of other data", 0, 1, strict=True)
    small: tuple[int, ...] = unprinted(SMALL, "sizes of ranges in section 2.1", unit="cells")
    queries: int = queries(1000)
    seeds: int = seeds(60)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: those of its three panels, and those for sections 2.1, C.2 and C.3 of
        Cormode et al. (2012).
        """
        budget = DP(self.epsilon)
        lengths = dict.fromkeys((self.length, *self.lengths))
        ranges = [RandomRanges(length, self.queries) for length in lengths]
        many = [RandomRanges(length, 10 * self.queries) for length in self.small]
        error = [MeanAbsoluteError(workload) for workload in ranges]
        relative = [MedianRelativeError(workload) for workload in ranges]
        bias = MeanSignedError(ranges[0])
        filters = [
            HighPassFilter(budget, theta=t, sides=s) for s in (2, 1) for t in self.thetas
        ]
        threshold = [ThresholdSampling(budget, tau=self.tau(size)) for size in self.sizes]
        samples = [*threshold, *(PrioritySampling(budget, size=size) for size in self.sizes)]
        straw = [UniformSampling(budget, size=size) for size in self.sizes[1::2]]
        both = partial(PrioritySampling, budget)
        few = round(self.size * self.low_density / self.density)
        raw = [
            MeanAbsoluteError(RandomRanges(1, many[0].count), w) for w in ("raw", "unbiased")
        ]
        of_filters = [*error, relative[0], bias, OverEstimates(ranges[0]), HeldCells()]
        subsets = MeanAbsoluteError(RandomSubsets(self.length, self.queries))
        runs = {
            "a": (filters, of_filters),
            "b": (samples + straw, [*error, relative[0], bias]),
            "c": ([both(size=self.size, theta=t) for t in self.both_thetas], error + relative),
            "c, sparse": ([both(size=few, theta=t) for t in self.both_thetas], error),
            f"σ = {self.wide_std:g}": (filters, error[:1]),
            f"ρ = {self.low_density:g}": (filters, error[:1]),
            "subsets": (filters + samples, [error[0], subsets]),
            "weights": (threshold, raw),
        }
        wide = replace(self.data, std=self.wide_std)
        sparse = replace(self.data, density=self.low_density)
        data = {f"σ = {self.wide_std:g}": wide, f"ρ = {self.low_density:g}": sparse}
        data["c, sparse"] = sparse
        sweeps = {
            x: Sweep([data.get(x, self.data)], *run, self.seeds) for x, run in runs.items()
        }
        sides = [MeanAbsoluteError(workload) for workload in many]
        table = [GeometricHistogram(budget)]
        sweeps["sides"] = Sweep([self.data], table, sides, self.seeds, [RoundedUp()])
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the values that theory expects for filters. The column `target`
        contains the size or the θ that a summary was given.
        """
        rows = super().rows(store)
        target = rows["size"].fillna(rows.tau.map({self.tau(s): s for s in self.sizes}))
        rows = rows.assign(target=target.fillna(rows.theta))
        rows = name_rows(rows)
        ranges = RandomRanges(self.length, self.queries)
        theory = theory_rows(self.data, ranges, self.thetas, self.epsilon)
        return pd.concat([rows, theory], ignore_index=True)

    def tau(self, size: int) -> float:
        """Return the threshold τ for which a threshold sample is expected to contain `size` cells."""
        return tau_of_size(self.data, size, self.epsilon)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: absolute errors, relative errors below them, and then the results for
        sections 2.1 and C.2 of Cormode et al. (2012).
        """
        law = partial(expected_geometric_error, epsilon=self.epsilon)
        at = f"R = {self.length:,}"
        cells = f"s = {self.size:,}"

        def panel(title: str, name: str, metric: str, x: str, **how) -> Panel:
            drawn = metric_panel(title, name, metric, x, **how)
            here = {} if name == "c" else {"query_size": self.length}
            return replace(drawn, where=drawn.where | here)

        return [
            panel(f"filters, {at}", "a", ABSOLUTE, "released", at="theta"),
            panel(f"samples, {at}", "b", ABSOLUTE, "released", at="target"),
            panel(f"filter-priority, {cells}", "c", ABSOLUTE, "theta", log="y"),
            panel(f"filters, {at}", "a", RELATIVE, "released", at="theta", printed=PAPER["a"]),
            panel(f"samples, {at}", "b", RELATIVE, "released", at="target", printed=PAPER["b"]),
            panel(
                f"filter-priority, {cells}", "c", RELATIVE, "theta", log="y", printed=PAPER["c"]
            ),
            panel(f"filters, {at}", "a", OVER, "theta", log=""),
            metric_panel(
                "full table: negatives kept or not (§2.1)",
                "sides",
                ABSOLUTE,
                theory=("geometric, theory", law),
            ),
            metric_panel(
                "one cell: weights (C.2)", "weights", ABSOLUTE, "released", at="target"
            ),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Panel (c) shows only every other length of ranges."""
        drawn = {self.length, *self.lengths[::2]}
        return rows[rows.panel.ne("c") | rows.query_size.isin(drawn)]


def name_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results with curve names (`series`) that distinguish weights, rounding and lengths. The
    column `queries` says whether queries are ranges or subsets.
    """
    weights = "threshold, " + rows.weights.map({"raw": "raw", "unbiased": "adjusted"})
    asked = rows.workload.str.startswith("RandomSubsets")
    kind = asked.map({True: "subsets", False: "ranges"}).where(rows.panel == "subsets")
    series = rows.series.mask(rows.panel == "weights", weights)
    series = series.mask(rows.estimator.eq("RoundedUp()"), "geometric, rounded up")
    lengths = rows.query_size.map("filter-priority, R = {:,.0f}".format)
    series = series.mask(rows.panel.str.startswith("c"), lengths)
    return rows.assign(series=series, queries=kind)
