"""Fits of each method to a bank of paid answers, and the answers that are recalled from them.

Which answers are held out, and which noise is added to try a method, is the same for all methods, and
each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.cross_validation import HeldOut
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_pca import Posterior
from workbench.inference.marginals import (
    BankMarginals,
    CellCounts,
    CellProblem,
    largest_sets,
    used_attributes,
)
from workbench.inference.markov_network import NEAR, NetworkFit, NetworkProblem
from workbench.inference.maximum_entropy import MaximumEntropy, NotConverged
from workbench.inference.model import Model
from workbench.queries import Linear
from workbench.queries.inner import means, squared_norms
from workbench.value import Bool, Float, Int, sealed

# Bank fits

KERNEL = "kernel PCA"
TREE = "junction tree"
SQUARES = "least squares"
ENTROPY = "maximum entropy"
METHODS = (KERNEL, TREE, SQUARES, ENTROPY)
_NEAR_IN_TRIALS = 0.1  # deviations of the noise
_TREE_CELLS = 2**17
_ALPHAS = 16
_FOLDS = 5
_FEWEST_SETS = 5  # fewer sets of attributes: single answers are held out
_BOOTSTRAPS = 12
_LEAST_WEIGHT = 1e-100  # so that weights of hopeless answers have a sum
_WEIGHT = 10.0  # nats by which a count pulls at maximum entropy, at most: α·N/b


class BankFits:
    """Noisy answers, and fits to them, each made when it is first needed.

    Parameters
    ----------
    history : NoisyAnswers
        All that was bought, with independent noise.
    total : float, optional
        How many tuples there are, where that is public.
    prior : tuple, optional
        Weights of codes for each attribute; by default what the bank's own complete tables say.
    """

    most_answers = 6_000  # whose matrices take 4 GB: 110 bytes × answers², as was measured

    def __init__(
        self,
        history: NoisyAnswers,
        total: float | None = None,
        prior: tuple[Any, ...] | None = None,
    ):
        self.history = history
        self.domain = history.domain
        self.total = total
        self.marginals = BankMarginals(history, total)
        self.given_prior = prior
        self.prior = self.marginals.prior() if prior is None else prior
        self._fits: dict[tuple[str, float], Any] = {}
        self.starts: dict[
            float, np.ndarray
        ] = {}  # weights of all queries, by the tree's strength
        self._noisy_fits: dict[tuple[str, float], list[Any]] = {}
        self._fits_of_more: dict[tuple[str, float], Any] = {}

    # What is held out, and what noise is added: the same for all methods, and each time.

    @cached_property
    def _used(self) -> np.ndarray:
        return used_attributes(self.history.workload, self.domain)

    @cached_property
    def _sets(self) -> list[Int[np.ndarray, " held_out"]] | None:
        """The answers of each set of attributes that no other set holds; None if these are few."""
        number = largest_sets(self._used)
        sets = [np.flatnonzero(number == i) for i in np.unique(number[number >= 0])]
        sets = [rows for rows in sets if self._used[rows[0]].sum() > 1]
        return sets if len(sets) >= _FEWEST_SETS else None

    @cached_property
    def folds(self) -> list[Int[np.ndarray, " held_out"]]:
        """Five parts of what is held out; none of a bank of very few answers."""
        units = self._sets
        if units is None:
            units = [np.array([i]) for i in range(len(self.history))]
        if len(units) < _FEWEST_SETS:
            return []
        order = np.random.default_rng(0).permutation(len(units))
        parts = np.array_split(order, _FOLDS)
        return [np.sort(np.concatenate([units[i] for i in part])) for part in parts]

    @cached_property
    def _noise(self) -> Float[np.ndarray, "draws queries"]:
        normal = np.random.default_rng(1).standard_normal((_BOOTSTRAPS, len(self.history)))
        return normal * np.sqrt(self.history.variances)

    # Kernel PCA

    @cached_property
    def eigen(self) -> Eigenqueries:
        """The history's eigenqueries: one decomposition; a ValueError where answers are too many."""
        self.refuse_many(len(self.history))
        return Eigenqueries.of(self.history, self.total, self.prior)

    @classmethod
    def refuse_many(cls, count: int) -> None:
        """A ValueError where so many answers make no matrix."""
        if count > cls.most_answers:
            raise ValueError(
                f"{KERNEL} is not allowed for this bank: it has {count} answers, and at most "
                f"{cls.most_answers} make a matrix"
            )

    @cached_property
    def reliabilities(self) -> Float[np.ndarray, " queries"]:
        """What each answer weighs where errors are judged: little where its noise hides any of them.

        (a − a')² − σ² has a variance of 5σ⁴ for Laplace noise, and the largest error is N²·Var(q), as
        far as tuples of the prior are apart: else answers at a tiny ε hide all that others tell.
        """
        least_noisy = np.abs(self.history.values[self.history.variances.argmin()])
        most = self.marginals.total or max(1.0, float(least_noisy))
        largest = most**2 * self.spread(self.history.workload)
        return np.maximum(1 / (1 + 5 * (self.history.variances / largest) ** 2), _LEAST_WEIGHT)

    def spread(self, queries: Linear) -> Float[np.ndarray, " queries"]:
        """The variance of each query over tuples of the prior."""
        prior = prior_vectors(self.prior, self.domain)
        mean = means(queries, self.domain, prior)
        return np.maximum(squared_norms(queries, self.domain, prior) - mean**2, 1e-12)

    @cached_property
    def _held_out(self) -> HeldOut:
        history = self.history
        return HeldOut(self.eigen, history.values, history.variances, self.reliabilities)

    @cached_property
    def alpha(self) -> float:
        """That of the least error where answers are held out; else the total, or ∞."""
        if not self.folds or not len(self.eigen):
            return self.total or inf
        alphas = self._alphas
        return float(alphas[np.argmin(self._held_out.mean_squares(alphas, self._sets))])

    @property
    def _alphas(self) -> Float[np.ndarray, " alphas"]:
        deviations = np.sqrt(self.history.variances)
        low = 1e-3 * min(float(deviations.min()), self.total or inf)
        most = self.total or float(np.abs(self.history.values).max() + deviations.max())
        high = min(max(most, 1e3 * low), self._held_out.largest_alpha)
        return np.geomspace(min(low, high / 1e3), high, _ALPHAS)

    def posterior(self, alpha: float | None = None) -> Posterior:
        """What kernel PCA says, at the bank's own α if none is given."""
        return Posterior(self.eigen, self.alpha if alpha is None else alpha)

    @cached_property
    def alpha_at_bought(self) -> float:
        """That of the least error at the questions that were bought."""
        alphas = self._alphas
        return float(alphas[np.argmin(self._held_out.unbiased_risks(alphas))])

    @cached_property
    def network(self) -> NetworkProblem | None:
        """What the tree fits; None where no total is known, or no set of attributes is small enough."""
        if self.marginals.total is None:
            return None
        try:
            return NetworkProblem.of(
                self.history, self.marginals.total, self.prior, _TREE_CELLS
            )
        except ValueError:
            return None

    @cached_property
    def _cells(self) -> CellProblem | None:
        """None where the attributes that are asked about have many cells."""
        return CellProblem.of(self.history, self.total)

    def _fit(
        self,
        by: str,
        parameter: float,
        values: Float[np.ndarray, " queries"] | None = None,
        used: Bool[np.ndarray, " queries"] | None = None,
        start: Float[np.ndarray, " queries"] | None = None,
    ) -> Any:
        """A method's fit; to other answers or to fewer of them if these are given."""
        if by == KERNEL:
            posterior = self.posterior(parameter)
            return posterior if values is None else posterior.with_values(values)
        if by == TREE:
            assert self.network is not None  # else the tree is no candidate
            rows = None if used is None else used[self.network.rows]
            near = NEAR if values is None and used is None else _NEAR_IN_TRIALS
            return self.network.fit(parameter, start, values, rows, near)
        if by == SQUARES:
            assert self._cells is not None
            return self._cells.fit(values, used)
        return self._entropy(values, used)

    def fit(self, by: str, parameter: float) -> Any:
        """The fit to all answers, made once."""
        key = (by, parameter)
        if key not in self._fits:
            start = None
            if by == TREE:
                known = [p for name, p in self._fits if name == TREE and p > parameter]
                start = self._fits[TREE, min(known)].weights if known else None
                if parameter in self.starts and self.network is not None:
                    start = self.starts[parameter][self.network.rows]
            self._fits[key] = self._fit(by, parameter, start=start)
        return self._fits[key]

    def fit_of_more(self, by: str, parameter: float) -> Any:
        """The fit to all answers if there were one standard error of the total more tuples.

        None where the total is declared, or the method needs none.
        """
        if self.total is not None or by not in (TREE, ENTROPY):
            return None
        key = (by, parameter)
        if key not in self._fits_of_more:
            assert self.marginals.total is not None  # else the method is no candidate
            total = self.marginals.total + self.marginals.error
            if by == TREE:
                assert self.network is not None
                start = self.fit(by, parameter).weights
                fitted: Any = self.network.at(total).fit(parameter, start)
            else:
                fitted = self._entropy(None, None, total)
            self._fits_of_more[key] = fitted
        return self._fits_of_more[key]

    def keep_fit(self, by: str, parameter: float, fitted: Any) -> None:
        """Take a fit that was made before."""
        self._fits[by, parameter] = fitted

    def _entropy(
        self,
        values: Float[np.ndarray, " queries"] | None,
        used: Bool[np.ndarray, " queries"] | None,
        total: float | None = None,
    ) -> Model:
        """Maximum entropy as Chen et al. have it; from other answers or fewer of them if given."""
        total = total or self.marginals.total
        if total is None:
            raise ValueError(
                f"{ENTROPY} needs the number of tuples: declare total, or buy a table of all"
            )
        alpha = _WEIGHT * float(np.median(self.history.scales)) / total
        history = self.history
        if values is not None:
            history = NoisyAnswers(self.domain, history.workload, values, history.variances)
        if used is not None:
            history = history[np.flatnonzero(used)]
        with warnings.catch_warnings():
            if values is not None or used is not None:  # of trials only the spread is used
                warnings.simplefilter("ignore", NotConverged)
            return MaximumEntropy(alpha, total, self.prior)(history)


def stopped_early(fitted: Any) -> bool:
    """Whether a fit that only tries a method stopped before it was near."""
    if isinstance(fitted, NetworkFit):
        return fitted.residual > _NEAR_IN_TRIALS
    if isinstance(fitted, Model):
        return bool(fitted.gap > MaximumEntropy.tolerance)
    return isinstance(fitted, CellCounts) and not fitted.converged


def answers_of(fitted: Any, queries: Linear) -> Float[np.ndarray, " queries"]:
    """What a fit answers, of whichever method it is."""
    model = fitted.model if isinstance(fitted, NetworkFit) else fitted
    return model.answer(queries)


# Recalled

NOISE_ONLY = "noise only"


@dataclass(frozen=True, eq=False)
class Recalled:
    """Answers for nothing. It unpacks to two: `values, errors = session.recall(…)`.

    Parameters
    ----------
    values : float64[queries]
        In counts.
    errors : float64[queries] or None
        In counts, for ±2 of them to hold the truth; inf where the bank cannot tell. None if not wanted.
    by : str
        The method.
    why : str
        Why this one, and what the bars are made of: where answers were too few to learn how far a method
        is off beside the noise, the bars are of *noise only*.
    """

    values: Float[np.ndarray, " queries"]
    errors: Float[np.ndarray, " queries"] | None
    by: str
    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.asarray(self.values, float)))
        if self.errors is not None:
            errors = np.nan_to_num(np.asarray(self.errors, float), nan=inf, posinf=inf)
            object.__setattr__(self, "errors", sealed(errors))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.values, self.errors))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return (self.values, self.errors)[i]
