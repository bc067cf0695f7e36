"""Commutes from homes to workplaces in the US: jobs by census block (`OnTheMap`), the same jobs as points on
a map (`CommutePoints`), and workers by county (`CommutingFlows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd, pl
from workbench.data import Bound, Records, SparseTable
from workbench.data.sources import Layout
from workbench.datasets.kinds import RealFile
from workbench.datasets.published import (
    TEXT,
    Column,
    File,
    TextFile,
    counts,
    degrees,
    labels,
    matching,
    table,
    typed,
)
from workbench.spaces import Domain, OverHierarchy, Quadtree
from workbench.value import parameter, subset_of, value

# States

_STATES = [  # each with its postal code, its FIPS code, and those of its counties
    line.split()
    for line in Path(__file__).with_name("counties.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
FIPS = {postal: code for postal, code, *_ in _STATES}
STATES = tuple(sorted(FIPS.values()))
DIGITS = {"block": 15, "tract": 11, "tract2": 7, "county": 5}  # of the 15 that name a block

BLOCKS = {"tabblk2010": 7, "tabblk2020": 8}  # the crosswalk's first field, and LODES' version

_LODES = "https://lehd.ces.census.gov/data/lodes/LODES"
_LAST_YEAR = 2019  # of version 7
_SHA256 = {  # of version 7
    "ri_od_main_JT00_2019.csv": "93b599eea25e2ea79d0a23be8e1c8ad65f6b805a82906d1f6a6357aa18da1e40",
    "ri_od_aux_JT00_2019.csv": "b8d1619a8657658ba877428a18126cad2b870666a058639bdef373b48abd2ed6",
    "ri_xwalk.csv": "56de6044c999d1c75574bc37238138c9787ea3b18e41de9e9a7adb3a12399be5",
}


@value
class OnTheMap(RealFile):
    """Table that counts jobs in US states in one year by the location of the workplace and the location of
    the worker's home. The table includes all jobs (the publisher's job type JT00).

    With `part="main"`, the table contains the jobs of people who live in the state in which they work. With
    `part="aux"`, the table contains the jobs of people who live in another state. Then the location of the
    home is only a state (one of the 50 states, DC or Puerto Rico). The field `level` chooses the kind of all
    other locations. By default, these locations are census blocks. You can also choose larger areas: tracts,
    counties or "tract2". As in Cormode et al. (2012), a "tract2" consists of all tracts of a county whose
    numbers begin with the same two digits. Labels are the codes of locations as text.

    The domain contains every location in the public crosswalks of the chosen states. A crosswalk is a list of
    all census blocks of a state. The workplace is the first attribute, so cells are ordered by workplace. The
    publisher calls the files LODES. Version 7 (years to 2019) has the blocks of the 2010 census. Version 8
    (all years) has the blocks of the 2020 census. The header of a crosswalk shows its version: `tabblk2010`
    means the blocks of 2010, and `tabblk2020` means those of 2020. Loading raises an error if a job is in no
    block of the crosswalk, or if the crosswalks of several states have different versions.

    The default is Rhode Island in 2019. There, the file of the part "main" has 406,052 jobs in 372,191 of the
    25,181² pairs of blocks. The file of the part "aux" has 70,737 jobs in 69,355 pairs of blocks. The
    protected unit is one job, which is in one cell. So a person with two jobs counts as two units. The
    published counts are synthetic and public.

    Terms: a work of the US Government, which has no copyright in the US. Source: US Census Bureau, LEHD
    Origin-Destination Employment Statistics, versions 7 and 8. Cormode, Procopiuc, Srivastava, Tran, ICDT
    2012, Appendix A, used an earlier version of the files, with 47 states in 2008.
    """

    cite: ClassVar[str] = "lodes7"

    states: tuple[str, ...] = parameter(
        ("ri",), check=subset_of(FIPS), doc="postal codes of the states, for example ri"
    )
    year: int = parameter(2019, 2002, integer=True, doc="year in which the jobs are counted")
    part: str = parameter(
        "main", choices=("main", "aux"), doc="homes in the same state (main) or outside (aux)"
    )
    level: str = parameter("block", choices=tuple(DIGITS), doc="kind of location")

    @cached_property
    def domain(self) -> Domain:
        """All pairs of a work location and a home location. The property reads only the public crosswalks
        (lists of census blocks), which contain all locations.
        """
        # Prefixes, not the crosswalk's columns, which have the tracts of a later geography.
        blocks = (block for crosswalk in self.crosswalks.values() for block in crosswalk.blocks)
        works = tuple(sorted({block[: DIGITS[self.level]] for block in blocks}))
        homes = works if self.part == "main" else STATES
        return Domain(("work", "home"), (len(works), len(homes)), (works, homes))

    def files(self) -> tuple[File, ...]:
        """Return the published files of the chosen year. Each chosen state has three files: the main file,
        the auxiliary file (homes in other states) and the crosswalk (list of census blocks).
        """
        jobs = (f"od_{part}_JT00_{self.year}" for part in ("main", "aux"))
        names = (*jobs, "xwalk")
        versions = {state: _version_to_fetch(state, self.year) for state in self.states}
        return tuple(_file(state, x, n) for state, n in versions.items() for x in names)

    def load(self) -> SparseTable:
        """Load the table of jobs. Raise a ValueError if a row is invalid, for example because the file is
        about another state, or has the blocks of another census.
        """
        return table(self.domain, self._jobs(), Bound(1))

    def _jobs(self) -> Iterator[tuple[Any, Any]]:
        """Yield the jobs in batches, as keys of pairs of locations and the number of jobs of each pair."""
        domain = self.domain
        index = {work: code for code, work in enumerate((domain.labels or [])[0] or ())}
        for state, crosswalk in self.crosswalks.items():
            file = _file(state, f"od_{self.part}_JT00_{self.year}")
            need = f"a 15-digit block of {crosswalk}: is {file.find().name} of that version?"
            block = labels(tuple(crosswalk.blocks), need)
            home = block if self.part == "main" else _home_state(FIPS[state])
            columns = {"w_geocode": block, "h_geocode": home, "S000": counts()}
            place = np.array([index[own[: DIGITS[self.level]]] for own in crosswalk.blocks])
            for batch in file.rows(columns):
                works, homes, jobs = batch.frame.to_numpy().T
                homes = place[homes] if self.part == "main" else homes
                yield domain.keys(np.stack([place[works], homes], axis=1)), jobs

    def points(self, depth: int = 16) -> CommutePoints:
        """Return a dataset with the same jobs as points. A point consists of the latitude and longitude of
        home and of work, in degrees. The dataset halves the map `depth` times along each dimension. For each
        point, the dataset stores only the part of the map that contains the point.
        """
        return CommutePoints(self, depth)

    @cached_property
    def crosswalks(self) -> dict[str, Crosswalk]:
        """Crosswalk of each chosen state, by postal code. A crosswalk is the publisher's list of all census
        blocks.
        """
        crosswalks = {state: Crosswalk(state) for state in self.states}
        if len({crosswalk.field for crosswalk in crosswalks.values()}) > 1:
            found = ", ".join(map(str, crosswalks.values()))
            raise ValueError(f"{found}: need one version")
        return crosswalks


class Crosswalk:
    """Public list of all census blocks of a state. The attribute `field` is the name of the column that
    contains the blocks. This name shows the version of the list.
    """

    def __init__(self, state: str):
        self.code = FIPS[state]
        self.file = _file(state, "xwalk")
        self.path = self.file.find()
        names = TextFile(self.file, self.path).names
        self.field = next((field for field in BLOCKS if field in names), "")
        if not self.field:
            raise ValueError(
                f"{self.path}, line 1: no field {' or '.join(BLOCKS)} among {names}"
            )

    def __str__(self) -> str:
        return f"{self.path.name}, which is of LODES {BLOCKS[self.field]} ({self.field})"

    @cached_property
    def blocks(self) -> list[str]:
        """Codes of all census blocks of the state (15 digits), in ascending order."""
        own = matching(rf"^{self.code}\d{{13}}$", f"15 digits that begin with {self.code}")
        return self.file.frame({self.field: own})[self.field].unique().sort().to_list()


def _file(state: str, what: str, version: int = 7) -> File:
    """Return one of the publisher's files about a state. `what` names the file, for example "xwalk" or
    "od_main_JT00_2019".
    """
    name = f"{state}_{what}.csv"
    folder = state if what == "xwalk" else f"{state}/od"
    sha256 = (_SHA256[name],) if version == 7 and name in _SHA256 else ()
    url = f"{_LODES}{version}/{folder}/{name}.gz"
    return File("onthemap", name, url, sha256, layout=Layout(encoding="latin-1"))


def _version_to_fetch(state: str, year: int) -> int:
    """Return the version (7 or 8) of the crosswalk (list of blocks) that is on this machine. If there is no
    crosswalk, return the first version that contains the year.
    """
    with suppress(FileNotFoundError, ValueError):
        return BLOCKS[Crosswalk(state).field]
    return 7 if year <= _LAST_YEAR else 8


def _home_state(own: str) -> Column:
    """Declare the column of homes in an "aux" file. A home is read as a state, which must differ from the
    state `own`.
    """
    codes = {state: code for code, state in enumerate(STATES) if state != own}
    return Column(
        f"a 15-digit block outside state {own}",
        lambda homes: homes.str.extract(r"^(\d\d)\d{13}$").replace_strict(codes, default=None),
    )


# Commute points

ATTRIBUTES = ("home_lat", "home_lon", "work_lat", "work_lon")


def _pairs_of_blocks(x: Any) -> str | None:
    is_pairs = type(x).__name__ == "OnTheMap" and x.part == "main" and x.level == "block"
    return None if is_pairs else 'need OnTheMap of part "main" and level "block"'


@value
class CommutePoints(OverHierarchy, RealFile):
    """Homes and workplaces of the jobs in `OnTheMap`, as points. The four dimensions of a point are the
    latitude and longitude of home and of work, in degrees.

    A census block is a small area, for example a city block. The workbench places each home and each
    workplace at the centre of its census block. The publisher's lists of blocks (crosswalks) contain the
    centres. All homes and workplaces are in one box, the smallest box that contains the centres of all blocks
    of the chosen states. The box is public, because it does not depend on who lives or works there.
    Mechanisms divide the box into smaller and smaller cells. `depth` is the number of times that they divide
    it. After 16 divisions (the default), the smallest cells of Rhode Island are about 1.5 by 1 m.

    The protected unit is one job, which is one record. The publisher's jobs are synthetic and public.

    The terms and the source are the same as for `OnTheMap`. The numbers of people in places are from the 2010
    census (US Census Bureau).
    """

    cite: ClassVar[str] = "lodes7"

    dataset: Any = parameter(check=_pairs_of_blocks, doc="OnTheMap dataset of jobs")
    depth: int = parameter(16, 1, 32, integer=True, unit="levels")

    @cached_property
    def hierarchy(self) -> Quadtree:
        """Hierarchy (tree) of boxes with four dimensions, in degrees. The first box contains the centres of
        all blocks, for home and for work. Each level halves every box along each dimension. To find the first
        box, the property reads only the publisher's lists of blocks.
        """
        centroids = self._geography.select("latitude", "longitude")
        low = centroids.min().row(0)
        high = centroids.max().row(0)
        return Quadtree(4, self.depth, low * 2, high * 2, ATTRIBUTES)

    @property
    def blocks(self) -> pd.DataFrame:
        """All census blocks of the chosen states, as a data frame. The columns are `block` (the code of the
        block), `place`, and the `latitude` and `longitude` of the block's centre in degrees.

        `place` is the county subdivision that contains the block, for example "Newport city (Newport, RI)".
        The place is None if the publisher's list names no subdivision for the block.
        """
        return self._geography.drop("code").to_pandas()

    def places(self) -> pd.DataFrame:
        """Return the public list of places, for example to compare commutes from different towns. The list is
        a data frame of all county subdivisions (cities and towns) of the chosen states, with the most
        populous places first.

        The column `place` contains the names of the places, as in the data frame `blocks`. `population` is
        the number of people in the 2010 census. The workbench contains these numbers only for Rhode Island.
        `blocks` is the number of census blocks in the place. `latitude` and `longitude` are the means over
        the centres of these blocks. The list orders places without a known population by their number of
        blocks.
        """
        blocks = self._geography.drop_nulls("place")
        by_place = blocks.group_by("code", "place", maintain_order=True)  # so that means repeat
        means = pl.mean("latitude", "longitude")
        frame = by_place.agg(pl.len().alias("blocks"), means)
        frame = frame.join(populations(), on="place", how="left")
        by = ["population", "blocks", "place"]
        frame = frame.sort(by, descending=[True, True, False], nulls_last=True)
        order = ("place", "population", "blocks", "latitude", "longitude")
        return (
            frame.select(order).to_pandas().astype({"population": "Int64", "blocks": "int64"})
        )

    def files(self) -> tuple[File, ...]:
        """Return the published files of the `OnTheMap` dataset in the field `dataset`."""
        return self.dataset.files()

    def load(self) -> Records:
        """Load the points. The loaded records contain each different point once, with a count. Raise a
        ValueError if a row is invalid.
        """
        return self._records

    @cached_property  # a figure's sweeps all ask for them
    def _records(self) -> Records:
        table = self.dataset.load()
        tree = self.hierarchy
        centroids = self._geography.select("latitude", "longitude").to_numpy()
        work, home = table.domain.codes(table.keys).T
        keys, _ = tree.encode(np.hstack([centroids[home], centroids[work]]))
        return Records.from_keys(tree, keys, table.counts, table.bound, self.truth_public)

    @cached_property
    def _geography(self) -> pl.DataFrame:
        """Census blocks in the order of the labels of `dataset.domain`, as a data frame. The columns are
        block, code, place, latitude and longitude.
        """
        columns = {
            "ctycsub": TEXT,
            "ctycsubname": TEXT,
            "blklatdd": degrees(90),
            "blklondd": degrees(180),
        }
        crosswalk = pl.concat(
            x.file.frame({x.field: Column("a block"), **columns})
            for x in self.dataset.crosswalks.values()
        )
        crosswalk.columns = ["block", "code", "place", "latitude", "longitude"]
        crosswalk = crosswalk.unique("block", keep="first", maintain_order=True)
        blocks = pl.DataFrame({"block": self.dataset.domain.labels[0]})
        return blocks.join(crosswalk, "block", maintain_order="left")


def populations() -> pl.DataFrame:
    """Return the number of people in each city and town of Rhode Island, from the 2010 census."""
    return pl.read_csv(Path(__file__).with_name("rhode_island.csv"), comment_prefix="#")


# Commuting flows

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
    layout=Layout(
        FIELDS,
        notes="^(Home State|h_state|Source:|Data are based)",
        missing=("NA",),
        encoding="latin-1",
    ),
)


@value
class CommutingFlows(RealFile):
    """Table that counts 140,843,659 workers in the US and Puerto Rico (2009 to 2013) by the county in which
    they work and the county in which they live.

    The home is one of 3,221 counties and municipios (the counties of Puerto Rico). The workplace is one of
    the same 3,221 areas, or Canada, Mexico or elsewhere abroad. Labels are five-digit FIPS codes. There are
    10,384,504 cells, of which 137,492 are not empty (1.3 %). The mean count of these cells is 1024. The list
    of counties is public. It comes from the file `counties.txt` of this package, and not from the data. The
    published counts are estimates, because the survey asks only a sample of people. Each person in the sample
    stands for several workers. The protected unit is one of these estimated workers, who is in one cell. A
    person in the sample changes the estimates by more than one worker, so this person is less protected than
    one unit.

    There are two forms of the file, and the class reads both. The two forms differ in the leading zeros of
    codes, in the separators of thousands, and in the sign for a missing code ("NA" or empty).

    Terms: a work of the US Government, which has no copyright in the US. Source: US Census Bureau, American
    Community Survey 2009-2013, residence county to workplace county commuting flows, Table 1.
    """

    cite: ClassVar[str] = "census2015flows"
    schema = (FILE,)

    @property
    def domain(self) -> Domain:
        """All pairs of a county of work and a county of home. The county of work is the first attribute."""
        homes = counties()
        works = (*homes, *ABROAD.values())
        return Domain(("work", "home"), (len(works), len(homes)), (works, homes))

    def load(self) -> SparseTable:
        """Load the table of workers. Raise a ValueError if the file contains a county that is not in the
        list.
        """
        return table(self.domain, self._flows(), Bound(1))

    def _flows(self) -> Iterator[tuple[Any, Any]]:
        """Yield the workers in batches, as keys of pairs of counties and the number of workers of each pair."""

        def county(side: str) -> pl.Expr:
            state = pl.col(f"{side} state").str.strip_chars_start("0").str.zfill(2)
            return state + pl.col(f"{side} county").str.zfill(3)

        abroad = pl.col("work state").replace_strict(ABROAD, default=None)
        work = pl.when(pl.col("work county").is_null()).then(abroad).otherwise(county("work"))
        workers = pl.col("workers").str.replace_all(",", "", literal=True)
        texts = [work.alias("work county"), county("home").alias("home county"), workers]
        domain = self.domain
        works, homes = domain.labels or ()
        columns = {
            "work county": labels(works or (), "a county of counties.txt, or abroad"),
            "home county": labels(homes or (), "a county of counties.txt"),
            "workers": counts(),
        }
        for batch in FILE.batches(FIELDS):
            batch = typed(batch._replace(frame=batch.frame.select(texts)), columns)
            *pair, people = batch.frame.to_numpy().T
            yield domain.keys(np.stack(pair, axis=1)), people


def counties() -> tuple[str, ...]:
    """Return the five-digit FIPS codes of all counties, in ascending order."""
    return tuple(state + county for _, state, *codes in _STATES for county in codes)
