"""The techniques of adaptive2009 in words, and what stands beside them: the data, and redraws of it."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from workbench import DP
from workbench.data import PUBLIC, Records
from workbench.estimates.release import Release
from workbench.value import value

SOURCE = "source"
RESAMPLE = "resample"
SECOND = "second release"
DIRECT = "direct synthesis"
IMPROVED = "improved histogram"
BASIC = "basic histogram"
TREE = "PrivTree"


@value
class Source:
    """The records themselves: of public data, and without any privacy."""

    series: ClassVar[str] = SOURCE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """All of them."""
        return Release(records, (), self)


@value
class Resample:
    """As many records as there are, drawn with replacement: the variance of a count is the count."""

    series: ClassVar[str] = RESAMPLE
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """One draw."""
        keys, counts = records.level(records.hierarchy.digits.depth)
        drawn = rng.multinomial(records.total, counts / counts.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)


@value
class SecondRelease:
    """p ~ Dirichlet(counts), and as many records drawn from p: the variance is twice the count."""

    series: ClassVar[str] = SECOND
    budget: ClassVar[DP] = DP(inf)

    def __call__(self, records: Records, rng) -> Release:
        """One draw."""
        keys, counts = records.level(records.hierarchy.digits.depth)
        weights = rng.standard_gamma(counts)
        drawn = rng.multinomial(records.total, weights / weights.sum())
        return Release(Records.from_keys(records.hierarchy, keys, drawn, PUBLIC), (), self)
