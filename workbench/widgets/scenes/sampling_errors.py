"""What is expected of SRA at every l: the error of the sampling, and that of the noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.datasets import InteractionsTwin
from workbench.domain import Domain
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanisms import SRA
from workbench.metrics import MeanSquaredCountError, sampling_error
from workbench.noise import variance
from workbench.widgets.controls import decades
from workbench.widgets.scenes import loaded


class SamplingErrors(NamedTuple):
    """The root of the error of sampling alone, known exactly at some l."""

    ls: np.ndarray
    roots: np.ndarray


@lru_cache(64)
def sampling_errors(dataset: InteractionsTwin, of: str) -> SamplingErrors:
    """At round l up to the most that a user has."""
    most = dataset.max_per_user
    ls = np.array(sorted({*decades(1, most, whole=True), most}))
    return SamplingErrors(ls, np.sqrt(sampling_error(loaded(dataset), ls, of)))


@lru_cache(64)
def error_of_zeros(dataset: InteractionsTwin, of: str) -> float:
    """The error of saying 0 of everything."""
    data = loaded(dataset)
    items = data.domain.project(data.domain.attributes[:1])
    zeros = ItemEdgeCounts(
        Histogram(items, np.zeros(items.size)),
        Histogram(data.domain, np.zeros(data.domain.size)),
    )
    return MeanSquaredCountError(of)(data, zeros)


def expected_error(dataset: InteractionsTwin, mechanism: Any, of: str) -> Callable[..., Any]:
    """SRA's squared error over l at the mechanism's ε: of the sampling, and of the noise.

    Above the most that a user has, nothing changes any more.
    """
    known = sampling_errors(dataset, of)
    consistent = getattr(mechanism, "consistent", False)
    sra = SRA(mechanism.budget, 1, consistent=consistent)
    most = dataset.max_per_user
    contexts = dataset.domain.shape[1]

    def law(x: np.ndarray) -> np.ndarray:
        noise = [_noise_variance(sra, float(l), contexts, of) for l in np.minimum(x, most)]  # noqa: E741
        return np.interp(np.log(x), np.log(known.ls), known.roots, np.nan) ** 2 + noise

    return law


@lru_cache(2048)
def _noise_variance(sra: SRA, l: float, contexts: int, of: str) -> float:  # noqa: E741
    """Of the noise on the count of an item in so many contexts, or on each of its edges."""
    epsilons = dict(zip(("items", "edges"), sra.budgets(), strict=True))
    if not sra.consistent:
        return variance(l, epsilons[of], "geometric")
    domain = Domain(("item", "context"), (1, contexts))
    items = Histogram(
        domain.project(("item",)), np.zeros(1), variance(l, epsilons["items"], "geometric")
    )
    edges = Histogram(domain, np.zeros(contexts), variance(l, epsilons["edges"], "geometric"))
    return getattr(ItemEdgeCounts(items, edges).consistent(), of).variance
