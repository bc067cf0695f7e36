"""Stability-based histogram: noise on the non-empty cells alone, of which the large ones are released.

Guarantee  (ε, δ)-DP per unit, or δ-approximate ρ-zCDP; ε, or ρ, pays for the counts, δ for
           the chance that a cell shows which one unit alone fills. An empty cell is never released.
Assumes    the table's bound.
Source     Korolova, Kenthapadi, Mishra & Ntoulas, WWW 2009, Algorithm 1; Bun, Nissim &
           Stemmer, ITCS 2016, the stability-based histogram.
Differs    geometric or Gaussian noise, and the smallest whole cut whose exact failure probability, over
           all that the bound allows one unit, is at most δ; what is paid is that probability, not δ.
Cost       time and memory O(non-empty cells), whatever the domain's size.
"""

import numpy as np

from workbench.domain import Domain
from workbench.estimates import Summary
from workbench.mechanism import (
    DP,
    ZCDP,
    Mechanism,
    Release,
    amount,
    approximate_budget,
    noise,
    private_bound,
)
from workbench.table import Bound, SparseTable
from workbench.value import value


@value
class StabilityHistogram(Mechanism):
    """Release the non-empty cells whose noisy count reaches the cut that δ asks for."""

    budget: DP | ZCDP = approximate_budget(zcdp=True)
    cite = "korolova2009"
    title = "stability histogram"
    series = "stability histogram"
    fixed_price = True
    spends_delta = True
    accepts_zcdp = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> int:
        """T, the smallest whole number >= 1 with 1 − Π (1 − Pr[c_j + X >= T]) <= δ.

        The product is over cells that one unit newly fills with c_j counts, at its largest within the
        bound. Where one unit fills one cell with one count, T = 1 + ln(1/(δ(1+α)))/ε, rounded up.
        """
        theta, _ = noise.stability_threshold(bound, **self.price)
        return theta

    @property
    def price(self) -> dict[str, float]:
        """What `noise` is told that it may spend."""
        kind = "rho" if isinstance(self.budget, ZCDP) else "epsilon"
        return {kind: amount(self.budget), "delta": self.budget.delta}

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """T, one-sided, with empty cells left out, from which `advice` computes errors."""
        return dict(theta=float(self.threshold(bound)), sides=1, silent=True)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that reach the cut."""
        bound = private_bound(table)
        keys, noisy, theta, receipt = noise.stability_histogram(
            table.keys,
            table.counts,
            bound,
            **self.price,
            rng=rng,
        )
        # without a law: what holds for noise on every cell does not hold here
        summary = Summary(table.domain, keys, noisy, None, theta, sides=1)
        return Release(summary, (receipt,), self, bound)
