"""Which strings of a corpus a release has found, by how often they are there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Bool, Int
from workbench.estimates import Leaves
from workbench.hierarchy import Keys, Prefixes, searchsorted_keys
from workbench.libraries import pd
from workbench.metrics.refusal import refuse_private
from workbench.records import Records
from workbench.value import parameter, value


class MatchedStrings(NamedTuple):
    """The different synthetic strings: how often each appears, and how often in the corpus."""

    keys: Keys
    counts: Int[np.ndarray, " strings"]
    corpus_counts: Int[np.ndarray, " strings"]

    @property
    def recovered(self) -> Int[np.ndarray, " strings"]:
        """How many copies of the corpus's are found, each once."""
        return np.minimum(self.counts, self.corpus_counts)


def match_strings(
    truth: Records, estimate: Leaves | Records, prefixes: bool = False
) -> MatchedStrings:
    """The different synthetic strings, and which of them a corpus has.

    A leaf whose string has not ended stands for a beginning, of which nobody knows how it goes on.

    Parameters
    ----------
    truth : Records
        The corpus, over `Prefixes`, whose truth is public.
    estimate : Leaves or Records
        Over the same hierarchy.
    prefixes : bool
        Take a beginning as it stands, as a string that the corpus may have or not; else it is none.

    Returns
    -------
    MatchedStrings
        `keys` (uint64[words, strings]), `counts` and `corpus_counts` (int64[strings]).

    Raises
    ------
    ValueError
        If the truth is private, or either side is no strings over the same hierarchy.
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
    corpus, exact = truth.level(hierarchy.depth)
    at = searchsorted_keys(corpus, keys)
    in_corpus = at < len(exact)
    in_corpus[in_corpus] = (corpus[:, at[in_corpus]] == keys[:, in_corpus]).all(axis=0)
    corpus_counts = np.zeros(len(counts), np.int64)
    corpus_counts[in_corpus] = exact[at[in_corpus]]
    return MatchedStrings(keys, counts, corpus_counts)


def _ended(hierarchy: Prefixes, leaves: Leaves) -> Bool[np.ndarray, " leaves"]:
    """Which leaves are whole strings: those that cannot be split."""
    ended = np.zeros(len(leaves), bool)
    for level in np.unique(leaves.levels):
        at_level = leaves.levels == level
        ended[at_level] = hierarchy.children(int(level), leaves.keys[:, at_level]) == 0
    return ended


@value
class RecoveredFraction:
    """The fraction of a corpus of strings that is found in synthetic ones, each copy once.

    It is of those strings that the corpus has `low` to `high` times. `prefixes`: see `match_strings`.
    """

    low: int = parameter(1, 1, integer=True, unit="times")
    high: int | None = parameter(None, 1, integer=True, unit="times")
    prefixes: bool = parameter(False, choices=(False, True), doc="count beginnings as strings")

    def __post_init__(self) -> None:
        if self.high is not None and self.high < self.low:
            raise ValueError(f"{self!r} is not allowed: need high >= low")

    def __call__(self, truth: Records, estimate: Leaves | Records) -> float:
        """Compare the strings of both sides.

        Parameters
        ----------
        truth : Records
            The corpus, over `Prefixes`, whose truth is public.
        estimate : Leaves or Records
            Over the same hierarchy.

        Returns
        -------
        float
            A fraction in [0, 1]; NaN where the corpus has no such string.

        Raises
        ------
        ValueError
            If the truth is private, or either side is no strings over the same hierarchy.
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
    """How much of a corpus of strings is found, cumulated by frequency.

    Parameters
    ----------
    truth : Records
        The corpus, over `Prefixes`, whose truth is public.
    estimate : Leaves or Records
        Over the same hierarchy.
    descending : bool
        Cumulate from the most frequent strings instead of the rarest.

    Returns
    -------
    pandas.DataFrame
        One row a `frequency` f: `data` is the part of the corpus that is of strings it has at most f
        times, `recovered` what is found of that, each copy once, as a part of the whole corpus; with
        `descending`, of strings it has at least f times.

    Raises
    ------
    ValueError
        If the truth is private, or either side is no strings over the same hierarchy.
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
