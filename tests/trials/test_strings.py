"""The recovered part of a corpus against its literal form, and what counts as found."""

from math import isnan

import numpy as np
import pytest

from tests.reference import earth_mover as literal
from workbench import DP, PUBLIC, Bound
from workbench.data import Records
from workbench.estimates import Leaves
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.spaces import Prefixes
from workbench.trials.metrics import RecoveredFraction, match_strings, recovered_by_frequency

TREE = Prefixes("abc", 4)
DEEP = Prefixes(depth=24)  # of two words
SEEDS = range(4)
both = pytest.mark.parametrize("tree", [TREE, DEEP], ids=["one word", "two words"])


def words(tree, seed, n=300):
    rng = np.random.default_rng(seed)
    symbols = list(tree.alphabet[:3])
    return ["".join(rng.choice(symbols, rng.integers(0, 5))) for _ in range(n)]


def corpus(tree, strings, **options):
    return Records.from_values(tree, strings, Bound(), **{"truth_public": True} | options)


def synthetic(tree, strings):
    return Records.from_values(tree, strings, PUBLIC)


def leaves(nodes, tree=TREE):
    """From prefixes, told with a $ where the string has ended, and their counts."""
    found = {}
    for text, count in nodes.items():
        key = tree.encode([text.removesuffix("$")])[0]
        found[tuple(key[:, 0].tolist())] = len(text), count
    keys = sorted(found)
    levels, values = zip(*(found[key] for key in keys), strict=True)
    keys = np.array(keys, np.uint64).T.reshape(tree.digits.word_count, -1)
    return Leaves(tree, np.array(levels), keys, np.array(values))


@both
@pytest.mark.parametrize("seed", SEEDS)
def test_the_fraction_is_its_literal_form(tree, seed):
    true, made = words(tree, seed), words(tree, seed + 50, 200)
    found = RecoveredFraction()(corpus(tree, true), synthetic(tree, made))
    assert found == pytest.approx(literal.recovered(true, made))


@both
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_curve_is_its_literal_form(tree, seed, descending):
    true, made = words(tree, seed), words(tree, seed + 50, 200)
    found = recovered_by_frequency(corpus(tree, true), synthetic(tree, made), descending)
    slow = literal.recovered_by_frequency(true, made, descending)
    assert found.to_numpy() == pytest.approx(np.array(slow))


@both
def test_corpora_with_counts_are_those_without(tree):
    true, made = words(tree, 1), synthetic(tree, words(tree, 2))
    distinct, counts = np.unique(true, return_counts=True)
    plain, weighted = corpus(tree, true), corpus(tree, distinct.tolist(), counts=counts)
    for prefixes in (False, True):
        metric = RecoveredFraction(2, 5, prefixes)
        assert metric(plain, made) == metric(weighted, made)
    one, other = (recovered_by_frequency(x, made) for x in (plain, weighted))
    assert one.equals(other)


def test_frequencies_can_be_asked_for():
    truth = corpus(TREE, ["a"] * 4 + ["b"] * 2 + ["c"])
    made = synthetic(TREE, ["a"] * 9 + ["b"])
    assert RecoveredFraction()(truth, made) == pytest.approx(5 / 7)
    assert RecoveredFraction(2)(truth, made) == pytest.approx(5 / 6)
    assert RecoveredFraction(high=2)(truth, made) == pytest.approx(1 / 3)
    assert RecoveredFraction(2, 2)(truth, made) == 0.5
    assert isnan(RecoveredFraction(5)(truth, made))


def test_beginnings_are_found_only_if_asked_for():
    truth = corpus(TREE, ["ab"] * 3 + ["abc"] * 2 + ["bbbb"] * 2 + ["c"])
    made = leaves({"ab": 4, "bbbb": 5, "c$": -1, "ca": 2})
    assert RecoveredFraction()(truth, made) == pytest.approx(2 / 8), "the last level ends"
    assert RecoveredFraction(prefixes=True)(truth, made) == pytest.approx(5 / 8)
    keys, counts, held = match_strings(truth, made, prefixes=True)
    told = dict(zip(TREE.texts(keys), zip(counts, held, strict=True), strict=True))
    assert told == {"ab": (4, 3), "bbbb": (5, 2), "ca": (2, 0)}


def test_leaves_with_beginnings_are_their_synthetic_records():
    truth = corpus(DEEP, words(DEEP, 0, 3000))
    release = ImprovedAdaptiveHistogram(DP(2.0), 8)(truth, np.random.default_rng(0))
    held = release.estimate
    assert RecoveredFraction(prefixes=True)(truth, held) == RecoveredFraction()(
        truth, held.synthetic()
    )
    frame = held.to_frame()
    whole = frame[frame.complete]
    made = np.repeat(whole.string.to_numpy(object), whole["count"]).tolist()
    strict = RecoveredFraction()(truth, held)
    assert strict == pytest.approx(literal.recovered(words(DEEP, 0, 3000), made))


def test_nothing_and_everything():
    truth, none = corpus(TREE, ["a", "a", "b"]), synthetic(TREE, [])
    assert RecoveredFraction()(truth, none) == 0
    assert RecoveredFraction()(truth, truth) == 1
    assert isnan(RecoveredFraction()(corpus(TREE, []), truth))
    assert recovered_by_frequency(corpus(TREE, []), truth).empty
    assert recovered_by_frequency(truth, none).recovered.tolist() == [0, 0]


def test_private_corpora_and_other_spaces_are_refused():
    truth = corpus(TREE, ["a"], truth_public=False)
    metrics = RecoveredFraction(), match_strings, recovered_by_frequency
    for metric in metrics:
        with pytest.raises(ValueError, match="truth_public"):
            metric(truth, synthetic(TREE, ["a"]))
        with pytest.raises(ValueError, match="need the same Prefixes"):
            metric(corpus(TREE, ["a"]), synthetic(DEEP, ["a"]))
    with pytest.raises(ValueError, match="high >= low"):
        RecoveredFraction(5, 4)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="RecoveredFraction.low"):
            RecoveredFraction(wrong)
    assert (
        repr(RecoveredFraction(2, prefixes=True)) == "RecoveredFraction(low=2, prefixes=True)"
    )
