"""How far each method is off, as a bank's own answers tell it, at bought questions and at new ones.

At questions that were bought: a method is fitted to answers with half the noise more, and held against
independent ones (a coupled bootstrap). At questions about attributes that were never bought together: whole
sets of attributes are held out in five folds, and (a − a')² − σ² averaged over their answers.
Source     Oliveira, Lei & Tibshirani 2022 for the bootstrap; Chen, Zhou & Bhowmick, EDBT 2012, Theorem 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.estimates import NoisyAnswers
from workbench.inference.bank_fits import (
    ENTROPY,
    KERNEL,
    SQUARES,
    TREE,
    BankFits,
    answers_of,
    stopped_early,
)
from workbench.inference.markov_network import NetworkFit

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
