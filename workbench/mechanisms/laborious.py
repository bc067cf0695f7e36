"""Laborious: the two-step process that a shortcut replaces: noise on every cell, then the summary.

Guarantee  ε-DP per unit, or ρ-zCDP, as the mechanism it runs; the second step is post-processing.
Assumes    the table's bound; a domain that fits in memory.
Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.1 and Figure 1.
Differs    nothing; it exists so that the shortcuts' equality in law can be tested, and their speed
           compared.
Cost       time and memory O(domain size).
"""

from typing import Any, Self

import numpy as np

from workbench.mechanism import DP, ZCDP, Mechanism, Release, SparseTable, series_name
from workbench.mechanisms.gaussian_histogram import GaussianHistogram
from workbench.mechanisms.geometric_histogram import GeometricHistogram
from workbench.mechanisms.high_pass_filter import HighPassFilter
from workbench.value import not_allowed, value


@value
class Laborious(Mechanism):
    """The same release as `mechanism`, in law, by way of the full noisy table."""

    mechanism: Any
    cite = "cormode2012"
    title = "two-step process"
    accepts_zcdp = True

    def __post_init__(self) -> None:
        if not hasattr(self.mechanism, "summarise"):
            raise not_allowed(
                self, "mechanism", "need a filter, threshold or priority mechanism"
            )

    @property
    def series(self) -> str:
        """Its name in figures."""
        return f"laborious {series_name(self.mechanism)}"

    @property
    def budget(self) -> DP | ZCDP:
        """The budget of the mechanism it runs."""
        return self.mechanism.budget

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release by way of the full noisy table."""
        transform = self.mechanism.transform
        cls: Any = GaussianHistogram if isinstance(self.budget, ZCDP) else GeometricHistogram
        full = cls(self.budget, transform=transform)(table, rng)
        summary = self.mechanism.summarise(full.estimate, table.bound, rng)
        return Release(summary, tuple(full.ledger), self, full.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Of a filter."""
        return cls(HighPassFilter.example(budget))
