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
    """Degrees of the nodes of a graph in the Stanford collection. The nodes are authors of papers, or
    computers that share files.

    There are three graphs. ca-GrQc (general relativity) has 5,242 nodes, 14,484 edges and a largest degree
    of 81. For ca-HepTh (theory of high energy physics) the numbers are 9,877, 25,973 and 65. For
    p2p-Gnutella08 (computers on 8 August 2002) they are 6,301, 20,777 and 97. An edge that is listed in
    both directions counts once. Edges from an author to themselves do not count. There are 12 and 25 of
    these, so 1 node of ca-GrQc and 2 nodes of ca-HepTh have no neighbour. We treat the list of nodes as
    public, because it is published with the graph. One unit is one edge, which changes two degrees by one
    each.

    Terms: none stated; cite the collection. Source: Leskovec and Krevl, SNAP Datasets, 2014;
    Leskovec, Kleinberg, Faloutsos, ACM TKDD 2007.
    """

    cite: ClassVar[str] = "leskovec2014"
    schema = tuple(FILES.values())

    graph: str = parameter("ca-GrQc", choices=tuple(SNAP), doc="graph")

    @property
    def domain(self) -> Domain:
        """Domain of the nodes, in the order of their ids."""
        return Domain(("node",), (SNAP[self.graph][0],))

    def load(self) -> SparseTable:
        """Load the table. Raise a ValueError if the number of nodes is wrong, or if a line is invalid."""
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
    """Base of datasets with counts of one attribute, in a file with one count per line."""

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
        """Domain of one attribute, with one code per line of the file. If the number of lines is published,
        it is this number.
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
        """Load the table. Raise a ValueError for an invalid line or an empty file."""
        counts = self._counts()
        return SparseTable.from_dense(self.domain, counts, self.bound, truth_public=True)

    def is_sorted(self) -> bool:
        """Return whether the lines are sorted by count. Then their order has no other meaning."""
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
    """Number of internal hosts to which each of 65,536 external hosts is connected, in the order of the
    file.

    The 25,714 connections were recorded at the gateway of a university. 96.6 % of the external hosts have
    none, and the busiest has 1,423. One unit is one connection, which is in one cell.

    The published file is sorted by count, although its description says that it is sorted by address.
    Figure 6 of the paper is about ranges of addresses. If the file is sorted by count, we therefore make
    this figure with two orders: that of the file, and that of `NetTraceTwin`. If there is no file,
    `NetTraceTwin` replaces it everywhere.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5 and Appendix C.
    """

    attribute = "host"
    size = 65_536  # external hosts
    name = "nettrace.txt"
    holds = "connections of an external host (sum 25,714), sorted by count, not by address"


@value
class SearchLogs(Counts):
    """Number of searches for "Obama" in each of 32,768 periods. There are 16 periods a day, for 2,048 days from
    January 2004.

    The authors generated these 335,889 searches from published summaries, and from true logs of a shorter
    time. 52.1 % of the times have no search, and the busiest has 496. One unit is one search, which is in
    one cell. A person who searches often is many units.

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
    """Number of friends that each of 11,342 students of one university has in an online social network.

    There are 337,354 friendships. The numbers of friends (degrees) add up to 674,708, and the largest is
    1,678. The number of students is public. One unit is one friendship, which changes two degrees by one
    each. The paper counts one degree only, so it protects a friendship at twice the ε that it states.

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
    """Number of searches for each of the 20,000 most frequent keywords, over three months.

    The paper uses these data as an unattributed histogram, under the name Search Logs (Figure 5). They
    differ from `SearchLogs`. The paper prints only how many keywords there are. We treat the list of
    keywords as public. One unit is one search, which is in one cell.

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
        """Name of the original dataset, and how to get its file."""
        (file,) = self.stands_for().files()
        return f"{self.stands_for.__name__}: {file.how}"

    @property
    def domain(self) -> Domain:
        """Published domain of the original data."""
        return Domain((self.stands_for.attribute,), (self.stands_for.size,))


@value
class NetTraceTwin(_Twin):
    """Synthetic numbers of connections of 65,536 external hosts. Few hosts have any, and their addresses form
    clusters.

    Four numbers match the paper: the hosts, the sum 25,714, the largest count 1,423, and the 96.6 % of
    hosts without a connection (63,308). The rest is our invention. The counts follow a Zipf-Mandelbrot
    distribution with exponent 1.3. So most are 1, and there are few different values. Each address gets a
    score, which is the sum of one random number for each of its prefixes. The addresses with the highest
    scores have connections, so busy hosts are near each other.

    The data are generated, so they are public. One unit is one connection, which is in one cell. Source of
    the statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = NetTrace
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 1.3: most are 1, few values are different",
        "order": "which addresses are seen: in clusters, the busy near the busy",
    }

    def load(self) -> SparseTable:
        """Generate the table. Equal seeds give equal tables."""
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
    """Synthetic numbers of searches in 32,768 periods. There are almost none for years, and then a rise with
    bursts.

    Four numbers match the paper: the 16 · 2048 times, the sum 335,889, the largest count 496, and the 52.1
    % of times without a search (17,072). The rest is our invention. Each time gets a score. The score rises
    in 2007, jumps at dates of news and falls within days, depends on the time of day, and has noise. In the
    order of their scores, times get the counts of a Zipf-Mandelbrot distribution with exponent 2.

    The data are generated, so they are public. One unit is one search, which is in one cell. Source of the
    statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that goes with it.
    """

    stands_for = SearchLogs
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 2",
        "order": "a rise in 2007, bursts at the dates of news, the time of day, and noise",
    }

    def load(self) -> SparseTable:
        """Generate the table. Equal seeds give equal tables."""
        rng = np.random.default_rng(self.seed)
        day = np.arange(self.domain.size) / 16
        score = _interest(day) + rng.normal(0, 0.7, len(day))
        keys = np.argsort(-score)[: 32_768 - 17_072]
        sizes = _sizes(335_889, 496, _mandelbrot(len(keys), 2))
        return SparseTable.from_keys(self.domain, keys, sizes, Bound(1), truth_public=True)


@value
class SocialNetworkTwin(_Twin):
    """Synthetic numbers of friends of 11,342 students, in random order. Everyone has a friend, and some
    have very many.

    Three numbers match the paper: the students, the sum 674,708, and the largest degree 1,678. The rest is
    our invention. The degrees are quantiles of a lognormal distribution. Half are 37 or less, and there is
    a graph with these degrees. The paper does not print how many students have no friend. Here everyone has
    one. One unit is one friendship, which changes two degrees by one each.

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
        """Generate the table. Equal seeds give equal tables."""
        rng = np.random.default_rng(self.seed)
        degrees = rng.permutation(_sizes(674_708, 1678, _lognormal(self.domain.size)))
        return SparseTable.from_dense(self.domain, degrees, Bound(2, 1), truth_public=True)


@value
class KeywordFrequenciesTwin(_Twin):
    """Synthetic numbers of searches for 20,000 keywords, in random order. Frequencies follow Zipf's
    distribution.

    The paper prints only the number of keywords. The rest is our invention. The k-th most frequent
    keyword has a Poisson number of searches with mean 300,000/k, but at least 1. In descending order,
    counts fall from 300,000 to about 15, and many small counts are equal.

    The data are generated, so they are public. One unit is one search, which is in one cell. Source of the
    size: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, section 5.1.
    """

    stands_for = KeywordFrequencies
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "Zipf's law, with Poisson noise",
        "sum": "3.1 million searches",
        "largest": "some 300,000 searches",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """Generate the table. Equal seeds give equal tables."""
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
