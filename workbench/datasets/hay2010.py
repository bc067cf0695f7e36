"""Data of Hay et al. (2010), synthetic stand-ins for these data, and the numbers of neighbours of the nodes
of published graphs.
"""

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
    """Table with the degree of each node of a graph from the Stanford collection SNAP. The degree of a node
    is its number of edges. The nodes are either authors of papers, or computers that share files.

    You can choose one of three graphs. In ca-GrQc, an edge joins two authors of papers on general relativity
    if they wrote a paper together. This graph has 5,242 nodes, 14,484 edges, and a largest degree of 81. The
    graph ca-HepTh is of the same kind, for the theory of high energy physics. It has 9,877 nodes, 25,973
    edges, and a largest degree of 65. In p2p-Gnutella08, the nodes are computers on 8 August 2002. This graph
    has 6,301 nodes, 20,777 edges, and a largest degree of 97. An edge that the file lists in both directions
    counts once. An edge that joins an author to themselves does not count. The file of ca-GrQc has 12 such
    edges, and that of ca-HepTh has 25. Without these edges, 1 node of ca-GrQc and 2 nodes of ca-HepTh have
    degree 0. We treat the list of nodes as public, because it is published with the graph.

    The protected unit is one edge, which changes two degrees by one each.

    Terms: the publisher states none. Please cite the collection. Source: Leskovec and Krevl, SNAP Datasets,
    2014, and Leskovec, Kleinberg, Faloutsos, ACM TKDD 2007.
    """

    cite: ClassVar[str] = "leskovec2014"
    schema = tuple(FILES.values())

    graph: str = parameter("ca-GrQc", choices=tuple(SNAP), doc="name of the graph")

    @property
    def domain(self) -> Domain:
        """All nodes of the graph, in ascending order of their published numbers."""
        return Domain(("node",), (SNAP[self.graph][0],))

    def load(self) -> SparseTable:
        """Load the degrees as a table. Raise a ValueError if the number of nodes is wrong, or if a line of
        the file is invalid.
        """
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
    """Base class of datasets whose file has one count per line. Each line is about one value of a single
    attribute, for example about one student.
    """

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
        """All values of the attribute, one per line of the file. If the file is on your computer, the
        property counts its lines. Otherwise, the property uses the published number of lines.
        """
        size = self.size
        with suppress(FileNotFoundError):
            size = len(self._counts())
        return Domain((self.attribute,), (size,))

    def files(self) -> tuple[File, ...]:
        """Return the published file, which has one count per line."""
        what = f"it should be {self.size:,} lines, each the number of {self.holds}"
        how = f"{self.source.format(name=self.name)}; {what}"
        return (File("hay2010", self.name, how=how, layout=LINES),)

    def load(self) -> SparseTable:
        """Load the counts as a table. Raise a ValueError if a line is invalid or the file is empty."""
        counts = self._counts()
        return SparseTable.from_dense(self.domain, counts, self.bound, truth_public=True)

    def is_sorted(self) -> bool:
        """Return whether the lines of the file are sorted by count. If they are, their original order is
        lost, for example the order of addresses.
        """
        steps = np.diff(self._counts())
        return bool((steps >= 0).all() or (steps <= 0).all())

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on differences between the file and the published facts about it."""
        return differences({"lines": len(self._counts())}, {"lines": self.size})

    def _counts(self) -> Int[np.ndarray, " cells"]:
        (file,) = self.files()
        return file.frame({LINE: counts(0)})[LINE].to_numpy()


@value
class NetTrace(Counts):
    """Number of computers in a university to which each of 65,536 external hosts (computers) is connected.
    The numbers come from a record of the network's traffic. The hosts are in the order of the file.

    There are 25,714 connections, which were recorded where the university's network joins the internet. Most
    external hosts (96.6 %) have no connection. The busiest host has 1,423 connections. The protected unit is
    one connection, which is in one cell.

    The published file is sorted by count, although the description of the file says that the hosts are sorted
    by address. The order matters for Figure 6 of Hay et al., which is about ranges of addresses. So if the
    file is sorted by count, the workbench makes Figure 6 twice: with the order of the file, and with the
    order of the synthetic data `NetTraceTwin`. If the file is not on your computer, all figures use
    `NetTraceTwin` instead.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    section 5 and Appendix C.
    """

    attribute = "host"
    size = 65_536  # external hosts
    name = "nettrace.txt"
    holds = "connections of an external host (sum 25,714), sorted by count, not by address"


@value
class SearchLogs(Counts):
    """Number of searches for the word "Obama" in each of 32,768 periods of 90 minutes. Together, the periods
    cover 2,048 days (16 periods per day) from 1 January 2004.

    There are 335,889 searches. Hay et al. generated the counts from published summaries, and from real logs
    of a shorter time. In 52.1 % of the periods, there is no search. The busiest period has 496 searches. The
    protected unit is one search, which is in one cell. So a person with many searches counts as many units,
    and is less protected than a person with one search.

    Hay et al. publish the file. If the file is not on your computer, the synthetic data `SearchLogsTwin`
    replace it.

    Terms: cite the paper, do not redistribute. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, section 5.2
    and Appendix C.
    """

    attribute = "time"
    size = 32_768  # sixteenths of a day since 1 January 2004
    name = "search_logs.txt"
    holds = "searches in a 16th of a day (sum 335,889)"


@value
class SocialNetwork(Counts):
    """Number of friends that each of 11,342 students of a university has in an online social network.

    There are 337,354 friendships. The numbers of friends (degrees) add up to 674,708, and the largest is
    1,678. The number of students is public. The protected unit is one friendship, which changes two degrees
    by one each. Hay et al. assume that a friendship changes only one degree. So if the unit is a friendship,
    the true ε of their releases is twice the ε that their paper states.

    Hay et al. publish the file. If the file is not on your computer, the synthetic data `SocialNetworkTwin`
    replace it.

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
    """Number of searches in three months for each of the 20,000 most frequent keywords.

    Figure 5 of Hay et al. (2010) uses these data, and calls them Search Logs. The class `SearchLogs` contains
    different data. Figure 5 depends only on the sorted counts, so it does not matter which keyword has which
    count. The paper prints the number of keywords, but no counts. We treat the keywords as public. The
    protected unit is one search, which is in one cell.

    Nobody publishes the file. The synthetic data `KeywordFrequenciesTwin` replace it. The dataset `Surnames`
    contains real data of the same kind.

    Terms: the authors state none. Please cite the paper. Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
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
        """Text that names the original dataset and says how to get its file."""
        (file,) = self.stands_for().files()
        return f"{self.stands_for.__name__}: {file.how}"

    @property
    def domain(self) -> Domain:
        """All values of the attribute, as in the original data."""
        return Domain((self.stands_for.attribute,), (self.stands_for.size,))


@value
class NetTraceTwin(_Twin):
    """Synthetic numbers of connections of 65,536 external hosts, which replace `NetTrace`. Most hosts have no
    connection. The addresses of the connected hosts form clusters.

    Four numbers agree with the paper of Hay et al.: the number of hosts, the sum of the counts (25,714), the
    largest count (1,423), and the share of hosts without a connection (96.6 %, which is 63,308 hosts).
    Everything else is our invention. The positive counts follow a Zipf-Mandelbrot distribution with exponent
    1.3, so most of them are 1. An address is a number of 16 bits. A prefix of an address consists of its
    first bits. Each prefix gets a random score. The score of an address is the sum of the scores of its
    prefixes, so addresses with a long common prefix have similar scores. The addresses with the highest
    scores get the connections, so busy hosts have addresses near each other.

    The data are generated, so they are public. The protected unit is one connection, which is in one cell.
    Source of the numbers that agree: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that its authors
    publish.
    """

    stands_for = NetTrace
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 1.3: most are 1, few values are different",
        "order": "which addresses are seen: in clusters, the busy near the busy",
    }

    def load(self) -> SparseTable:
        """Generate the table of counts. The same seed always gives the same table."""
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
    """Synthetic numbers of searches in 32,768 periods, which replace `SearchLogs`. In the first years, there
    are almost no searches. Then the number of searches rises, with short peaks.

    Four numbers agree with the paper of Hay et al.: the number of periods (16 · 2048), the sum of the counts
    (335,889), the largest count (496), and the share of periods without a search (52.1 %, which is 17,072
    periods). Everything else is our invention. Each period gets a score. The score rises in 2007. On certain
    days with news, the score jumps, and then falls again within days. The score also depends on the time of
    day, and contains random noise. The periods with the highest scores get the highest counts. The counts
    follow a Zipf-Mandelbrot distribution with exponent 2.

    The data are generated, so they are public. The protected unit is one search, which is in one cell. Source
    of the statistics: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, and the file that its authors publish.
    """

    stands_for = SearchLogs
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "a Zipf-Mandelbrot law of exponent 2",
        "order": "a rise in 2007, bursts at the dates of news, the time of day, and noise",
    }

    def load(self) -> SparseTable:
        """Generate the table of counts. The same seed always gives the same table."""
        rng = np.random.default_rng(self.seed)
        day = np.arange(self.domain.size) / 16
        score = _interest(day) + rng.normal(0, 0.7, len(day))
        keys = np.argsort(-score)[: 32_768 - 17_072]
        sizes = _sizes(335_889, 496, _mandelbrot(len(keys), 2))
        return SparseTable.from_keys(self.domain, keys, sizes, Bound(1), truth_public=True)


@value
class SocialNetworkTwin(_Twin):
    """Synthetic numbers of friends of 11,342 students, in random order, which replace `SocialNetwork`. Every
    student has at least one friend, and some have very many.

    Three numbers agree with the paper of Hay et al.: the number of students, the sum of the numbers of
    friends (674,708), and the largest number of friends (1,678). Everything else is our invention. The
    numbers of friends are quantiles of a lognormal distribution, and half of them are 37 or less. A network
    with exactly these numbers of friends exists. The paper does not print the number of students without
    friends. The protected unit is one friendship, which changes two numbers by one each.

    The data are generated, so they are public. Source of the numbers that agree: Hay, Rastogi, Miklau, Suciu,
    PVLDB 2010, and the file that its authors publish.
    """

    stands_for = SocialNetwork
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "quantiles of a lognormal law",
        "empty": "nobody is without a friend",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """Generate the table of counts. The same seed always gives the same table."""
        rng = np.random.default_rng(self.seed)
        degrees = rng.permutation(_sizes(674_708, 1678, _lognormal(self.domain.size)))
        return SparseTable.from_dense(self.domain, degrees, Bound(2, 1), truth_public=True)


@value
class KeywordFrequenciesTwin(_Twin):
    """Synthetic numbers of searches for 20,000 keywords, in random order, which replace `KeywordFrequencies`.
    The frequencies follow Zipf's law.

    Hay et al. print only the number of keywords. Everything else is our invention. The number of searches for
    the k-th most frequent keyword is drawn from a Poisson distribution with mean 300,000/k. A number of 0 is
    replaced by 1. The largest counts are about 300,000, the smallest are about 15, and many small counts are
    equal.

    The data are generated, so they are public. The protected unit is one search, which is in one cell. Source
    of the size: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, section 5.1.
    """

    stands_for = KeywordFrequencies
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "Zipf's law, with Poisson noise",
        "sum": "3.1 million searches",
        "largest": "some 300,000 searches",
        "order": "none",
    }

    def load(self) -> SparseTable:
        """Generate the table of counts. The same seed always gives the same table."""
        rng = np.random.default_rng(self.seed)
        rank = rng.permutation(self.domain.size) + 1
        counts = np.maximum(1, rng.poisson(300_000 / rank))
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)


def _sizes(total: int, largest: int, law: Law) -> Int[np.ndarray, " n"]:
    """Return positive counts in descending order. The first is `largest`, and their sum is `total`.

    The counts are largest · law(x), rounded down. The number x is chosen so that the sum of the counts is
    nearly `total`. The small difference, which rounding leaves, is added to counts in the middle.
    """

    def sizes(x: float) -> Int[np.ndarray, " n"]:
        return np.maximum(1, largest * law(x)).astype(np.int64)

    counts = sizes(root(lambda x: sizes(x).sum() <= total, 1e-3, 1e9)[0])
    counts[len(counts) // 2 + np.arange(total - counts.sum())] += 1
    return -np.sort(-counts)


def _mandelbrot(n: int, exponent: float) -> Law:
    """Return the Zipf-Mandelbrot distribution as a function of its parameter x. With k from 0, the k-th of n
    values is proportional to (x + k)^-exponent.
    """
    return lambda x: (1 + np.arange(n) / x) ** -exponent


def _lognormal(n: int) -> Law:
    """Return n quantiles of a lognormal distribution as a function of x. The logarithms of the quantiles have
    the standard deviation 1/x.
    """
    from scipy.special import ndtri

    z = ndtri((np.arange(n) + 0.5) / n)
    return lambda x: np.exp((z - z[0]) / -x)


def _interest(day: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the score of each period for `SearchLogsTwin`, without its random noise."""
    score = 5 / (1 + np.exp(-(day - 1200) / 120)) - 0.8 * np.cos(2 * np.pi * (day - 0.15))
    for start, strength, fades in NEWS.values():
        since = day - start
        score += np.where(since >= 0, strength * np.exp(-np.abs(since) / fades), 0)
    return score
