"""Under a ρ: what a unit really moves, at the rate of the noise that is drawn, costs no more than ρ.

Noise of rate r on values that move by Δ has the divergence r·Δ² of order 1; drawn values add up. Without
noise the path of both neighbours is the same, and every sum is exact.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from workbench import Bound, Domain, mechanisms
from workbench.mechanisms.protocol import blocks_within
from workbench.noise.discrete_gaussian import DiscreteGaussian
from workbench.noise.empty_cells import GaussianCell
from workbench.owner.audit import pairs_for
from workbench.privacy import REPLACE, ZCDP
from workbench.queries import Dyadic, Haar, Products

RHO = 0.02
NONE = np.zeros(0, np.int64)


def variants(cls):
    """The example, and others where a unit moves more than one value."""
    budget = ZCDP(RHO, 1e-6 if cls.spends_delta else 0.0)
    mechanism = cls.example(budget)
    yield mechanism
    if cls is mechanisms.CountSketch:
        yield replace(mechanism, depth=1, width=16)
    if cls is mechanisms.FPA:
        for k, bound, once in product((1, 3, 7), (1, 3), (False, True)):
            yield replace(mechanism, k=k, bound=bound, once=once)
    if hasattr(mechanism, "transform"):
        yield from (replace(mechanism, transform=t()) for t in (Dyadic, Haar))
    if cls is mechanisms.GaussianQueries:
        domain = pairs_for(mechanism)[0].one.domain
        for weight in np.random.default_rng(0).uniform(1, 2, 6):
            yield replace(
                mechanism, workload=Products.of(domain, [(weight, {}), (weight / 3, {})])
            )


@pytest.fixture
def drawn(monkeypatch):
    """The rate and the exact values of each draw of Gaussian noise, which adds none."""
    draws = []
    monkeypatch.setattr(
        DiscreteGaussian, "add", lambda law, out, words: draws.append((law.rate, out.copy()))
    )
    monkeypatch.setattr(GaussianCell, "survivors", lambda cell, empty, words: (NONE, NONE))
    return draws


@pytest.mark.parametrize("cls", [cls for cls in mechanisms.ALL if cls.accepts_zcdp])
def test_what_a_unit_moves_costs_no_more_than_rho(cls, drawn):
    most = Fraction(0)
    for mechanism in variants(cls):
        for pair in pairs_for(mechanism):
            sides = []
            for data in (pair.one, pair.other):
                drawn.clear()
                mechanism(data, np.random.default_rng(0))
                sides.append(list(drawn))
            one, other = sides
            if [x.shape for _, x in one] != [x.shape for _, x in other]:
                continue  # a cell that nobody else is in
            cost = Fraction(0)
            for (rate, x), (same, y) in zip(one, other, strict=True):
                assert rate == same
                cost += rate * sum(int(a) ** 2 for a in (x - y).ravel().tolist())
            assert cost <= Fraction(RHO), (mechanism, pair, float(cost))
            most = max(most, cost)
    # where a unit is replaced, the total does not move, nor the attributes that both units share
    assert most > Fraction(RHO) / (4 if cls.relation == REPLACE else 2)


@pytest.mark.parametrize("split", ["uniform", "geometric"])
@pytest.mark.parametrize("bound", [Bound(), Bound(1, 3), Bound(2, 1), Bound(2, 2, 3)], ids=repr)
def test_dyadic_boxes_are_charged_for_all_that_a_unit_moves(split, bound):
    """All that a unit can add to 12 cells, at the rate of the noise of each block."""
    basis = Dyadic(dims=2, split=split).on(Domain(("a", "b"), (4, 3)))
    blocks = blocks_within(basis, bound, ZCDP(RHO))
    ends = np.cumsum([block.size for block in blocks])
    costs = []
    for cells in combinations(range(12), bound.l0):
        for counts in product(range(int(bound.linf) + 1), repeat=bound.l0):
            if sum(counts) <= bound.l1:
                nodes, moved = basis.forward(np.array(cells), np.array(counts))
                own = np.searchsorted(ends, nodes, side="right")
                rates = [Fraction(b.rho) / Fraction(b.l2_squared) for b in blocks]
                costs.append(
                    sum(rates[b] * int(x) ** 2 for b, x in zip(own, moved, strict=True))
                )
    assert max(costs) <= Fraction(RHO)
    assert max(costs) > Fraction(RHO) * 3 / 4
