"""The same prices by dp-accounting, where it is installed: equal where it computes the same, else within
its grid."""

import pytest

from workbench import DP, ZCDP, Receipt, guarantee, noise
from workbench.noise.additive import geometric_rho

accounting = pytest.importorskip(
    "dp_accounting", reason="dp-accounting, of the extra [peers], is not installed"
)
DELTAS = (1e-6, 1e-9)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 1.0])
def test_its_renyi_accountant_comes_down_to_ours_as_its_orders_grow_finer(rho, delta):
    """Ours is the least over all orders, theirs over a grid of them: equal to 9 digits on ours."""
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    ours = ZCDP(rho).at(delta).epsilon
    best = 1 + (ours - rho) / (2 * rho)
    coarse = [1 + x / 10 for x in range(1, 2000)]
    for orders, within in (
        (coarse, 1e-3),
        ([best * (1 + x / 20_000) for x in range(-9_000, 9_000)], 1e-9),
    ):
        orders = [order for order in orders if order > 1]
        theirs, _ = rdp.compute_epsilon(orders, [order * rho for order in orders], delta)
        assert ours * (1 - 1e-9) <= theirs <= ours * (1 + within)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 10), (0.1, 100), (0.01, 1000)])
def test_privacy_loss_distributions_of_geometric_noise_lie_below(epsilon, times, delta):
    """They know the whole law, we its ρ: never more than ours beyond their grid, and not far below."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    grid = 1e-4
    law = pld.from_discrete_laplace_mechanism(epsilon, value_discretization_interval=grid)
    theirs = law.self_compose(times).get_epsilon_for_delta(delta)
    receipt = Receipt("geometric", DP(epsilon), rho=geometric_rho(noise.decay(1, epsilon), 1))
    ours = guarantee([receipt] * times, delta).epsilon
    assert 0.85 * ours <= theirs <= ours + times * grid


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_privacy_loss_distributions_of_the_discrete_gaussian_lie_below(sigma, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    law = pld.from_discrete_gaussian_mechanism(sigma)
    ours = ZCDP(1 / (2 * sigma**2)).at(delta).epsilon
    assert 0.8 * ours <= law.get_epsilon_for_delta(delta) <= ours + 1e-4
