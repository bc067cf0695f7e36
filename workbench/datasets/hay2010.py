"""NetTrace, SearchLogs, SocialNetwork, KeywordFrequencies: the data of Hay et al. 2010."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workbench.datasets.readers.delimited import read_lines
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import value

COUNTS = range(2**53 + 1)  # such as a table can hold


class _Counts:
    """Counts of one attribute, one a line of a file that nobody publishes."""

    cite: ClassVar[str] = "hay2010"
    truth_public: ClassVar[bool] = True
    attribute: ClassVar[str]
    size: ClassVar[int]
    name: ClassVar[str]  # of the file
    holds: ClassVar[str]
    bound: ClassVar[Bound] = Bound(1)

    @property
    def domain(self) -> Domain:
        """The attribute's codes, in the order of the lines."""
        return Domain((self.attribute,), (self.size,))

    def files(self) -> tuple[File, ...]:
        """One count a line."""
        how = "nobody publishes it: it should be "
        how += f"{self.size:,} lines, each the number of {self.holds}"
        return (File("hay2010", self.name, how=how),)

    def load(self) -> SparseTable:
        """The table; a file of another length, or a bad line, is a ValueError."""
        path = self.files()[0].find()
        need = f"need {self.size:,} counts, one a line"
        counts = [np.empty(0, np.int64)]
        last = 0
        for block in read_lines(path):
            counts.append(block.codes("line", COUNTS, "a whole number >= 0"))
            last = block.lines[-1]
            excess = sum(map(len, counts)) - self.size
            if excess > 0:
                line = block.lines[-excess]
                raise ValueError(f"{path}, line {line}: {need}, and this is one more")
        counts = np.concatenate(counts)
        if len(counts) < self.size:
            raise ValueError(f"{path}, line {last}: ends after {len(counts):,} counts; {need}")
        return SparseTable.from_dense(self.domain, counts, self.bound, truth_public=True)


@value
class NetTrace(_Counts):
    """Internal hosts that each of 65,536 external hosts is connected to, in address order.

    25,714 connections, seen at the gateway of a university; 96.6 % of the hosts have none, the
    busiest 1,423. One unit is one connection, in one cell.

    Nobody publishes the file: it goes from researcher to researcher, for experiments that
    compare with the truth, and is public in this sense. `NetTraceTwin` stands in for it.

    Terms: none stated; cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5 and Appendix C.
    """

    attribute = "host"
    size = 65_536  # external hosts, in the order of their addresses
    name = "nettrace.txt"
    holds = "connections of an external host (sum 25,714)"


@value
class SearchLogs(_Counts):
    """Searches for "Obama" in 32,768 units of time: 16 a day for 2,048 days from January 2004.

    335,889 searches, made by the authors out of published summaries and of true logs of a
    shorter time; 52.1 % of the units have none, the busiest 496. One unit is one search, in one
    cell: whoever searches often is many units.

    Nobody publishes the file: it goes from researcher to researcher, for experiments that
    compare with the truth, and is public in this sense. `SearchLogsTwin` stands in for it.

    Terms: none stated; cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.2 and Appendix C; the number of days is 32,768 / 16.
    """

    attribute = "time"
    size = 32_768  # sixteenths of a day since 1 January 2004
    name = "search_logs.txt"
    holds = "searches in a 16th of a day (sum 335,889)"


@value
class SocialNetwork(_Counts):
    """Friends of each of 11,342 students of one university in an online social network.

    337,354 friendships, degrees that sum to 674,708, the largest 1,678. The number of students
    is public. One unit is one friendship: it moves two degrees by one each. (The paper counts
    one, and so protects a friendship at twice the ε that it states.)

    Nobody publishes the file: it goes from researcher to researcher, for experiments that
    compare with the truth, and is public in this sense. `SocialNetworkTwin` stands in for it.

    Terms: none stated; cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.1 and Appendix C.
    """

    attribute = "student"
    size = 11_342  # students
    name = "social_network.txt"
    holds = "friends of a student (sum 674,708)"
    bound = Bound(2, 1)


@value
class KeywordFrequencies(_Counts):
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
    holds = "searches for a keyword"
