"""CommutingFlows: in which county the people of every US county work, as surveyed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.libraries import pl
from workbench.table import Bound, SparseTable
from workbench.value import value

FIELDS = ("home state", "home county", "work state", "work county", "workers", "margin")
ABROAD = {"301": "Canada", "303": "Mexico", None: "elsewhere abroad"}  # work states, no county

FILE = File(
    "commuting_flows",
    "jtw2009_2013.csv",
    # The Census Bureau publishes a spreadsheet (…/commuting-flows/table1.xlsx). These are its
    # rows as text, kept with a published study, at a fixed commit.
    "https://raw.githubusercontent.com/larsvilhuber/MobZ/"
    "4a522cf278928bfe5f730c9e1919cdeb7abb9d3e/raw/jtw2009_2013.csv",
    (
        "a030e53dfad891184d8ac94741f26294d12dd34606ddbf3ad238b3002692fa46",
        "fca7b441cf2e2673d238aaf6b8a408b714f837da120baca28d9493b2973ddc75",  # "1,942" for 1942
    ),
)


@value
class CommutingFlows:
    """140,843,659 workers by county of work and of home, US and Puerto Rico, 2009 to 2013.

    Home is one of 3,221 counties and municipios, work is one of them, Canada, Mexico or
    elsewhere abroad; labels are five-digit FIPS codes. 137,492 of 10,384,504 cells are not
    empty (1.3 %, mean 1024). The list of counties is carried in `counties.txt`, not taken from
    the file. One unit is one worker as estimated, in one cell: the survey asks a sample of
    people and weights them, which the privacy of these counts leaves out.

    Both forms of the file that go about are read: with and without leading zeros, thousands
    separated or not, "NA" or nothing for no code.

    Terms: US Government work. Source: US Census Bureau, American Community Survey 2009-2013,
    residence county to workplace county commuting flows, Table 1.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "census2015flows"
    truth_public: ClassVar[bool] = True

    @property
    def domain(self) -> Domain:
        """Work × home, work first."""
        homes = counties()
        works = (*homes, *ABROAD.values())
        return Domain(("work", "home"), (len(works), len(homes)), (works, homes))

    def files(self) -> tuple[File, ...]:
        """The one table."""
        return (FILE,)

    def load(self) -> SparseTable:
        """The table; a county that is not in the list is a ValueError."""

        def county(side: str) -> pl.Expr:
            state = pl.col(f"{side} state").str.strip_chars_start("0").str.zfill(2)
            return state + pl.col(f"{side} county").str.zfill(3)

        abroad = pl.col("work state").replace_strict(ABROAD, default=None)
        work = pl.when(pl.col("work county").is_null()).then(abroad).otherwise(county("work"))
        columns = [county("home").alias("home county"), work.alias("work county")]
        domain = self.domain
        works, homes = map(pl.Enum, domain.labels or ())
        keys = [np.empty(0, np.int64)]
        counts = [np.empty(0, np.int64)]
        notes = "^(Home State|h_state|Source:|Data are based)"
        for block in read_blocks(FILE.find(), FIELDS, FIELDS, notes=notes, missing=("NA",)):
            block.frame = block.frame.with_columns(columns)
            work_codes = block.codes(
                "work county", works, "a county of counties.txt, or abroad"
            )
            home_codes = block.codes("home county", homes, "a county of counties.txt")
            keys.append(domain.keys(np.stack([work_codes, home_codes], axis=1)))
            counts.append(block.positive_counts("workers"))
        return SparseTable.from_keys(
            domain, np.concatenate(keys), np.concatenate(counts), Bound(1), truth_public=True
        )


def counties() -> tuple[str, ...]:
    """The five-digit FIPS codes of all counties, ascending."""
    lines = Path(__file__).with_name("counties.txt").read_text(encoding="utf-8").splitlines()
    states = (line.split() for line in lines if not line.startswith("#"))
    return tuple(state + county for state, *codes in states for county in codes)
