"""What a bank of paid answers says of any question, by the method that its own answers speak for.

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

from math import inf, sqrt
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.estimates.model import Model
from workbench.inference.bank_fits import (
    ENTROPY,
    KERNEL,
    METHODS,
    SQUARES,
    TREE,
    answers_of,
    stopped_early,
)
from workbench.inference.bank_marginals import is_held, used_attributes
from workbench.inference.cell_least_squares import CellCounts
from workbench.inference.judged_fits import Candidate, JudgedFits, Likeness, unjudged
from workbench.inference.markov_network import NetworkFit
from workbench.inference.maximum_entropy import MaximumEntropy
from workbench.inference.recalled import NOISE_ONLY, Recalled
from workbench.wording import format_number
from workbench.workload import Products, Recipe, linear_queries
from workbench.workload.linear import Linear
from workbench.workload.sensitivity import term_ends

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
