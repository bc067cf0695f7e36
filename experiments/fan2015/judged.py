"""Fan & Jin 2015: the checks of what Figures 7 and 8 say of counts by five methods.

Rows have a `reading` of ε and, of each twin, the `law` of its items' popularity; a file has the law FILE.
A statement is asked of every pair of the two. A twin's law cannot contradict the paper: where a statement
holds under none it is not testable, unless every dataset is a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from itertools import product
from math import nextafter, sqrt

from experiments.fan2015._counts import METHODS, OTHERS, OURS, READINGS
from experiments.fan2015.data import AS_BUILT, CUT, FILE, one_law, rows_of
from experiments.fan2015.unreleased import TopItems
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    DEPENDS,
    OFTEN,
    Finding,
    Intervals,
    all_of,
    any_of,
    check_between,
    check_lower,
    exact,
    means,
    over,
    paired_ratios,
)

SAMPLED = {name: f"{name}, sampled" for name in OURS}  # before noise
FOUR = ("Gowalla", "Foursquare", "Netflix", "MovieLens")
BELOW_ONE = nextafter(1, 0)

Check = Callable[["pd.DataFrame", float], Finding]
ABOVE_ONE = nextafter(1, 2)
ABOVE_ZERO = nextafter(0, 1)


def swept(
    rows: pd.DataFrame,
    level: float,
    check: Check,
    of: Collection[str] = FOUR,
    *,
    as_built: bool = False,
) -> Finding:
    """A check of some of the four datasets under all readings that were run and all laws.

    Parameters
    ----------
    rows : DataFrame
        Of one metric, of items or of edges.
    level : float
        Of confidence: of all readings and laws together.
    check : callable
        Takes rows of one reading and law, and a level.
    of : collection of str
        The datasets, as the paper names them.
    as_built : bool
        Whether twins are taken under their own law alone.
    """
    own = pd.concat([rows_of(rows, name) for name in of])
    own = own[own.series.isin(METHODS)]
    laws = [law for law in own.law.unique() if law != FILE]
    by_law = bool(laws) and not as_built
    readings = tuple(reading for reading in READINGS if (own.reading == reading).any())
    values = tuple(product(readings, laws)) if by_law else readings

    def at(value, level):
        reading, law = value if by_law else (value, AS_BUILT)
        chosen = (own.reading == reading) & own.law.isin((law, FILE))
        return check(own[chosen], level)

    finding = over("ε, popularity" if by_law else "ε", values, at, level)
    whole = not own.panel.str.endswith(CUT).any()  # of a cut twin the figure leaves all open
    if by_law and whole and finding.strip.outcomes == {False}:
        why = "it holds under no law of the twins', which cannot contradict"
        return replace(finding, holds=None, testable=False, why=why)
    if by_law and finding.outcome == DEPENDS and _law_alone_decides(finding, laws):
        why = "it turns with the popularity that stand-ins invent, and with no reading of ε"
        return replace(finding, holds=None, testable=False, why=why)
    return finding


def _law_alone_decides(finding: Finding, laws: Collection[float]) -> bool:
    """Whether under no law one reading of ε says otherwise than another (rulings 14)."""
    holds = [each for _, each in finding.strip.holds]
    return not any({True, False} <= set(holds[i :: len(laws)]) for i in range(len(laws)))


def check_below(
    rows, level, lower: Collection[str] = OURS, higher: Collection[str] = OTHERS
) -> Finding:
    """Each of some methods below each of others, on every dataset."""
    parts = {
        f"{a} below {b}": partial(check_lower, paired_ratios(rows, a, b, "panel"))
        for a, b in product(lower, higher)
    }
    return all_of(parts, level)


def check_not_lowest(rows, level) -> Finding:
    """On every dataset SRA or HPA is above one of the others."""

    def on(name, level):
        own = rows[rows.panel == name]
        parts = {
            f"{b} below {a}": partial(check_lower, paired_ratios(own, b, a, "panel"))
            for a, b in product(OURS, OTHERS)
        }
        return any_of(parts, level)

    return all_of({name: partial(on, name) for name in rows.panel.unique()}, level)


def check_comparable(rows, level) -> Finding:
    """SRA, and HPA, at most 1.25 times the least of the others at three quarters of the datasets."""
    own = rows[rows.series.isin(OTHERS)]
    best = own.groupby(["panel", "series"]).value.mean().groupby("panel").idxmin()
    chosen = own.set_index(["panel", "series"]).index.isin(best)
    both = pd.concat([rows, own[chosen].assign(series="least")])
    most = dict(high=ALIKE, share=OFTEN, words="at most 1.25×")
    ratios = {a: paired_ratios(both, a, "least", "panel") for a in OURS}
    return all_of({a: partial(check_between, x, **most) for a, x in ratios.items()}, level)


def check_no_worse(rows, level) -> Finding:
    """GS not above DFT, on every dataset."""
    ratios = paired_ratios(rows, "GS", "DFT", "panel")
    return check_between(ratios, level, high=1, words="no worse")


def check_preserved(rows, level) -> Finding:
    """DFT's and GS' divergences nearer to the least than to LPA's, at three quarters of the bars."""
    keys = ["panel", "seed"]
    by_seed = rows.pivot(index=keys, columns="series", values="value")
    middle = (by_seed.min(axis=1) + by_seed.LPA) / 2
    frames = [
        pd.DataFrame({"value": by_seed[name] / middle, "bar": name}) for name in ("DFT", "GS")
    ]
    bars = pd.concat(frames).reset_index().assign(series="nearness")
    numbers = means(bars, "nearness", ["panel", "bar"])
    words = "nearer to the least"
    return check_between(numbers, level, high=BELOW_ONE, share=OFTEN, words=words)


def check_failing(rows, level) -> Finding:
    """DFT's and GS' divergences more than 1.25 times SRA's and HPA's, on every dataset."""
    more = dict(low=nextafter(ALIKE, 2), words="more than 1.25×")
    parts = {
        f"{a} above {b}": partial(check_between, paired_ratios(rows, a, b, "panel"), **more)
        for a, b in product(("DFT", "GS"), OURS)
    }
    return all_of(parts, level)


def check_closer_sample(rows, level) -> Finding:
    """Before noise: what SRA samples is closer to the original than what HPA does, on every dataset."""
    own = pd.concat([rows_of(rows, name) for name in FOUR])
    ratios = paired_ratios(one_law(own), SAMPLED["SRA"], SAMPLED["HPA"], "panel")
    return check_lower(ratios, level)


# The checks of what Figures 7 to 9 say of the most popular items.
#
# Rows are of one reading of ε and one law of popularity (see `judged`). Precisions are compared by
# differences, seed by seed, as many of them are 0 or 1.


def find_few(rows, level) -> Finding:
    """LPA, DFT and GS find fewer than half of the ten, on every dataset."""
    points = rows[rows.series.isin(OTHERS)].assign(method=rows.series, series="share")
    numbers = means(points, "share", ["method", "panel"])
    return check_between(numbers, level, high=nextafter(0.5, 0), words="fewer than half")


def differences(
    rows, more: Collection[str], fewer: Collection[str], by: Collection[str] = ("panel",)
) -> pd.DataFrame:
    """By how much each of some methods is above each of others, seed by seed: a `pair` each."""
    by_seed = rows.pivot(index=[*by, "seed"], columns="series", values="value")
    frames = [
        (by_seed[a] - by_seed[b]).rename("value").reset_index().assign(pair=f"{a} − {b}")
        for a, b in product(more, fewer)
    ]
    return pd.concat(frames).assign(series="difference").dropna(subset="value")


def mean_differences(
    points: pd.DataFrame, by: Collection[str] = ("pair", "panel")
) -> Intervals:
    """The same as numbers at points."""
    return means(points, "difference", [*by])


def exceed(
    rows, level, more: Collection[str] = OURS, fewer: Collection[str] = OTHERS
) -> Finding:
    """Each of some methods finds more than each of others, on every dataset."""
    numbers = mean_differences(differences(rows, more, fewer))
    return check_between(numbers, level, low=ABOVE_ZERO, words="more")


def check_ahead(rows, level) -> Finding:
    """HPA finds more than SRA, on every dataset where not both find all in all runs."""
    own = rows[rows.series.isin(OURS)]
    least = own.groupby("panel").value.min()
    open_to = own[own.panel.isin(least.index[least < 1])]
    if open_to.empty:
        return Finding(False, "both find all, everywhere")
    return exceed(open_to, level, ["HPA"], ["SRA"])


def check_all_found(rows, level) -> Finding:
    """HPA finds all of the ten: one less in one of 20 runs is nearest to that."""
    return check_between(means(rows, "HPA", "panel"), level, low=0.995)


def check_noise_hides(rows, level) -> Finding:
    """The deviation of LPA's noise is above what the first item is ahead of the tenth, everywhere."""
    own = rows[(rows.series == "LPA") & (rows.quantity == TopItems.AHEAD)]
    deviation = sqrt(2) * own.bound / (own.epsilon / 2)
    times = (deviation / own.value).groupby(own.panel).first()
    return check_between(exact(times), level, low=ABOVE_ONE, words="above")


def check_smoothed(rows, level) -> Finding:
    """DFT and GS release less between the ten and the next ten than is there, on every dataset."""
    own = rows[rows.series.isin(("DFT", "GS"))]
    keys = ["series", "panel", "seed"]
    by_seed = own.pivot(index=keys, columns="quantity", values="value")
    lost = by_seed[TopItems.TRUE] - by_seed[TopItems.RELEASED]
    points = lost.rename("value").reset_index()
    points = points.assign(method=points.series, series="difference")
    numbers = mean_differences(points, ["method", "panel"])
    return check_between(numbers, level, low=ABOVE_ZERO, words="less")


def check_no_majority(rows, level) -> Finding:
    """Nobody's most popular film has been rated by more than half of the users."""
    own = one_law(rows_of(rows, "MovieLens"))
    share = own[own.quantity == TopItems.FIRST].value.iloc[0]
    return Finding(bool(share <= 0.5), f"the most rated film: {share:.1%} of the users")
