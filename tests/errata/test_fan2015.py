"""Fan & Jin 2015: what is printed wrongly or ambiguously. Seeds are fixed: chance fails no test."""

import sqlite3
from fractions import Fraction
from itertools import combinations, product
from math import exp, log, prod

import numpy as np
import pytest

from tests.reference import sampling
from workbench import DP, UNBOUNDED, Domain, Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanisms import HPA, LPA, SRA
from workbench.noise import variance
from workbench.trials.metrics import KLDivergence


def sampled_counts(p, records, l):  # noqa: E741
    """Of one user: (chance, count in all records, count in l of them at random), exactly."""
    samples = list(combinations(range(records), l))
    for own in product((0, 1), repeat=records):
        chance = prod((p if x else 1 - p) for x in own)
        for sample in samples:
            yield chance / len(samples), sum(own), sum(own[i] for i in sample)


P = Fraction(1, 3)
M = 4


@pytest.mark.parametrize("l", [1, 2, 3, 4])
def test_variance_of_a_sample(l):  # noqa: E741
    law = list(sampled_counts(P, M, l))
    mean = sum(chance * part for chance, _, part in law)
    spread = sum(chance * part**2 for chance, _, part in law) - mean**2
    assert mean == l * P
    assert spread == l * P * (1 - P)
    printed = l * P * (1 - P * Fraction(l, M))
    assert printed > spread if l < M else printed == spread


@pytest.mark.parametrize("l", [1, 2, 3, 4])
def test_error_of_a_count(l):  # noqa: E741
    right = sum(chance * (part - count) ** 2 for chance, count, part in sampled_counts(P, M, l))
    dropped = M - l
    assert right == dropped * P * (1 - P) + (dropped * P) ** 2
    printed = l * P * (1 - P * Fraction(l, M)) + (dropped * P) ** 2
    assert printed != right
    if l == M:
        assert right == 0 and printed > 0  # all records are there, and no noise is meant


def best_l(n, most, p, epsilon, form="actual count"):
    return sampling.best_l(n, most, [p], epsilon, form)


def test_rare_items():
    n = 300
    most = 20
    rare = 5e-5
    epsilons = [0.1, 0.5, 1.0, 5.0]
    printed = [best_l(n, most, rare, e, "printed") for e in epsilons]
    right = [best_l(n, most, rare, e) for e in epsilons]
    assert max(printed) < 0 and printed == sorted(printed, reverse=True)  # and it falls with ε
    assert min(right) > 0 and right == sorted(right)
    assert best_l(n, most, 0.75, 1e6, "printed") > most  # more than there are
    for form, is_least in (("actual count", True), ("printed", False)):
        least = sampling.best_whole_l(n, most, [0.03], 1.0, "actual count")
        assert (round(best_l(n, most, 0.03, 1.0, form)) == least) == is_least
    items = 400
    shares = (1 / items,) * items
    ours = SRA(DP(40.0), "suggested", n=30, bound=most, popularity=shares)
    assert ours.sampling_factor(items) == round(best_l(30, most, 1 / items, 20.0))
    assert ours.sampling_factor(items) > 1.5 * best_l(30, most, 1 / items, 20.0, "printed")


def test_foursquare():
    printed = {  # users, records, records of a user
        "Gowalla": (12_579, 739_600, 58.8),
        "Netflix": (480_189, 100_480_507, 209.2),
        "MovieLens": (6_040, 1_000_209, 165.6),
        "Foursquare": (45_289, 1_276_988, 60.2),
    }
    off = {
        name: abs(records / users - mean) for name, (users, records, mean) in printed.items()
    }
    assert [name for name, by in off.items() if by > 0.1] == ["Foursquare"]
    assert 1_276_988 / 45_289 == pytest.approx(28.2, abs=0.05)


DOMAIN = Domain(("item", "day"), (2, 1))


def interactions(users, items):
    return Interactions.from_codes(
        DOMAIN, users, items, [0] * len(users), UNBOUNDED, truth_public=True
    )


def test_nothing_above_zero():
    items = 2
    alpha = exp(-0.01 / 1)
    nothing = (1 / (1 + alpha)) ** items  # that no noisy count of 0 is above 0
    assert nothing > 0.25
    data = interactions([0], [0])
    mechanism = HPA(DP(0.1), l=1, d=1)
    zero = 0
    for seed in range(40):
        scores, _ = mechanism.scores(data, np.random.default_rng(seed))
        zero += not scores.any()
        counts = mechanism(data, np.random.default_rng(seed)).estimate.items.values
        assert np.isfinite(counts).all()
    assert zero >= 1
    with pytest.raises(ZeroDivisionError):
        max(-1, 0) / (max(-1, 0) + max(-2, 0))  # Equation 11


def test_least_active_user():
    epsilon = 0.1

    def log_density(x, scale):
        return -abs(x) / scale - log(2 * scale)

    def loss(x, d, d_of_neighbour):  # noisy counts d and d + 1 away from x
        return log_density(x - d, d / epsilon) - log_density(
            x - d - 1, d_of_neighbour / epsilon
        )

    seen = range(0, 20_001, 100)
    assert max(abs(loss(x, 20, 1)) for x in seen) > 100 * epsilon  # and grows with x
    assert max(abs(loss(x, 20, 20)) for x in seen) <= epsilon
    with pytest.raises(ValueError, match="not computed from the data"):
        HPA(DP(1.0), l=10)


def test_select_star():
    database = sqlite3.connect(":memory:")
    database.execute("create table D (rID, vID)")
    database.executemany("insert into D values (?, ?)", [(1, "a"), (2, "a"), (3, "b")])
    printed = database.execute("select * from D where vID = 'a'").fetchall()
    right = database.execute("select count(*) from D where vID = 'a'").fetchall()
    assert printed == [(1, "a"), (2, "a")]  # the private records themselves
    database.close()
    assert right == [(2,)]
    assert interactions([1, 2, 3], [0, 0, 1]).item_counts().tolist() == [2, 1]


def test_epsilon_of_each():
    def squared_noise(contribution, epsilon):
        return 2 * (contribution / epsilon) ** 2

    top_of_figure_6a = 5e4
    assert squared_noise(100, 0.5) > top_of_figure_6a > squared_noise(100, 1.0)
    top_of_figures_7a_and_8a = 1e9
    for most in (14_380, 17_000):  # Gowalla, Netflix
        assert squared_noise(most, 0.5) > top_of_figures_7a_and_8a > squared_noise(most, 1.0)
    for mechanism in (LPA(DP(1.0), bound=100), SRA(DP(1.0), l=100)):
        data = interactions(np.arange(50).repeat(100), np.zeros(5000, int))
        errors = mechanism(data, np.random.default_rng(0)).estimate.items.variance
        assert errors == pytest.approx(variance(100, 0.5, "geometric"))  # ours: ε is the total
        assert errors == pytest.approx(squared_noise(100, 0.5), rel=1e-3)


def test_direction_of_the_divergence():
    rng = np.random.default_rng(0)
    items = 15_200  # as many as Gowalla has, with its records
    shares = 1 / np.arange(1, items + 1)
    original = np.maximum(np.round(739_600 * shares / shares.sum()), 1).astype(int)
    released = original + rng.laplace(0, 14_380, items)
    released = np.where(released > 0, released, 0.01)

    def divergence(p, q):
        p = p / p.sum()
        q = q / q.sum()
        return (p * np.log(p / q)).sum()

    top_of_figure_7b = 9
    assert divergence(released, original) < 3
    assert 6 < divergence(original, released) < top_of_figure_7b
    domain = Domain(("item", "day"), (items, 1))
    records = np.arange(items).repeat(original)
    users = np.arange(len(records))
    truth = Interactions.from_codes(
        domain, users, records, np.zeros_like(records), UNBOUNDED, truth_public=True
    )
    estimate = ItemEdgeCounts(
        Histogram(domain.project(["item"]), released),
        Histogram(domain, released),
        sampled=False,
    )
    ours = KLDivergence("items", direction="released_given_original")
    assert ours(truth, estimate) == pytest.approx(divergence(released, original))
    ours = KLDivergence("items", direction="original_given_released")
    assert ours(truth, estimate) == pytest.approx(divergence(original, released))
