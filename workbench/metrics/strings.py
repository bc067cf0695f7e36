"""Which strings of a corpus a release has found, by how often they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from workbench.estimates import Leaves
from workbench.hierarchy import Keys, Prefixes, searchsorted_keys
from workbench.metrics.refusal import refuse_private
from workbench.records import Records
from workbench.value import parameter, value

if TYPE_CHECKING:
    import pandas as pd


def match_strings(
    truth: Records, estimate: Leaves | Records, prefixes: bool = False
) -> tuple[Keys, Int[np.ndarray, " strings"], Int[np.ndarray, " strings"]]:
    """The different synthetic strings: their keys, how often each appears, and in the corpus.

    A leaf whose string has not ended stands for a beginning, of which nobody knows how it goes on. It
    is no string, unless `prefixes` takes it as it stands; the corpus may have such a string or not.
    """
    refuse_private(truth)
    tree = truth.hierarchy
    if not isinstance(tree, Prefixes) or estimate.domain != tree:
        raise ValueError(
            f"strings of {estimate.domain!r} cannot be found in a corpus of {tree!r}: need the same "
            "Prefixes"
        )
    if isinstance(estimate, Leaves):
        keys, counts = estimate.keys, estimate.counts()
        known = np.ones(len(estimate), bool) if prefixes else _ended(tree, estimate)
        some = known & (counts > 0)
        keys, counts = keys[:, some], counts[some]
    else:
        keys, counts = estimate.level(tree.depth)
    corpus, exact = truth.level(tree.depth)
    at = searchsorted_keys(corpus, keys)
    there = at < len(exact)
    there[there] = (corpus[:, at[there]] == keys[:, there]).all(axis=0)
    held = np.zeros(len(counts), np.int64)
    held[there] = exact[at[there]]
    return keys, counts, held


def _ended(tree: Prefixes, leaves: Leaves) -> np.ndarray:
    """Which leaves are whole strings: those that cannot be split."""
    ended = np.zeros(len(leaves), bool)
    for level in np.unique(leaves.levels):
        here = leaves.levels == level
        ended[here] = tree.children(int(level), leaves.keys[:, here]) == 0
    return ended


@value
class RecoveredFraction:
    """The fraction of a corpus of strings that is found in synthetic ones, each copy once.

    It is of those strings that the corpus has `low` to `high` times. `prefixes`: see `found_strings`.
    """

    low: int = parameter(1, 1, integer=True, unit="times")
    high: int | None = parameter(None, 1, integer=True, unit="times")
    prefixes: bool = parameter(False, choices=(False, True), doc="count beginnings as strings")

    def __post_init__(self):
        if self.high is not None and self.high < self.low:
            raise ValueError(f"{self!r} is not allowed: need high >= low")

    def __call__(self, truth: Records, estimate: Leaves | Records) -> float:
        """A fraction in [0, 1]; NaN where the corpus has no such string."""
        _, counts, held = match_strings(truth, estimate, self.prefixes)
        exact = truth.level(truth.hierarchy.depth)[1]
        total = exact[self._asked(exact)].sum()
        found = np.minimum(counts, held)[self._asked(held)].sum()
        return float(found / total) if total else float("nan")

    def _asked(self, counts: Int[np.ndarray, " n"]) -> np.ndarray:
        high = np.iinfo(np.int64).max if self.high is None else self.high
        return (counts >= self.low) & (counts <= high)


def recovered_by_frequency(
    truth: Records,
    estimate: Leaves | Records,
    descending: bool = False,
    prefixes: bool = False,
) -> pd.DataFrame:
    """How much of a corpus of strings is found, cumulated by frequency: a row a frequency f.

    `data` is the part of the corpus that is of strings it has at most f times, `recovered` what is
    found of that, each copy once, as a part of the whole corpus; with `descending`, of strings it has
    at least f times. `prefixes`: see `found_strings`.
    """
    import pandas as pd

    _, counts, held = match_strings(truth, estimate, prefixes)
    exact = truth.level(truth.hierarchy.depth)[1]
    frequency, many = np.unique(exact, return_counts=True)
    there = held > 0
    at = np.searchsorted(frequency, held[there])
    found = np.bincount(at, np.minimum(counts, held)[there], len(frequency))
    if descending:
        frequency, many, found = frequency[::-1], many[::-1], found[::-1]
    total = max(1, exact.sum())
    return pd.DataFrame(
        {
            "frequency": frequency,
            "data": np.cumsum(frequency * many) / total,
            "recovered": np.cumsum(found) / total,
        }
    )
