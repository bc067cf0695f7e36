"""What pure noise costs in zCDP: its divergence summed literally, at many orders, for every move."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest

from workbench import (
    DP,
    Bound,
    Domain,
    Dyadic,
    Haar,
    Marginals,
    SparseTable,
    compose,
    mechanisms,
    noise,
)
from workbench.noise.additive import choice_rho, geometric_rho
from workbench.privacy import rho_above

ORDERS = ("1.0001", "1.3", "2", "5.5", "40", "300")


def divergence(decay, k, order):
    """The Rényi divergence of geometric noise from the same noise moved by k; of order 1 the first."""
    order = Decimal(order)
    alpha = (-Decimal(decay.numerator) / decay.denominator).exp()
    normaliser = (1 - alpha) / (1 + alpha)
    moment = 0
    most = int(60 / decay)
    for x in range(-most, most + k):
        here = normaliser * alpha ** abs(x)
        moved = normaliser * alpha ** abs(x - k)
        moment += (
            here * (here / moved).ln() if order == 1 else here**order * moved ** (1 - order)
        )
    return moment if order == 1 else moment.ln() / (order - 1)


@pytest.mark.parametrize(("decay", "k"), [((1, 2), 1), ((1, 2), 7), ((3, 1), 2), ((1, 5), 3)])
def test_noise_moved_by_k_has_the_divergence_of_order_1_and_no_more_at_others(decay, k):
    """Geometric noise with decay a, on a number that changes by k, costs ρ = a(k − 2q(1 − q^k)/(1 − q²)).

    Here q = e^(−a). This ρ is the divergence D_α as α approaches 1. It remains to show D_α ≤ α·ρ.

    Proof: let Z be the loss, which is the logarithm of the ratio of an output's two probabilities. With
    s = 2α − 1, the moment E e^((α−1)Z) is M(s) = Σ_j c_j·cosh(s·z_j). The sum is over the losses
    z_j = a(k − 2j)/2 for j = 0, …, k. All losses between the two centres have the same weight c, and the two
    extreme losses have the weight c·A with A = 1/(1 − q) ≥ 1. Let w = e^(sa). Up to a factor, M is
    A(w^k + 1) + w + … + w^(k−1). Multiplied by w − 1, this is w^k(Aw − (A − 1)) − (A − (A − 1)w). It is 0 if
    w^k·B(w) = 1 with B(w) = (Aw − (A − 1))/(A − (A − 1)w). The absolute value of w^k·B(w) is below 1 inside
    the unit circle, and above 1 outside. So all zeros are on the circle, where s is imaginary. As a function
    of u = s², M is entire of order ½, and all its zeros are negative. So M is a product of factors 1 + u/r_i,
    and ln M is concave in u. Therefore ln M(s) is at most s² − 1 times the slope of ln M at u = 1, which is
    α(α − 1)·ρ.
    """
    with localcontext() as context:
        context.prec = 40
        decay = Fraction(*decay)
        rho = Decimal(geometric_rho(decay, k))
        least = divergence(decay, k, "1")
        assert least * (1 - Decimal("1e-20")) <= rho <= least * (1 + Decimal("1e-15"))
        for order in ORDERS:
            assert divergence(decay, k, order) <= Decimal(order) * rho


@pytest.mark.parametrize(("l1", "linf"), [(5, 2), (6, 2), (4, 4), (3, 1)])
def test_no_move_within_a_bound_costs_more_than_filling_value_after_value(l1, linf):
    decay = Fraction(3, 7)
    cost = [0.0] + [geometric_rho(decay, k) for k in range(1, linf + 1)]
    moves = [m for m in product(range(linf + 1), repeat=5) if sum(m) <= l1]
    worst = max(sum(cost[k] for k in move) for move in moves)
    assert geometric_rho(decay, l1, linf) == pytest.approx(worst, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("l1", [1, 3, Fraction(7, 2)])
def test_structure_never_costs_more_than_any_measurement_of_this_epsilon(epsilon, l1):
    rho = geometric_rho(noise.decay(l1, epsilon), l1)
    assert 0 < rho <= rho_above(epsilon)
    if l1 == 1:
        assert rho == rho_above(epsilon)  # the worst there is
    assert geometric_rho(noise.decay(l1, epsilon), l1, 1) <= rho


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_choices_cost_no_more_than_an_eighth_of_the_square(epsilon):
    """Of two laws whose log-ratios lie within an interval of length ε, at every order."""
    worst = 0.0
    for low in np.linspace(-epsilon, 0, 99)[1:-1]:
        high = low + epsilon
        p = (1 - exp(low)) / (exp(high) - exp(low))  # Σ p·e^ratio = 1
        for order in map(float, ORDERS):
            logs = log(p) + order * high, log(1 - p) + order * low
            worst = max(worst, np.logaddexp(*logs) / (order - 1) / order)
    assert worst <= choice_rho(epsilon)
    assert worst >= 0.7 * choice_rho(epsilon)


def table(bound):
    domain = Domain(("a", "b"), (4, 4))
    return SparseTable.from_keys(domain, [1, 5, 11], [4, 2, 1], bound)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [Bound(), Bound(2, 1, 2), Bound(2, 2, 3)])
@pytest.mark.parametrize(
    ("mechanism", "linear"),
    [
        (mechanisms.GeometricHistogram(DP(0.5)), lambda x: x),
        (mechanisms.LaplaceHistogram(DP(0.5), noise="geometric"), lambda x: x),
        (mechanisms.GeometricHistogram(DP(0.5), transform=Dyadic()), "transform"),
        (mechanisms.GeometricHistogram(DP(0.5), transform=Haar()), "transform"),
        (mechanisms.GeometricHistogram(DP(0.5), transform=Dyadic(split="geometric")), None),
        (mechanisms.LaplaceQueries(DP(0.5), Marginals(1), noise="geometric"), "marginals"),
    ],
)
def test_receipts_cover_every_move_of_a_unit(mechanism, linear, bound):
    """Against the sum over values of what each costs, for every unit of a few cells."""
    data = table(bound)
    release = mechanism(data, np.random.default_rng(1))
    charged = sum(r.rho for r in release.ledger)
    if linear is None:
        assert charged < rho_above(0.5)
        return
    steps = _matrix(mechanism, linear, data.domain)
    l1 = np.abs(steps).sum(axis=0).max() * bound.l1
    decay = noise.decay(Fraction(float(l1)), 0.5)
    worst = 0.0
    for cells in product(range(16), repeat=2):
        for counts in product(range(bound.linf + 1), repeat=2):
            move = np.zeros(16, int)
            for cell, count in zip(cells, counts, strict=True):
                move[cell] += count
            if move.max() > bound.linf or move.sum() > bound.l1 or not move.any():
                continue
            moved, times = np.unique(np.abs(steps @ move), return_counts=True)
            cost = sum(
                n * geometric_rho(decay, int(k)) for k, n in zip(moved, times, strict=True) if k
            )
            worst = max(worst, cost)
    assert worst <= charged * (1 + 1e-12)
    if bound.l1 == 1:
        assert charged == pytest.approx(worst, rel=1e-9)


def _matrix(mechanism, linear, domain):
    """How one count in each cell moves all values."""
    columns = []
    for cell in range(domain.size):
        one = np.array([cell]), np.array([1])
        if linear == "transform":
            basis = mechanism.transform.on(domain)
            nodes, values = basis.forward(*one)
            column = np.zeros(sum(block.size for block in basis.noise_blocks), int)
            column[nodes] = values
        elif linear == "marginals":
            column = np.zeros(8, int)
            column[cell // 4] = 1
            column[4 + cell % 4] = 1
        else:
            column = np.zeros(domain.size, int)
            column[cell] = 1
        columns.append(column)
    return np.array(columns).T


def test_a_dyadic_release_over_25_levels_costs_a_twentyfourth():
    domain = Domain(("key",), (2**24,))
    data = SparseTable.from_keys(domain, [3], [2], Bound())
    release = mechanisms.HighPassFilter(DP(0.5), theta=400, transform=Dyadic())(data)
    (receipt,) = release.ledger
    assert receipt.rho == pytest.approx(25 * 0.02 * np.tanh(0.01), rel=1e-12)
    assert compose(release.ledger) == DP(0.5)
    assert 24 < rho_above(0.5) / receipt.rho < 25
