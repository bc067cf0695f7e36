"""The answer bank: the method that its own answers favour, and how far each method is off.

Judged fits.
At questions that were bought: a method is fitted to answers with half the noise more, and held against
independent ones (a coupled bootstrap). At questions about attributes that were never bought together: whole
sets of attributes are held out in five folds, and (a − a')² − σ² averaged over their answers.
Source     Oliveira, Lei & Tibshirani 2022 for the bootstrap; Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4.

Answer bank.
Each method is judged from answers alone, at bought questions and at new ones (`judged_fits`). Which of the
two counts how much, and answers of which size, the questions say; what is asked is public, so that the
choice uses nothing but the bank.

Error bars add what the paid noise does to a method, by a posterior or by fits to answers with new noise,
and what it is off by itself: the part of a question that the past ones do not make up, times what
makes nineteen of twenty held-out answers lie within ±2.
Source     Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4; Vovk, Gammerman & Shafer 2005 for bars from held-out
           answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.bank_fits import (
    ENTROPY,
    KERNEL,
    METHODS,
    NOISE_ONLY,
    SQUARES,
    TREE,
    BankFits,
    Recalled,
    answers_of,
    stopped_early,
)
from workbench.inference.marginals import CellCounts, is_held, used_attributes
from workbench.inference.markov_network import NetworkFit
from workbench.inference.maximum_entropy import MaximumEntropy
from workbench.inference.model import Model
from workbench.queries import Linear, Products, Recipe, linear_queries
from workbench.queries.sensitivity import term_ends
from workbench.value import Float, format_number

# Judged fits

_STRENGTHS = (1000.0, 300.0, 100.0, 30.0, 10.0)  # tuples; strong ones start weak ones
_FEWEST_ANSWERS = 20  # that are held out, for a scale of bars
_COUPLED = 2  # draws
_EXTRA = 0.5  # of the noise's variance, added by the coupled bootstrap
_COVERED = 0.95


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method at one parameter, with its squared errors as the bank's answers estimate them.

    `at_bought` estimates those at each question that was bought, `at_new` those at each that was held
    out, NaN where it was not. `scale` multiplies the model's part of an error bar, NaN where answers are
    too few to tell. `stopped` counts the fits that estimated this and stopped before they were near.
    """

    by: str
    parameter: float
    at_bought: Float[np.ndarray, " queries"]
    at_new: Float[np.ndarray, " queries"]
    scale: float
    stopped: int = 0

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


class JudgedFits(BankFits):
    """Fits to a bank, each with what its answers say of its errors; parameters as in `BankFits`."""

    def __init__(
        self,
        history: NoisyAnswers,
        total: float | None = None,
        prior: tuple[Any, ...] | None = None,
    ):
        super().__init__(history, total, prior)
        self.strengths: tuple[float, ...] = _STRENGTHS
        self._unknown_at: dict[float, np.ndarray] = {}
        self._by_method: dict[str, tuple[Candidate, ...]] = {}
        self._trial_weights: dict[str, np.ndarray] = {}  # of trees, at the last strength tried
        self._stopped = 0  # trials of the method that is judged

    def _kernel_candidates(self) -> Iterator[Candidate]:
        for alpha in dict.fromkeys((self.alpha, self.alpha_at_bought)):
            yield self._judged(KERNEL, alpha)

    def _judged(self, by: str, parameter: float) -> Candidate:
        """A method's errors, as held-out answers and answers with more noise tell them."""
        fitted = self.fit(by, parameter)
        start = getattr(fitted, "weights", None)
        variances = self.history.variances
        self._stopped = 0
        missed = self._missed(by, parameter, start)
        at_bought = np.zeros(len(variances))
        for i, noise in enumerate(self._noise[:_COUPLED]):
            more = self.history.values + sqrt(_EXTRA) * noise
            other = self.history.values - noise / sqrt(_EXTRA)
            trial = self._trial(f"noise {i}", by, parameter, start, values=more)
            squares = (answers_of(trial, self.history.workload) - other) ** 2
            off = squares - (1 + 1 / _EXTRA) * variances
            at_bought += float(np.average(off, weights=self.reliabilities)) / _COUPLED
        at_new = missed**2 - variances
        scale = self._bar_scale(by, parameter, missed)
        return Candidate(by, parameter, at_bought, at_new, scale, self._stopped)

    def _missed(
        self, by: str, parameter: float, start: Float[np.ndarray, " queries"] | None
    ) -> Float[np.ndarray, " queries"]:
        """Held-out answers, less what the others say of them; NaN for those never held out."""
        if by == KERNEL:
            return self.missed_by_kernel(parameter)
        missed = np.full(len(self.history), np.nan)
        for i, fold in enumerate(self.folds):
            used = np.ones(len(self.history), bool)
            used[fold] = False
            fitted = self._trial(f"fold {i}", by, parameter, start, used=used)
            missed[fold] = self.history.values[fold] - answers_of(
                fitted, self.history.workload[fold]
            )
        return missed

    def _trial(
        self,
        name: str,
        by: str,
        parameter: float,
        start: Float[np.ndarray, " queries"] | None,
        **changed: Any,
    ) -> Any:
        """A fit to changed answers; a tree starts from this trial's at the last, stronger prior."""
        fitted = self._fit(by, parameter, start=self._trial_weights.get(name, start), **changed)
        if by == TREE:
            self._trial_weights[name] = fitted.weights
        self._stopped += stopped_early(fitted)
        return fitted

    def missed_by_kernel(self, alpha: float) -> Float[np.ndarray, " queries"]:
        """The same of kernel PCA, from one decomposition."""
        missed = self._held_out.missed(alpha, self.folds).residuals
        return missed * np.sqrt(self.history.variances)

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
        """What the unknown part is multiplied by so that ±2 holds nineteen of twenty answers.

        At least so much as their noise could hide: the mean of missed² − σ² has a variance of 5σ⁴/n for
        Laplace noise.
        """
        held = np.isfinite(missed)
        if held.sum() < _FEWEST_ANSWERS:
            return float("nan")
        unknown = self._unknown(self._alpha_of_bars(by, parameter))[held]
        needed = (missed[held] / 2) ** 2 - self.history.variances[held]
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = np.where(needed > 0, needed / unknown, 0.0)
        weights = self.reliabilities[held] / self.reliabilities[held].sum()
        hidden = 2 * sqrt(5) * float(np.linalg.norm(weights * self.history.variances[held]))
        least = hidden / max(float(weights @ unknown), 1e-300)
        return sqrt(max(least, float(np.quantile(scales, _COVERED, method="higher"))))

    @cached_property
    def is_judged(self) -> bool:
        """Whether answers are enough, and few enough, to say how far methods are off."""
        if len(self.history) > self.most_answers or not self.folds or not len(self.eigen):
            return False
        return isfinite(self.alpha)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """All methods that this bank allows, each at the parameters that it speaks for."""
        return tuple(c for by in (KERNEL, TREE, SQUARES) for c in self.candidates_by(by))

    def candidates_by(self, by: str) -> tuple[Candidate, ...]:
        """Those of one method: no other is fitted."""
        if "candidates" in vars(self) and by != ENTROPY:
            return tuple(c for c in self.candidates if c.by == by)
        if by not in self._by_method:
            self._by_method[by] = tuple(self._judged_by(by)) if self.is_judged else ()
        return self._by_method[by]

    def _judged_by(self, by: str) -> Iterator[Candidate]:
        if by == KERNEL:
            yield from self._kernel_candidates()
        if by == TREE and self.network is not None:
            trees: list[Candidate] = []
            for strength in self.strengths:
                trees.append(self._judged(TREE, strength))
                if len(trees) > 2 and _worse(trees[-1], trees[-2], self._alike):
                    break
                if not self.fit(TREE, strength).converged:  # at weaker priors less so
                    break
            yield from trees
        if by == SQUARES and self._cells is not None:
            yield self._judged(SQUARES, 0.0)
        if by == ENTROPY:
            yield self._judged(ENTROPY, 0.0)

    def tree(self) -> NetworkFit:
        """The junction tree that agrees with what was bought, as far as its noise lets it.

        Raises
        ------
        ValueError
            Where no total is known, or no set of attributes is small enough for a junction tree.
        """
        if self.network is None:
            raise ValueError(
                "rows need the number of tuples (open the session with total=, or buy a complete table), "
                "and a bought set of attributes of few cells"
            )
        trees = self.candidates_by(TREE)
        best = min(trees, key=lambda c: c.error(self._alike), default=None) or self._untried(
            TREE
        )
        fitted: NetworkFit = self.fit(TREE, best.parameter)
        return fitted

    @property
    def _alike(self) -> Likeness:
        """That of the bought questions themselves."""
        return Likeness(1.0, self.reliabilities)

    def _untried(self, by: str) -> Candidate:
        problem = self.network if by == TREE else self._cells
        if problem is None:
            needs = "a total and sets of attributes of few cells" if by == TREE else "few cells"
            raise ValueError(f"by = {by!r} is not allowed for this bank: it needs {needs}")
        return unjudged(by, 100.0 if by == TREE else 0.0)


def unjudged(by: str, parameter: float) -> Candidate:
    """A method of which no answer tells how far it is off."""
    none = np.empty(0)
    return Candidate(by, parameter, none, none, float("nan"))


def _worse(candidate: Candidate, other: Candidate, likeness: Likeness) -> bool:
    """Whether both estimates are larger."""
    ends = (replace(likeness, share=share) for share in (0.0, 1.0))
    return all(candidate.error(end) > other.error(end) for end in ends)


# Answer bank

__all__ = ["ENTROPY", "KERNEL", "METHODS", "SQUARES", "TREE", "AnswerBank", "Candidate"]

_SCALE_OF_LIKENESS = 1.5  # of ln variance
_LEAST_WEIGHT = 1e-3
_MADE_UP = 0.1  # of a question's squared norm: what past ones may lack and still make it up
_ENOUGH = 500  # questions that are looked at
_DRAWN_BOOTSTRAPS = 6  # fits by drawn tuples take some seconds each


class AnswerBank(JudgedFits):
    """Noisy answers, and what they say of further questions, at no cost; parameters as in `BankFits`."""

    def choose(self, workload: Recipe, by: str | None = None) -> tuple[Candidate, str]:
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
        if by == ENTROPY and not (self.is_judged and self.fit(ENTROPY, 0.0).explicit):
            return unjudged(by, 0.0), "as was asked for"
        if len(self.history) > self.most_answers and by in (None, TREE):
            method = by or (SQUARES if self.network is None else TREE)
            if method == SQUARES and self._cells is None:
                self.refuse_many(len(self.history))  # nothing else is left
            why = f"more than {self.most_answers} answers: by {method}, unjudged"
            return self._untried(method), why
        candidates = self.candidates if by is None else self.candidates_by(by)
        if by in (TREE, SQUARES) and not candidates:
            return self._untried(by), "as was asked for; answers are too few to judge it"
        if not candidates:
            return unjudged(KERNEL, self.alpha), "answers are too few to choose by"
        queries = linear_queries(workload, self.domain)
        likeness = self._likeness(queries)
        errors = {c: c.error(likeness) for c in candidates}
        chosen = min(errors, key=errors.__getitem__)
        best: dict[str, float] = {}
        for c in sorted(candidates, key=lambda c: errors[c]):
            best.setdefault(c.by, sqrt(max(0.0, errors[c])))
        said = [f"{name} {_estimated(error)}" for name, error in best.items()]
        why = "estimated from the bank's own answers: " + ", ".join(said)
        return chosen, why if by is None else f"as was asked for; {why}"

    def _likeness(self, queries: Linear) -> Likeness:
        """By how the variances of questions compare, at a tuple of the prior: large counts say little of
        small ones."""
        some = queries[np.arange(0, len(queries), max(1, len(queries) // _ENOUGH))]
        unreached = self.eigen.project(some).bias_share
        share = float((unreached < _MADE_UP).mean()) if len(unreached) else 1.0
        asked = np.log(self.spread(queries))
        bought = np.log(self.spread(self.history.workload))
        distance = (bought - (np.median(asked) if len(asked) else 0.0)) / _SCALE_OF_LIKENESS
        weights = np.exp(-0.5 * (distance**2 - (distance**2).min()))
        return Likeness(share, np.maximum(weights, _LEAST_WEIGHT) * self.reliabilities)

    def recall(self, workload: Recipe, by: str | None = None, error: bool = True) -> Recalled:
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
        if error and by == ENTROPY and self.is_judged:
            (candidate,) = self.candidates_by(ENTROPY)  # values alone need one fit
        fitted = self.fit(candidate.by, candidate.parameter)
        why = "; ".join([why, *self.doubts(fitted)])
        if candidate.stopped:
            why += f"; of the fits that estimated its errors {candidate.stopped} stopped early"
        if not error:
            values = _possible(answers_of(fitted, queries), queries, self.total)
            return Recalled(values, None, candidate.by, why)
        values, errors, parts = self._with_bars(candidate, queries)
        values = _possible(values, queries, self.total)
        if self.total is not None:  # the truth is no farther than what is possible
            errors = np.minimum(errors, _farthest(values, queries, self.total) / 2)
        return Recalled(values, errors, candidate.by, f"{why}; {parts}")

    def doubts(self, fitted: Any = None) -> list[str]:
        """What is wrong with the answers themselves, and with a fit to them, in words."""
        said = [self.marginals.complaint] if self.marginals.complaint else []
        if isinstance(fitted, NetworkFit) and not fitted.converged:
            said.append(
                f"the fit did not converge: residuals of {fitted.residual:.2g} deviations"
            )
        if isinstance(fitted, Model) and fitted.gap > MaximumEntropy.tolerance:
            said.append(f"the fit did not converge: a duality gap of {fitted.gap:.2g} nats")
        if isinstance(fitted, CellCounts) and not fitted.converged:
            said.append("the fit did not converge in as many steps as it may take")
        return said

    def _with_bars(
        self, candidate: Candidate, queries: Linear
    ) -> tuple[np.ndarray, np.ndarray, str]:
        """Values, their bars, and what these are made of."""
        if len(self.history) > self.most_answers:
            values = answers_of(self.fit(candidate.by, candidate.parameter), queries)
            return values, self._bootstrapped(candidate, queries), f"bars: {NOISE_ONLY}"
        posterior = self.posterior(
            self._alpha_of_bars(candidate.by, candidate.parameter) if self.is_judged else None
        )
        kernel = posterior.errors_in_parts(queries)
        if candidate.by == KERNEL:
            noise = kernel.noise
            values = kernel.values
        else:
            values = answers_of(self.fit(candidate.by, candidate.parameter), queries)
            noise = self._bootstrapped(candidate, queries)
            if candidate.by == ENTROPY:
                noise = _steadied(noise, kernel.noise)
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
        stopped = sum(
            map(stopped_early, self._noisy_fits.get((candidate.by, candidate.parameter), []))
        )
        if stopped:
            words += f"; of the fits to new noise {stopped} stopped early"
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

    def _bootstrapped(
        self, candidate: Candidate, queries: Linear
    ) -> Float[np.ndarray, " queries"]:
        """What new noise of the paid size does to the answers, and to the total that they estimate.

        The fits are made once.
        """
        key = (candidate.by, candidate.parameter)
        whole = self.fit(*key)
        if key not in self._noisy_fits:
            start = getattr(whole, "weights", None)
            drawn = isinstance(whole, Model) and not whole.explicit
            self._noisy_fits[key] = [
                self._fit(*key, self.history.values + noise, start=start)
                for noise in self._noise[: _DRAWN_BOOTSTRAPS if drawn else None]
            ]
        first = answers_of(whole, queries)
        squares = np.zeros(len(first))
        for fitted in self._noisy_fits[key]:
            squares += (answers_of(fitted, queries) - first) ** 2
        squares /= len(self._noisy_fits[key])
        of_more = self.fit_of_more(*key)
        if of_more is not None:
            squares += (answers_of(of_more, queries) - first) ** 2
        return np.sqrt(squares)


def _steadied(
    noise: Float[np.ndarray, " queries"], alike: Float[np.ndarray, " queries"]
) -> Float[np.ndarray, " queries"]:
    """Deviations of few draws, averaged in squares with others of their mean size.

    Those of one query vary by a third, and where a cell stays empty in all draws they are 0.
    """
    scale = np.sum(noise**2) / max(float(np.sum(alike**2)), 1e-300)
    return np.sqrt((noise**2 + scale * alike**2) / 2)


def _estimated(error: float) -> str:
    """An error as answers estimate it: their noise may be more than all that they miss."""
    return f"±{format_number(error)}" if error > 0 else "less than the noise shows"


def _possible(
    values: Float[np.ndarray, " queries"], queries: Linear, total: float | None
) -> Float[np.ndarray, " queries"]:
    """The values, moved to what counts of at least 0, and of this total, could make of each query."""
    if not isinstance(queries, Products):
        return values
    least, most = _ends(queries)
    if total is None:
        return np.where(least >= 0, np.maximum(values, 0), values)
    return np.clip(values, total * least, total * most)


def _farthest(
    values: Float[np.ndarray, " queries"], queries: Linear, total: float
) -> Float[np.ndarray, " queries"]:
    """How far the truth may be from possible values."""
    if not isinstance(queries, Products):
        return np.full(len(queries), inf)
    least, most = _ends(queries)
    return np.maximum(values - total * least, total * most - values)


def _ends(queries: Products) -> tuple[np.ndarray, np.ndarray]:
    """What one tuple may add to each query, at least and at most."""
    low, high = term_ends(queries)
    return (
        np.bincount(queries.query, low, len(queries)),
        np.bincount(queries.query, high, len(queries)),
    )
