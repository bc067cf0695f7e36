"""What Cormode et al. 2012 say of Figure 2 (a), filters: a check a statement."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from experiments.cormode2012.fig2_rows import (
    LENGTH,
    ONE,
    OTHER_LENGTHS,
    OVER,
    SIGNED,
    TWO,
    errors,
    in_percent,
    of_ranges,
)
from experiments.cormode2012.paired import (
    all_or_none,
    may_be_best,
    ratios,
    select,
)
from experiments.cormode2012.shared import RELATIVE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    ORDERS,
    Finding,
    all_of,
    check_between,
    check_lower,
    decide,
    means,
)
from workbench.value import format_number


def by_size(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Errors of the two-sided filter, and of the one-sided one at the sizes of the former.

    Seed by seed, straight on logarithmic axes; θ at which one of them has no such size are left out.
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


def _varies(rows, level) -> Finding:
    asked = of_ranges(rows, "a", LENGTH)

    def up_to(theta, level):
        within = asked[asked.theta <= theta]
        by = within.groupby(["series", "theta"]).value.mean()
        (series, at), (other, least) = by.idxmax(), by.idxmin()
        most = select(within, series=series, theta=at).assign(theta=theta)
        against = ratios(
            most, select(within, series=other, theta=least).assign(theta=theta), "theta"
        )
        return check_between(against, level, low=ORDERS)

    return claims.over("largest θ", (50, 60, 70, 80, 90), up_to, level)


def two_sided_lower(
    rows, level, largest: int, panel: str = "a", length: int = LENGTH
) -> Finding:
    """Whether the two-sided filter has less error than the one-sided one of equal size, up to a θ."""
    two, one = by_size(of_ranges(rows, panel, length))
    asked = (own[own.theta <= largest] for own in (two, one))
    return check_lower(ratios(*asked, "theta"), level, OFTEN)


def _generally(rows, level) -> Finding:
    def up_to(largest, level):
        return two_sided_lower(rows, level, largest)

    return claims.over("largest θ", (50, 60, 70, 80, 90), up_to, level)


def _elsewhere(rows, level) -> Finding:
    places = {f"R = {length:,}": ("a", length) for length in OTHER_LENGTHS}
    places |= {panel: (panel, LENGTH) for panel in ("σ = 40", "ρ = 0.01")}
    swept = {
        f"{place}; {largest}": (largest, *where)
        for place, where in places.items()
        for largest in (50, 70, 90)
    }

    def at(place, level):
        return two_sided_lower(rows, level, *swept[place])

    return claims.over("range or data; largest θ", tuple(swept), at, level)


def _unbiased_filter(rows, level) -> Finding:
    held = _theory(rows, "HeldShare", series=TWO)
    answer = errors(rows, "theory", "MeanAnswer").value.iloc[0]
    signed = errors(rows, "a", SIGNED, series=TWO)
    signed = signed.assign(value=100 * signed.value / answer)

    def at(share, level):
        thetas = [theta for theta in held.index[held >= share] if theta <= 50]
        bias = means(select(signed, theta=tuple(thetas)), TWO, "theta")
        return check_between(bias, level, -0.5, 0.5, words="within 0.5 %", unit=" %")

    return claims.over("share in the sample", (0.5, 0.75, 0.9, 0.95, 0.99), at, level)


def around_one_percent(rows, level) -> Finding:
    """Whether the two-sided filter's relative error is at most about 1 %, up to θ = 50."""
    relative = errors(rows, "a", RELATIVE, series=TWO)
    relative = in_percent(relative[relative.theta <= 50])
    return check_between(means(relative, TWO, "theta"), level, high=1.5, unit=" %")


def _dominated(rows, level) -> Finding:
    parts = {}
    for series in (TWO, ONE):
        share = _theory(rows, "TrueShare", series=series, theta=(50, 60, 70, 80, 90))
        rises = all(before < after for before, after in pairwise(share))
        ends = " → ".join(f"{share[theta]:.1%}" for theta in (50, 90))
        parts[series] = Finding(bool(rises and share[90] > 0.5), ends)
    return all_of({name: lambda _, f=f: f for name, f in parts.items()}, level)


def _alike_when_small(rows, level) -> Finding:
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


def _over_estimates(rows, level) -> Finding:
    shares = errors(rows, "a", OVER)
    ever = shares.groupby("theta").value.max()
    shares = shares[shares.theta.isin(ever.index[ever > 0])]
    two = select(shares, series=TWO)
    return check_lower(ratios(two, select(shares, series=ONE), "theta"), level, OFTEN)


def _least_error(rows, level, metric: str, low: float, high: float) -> Finding:
    share = _theory(rows, metric, series=TWO)
    thetas = may_be_best(of_ranges(rows, "a", LENGTH, series=TWO), "theta", level)
    holds = all_or_none([low <= share[theta] <= high for theta in thetas])
    others = ", ".join(f"{theta:g}" for theta in sorted(thetas[1:]))
    measured = f"least at θ = {thetas[0]:g}: {share[thetas[0]]:.1%}"
    return Finding(holds, measured + f"; θ = {others} may be as good" * bool(others))


FILTER_CHECKS = {
    "c-2a-1.1": _varies,
    "c-2a-1.2": _generally,
    "c-2a-2.1": _unbiased_filter,
    "c-2a-2.2": around_one_percent,
    "c-2a-3.1": _dominated,
    "c-2a-3.2": _alike_when_small,
    "c-2a-4.1": _over_estimates,
    "c-2a-5.1": partial(_least_error, metric="HeldShare", low=0.75, high=1),
    "c-2a-5.2": partial(_least_error, metric="TrueShare", low=0.75, high=1),
    "c-2a-6.1": _elsewhere,
}
