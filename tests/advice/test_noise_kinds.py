"""Advice on the kind of noise: pure where it is the smaller, in one sentence with the numbers."""

from math import sqrt

import numpy as np
import pytest

from tests.cli.commands import run_command
from workbench import DP, ZCDP, Bound, Domain, Marginals, SparseTable, advise
from workbench.advice import advise_marginals, compare_noise
from workbench.mechanisms import (
    GaussianHistogram,
    GaussianQueries,
    GeometricHistogram,
)

BUDGET = DP(1.0, 1e-9)


@pytest.mark.parametrize(
    ("touched", "epsilon", "geometric", "gaussian"),
    [
        (1, 1.0, 1.36, 5.8),
        (17, 1.0, 24.0, 23.8),
        (25, 1.0, 35.4, 28.9),
        (120, 1.0, 170, 63.3),
        (1, 0.1, 14.1, 53),
        (25, 0.1, 354, 266),
        (25, 3.0, 11.8, 10.2),
    ],
)
def test_deviations_are_those_of_the_notes(touched, epsilon, geometric, gaussian):
    compared = compare_noise(DP(epsilon, 1e-9), touched, touched)
    assert compared.geometric == pytest.approx(geometric, rel=6e-3)
    assert compared.gaussian == pytest.approx(gaussian, rel=6e-3)
    assert compared.takes_gaussian == (gaussian < geometric)


@pytest.mark.parametrize("delta", [1e-9, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_number_of_numbers_in_the_sentence_is_where_the_kinds_change_places(epsilon, delta):
    first = next(
        n for n in range(1, 40) if compare_noise(DP(epsilon, delta), n, n).takes_gaussian
    )
    before = compare_noise(DP(epsilon, delta), first - 1, first - 1)
    after = compare_noise(DP(epsilon, delta), first, first)
    said = int(str(before).rpartition("needs ")[2].split()[0])
    assert first - 1 <= said <= first
    assert f"it is from {said} or so on" in str(after)
    assert ("pure noise is better" in str(before)) and (
        "Gaussian noise is better" in str(after)
    )


def test_many_records_in_one_cell_gain_nothing():
    compared = compare_noise(BUDGET, 10, Bound(10, 10, 10).l2_squared)
    assert not compared.takes_gaussian
    assert "move one number by all of its 10: l2 = l1, and nothing is gained" in str(compared)
    spread = compare_noise(BUDGET, 100, Bound(100, 1).l2_squared)
    assert spread.takes_gaussian and "a unit touches 100 numbers" in str(spread)


def test_the_best_summary_is_advised_with_the_smaller_noise():
    domain = Domain(("key",), (1000,))
    one = advise(domain, 1.0, 100, delta=1e-9, quick=True)
    assert "pure noise is better and spends no δ, since a unit touches 1 number" in repr(one)
    assert not isinstance(one.mechanism.budget, ZCDP)
    assert advise(domain, 1.0, 100, quick=True).noise is None
    full = GeometricHistogram(DP(1.0))
    many = compare_noise(BUDGET, 50, Bound(50, 1).l2_squared)
    assert many.applied(full) == GaussianHistogram(ZCDP.within(BUDGET))
    assert one.noise.applied(full) == full


@pytest.mark.slow
def test_marginals_are_asked_with_the_smaller_noise():
    few = Domain(tuple("abc"), (3, 3, 3))
    many = Domain(tuple("abcdefgh"), (6,) * 8)
    pure = advise_marginals(few, 1.0, Bound(), 1, delta=1e-9)
    assert isinstance(pure.mechanism.budget, DP)
    assert "a unit touches" in pure.notes[-1] and "pure noise is better" in pure.notes[-1]
    advice = advise_marginals(many, 1.0, Bound(), 3, delta=1e-9)
    assert advice.mechanism == GaussianQueries(ZCDP.within(BUDGET), Marginals(3))
    assert "a unit touches 56 numbers" in advice.notes[-1]
    empty = SparseTable.from_keys(many, [], [], Bound())
    drawn = advice.mechanism(empty, np.random.default_rng(0)).estimate.variances
    assert advice.options[0].value == pytest.approx(sqrt(drawn.mean()), rel=1e-3)


def test_the_command_says_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.json").write_text(
        '{"a": 9, "b": 9, "c": 9, "d": 9, "e": 9, "f": 9, "g": 9}'
    )
    line = "advise --task marginals --domain domain.json --epsilon 1 --bound 1,1 --order 3 --delta 1e-9"
    said = " ".join(run_command(line.split(), 0).stdout.split())
    assert "Gaussian noise is better" in said
    assert "--rho 0.0149730576735885" in said and "--mechanism Gaussian" in said
