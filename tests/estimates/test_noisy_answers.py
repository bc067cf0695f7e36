"""Noisy answers: what they hold, refuse, save, and give back."""

import json

import numpy as np
import pytest

from workbench import (
    DP,
    Bound,
    Domain,
    Marginals,
    Products,
    RandomMarginalRanges,
    RandomRanges,
    RandomTables,
    SparseTable,
)
from workbench.estimates import DerivedAnswers, NoisyAnswers
from workbench.mechanisms import LaplaceQueries
from workbench.queries import Together, linear_queries, stated

DOMAIN = Domain(("home", "work", "age"), (3, 4, 5), (tuple("abc"), range(2000, 2004), None))


def held(workload, seed=0, deviation=2.0):
    workload = linear_queries(workload, DOMAIN)
    values = np.random.default_rng(seed).normal(50, 9, len(workload))
    return NoisyAnswers(DOMAIN, workload, values, np.full(len(values), deviation**2))


def mixed():
    real = Products.of(
        DOMAIN,
        [[{"age": [0.1, -2, 3, 1e-17, 1e90]}, (-0.5, {"home": {0, 2}})], {}, {"work": (2, 2)}],
    )
    return Together((RandomTables(5, 2), real, RandomMarginalRanges(7), RandomRanges(9, 3)))


def test_it_answers_the_queries_that_it_holds_and_no_others():
    answers = held(Marginals(2))
    got, errors = answers.answer(answers.workload[[3, 1, 3]], error=True)
    assert (got == answers.values[[3, 1, 3]]).all() and (errors == 2).all()
    with pytest.raises(ValueError, match="1 of 2 queries were never asked, first query 2. In"):
        answers.answer(
            Together((answers.workload[[0]], Products.of(DOMAIN, [{"age": [2] * 5}])))
        )
    with pytest.raises(ValueError, match="weights = 'x'"):
        answers.answer(answers.workload, weights="x")


def test_a_query_asked_twice_is_kept_twice_and_answered_by_the_weighted_mean():
    query = Products.of(DOMAIN, [{"home": (0, 2)}])
    same = Products.of(DOMAIN, [{"home": {1, 0}}])  # in other words
    both = NoisyAnswers(DOMAIN, Together((query, same)), [10.0, 16.0], [1.0, 2.0])
    got, error = both.answer(query, error=True)
    assert (
        len(both) == 2 and got == pytest.approx(12) and error == pytest.approx(np.sqrt(2 / 3))
    )
    once = both.without_repeats()
    assert len(once) == 1 and once.values == got and once.variances == pytest.approx([2 / 3])
    assert once.without_repeats() is once


def test_queries_without_repeats_stay_in_their_order():
    boxes = [{"home": (0, 2)}, {"home": {0}}, {"home": (0, 2)}, {"home": {2}}]
    queries = Products.of(DOMAIN, boxes)
    answers = NoisyAnswers(DOMAIN, queries, [10.0, 5.0, 16.0, 1.0], [1.0, 3.0, 2.0, 4.0])
    once = answers.without_repeats()
    assert once.values.tolist() == [12.0, 5.0, 1.0]
    assert once.variances == pytest.approx([2 / 3, 3, 4])
    assert stated.to_text(once.workload) == stated.to_text(queries[np.array([0, 1, 3])])


def test_of_all_cells_any_sums_are_answered():
    cells = held(Marginals(3))
    asked = RandomRanges(7, 9).on(DOMAIN)
    got, error = cells.answer(asked, error=True)
    assert got == pytest.approx(asked.sums(DOMAIN, np.arange(60), cells.values))
    assert error == pytest.approx(2 * np.sqrt(7))


@pytest.mark.parametrize("make", [mixed, lambda: Marginals(2), lambda: Products.of(DOMAIN, [])])
def test_words_and_files_give_the_same_back(make, tmp_path):
    workload = linear_queries(make(), DOMAIN)
    texts = stated.to_text(workload)
    again = stated.from_text(DOMAIN, texts)
    assert stated.to_text(again) == texts and len(again) == len(workload)
    assert all(json.loads(text) for text in texts)
    keys, values = np.arange(60), np.random.default_rng(0).normal(size=60)
    np.testing.assert_array_equal(
        again.sums(DOMAIN, keys, values), workload.sums(DOMAIN, keys, values)
    )
    answers = held(workload)
    loaded = NoisyAnswers.from_arrow(answers.to_arrow(), answers.metadata())
    assert (loaded.values == answers.values).all() and loaded.domain == DOMAIN
    assert (loaded.variances == answers.variances).all()
    assert stated.to_text(loaded.workload) == texts


def test_a_frame_writes_queries_out():
    table = SparseTable.from_keys(DOMAIN, np.arange(60), np.arange(60), Bound())
    release = LaplaceQueries(DP(1.0), Marginals(2))(table)
    frame = release.to_frame()
    names = [*DOMAIN.attributes]
    assert list(frame.columns) == [*names, "count", "sd", "low", "high"]
    assert len(frame) == len(release.estimate) and (frame[names] != "*").sum(axis=1).eq(2).all()
    first = frame.loc[0, names].tolist()
    assert release.answer({names[0]: first[0], names[1]: first[1]}) == frame["count"][0]


def test_words_that_are_none_are_refused():
    for text in (
        "7",
        "[",
        '[[1, {"zip": [0, 1]}]]',
        '{"table": ["home"], "values": [1]}',
        '"x"',
    ):
        with pytest.raises(ValueError, match="not a query|no query|not a factor|is not in"):
            stated.from_text(DOMAIN, [text])


def test_bad_values_name_the_field():
    query = Products.of(DOMAIN, [{"home": (0, 2)}])
    for values, variances, says in (
        ([np.nan], [1.0], r"values\[0\] = nan"),
        ([1.0], [0.0], r"variances\[0\] = 0.0 .* need numbers > 0"),
        ([1.0], [-3.0], r"variances\[0\] = -3.0"),
        ([1.0], [np.inf], r"variances\[0\] = inf"),
        ([1.0, 2.0], [1.0, 1.0], "do not fit"),
    ):
        with pytest.raises(ValueError, match=says):
            NoisyAnswers(DOMAIN, query, values, variances)
    assert NoisyAnswers(DOMAIN, query, [-7.0], [1.0]).values == [
        -7
    ]  # negative counts are answers


def test_a_history_is_of_one_domain_and_not_empty():
    one, two = held(Marginals(1)), held(RandomMarginalRanges(5))
    history = NoisyAnswers.history([one, two, one])
    assert len(history) == 2 * len(one) + 5
    assert (history.values == np.concatenate([one.values, two.values, one.values])).all()
    part = history[np.array([0, len(one) + 2, len(history) - 1])]
    assert (part.values == history.values[[0, len(one) + 2, -1]]).all()
    assert stated.to_text(part.workload)[1] == stated.to_text(two.workload)[2]
    assert NoisyAnswers.history(one) is one
    for empty in ([], held(Products.of(DOMAIN, []))):
        with pytest.raises(ValueError, match="history is empty"):
            NoisyAnswers.history(empty)
    other = Domain(("x",), (3,))
    with pytest.raises(ValueError, match="cannot be joined"):
        NoisyAnswers.history([one, NoisyAnswers(other, Marginals(1), np.ones(3), np.ones(3))])
    with pytest.raises(ValueError, match="need NoisyAnswers"):
        NoisyAnswers.history([one, 3])


def test_derived_answers_are_read_and_saved_and_no_evidence():
    cells = held(Marginals(3))
    derived = DerivedAnswers(DOMAIN, cells.workload, cells.values, cells.variances)
    loaded = DerivedAnswers.from_arrow(derived.to_arrow(), derived.metadata())
    assert np.array_equal(loaded.answer(Marginals(3)), cells.values)
    assert np.array_equal(loaded.deviations(), cells.deviations())
    with pytest.raises(ValueError, match="never asked"):  # their errors do not add up
        loaded.answer(Marginals(1))
    with pytest.raises(ValueError, match="not allowed in a history"):
        NoisyAnswers.history([cells, derived])
