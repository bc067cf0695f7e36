"""Strings that occur many times: a synthetic log of searches, and US surnames of 2010."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Records, SparseTable
from workbench.datasets.kinds import RealFile, Twin, root, seed_field
from workbench.datasets.published import Column, File, counts
from workbench.spaces import Domain, OverHierarchy, Prefixes
from workbench.value import Float, Int, not_allowed, parameter, value

# Query log twin

LONGEST = 24  # symbols
EXPONENT = 0.9  # of Zipf's law
HEAPS = 0.865  # exponent of the number of distinct queries

BASE = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split()
AFTER = ("s", "er", "ing", "shop", "land", "world", "online")
BEFORE = ("my", "the", "free", "best", "super")
NUMBERS = (*map(str, range(1, 31)), *map(str, range(1990, 2010)), "50", "100", "360", "411")
SITES = {
    ".com": 0.7, ".org": 0.1, ".net": 0.08, ".edu": 0.05, ".gov": 0.03, ".us": 0.02, ".co.uk": 0.02
}  # fmt: skip

SITE = 0.12  # chance
WWW = 0.3
NUMBERED = 0.08
LENGTHS = (0.1, 0.25, 0.35, 0.3)  # of one word to four
PAIRS = 12_000  # stems of two words
FLAT = 30, 10  # what is added to the rank of a stem, and of a word after it
STEP = 389  # the likeliest word after one is so many further on in the list
TASTE = 5.0  # how far queries stray from what their words have in common, in logs

_AT_ONCE = 1 << 20  # queries made at a time; another number makes others


@value
class QueryLogTwin(OverHierarchy, Twin):
    """Synthetic log of searches. The log contains distinct search texts, each with the number of searches for
    this text. Texts consist of the 38 symbols a-z, 0-9, the full stop and the space.

    A query is one search for a text. Three facts agree with the paper "Synthetic Data via Differential
    Privacy" (2009): there are 90 million queries, the symbols are the same, and some queries are longer than
    20 symbols. Everything else is our invention.

    Frequencies: the number of queries with the r-th most frequent text is proportional to r^-0.9 (Zipf's
    law), but at least one. The first text has 2.7 % of all queries. By default, the number of distinct texts
    is queries^0.865 (Heaps' law), which is 7.6 million for 90 million queries.

    Texts: a query consists of one to four words, or is the name of a website with its ending. Some queries
    contain a number. The words are made from 268 ordinary English words. The first word may be derived from
    an English word (books, bookshop, mybook) or consist of two (bookfish). Each further word depends on the
    word before. Texts of common words are usually more frequent than other texts, but the frequency of a text
    also depends on a random number. The mean length of a query is 15.4 symbols, and 12 % of queries have more
    than 20 symbols. The hundred most frequent beginnings of 4 symbols cover more than half of all queries.

    The longest texts have 24 symbols, because the key of a longer text does not fit in two numbers of 64
    bits. Loading leaves out texts with more than `depth` symbols. The field `left_out` of the loaded records
    contains the number of searches for such texts. The protected unit is one query, because the log does not
    name users. The data are generated, so they are public. Generating all 90 million queries takes about 15
    seconds and 1.6 GB of memory. Generating a million queries takes less than one second. Source of the
    statistics: Synthetic Data via Differential Privacy, 2009, section 5.2.
    """

    original = (
        "90 million searches that Microsoft gave out on request: nothing here reads them; a list of your "
        "own strings is read by `Records.read`"
    )
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "Zipf's law of exponent 0.9, and how many queries are different",
        "joint": "which strings begin alike, and which are frequent",
        "length": "how many are long, and how long frequent ones are",
    }
    cite: ClassVar[str] = "adaptive2009"

    queries: int = parameter(90_000_000, 1, 10**10, integer=True, doc="number of searches")
    distinct: int | None = parameter(
        None, 1, 20_000_000, integer=True, unit="strings", doc="number of distinct texts"
    )
    depth: int = parameter(
        LONGEST, 1, LONGEST, integer=True, unit="symbols", doc="largest length of a text"
    )
    seed: int = seed_field()

    def __post_init__(self) -> None:
        if self.distinct is not None and self.distinct > self.queries:
            raise not_allowed(self, "distinct", f"need at most queries = {self.queries}")

    @property
    def hierarchy(self) -> Prefixes:
        """Hierarchy (tree) of prefixes. A node is a prefix, which consists of the first symbols of a text.
        Each child of a node has one more symbol.
        """
        return Prefixes(depth=self.depth, attribute="query")

    def load(self) -> Records:
        """Generate the searches. The same parameters always give the same searches."""
        return self._records

    @cached_property  # a figure's sweeps all ask for them
    def _records(self) -> Records:
        n = self.distinct or max(1, round(self.queries**HEAPS))
        queries = _queries(n, np.random.default_rng(self.seed))
        spelt = [pl.Series(a).gather(i) for a, i in zip(_parts(), queries, strict=True)]
        return Records.from_values(
            self.hierarchy,
            pl.select(pl.concat_str(spelt)).to_series(),
            Bound(1),
            counts=_zipf(self.queries, n),
            truth_public=self.truth_public,
        )


@cache
def _parts() -> list[tuple[str, ...]]:
    """Return several lists of parts of texts. The text of a query consists of one part from each list. In
    each list except that of the stems, the first part is empty.

    Two different choices of parts always give two different texts. The parts of each list differ, and a text
    shows where each part begins, because, for example, stems consist of letters only.
    """
    rng = np.random.default_rng(0)
    derived = [word + end for word in BASE for end in AFTER]
    derived += [begin + word for word in BASE for begin in BEFORE]
    pairs = [a + b for a in BASE for b in BASE]
    first, second, third = (rng.permutation(x).tolist() for x in (BASE, derived, pairs))
    stems = tuple(dict.fromkeys([*first, *second, *third[:PAIRS]]))
    plurals = [word + "s" for word in BASE]
    later = ("", *(" " + word for word in dict.fromkeys([*BASE, *plurals])))
    return [("", "www."), stems, ("", *NUMBERS), ("", *SITES), later, later, later]


def _queries(n: int, rng: np.random.Generator) -> Int[np.ndarray, "parts n"]:
    """Draw n different queries, the most frequent first. A query is given by the position of its part in each
    list of `_parts`.
    """
    parts = _parts()
    sizes = tuple(map(len, parts))
    assert prod(sizes) < 2**63
    lengths = [np.array(list(map(len, part))) for part in parts]
    codes = np.empty(0, np.int64)
    while len(codes) < n:
        queries = [codes]
        for _ in range(0, 5 * n, 2 * _AT_ONCE):
            drawn = _drawn(sizes, rng)
            length = sum(size[choice] for size, choice in zip(lengths, drawn, strict=True))
            drawn = drawn[:, length <= LONGEST]
            queries.append(np.ravel_multi_index(tuple(drawn), sizes))
        codes = np.sort(np.concatenate(queries))  # much faster than what np.unique does
        codes = codes[np.append(True, codes[1:] != codes[:-1])]
    drawn = np.stack(np.unravel_index(codes, sizes), dtype=np.int32, casting="same_kind")
    score = _chance(drawn, sizes)
    score += TASTE * rng.standard_normal(len(codes), dtype=np.float32)
    return drawn[:, np.argsort(-score, kind="stable")[:n]]


def _drawn(sizes: tuple[int, ...], rng: np.random.Generator) -> Int[np.ndarray, "parts n"]:
    """Draw random queries, some of which may be equal. A query is given by the position of its part in each
    list of `_parts`.
    """
    n = _AT_ONCE
    words = sizes[-1] - 1
    drawn = np.zeros((len(sizes), n), np.int64)
    kind, which, stem = rng.random((3, n))
    site = kind < SITE
    later_words = np.searchsorted(np.cumsum(LENGTHS)[:-1], which, "right")
    drawn[0] = kind < SITE * WWW
    drawn[1] = _rank(sizes[1], FLAT[0], stem)
    drawn[2] = (rng.random(n) < NUMBERED) * rng.integers(1, sizes[2], n)
    ending = np.searchsorted(np.cumsum([*SITES.values()])[:-1], which, "right")
    drawn[3] = site * (1 + ending)
    for place in range(3):
        here = np.flatnonzero(~site & (later_words > place))
        rank = _rank(words, FLAT[1], rng.random(len(here)))
        drawn[4 + place, here] = (
            1 + (rank + STEP * drawn[3 + place if place else 1, here]) % words
        )
    return drawn


def _chance(
    drawn: Int[np.ndarray, "parts n"], sizes: tuple[int, ...]
) -> Float[np.ndarray, " n"]:
    """Return the logarithm of the probability with which each query is drawn."""
    words = sizes[-1] - 1
    www = np.log([1 - WWW, WWW])
    numbered = np.log(NUMBERED / (sizes[2] - 1))
    number = np.where(np.arange(sizes[2]), numbered, np.log(1 - NUMBERED))
    ending = np.log([1 - SITE, *(SITE * x for x in SITES.values())])
    score = np.log(_chances(sizes[1], FLAT[0]))[drawn[1]] + number[drawn[2]] + ending[drawn[3]]
    score += np.where(drawn[3], www[drawn[0]], np.log(LENGTHS)[(drawn[4:] > 0).sum(axis=0)])
    after = np.log(_chances(words, FLAT[1]))
    for place in range(3):
        here = np.flatnonzero(drawn[4 + place])
        before = drawn[3 + place if place else 1, here].astype(np.int64)
        score[here] += after[(drawn[4 + place, here] - 1 - STEP * before) % words]
    return score


def _chances(n: int, flat: int) -> Float[np.ndarray, " n"]:
    """Return the probabilities of the ranks 0 to n − 1. The probabilities are nearly proportional to 1/(rank
    + flat).
    """
    return np.diff(np.log(flat + np.arange(n + 1))) / np.log((flat + n) / flat)


def _rank(n: int, flat: int, u: Float[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """Convert uniform random numbers to ranks with the probabilities of `_chances`."""
    return np.minimum((flat * ((flat + n) / flat) ** u - flat).astype(np.int64), n - 1)


def _zipf(total: int, n: int) -> Int[np.ndarray, " n"]:
    """Return n positive counts in descending order, whose sum is `total`. Apart from rounding, the counts are
    proportional to rank^-EXPONENT.
    """
    law = np.arange(1, n + 1) ** -EXPONENT

    def counts(largest: float) -> Int[np.ndarray, " n"]:
        return np.maximum(1, largest * law).astype(np.int64)

    zipf = counts(root(lambda largest: counts(largest).sum() <= total, 0.0, total)[0])
    zipf[: total - zipf.sum()] += 1
    return zipf


# Surnames

NAMES = 162_253
LETTERS = "abcdefghijklmnopqrstuvwxyz"

FILE = File(
    "surnames",
    "Names_2010Census.csv",
    # The Census Bureau publishes it in an archive with a spreadsheet, whose sha256 nobody has
    # recorded. The rendering is a Parquet file with the same columns, and one name fewer.
    "https://www2.census.gov/topics/genealogy/2010surnames/names.zip",
    also=("names", "census_2010.parquet"),
    renderings=("da32d5ea0068cac0862ecc5ee7cfbcb6f3ad301fd34c234d54ffdd04d6c29928",),
)


@value
class Surnames(RealFile):
    """Number of people in the US with each of the `n` most frequent surnames. The published list contains the
    162,253 surnames that at least 100 people have.

    A cell of the table is a rank in the published list. We treat the names and their order as public. The
    table does not count people with other names. The protected unit is one person, who is in one cell. The
    method `strings()` returns a dataset that treats the names themselves as private. The first argument is
    the year of the census, so `Surnames(2010)` has the default number of names. To get the first 2,010 names,
    write `Surnames(n=2010)`.

    The class reads the archive of the Census Bureau. It also reads a copy of the table in this archive, which
    others have published as a Parquet file. The copy lacks the name at rank 4,911. In the copy, 222,342,652
    people have one of the 20,000 most frequent names (the default). The most frequent name has 2,442,977
    people, and the least frequent of the 20,000 names has 1,339. Hay et al. (2010) use counts of 20,000
    keywords, which nobody publishes. The counts of surnames are data of the same kind.

    Terms: a work of the US Government, which has no copyright in the US. Source: US Census Bureau, Frequently
    Occurring Surnames from the 2010 Census.
    """

    cite: ClassVar[str] = "census2016surnames"
    schema = (FILE,)

    year: int = parameter(2010, choices=(2010,), doc="year of the census")
    n: int = parameter(
        20_000, 1, NAMES, integer=True, unit="names", doc="number of names, frequent first"
    )

    @property
    def domain(self) -> Domain:
        """All ranks of surnames. Rank 1 is the most frequent surname."""
        return Domain(("rank",), (self.n,), (range(1, self.n + 1),))

    def load(self) -> SparseTable:
        """Load the table of counts. Raise a ValueError if a count is invalid, or if the list has fewer than
        `n` names.
        """
        first = _names()["count"].sort(descending=True)[: self.n].to_numpy()
        FILE.expect(len(first), self.n, "names")
        return SparseTable.from_dense(self.domain, first, Bound(1), truth_public=True)

    def strings(self, depth: int = 15) -> SurnameStrings:
        """Return a dataset that contains the surnames as strings of letters. The returned dataset contains
        all surnames of the published list, not only the first `n`. `depth` is the largest allowed length of a
        name in letters. The dataset leaves out longer names.
        """
        return SurnameStrings(self.year, depth)


@value
class SurnameStrings(OverHierarchy, RealFile):
    """Surnames of people in the US, as strings of letters. The published list contains only surnames that at
    least 100 people have.

    Names consist of at most 15 lower-case letters, a to z. As in the census, they have no spaces, hyphens or
    apostrophes. Loading leaves out names with more than `depth` letters. The field `left_out` of the loaded
    records contains the number of people with such names. The protected unit is one person, which is one
    record.

    The class reads the archive of the Census Bureau or a Parquet copy of the list. The copy contains 162,252
    names of 265,660,058 people. Each of these names belongs to 100 to 2,442,977 people. The archive contains
    one more name.

    The terms and the source are the same as for `Surnames`.
    """

    cite: ClassVar[str] = "census2016surnames"
    schema = (FILE,)

    year: int = parameter(2010, choices=(2010,), doc="year of the census")
    depth: int = parameter(15, 1, integer=True, unit="letters", doc="largest length of a name")

    @property
    def hierarchy(self) -> Prefixes:
        """Hierarchy (tree) of prefixes. A node is a prefix, which consists of the first letters of a name.
        Each child of a node has one more letter. All letters are lower-case.
        """
        return Prefixes(LETTERS, self.depth, "name")

    def load(self) -> Records:
        """Load the names of all people. Raise a ValueError if a count is invalid or the file is empty."""
        return self._records

    @cached_property  # a figure's sweeps all ask for them
    def _records(self) -> Records:
        names = _names()
        return Records.from_values(
            self.hierarchy,
            names["name"].str.to_lowercase(),
            Bound(1),
            counts=names["count"].to_numpy(),
            truth_public=True,
        )


def _names() -> pl.DataFrame:
    """Read the list of names and counts, without the last row, which is not a name."""
    columns = {"name": Column("a name"), "count": counts()}
    return FILE.frame(columns).filter(pl.col("name") != "ALL OTHER NAMES")
