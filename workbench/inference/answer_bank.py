"""The answer bank, which computes answers to new questions, with error bars, from noisy answers in earlier
releases.

Choice of the method: if a junction tree with few cells can represent all past answers, the bank fits a
maximum-entropy model to these answers. Otherwise, the bank uses kernel PCA (principal component analysis). The
prior is the product of the marginals of single attributes that the bank contains. Kernel PCA has a parameter α.
The bank takes the value of α with the smallest unbiased estimate of the squared error. Questions and past
answers are public, so new answers cost no budget.

Error bars: an error bar has two parts. The first part is the effect of the noise in the past answers. The bank
computes this part from a posterior, or by repeating the fit with additional noise. The second part is the error
of the method itself. The bank takes the part of a question that past questions do not determine, and multiplies
it by a factor. To choose the factor, the bank holds out some of the past answers, and predicts them from the
other answers. With the chosen factor, 19 of 20 of these answers are within ±2 error bars of their prediction.
The bank divides the answers into five parts for this purpose. All answers about a set of attributes are in the
same part, because most new questions are about attributes that no past question combined.

Source     Chen, Zhou & Bhowmick, EDBT 2012, for kernel PCA, and Theorem 4 of this paper for held-out answers.
           McKenna, Sheldon & Miklau, ICML 2019, for models on junction trees. Vovk, Gammerman & Shafer 2005
           for error bars from held-out answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan, sqrt
from typing import Any

import numpy as np

from workbench.estimates import NoisyAnswers
from workbench.inference.cross_validation import HeldOut
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_pca import Posterior
from workbench.inference.marginals import BankMarginals, is_held, largest_sets, used_attributes
from workbench.inference.markov_network import STRENGTH, NetworkFit, NetworkProblem
from workbench.queries import Linear, Products, Recipe, linear_queries
from workbench.queries.inner import means, squared_norms
from workbench.queries.sensitivity import term_ends
from workbench.value import Bool, Float, Int, sealed

KERNEL = "kernel PCA"
TREE = "junction tree"
METHODS = (KERNEL, TREE)

_NEAR_IN_TRIALS = 0.1  # deviations of the noise
_TREE_CELLS = 2**17
_ALPHAS = 16
_FOLDS = 5
_FEWEST_SETS = 5  # fewer sets of attributes: single answers are held out
_FEWEST_ANSWERS = 20  # that are held out, for a scale of bars
_BOOTSTRAPS = 12
_COVERED = 0.95
_LEAST_WEIGHT = 1e-100  # so that weights of hopeless answers have a sum


@dataclass(frozen=True, eq=False)
class Recalled:
    """Answers that an answer bank computed from past noisy answers. You can unpack the object to two arrays:
    `values, errors = session.recall(…)`.

    Parameters
    ----------
    values : float64[queries]
        Estimated answers, as counts of records.
    errors : float64[queries] or None
        Error bars, as counts of records. The true answer should be within ±2 error bars of the estimate. An
        error bar is inf if the bank cannot estimate it. The field is None if you did not request error bars.
    by : str
        Name of the method that computed the answers.
    why : str
        Reason why the bank used this method, and the kinds of error that the error bars include.
    noise_only : bool
        True if the error bars include only the noise. This is the case if the bank has too few or too many
        answers to estimate the error of the method itself. It is then unknown how often the true answer is
        within ±2 error bars.
    """

    values: Float[np.ndarray, " queries"]
    errors: Float[np.ndarray, " queries"] | None
    by: str
    why: str
    noise_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.asarray(self.values, float)))
        if self.errors is not None:
            errors = np.nan_to_num(np.asarray(self.errors, float), nan=inf, posinf=inf)
            object.__setattr__(self, "errors", sealed(errors))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.values, self.errors))


class AnswerBank:
    """Collection of noisy answers. The bank computes answers to new questions from these answers, at no cost in
    budget.

    The bank fits a model when the model is first needed. To estimate error bars, the bank always holds out the
    same answers and adds the same noise. So the same question always gets the same answer and error bar.

    Parameters
    ----------
    history : NoisyAnswers
        All past noisy answers. The noise of different answers must be independent.
    total : float, optional
        Number of records, if it is public.
    prior : tuple, optional
        One vector of weights per attribute, with one weight per value. By default, the weights are computed
        from the marginals in the bank.
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
        self.prior = self.marginals.prior() if prior is None else prior
        self._scales: dict[str, float] = {}
        self._stopped = 0  # fits for the bars that stopped before they were near

    def recall(self, workload: Recipe, by: str | None = None, error: bool = True) -> Recalled:
        """Compute answers to questions from the past noisy answers, at no cost in budget.

        Parameters
        ----------
        workload : Workload
            Questions (queries). Each question must be a weighted sum of cells.
        by : str, optional
            Method to use, "kernel PCA" or "junction tree". By default, the bank chooses the method.
        error : bool
            Whether to compute error bars. Default True.

        Returns
        -------
        Recalled
            Estimated answers with error bars, the method, and the reason for this method.

        Raises
        ------
        ValueError
            If the workload does not fit the domain, or if the method is unknown or not possible.
        """
        queries = linear_queries(workload, self.domain)
        by, why = self.choose(by)
        low, high = _limits(queries, self.total)
        values = np.clip(self._answers(by, queries), low, high)
        why = "; ".join([why, *self.doubts(by)])
        if not error:
            return Recalled(values, None, by, why)
        errors, parts = self._bars(by, queries)
        noise_only = self._is_many or by == TREE and not np.isfinite(self._scale(by))
        farthest = np.maximum(values - low, high - values)
        errors = np.minimum(errors, farthest / 2)
        return Recalled(values, errors, by, f"{why}; {parts}", noise_only)

    def choose(self, by: str | None = None) -> tuple[str, str]:
        """Return the name of the method that answers questions, and the reason for this choice.

        Parameters
        ----------
        by : str, optional
            Method that you want to use. By default, the bank chooses.

        Returns
        -------
        str, str

        Raises
        ------
        ValueError
            If the method is unknown, or if it is not possible for this bank.
        """
        if by not in (None, *METHODS):
            raise ValueError(f"by = {by!r} is not allowed: need one of {', '.join(METHODS)}")
        if by == TREE and self.network is None:
            raise ValueError(
                "a junction tree, which also draws rows, needs the number of tuples (open the session with "
                "total=, or pay for a complete table), and a paid set of attributes with few cells"
            )
        if by is not None:
            return by, "you chose this method"
        if self._is_many and self.network is not None:
            return TREE, f"more than {self.most_answers} answers are too many for kernel PCA"
        if self.marginals.total is None:
            return KERNEL, "the number of tuples is unknown"
        if not self.folds:
            return KERNEL, "there are too few answers to compare the methods"
        if self.network is None or self.network.left_out:
            return KERNEL, "no junction tree with few cells contains all answers"
        return TREE, "a junction tree contains all answers"

    def doubts(self, by: str = KERNEL) -> list[str]:
        """Return a list of warnings, one sentence each. The bank warns if the past answers contradict each
        other, or if the method `by` does not fit the answers well.
        """
        said = [self.marginals.complaint] if self.marginals.complaint else []
        if by == TREE and not self.tree.converged:
            residual = self.tree.residual
            said.append(
                f"the fit did not converge: residuals of {residual:.2g} standard deviations"
            )
        return said

    def _answers(self, by: str, queries: Linear) -> Float[np.ndarray, " queries"]:
        return np.asarray((self.tree.model if by == TREE else self.posterior()).answer(queries))

    @property
    def _is_many(self) -> bool:
        """Whether there are too many answers for a method that needs a matrix of answers × answers."""
        return len(self.history) > self.most_answers

    # Kernel PCA

    @cached_property
    def eigen(self) -> Eigenqueries:
        """Eigenqueries of the past questions (see `Eigenqueries`). If there are too many answers, a
        ValueError is raised.
        """
        self.refuse_many(len(self.history))
        return Eigenqueries.of(self.history, self.total, self.prior)

    @classmethod
    def refuse_many(cls, count: int) -> None:
        """Raise a ValueError if `count` answers are too many for a matrix of answers × answers."""
        if count > cls.most_answers:
            raise ValueError(
                f"{KERNEL} is not possible for this bank: it has {count} answers, and at most "
                f"{cls.most_answers} fit into a matrix"
            )

    @cached_property
    def alpha(self) -> float:
        """Value of α (the trade-off of kernel PCA between bias and variance) with the smallest estimated
        error. If there are very few answers, it is the total, or ∞ if the total is unknown.
        """
        if not self.folds or not len(self.eigen):
            return self.total or inf
        deviations = np.sqrt(self.history.variances)
        low = 1e-3 * min(float(deviations.min()), self.total or inf)
        most = self.total or float(np.abs(self.history.values).max() + deviations.max())
        high = min(max(most, 1e3 * low), self._held_out.largest_alpha)
        alphas = np.geomspace(min(low, high / 1e3), high, _ALPHAS)
        return float(alphas[np.argmin(self._held_out.unbiased_risks(alphas))])

    def posterior(self, alpha: float | None = None) -> Posterior:
        """Return the posterior of kernel PCA (its fitted estimate) for the given α, by default for the α that
        the bank selected.
        """
        return Posterior(self.eigen, self.alpha if alpha is None else alpha)

    @property
    def cautious_alpha(self) -> float:
        """Value of α for which the errors that kernel PCA predicts are about as large as the error bars. With
        this α, the bank predicts the cost of more accurate answers.
        """
        if self._sets is None or not np.isfinite(self._scale(KERNEL)):
            return self.total or inf
        return float(np.clip(self.alpha * self._scale(KERNEL), 1e-99, 1e99))

    # Junction tree

    @cached_property
    def network(self) -> NetworkProblem | None:
        """Problem of fitting a network (model on a junction tree) to the paid answers. It is None if the
        total is unknown, or if every set of attributes has too many cells.
        """
        if self.marginals.total is None:
            return None
        try:
            return NetworkProblem.of(
                self.history, self.marginals.total, self.prior, _TREE_CELLS
            )
        except ValueError:
            return None

    @cached_property
    def tree(self) -> NetworkFit:
        """Network (model on a junction tree) that was fitted to the paid answers. It agrees with these
        answers up to their noise.
        """
        self.choose(TREE)  # which says why there is none
        assert self.network is not None
        return self.network.fit(STRENGTH)

    def _trial(
        self,
        values: Float[np.ndarray, " queries"] | None = None,
        used: Bool[np.ndarray, " queries"] | None = None,
    ) -> NetworkFit:
        """Fit the network again, to other values of the answers, or only to the answers in `used`. Error bars
        are computed from such fits.
        """
        network = self.tree.problem
        rows = None if used is None else used[network.rows]
        fitted = network.fit(STRENGTH, self.tree.weights, values, rows, _NEAR_IN_TRIALS)
        self._stopped += fitted.residual > _NEAR_IN_TRIALS
        return fitted

    @cached_property
    def _noisy_trees(self) -> list[NetworkFit]:
        """Networks that were fitted to the paid answers plus new noise. The new noise has the variance of the
        original noise.
        """
        history = self.history
        normal = np.random.default_rng(1).standard_normal((_BOOTSTRAPS, len(history)))
        return [self._trial(history.values + np.sqrt(history.variances) * z) for z in normal]

    @cached_property
    def _tree_of_more(self) -> NetworkFit | None:
        """Network that is fitted with a total that is larger by one standard error. It is None if the total
        is known.
        """
        if self.total is not None:
            return None
        assert self.marginals.total is not None
        more = self.tree.problem.at(self.marginals.total + self.marginals.error)
        return more.fit(STRENGTH, self.tree.weights)

    # Error bars

    @cached_property
    def _used(self) -> np.ndarray:
        return used_attributes(self.history.workload, self.domain)

    @cached_property
    def _sets(self) -> list[Int[np.ndarray, " held_out"]] | None:
        """Positions of the answers about each set of attributes, for sets of two or more attributes that are
        not part of a larger set. It is None if there are fewer than five such sets.
        """
        number = largest_sets(self._used)
        sets = [np.flatnonzero(number == i) for i in np.unique(number[number >= 0])]
        sets = [rows for rows in sets if self._used[rows[0]].sum() > 1]
        return sets if len(sets) >= _FEWEST_SETS else None

    @cached_property
    def folds(self) -> list[Int[np.ndarray, " held_out"]]:
        """Positions of the answers in each of five parts, which are held out in turn. The list is empty if
        the bank has fewer than five answers.
        """
        units = self._sets
        if units is None:
            units = [np.array([i]) for i in range(len(self.history))]
        if len(units) < _FEWEST_SETS:
            return []
        order = np.random.default_rng(0).permutation(len(units))
        parts = np.array_split(order, _FOLDS)
        return [np.sort(np.concatenate([units[i] for i in part])) for part in parts]

    @cached_property
    def _held_out(self) -> HeldOut:
        return HeldOut(self.eigen, self.history, self._reliabilities)

    @cached_property
    def _reliabilities(self) -> Float[np.ndarray, " queries"]:
        """Weight of each answer in averages of errors. The weight is small if the noise of the answer is so
        large that it would hide any error of the method.

        Let a be an answer with Laplace noise of variance σ², and a' its prediction. Then (a − a')² − σ² has
        the variance 5σ⁴ because of the noise. The largest possible squared error is N²·Var(q), where N is the
        total and Var(q) the variance of the query under the prior. Without weights, answers that were bought
        with a tiny ε would dominate the average.
        """
        prior = prior_vectors(self.prior, self.domain)
        queries = self.history.workload
        mean = means(queries, self.domain, prior)
        spread = np.maximum(squared_norms(queries, self.domain, prior) - mean**2, 1e-12)
        least_noisy = float(np.abs(self.history.values[self.history.variances.argmin()]))
        most = self.marginals.total or max(1.0, least_noisy)
        hidden = self.history.variances / (most**2 * spread)
        return np.maximum(1 / (1 + 5 * hidden**2), _LEAST_WEIGHT)

    def _missed(self, by: str) -> Float[np.ndarray, " queries"]:
        """Hold out each part of the answers in turn. Return each answer minus its prediction from the other
        parts. The number is NaN for answers that were never held out.
        """
        if by == KERNEL:
            residuals = self._held_out.missed(self.alpha, self.folds).residuals
            return residuals * np.sqrt(self.history.variances)
        missed = np.full(len(self.history), np.nan)
        for fold in self.folds:
            used = np.ones(len(self.history), bool)
            used[fold] = False
            told = self._trial(used=used).model.answer(self.history.workload[fold])
            missed[fold] = self.history.values[fold] - told
        return missed

    def _scale(self, by: str) -> float:
        """Return the factor for the second part of error bars, which is the error of the method itself. With
        this factor, 19 of 20 held-out answers are within ±2 error bars of their prediction.

        Noise could hide an error of the method, because the mean of missed² − σ² has the variance 5σ⁴/n for n
        answers with Laplace noise of variance σ². The factor is large enough to cover an error that the noise
        could hide. It is NaN if there are too few or too many answers.
        """
        if by in self._scales:
            return self._scales[by]
        if self._is_many or sum(map(len, self.folds)) < _FEWEST_ANSWERS or not len(self.eigen):
            return nan
        missed = self._missed(by)
        held = np.isfinite(missed)
        variances = self.history.variances[held]
        believed = self._held_out.missed(self.alpha, self.folds).variances[held]
        unknown = np.maximum(believed - 1, 0) * variances
        needed = (missed[held] / 2) ** 2 - variances
        with np.errstate(divide="ignore", invalid="ignore"):
            scales = np.where(needed > 0, needed / unknown, 0.0)
        weights = self._reliabilities[held] / self._reliabilities[held].sum()
        hidden = 2 * sqrt(5) * float(np.linalg.norm(weights * variances))
        least = hidden / max(float(weights @ unknown), 1e-300)
        most = float(np.quantile(scales, _COVERED, method="higher"))
        self._scales[by] = sqrt(max(least, most))
        return self._scales[by]

    def _bars(self, by: str, queries: Linear) -> tuple[Float[np.ndarray, " queries"], str]:
        """Return the error bars of some queries, and a description of the errors that they include."""
        noise = self._noise_of_tree(queries) if by == TREE else np.zeros(len(queries))
        words = "error bars show the noise only"
        if self._is_many:
            return noise, words
        kernel = self.posterior().errors_in_parts(queries)
        if by == KERNEL:
            noise = kernel.noise
        scale = self._scale(by)
        model = np.zeros(len(queries))
        cautious = np.zeros(len(queries), bool)
        if self._sets is None:  # no answer says how attributes never asked together go together
            cautious = ~is_held(used_attributes(queries, self.domain), self._used)
        if np.isfinite(scale):
            model = scale * kernel.model
            words = "error bars show the noise, and the error of the model on answers left out"
        elif by == KERNEL:
            cautious[:] = True
        if self._stopped:
            words += f", and {self._stopped} of their fits stopped early"
        errors = np.hypot(noise, model)
        if cautious.any():
            words += (
                ", but with too few answers, or for attributes that were never bought together, they are "
                "as wide as the total allows"
            )
            wide = self.posterior(self.total or inf).errors_in_parts(queries[cautious])
            errors[cautious] = np.nan_to_num(
                np.hypot(wide.noise, wide.model), nan=inf, posinf=inf
            )
        return errors, words

    def _noise_of_tree(self, queries: Linear) -> Float[np.ndarray, " queries"]:
        """Return the standard deviations of the network's answers if the fit is repeated with additional
        noise, which has the variance of the original noise. If the total was estimated, its error is
        included.
        """
        first = self.tree.model.answer(queries)
        squares = np.zeros(len(first))
        for fitted in self._noisy_trees:
            squares += (fitted.model.answer(queries) - first) ** 2 / _BOOTSTRAPS
        if self._tree_of_more is not None:
            squares += (self._tree_of_more.model.answer(queries) - first) ** 2
        return np.sqrt(squares)


def _limits(queries: Linear, total: float | None) -> tuple[Any, Any]:
    """Return the smallest and the largest possible answer of each query, for counts that are not negative and
    add up to `total`.
    """
    if not isinstance(queries, Products):
        return -inf, inf
    low, high = term_ends(queries)
    least = np.bincount(queries.query, low, len(queries))
    if total is None:
        return np.where(least >= 0, 0.0, -inf), inf
    return total * least, total * np.bincount(queries.query, high, len(queries))
