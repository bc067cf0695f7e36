"""Surnames: how many people of the US have each of the most frequent surnames, in 2010."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers.compressed import read_whole
from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.hierarchy import OverHierarchy, Prefixes
from workbench.labelled_rows import LabelledRows
from workbench.libraries import pa, parquet, pl
from workbench.records import Records
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value

NAMES = 162_253
FIELDS = ("name", "count")
_MOST_ROWS = 2**20
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
class Surnames:
    """People of the `n` most frequent of the 162,253 surnames that at least 100 people have.

    A cell is a rank in the published list: the names are taken as public, and so is their
    order; "all other names" is no cell. One unit is one person, in one cell. `strings()` are the
    names themselves, of which nothing is taken as public. `Surnames(2010)` is the census of 2010,
    not the first 2,010 names, which are `Surnames(n=2010)`.

    The Census Bureau's archive is read, and a Parquet rendering of its table that goes about,
    which lacks one name, at rank 4,911. By the latter the 20,000 names of the default are those
    of 222,342,652 people, from 2,442,977 down to 1,339: real data of the kind of the 20,000
    keywords of Hay et al. 2010, which cannot be had.

    Terms: US Government work. Source: US Census Bureau, Frequently Occurring Surnames from the
    2010 Census.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "census2016surnames"
    truth_public: ClassVar[bool] = True

    year: int = parameter(2010, choices=(2010,), doc="of the census")
    n: int = parameter(
        20_000,
        1,
        NAMES,
        integer=True,
        unit="names",
        doc="how many of the most frequent surnames",
    )

    @property
    def domain(self) -> Domain:
        """Ranks from 1, the most frequent name, in the order of the list."""
        return Domain(("rank",), (self.n,), (range(1, self.n + 1),))

    def files(self) -> tuple[File, ...]:
        """The one list."""
        return (FILE,)

    def load(self) -> SparseTable:
        """The table; a bad count, or a list that is too short, is a ValueError."""
        path = FILE.find()
        counts = [np.empty(0, np.int64)]
        for block in _names(path):
            counts.append(block.positive_counts("count"))
        first = -np.sort(-np.concatenate(counts))[: self.n]
        if len(first) < self.n:
            raise ValueError(f"{path} ends after {len(first):,} names; need {self.n:,}")
        return SparseTable.from_dense(self.domain, first, Bound(1), truth_public=True)

    def strings(self, depth: int = 15) -> SurnameStrings:
        """The people of all names of the list by the letters of their name, whatever `n` is."""
        return SurnameStrings(self.year, depth)


@value
class SurnameStrings(OverHierarchy):
    """People by their surname, letter by letter, of the names that at least 100 people have.

    Names are in small letters, a to z, as the census has them: without spaces, hyphens and
    apostrophes, and 15 letters at most. A name longer than `depth` is left out, and counted. "All
    other names" is no name. One unit is one person, one record.

    The Parquet rendering has 162,252 names of 265,660,058 people, from 2,442,977 to 100; the
    archive has one name more.

    Terms and source: as `Surnames`.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "census2016surnames"
    truth_public: ClassVar[bool] = True

    year: int = parameter(2010, choices=(2010,), doc="of the census")
    depth: int = parameter(15, 1, integer=True, unit="letters", doc="longest name")

    @property
    def hierarchy(self) -> Prefixes:
        """All strings of small letters."""
        return Prefixes(LETTERS, self.depth, "name")

    def files(self) -> tuple[File, ...]:
        """The one list."""
        return (FILE,)

    def load(self) -> Records:
        """The records; a bad count, or no name, is a ValueError."""
        return self._records

    @cached_property  # a figure's sweeps all ask for them
    def _records(self) -> Records:
        names = [pl.Series(dtype=pl.String)]
        counts = [np.empty(0, np.int64)]
        for block in _names(FILE.find()):
            block.refuse(block.frame["name"].is_null(), "name", "a name")
            names.append(block.frame["name"].str.to_lowercase())
            counts.append(block.positive_counts("count"))
        return Records.from_values(
            self.hierarchy,
            pl.concat(names),
            Bound(1),
            counts=np.concatenate(counts),
            truth_public=self.truth_public,
        )


def _names(path: Path) -> Iterator[LabelledRows]:
    """The list without its last row."""
    for block in _parquet(path) if ".parquet" in path.suffixes else read_blocks(path, FIELDS):
        block.drop(["name"], "ALL OTHER NAMES")
        yield block


def _parquet(path: Path) -> Iterator[LabelledRows]:
    content = read_whole(path)
    try:
        rows = parquet.read_metadata(BytesIO(content)).num_rows
        if rows > _MOST_ROWS:
            raise ValueError(f"{path} has {rows:,} rows, need at most {_MOST_ROWS:,}")
        frame = pl.read_parquet(BytesIO(content), columns=list(FIELDS))
    except (pl.exceptions.PolarsError, pa.ArrowException) as e:
        raise ValueError(f"{path} is no such Parquet file: {e}") from None
    yield LabelledRows(path, np.arange(1, len(frame) + 1), frame.cast(pl.String))
