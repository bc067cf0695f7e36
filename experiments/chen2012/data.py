"""Chen, Zhou & Bhowmick 2012: the data, questions, noise and prior of Figures 2 to 5.

Data    Census Income, the real extract of the nine attributes with 199,523 people, where it is at hand;
        and the twin of the paper's extract, with its domains and its 500,000 people. How many people
        there are is printed, so it is declared (`total`) and not counted.
m       5000 past queries in the paper; here 1500 (paper profile) and 400 (quick), since every seed,
        prior, dataset and kind of query is an eigendecomposition of m × m. Fewer queries are each
        answered with less noise, as ε is the same, and say less together.
Noise   Laplace's, ε = 1 for all m together. The paper takes the sensitivity to be m; here it is
        computed from the queries, which no tuple meets all: about a third of that for ranges, and
        somewhat over a half for tables.
Prior   all 1-D marginals, ε = 0.02 more, noisy counts below the noise's deviation raised to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from workbench import DP, SparseTable
from workbench.datasets import CensusIncome, IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.experiment import first_available
from workbench.inference import product_prior
from workbench.mechanisms import LaplaceQueries
from workbench.workload import (
    Marginals,
    RandomMarginalRanges,
    RandomTables,
    linear_queries,
    workload_sensitivity,
)

BUDGET = DP(1.0)
PRIOR_BUDGET = DP(0.02)
PAST = {"quick": 400, "paper": 1500}
NEW = {"quick": 400, "paper": 1000}
SEEDS = {"quick": 3, "paper": 5}
ALPHAS = np.geomspace(10, 1e7, 13)  # tuples: two a decade
KINDS = {"ranges": RandomMarginalRanges, "tables": RandomTables}
WITHOUT = "no prior"
WITH = "with prior"


@dataclass(frozen=True)
class Case:
    """One dataset by the name of its panels, and the number of its people as printed."""

    name: str
    dataset: Any
    total: float

    @property
    def twin(self) -> bool:
        """Whether it is made up."""
        return isinstance(self.dataset, IPUMSTwin)


def cases() -> dict[str, Case]:
    """What is run, by the names of panels: real data first, if it is at hand."""
    available = {}
    census = first_available(CensusIncome(), None)
    if census is not None:
        available["Census Income"] = Case("Census Income", census, 199_523.0)
    available["IPUMS twin"] = Case("IPUMS twin", IPUMSTwin(), 500_000.0)
    return available


def random_queries(kind: str, count: int, seed: int, new: bool = False):
    """A recipe of random 2-D queries; new ones are independent of the past ones of any seed."""
    return KINDS[kind](count, seed=2 * seed + new)


def noise_budget(table: SparseTable, workload, scale: float | None) -> DP:
    """What Laplace noise of this scale costs for all queries together; ε = 1 if none is given."""
    if scale is None:
        return BUDGET
    return DP(workload_sensitivity(workload, table.domain) / scale)


def noisy_answers(
    table: SparseTable, workload, *entropy: int, budget: DP = BUDGET
) -> NoisyAnswers:
    """Noisy answers, with noise that anyone can replay: the data is public."""
    return LaplaceQueries(budget, workload)(table, np.random.default_rng(entropy)).estimate


def prior(table: SparseTable, *entropy: int) -> tuple[tuple[float, ...], ...]:
    """Weights of each attribute's codes, bought for ε = 0.02."""
    return product_prior(noisy_answers(table, Marginals(1), 2, *entropy, budget=PRIOR_BUDGET))


def exact_answers(table: SparseTable, workload) -> Float[np.ndarray, " queries"]:
    """Exact answers, of public data only."""
    assert table.truth_public
    workload = linear_queries(workload, table.domain)
    return workload.sums(table.domain, table.keys, table.counts)


def dataset_columns(case: Case, **more: Any) -> dict[str, Any]:
    """The columns of every row that is of this dataset."""
    return {
        "dataset": repr(case.dataset),
        "truth_public": case.dataset.truth_public,
        "epsilon": BUDGET.epsilon,
        "case": case.name,
    } | more
