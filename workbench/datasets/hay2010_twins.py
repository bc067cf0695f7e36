"""NetTraceTwin and others: made-up stand-ins, with the published statistics of Hay et al. 2010."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import Twin
from workbench.datasets.hay2010 import (
    Counts,
    KeywordFrequencies,
    NetTrace,
    SearchLogs,
    SocialNetwork,
)
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import value

Law = Callable[[float], Float[np.ndarray, " n"]]  # falls from 1, and rises everywhere with x

# Days since 1 January 2004, how strongly each was felt (in logs), and for how many days.
NEWS = {
    "keynote": (208, 4.0, 4),
    "elected to the Senate": (306, 3.0, 4),
    "candidacy": (1136, 1.5, 6),
    "first caucus": (1463, 1.5, 10),
    "primaries": (1496, 1.5, 15),
    "nomination": (1700, 1.5, 12),
    "elected": (1769, 2.5, 8),
    "inauguration": (1846, 2.5, 5),
}


@value
class _Twin(Twin):
    cite: ClassVar[str] = "hay2010"
    truth_public: ClassVar[bool] = True
    stands_for: ClassVar[type[Counts]]

    seed: int = seed_field()

    @property
    def original(self) -> str:
        """The file that it stands in for, and how to get it."""
        (file,) = self.stands_for().files()
        return f"{self.stands_for.__name__}: {file.how}"

    @property
    def domain(self) -> Domain:
        """That of the data that it stands in for, as published."""
        return self.stands_for.published_domain()


@value
class NetTraceTwin(_Twin):
    """Connections of 65,536 external hosts: few are seen at all, in clusters of addresses.

    What is matched to print: the hosts, the sum 25,714, the largest count 1,423, and 96.6 %
    without a connection (63,308). What is ours: the counts follow a Zipf-Mandelbrot law of
    exponent 1.3, so that most are 1 and few values are different; addresses are seen by the sum
    of one random score for each of their prefixes, and the busy stand near the busy.

    Made up, so public. One unit is one connection, in one cell. Source of the statistics: Hay,
    Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = NetTrace
    matched: ClassVar[Mapping[str, str]] = {
        "cells": "65,536 hosts",
        "sum": "25,714 connections",
        "largest": "1,423 connections",
        "empty": "96.6 % without a connection",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 1.3: most are 1, few values are different",
        "order": "which addresses are seen: in clusters, the busy near the busy",
    }

    def load(self) -> SparseTable:
        """The table, the same for the same seed."""
        rng = np.random.default_rng(self.seed)
        score = np.zeros(2**16)
        for i in range(17):
            score += np.repeat(rng.normal(0, 1, 2**i), 2 ** (16 - i))
        keys = np.argsort(score)[-2228:]
        keys = keys[np.argsort(-score[keys] + rng.normal(0, 1, len(keys)))]
        sizes = _sizes(25_714, 1423, _mandelbrot(len(keys), 1.3))
        return SparseTable.from_keys(self.domain, keys, sizes, Bound(1), truth_public=True)


@value
class SearchLogsTwin(_Twin):
    """Searches over 32,768 units of time: near none for years, then a rise, with bursts.

    What is matched to print: the 16 · 2048 units, the sum 335,889, the largest count 496, and
    52.1 % without a search (17,072). What is ours: a time's rank is the sum of a rise in 2007,
    of bursts at the dates of the news that fade in days, of the time of day, and of noise; the
    ranked times take the counts of a Zipf-Mandelbrot law of exponent 2.

    Made up, so public. One unit is one search, in one cell. Source of the statistics: Hay,
    Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = SearchLogs
    matched: ClassVar[Mapping[str, str]] = {
        "cells": "2,048 days of 16 units",
        "sum": "335,889 searches",
        "largest": "496 searches",
        "empty": "52.1 % without a search",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 2",
        "order": "a rise in 2007, bursts at the dates of news, the time of day, and noise",
    }

    def load(self) -> SparseTable:
        """The table, the same for the same seed."""
        rng = np.random.default_rng(self.seed)
        day = np.arange(self.domain.size) / 16
        score = _interest(day) + rng.normal(0, 0.7, len(day))
        keys = np.argsort(-score)[: 32_768 - 17_072]
        sizes = _sizes(335_889, 496, _mandelbrot(len(keys), 2))
        return SparseTable.from_keys(self.domain, keys, sizes, Bound(1), truth_public=True)


@value
class SocialNetworkTwin(_Twin):
    """Degrees of 11,342 students, in no order: everyone has a friend, some have very many.

    What is matched to print: the students, the sum 674,708, and the largest degree 1,678. What
    is ours: the degrees are quantiles of a lognormal law (half are 37 or less), and those of
    some graph. The paper does not print how many students have no friend; here none has.
    One unit is one friendship: it moves two degrees by one each.

    Made up, so public. Source of the statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and
    the file that goes with it.
    """

    stands_for = SocialNetwork
    matched: ClassVar[Mapping[str, str]] = {
        "cells": "11,342 students",
        "sum": "degrees that sum to 674,708",
        "largest": "1,678 friends",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "quantiles of a lognormal law",
        "empty": "nobody is without a friend",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """The table, the same for the same seed."""
        rng = np.random.default_rng(self.seed)
        degrees = rng.permutation(_sizes(674_708, 1678, _lognormal(self.domain.size)))
        return SparseTable.from_dense(self.domain, degrees, Bound(2, 1), truth_public=True)


@value
class KeywordFrequenciesTwin(_Twin):
    """Searches for 20,000 keywords, in no order, by Zipf's law.

    Nothing but the number of keywords is printed. Ours: the k-th most frequent is searched for
    300,000 / k times on average, the count is Poisson, and at least 1. Sorted, the counts fall
    from 300,000 to a handful, and the many small ones are often equal.

    Made up, so public. One unit is one search, in one cell. Source of the size: Hay, Rastogi,
    Miklau, Suciu, PVLDB 2010, section 5.1.
    """

    stands_for = KeywordFrequencies
    matched: ClassVar[Mapping[str, str]] = {
        "cells": "20,000 keywords",
    }
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "Zipf's law, with Poisson noise",
        "sum": "3.1 million searches",
        "largest": "some 300,000 searches",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """The table, the same for the same seed."""
        rng = np.random.default_rng(self.seed)
        rank = rng.permutation(self.domain.size) + 1
        counts = np.maximum(1, rng.poisson(300_000 / rank))
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)


def _sizes(total: int, largest: int, law: Law) -> Int[np.ndarray, " n"]:
    """Counts >= 1 that fall from `largest` and sum to `total`.

    They are largest · law(x), rounded down, with the x that gives the sum; the few that rounding
    leaves over go to counts in the middle.
    """

    def sizes(x: float) -> Int[np.ndarray, " n"]:
        return np.maximum(1, largest * law(x)).astype(np.int64)

    low = 1e-3
    high = 1e9
    while (middle := (low * high) ** 0.5) not in (low, high):
        if sizes(middle).sum() <= total:
            low = middle
        else:
            high = middle
    counts = sizes(low)
    counts[len(counts) // 2 + np.arange(total - counts.sum())] += 1
    return -np.sort(-counts)


def _mandelbrot(n: int, exponent: float) -> Law:
    """The Zipf-Mandelbrot law: the k-th is in proportion to (x + k)^-exponent."""
    return lambda x: (1 + np.arange(n) / x) ** -exponent


def _lognormal(n: int) -> Law:
    """Quantiles of a lognormal law, whose logarithm has standard deviation 1/x."""
    from scipy.special import ndtri

    z = ndtri((np.arange(n) + 0.5) / n)
    return lambda x: np.exp((z - z[0]) / -x)


def _interest(day: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """How much is searched at a time, in logs, but for noise."""
    score = 5 / (1 + np.exp(-(day - 1200) / 120)) - 0.8 * np.cos(2 * np.pi * (day - 0.15))
    for start, strength, fades in NEWS.values():
        since = day - start
        score += np.where(since >= 0, strength * np.exp(-np.abs(since) / fades), 0)
    return score
