"""Surnames: how many people of the US have each of the most frequent surnames, in 2010."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.datasets.delimited import Block, opened, read
from workbench.datasets.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value

NAMES, FIELDS = 162_253, ("name", "count")

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
    order; "all other names" is no cell. One unit is one person, in one cell.

    The Census Bureau's archive is read, and a Parquet rendering of its table that goes about,
    which lacks one name, at rank 4,911. By the latter the 20,000 names of the default are those
    of 222,342,652 people, from 2,442,977 down to 1,339: real data of the kind of the 20,000
    keywords of Hay et al. 2010, which cannot be had.

    Terms: US Government work. Source: US Census Bureau, Frequently Occurring Surnames from the
    2010 Census.
    """

    cite: ClassVar[str] = "census2016surnames"
    truth_public: ClassVar[bool] = True

    n: int = parameter(20_000, 1, NAMES, unit="names", integer=True)

    @property
    def domain(self) -> Domain:
        """Ranks from 1, the most frequent name, in the order of the list."""
        return Domain(("rank",), (self.n,), (range(1, self.n + 1),))

    def files(self) -> tuple[File, ...]:
        """The one list."""
        return (FILE,)

    def load(self) -> SparseTable:
        """The table; a bad count, or a list that is too short, is a ValueError."""
        path, counts = FILE.find(), [np.empty(0, np.int64)]
        for block in _parquet(path) if ".parquet" in path.suffixes else read(path, FIELDS):
            block.drop(["name"], "ALL OTHER NAMES")
            counts.append(block.counts("count"))
        counts = -np.sort(-np.concatenate(counts))[: self.n]
        if len(counts) < self.n:
            raise ValueError(f"{path} ends after {len(counts):,} names; need {self.n:,}")
        return SparseTable.from_dense(
            self.domain, counts, Bound(1), truth_public=self.truth_public
        )


def _parquet(path: Path) -> Iterator[Block]:
    import polars as pl

    with opened(path) as (stream, _):
        try:
            frame = pl.read_parquet(BytesIO(stream.read()), columns=list(FIELDS))
        except pl.exceptions.PolarsError as e:
            raise ValueError(f"{path} is no such Parquet file: {e}") from None
    yield Block(path, np.arange(1, len(frame) + 1), frame.cast(pl.String))
