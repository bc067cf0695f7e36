"""The price of an answer with a wanted error, and fits of a bank that are kept in a file.

The file says which answers it was made from, by their checksum. Of a bank that has grown since, its
parameters are taken over and not searched anew, and trees start from its weights; of any other bank it is
not used, and replaced. Eigenqueries are decomposed anew: to border them by k answers takes a product of
m × m matrices each, and one decomposition costs about as much as six products.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from math import exp, inf, isfinite, log
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.estimates.files import Draft
from workbench.inference.answer_bank import AnswerBank, Candidate
from workbench.inference.bank_fits import METHODS, TREE
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_pca import Posterior
from workbench.inference.markov_network import NetworkFit
from workbench.queries import Linear, stated
from workbench.queries.inner import inner_products
from workbench.value import sealed

# Price


class Price(float):
    """An ε, with the method `by` which what it buys is recalled, and `why`."""

    by: str
    why: str

    def __new__(cls, epsilon: float, by: str, why: str) -> Price:
        """The ε, and what is said of it."""
        price = super().__new__(cls, epsilon)
        price.by = by
        price.why = why
        return price


LARGE_VARIANCE = 1e280  # of an answer that tells nothing


def noise_for_error(variance_left: Callable[[float], float], error: float) -> float:
    """The largest variance of noise after which the largest error is `error`; ∞ if any will do."""
    from scipy.optimize import brentq

    target = min(max(error, 1e-99), 1e99) ** 2
    if variance_left(LARGE_VARIANCE) <= target * (1 + 1e-9):
        return inf

    def log_ratio(x: float) -> float:
        return log(variance_left(exp(x)) / target)

    variance = exp(brentq(log_ratio, log(target) - 1, log(LARGE_VARIANCE)))
    return variance * (1 - 1e-8)  # what rounding takes


def variance_after(posterior: Posterior, queries: Linear) -> Callable[[float], float]:
    """The largest variance among `queries` after a further answer to all of them, by its noise's.

    A posterior covariance Σ d·u·uᵀ becomes Σ u·uᵀ/(1/d + 1/v), v the variance of the noise. At α = ∞
    what no past query reaches has infinite d, and what is reached keeps its own.
    """
    eigen = posterior.eigen
    alpha = posterior.alpha
    squares = eigen.squares
    projected = eigen.project(queries)
    rest = inner_products(
        queries, queries, eigen.domain, prior_vectors(eigen.prior, eigen.domain)
    )
    if eigen.total is not None:
        rest -= np.outer(projected.means, projected.means)
    smallest = 1e-13 * len(rest) * rest.diagonal().max(initial=0)
    rest -= (projected.coefficients / squares) @ projected.coefficients.T
    unbiased = projected.bias_share == 0
    rest[unbiased] = 0
    rest[:, unbiased] = 0
    covariance = (
        projected.coefficients / (squares * (squares + alpha**-2.0))
    ) @ projected.coefficients.T
    if isfinite(alpha):
        covariance += alpha**2 * rest
        reached = np.eye(len(rest))
        unreached = np.empty((len(rest), 0))
    else:
        sizes, vectors = np.linalg.eigh(rest)
        reached = vectors[:, sizes <= smallest]
        unreached = vectors[:, sizes > smallest]
    d, u = np.linalg.eigh(reached.T @ covariance @ reached)
    d = np.maximum(d, 0)
    shares = (reached @ u) ** 2
    unknown = (unreached**2).sum(axis=1)
    unknown[unknown < 1e-9] = 0  # rounding
    return lambda v: float((v * unknown + shares @ (v * (d / (v + d)))).max(initial=0))


# Fits

FEWEST = 300  # answers: fits to fewer take no longer than a file
_VERSION = 3
_DAMAGE = (  # what reading and checking a damaged file may raise
    *(OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError, EOFError),
    *(BadZipFile, NotImplementedError, RuntimeError, struct.error),
    *(SyntaxError, TokenError),  # numpy's, of the heads of arrays
)


def fits_path(session: Path) -> Path:
    """Where the fits of a session's bank are."""
    return session.with_name(f"{session.name}.fits")


def key_of(answers: NoisyAnswers, count: int, bank: AnswerBank) -> str:
    """A checksum of the first so many answers, and of what else a fit rests on."""
    first = answers if count == len(answers) else answers[np.arange(count)]
    parts = [
        json.dumps([_VERSION, stated.to_text(first.workload), bank.total, bank.given_prior])
    ]
    digest = sha256(parts[0].encode())
    digest.update(first.values.tobytes())
    digest.update(first.variances.tobytes())
    return digest.hexdigest()


def load_fits(path: Path, bank: AnswerBank) -> None:
    """Take over what a file holds of this bank; nothing if there is none, or it is of another bank."""
    with suppress(*_DAMAGE):
        _take_over(_held(path), bank)


def _held(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, together no larger than the file: stored as they are, and each apart."""
    with ZipFile(path) as archive:
        members = archive.infolist()
    if any(member.compress_type for member in members):
        raise BadZipFile("packed")
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise BadZipFile("overlapping")
    with np.load(path, allow_pickle=False) as held:
        return dict(held)


def _take_over(held: dict[str, np.ndarray], bank: AnswerBank) -> None:
    """All of it, or nothing where something is not as it was written."""
    count = int(held["count"])
    now = len(bank.history)
    if not 0 < count <= now or held["key"].item() != key_of(bank.history, count, bank):
        return
    methods = held["methods"].tolist()
    fits = len(methods)
    parameters = _numbers(held, "parameters", fits).tolist()
    trees = _of_trees(methods, parameters)
    rows = held["rows"] if trees else np.zeros(0, int)
    if rows.dtype.kind != "i" or len(rows) and not 0 <= rows.min() <= rows.max() < count:
        raise ValueError("rows")
    weights = {p: _numbers(held, f"weights {p!r}", len(rows)) for p in trees}
    if count < now:
        bank.strengths = trees or bank.strengths
        for parameter, of_rows in weights.items():
            bank.starts[parameter] = np.zeros(now)
            bank.starts[parameter][rows] = of_rows
        return
    size = len(held["squares"])
    shapes = {"squares": (size,), "basis": (now, size), "answers": (size,), "means": (now,)}
    arrays = [sealed(_numbers(held, name, *shape)) for name, shape in shapes.items()]
    judged = zip(
        methods,
        parameters,
        _numbers(held, "at_bought", fits, now),
        _numbers(held, "at_new", fits, now, or_nan=True),
        _numbers(held, "scales", fits, or_nan=True).tolist(),
        _numbers(held, "stopped", fits).astype(int).tolist(),
        strict=True,
    )
    residuals = {p: float(_numbers(held, f"residual {p!r}")) for p in trees}
    network = bank.network if trees else None
    if (
        not set(methods) <= set(METHODS)
        or trees
        and (network is None or not np.array_equal(rows, network.rows))
    ):
        raise ValueError("methods or rows")
    bank.eigen = Eigenqueries(
        bank.domain, bank.history.workload, bank.total, bank.prior, *arrays
    )
    bank.candidates = tuple(Candidate(*each) for each in judged)
    if network is not None:
        for parameter, residual in residuals.items():
            fitted = NetworkFit(network, weights[parameter], residual, 0)
            bank.keep_fit(TREE, parameter, fitted)


def _numbers(
    held: dict[str, np.ndarray], name: str, *shape: int, or_nan: bool = False
) -> np.ndarray:
    array = held[name]
    finite = np.isfinite(array) | (np.isnan(array) if or_nan else False)
    if array.dtype != float or array.shape != shape or not finite.all():
        raise ValueError(name)
    return array


def save_fits(path: Path, bank: AnswerBank) -> None:
    """Write what a later process would make again; a disk that refuses costs that time and no more."""
    candidates = bank.candidates
    if not candidates:
        return
    eigen = bank.eigen
    arrays: dict[str, Any] = {
        "count": np.array(len(bank.history)),
        "key": np.array(key_of(bank.history, len(bank.history), bank)),
        "methods": np.array([c.by for c in candidates]),
        "parameters": np.array([c.parameter for c in candidates]),
        "scales": np.array([c.scale for c in candidates]),
        "stopped": np.array([float(c.stopped) for c in candidates]),
        "at_bought": np.stack([c.at_bought for c in candidates]),
        "at_new": np.stack([c.at_new for c in candidates]),
        "squares": eigen.squares,
        "basis": eigen.basis,
        "answers": eigen.answers,
        "means": eigen.means,
    }
    if bank.network is not None:
        arrays["rows"] = bank.network.rows
    for candidate in candidates:
        if candidate.by == TREE:
            fitted = bank.fit(TREE, candidate.parameter)
            arrays[f"weights {candidate.parameter!r}"] = fitted.weights
            arrays[f"residual {candidate.parameter!r}"] = np.array(fitted.residual)
    with suppress(OSError), closing(Draft(path)) as draft:
        with open(draft.path, "wb") as file:
            np.savez(file, **arrays)
        draft.replace(path)


def _of_trees(methods: Sequence[str], parameters: Sequence[float]) -> tuple[float, ...]:
    return tuple(p for by, p in zip(methods, parameters, strict=True) if by == TREE)
