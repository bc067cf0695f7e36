"""What figures 8 and 9's rows are asked for adaptive2009's statements about recovered strings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from math import floor, inf, log2

import numpy as np

from experiments.adaptive2009._recovery import (
    FREQUENT,
    FROM_MOST_FREQUENT,
    OTHERS,
    PRINTED,
    SHARE,
    break_points,
    departures,
    frequency_text,
)
from experiments.adaptive2009._strings import of_log
from experiments.adaptive2009._techniques import BASIC, DIRECT, IMPROVED
from experiments.adaptive2009._unprinted import (
    check_against_both,
    check_over,
    check_over_both,
)
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    all_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)

EPSILONS = (10.0, 1.0, 0.1)
TECHNIQUES = (IMPROVED, DIRECT, BASIC)
TIMES = (50, 500, 5000)  # a string is frequent from so many occurrences on, times 1/ε
TIGHT = {"90%": 0.9, "95%": 0.95, "99%": 0.99}  # of the truth
ABOVE_ZERO = float(np.nextafter(0, 1))


def _judged(rows) -> pd.DataFrame:
    """The three techniques on the log's twin, beginnings counted as strings, as printed."""
    own = of_log(rows)
    return own[(own.reading == PRINTED) & own.series.isin(TECHNIQUES)]


def _from_most_frequent(rows) -> pd.DataFrame:
    own = _judged(rows)
    return own[(own.adding == FROM_MOST_FREQUENT) & (own.part == "all")]


def check_comparable(rows, level) -> Finding:
    """Whether direct synthesis recovers as much as either histogram, or more."""

    def check(own, level, other):
        ratios = paired_ratios(own, other, DIRECT, ["epsilon", "frequency"])
        words = "no more than 1.25×"
        return check_between(ratios, level, high=ALIKE, share=OFTEN, words=words)

    return check_against_both(check, _from_most_frequent(rows), level)


def check_ahead(rows, level, ours: str, others: tuple[str, ...]) -> Finding:
    """Whether at each ε it recovers more of the log in all than each of others."""

    def check(own, level):
        parts = {}
        for epsilon, other in product(EPSILONS, others):
            at = own[own.epsilon == epsilon]
            than = f"ε = {epsilon:g}, against {other}"
            parts[than] = partial(_more_in_all, at, ours, other)
        return all_of(parts, level)

    return check_over(check, _from_most_frequent(rows), level)


def _more_in_all(rows, ours: str, other: str, level) -> Finding:
    """What is recovered down to the least frequency there is."""
    total = rows[rows.frequency == rows.frequency.min()]
    ratios = paired_ratios(total, ours, other, "frequency")
    return check_between(ratios, level, low=float(np.nextafter(1, 2)), words="more in all")


def check_fidelity(rows, level) -> Finding:
    """Whether a larger share of frequent strings is recovered than of the others."""
    shares = _judged(rows)
    shares = shares[shares.metric == SHARE]

    def check(own, level, value):
        own = own[np.isclose(own.frequent * own.epsilon, value)]
        places = own.set_index(["series", "epsilon", "seed", "adding"])
        wide = places.value.unstack("adding").dropna()
        if wide.empty:
            return Finding(None, "no string is so frequent")
        more = (wide[FREQUENT] - wide[OTHERS]).rename("value").reset_index()
        more = more.rename(columns={"series": "technique"}).assign(series="more")
        numbers = means(more, "more", ["technique", "epsilon"])
        finding = check_between(numbers, level, low=ABOVE_ZERO, words="more")
        if finding.holds and set(wide.index.unique("epsilon")) != set(EPSILONS):
            finding = replace(finding, holds=None, why="no string is so frequent at every ε")
        mean = wide.groupby(["series", "epsilon"]).mean()
        ends = [f"{kind} {mean[kind].min():.1%}–{mean[kind].max():.1%}" for kind in mean]
        return replace(finding, measured=f"{', '.join(ends)}; {finding.measured}")

    return check_over_both(check, shares, level, "F × ε", {str(x): x for x in TIMES})


def check_breaks(rows, level) -> Finding:
    """Whether techniques break down nearer each other than one does at neighbouring ε."""

    def check(own, level):
        points = break_points(own).set_index(["seed", "series", "epsilon"]).value
        inside = (points > 0) & np.isfinite(points)  # of the frequencies there are
        table = points.where(inside).unstack("epsilon").reindex(columns=EPSILONS)
        releases = table.groupby("seed")
        apart = (releases.max() / releases.min())[releases.count() > 1].max(axis=1)
        steps = (table.shift(-1, axis=1) / table).groupby("seed").min().min(axis=1)
        if not (apart.notna() & steps.notna()).any():
            return Finding(None, "too few break points are among the frequencies there are")
        finding = _check_lower_by_seed(apart, steps, level)
        mean = np.exp(np.log(table).groupby("series").mean())
        texts = [f"ε = {e:g}: {', '.join(map(_point_text, mean[e].items()))}" for e in EPSILONS]
        both = f"techniques {apart.mean():.3g}× apart, ε's {steps.mean():.3g}× or more"
        return replace(finding, measured=f"{'; '.join(texts)}; {both}")

    return check_over(check, _judged(rows), level)


def _point_text(place) -> str:
    name, frequency = place
    return f"{name} {'left out' if np.isnan(frequency) else frequency_text(frequency)}"


def _check_lower_by_seed(ours: pd.Series, other: pd.Series, level) -> Finding:
    both = pd.concat({"ours": ours, "other": other}, names=["series"]).rename("value")
    return check_lower(
        paired_ratios(both.reset_index().assign(at=0), "ours", "other", "at"), level
    )


def check_longest(rows, level) -> Finding:
    """Whether at each ε the improved histogram stays tight down to a lower frequency than others."""

    def check(own, level, value):
        left = departures(own, value)
        parts = {}
        for other in (DIRECT, BASIC):
            ratios = paired_ratios(left, IMPROVED, other, "epsilon")
            parts[f"against {other}"] = partial(check_lower, ratios)
        return all_of(parts, level)

    return check_over_both(check, _judged(rows), level, "tight", TIGHT)


def check_long_strings(rows, level) -> Finding:
    """Whether long strings are most of what the improved histogram has more than the next best."""

    def check(own, level, value):
        left = departures(own, value)
        short = departures(own, value, part="short")
        parts = {}
        for epsilon in EPSILONS:
            mean = left[left.epsilon == epsilon].groupby("series").value.mean()
            best = mean.drop(IMPROVED).idxmin()
            if not 0 < mean[best] < inf:
                parts[f"ε = {epsilon:g}"] = lambda at: Finding(None, "none leaves the truth")
                continue
            curves = own[
                (own.frequency == 2 ** floor(log2(mean[best]))) & (own.epsilon == epsilon)
            ]
            parts[f"ε = {epsilon:g}, of long strings"] = partial(_mostly_long, curves, best)
            alone = paired_ratios(short[short.epsilon == epsilon], best, IMPROVED, "epsilon")
            name = f"ε = {epsilon:g}, short strings alone, {best} over improved"
            parts[name] = partial(check_between, alone, high=ALIKE)
        return all_of(parts, level)

    return check_over_both(check, _judged(rows), level, "tight", TIGHT)


def _mostly_long(rows, best: str, level) -> Finding:
    rows = rows[rows.adding == FROM_MOST_FREQUENT]
    wide = rows.set_index(["seed", "part", "series"]).value.unstack("series")
    more = (wide[IMPROVED] - wide[best]).unstack("part")
    beyond = (more["long"] - more["all"].abs() / 2).rename("value").reset_index()
    numbers = means(beyond.assign(series="beyond half", at=0), "beyond half", "at")
    finding = check_between(numbers, level, low=ABOVE_ZERO)
    surplus = f"{more['all'].mean():.2%} of the searches more than {best}"
    return replace(finding, measured=f"{surplus}, {more['long'].mean():.2%} of long strings")


def check_disparity(rows, level) -> Finding:
    """Whether the nine curves are furthest apart in the lower half of the logarithmic axis."""

    def check(own, level):
        places = own.set_index(["seed", "frequency", "series", "epsilon"]).value
        curves = places.unstack(["series", "epsilon"]).sort_index()
        classes = curves - curves.groupby("seed").shift(-1).fillna(0)
        spread = classes.max(axis=1) - classes.min(axis=1)
        logs = np.log2(spread.index.get_level_values("frequency").to_numpy(float))
        low = logs < logs.max() / 2
        lower, upper = (spread[half].groupby("seed").max() for half in (low, ~low))
        finding = _check_lower_by_seed(upper, lower, level)
        ends = f"{lower.mean():.2%} in the lower half, {upper.mean():.2%} in the upper"
        return replace(finding, measured=f"up to {ends}")

    return check_over(check, _from_most_frequent(rows), level)


CHECKS = {
    "a-4-3.1": check_comparable,
    "a-13-1.1": partial(check_ahead, ours=IMPROVED, others=(BASIC,)),
    "a-13-1.2": partial(check_ahead, ours=DIRECT, others=(BASIC,)),
    "a-8-1.1": check_fidelity,
    "a-8-1.2": check_breaks,
    "a-8-2.1": partial(check_ahead, ours=IMPROVED, others=(BASIC, DIRECT)),
    "a-8-2.2": check_longest,
    "a-8-2.3": check_long_strings,
    "a-8-3.1": check_disparity,
}
