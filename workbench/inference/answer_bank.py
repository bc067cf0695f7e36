"""What a bank of paid answers says of any question, by the method that its own answers speak for.

Each method is judged twice, from answers alone. At questions that were bought: it is fitted to answers
with half the noise more, and held against independent ones (a coupled bootstrap). At questions about
attributes that were never bought together: whole sets of attributes are held out in five folds, and
(a − a')² − σ² averaged over their answers. Which of the two counts how much, and answers of which
size, the questions say; what is asked is public, so that the choice uses nothing but the bank.

Error bars add what the paid noise does to a method, by a posterior or by fits to answers with new noise,
and what it is off by itself: the part of a question that the past ones do not make up, times what
makes nineteen of twenty held-out answers lie within ±2.
Source     Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4; Oliveira, Lei & Tibshirani 2022 for the bootstrap;
           Vovk, Gammerman & Shafer 2005 for bars from held-out answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from workbench.arrays import Float, Int
from workbench.estimates import Model, NoisyAnswers
from workbench.inference.bank_marginals import (
    BankMarginals,
    is_held,
    largest_sets,
    used_attributes,
)
from workbench.inference.cell_least_squares import CellProblem
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.held_out import HeldOut
from workbench.inference.kernel_pca import Posterior
from workbench.inference.markov_network import NEAR, NetworkFit, NetworkProblem
from workbench.inference.maximum_entropy import MaximumEntropy
from workbench.inference.priors import prior_vectors
from workbench.inference.recalled import NOISE_ONLY, Recalled
from workbench.workload import Products, Workload, linear_queries
from workbench.workload.inner import means, squared_norms
from workbench.workload.sensitivity import term_ends

KERNEL = "kernel PCA"
TREE = "junction tree"
SQUARES = "least squares"
ENTROPY = "maximum entropy"
METHODS = (KERNEL, TREE, SQUARES, ENTROPY)
_STRENGTHS = (
    1000.0,
    300.0,
    100.0,
    30.0,
    10.0,
)  # tuples; strong ones first, as starts for weak ones
_NEAR_IN_TRIALS = 0.1  # deviations of the noise
_TREE_CELLS = 2**17
_MOST_ANSWERS = 12_000  # of which kernel PCA makes a matrix
_ALPHAS = 16
_FOLDS = 5
_FEWEST_SETS = 5  # fewer sets of attributes: single answers are held out
_FEWEST_ANSWERS = 20  # that are held out, for a scale of bars
_COUPLED = 2  # draws
_EXTRA = 0.5  # of the noise's variance, added by the coupled bootstrap
_BOOTSTRAPS = 12
_COVERED = 0.95
_SCALE_OF_LIKENESS = 1.5  # of ln variance
_LEAST_WEIGHT = 1e-3
_MADE_UP = (
    0.1  # of a question's squared norm, which past ones may lack and be taken to make it up
)
_ENOUGH = 500  # questions that are looked at
_WEIGHT = 10.0  # nats by which a count pulls at maximum entropy, at most: α·N/b


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method at one parameter, with its squared errors as the bank's answers estimate them.

    `at_bought` estimates those at each question that was bought, `at_new` those at each that was held
    out, NaN where it was not. `scale` multiplies the model's part of an error bar, NaN where answers are
    too few to tell.
    """

    by: str
    parameter: float
    at_bought: Float[np.ndarray, " queries"]
    at_new: Float[np.ndarray, " queries"]
    scale: float

    def error(self, likeness: Likeness) -> float:
        """The mean squared error of questions of which a share was bought, and that are like some more
        than like others."""
        held = np.isfinite(self.at_new)
        weights = likeness.weights
        at_bought = np.average(self.at_bought, weights=weights)
        at_new = np.average(self.at_new[held], weights=weights[held])
        return float(likeness.share * at_bought + (1 - likeness.share) * at_new)


@dataclass(frozen=True, eq=False)
class Likeness:
    """How much each bought question says of those that are asked, and the share that was bought."""

    share: float
    weights: Float[np.ndarray, " queries"]


class AnswerBank:
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

    def __init__(
        self, history: NoisyAnswers, total: float | None = None, prior: tuple | None = None
    ):
        self.history = history
        self.domain = history.domain
        self.total = total
        self.marginals = BankMarginals(history, total)
        self.given_prior = prior
        self.prior = self.marginals.prior() if prior is None else prior
        self.strengths = _STRENGTHS
        self._fits: dict[tuple[str, float], Any] = {}
        self._noisy_fits: dict[tuple[str, float], list[Any]] = {}
        self._unknown_at: dict[float, np.ndarray] = {}

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
        if len(self.history) > _MOST_ANSWERS:
            raise ValueError(
                f"{KERNEL} is not allowed for this bank: it has {len(self.history)} answers, and at most "
                f"{_MOST_ANSWERS} make a matrix that is decomposed in minutes"
            )
        return Eigenqueries.of(self.history, self.total, self.prior)

    @cached_property
    def _held_out(self) -> HeldOut:
        return HeldOut(self.eigen, self.history.values, self.history.variances)

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
        low = 1e-3 * float(deviations.min())
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

    def _kernel_candidates(self) -> Iterator[Candidate]:
        for alpha in dict.fromkeys((self.alpha, self.alpha_at_bought)):
            yield self._judged(KERNEL, alpha)

    # All methods

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

    def _fit(self, by: str, parameter: float, values=None, used=None, start=None) -> Any:
        """A method's fit; to other answers or to fewer of them if these are given."""
        if by == KERNEL:
            posterior = self.posterior(parameter)
            return posterior if values is None else posterior.with_values(values)
        if by == TREE:
            rows = None if used is None else used[self.network.rows]
            near = NEAR if values is None and used is None else _NEAR_IN_TRIALS
            return self.network.fit(parameter, start, values, rows, near)
        if by == SQUARES:
            return self._cells.fit(values, used)
        return self._entropy()

    def fit(self, by: str, parameter: float) -> Any:
        """The fit to all answers, made once."""
        key = (by, parameter)
        if key not in self._fits:
            start = None
            if by == TREE:
                known = [p for name, p in self._fits if name == TREE and p > parameter]
                start = self._fits[TREE, min(known)].weights if known else None
            self._fits[key] = self._fit(by, parameter, start=start)
        return self._fits[key]

    def keep_fit(self, by: str, parameter: float, fitted: Any) -> None:
        """Take a fit that was made before."""
        self._fits[by, parameter] = fitted

    def _entropy(self) -> Model:
        """Maximum entropy as Chen et al. have it."""
        total = self.marginals.total
        if total is None:
            raise ValueError(
                f"{ENTROPY} needs the number of tuples: declare total, or buy a table of all"
            )
        alpha = _WEIGHT * float(np.median(self.history.scales)) / total
        return MaximumEntropy(alpha, total, self.prior)(self.history)

    def _judged(self, by: str, parameter: float) -> Candidate:
        """A method's errors, as held-out answers and answers with more noise tell them."""
        fitted = self.fit(by, parameter)
        start = getattr(fitted, "weights", None)
        variances = self.history.variances
        missed = self._missed(by, parameter, start)
        at_bought = np.zeros(len(variances))
        for noise in self._noise[:_COUPLED]:
            more = self.history.values + sqrt(_EXTRA) * noise
            other = self.history.values - noise / sqrt(_EXTRA)
            trial = self._fit(by, parameter, more, start=start)
            squares = (_answers(trial, self.history.workload) - other) ** 2
            at_bought += float((squares - (1 + 1 / _EXTRA) * variances).mean()) / _COUPLED
        at_new = missed**2 - variances
        return Candidate(
            by, parameter, at_bought, at_new, self._bar_scale(by, parameter, missed)
        )

    def _missed(self, by: str, parameter: float, start) -> Float[np.ndarray, " queries"]:
        """Held-out answers, less what the others say of them; NaN for those never held out."""
        if by == KERNEL:
            missed = self._held_out.missed(parameter, self.folds).residuals
            return missed * np.sqrt(self.history.variances)
        missed = np.full(len(self.history), np.nan)
        for fold in self.folds:
            used = np.ones(len(self.history), bool)
            used[fold] = False
            fitted = self._fit(by, parameter, used=used, start=start)
            missed[fold] = self.history.values[fold] - _answers(
                fitted, self.history.workload[fold]
            )
        return missed

    def _unknown(self, alpha: float) -> Float[np.ndarray, " queries"]:
        """The variance of what held-out answers' others do not say of them, as kernel PCA believes."""
        if alpha not in self._unknown_at:
            variances = self._held_out.missed(alpha, self.folds).variances
            self._unknown_at[alpha] = np.maximum(variances - 1, 0) * self.history.variances
        return self._unknown_at[alpha]

    def _alpha_of_bars(self, by: str, parameter: float) -> float:
        """At which kernel PCA says what the past questions do not make up of one."""
        return parameter if by == KERNEL else self.alpha_at_bought

    def _bar_scale(self, by: str, parameter: float, missed: np.ndarray) -> float:
        """What the unknown part is multiplied by so that ±2 holds nineteen of twenty answers."""
        held = np.isfinite(missed)
        if held.sum() < _FEWEST_ANSWERS:
            return float("nan")
        unknown = self._unknown(self._alpha_of_bars(by, parameter))[held]
        needed = (missed[held] / 2) ** 2 - self.history.variances[held]
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = np.where(needed > 0, needed / unknown, 0.0)
        return sqrt(float(np.quantile(scales, _COVERED, method="higher")))

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """All methods that this bank allows, each at the parameters that it speaks for."""
        if len(self.history) > _MOST_ANSWERS or not self.folds or not len(self.eigen):
            return ()
        if not isfinite(self.alpha):
            return ()
        judged = [*self._kernel_candidates()]
        if self.network is not None:
            trees = []
            for strength in self.strengths:
                trees.append(self._judged(TREE, strength))
                if len(trees) > 2 and _worse(trees[-1], trees[-2]):
                    break
            judged += trees
        if self._cells is not None:
            judged.append(self._judged(SQUARES, 0.0))
        return tuple(judged)

    def model(self) -> Model:
        """A model of the tuples that agrees with what was bought, as far as its noise lets it.

        Raises
        ------
        ValueError
            Where no total is known, or no set of attributes is small enough for a junction tree.
        """
        trees = [c for c in self.candidates if c.by == TREE]
        best = min(trees, key=lambda c: c.at_bought.mean(), default=None) or self._untried(TREE)
        return self.fit(TREE, best.parameter).model

    def choose(self, workload: Workload, by: str | None = None) -> tuple[Candidate, str]:
        """The candidate of least estimated error for these questions, and why.

        Parameters
        ----------
        workload : Workload
            Public questions.
        by : str, optional
            A method that is to be taken.

        Returns
        -------
        Candidate, str

        Raises
        ------
        ValueError
            For a method that is not known, or that this bank does not allow.
        """
        if by is not None and by not in METHODS:
            raise ValueError(f"by = {by!r} is not allowed: need one of {', '.join(METHODS)}")
        if by == ENTROPY:
            return _unjudged(by, 0.0), "as was asked for"
        if len(self.history) > _MOST_ANSWERS and by in (None, TREE):
            return self._untried(
                TREE
            ), f"more than {_MOST_ANSWERS} answers: by the tree, unjudged"
        candidates = [c for c in self.candidates if by in (None, c.by)]
        if by in (TREE, SQUARES) and not candidates:
            return self._untried(by), "as was asked for; answers are too few to judge it"
        if not candidates:
            return _unjudged(KERNEL, self.alpha), "answers are too few to choose by"
        queries = linear_queries(workload, self.domain)
        likeness = self._likeness(queries)
        errors = {c: c.error(likeness) for c in candidates}
        chosen = min(errors, key=errors.get)
        best: dict[str, float] = {}
        for c in sorted(candidates, key=lambda c: errors[c]):
            best.setdefault(c.by, sqrt(max(0.0, errors[c])))
        said = [f"{name} ±{error:.3g}" for name, error in best.items()]
        why = "estimated from the bank's own answers: " + ", ".join(said)
        return chosen, why if by is None else f"as was asked for; {why}"

    def _untried(self, by: str) -> Candidate:
        problem = self.network if by == TREE else self._cells
        if problem is None:
            needs = "a total and sets of attributes of few cells" if by == TREE else "few cells"
            raise ValueError(f"by = {by!r} is not allowed for this bank: it needs {needs}")
        return _unjudged(by, 100.0 if by == TREE else 0.0)

    def _likeness(self, queries) -> Likeness:
        """By how the variances of questions compare, at a tuple of the prior: large counts say little of
        small ones."""
        some = queries[np.arange(0, len(queries), max(1, len(queries) // _ENOUGH))]
        unreached = self.eigen.project(some).bias_share
        share = float((unreached < _MADE_UP).mean()) if len(unreached) else 1.0
        asked = np.log(self._spread(queries))
        bought = np.log(self._spread(self.history.workload))
        distance = (bought - (np.median(asked) if len(asked) else 0.0)) / _SCALE_OF_LIKENESS
        weights = np.exp(-0.5 * (distance**2 - (distance**2).min()))
        return Likeness(share, np.maximum(weights, _LEAST_WEIGHT))

    def _spread(self, queries) -> Float[np.ndarray, " queries"]:
        prior = prior_vectors(self.prior, self.domain)
        mean = means(queries, self.domain, prior)
        return np.maximum(squared_norms(queries, self.domain, prior) - mean**2, 1e-12)

    def recall(self, workload: Workload, by: str | None = None, error: bool = True) -> Recalled:
        """Answers, at no cost.

        Parameters
        ----------
        workload : Workload
            Questions that are sums of cells with weights.
        by : str, optional
            A method, instead of the bank's own choice: "kernel PCA", "junction tree", "least squares"
            or "maximum entropy".
        error : bool
            Whether error bars are wanted.

        Returns
        -------
        Recalled
            Values, errors, the method, and why.

        Raises
        ------
        ValueError
            For a workload that does not fit, or a method that is not known or not possible.
        """
        queries = linear_queries(workload, self.domain)
        candidate, why = self.choose(queries, by)
        if self.marginals.complaint:
            why = f"{why}; {self.marginals.complaint}"
        fitted = self.fit(candidate.by, candidate.parameter)
        if isinstance(fitted, NetworkFit) and not fitted.converged:
            why += f"; the fit did not converge: residuals of {fitted.residual:.2g} deviations"
        if not error:
            values = _possible(_answers(fitted, queries), queries, self.total)
            return Recalled(values, None, candidate.by, why)
        values, errors, parts = self._with_bars(candidate, queries)
        values = _possible(values, queries, self.total)
        return Recalled(values, errors, candidate.by, f"{why}; {parts}")

    def _with_bars(self, candidate: Candidate, queries) -> tuple[np.ndarray, np.ndarray, str]:
        """Values, their bars, and what these are made of."""
        if len(self.history) > _MOST_ANSWERS:
            values = _answers(self.fit(candidate.by, candidate.parameter), queries)
            return values, self._bootstrapped(candidate, queries), f"bars: {NOISE_ONLY}"
        posterior = self.posterior(
            self._alpha_of_bars(candidate.by, candidate.parameter) if self.candidates else None
        )
        kernel = posterior.errors_in_parts(queries)
        if candidate.by == KERNEL:
            noise = kernel.noise
            values = kernel.values
        else:
            values = _answers(self.fit(candidate.by, candidate.parameter), queries)
            noise = self._bootstrapped(candidate, queries)
        cautious = np.zeros(len(queries), bool)
        if (
            self._sets is None
        ):  # no answer says how attributes that were never asked together go together
            cautious = ~is_held(used_attributes(queries, self.domain), self._used)
        model = np.zeros(len(queries))
        words = f"bars: {NOISE_ONLY}"
        if np.isfinite(candidate.scale):
            model = candidate.scale * kernel.model
            words = "bars of noise, and of the model by answers held out"
        elif candidate.by == KERNEL:
            cautious[:] = True
        errors = np.hypot(noise, model)
        if cautious.any():
            words += (
                "; where answers are too few to learn from, or attributes were never bought "
            )
            words += "together, as wide as the total allows"
            wide = self.posterior(self.total or inf).errors_in_parts(queries[cautious])
            errors[cautious] = np.nan_to_num(
                np.hypot(wide.noise, wide.model), nan=inf, posinf=inf
            )
        return values, errors, words

    def cautious_alpha(self, candidate: Candidate) -> float:
        """At which kernel PCA's own errors are about as wide as the bars, for what further answers cost."""
        if self._sets is None or not np.isfinite(candidate.scale):
            return self.total or inf
        alpha = self._alpha_of_bars(candidate.by, candidate.parameter)
        return float(np.clip(alpha * candidate.scale, 1e-99, 1e99))

    def _bootstrapped(self, candidate: Candidate, queries) -> Float[np.ndarray, " queries"]:
        """What new noise of the paid size does to the answers; the fits to it are made once."""
        key = (candidate.by, candidate.parameter)
        if candidate.by == ENTROPY:
            return np.full(len(queries), np.nan)
        if key not in self._noisy_fits:
            start = getattr(self.fit(*key), "weights", None)
            self._noisy_fits[key] = [
                self._fit(*key, self.history.values + noise, start=start)
                for noise in self._noise
            ]
        first = _answers(self.fit(*key), queries)
        squares = np.zeros(len(first))
        for fitted in self._noisy_fits[key]:
            squares += (_answers(fitted, queries) - first) ** 2
        return np.sqrt(squares / len(self._noise))


def _unjudged(by: str, parameter: float) -> Candidate:
    none = np.empty(0)
    return Candidate(by, parameter, none, none, float("nan"))


def _worse(candidate: Candidate, other: Candidate) -> bool:
    """Whether both estimates are larger."""
    new = np.nanmean(candidate.at_new) > np.nanmean(other.at_new)
    return bool(new and candidate.at_bought.mean() > other.at_bought.mean())


def _answers(fitted: Any, queries) -> Float[np.ndarray, " queries"]:
    model = fitted.model if isinstance(fitted, NetworkFit) else fitted
    return model.answer(queries)


def _possible(values, queries, total: float | None) -> Float[np.ndarray, " queries"]:
    """The values, moved to what counts of at least 0, and of this total, could make of each query."""
    if not isinstance(queries, Products):
        return values
    low, high = term_ends(queries)
    least = np.bincount(queries.query, low, len(queries))
    most = np.bincount(queries.query, high, len(queries))
    if total is None:
        return np.where(least >= 0, np.maximum(values, 0), values)
    return np.clip(values, total * least, total * most)
