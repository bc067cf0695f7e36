"""δ of a ρ: it is spent before any ε is told, and no budget without it pays for it."""

import pytest

from workbench.privacy import DP, ZCDP


@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_an_epsilon_is_told_at_what_is_left_of_delta(rho):
    spent, delta = 2.0**-22, 2.0**-20
    told = ZCDP(rho, spent).at(delta)
    assert told == DP(ZCDP(rho).at(delta - spent).epsilon, delta)
    assert told.epsilon > ZCDP(rho).at(delta).epsilon


def test_a_budget_of_a_rho_pays_for_no_delta_that_it_has_not():
    assert ZCDP(1.0, 1e-6).covers(ZCDP(0.5, 1e-6))
    assert not ZCDP(1.0).covers(ZCDP(0.5, 1e-9))
    assert not ZCDP(1.0, 1e-9).covers(DP(0.1, 1e-6))
    assert not ZCDP(0.4, 1e-6).covers(ZCDP(0.5, 1e-6))
