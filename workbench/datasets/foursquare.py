"""Foursquare: who checked in at which venue of New York or Tokyo, by day of the week."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.datasets.readers.user_records import WEEKDAYS, UserRecords
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.libraries import pl
from workbench.table import UNBOUNDED
from workbench.value import parameter, value

CITIES = {"nyc": (1083, 227_428), "tky": (2293, 573_703)}  # users and check-ins
FIELDS = ("user", "venue", "category", "kind", "latitude", "longitude", "offset", "time")


class CheckIns(NamedTuple):
    """The rows of a file; items are places in the list of venues that occur."""

    records: UserRecords
    venues: tuple[str, ...]


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

    city: str = parameter("nyc", choices=tuple(CITIES), doc="which city")

    @property
    def domain(self) -> Domain:
        """Venues by identifier, and days of the week; reads the file."""
        venues = self._check_ins.venues
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
        return self._check_ins.records.interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    @cached_property
    def _check_ins(self) -> CheckIns:
        users, check_ins = CITIES[self.city]
        path = self.files()[0].find()
        rows = []
        venues = set()
        for block in read_blocks(path, FIELDS, FIELDS, separator="\t", strip=" \r"):
            is_venue = block.frame["venue"].str.contains("^[0-9a-f]{24}$")
            block.refuse(~is_venue, "venue", "24 digits 0 … f")
            times = block.times(
                "time", "%a %b %d %H:%M:%S +0000 %Y", "a time as Tue Apr 03 18:00:09 +0000 2012"
            )
            minutes = block.whole_numbers("offset", -720, 840, "minutes from -720 to 840")
            local = times + pl.Series(minutes * 60_000_000).cast(pl.Duration("us"))
            user_numbers = 1 + block.codes("user", range(1, users + 1))
            venues.update(block.frame["venue"].unique())
            block.frame = block.frame.select("venue")
            rows.append((block, user_numbers, local.dt.weekday().to_numpy() - 1))
        total = sum(len(days) for _, _, days in rows)
        if total != check_ins:
            raise ValueError(f"{path} ends after {total:,} check-ins; need {check_ins:,}")
        names = tuple(sorted(venues))
        kind = pl.Enum(names)
        records = UserRecords()
        for block, user_numbers, days in rows:
            records.add(block, user_numbers, block.codes("venue", kind), days)
        return CheckIns(records, names)
