"""Strings with counts: a synthetic log of searches, and US surnames of 2010."""

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
    """Synthetic search texts, written in the 38 symbols of the paper. Each distinct text has the number of
    times that it was searched.

    Some facts match the paper: there are 90 million queries over a-z, 0-9, the full stop and the space, and
    some are longer than 20 symbols. The rest is our invention. The r-th most frequent string has a
    frequency in proportion to r^-0.9 (Zipf), but at least one query. The first string has 2.7 % of all
    queries. By default, `distinct` is queries^0.865 (Heaps), which is 7.6 million at full scale. The mean
    query then has 15.4 symbols, and 12 % have more than 20. A query has one to four words, or is the name
    of a site with its ending. Some have a number. The words are made from 268 ordinary English words. The
    first word may be derived from one of them (books, bookshop, mybook) or consist of two (bookfish). Each
    further word depends on the one before. The rank of a query follows from the probability of its words,
    and from a random number. More than half of all queries begin with one of a hundred strings of 4
    symbols.

    The longest strings have 24 symbols, because no more fit in two words of 64 bits. With a smaller
    `depth`, longer strings are left out, and their number is recorded. One unit is one query, because the
    log does not name users. The data are generated, so they are public. At full scale, this takes about 15
    seconds and 1.6 GB. A million queries take less than one second. Source of the statistics: Synthetic
    Data via Differential Privacy, 2009, section 5.2.
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

    queries: int = parameter(90_000_000, 1, 10**10, integer=True, doc="number of queries")
    distinct: int | None = parameter(
        None, 1, 20_000_000, integer=True, unit="strings", doc="number of different strings"
    )
    depth: int = parameter(
        LONGEST, 1, LONGEST, integer=True, unit="symbols", doc="longest string"
    )
    seed: int = seed_field()

    def __post_init__(self) -> None:
        if self.distinct is not None and self.distinct > self.queries:
            raise not_allowed(self, "distinct", f"need at most queries = {self.queries}")

    @property
    def hierarchy(self) -> Prefixes:
        """Tree of prefixes of strings over the paper's 38 symbols."""
        return Prefixes(depth=self.depth, attribute="query")

    def load(self) -> Records:
        """Return the records. Equal parameters give equal records."""
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
    """Return lists of parts. A query consists of one part from each list, and the first part of each
    list except the stems is empty.

    Stems consist of letters only, and all of them are different. So are numbers, endings, and words
    after a space. Different choices of parts therefore give different queries.
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
    """Return different queries, the most frequent first."""
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
    """Draw random queries, as numbers of their parts."""
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
    """Return the log-probability of drawing each query."""
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
    """Return probabilities of the ranks from 0 to n−1, nearly in proportion to 1/(rank + flat)."""
    return np.diff(np.log(flat + np.arange(n + 1))) / np.log((flat + n) / flat)


def _rank(n: int, flat: int, u: Float[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """Draw ranks with these probabilities, from uniform numbers."""
    return np.minimum((flat * ((flat + n) / flat) ** u - flat).astype(np.int64), n - 1)


def _zipf(total: int, n: int) -> Int[np.ndarray, " n"]:
    """Return descending counts >= 1 that sum to `total`, proportional to rank^-EXPONENT except for
    rounding.
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
    """Number of people with each of the `n` most frequent surnames. The published list has 162,253 surnames,
    each of at least 100 people.

    A cell is a rank in the published list. We treat the names and their order as public. There is no cell
    for other names. One unit is one person, who is in one cell. `strings()` gives the names themselves as
    private strings. `Surnames(2010)` is the census of 2010. For the first 2,010 names, write
    `Surnames(n=2010)`.

    The class reads the archive of the Census Bureau, or a Parquet copy of its table that is in circulation.
    The copy lacks the name at rank 4,911. In the copy, the default of 20,000 names covers 222,342,652
    people. The most frequent name has 2,442,977, and the last has 1,339. These are real data of the same
    kind as the 20,000 keywords of Hay et al. 2010, which are not available.

    Terms: US Government work. Source: US Census Bureau, Frequently Occurring Surnames from the
    2010 Census.
    """

    cite: ClassVar[str] = "census2016surnames"
    schema = (FILE,)

    year: int = parameter(2010, choices=(2010,), doc="year of the census")
    n: int = parameter(
        20_000, 1, NAMES, integer=True, unit="names", doc="number of most frequent surnames"
    )

    @property
    def domain(self) -> Domain:
        """Domain of the ranks of surnames. Rank 1 is the most frequent surname."""
        return Domain(("rank",), (self.n,), (range(1, self.n + 1),))

    def load(self) -> SparseTable:
        """Load the table. Raise a ValueError for an invalid count, or a list that is too short."""
        first = _names()["count"].sort(descending=True)[: self.n].to_numpy()
        FILE.expect(len(first), self.n, "names")
        return SparseTable.from_dense(self.domain, first, Bound(1), truth_public=True)

    def strings(self, depth: int = 15) -> SurnameStrings:
        """Return the same data with the surnames as strings of letters. All surnames of the list are included,
        whatever `n` is.
        """
        return SurnameStrings(self.year, depth)


@value
class SurnameStrings(OverHierarchy, RealFile):
    """Surnames of people, as strings of letters. The published list includes only surnames of at least 100
    people.

    Names are in lower case, a to z. As in the census, they have no spaces, hyphens or apostrophes. They
    have at most 15 letters. Names longer than `depth` are left out, and the number of these records is
    kept. Names that fewer than 100 people have are missing. One unit is one person, which is one record.

    The Parquet copy has 162,252 names of 265,660,058 people, with 100 to 2,442,977 people per name. The
    archive has one name more.

    Terms and source: as `Surnames`.
    """

    cite: ClassVar[str] = "census2016surnames"
    schema = (FILE,)

    year: int = parameter(2010, choices=(2010,), doc="year of the census")
    depth: int = parameter(15, 1, integer=True, unit="letters", doc="longest name")

    @property
    def hierarchy(self) -> Prefixes:
        """Tree of the prefixes of all strings of lower-case letters. A child of a prefix has one letter
        more.
        """
        return Prefixes(LETTERS, self.depth, "name")

    def load(self) -> Records:
        """Load the records. Raise a ValueError for an invalid count, or an empty file."""
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
    """Return the list without its last row."""
    columns = {"name": Column("a name"), "count": counts()}
    return FILE.frame(columns).filter(pl.col("name") != "ALL OTHER NAMES")
