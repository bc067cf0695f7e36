"""Simple mechanisms for comparison: uniform sampling, and a slow process in two steps. Releases of the slow
process have the same distribution as releases of a faster mechanism.
"""

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
    """Release noisy counts of random cells.

    The mechanism draws `size` cells of the domain at random, and adds noise to their counts. If most cells of
    the domain are empty, almost all sampled cells are empty.

    Guarantee  The release is ε-DP for each unit. The whole ε pays for the noise on the counts. The choice of
               cells does not depend on the data, so the choice costs no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.3, first paragraph.
    Differs    The paper does not say how to answer queries from the sample. We multiply answers by m/size,
               where m is the number of cells in the domain. With this factor, answers are unbiased.
    Cost       Time and memory are O(non-empty cells + size).
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
        """Release the sampled cells with their noisy counts."""
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
        """Return an example of the mechanism for tests. It samples ten cells."""
        return cls(budget, size=10)


# Laborious


@value
class Laborious(Mechanism):
    """Add noise to every cell, then select some cells.

    The mechanism works in two steps. First, it adds noise to every cell. Then it selects some of the cells by
    the rule of another mechanism, the inner `mechanism`. A release has the same distribution as a release of
    the inner mechanism. The inner mechanism is faster, because it draws the selected cells directly, without
    noise for every cell.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP, where ε or ρ is the budget of the inner mechanism.
               The second step uses only noisy counts, so this step costs no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows. All cells of the
               domain (the public list of possible cells) fit in memory.
    Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 2.1 and Figure 1.
    Differs    nothing. We use this mechanism for two purposes: to test whether releases of the inner mechanism
               have the right distribution, and to compare the speed.
    Cost       Time and memory are O(number of possible cells).
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
        """Name of the mechanism in the legends of figures, for example "laborious filter"."""
        return f"laborious {series_name(self.mechanism)}"

    @property
    def budget(self) -> DP | ZCDP:
        """Budget of the inner mechanism."""
        return self.mechanism.budget

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Add noise to all cells, then release the cells that the inner mechanism selects."""
        transform = self.mechanism.transform
        cls: Any = GaussianHistogram if isinstance(self.budget, ZCDP) else GeometricHistogram
        full = cls(self.budget, transform=transform)(table, rng)
        summary = self.mechanism.summarise(full.estimate, table.bound, rng)
        return Release(summary, tuple(full.ledger), self, full.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. Its inner mechanism is a high-pass filter."""
        return cls(HighPassFilter.example(budget))
