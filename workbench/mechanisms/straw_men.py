"""Simple mechanisms for comparison: uniform sampling, and the two-step process that the shortcuts replace."""

from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import Summary
from workbench.estimates.release import Release
from workbench.mechanisms.histograms import GaussianHistogram, GeometricHistogram
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import Mechanism, budget_field, private_bound, series_name
from workbench.mechanisms.summaries import HighPassFilter
from workbench.noise.law import Law
from workbench.privacy import DP, ZCDP
from workbench.value import not_allowed, parameter, value

# Uniform sampling


@value
class UniformSampling(Mechanism):
    """Sample cells at random, whatever their counts.

    On sparse data almost all sampled cells are empty.

    Guarantee  ε-DP per unit. All of ε pays for the counts. The choice of cells is public.
    Assumes    the table's bound.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, first paragraph.
    Differs    Answers are scaled by m/size, so that they are unbiased (the paper gives no estimator).
    Cost       time and memory O(non-empty cells + size).
    """

    budget: DP = budget_field()
    size: int = parameter(
        low=1, high=2**28, integer=True, unit="cells", doc="number of cells to release"
    )
    cite = "cormode2012"
    title = "uniform sampling"
    audited = audited_at(0, size=16)
    series = "uniform"
    converges = False  # what it does not sample it never learns, at any ε

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the sampled cells."""
        m = table.domain.size
        bound = private_bound(table)
        l1 = bound.l1
        epsilon = self.budget.epsilon
        self.refuse_size_above(m)
        keys = noise.uniform_keys(self.size, m, rng=rng)
        counts = np.zeros(self.size, np.int64)
        places = np.searchsorted(keys, table.keys)
        sampled = keys[np.minimum(places, self.size - 1)] == table.keys
        counts[places[sampled]] = table.counts[sampled]
        noisy, receipt = noise.geometric(
            counts, l1=l1, linf=bound.linf, epsilon=epsilon, rng=rng
        )
        summary = Summary(
            table.domain, keys, noisy, Law("geometric", epsilon / l1), scale=m / self.size
        )
        return Release(summary, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism with ten cells."""
        return cls(budget, size=10)


# Laborious


@value
class Laborious(Mechanism):
    """Release a summary through the full noisy table.

    The release has the same distribution as that of `mechanism`.

    Guarantee  ε-DP per unit, or ρ-zCDP, like the mechanism that it runs. The second step is
               post-processing.
    Assumes    the table's bound, and a domain that fits in memory.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.1 and Figure 1.
    Differs    nothing. We use it to test that the direct draws of other mechanisms have the same
               distribution, and to compare their speed.
    Cost       time and memory O(domain size).
    """

    mechanism: Any
    cite = "cormode2012"
    title = "two-step process"
    audited = audited_at(1)
    accepts_zcdp = True

    def __post_init__(self) -> None:
        if not hasattr(self.mechanism, "summarise"):
            raise not_allowed(
                self, "mechanism", "need a filter, threshold or priority mechanism"
            )

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures."""
        return f"laborious {series_name(self.mechanism)}"

    @property
    def budget(self) -> DP | ZCDP:
        """Budget of the mechanism that it runs."""
        return self.mechanism.budget

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Add noise to the full table, then summarise it."""
        transform = self.mechanism.transform
        cls: Any = GaussianHistogram if isinstance(self.budget, ZCDP) else GeometricHistogram
        full = cls(self.budget, transform=transform)(table, rng)
        summary = self.mechanism.summarise(full.estimate, table.bound, rng)
        return Release(summary, tuple(full.ledger), self, full.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism that runs a high-pass filter."""
        return cls(HighPassFilter.example(budget))
