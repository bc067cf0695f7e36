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
from math import nextafter

from experiments.fan2015._five_methods import (
    METHODS,
    OTHERS,
    OURS,
    READINGS,
)
from experiments.fan2015._paper import rows_of
from experiments.fan2015.data import AS_BUILT, CUT, FILE, one_law
from workbench.compiled import pd
from workbench.trials.claims import (
    ALIKE,
    DEPENDS,
    OFTEN,
    Finding,
    all_of,
    any_of,
    check_between,
    check_lower,
    means,
    over,
    paired_ratios,
)

SAMPLED = {name: f"{name}, sampled" for name in OURS}  # before noise
FOUR = ("Gowalla", "Foursquare", "Netflix", "MovieLens")
BELOW_ONE = nextafter(1, 0)

Check = Callable[["pd.DataFrame", float], Finding]


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
    least = _least(rows, OTHERS)
    parts = {
        a: partial(_at_most, paired_ratios(pd.concat([rows, least]), a, "least", "panel"))
        for a in OURS
    }
    return all_of(parts, level)


def _at_most(ratios, level) -> Finding:
    return check_between(ratios, level, high=ALIKE, share=OFTEN, words="at most 1.25×")


def _least(rows, methods: Collection[str]) -> pd.DataFrame:
    """The method of the least mean of each dataset, as a series "least"."""
    own = rows[rows.series.isin(methods)]
    by_method = own.groupby(["panel", "series"]).value.mean()
    best = by_method.groupby("panel").idxmin()
    chosen = own.set_index(["panel", "series"]).index.isin(best)
    return own[chosen].assign(series="least")


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
    parts = {
        f"{a} above {b}": partial(_above_alike, paired_ratios(rows, a, b, "panel"))
        for a, b in product(("DFT", "GS"), OURS)
    }
    return all_of(parts, level)


def _above_alike(ratios, level) -> Finding:
    return check_between(ratios, level, low=nextafter(ALIKE, 2), words="more than 1.25×")


def check_closer_sample(rows, level) -> Finding:
    """Before noise: what SRA samples is closer to the original than what HPA does, on every dataset."""
    own = pd.concat([rows_of(rows, name) for name in FOUR])
    ratios = paired_ratios(one_law(own), SAMPLED["SRA"], SAMPLED["HPA"], "panel")
    return check_lower(ratios, level)
