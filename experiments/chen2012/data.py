"""Data, queries, noise and prior for Figures 2 to 7 of Chen, Zhou & Bhowmick (2012).

Data    Census Income, the real extract with nine attributes and 199,523 people, if its files are available.
        There is also a synthetic stand-in for the paper's extract, with its domains and 500,000 people.
        The paper prints the number of people, so every method may use it.
m       5000 past queries, as in the paper. Each release has its own queries. A new query is a query that
        was not bought.
Noise   Laplace noise with the scale that the paper prints, if it prints one. Its ε is smaller than the
        paper's. The paper takes the sensitivity to be m, although no record is counted by all queries. We
        compute the sensitivity. If no scale is printed, one ε is used for all m queries together.
Prior   All marginals of single attributes, which are bought separately. Noisy counts below the standard
        deviation of the noise are raised to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments._fields import unprinted, unprinted_number
from workbench import DP, Domain, SparseTable
from workbench.datasets import CensusIncome, IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.estimates.release import Release
from workbench.figures import EFFORT, fields
from workbench.figures.fields import epsilon, number
from workbench.figures.figure import other_dataset
from workbench.inference import product_prior
from workbench.mechanisms import LaplaceQueries
from workbench.mechanisms.protocol import Mechanism
from workbench.queries import (
    Marginals,
    RandomMarginalRanges,
    RandomTables,
    Workload,
    workload_sensitivity,
)
from workbench.queries.inner import means
from workbench.trials import first_available
from workbench.value import parameter, value

CENSUS = "Census Income"
TWIN = "IPUMS twin"
TOTALS = {CENSUS: 199_523, TWIN: 500_000}
RECIPES = {"ranges": RandomMarginalRanges, "tables": RandomTables}
PAST = "past"
NEW = "new"
WITHOUT = "no prior"
WITH = "with prior"


def data_parameter() -> Any:
    """Return the declaration of a figure's parameter `data`."""
    names = (CENSUS, TWIN)
    return fields.datasets(names, names, "datasets", kind=EFFORT)


def datasets(names: tuple[str, ...], people: int = TOTALS[TWIN]) -> dict[str, Any]:
    """Return the available datasets by name. The synthetic stand-in has `people` people. If no dataset is
    available, the stand-in is returned.
    """
    ours = {CENSUS: first_available(CensusIncome(), None), TWIN: IPUMSTwin(people)}
    all_names = {name: ours[name] if name in ours else other_dataset(name) for name in names}
    available = {name: data for name, data in all_names.items() if data is not None}
    return available or {TWIN: ours[TWIN]}


def people_of(name: str, dataset: Any) -> int:
    """Return the number of people of a dataset, which is public."""
    if name == TWIN:
        return dataset.records
    return TOTALS.get(name) or dataset.load().total


@dataclass(frozen=True)
class Bank:
    """Answers that were bought: answers to past queries, a prior, and possibly answers to new queries. `seed`
    is the seed of the queries.
    """

    history: NoisyAnswers
    prior: tuple[tuple[float, ...], ...]
    seed: int
    new: NoisyAnswers | None = None

    def __len__(self) -> int:
        return len(self.history)

    @property
    def priors(self) -> dict[str, tuple | None]:
        """Dictionary with the two priors: none, and the one that was bought."""
        return {WITHOUT: None, WITH: self.prior}

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of a past answer."""
        return float(self.history.variances[0] ** 0.5)

    def noiseless(self, truth: SparseTable) -> NoisyAnswers:
        """Return the past answers without noise, with the same variances."""
        return replace(self.history, values=truth.answer(self.history.workload))

    def queries(self, count: int) -> dict[str, Workload]:
        """Return the past queries, and `count` new ranges without those that were bought."""
        return {PAST: self.history.workload, NEW: self.unbought("ranges", count)}

    def unbought(self, kind: str, count: int) -> Workload:
        """Return random queries of a kind that are independent of the past ones. Queries that were also
        bought are left out.
        """
        domain = self.history.domain
        drawn = RECIPES[kind](count, seed=self.seed + 1).on(domain)
        rng = np.random.default_rng(0)
        weights = [rng.dirichlet(np.ones(n)) for n in domain.shape]
        bought = means(self.history.workload, domain, weights)
        asked = means(drawn, domain, weights)  # equal, but for rounding, where queries are
        return drawn[~np.isin(asked.round(12), bought.round(12))]


@value
class QueryBank(Mechanism):
    """Mechanism that buys answers to random queries, and the marginals for a prior. Each release has other
    queries.
    """

    epsilon: float = parameter(1.0, 0, strict=True, doc="ε of all answers together")
    prior_epsilon: float = parameter(0.02, 0, strict=True, doc="ε of the marginals")
    past: str = parameter("ranges", choices=tuple(RECIPES), doc="kind of queries")
    queries: int = parameter(1500, 1, integer=True, doc="number of queries")
    scale: float = parameter(0.0, 0, unit="tuples", doc="smallest scale of the noise")

    @property
    def budget(self) -> DP:
        """Budget of both purchases."""
        return DP(self.epsilon + self.prior_epsilon)

    def price(self, queries: Any, domain: Domain) -> DP:
        """Return the price of answers to some queries, whose noise has at least the stated scale."""
        if not self.scale:
            return DP(self.epsilon)
        return DP(min(self.epsilon, workload_sensitivity(queries, domain) / self.scale))

    def __call__(self, table, rng=None) -> Release:
        """Return a release with a `Bank`."""
        seed = 2 * int(np.random.default_rng(rng).integers(2**31))  # the queries are public
        queries = RECIPES[self.past](self.queries, seed=seed)
        answers = LaplaceQueries(self.price(queries, table.domain), queries)(table, rng)
        marginals = LaplaceQueries(DP(self.prior_epsilon), Marginals(1))(table, rng)
        bank = Bank(answers.estimate, product_prior(marginals.estimate), seed)
        return Release(bank, answers.ledger + marginals.ledger, self, table.bound)


@value
class UnionBank(QueryBank):
    """Mechanism that also buys answers to new queries of the same kind, with noise of the same scale."""

    added: int = parameter(
        1000, 1, integer=True, doc="new queries, but for those bought before"
    )

    @property
    def budget(self) -> DP:
        """Budget of all three purchases."""
        return DP(2 * self.epsilon + self.prior_epsilon)

    def __call__(self, table, rng=None) -> Release:
        """Return a release with a `Bank` that contains the new answers."""
        rng = np.random.default_rng(rng)
        release = QueryBank.__call__(self, table, rng)
        queries = release.estimate.unbought(self.past, self.added)
        bought = LaplaceQueries(self.price(queries, table.domain), queries)(table, rng)
        bank = replace(release.estimate, new=bought.estimate)
        return Release(bank, release.ledger + bought.ledger, self, table.bound)


# What the figures of section 5.1 share: data, noise, and the values of α.


@value
class OverAlpha:
    """Base class of the figures of section 5.1 of Chen et al. (2012). Its fields are the data, the printed
    noise, and the values of α.
    """

    data: tuple[str, ...] = data_parameter()
    epsilon: float = epsilon(1.0, "privacy budget ε of all past answers")
    prior_epsilon: float = number(0.02, "privacy budget ε of the prior", 1e-6, 1000)
    scale: float = number(5000.0, "scale of the noise that the paper prints", unit="tuples")
    low: float = unprinted_number(10.0, "smallest α", 1e-6, 1e12, unit="tuples")
    high: float = unprinted_number(3e6, "largest α", 1e-6, 1e12, unit="tuples")
    points: int = unprinted(12, "number of values of α", 3, 1000)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Values of α for kernel PCA, equally spaced on a logarithmic axis."""
        return tuple(np.geomspace(self.low, self.high, self.points).tolist())
