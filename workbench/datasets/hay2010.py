"""NetTrace, SearchLogs, SocialNetwork, KeywordFrequencies: the data of Hay et al. 2010."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workbench.arrays import Int
from workbench.datasets._kinds import REAL_FILE, differences
from workbench.datasets.readers.delimited import read_lines
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import value

COUNTS = range(2**53 + 1)  # such as a table can hold


class Counts:
    """Counts of one attribute, one a line of a file."""

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "hay2010"
    truth_public: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("hay2010",)  # that use it
    attribute: ClassVar[str]
    size: ClassVar[int]  # as published
    name: ClassVar[str]  # of the file
    holds: ClassVar[str]
    bound: ClassVar[Bound] = Bound(1)
    source: ClassVar[str] = (
        "its authors publish it at https://github.com/michaelghay/vldb2010data, to be cited and not "
        "redistributed: save {name} in a folder hay2010"
    )

    @property
    def domain(self) -> Domain:
        """The attribute's codes, in the order of the lines: as many as published, or as the file has."""
        try:
            return self._domain(len(self._counts()))
        except FileNotFoundError:
            return self.published_domain()

    @classmethod
    def published_domain(cls) -> Domain:
        """The domain of the file as it is published."""
        return cls._domain(cls.size)

    def files(self) -> tuple[File, ...]:
        """One count a line."""
        how = self.source.format(name=self.name)
        how += f"; it should be {self.size:,} lines, each the number of {self.holds}"
        return (File("hay2010", self.name, how=how),)

    def load(self) -> SparseTable:
        """The table; a bad line is a ValueError, and so is a file of none."""
        counts = self._counts()
        domain = self._domain(len(counts))
        return SparseTable.from_dense(domain, counts, self.bound, truth_public=True)

    def is_sorted(self) -> bool:
        """Whether the lines are sorted by their counts, so that their order says nothing else."""
        steps = np.diff(self._counts())
        return bool((steps >= 0).all() or (steps <= 0).all())

    def remarks(self) -> tuple[str, ...]:
        """How the file differs from what is published of it; nothing if it does not."""
        return differences({"lines": len(self._counts())}, {"lines": self.size})

    @classmethod
    def _domain(cls, size: int) -> Domain:
        return Domain((cls.attribute,), (size,))

    def _counts(self) -> Int[np.ndarray, " cells"]:
        path = self.files()[0].find()
        need = "a whole number >= 0"
        counts = [block.codes("line", COUNTS, need) for block in read_lines(path)]
        if not counts:
            raise ValueError(f"{path} ends after 0 counts; need {self.size:,}, one a line")
        return np.concatenate(counts)


@value
class NetTrace(Counts):
    """Internal hosts that each of 65,536 external hosts is connected to, in the order of the file.

    25,714 connections, seen at the gateway of a university; 96.6 % of the hosts have none, the
    busiest 1,423. One unit is one connection, in one cell.

    The file that the authors publish is sorted by count, although its description says by
    address: it serves what asks for no order (the unattributed histograms of Figures 5 and 7) and
    not the ranges of addresses of Figure 6, where `NetTraceTwin` stands in for any file that is so
    sorted. The twin stands in everywhere where there is no file.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5 and Appendix C.
    """

    attribute = "host"
    size = 65_536  # external hosts
    name = "nettrace.txt"
    holds = "connections of an external host (sum 25,714), sorted by count: no use for ranges of addresses"


@value
class SearchLogs(Counts):
    """Searches for "Obama" in 32,768 units of time: 16 a day for 2,048 days from January 2004.

    335,889 searches, made by the authors out of published summaries and of true logs of a
    shorter time; 52.1 % of the units have none, the busiest 496. One unit is one search, in one
    cell: whoever searches often is many units.

    The authors publish the file; `SearchLogsTwin` stands in for it where it is not at hand.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.2 and Appendix C; the number of days is 32,768 / 16.
    """

    attribute = "time"
    size = 32_768  # sixteenths of a day since 1 January 2004
    name = "search_logs.txt"
    holds = "searches in a 16th of a day (sum 335,889)"


@value
class SocialNetwork(Counts):
    """Friends of each of 11,342 students of one university in an online social network.

    337,354 friendships, degrees that sum to 674,708, the largest 1,678. The number of students
    is public. One unit is one friendship: it moves two degrees by one each. (The paper counts
    one, and so protects a friendship at twice the ε that it states.)

    The authors publish the file; `SocialNetworkTwin` stands in for it where it is not at hand.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.1 and Appendix C.
    """

    attribute = "student"
    size = 11_342  # students
    name = "social_network.txt"
    holds = "friends of a student (sum 674,708)"
    bound = Bound(2, 1)


@value
class KeywordFrequencies(Counts):
    """Searches for each of the 20,000 most frequent keywords over three months.

    The paper's Search Logs as an unattributed histogram (its Figure 5): other data than
    `SearchLogs`, of which no statistic but the length is printed. The list of keywords is taken
    as public. One unit is one search, in one cell.

    Nobody publishes the file. `KeywordFrequenciesTwin` stands in for it, and `Surnames` is real
    data of the same kind.

    Terms: none stated; cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.1.
    """

    attribute = "keyword"
    size = 20_000  # keywords, in any public order
    name = "keywords.txt"
    source = "nobody publishes it: {name}, in a folder hay2010"
    holds = "searches for a keyword"
