"""What mechanisms choose or tell from public numbers, and how they find what they count: by slow loops."""

import math
from fractions import Fraction

import numpy as np
import pytest

from workbench import Bound, Domain, SparseTable
from workbench.mechanisms import (
    GS,
    HPA,
    SRA,
    BasicAdaptiveHistogram,
    ChosenThreshold,
    HighPassFilter,
    UniformSampling,
)
from workbench.mechanisms.direct_synthesis import LocatedRecords
from workbench.mechanisms.dirichlet import _round_up, _stirling_rest
from workbench.privacy import DP, ZCDP
from workbench.spaces import Quadtree


@pytest.mark.parametrize("size", [16, 5, 1])
def test_every_sampled_cell_has_its_count(size):
    """Without noise to speak of: the first and the last sampled cell, too."""
    domain = Domain(("x",), (16,))
    table = SparseTable.from_keys(domain, np.arange(16), np.arange(1, 17), Bound())
    summary = UniformSampling(DP(200.0), size=size)(table, np.random.default_rng(0)).estimate
    assert (summary.values == summary.keys + 1).all() and len(summary.keys) == size


def test_the_largest_part_of_a_box_is_counted():
    rng = np.random.default_rng(1)
    for records in (0, 1, 40):
        box, first, second = rng.integers(0, 3, (3, records))
        count = rng.integers(1, 5, records)
        located = LocatedRecords(box, np.stack([first, second]), count)
        for digits, largest in zip(
            (first, second), located.largest_parts(located.codes, 4).T, strict=True
        ):
            literal = [
                max([count[(box == b) & (digits == d)].sum() for d in range(3)], default=0)
                for b in range(4)
            ]
            assert largest.tolist() == literal


@pytest.mark.parametrize("popularity", [0.0, 1.3, (5.0, 1.0, 1.0, 0.5, 3.0, 2.0)])
@pytest.mark.parametrize(("n", "budget"), [(300, DP(0.05)), (300, ZCDP(0.0004)), (1, DP(20.0))])
def test_the_suggested_bound_has_the_least_error_of_the_model(n, popularity, budget):
    """E(c̃ᵢ − cᵢ)² of the docstring, summed over items, at every l."""
    mechanism = SRA(budget, l="suggested", n=n, bound=40, popularity=popularity)
    share = mechanism._counts_amount() * 0.5
    p = (
        np.array(popularity)
        if isinstance(popularity, tuple)
        else np.arange(1, 7) ** -popularity
    )
    p = p / p.sum()

    def error(l):  # noqa: E741
        dropped = 40 - l
        noise = 2 * l**2 / share**2 if isinstance(budget, DP) else l**2 / (2 * share)
        return sum(n * dropped * q * (1 - q) + (n * q * dropped) ** 2 + noise for q in p)

    least = min(range(1, 41), key=error)
    suggested = mechanism._suggested(6, share)
    assert 1 < suggested < 40 and error(suggested) <= error(least) * (1 + 1e-9)


def test_the_suggested_width_has_the_least_estimated_error():
    rng = np.random.default_rng(2)
    mechanism = GS(DP(1.0), bound=3)
    chosen = set()
    for _ in range(12):
        noisy = rng.geometric(0.1, 24) * rng.integers(1, 4, 24) + rng.normal(0, 5, 24)
        l1, epsilon, factor, variance = 3, rng.choice([0.05, 0.3]), 2.0, 40.0
        errors = {}
        for width in mechanism.candidate_widths(24):
            starts = [*mechanism.group_starts(24, width), 24]
            squares = 0.0
            for low, high in zip(starts, starts[1:], strict=False):
                group = np.sort(noisy)[low:high]
                squares += ((group - group.mean()) ** 2).sum() - variance * (
                    1 - 1 / len(group)
                ) * len(group)
            errors[width] = factor**2 * max(0, squares) / 24 + 2 * (l1 / width / epsilon) ** 2
        width = mechanism.suggested_width(noisy, variance, factor, l1, epsilon)
        chosen.add(width)
        assert math.isclose(errors[width], min(errors.values()), rel_tol=1e-9)
    assert len(chosen) > 1


@pytest.mark.parametrize("depth", [1, 2])
def test_an_empty_node_is_split_with_the_chance_that_is_said(depth):
    """α^b/(1 + α) at the ε of the decisions, not of the counts."""
    mechanism = BasicAdaptiveHistogram(DP(2.0), threshold=3, depth=depth, measure=0.75)
    decay = mechanism.budgets()[0]
    chance = mechanism.empty_split_probability(Quadtree(1, depth), 1.0)
    assert math.isclose(chance, math.exp(-3 * decay) / (1 + math.exp(-decay)), rel_tol=1e-9)


@pytest.mark.parametrize("x", [1.5e3, 4e4, 1e7])
def test_the_rest_of_stirling_is_that_of_the_logarithm(x):
    """ln Γ(x) − x·ln x + x by its series to the fifth order; and ln x! beside it."""
    series = 0.5 * math.log(2 * math.pi / x) + 1 / (12 * x) - 1 / (360 * x**3)
    assert math.isclose(_stirling_rest(x), series, rel_tol=1e-12)
    assert math.isclose(
        _stirling_rest(x), math.lgamma(x) - x * math.log(x) + x, abs_tol=2e-15 * x * 20
    )
    assert math.isclose(_stirling_rest(x, 1), series + math.log(x), rel_tol=1e-12)


def test_a_chance_that_floats_lose_is_not_0():
    assert 0 < _round_up(0.0) < 1e-250 and _round_up(0.5) > 0.5 and _round_up(1.0) == 1.0


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1])
def test_a_choice_and_a_release_cost_no_less_than_both(epsilon):
    for other in (0.1, 0.2, 0.7):
        mechanism = ChosenThreshold(HighPassFilter(DP(other), theta=4), (2, 4), epsilon)
        assert Fraction(mechanism.budget.epsilon) >= Fraction(epsilon) + Fraction(other)


@pytest.mark.parametrize("cls", [SRA, HPA])
def test_a_suggested_bound_needs_numbers_that_are_public(cls):
    with pytest.raises(ValueError, match="bound"):
        cls(DP(1.0), l="suggested", n=10, popularity=1.0, **({"d": 2} if cls is HPA else {}))
