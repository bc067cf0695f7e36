"""The exact law of Fourier coefficients under ρ: their noise is independent, so that divergences add up."""

import numpy as np
import pytest

from workbench import ZCDP
from workbench.mechanisms import FPA
from workbench.noise.discrete_gaussian import DiscreteGaussian
from workbench.owner.audit import pairs_for

RHO = 0.05


def measured(mechanism, data, monkeypatch):
    """The exact values, in steps, that Gaussian noise is added to, and the rate of each."""
    calls = []

    def add(law, out, words):
        calls.append((np.array(out), float(law.rate)))

    with monkeypatch.context() as patch:
        patch.setattr(DiscreteGaussian, "add", add)
        mechanism(data, np.random.default_rng(0))
    return calls


def divergence(shift, rate, order):
    """D_α of the law of noise and the same law moved, summed value by value."""
    reach = int(9 / np.sqrt(rate)) + abs(shift)
    x = np.arange(-reach, reach + 1).astype(float)
    p = np.exp(-rate * x**2)
    p /= p.sum()
    ratio = -rate * (x**2 - (x - shift) ** 2)
    if order == 1:
        return (p * ratio).sum()
    return np.log((p * np.exp((order - 1) * ratio)).sum()) / (order - 1)


def spent(mechanism, pair, monkeypatch):
    """The ρ of orders 1 and 4 that the released coefficients spend together."""
    one = measured(mechanism, pair.one, monkeypatch)
    other = measured(mechanism, pair.other, monkeypatch)
    assert [rate for _, rate in one] == [rate for _, rate in other]
    moved = [
        (int(shift), rate)
        for (x, rate), (y, _) in zip(one, other, strict=True)
        for shift in x - y
        if shift
    ]
    return max(sum(divergence(*m, order) for m in moved) / order for order in (1, 4))


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("k", [3, 7])
@pytest.mark.parametrize("bound", [1, 3])
def test_coefficients_spend_their_rho_and_no_more(bound, k, once, monkeypatch):
    mechanism = FPA(ZCDP(RHO), bound=bound, k=k, once=once)
    pairs = pairs_for(mechanism)
    losses = [spent(mechanism, pair, monkeypatch) for pair in pairs]
    assert max(losses) <= RHO * (1 + 1e-9)
    if bound == 1 or not once:  # of several items no pair is the worst
        assert max(losses) > 0.7 * RHO


def test_coefficients_that_are_charged_as_if_they_were_fewer_are_seen(monkeypatch):
    mechanism = FPA(ZCDP(RHO), bound=1, k=5)
    charged = FPA.coefficient_l2

    def cheaper(self, k, n, bound):
        return charged(self, k - 2, n, bound)

    monkeypatch.setattr(FPA, "coefficient_l2", cheaper)
    losses = [spent(mechanism, pair, monkeypatch) for pair in pairs_for(mechanism)]
    assert max(losses) > 1.2 * RHO
