"""How far answers to queries about a table are from the truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float
from workbench.estimates import Summary
from workbench.metrics.refusal import refuse_other_domain, refuse_private
from workbench.records import Records
from workbench.table import SparseTable
from workbench.value import parameter, value
from workbench.workload import Ranges, Recipe, Workload


class _AnswerPair(NamedTuple):
    exact: Float[np.ndarray, " queries"]
    estimated: Float[np.ndarray, " queries"]

    @property
    def deviations(self) -> Float[np.ndarray, " queries"]:
        return self.estimated - self.exact


def _answers(
    truth: SparseTable | Records, estimate: Any, workload: Recipe, **options: Any
) -> _AnswerPair:
    refuse_private(truth)
    refuse_other_domain(truth, estimate)
    queries: Workload = workload.on(truth.domain)
    return _AnswerPair(truth.answer(queries), estimate.answer(queries, **options))


def rmse(answers: Float[np.ndarray, " queries"], exact: Float[np.ndarray, " queries"]) -> float:
    """The root of the mean squared error over queries.

    Parameters
    ----------
    answers, exact : float[queries]
        Estimated and true answers, in counts.

    Returns
    -------
    float
        In counts.
    """
    return float(np.sqrt(((answers - exact) ** 2).mean()))


def coverage(
    answers: Float[np.ndarray, " queries"],
    errors: Float[np.ndarray, " queries"],
    exact: Float[np.ndarray, " queries"],
) -> float:
    """The fraction of queries whose exact answer lies within its error bar.

    Parameters
    ----------
    answers, errors, exact : float[queries]
        Estimated answers, how far they are said to be off at most, and true answers, in counts.

    Returns
    -------
    float
        A fraction in [0, 1].
    """
    return float((np.abs(answers - exact) <= errors).mean())


@value
class _WorkloadMetric:
    """What metrics of the answers to one workload have in common."""

    workload: Recipe
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable | Records, estimate: Any) -> float:
        """Compare the answers to the workload.

        Parameters
        ----------
        truth : SparseTable or Records
            Whose truth is public.
        estimate : Summary or any other estimate
            Over the same domain.

        Returns
        -------
        float
            In counts, in counts² where the metric is of squares, or a fraction where it is relative.

        Raises
        ------
        ValueError
            If the truth is private, or the estimate cannot answer.
        """
        return float(self._mean(_answers(truth, estimate, self.workload, weights=self.weights)))

    def _mean(self, pair: _AnswerPair) -> float:
        raise NotImplementedError


@value
class MeanAbsoluteError(_WorkloadMetric):
    """Mean over queries of |estimate − truth|, in counts."""

    def _mean(self, pair: _AnswerPair) -> float:
        return np.abs(pair.deviations).mean()


@value
class MedianRelativeError(_WorkloadMetric):
    """Median over queries of |estimate − truth| / truth, a fraction; those whose truth is 0 are left out.

    NaN if every query is empty.
    """

    def _mean(self, pair: _AnswerPair) -> float:
        positive = pair.exact > 0
        relative = np.abs(pair.deviations[positive]) / pair.exact[positive]
        return np.median(relative) if positive.any() else np.nan


@value
class MeanSignedError(_WorkloadMetric):
    """Mean over queries of estimate − truth, in counts: what is left is bias."""

    def _mean(self, pair: _AnswerPair) -> float:
        return pair.deviations.mean()


@value
class MeanSquaredError(_WorkloadMetric):
    """Mean over queries of (estimate − truth)², in counts²."""

    def _mean(self, pair: _AnswerPair) -> float:
        return (pair.deviations**2).mean()


@value
class SquaredError:
    """Sum over all cells of (estimate − truth)², in counts²: the error of a whole histogram."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare all cells of the domain.

        Parameters
        ----------
        truth : SparseTable
            Whose truth is public.
        estimate : Histogram or any other estimate
            Over the same domain.

        Returns
        -------
        float
            In counts².

        Raises
        ------
        ValueError
            If the truth is private, or the estimate cannot answer.
        """
        cells = np.arange(truth.domain.size)
        pair = _answers(truth, estimate, Ranges(cells, cells + 1))
        return float((pair.deviations**2).sum())


@value
class HeldCells:
    """The fraction of the truth's non-empty cells that the release names."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare the cells that are not empty with those that were released.

        Parameters
        ----------
        truth : SparseTable
            Whose truth is public.
        estimate : Summary
            Of cells.

        Returns
        -------
        float
            A fraction in [0, 1]; NaN for an empty table.

        Raises
        ------
        ValueError
            If the truth is private, or for another estimate.
        """
        refuse_private(truth)
        if type(estimate) is not Summary:
            raise ValueError(f"{estimate!r} names no cells: HeldCells needs a Summary")
        released = np.isin(truth.keys, estimate.keys, assume_unique=True)
        return float(released.mean()) if len(released) else float("nan")
