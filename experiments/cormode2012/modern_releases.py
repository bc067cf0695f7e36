"""Every release of sparse counts that the workbench has, at one budget."""

from __future__ import annotations

from workbench import DP, ZCDP, Dyadic, Haar
from workbench.data import SparseTable
from workbench.mechanisms import (
    ALP,
    CountSketch,
    DirichletSynthesis,
    GaussianHistogram,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)

BASES = (None, Dyadic(), Dyadic(split="geometric"), Haar())


def of_no_size(budget: DP) -> list:
    """Tables of everything, and the histogram that releases what is stable."""
    tables = [GeometricHistogram(DP(budget.epsilon), transform=basis) for basis in BASES]
    gaussian = GaussianHistogram(ZCDP.within(budget), transform=Haar())
    return [*tables, StabilityHistogram(budget), gaussian]


def of_size(
    budget: DP, table: SparseTable, largest: int, size: int, records: int, size_factor: float
) -> list:
    """Filters and samples of cells and of nodes, and what is no summary of a noisy table.

    δ is spent by what needs one, and by Gaussian noise at the ρ within (ε, δ); the table's size, and its
    total, are public.
    """
    pure = DP(budget.epsilon)
    total = int(table.total)
    made = [HighPassFilter(pure, size=size, transform=basis) for basis in BASES]
    made.append(HighPassFilter(pure, size=size, transform=Dyadic(), consistent=True))
    for basis in (None, Dyadic()):
        how = dict(size=size, transform=basis)
        theta = round(0.8 * HighPassFilter(pure, **how).threshold(table.domain, 1))
        made.append(ThresholdSampling(pure, **how))
        made.append(PrioritySampling(pure, **how))
        made.append(PrioritySampling(pure, theta=theta, **how))
    rho = ZCDP.within(budget)
    cut = HighPassFilter(rho, **how).threshold(table.domain, table.bound)
    return [
        *made,
        PrioritySampling(pure, theta=theta, consistent=True, **how),
        *(HighPassFilter(rho, size=size, transform=basis) for basis in (None, Dyadic())),
        PrioritySampling(rho, theta=round(0.8 * cut), **how),
        ALP(pure, largest=largest, total=total, size_factor=size_factor),
        CountSketch(pure, width=2 * size),
        DirichletSynthesis(budget, records=records, total=total, notion="approximate"),
    ]
