"""Errors of answers to queries, and metrics for recovered strings."""

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
    """Raise a ValueError unless the true data are public or marked as `truth_public`."""
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
    """Return the root mean squared error over queries.

    Parameters
    ----------
    answers, exact : float[queries]
        Estimated and true answers, in counts.

    Returns
    -------
    float
        Error in counts.
    """
    return float(np.sqrt(((answers - exact) ** 2).mean()))


@value
class _WorkloadMetric:
    """Base of metrics that compare the answers to one workload."""

    workload: Recipe
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable | Records, estimate: Any) -> float:
        """Compare the answers to the workload.

        Parameters
        ----------
        truth : SparseTable or Records
            Data with a public truth.
        estimate : Summary or any other estimate
            Estimate over the same domain.

        Returns
        -------
        float
            Error in counts, in counts² for squared errors, or as a fraction for relative errors.

        Raises
        ------
        ValueError
            If the truth is private, or the estimate cannot answer the queries.
        """
        return float(self._mean(_answers(truth, estimate, self.workload, weights=self.weights)))

    def _mean(self, pair: _AnswerPair) -> float:
        raise NotImplementedError


@value
class MeanAbsoluteError(_WorkloadMetric):
    """Mean absolute error: the mean over queries of |estimate − truth|, in counts."""

    def _mean(self, pair: _AnswerPair) -> float:
        return np.abs(pair.deviations).mean()


@value
class MedianRelativeError(_WorkloadMetric):
    """Median relative error: the median over queries of |estimate − truth| / truth. Queries with a truth of
    0 are left out.

    The result is NaN if the truth of every query is 0.
    """

    def _mean(self, pair: _AnswerPair) -> float:
        positive = pair.exact > 0
        relative = np.abs(pair.deviations[positive]) / pair.exact[positive]
        return np.median(relative) if positive.any() else np.nan


@value
class MeanSignedError(_WorkloadMetric):
    """Mean signed error: the mean over queries of estimate − truth, in counts. It measures bias."""

    def _mean(self, pair: _AnswerPair) -> float:
        return pair.deviations.mean()


@value
class MeanSquaredError(_WorkloadMetric):
    """Mean squared error: the mean over queries of (estimate − truth)², in counts²."""

    def _mean(self, pair: _AnswerPair) -> float:
        return (pair.deviations**2).mean()


@value
class SquaredError:
    """Squared error of a whole histogram: the sum over all cells of (estimate − truth)², in counts²."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare all cells of the domain.

        Parameters
        ----------
        truth : SparseTable
            Data with a public truth.
        estimate : Histogram or any other estimate
            Estimate over the same domain.

        Returns
        -------
        float
            Error in counts².

        Raises
        ------
        ValueError
            If the truth is private, or the estimate cannot answer the queries.
        """
        cells = np.arange(truth.domain.size)
        pair = _answers(truth, estimate, Ranges(cells, cells + 1))
        return float((pair.deviations**2).sum())


@value
class HeldCells:
    """Fraction of the truth's non-empty cells that were released."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare the non-empty cells with the released cells.

        Parameters
        ----------
        truth : SparseTable
            Data with a public truth.
        estimate : Summary
            Released cells.

        Returns
        -------
        float
            Fraction in [0, 1], or NaN for an empty table.

        Raises
        ------
        ValueError
            If the truth is private, or the estimate has another class.
        """
        refuse_private(truth)
        if type(estimate) is not Summary:
            raise ValueError(f"{estimate!r} has no released cells: HeldCells needs a Summary")
        released = np.isin(truth.keys, estimate.keys, assume_unique=True)
        return float(released.mean()) if len(released) else float("nan")


# Strings


class MatchedStrings(NamedTuple):
    """Distinct synthetic strings. For each, the object has its number of copies among the synthetic strings
    and in the corpus.
    """

    keys: Keys
    counts: Int[np.ndarray, " strings"]
    corpus_counts: Int[np.ndarray, " strings"]

    @property
    def recovered(self) -> Int[np.ndarray, " strings"]:
        """Return how many copies in the corpus the synthetic strings match. A synthetic string matches at
        most one copy.
        """
        return np.minimum(self.counts, self.corpus_counts)


def match_strings(
    truth: Records, estimate: Leaves | Records, prefixes: bool = False
) -> MatchedStrings:
    """Match the distinct synthetic strings with those of a corpus.

    A leaf may be only the beginning of a string (a prefix).

    Parameters
    ----------
    truth : Records
        Corpus over `Prefixes`, with a public truth.
    estimate : Leaves or Records
        Synthetic strings over the same hierarchy.
    prefixes : bool
        Whether to treat a prefix as a complete string. Otherwise prefixes match nothing.

    Returns
    -------
    MatchedStrings
        `keys` (uint64[words, strings]), `counts` and `corpus_counts` (int64[strings]).

    Raises
    ------
    ValueError
        If the truth is private, or the two sides are not strings over the same hierarchy.
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
    """Return a mask of the leaves that are complete strings, because they cannot be split."""
    ended = np.zeros(len(leaves), bool)
    for level in np.unique(leaves.levels):
        at_level = leaves.levels == level
        ended[at_level] = hierarchy.children(int(level), leaves.keys[:, at_level]) == 0
    return ended


@value
class RecoveredFraction:
    """Fraction of a corpus of strings that is also among the synthetic strings. A synthetic string matches
    at most one copy.

    Only strings with `low` to `high` copies in the corpus are considered. `match_strings` explains
    `prefixes`.
    """

    low: int = parameter(1, 1, integer=True, unit="times")
    high: int | None = parameter(None, 1, integer=True, unit="times")
    prefixes: bool = parameter(False, choices=(False, True), doc="count prefixes as strings")

    def __post_init__(self) -> None:
        if self.high is not None and self.high < self.low:
            raise ValueError(f"{self!r} is not allowed: need high >= low")

    def __call__(self, truth: Records, estimate: Leaves | Records) -> float:
        """Compare the strings of both sides.

        Parameters
        ----------
        truth : Records
            Corpus over `Prefixes`, with a public truth.
        estimate : Leaves or Records
            Synthetic strings over the same hierarchy.

        Returns
        -------
        float
            Fraction in [0, 1], or NaN if the corpus has no such string.

        Raises
        ------
        ValueError
            If the truth is private, or the two sides are not strings over the same hierarchy.
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
    """Return the share of a corpus of strings that synthetic strings recover, cumulated by the frequency of
    strings.

    Parameters
    ----------
    truth : Records
        Corpus over `Prefixes`, with a public truth.
    estimate : Leaves or Records
        Synthetic strings over the same hierarchy.
    descending : bool
        Whether to cumulate from the most frequent strings instead of the rarest.

    Returns
    -------
    pandas.DataFrame
        One row per `frequency` f, for the strings with at most f copies in the corpus (with `descending`,
        at least f copies). `data` is their share of the corpus. `recovered` is the share of the corpus that
        consists of recovered copies of these strings.

    Raises
    ------
    ValueError
        If the truth is private, or the two sides are not strings over the same hierarchy.
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
