"""CommutePoints: OnTheMap's jobs as points, the centroids of the blocks of home and of work."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.hierarchy import OverHierarchy, Quadtree
from workbench.libraries import pd, pl
from workbench.records import Records
from workbench.value import parameter, value

ATTRIBUTES = ("home_lat", "home_lon", "work_lat", "work_lon")
FIELDS = ("ctycsub", "ctycsubname", "blklatdd", "blklondd")  # and the field of blocks

# The 2010 census of the cities and towns of Rhode Island: 1,052,567 people.
POPULATION = {
    "Barrington": 16_310, "Bristol": 22_954, "Burrillville": 15_955, "Central Falls": 19_376,
    "Charlestown": 7_827, "Coventry": 35_014, "Cranston": 80_387, "Cumberland": 33_506,
    "East Greenwich": 13_146, "East Providence": 47_037, "Exeter": 6_425, "Foster": 4_606,
    "Glocester": 9_746, "Hopkinton": 8_188, "Jamestown": 5_405, "Johnston": 28_769,
    "Lincoln": 21_105, "Little Compton": 3_492, "Middletown": 16_150, "Narragansett": 15_868,
    "New Shoreham": 1_051, "Newport": 24_672, "North Kingstown": 26_486,
    "North Providence": 32_078, "North Smithfield": 11_967, "Pawtucket": 71_148,
    "Portsmouth": 17_389, "Providence": 178_042, "Richmond": 7_708, "Scituate": 10_329,
    "Smithfield": 21_430, "South Kingstown": 30_639, "Tiverton": 15_780, "Warren": 10_611,
    "Warwick": 82_672, "West Greenwich": 6_135, "West Warwick": 29_191, "Westerly": 22_787,
    "Woonsocket": 41_186,
}  # fmt: skip


def _pairs_of_blocks(x: Any) -> str | None:
    is_pairs = type(x).__name__ == "OnTheMap" and x.part == "main" and x.level == "block"
    return None if is_pairs else 'need OnTheMap of part "main" and level "block"'


@value
class CommutePoints(OverHierarchy):
    """Where the people of OnTheMap's jobs live and work: points in degrees, in four dimensions.

    A point is the centroids of two census blocks, home first, each as latitude and longitude
    in the crosswalk. The box that is halved, the same for home and work, is the smallest that
    holds all blocks in the crosswalks of the states, whether anyone works or lives there: public
    geography. At the default depth of 16 the cells of Rhode Island are about 1.5 by 1 m.

    One unit is one job, one record. The published jobs are synthetic themselves, and public.

    Terms and source: as `OnTheMap`; populations of places: US Census Bureau, 2010 Census.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "lodes7"
    truth_public: ClassVar[bool] = True

    dataset: Any = parameter(check=_pairs_of_blocks, doc="the jobs: an OnTheMap")
    depth: int = parameter(16, 1, 32, integer=True, unit="levels")

    @cached_property
    def hierarchy(self) -> Quadtree:
        """The box of all blocks, home × work, in degrees; reads the crosswalks, and nothing else."""
        centroids = self._geography.select("latitude", "longitude")
        low = centroids.min().row(0)
        high = centroids.max().row(0)
        return Quadtree(4, self.depth, low * 2, high * 2, ATTRIBUTES)

    @property
    def blocks(self) -> pd.DataFrame:
        """All blocks of the crosswalks, public: `block`, `place`, `latitude`, `longitude`, in degrees.

        `place` is the county subdivision, such as "Newport city (Newport, RI)", or None.
        """
        return self._frame(self._geography.drop("code"))

    def places(self) -> pd.DataFrame:
        """Public places to ask about, the most populous first; all county subdivisions of the states.

        `place` as in `blocks`; `population` by the 2010 census, in people, known here for Rhode
        Island and missing elsewhere; how many `blocks` there are; and the mean of their centroids,
        `latitude` and `longitude`. Where no population is known the order is by blocks.
        """
        by_place = self._geography.drop_nulls("place").group_by("code", "place")
        means = [pl.mean("latitude"), pl.mean("longitude")]
        frame = by_place.agg(pl.len().alias("blocks"), *means)
        in_rhode_island = pl.col("code").str.starts_with("44")
        in_rhode_island &= pl.col("place").str.ends_with(" RI)")
        town = pl.col("place").str.replace(r" (city|town) \(.*", "")
        population = (
            pl.when(in_rhode_island)
            .then(town)
            .replace_strict(POPULATION, default=None, return_dtype=pl.Int64)
        )
        frame = frame.with_columns(population.alias("population"))
        by = ["population", "blocks", "place"]
        frame = frame.sort(by, descending=[True, True, False], nulls_last=True)
        order = ("place", "population", "blocks", "latitude", "longitude")
        return self._frame(frame.select(order)).astype({"population": "Int64"})

    def files(self) -> tuple[File, ...]:
        """Those of `dataset`."""
        return self.dataset.files()

    def load(self) -> Records:
        """The points, equal ones counted; a bad row is a ValueError."""
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
        """Blocks in the order of `dataset.domain`: block, code, place, latitude, longitude."""
        frames = [
            pl.DataFrame(
                {
                    "block": block.frame[field],
                    "code": block.frame["ctycsub"],
                    "place": block.frame["ctycsubname"],
                    "latitude": block.degrees("blklatdd", 90),
                    "longitude": block.degrees("blklondd", 180),
                }
            )
            for path, field in self.dataset.crosswalks().items()
            for block in read_blocks(path, (field, *FIELDS))
        ]
        blocks = pl.DataFrame({"block": self.dataset.domain.labels[0]})
        crosswalk = pl.concat(frames).unique("block", keep="first", maintain_order=True)
        return blocks.join(crosswalk, "block", maintain_order="left")

    @staticmethod
    def _frame(frame: pl.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(frame.to_dict(as_series=False))
