"""Metrics for answers to queries, and for strings that synthetic data recover."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import PUBLIC, Interactions, Records, SparseTable
from workbench.estimates import Leaves, Summary
from workbench.queries import Ranges, Recipe, Workload
from workbench.spaces import Keys, Prefixes
from workbench.value import Bool, Float, Int, parameter, value

# Refusal


def refuse_private(truth: SparseTable | Interactions | Records) -> None:
    """Raise a ValueError if the true data are private (neither public nor created with `truth_public=True`).
    The error of an estimate would reveal such data.
    """
    if truth.bound is not PUBLIC and not truth.truth_public:
        raise ValueError(
            "this table is not marked as truth_public. An error against it is an exact function "
            "of private data and would leak it. Use `advise`, which needs only public numbers"
        )


def refuse_other_domain(truth: SparseTable | Interactions | Records, estimate: Any) -> None:
    """Raise a ValueError if the estimate and the truth have different domains."""
    domain = getattr(estimate, "domain", truth.domain)
    if domain != truth.domain:
        ours = " × ".join(domain.attributes)
        theirs = " × ".join(truth.domain.attributes)
        raise ValueError(f"an estimate over {ours} does not fit a truth over {theirs}")


# Answers

Answers = Float[np.ndarray, " queries"]


def _answers(
    truth: SparseTable | Records, estimate: Any, workload: Recipe, **options: Any
) -> tuple[Answers, Answers]:
    """Return the true answers, and the differences of the estimated answers from them."""
    refuse_private(truth)
    refuse_other_domain(truth, estimate)
    queries: Workload = workload.on(truth.domain)
    exact = truth.answer(queries)
    return exact, estimate.answer(queries, **options) - exact


def rmse(answers: Answers, exact: Answers) -> float:
    """Return the root mean squared error of answers to queries.

    Parameters
    ----------
    answers, exact : float[queries]
        Estimated answers and true answers, as numbers of records.

    Returns
    -------
    float
        Root mean squared error, as a number of records.
    """
    return float(np.sqrt(((answers - exact) ** 2).mean()))


@value
class _WorkloadMetric:
    """Base class of metrics that compare estimated and true answers to the queries of a workload (a list of
    queries).
    """

    workload: Recipe
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable | Records, estimate: Any) -> float:
        """Compute the error of an estimate's answers to the workload.

        Parameters
        ----------
        truth : SparseTable or Records
            True data, which are public or were created with `truth_public=True`.
        estimate : Summary or any other estimate
            Released estimate, over the same domain as the true data.

        Returns
        -------
        float
            Error, in the unit of the answers, or in the squared unit for squared errors. Relative errors have
            no unit.

        Raises
        ------
        ValueError
            If the true data are private, or if the estimate cannot answer the queries.
        """
        pair = _answers(truth, estimate, self.workload, weights=self.weights)
        return float(self._mean(*pair))

    def _mean(self, exact: Answers, deviations: Answers) -> float:
        raise NotImplementedError


@value
class MeanAbsoluteError(_WorkloadMetric):
    """Mean absolute error: the mean of |estimate − truth| over the queries of a workload (a list of queries).
    Here estimate and truth are the estimated and the true answer to a query. The error has the same unit as
    the answers.

    `weights` is "unbiased" (the default) or "raw". With "raw", an estimated answer is the sum of the noisy
    counts of the released cells. The two settings differ only if the mechanism released a random sample of
    the cells. With "unbiased", the metric then increases the released counts, so that they also stand for the
    cells that were not drawn. For example, with the sampling threshold 500, a noisy count of 80 is increased
    to 500.
    """

    def _mean(self, exact: Answers, deviations: Answers) -> float:
        return np.abs(deviations).mean()


@value
class MedianRelativeError(_WorkloadMetric):
    """Median relative error: the median of |estimate − truth| / truth over the queries of a workload (a list
    of queries). Here estimate and truth are the estimated and the true answer to a query. The metric leaves
    out queries with a true answer of 0.

    If the true answers of all queries are 0, the result is NaN.

    `weights` is "unbiased" (the default) or "raw". With "raw", an estimated answer is the sum of the noisy
    counts of the released cells. The two settings differ only if the mechanism released a random sample of
    the cells. With "unbiased", the metric then increases the released counts, so that they also stand for the
    cells that were not drawn. For example, with the sampling threshold 500, a noisy count of 80 is increased
    to 500.
    """

    def _mean(self, exact: Answers, deviations: Answers) -> float:
        positive = exact > 0
        relative = np.abs(deviations[positive]) / exact[positive]
        return np.median(relative) if positive.any() else np.nan


@value
class MeanSignedError(_WorkloadMetric):
    """Mean signed error: the mean of estimate − truth over the queries of a workload (a list of queries).
    Here estimate and truth are the estimated and the true answer to a query. The error has the same unit as
    the answers. The result is an estimate of the bias of the answers.

    `weights` is "unbiased" (the default) or "raw". With "raw", an estimated answer is the sum of the noisy
    counts of the released cells. The two settings differ only if the mechanism released a random sample of
    the cells. With "unbiased", the metric then increases the released counts, so that they also stand for the
    cells that were not drawn. For example, with the sampling threshold 500, a noisy count of 80 is increased
    to 500.
    """

    def _mean(self, exact: Answers, deviations: Answers) -> float:
        return deviations.mean()


@value
class MeanSquaredError(_WorkloadMetric):
    """Mean squared error: the mean of (estimate − truth)² over the queries of a workload (a list of queries).
    Here estimate and truth are the estimated and the true answer to a query. The error has the squared unit
    of the answers.

    `weights` is "unbiased" (the default) or "raw". With "raw", an estimated answer is the sum of the noisy
    counts of the released cells. The two settings differ only if the mechanism released a random sample of
    the cells. With "unbiased", the metric then increases the released counts, so that they also stand for the
    cells that were not drawn. For example, with the sampling threshold 500, a noisy count of 80 is increased
    to 500.
    """

    def _mean(self, exact: Answers, deviations: Answers) -> float:
        return (deviations**2).mean()


@value
class SquaredError:
    """Squared error of a whole histogram: the sum of (estimate − truth)² over the counts of all cells."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compute the squared error over all cells of the domain.

        Parameters
        ----------
        truth : SparseTable
            True data, which are public or were created with `truth_public=True`.
        estimate : Histogram or any other estimate
            Released estimate, over the same domain as the true data.

        Returns
        -------
        float
            Sum of the squared errors of the counts.

        Raises
        ------
        ValueError
            If the true data are private, or if the estimate cannot answer the queries.
        """
        cells = np.arange(truth.domain.size)
        _, deviations = _answers(truth, estimate, Ranges(cells, cells + 1))
        return float((deviations**2).sum())


@value
class HeldCells:
    """Share of the non-empty cells of the true table that a release contains."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compute the share of cells that were released, among all cells that are not empty in the true
        table.

        Parameters
        ----------
        truth : SparseTable
            True data, which are public or were created with `truth_public=True`.
        estimate : Summary
            Released summary, which lists some of the cells.

        Returns
        -------
        float
            Share between 0 and 1, or NaN if the table is empty.

        Raises
        ------
        ValueError
            If the true data are private, or if the estimate is not a summary.
        """
        refuse_private(truth)
        if type(estimate) is not Summary:
            raise ValueError(f"{estimate!r} has no released cells: HeldCells needs a Summary")
        released = np.isin(truth.keys, estimate.keys, assume_unique=True)
        return float(released.mean()) if len(released) else float("nan")


# Strings


class MatchedStrings(NamedTuple):
    """Distinct synthetic strings, each with two numbers: how often it occurs among the synthetic strings, and
    how often it occurs in the corpus (the true strings).
    """

    keys: Keys
    counts: Int[np.ndarray, " strings"]
    corpus_counts: Int[np.ndarray, " strings"]

    @property
    def recovered(self) -> Int[np.ndarray, " strings"]:
        """Number of matches of each distinct string: the smaller of its two numbers. Each synthetic string is
        matched with at most one equal string in the corpus.
        """
        return np.minimum(self.counts, self.corpus_counts)


def match_strings(
    truth: Records, estimate: Leaves | Records, prefixes: bool = False
) -> MatchedStrings:
    """Count, for each distinct synthetic string, how often it occurs among the synthetic strings, and how
    often it occurs in the corpus (the true strings).

    A release of strings may also contain prefixes. A prefix consists of the first symbols of strings.

    Parameters
    ----------
    truth : Records
        True strings, over a hierarchy `Prefixes` (all beginnings of strings). The strings are public or
        created with `truth_public=True`.
    estimate : Leaves or Records
        Synthetic strings, over the same hierarchy.
    prefixes : bool
        Whether to treat a prefix as if it were a complete string. By default, the function ignores prefixes.

    Returns
    -------
    MatchedStrings
        Arrays with one entry per distinct string: the strings as `keys` (uint64[words, strings]), the number
        of synthetic strings as `counts`, and the number of strings in the corpus as `corpus_counts` (both
        int64[strings]).

    Raises
    ------
    ValueError
        If the true strings are private, or if the two arguments are not strings over the same hierarchy.
    """
    refuse_private(truth)
    hierarchy = truth.hierarchy
    if not isinstance(hierarchy, Prefixes) or estimate.domain != hierarchy:
        raise ValueError(
            f"strings of {estimate.domain!r} cannot be found in a corpus of {hierarchy!r}: need the "
            "same Prefixes"
        )
    if isinstance(estimate, Leaves):
        is_string = estimate.values > 0
        if not prefixes:
            is_string &= _ended(hierarchy, estimate)
        keys = estimate.keys[:, is_string]
        counts = estimate.values[is_string]
    else:
        keys, counts = estimate.level(hierarchy.depth)
    corpus_counts = truth.node_counts(np.full(len(counts), hierarchy.depth), keys)
    return MatchedStrings(keys, counts, corpus_counts)


def _ended(hierarchy: Prefixes, leaves: Leaves) -> Bool[np.ndarray, " leaves"]:
    """Return which leaves (released nodes) are complete strings, as a boolean array. These leaves cannot be
    split further.
    """
    ended = np.zeros(len(leaves), bool)
    for level in np.unique(leaves.levels):
        at_level = leaves.levels == level
        ended[at_level] = hierarchy.children(int(level), leaves.keys[:, at_level]) == 0
    return ended


@value
class RecoveredFraction:
    """Share of a corpus (the true strings) that synthetic strings recover. A true string is recovered if it
    is matched with an equal synthetic string. Each synthetic string is matched with at most one true string.

    The metric uses only strings that occur `low` to `high` times in the corpus. By default, it uses all
    strings. If `prefixes` is True, the metric treats a synthetic prefix as if it were a complete string.
    """

    low: int = parameter(1, 1, integer=True, unit="times")
    high: int | None = parameter(None, 1, integer=True, unit="times")
    prefixes: bool = parameter(False, choices=(False, True), doc="treat prefixes as strings")

    def __post_init__(self) -> None:
        if self.high is not None and self.high < self.low:
            raise ValueError(f"{self!r} is not allowed: need high >= low")

    def __call__(self, truth: Records, estimate: Leaves | Records) -> float:
        """Compute the share of the corpus that the synthetic strings recover.

        Parameters
        ----------
        truth : Records
            True strings, over a hierarchy `Prefixes` (all beginnings of strings). The strings are public or
            created with `truth_public=True`.
        estimate : Leaves or Records
            Synthetic strings, over the same hierarchy.

        Returns
        -------
        float
            Share between 0 and 1, or NaN if no string of the corpus occurs `low` to `high` times.

        Raises
        ------
        ValueError
            If the true strings are private, or if the two arguments are not strings over the same hierarchy.
        """
        matches = match_strings(truth, estimate, self.prefixes)
        _, exact = truth.level(truth.hierarchy.depth)
        total = exact[self._in_range(exact)].sum()
        recovered = matches.recovered[self._in_range(matches.corpus_counts)].sum()
        return float(recovered / total) if total else float("nan")

    def _in_range(self, counts: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        high = np.iinfo(np.int64).max if self.high is None else self.high
        return (counts >= self.low) & (counts <= high)


def recovered_by_frequency(
    truth: Records,
    estimate: Leaves | Records,
    descending: bool = False,
) -> pd.DataFrame:
    """Compute the share of a corpus (the true strings) that synthetic strings recover, among strings up to
    each frequency. The frequency of a string is the number of times that it occurs in the corpus. A true
    string is recovered if it is matched with an equal synthetic string. Each synthetic string is matched with
    at most one true string.

    Parameters
    ----------
    truth : Records
        True strings, over a hierarchy `Prefixes` (all beginnings of strings). The strings are public or
        created with `truth_public=True`.
    estimate : Leaves or Records
        Synthetic strings, over the same hierarchy.
    descending : bool
        Whether to begin with the most frequent strings. By default, the function begins with the rarest
        strings.

    Returns
    -------
    pandas.DataFrame
        One row per `frequency` f. The row is about the strings that occur at most f times in the corpus (at
        least f times if `descending` is True). `data` is the share of the corpus that consists of such
        strings. `recovered` is the share of the corpus that consists of such strings and is recovered.

    Raises
    ------
    ValueError
        If the true strings are private, or if the two arguments are not strings over the same hierarchy.
    """
    matches = match_strings(truth, estimate)
    _, exact = truth.level(truth.hierarchy.depth)
    frequency, strings = np.unique(exact, return_counts=True)
    in_corpus = matches.corpus_counts > 0
    at = np.searchsorted(frequency, matches.corpus_counts[in_corpus])
    recovered = np.bincount(at, matches.recovered[in_corpus], len(frequency))
    direction = slice(None, None, -1 if descending else 1)
    total = max(1, exact.sum())
    return pd.DataFrame(
        {
            "frequency": frequency[direction],
            "data": np.cumsum((frequency * strings)[direction]) / total,
            "recovered": np.cumsum(recovered[direction]) / total,
        }
    )
