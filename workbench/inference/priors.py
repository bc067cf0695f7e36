"""Product priors: a vector of weights for each attribute, as inference from noisy answers takes them."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.value import parameter
from workbench.workload import Products
from workbench.workload.linear import uniform_prior


def prior_field() -> Any:
    """The field of a value that takes a product prior; `normalised_prior` checks it."""
    return parameter(
        None, check=lambda x: None, doc="weights of codes, a vector for each attribute"
    )


def normalised_prior(prior: Any) -> tuple[tuple[float, ...], ...] | None:
    """A vector of weights > 0 for each attribute, as probabilities; a ValueError for anything else."""
    if prior is None:
        return None
    try:
        vectors = [np.asarray(p, float) for p in prior]
        good = bool(vectors) and all(p.ndim == 1 and p.size for p in vectors)
    except (TypeError, ValueError):
        good = False
    if not good or any(not (np.isfinite(p) & (p > 0)).all() for p in vectors):
        raise ValueError(
            f"prior = {str(prior)[:60]} is not allowed: need a vector of numbers > 0 for each "
            "attribute, one a code (floor noisy counts: product_prior)"
        )
    return tuple(_probabilities(p) for p in vectors)


def prior_vectors(
    prior: tuple[Any, ...] | None, domain: Domain
) -> tuple[Float[np.ndarray, " values"], ...]:
    """The prior's vectors, uniform ones if None; a ValueError if they do not fit the domain."""
    if prior is None:
        return uniform_prior(domain)
    sizes = tuple(len(p) for p in prior)
    if sizes != domain.shape:
        raise ValueError(
            f"prior of {sizes} codes is not allowed: the domain has {domain.shape}"
        )
    return tuple(np.asarray(p, float) for p in prior)


def product_prior(
    answers: NoisyAnswers, floor: float | None = None
) -> tuple[tuple[float, ...], ...]:
    """Weights of codes from noisy counts of every attribute's codes, as `Marginals(1)` asks them.

    Parameters
    ----------
    answers : NoisyAnswers
        They hold the count of each code of each attribute of more than one code.
    floor : float, optional
        Counts below it become it, in tuples: a prior of 0 would rule a code out because of noise. By
        default the standard deviation of the noise, or 1 if this is less.

    Returns
    -------
    tuple of tuples of float
        A vector for each attribute, which sums to 1: the `prior` of `KernelPCA` and `MaximumEntropy`.

    Raises
    ------
    ValueError
        If a count was never bought, or for a floor that is not above 0.
    """
    if floor is not None and not (isfinite(floor) and floor > 0):
        raise ValueError(f"floor = {floor!r} is not allowed: need a number > 0")
    domain = answers.domain
    vectors: list[tuple[float, ...]] = []
    for k, (name, n) in enumerate(zip(domain.attributes, domain.shape, strict=True)):
        if n == 1:
            vectors.append((1.0,))
            continue
        lo = np.zeros((n, len(domain.shape)), np.int64)
        hi = np.tile(domain.shape, (n, 1))
        lo[:, k] = np.arange(n)
        hi[:, k] = np.arange(n) + 1
        try:
            counts, deviations = answers.answer(Products.boxes(domain, lo, hi), error=True)
        except ValueError as e:
            raise ValueError(f"a prior needs answers for every code of {name!r}: {e}") from None
        least = np.maximum(deviations, 1) if floor is None else floor
        vectors.append(_probabilities(np.maximum(counts, least)))
    return tuple(vectors)


def _probabilities(weights: Float[np.ndarray, " values"]) -> tuple[float, ...]:
    return tuple((weights / weights.sum()).tolist())
