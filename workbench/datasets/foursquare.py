"""Foursquare: who checked in at which venue of New York, Tokyo or the world, by day of the week."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.datasets.readers.user_records import WEEKDAYS, UserRecords
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.libraries import pl
from workbench.table import UNBOUNDED
from workbench.value import parameter, value


class Form(NamedTuple):
    """How a collection is published: its archive, its file, the fields of that, and how much it holds.

    `last_user` is the largest number of a user, `check_ins` how many there are.
    """

    archive: str
    name: str
    fields: tuple[str, ...]
    last_user: int
    check_ins: int


_CITY = ("user", "venue", "category", "kind", "latitude", "longitude", "offset", "time")
_WORLD = ("user", "venue", "time", "offset")
FORMS = {
    "nyc": Form("dataset_tsmc2014", "dataset_TSMC2014_NYC.txt", _CITY, 1083, 227_428),
    "tky": Form("dataset_tsmc2014", "dataset_TSMC2014_TKY.txt", _CITY, 2293, 573_703),
    "world": Form(
        "dataset_TIST2015", "dataset_TIST2015_Checkins.txt", _WORLD, 2**31 - 1, 33_278_683
    ),
}
_SITE = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"


class CheckIns(NamedTuple):
    """The rows of a file; items are places in the list of venues that occur."""

    records: UserRecords
    venues: tuple[str, ...]


@value
class Foursquare:
    """Check-ins at venues: user, venue, and the day of the week.

    From 12 April 2012 to 16 February 2013, 227,428 check-ins of 1,083 users in New York ("nyc") and
    573,703 of 2,293 in Tokyo ("tky"); from April 2012 to September 2013, 33,278,683 of 266,909 in
    415 cities of 77 countries ("world"). The published archives are read as they are. The day is
    local: the published time in UTC moved by the published offset in minutes. The Foursquare of
    Fan & Jin (45,289 users, February to July 2012) is another collection, which nobody publishes.

    Which venues there are is published with the check-ins and taken as public, although venues
    are listed because someone was there: the identifiers that occur, in their order, read from
    the file.

    One unit is one user with all their check-ins; nothing bounds how many. A user may check in
    at a venue again and again.

    Terms: research use; cite. Source: Yang, Zhang, Zheng, Yu, IEEE Transactions on Systems, Man,
    and Cybernetics: Systems 45(1), 2015 (the two cities); Yang, Zhang, Qu, ACM Transactions on
    Intelligent Systems and Technology 7(3), 2016 (the world).
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "yang2015"
    truth_public: ClassVar[bool] = True

    city: str = parameter("nyc", choices=tuple(FORMS), doc="which city, or all")

    @property
    def domain(self) -> Domain:
        """Venues by identifier, and days of the week; reads the file."""
        venues = self._check_ins.venues
        return Domain(("item", "context"), (len(venues), 7), (venues, WEEKDAYS))

    def files(self) -> tuple[File, ...]:
        """The check-ins."""
        archive, name, *_ = FORMS[self.city]
        how = f"save {archive}.zip of {_SITE} in a folder foursquare; it need not be unpacked"
        also = (f"{archive}/{name}",)
        return (File("foursquare", name, also=also, how=how, archives=(f"{archive}.zip",)),)

    def load(self) -> Interactions:
        """The records; a bad row, or too few of them, is a ValueError that says where."""
        return self._check_ins.records.interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    @cached_property
    def _check_ins(self) -> CheckIns:
        form = FORMS[self.city]
        path = self.files()[0].find()
        records = UserRecords()
        codes: dict[str, int] = {}  # of venues, in the order in which they come
        for block in read_blocks(path, form.fields, form.fields, separator="\t", strip=" \r"):
            is_venue = block.frame["venue"].str.contains("^[0-9a-f]{24}$")
            block.refuse(~is_venue, "venue", "24 digits 0 … f")
            times = block.times(
                "time", "%a %b %d %H:%M:%S +0000 %Y", "a time as Tue Apr 03 18:00:09 +0000 2012"
            )
            minutes = block.whole_numbers("offset", -720, 840, "minutes from -720 to 840")
            local = times + pl.Series(minutes * 60_000_000).cast(pl.Duration("us"))
            users = 1 + block.codes("user", range(1, form.last_user + 1))
            venues = block.frame["venue"].unique()
            own_codes = [codes.setdefault(venue, len(codes)) for venue in venues]
            items = np.array(own_codes)[block.codes("venue", pl.Enum(venues))]
            records.add(block, users, items, local.dt.weekday().to_numpy() - 1)
            if len(records) > form.check_ins:
                break  # the rest is not read
        if len(records) != form.check_ins:
            raise ValueError(
                f"{path}: found {len(records):,} check-ins, need {form.check_ins:,}"
            )
        names = sorted(codes)
        places = np.empty(len(names), np.int32)
        places[[codes[name] for name in names]] = np.arange(len(names))
        for own in records.blocks:
            own.items[:] = places[own.items]
        return CheckIns(records, tuple(names))
