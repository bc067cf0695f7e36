"""Foursquare: who checked in at which venue of New York or Tokyo, by day of the week."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from workbench.datasets.by_user import UserRecords
from workbench.datasets.delimited import read
from workbench.datasets.netflix_prize import WEEKDAYS
from workbench.datasets.published import File
from workbench.domain import Domain
from workbench.table import UNBOUNDED
from workbench.value import parameter, value

if TYPE_CHECKING:
    from workbench.interactions import Interactions

CITIES = {"nyc": (1083, 227_428), "tky": (2293, 573_703)}  # users and check-ins
FIELDS = ("user", "venue", "category", "kind", "latitude", "longitude", "offset", "time")


@value
class Foursquare:
    """Check-ins at venues from 12 April 2012 to 16 February 2013: user, venue, day of the week.

    227,428 check-ins of 1,083 users in New York ("nyc"), 573,703 of 2,293 in Tokyo ("tky"). The
    day is local: the published time in UTC moved by the published offset in minutes. The
    Foursquare of Fan & Jin (45,289 users, February to July 2012) is another collection, which
    nobody publishes.

    Which venues there are is published with the check-ins and taken as public, although venues
    are listed because someone was there: the identifiers that occur, in their order, read from
    the file.

    One unit is one user with all their check-ins; nothing bounds how many. A user may check in
    at a venue again and again.

    Terms: research use; cite. Source: Yang, Zhang, Zheng, Yu, IEEE Transactions on Systems, Man,
    and Cybernetics: Systems 45(1), 2015.
    """

    cite: ClassVar[str] = "yang2015"
    truth_public: ClassVar[bool] = True

    city: str = parameter("nyc", choices=tuple(CITIES))

    @property
    def domain(self) -> Domain:
        """Venues by identifier, and days of the week; reads the file."""
        venues = self._read[1]
        return Domain(("item", "context"), (len(venues), 7), (venues, WEEKDAYS))

    def files(self) -> tuple[File, ...]:
        """The city's file."""
        return (
            File(
                "foursquare",
                f"dataset_TSMC2014_{self.city.upper()}.txt",
                also=(f"dataset_tsmc2014/dataset_TSMC2014_{self.city.upper()}.txt",),
                how="unpack dataset_tsmc2014.zip of "
                "https://sites.google.com/site/yangdingqi/home/foursquare-dataset "
                "into a folder foursquare",
            ),
        )

    def load(self) -> Interactions:
        """The records; a bad row, or too few of them, is a ValueError that says where."""
        return self._read[0].interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    @cached_property
    def _read(self) -> tuple[UserRecords, tuple[str, ...]]:
        """The rows, and the venues that occur; items are places in this list."""
        import polars as pl

        (users, count), path = CITIES[self.city], self.files()[0].find()
        blocks, venues = [], set()
        for block in read(path, FIELDS, FIELDS, separator="\t", strip=" \r"):
            rows = block.frame
            block.refuse(
                ~rows["venue"].str.contains("^[0-9a-f]{24}$"), "venue", "24 digits 0 … f"
            )
            times = rows["time"].str.to_datetime(
                "%a %b %d %H:%M:%S +0000 %Y", time_unit="us", strict=False
            )
            block.refuse(times.is_null(), "time", "a time as Tue Apr 03 18:00:09 +0000 2012")
            offset = rows["offset"].cast(pl.Int64, strict=False)
            block.refuse(~offset.is_between(-720, 840), "offset", "minutes from -720 to 840")
            local = rows.select(times + pl.duration(minutes=offset)).to_series()
            who = 1 + block.codes("user", range(1, users + 1))
            block.frame = rows.select("venue")
            venues.update(rows["venue"].unique())
            blocks.append((block, who, local.dt.weekday().to_numpy() - 1))
        found = sum(len(who) for _, who, _ in blocks)
        if found != count:
            raise ValueError(f"{path} ends after {found:,} check-ins; need {count:,}")
        out, known = UserRecords(), tuple(sorted(venues))
        for block, who, days in blocks:
            out.add(block, who, block.codes("venue", pl.Enum(known)), days)
        return out, known
