"""Advice on the kind of noise: pure where it is the smaller, in one sentence with the numbers."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from tests.cli.commands import run_command
from workbench import DP, ZCDP, Bound, Domain, Marginals, SparseTable, advise
from workbench.data import Interactions
from workbench.mechanisms import (
    FPA,
    HPA,
    SRA,
    CountSketch,
    GaussianHistogram,
    GaussianQueries,
    GeometricHistogram,
    HierarchicalHistogram,
    HighPassFilter,
    Privelet,
    PrivTree,
    UnattributedHistogram,
)
from workbench.owner.advice import (
    advise_boxes,
    advise_degrees,
    advise_marginals,
    advise_top,
    advise_users,
    compare_noise,
    compare_noise_of,
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
    believed = dict(density=0.01, mean=500, spread=20)
    filtered = advise(domain, 1.0, 20, bound=Bound(40), delta=1e-9, quick=True, **believed)
    assert filtered.mechanism == HighPassFilter(ZCDP.within(BUDGET), size=20)
    assert "The filter's θ is 157 with geometric noise, 86 with Gaussian." in repr(filtered)


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


BOUNDS = (Bound(), Bound(3, 2, 5), Bound(30, 1))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("mechanism", "variance"),
    [
        (
            HierarchicalHistogram(DP(1.0), 3, consistent=False, noise="geometric"),
            lambda e: e.variance,
        ),
        (Privelet(DP(1.0), noise="geometric"), lambda e: e.noise.variance),
        (CountSketch(DP(1.0), width=50, depth=20), lambda e: e.law.variance),
        (
            UnattributedHistogram(DP(1.0), "noisy", noise="geometric"),
            lambda e: e.variance,
        ),
        (SRA(DP(1.0), 6, split=(0.3, 0.7)), lambda e: e.items.variance),
        (HPA(DP(1.0), 6, 1, popularity_share=0.2), lambda e: e.items.variance),
        (FPA(DP(1.0), 6, 5, once=True), lambda e: e.items.noise.variance),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_compared_is_the_noise_that_is_drawn(mechanism, variance, bound):
    """Of both kinds, whatever the mechanism: the release's own variance, but for roundings."""
    domain = Domain(("item", "context"), (27, 3))
    data = SparseTable.from_keys(domain, [], [], bound)
    if mechanism.takes is Interactions:
        none = np.array([], int)
        data = Interactions.from_codes(domain, none, none, none, bound)
        data = replace(data, distinct=bound.linf == 1)
    compared = compare_noise_of(mechanism, domain, bound, BUDGET)
    other = {"noise": "gaussian"} if hasattr(mechanism, "noise") else {}
    gaussian = replace(mechanism, budget=ZCDP(compared.rho), **other)
    for kind, expected in ((mechanism, compared.geometric), (gaussian, compared.gaussian)):
        drawn = variance(kind(data, np.random.default_rng(0)).estimate)
        within = (
            0.02 if isinstance(mechanism, FPA) else 2e-3
        )  # its Laplace noise is on a finer grid
        assert sqrt(drawn) == pytest.approx(expected, rel=within)


def test_what_takes_one_kind_of_noise_is_not_compared():
    domain = Domain(("item", "context"), (27, 3))
    with pytest.raises(
        ValueError, match="PrivTree.* need a mechanism that takes a DP or a ZCDP"
    ):
        compare_noise_of(PrivTree(DP(1.0)), domain, Bound(), BUDGET)
    with pytest.raises(ValueError, match="k = None is not allowed"):
        compare_noise_of(FPA(DP(1.0), 3), domain, Bound(), BUDGET)


def test_tasks_are_advised_with_the_smaller_noise():
    one = Domain(("x",), (512,))
    two = Domain(("x", "y"), (64, 64))
    few, many = Bound(), Bound(40, 1)
    assert advise_boxes(one, 1.0, few, delta=1e-9).mechanism.budget == DP(1.0)
    boxes = advise_boxes(two, 1.0, many, delta=1e-9)
    assert boxes.mechanism == GaussianHistogram(ZCDP.within(BUDGET))
    assert boxes.options[0].value < advise_boxes(two, 1.0, many).options[0].value
    assert "Gaussian noise is better, since a unit touches 40 numbers" in boxes.notes[-1]
    assert advise_top(one, 1.0, many, delta=1e-9).mechanism == boxes.mechanism
    assert advise_top(one, 1.0, few, delta=1e-9).mechanism == GeometricHistogram(DP(1.0))
    degrees = advise_degrees(one, 1.0, many, delta=1e-9)
    assert degrees.mechanism == UnattributedHistogram(ZCDP.within(BUDGET))
    assert degrees.options[0].value < advise_degrees(one, 1.0, many).options[0].value
    users = advise_users(Domain(("item", "c"), (9, 4)), 1.0, 100, 20, delta=1e-9)
    assert "l2 = l1, and nothing is gained" in users.notes[-1]


def test_the_command_says_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.json").write_text(
        '{"a": 9, "b": 9, "c": 9, "d": 9, "e": 9, "f": 9, "g": 9}'
    )
    line = "advise --task marginals --domain domain.json --epsilon 1 --bound 1,1 --order 3 --delta 1e-9"
    said = " ".join(run_command(line.split(), 0).stdout.split())
    assert "Gaussian noise is better" in said
    assert "--rho 0.0149730576735885" in said and "--mechanism Gaussian" in said


def test_lighter_tails_may_decide_for_gaussian_noise_that_is_wider():
    domain = Domain(("x",), (2**20,))
    beliefs = dict(density=0.001, mean=1000, spread=300)
    advice = advise(domain, 0.3, 1000, delta=1e-9, bound=Bound(10, 1), **beliefs)
    assert not advice.noise.takes_gaussian and advice.noise.gaussian > advice.noise.geometric
    assert advice.mechanism.budget == ZCDP.within(DP(0.3, 1e-9))
    assert "with Gaussian noise" in advice.reason
    assert "is less off than with geometric noise" in repr(advice)


def test_a_huge_epsilon_is_compared_too():
    assert "pure noise is better" in str(compare_noise(DP(1e300, 1e-6), 1, 1))
