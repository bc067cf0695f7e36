"""What a history of answers says of new queries, kept between pictures: only α and noise move fast."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, product_prior, select_alpha
from workbench.inference.eigenqueries import Eigenqueries, ProjectedQueries
from workbench.mechanism import Release
from workbench.mechanisms import LaplaceQueries
from workbench.noise import Aligned
from workbench.privacy import DP
from workbench.widgets.scenes import loaded
from workbench.workload import First, Marginals, RandomMarginalRanges, Recipe, linear_queries
from workbench.workload.linear import Linear

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from workbench.inference.cross_validation import SelectedAlpha

NEW = RandomMarginalRanges(200, seed=1)
COUNTS = LaplaceQueries(DP(0.02), Marginals(1))  # behind the prior
SHOWN = 48  # queries whose answers are drawn


@lru_cache(8)
def _queries(workload: Recipe, domain: Domain) -> Linear:
    """A recipe's queries: the same ones, so that their sensitivity is worked out once."""
    return linear_queries(workload, domain)


@lru_cache(8)
def history_release(dataset: Any, mechanism: LaplaceQueries, seed: int) -> Release:
    """Past queries with their noise, which the seed replays."""
    data = loaded(dataset)
    queries = _queries(mechanism.workload, data.domain)
    release = replace(mechanism, workload=queries)(data, Aligned(seed))
    return replace(release, mechanism=mechanism)


@lru_cache(16)
def _eigenqueries(domain: Domain, past: First, method: KernelPCA) -> Eigenqueries:
    """Of past queries whose answers are 0, with noise of deviation 1: no data has a part in it."""
    queries = linear_queries(past, domain)
    count = len(queries)
    return method(NoisyAnswers(domain, queries, np.zeros(count), np.ones(count))).eigen


@lru_cache(32)
def projected_queries(
    domain: Domain, past: First, method: KernelPCA, workload: Recipe
) -> ProjectedQueries:
    """A workload as combinations of eigenqueries."""
    return _eigenqueries(domain, past, method).project(workload)


@lru_cache(8)
def prior_weights(dataset: Any, seed: int) -> tuple[Release, tuple[Any, ...]]:
    """The counts that are bought for the prior, and its weights."""
    release = COUNTS(loaded(dataset), Aligned(prior_seed(seed)))
    return release, product_prior(release.estimate)


def prior_seed(seed: int) -> list[int]:
    """The seed of the prior's noise, apart from the history's."""
    return [seed, 1]


@lru_cache(8)
def validated_alpha(
    dataset: Any, mechanism: LaplaceQueries, total: float, prior: bool, seed: int
) -> SelectedAlpha:
    """The α of cross-validation."""
    history = history_release(dataset, mechanism, seed).estimate
    weights = prior_weights(dataset, seed)[1] if prior else None
    return select_alpha(history, total=total, prior=weights)


@lru_cache(16)
def exact_answers(dataset: Any, workload: Recipe) -> Float[np.ndarray, " queries"]:
    """The truth."""
    return loaded(dataset).answer(workload)


@lru_cache(1)
def unit_price(domain: Domain) -> float:
    """The ε at which new queries are answered with an error of 1 tuple; it is inverse to the error."""
    return LaplaceQueries(DP(1.0), NEW).epsilon_for(domain, 1.0)


def evenly_by_truth(
    exact: Float[np.ndarray, " queries"],
) -> tuple[Int[np.ndarray, " shown"], Int[np.ndarray, " shown"]]:
    """Ranks of some queries, evenly among all by their truth, and which queries they are."""
    rank = np.unique(np.linspace(0, len(exact) - 1, SHOWN).astype(np.int64))
    return rank + 1, np.argsort(exact, kind="stable")[rank]
