"""The data of Hay et al. (2010), degrees in SNAP graphs, and synthetic stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, SparseTable
from workbench.datasets.kinds import RealFile, Twin, differences, root, seed_field
from workbench.datasets.published import LINE, LINES, File, counts, matching, table
from workbench.spaces import Domain
from workbench.value import Float, Int, parameter, value

# Snap degrees

SNAP = {  # nodes and sha256
    "ca-GrQc": (5242, "f8ce6e931e068b878044b783da99ef603f566c87bcbce7991cd53720879f1660"),
    "ca-HepTh": (9877, "8ce8a9aa75f0617d574a8109a6f8b189a9e38d214a6698ceaf25b2eecc873e90"),
    "p2p-Gnutella08": (
        6301,
        "fecc14ef3c36ac13210bf9618cec773d7354ec9b033fe716a3af3fb815049499",
    ),
}
FILES = {
    graph: File(
        "graphs",
        f"{graph}.txt",
        f"https://snap.stanford.edu/data/{graph}.txt.gz",
        (sha256,),
        layout=LINES._replace(notes="^#"),
    )
    for graph, (_, sha256) in SNAP.items()
}
EDGE = matching(r"^\d{1,18}\s+\d{1,18}$", "two node ids, integers")


@value
class SnapDegrees(RealFile):
    """Degrees in a graph of the Stanford collection: coauthors, or peers that share files.

    ca-GrQc (general relativity) has 5,242 nodes, 14,484 edges and a largest degree of 81. ca-HepTh (high
    energy physics, theory) has 9,877, 25,973 and 65. p2p-Gnutella08 (hosts on 8 August 2002) has 6,301,
    20,777 and 97. An edge that is listed in both directions counts once. Edges of an author with themselves (12
    and 25 of them) do not count, so 1 node of ca-GrQc and 2 nodes of ca-HepTh have no neighbour. The
    list of nodes is published with the graph, and we treat it as public. One unit is one edge, which
    changes two degrees by one each.

    Terms: none stated; cite the collection. Source: Leskovec and Krevl, SNAP Datasets, 2014;
    Leskovec, Kleinberg, Faloutsos, ACM TKDD 2007.
    """

    cite: ClassVar[str] = "leskovec2014"
    schema = tuple(FILES.values())

    graph: str = parameter("ca-GrQc", choices=tuple(SNAP), doc="graph")

    @property
    def domain(self) -> Domain:
        """Nodes, in the order of their ids."""
        return Domain(("node",), (SNAP[self.graph][0],))

    def load(self) -> SparseTable:
        """Load the table. Raises ValueError for another number of nodes or a bad line."""
        domain = self.domain
        file = FILES[self.graph]
        ids = pl.col(LINE).str.extract_all(r"\d+").list.to_array(2).cast(pl.Array(pl.Int64, 2))
        edges = file.frame({LINE: EDGE}, ids).to_series().to_numpy()
        nodes, ends = np.unique(edges, return_inverse=True)
        file.expect(len(nodes), domain.size, "nodes")
        low, high = np.sort(ends.reshape(-1, 2), axis=1).T
        pairs = np.unique((low * len(nodes) + high)[low < high])
        ends = np.concatenate([pairs // len(nodes), pairs % len(nodes)])
        return table(domain, [(ends, None)], Bound(2, 1))


# Hay2010


class Counts(RealFile):
    """Counts of one attribute in a file with one count per line."""

    cite: ClassVar[str] = "hay2010"
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
        """Codes of the attribute in the order of lines. Their number is the published one, or the
        number of lines of the file.
        """
        size = self.size
        with suppress(FileNotFoundError):
            size = len(self._counts())
        return Domain((self.attribute,), (size,))

    def files(self) -> tuple[File, ...]:
        """Return the file, which has one count per line."""
        what = f"it should be {self.size:,} lines, each the number of {self.holds}"
        how = f"{self.source.format(name=self.name)}; {what}"
        return (File("hay2010", self.name, how=how, layout=LINES),)

    def load(self) -> SparseTable:
        """Load the table. Raises ValueError for a bad line or an empty file."""
        counts = self._counts()
        return SparseTable.from_dense(self.domain, counts, self.bound, truth_public=True)

    def is_sorted(self) -> bool:
        """Return whether the lines are sorted by count, so that their order has no other meaning."""
        steps = np.diff(self._counts())
        return bool((steps >= 0).all() or (steps <= 0).all())

    def remarks(self) -> tuple[str, ...]:
        """Return the differences between the file and the published facts about it."""
        return differences({"lines": len(self._counts())}, {"lines": self.size})

    def _counts(self) -> Int[np.ndarray, " cells"]:
        (file,) = self.files()
        return file.frame({LINE: counts(0)})[LINE].to_numpy()


@value
class NetTrace(Counts):
    """Internal hosts that each of 65,536 external hosts is connected to, in the order of the file.

    There are 25,714 connections, recorded at the gateway of a university. 96.6 % of the hosts have
    none, and the busiest has 1,423. One unit is one connection, in one cell.

    The published file is sorted by count, although its description says that it is sorted by address.
    Figure 6 is about ranges of addresses. For a file that is sorted by count, we run it with two
    orders: that of the file, and that of `NetTraceTwin`. If there is no file, `NetTraceTwin` replaces
    it everywhere.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5 and Appendix C.
    """

    attribute = "host"
    size = 65_536  # external hosts
    name = "nettrace.txt"
    holds = "connections of an external host (sum 25,714), sorted by count, not by address"


@value
class SearchLogs(Counts):
    """Searches for "Obama" in 32,768 units of time: 16 a day for 2,048 days from January 2004.

    There are 335,889 searches, which the authors generated from published summaries and from true logs
    of a shorter time. 52.1 % of the times have none, and the busiest has 496. One unit is one search,
    in one cell. A person who searches often is many units.

    The authors publish the file. If it is not available, `SearchLogsTwin` replaces it.

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

    There are 337,354 friendships. The degrees sum to 674,708, and the largest is 1,678. The number of
    students is public. One unit is one friendship, which changes two degrees by one each. (The paper
    counts one degree, so it protects a friendship at twice the stated ε.)

    The authors publish the file. If it is not available, `SocialNetworkTwin` replaces it.

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

    This is the paper's Search Logs as an unattributed histogram (its Figure 5). The data differ from
    `SearchLogs`, and the paper prints no statistic of them except the length. We treat the list of
    keywords as public. One unit is one search, in one cell.

    The file is not published. `KeywordFrequenciesTwin` replaces it, and `Surnames` is real data of the
    same kind.

    Terms: none stated; cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5.1.
    """

    attribute = "keyword"
    size = 20_000  # keywords, in any public order
    name = "keywords.txt"
    source = "nobody publishes it: {name}, in a folder hay2010"
    holds = "searches for a keyword"


# Hay2010 twins

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
    stands_for: ClassVar[type[Counts]]

    seed: int = seed_field()

    @property
    def original(self) -> str:
        """Name of the original dataset, and the way to get its file."""
        (file,) = self.stands_for().files()
        return f"{self.stands_for.__name__}: {file.how}"

    @property
    def domain(self) -> Domain:
        """Published domain of the original data."""
        return Domain((self.stands_for.attribute,), (self.stands_for.size,))


@value
class NetTraceTwin(_Twin):
    """Connections of 65,536 external hosts: few are seen at all, in clusters of addresses.

    These numbers match the paper: the hosts, the sum 25,714, the largest count 1,423, and 96.6 %
    without a connection (63,308). The rest is our invention. The counts follow a Zipf-Mandelbrot
    distribution with exponent 1.3, so most are 1 and there are few different values. The score of an
    address is the sum of one random number per prefix. Addresses with high scores have connections, so
    busy hosts are near each other.

    The data are generated, so they are public. One unit is one connection, in one cell. Source of the
    statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = NetTrace
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 1.3: most are 1, few values are different",
        "order": "which addresses are seen: in clusters, the busy near the busy",
    }

    def load(self) -> SparseTable:
        """Return the table. Equal seeds give equal tables."""
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

    These numbers match the paper: the 16 · 2048 times, the sum 335,889, the largest count 496, and 52.1
    % without a search (17,072). The rest is our invention. The score of a time is the sum of a rise in
    2007, of bursts at dates of news that fade within days, of the time of day, and of noise. In the
    order of their scores, times get the counts of a Zipf-Mandelbrot distribution with exponent 2.

    The data are generated, so they are public. One unit is one search, in one cell. Source of the
    statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = SearchLogs
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 2",
        "order": "a rise in 2007, bursts at the dates of news, the time of day, and noise",
    }

    def load(self) -> SparseTable:
        """Return the table. Equal seeds give equal tables."""
        rng = np.random.default_rng(self.seed)
        day = np.arange(self.domain.size) / 16
        score = _interest(day) + rng.normal(0, 0.7, len(day))
        keys = np.argsort(-score)[: 32_768 - 17_072]
        sizes = _sizes(335_889, 496, _mandelbrot(len(keys), 2))
        return SparseTable.from_keys(self.domain, keys, sizes, Bound(1), truth_public=True)


@value
class SocialNetworkTwin(_Twin):
    """Degrees of 11,342 students, in no order: everyone has a friend, some have very many.

    These numbers match the paper: the students, the sum 674,708, and the largest degree 1,678. The rest
    is our invention. The degrees are quantiles of a lognormal distribution (half are 37 or less), and a
    graph with these degrees exists. The paper does not print the number of students without a friend.
    Here there are none. One unit is one friendship, which changes two degrees by one each.

    The data are generated, so they are public. Source of the statistics: Hay, Rastogi, Miklau, Suciu,
    PVLDB 2010, and the file that goes with it.
    """

    stands_for = SocialNetwork
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "quantiles of a lognormal law",
        "empty": "nobody is without a friend",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """Return the table. Equal seeds give equal tables."""
        rng = np.random.default_rng(self.seed)
        degrees = rng.permutation(_sizes(674_708, 1678, _lognormal(self.domain.size)))
        return SparseTable.from_dense(self.domain, degrees, Bound(2, 1), truth_public=True)


@value
class KeywordFrequenciesTwin(_Twin):
    """Searches for 20,000 keywords in random order, with frequencies from Zipf's distribution.

    The paper prints only the number of keywords. The rest is our invention. The k-th most frequent
    keyword has a Poisson number of searches with mean 300,000/k, but at least 1. Sorted counts fall
    from 300,000 to about 15, and many small counts are equal.

    The data are generated, so they are public. One unit is one search, in one cell. Source of the size:
    Hay, Rastogi, Miklau, Suciu, PVLDB 2010, section 5.1.
    """

    stands_for = KeywordFrequencies
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "Zipf's law, with Poisson noise",
        "sum": "3.1 million searches",
        "largest": "some 300,000 searches",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """Return the table. Equal seeds give equal tables."""
        rng = np.random.default_rng(self.seed)
        rank = rng.permutation(self.domain.size) + 1
        counts = np.maximum(1, rng.poisson(300_000 / rank))
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)


def _sizes(total: int, largest: int, law: Law) -> Int[np.ndarray, " n"]:
    """Return counts >= 1 that fall from `largest` and sum to `total`.

    They are largest · law(x), rounded down, with the x that gives this sum. The few that rounding
    leaves over are added to counts in the middle.
    """

    def sizes(x: float) -> Int[np.ndarray, " n"]:
        return np.maximum(1, largest * law(x)).astype(np.int64)

    counts = sizes(root(lambda x: sizes(x).sum() <= total, 1e-3, 1e9)[0])
    counts[len(counts) // 2 + np.arange(total - counts.sum())] += 1
    return -np.sort(-counts)


def _mandelbrot(n: int, exponent: float) -> Law:
    """Return the Zipf-Mandelbrot distribution as a function of x, in which the k-th value is
    proportional to (x + k)^-exponent.
    """
    return lambda x: (1 + np.arange(n) / x) ** -exponent


def _lognormal(n: int) -> Law:
    """Return the quantiles of a lognormal distribution as a function of x. The logarithm has standard
    deviation 1/x.
    """
    from scipy.special import ndtri

    z = ndtri((np.arange(n) + 0.5) / n)
    return lambda x: np.exp((z - z[0]) / -x)


def _interest(day: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the logarithm of the interest at a time, without noise."""
    score = 5 / (1 + np.exp(-(day - 1200) / 120)) - 0.8 * np.cos(2 * np.pi * (day - 0.15))
    for start, strength, fades in NEWS.values():
        since = day - start
        score += np.where(since >= 0, strength * np.exp(-np.abs(since) / fades), 0)
    return score
