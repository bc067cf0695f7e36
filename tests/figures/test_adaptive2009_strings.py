"""Specs of recovered and of frequent strings: each check tells true worlds from false ones."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from experiments.adaptive2009 import fig8_9, fig10
from experiments.adaptive2009 import fig8_9 as checks
from experiments.adaptive2009 import fig10 as list_checks
from experiments.adaptive2009 import shared as strings
from experiments.adaptive2009.fig10 import in_parts
from experiments.adaptive2009.shared import (
    BASIC,
    DIRECT,
    IMPROVED,
    SETTINGS,
    improved,
)
from tests.figures.worlds import World, figure_of, noisy, outcomes_of
from workbench import Bound
from workbench.data import Records
from workbench.spaces import Prefixes
from workbench.trials.claims import DEPENDS, DIFFERS, HOLDS, UNTESTABLE

BREAKS = {IMPROVED: 60, DIRECT: 66, BASIC: 90}  # over ε
LONG = 13  # the power of two below which strings may be long
POWERS = 2.0 ** np.arange(18)
FIG8_9, FIG10 = figure_of(fig8_9), figure_of(fig10)


def curves(series, epsilon, apart):
    """What a technique recovers of each class of frequencies: of short strings, and of long ones."""
    at = BREAKS[series] * (apart if series == BASIC else 1) / epsilon
    each = (0.93 if series == BASIC else 1) / (1 + (at / POWERS / np.sqrt(2)) ** 4)
    long = np.where(np.arange(len(POWERS)) < LONG, 0.3, 0)
    return each, each * (1 - long), each * long * (series == IMPROVED)


def from_above(classes):
    return classes[::-1].cumsum()[::-1] / len(POWERS)


@cache
def recovered(apart=1.0):
    """A world in which all is so that figures 8 and 9 are said to show."""
    made = []
    places = [(DIRECT, whose) for whose in ("total", "each")]
    places += product((IMPROVED, BASIC), SETTINGS)
    data = from_above(np.ones(len(POWERS)))
    for (series, setting), epsilon in product(places, checks.EPSILONS):
        about = dict(panel=strings.LOG, series=series, setting=setting, epsilon=epsilon)
        about |= dict(reading=checks.PRINTED)
        each, short, long = curves(series, epsilon, apart)
        held = from_above(np.where(np.arange(len(POWERS)) < LONG, 0.7, 1))
        parts = {
            ("all", checks.FROM_MOST_FREQUENT): (from_above(short + long), data),
            ("short", checks.FROM_MOST_FREQUENT): (from_above(short), held),
            ("long", checks.FROM_MOST_FREQUENT): (from_above(long), data - held),
            ("short", checks.OF_EACH): (each, data),
        }
        for (part, adding), (values, of) in parts.items():
            own = about | dict(metric=checks.RECOVERED, part=part, adding=adding)
            for frequency, x, y in zip(POWERS, values, of, strict=True):
                made.append(own | dict(frequency=frequency, value=x, data=y))
        for times in checks.TIMES:
            own = about | dict(metric=checks.SHARE, part="short", frequent=times / epsilon)
            made.append(own | dict(adding=checks.FREQUENT, value=0.9))
            made.append(own | dict(adding=checks.OTHERS, value=0.3))
    return noisy(made, seeds=20, spread=0.0005)


def often():
    """A world in which all is so that figure 10 is said to show; some symbols are in one run only."""
    made = []
    seldom = []
    for setting in SETTINGS:
        about = dict(panel=strings.LOG, series=IMPROVED, setting=setting)
        frequent = dict(metric=list_checks.REAL, least=fig10.FREQUENT, begins=1.0, strings=900)
        made.append(about | frequent | {"value": 0.97})
        by_symbol = about | dict(metric=list_checks.BY_SYMBOL, begins=1.0)
        made += [by_symbol | dict(symbol=n, strings=20, value=0.95) for n in range(12)]
        made.append(by_symbol | dict(symbol=20, strings=3, value=0.01))
        seldom += [by_symbol | dict(symbol=n, strings=20, value=0.01) for n in range(30, 50)]
    return pd.concat([noisy(made, seeds=20), noisy(seldom, seeds=1)], ignore_index=True)


FROM_ABOVE = {"adding": checks.FROM_MOST_FREQUENT, "part": "all"}
BROKEN = [
    ("a-4-3.1", (FROM_ABOVE | {"series": DIRECT}, 0.5)),
    ("a-13-1.1", (FROM_ABOVE | {"series": IMPROVED}, 0.5)),
    ("a-13-1.2", (FROM_ABOVE | {"series": DIRECT}, 0.5)),
    ("a-8-1.1", ({"adding": checks.FREQUENT}, 0.1)),
    ("a-8-2.1", (FROM_ABOVE | {"series": IMPROVED}, 0.5)),
    ("a-8-2.2", (FROM_ABOVE | {"series": IMPROVED}, 0.5)),
    ("a-8-2.3", ({"series": IMPROVED, "part": "long"}, 0)),
    ("a-8-3.1", (FROM_ABOVE | {"series": DIRECT, "epsilon": 0.1}, 5)),
    ("a-8-1.2", lambda rows: recovered(apart=100)),
    ("a-8-1.1", ({"adding": checks.FREQUENT, "setting": "each k"}, 0.1), DEPENDS),
    ("a-10.1", ({"metric": list_checks.REAL}, 0.5)),
    ("a-10.2", ({"metric": list_checks.BY_SYMBOL}, 0.5)),
    ("a-10.2", ({"metric": list_checks.BY_SYMBOL, "symbol": 3}, 0.5), HOLDS),
    ("a-10.1", ({"metric": list_checks.REAL, "setting": "each k"}, 0.5), DEPENDS),
]
WORLDS = [World(FIG8_9, recovered, BROKEN), World(FIG10, often, BROKEN)]


@pytest.mark.slow
def test_without_the_twin_nothing_is_decided():
    for figure, world in ((FIG8_9, recovered()), (FIG10, often())):
        assert set(outcomes_of(figure(), world.assign(panel=strings.NAMES)).values()) == {
            UNTESTABLE
        }


def test_fewer_searches_decide_nothing():
    found = {v.outcome for v in FIG10(searches=10**6).judge(often())}
    assert not found & {HOLDS, DIFFERS, DEPENDS}


def test_where_no_string_is_frequent_there_is_nothing_to_judge():
    world = often()
    found = list_checks.check_real(world.assign(value=np.nan), 0.99)
    assert found.holds is None and "no string" in found.measured


def test_curves_are_crossed_for_good():
    powers = 2.0 ** np.arange(5)

    def crossed(*values):
        return checks.crossed(pd.Series(values, powers), 0.5, 0)

    assert crossed(0, 0, 1, 0, 1) == pytest.approx(2**1.5)
    assert crossed(0.5, 0, 1, 1, 1) == 0
    assert crossed(0, 0.1, 0.2, 0.3, 0.4) == np.inf
    assert checks.crossed(pd.Series([0, 1], [1, 2]), 0.5, 0.5) == pytest.approx(2)


# --- what the specs compute themselves


class Corpus:
    """A small corpus in the twin's place: strings of up to 23 symbols, one in eight above 20."""

    truth_public = True

    def __repr__(self):
        return "Corpus()"

    def load(self):
        rng = np.random.default_rng(0)
        texts = ["".join(rng.choice(list("abc"), rng.integers(1, 24))) for _ in range(300)]
        texts = sorted(set(texts))
        counts = (2000 / np.arange(1, len(texts) + 1)).astype(int) + 1
        tree = Prefixes(depth=24)
        return Records.from_values(tree, texts, Bound(), counts=counts, truth_public=True)


def test_strings_that_are_there_begin_something():
    corpus = Corpus().load()
    every = list_checks.RealStrings((1, 10**9), prefixes=True)(corpus, corpus)
    assert list(every.value)[:1] == [1] and list(every.begins)[:1] == [1]
    assert every.value.isna().to_list() == [False, True]
    texts = ["ab", "abc", "abd", "b", "cab"]
    tree = Prefixes("abcd", 4)
    held = Records.from_values(tree, ["abc", "abd"], Bound(), truth_public=True)
    made = Records.from_values(tree, texts, Bound(), truth_public=True)
    (row,) = list_checks.RealStrings((1,), prefixes=True)(held, made).itertuples()
    assert (row.strings, row.value, row.begins) == (5, 0.4, 0.6)
    found = list_checks.RealBySymbol(1)(held, made).set_index("symbol")
    assert found.strings.to_dict() == {1: 3, 2: 1, 3: 1}
    assert found.value.to_dict() == {1: pytest.approx(2 / 3), 2: 0, 3: 0}


def test_leaves_in_parts_are_those_of_the_histogram():
    corpus = Corpus().load()
    histogram = improved(100.0, "each ln k", strings.SYMBOLS)  # noise is nearly always 0
    whole = histogram(corpus, np.random.default_rng(1))
    made = in_parts(histogram)(corpus, np.random.default_rng(1))
    parts = list(made.estimate)
    assert len(parts) > 1 and len(made.estimate) == sum(map(len, parts))
    for name in ("levels", "keys", "values"):
        joined = np.concatenate([getattr(part, name) for part in parts], axis=-1)
        np.testing.assert_array_equal(joined, getattr(whole.estimate, name))
    assert made.ledger == whole.ledger
    for metric in (list_checks.RealStrings((1, 5), prefixes=True), list_checks.RealBySymbol(2)):
        found = metric(corpus, made.estimate)
        pd.testing.assert_frame_equal(found, metric(corpus, whole.estimate))


def test_leaves_in_parts_have_the_same_noise_whenever_they_are_read():
    corpus = Corpus().load()
    histogram = in_parts(improved(1.0, "each ln k", strings.SYMBOLS))
    leaves = histogram(corpus, np.random.default_rng(1)).estimate
    first, second = (np.concatenate([part.values for part in leaves]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) > 2


def test_thinned_counts_are_divided():
    thin = strings.Thinned(Corpus(), 10)
    whole, left = Corpus().load(), thin.load()
    assert thin.truth_public and repr(thin) == "Thinned(dataset=Corpus(), every=10)"
    assert left.total == (whole.counts // 10).sum() and left.hierarchy == whole.hierarchy


def test_surnames_may_be_missing(no_files):
    for figure in (FIG8_9.at("quick"), FIG10(), FIG10.at(data="surnames")):
        assert list(figure.corpora()) == [strings.LOG]
