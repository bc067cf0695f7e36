"""Check-ins of Foursquare and Gowalla by place, region or weekday."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import UNBOUNDED, Interactions
from workbench.data.sources import Layout
from workbench.datasets import reading
from workbench.datasets.kinds import RealFile, differences
from workbench.datasets.published import File
from workbench.datasets.reading import WEEKDAYS, users_frame, weekdays
from workbench.spaces import Domain
from workbench.value import Int, parameter, value

# Foursquare


class Form(NamedTuple):
    """What is published of a city: its file, the largest number of a user, and how many check-ins."""

    name: str
    last_user: int
    check_ins: int


FORMS = {
    "nyc": Form("dataset_TSMC2014_NYC.txt", 1083, 227_428),
    "tky": Form("dataset_TSMC2014_TKY.txt", 2293, 573_703),
}
_CITY = ("user", "venue", "category", "kind", "latitude", "longitude", "offset", "time")
_ARCHIVE = "dataset_tsmc2014"
_SITE = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"


@value
class Foursquare(RealFile):
    """Check-ins at venues: user, venue, and the day of the week.

    From 12 April 2012 to 16 February 2013, 227,428 check-ins of 1,083 users in New York ("nyc") and
    573,703 of 2,293 in Tokyo ("tky"). The published archive is read as it is. The day is local: the
    published time in UTC moved by the published offset in minutes. The Foursquare of Fan & Jin (45,289
    users, February to July 2012) is another collection, which nobody publishes.

    Which venues there are is published with the check-ins and taken as public, although venues
    are listed because someone was there: the identifiers that occur, in their order, read from
    the file.

    One unit is one user with all their check-ins; nothing bounds how many. A user may check in
    at a venue again and again.

    Terms: research use; cite. Source: Yang, Zhang, Zheng, Yu, IEEE Transactions on Systems, Man,
    and Cybernetics: Systems 45(1), 2015.
    """

    cite: ClassVar[str] = "yang2015"

    city: str = parameter("nyc", choices=tuple(FORMS), doc="city")

    @property
    def domain(self) -> Domain:
        """Venues by identifier × days of the week. Reads the file."""
        _, venues = self._check_ins
        return Domain(("item", "context"), (len(venues), 7), (venues, WEEKDAYS))

    def files(self) -> tuple[File, ...]:
        """File with the check-ins."""
        name = FORMS[self.city].name
        how = f"save {_ARCHIVE}.zip of {_SITE} in a folder foursquare; it need not be unpacked"
        also = (f"{_ARCHIVE}/{name}",)
        layout = Layout(_CITY, separator="\t")
        zips = (f"{_ARCHIVE}.zip",)
        return (File("foursquare", name, also=also, how=how, archives=zips, layout=layout),)

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad row or too few rows, with its place."""
        records, _ = self._check_ins
        return reading.interactions([records], self.domain, UNBOUNDED)

    @cached_property
    def _check_ins(self) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """The records, and the venues that occur."""
        form = FORMS[self.city]
        (file,) = self.files()
        users = []
        venues = []
        days = []
        for batch in file.rows(("user", "venue", "offset", "time")):
            is_venue = batch.frame["venue"].str.contains("^[0-9a-f]{24}$")
            batch.refuse(~is_venue, "venue", "24 digits 0 … f")
            written = "%a %b %d %H:%M:%S +0000 %Y"
            utc = reading.times(batch, "time", written, "Tue Apr 03 18:00:09 +0000 2012")
            minutes = reading.integers(batch, "offset", -720, 840, "minutes from -720 to 840")
            local = utc + pl.Series(minutes * 60_000_000).cast(pl.Duration("us"))
            users.append(reading.integers(batch, "user", 1, form.last_user))
            venues.append(batch.frame["venue"])
            days.append(weekdays(local))
        found = sum(map(len, users))
        if found != form.check_ins:
            raise ValueError(
                f"{file.find()}: found {found:,} check-ins, need {form.check_ins:,}"
            )
        names = pl.concat(venues).unique().sort()
        items = pl.concat(venues).cast(pl.Enum(names)).to_physical()
        records = users_frame(np.concatenate(users), items, np.concatenate(days))
        return records, tuple(names)


# Gowalla

USERS = 5628  # of the LGLMF copy
PLACES = 31_803
CHECKINS = {"train": 483_846, "tune": 46_716, "test": 90_121}
REGIONS = {  # south, north, west, east; the first that fits
    "Austin": (29.5, 31, -98.5, -97),
    "Dallas": (32, 33.5, -98, -96),
    "San Francisco Bay": (37, 38.5, -123, -121),
    "America, west of 100° W": (-90, 90, -180, -100),
    "America, east of 100° W": (-90, 90, -100, -30),
    "Europe and Africa": (-90, 90, -30, 60),
    "Asia and Oceania": (-90, 90, 60, 180),
}
AUSTIN = ("2010-06-01", "2010-11-01")  # from, to before
PRINTED = {"users": 12_579, "check-ins": 739_600}  # in Austin, by Fan & Jin

_FIELDS = ("user", "place", "count")
_PLACE = ("place", "latitude", "longitude")
_SNAP = ("user", "time", "latitude", "longitude", "place")
_SNAP_NAME = "loc-gowalla_totalCheckins.txt"
_SNAP_FILE = File(
    "gowalla",
    _SNAP_NAME,
    f"https://snap.stanford.edu/data/{_SNAP_NAME}.gz",
    layout=Layout(_SNAP, separator="\t"),
)
_HOW = (
    "its authors publish it at https://github.com/rahmanidashti/LGLMF: save Gowalla_train.txt, "
    "_tune, _test and _poi_coos in a folder gowalla"
)
_SHA256 = {
    "train": (
        "01bdaf2f22cc6c6abb019ff72ff43fcf68fcbf39092870f5e38e3fe0949b6344",
        "c47451c15f86ac6fb0ef22edd258263ce3c84a7bd1706962aa0ca067ddbd58d8",
    ),
    "tune": (
        "e52674503c6125f315409a5a8a3a15c01718ea8ade2e6355dc8d2fd15c9354ad",
        "79f2ed31085140a6420425c0fa4e4d749146633fec80363bc2419327462c35dc",
    ),
    "test": (
        "52cb4b74020fd76b6bbfc04b67df5feab10634945def3cb513608bf2402fd07f",
        "c9ec8be54c36b57b20f286c047c37e1fe0986931d84e7fd97bbe70f74745c8b3",
    ),
    "poi_coos": (
        "9a4e914cd75380dee1cb874a20339a76df798c996afe00606763312fcda84209",
        "42a78f74f44d06a7861dd302e184b882e44888eff12034c6ca8eaa61008c8b11",
    ),
}


@value
class Gowalla(RealFile):
    """Check-ins of a friends' network: user, place, and the region or the day of the week.

    "lglmf": 620,683 check-ins of 5,628 users at 31,803 places, from 15 to 1,624 a user, the
    three parts (train, tune, test) together: the copy that goes with LGLMF, of users with 15
    places or more. It has no times: the context is where in the world the place lies, one of
    seven regions of ours, so that an item has one context only.

    "snap": all check-ins of February 2009 to October 2010 as SNAP publishes them; "austin": of
    these, the ones in and around Austin from June to October 2010, which is where and when the
    739,600 check-ins of Fan & Jin are from (Berjani & Strufe collected them; their copy is not
    published). The context is the day of the week in UTC, the zone of the published times. No
    number of rows is checked, so that a file cut at the end of a line is taken as it is.

    Which places there are is published with the check-ins and taken as public, although places
    are listed because someone was there: of "lglmf" the numbers 0 to 31802, of "snap" and
    "austin" the numbers that occur, read from the file. Friendships are not read.

    One unit is one user with all their check-ins; nothing bounds how many. A user may check in
    at a place again and again.

    Terms: research use; cite. Source: Rahmani, Aliannejadi, Ahmadian, Baratchi, Afsharchi,
    Crestani, AIRS 2019 (LGLMF); Cho, Myers, Leskovec, KDD 2011 (SNAP).
    """

    cite: ClassVar[str] = "cho2011"

    version: str = parameter("lglmf", choices=("lglmf", "snap", "austin"), doc="published file")

    @property
    def domain(self) -> Domain:
        """Places by number × regions or days of the week. Reads SNAP's file."""
        if self.version == "lglmf":
            places: range | tuple[int, ...] = range(PLACES)
            contexts = tuple(REGIONS)
        else:
            places = self._check_ins[1]
            contexts = WEEKDAYS
        return Domain(("item", "context"), (len(places), len(contexts)), (places, contexts))

    def files(self) -> tuple[File, ...]:
        """Three parts and the places, or SNAP's one file."""
        if self.version == "lglmf":
            return tuple(_file(part) for part in _SHA256)
        return (_SNAP_FILE,)

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad row or a part of another size, with its place."""
        if self.version == "lglmf":
            return self._lglmf()
        records, _ = self._check_ins
        return reading.interactions([records], self.domain, UNBOUNDED)

    def remarks(self) -> tuple[str, ...]:
        """Differences between "austin" and the collection of Fan & Jin in their Table 4."""
        if self.version != "austin":
            return ()
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "check-ins": len(data)}
        return differences(ours, PRINTED)

    def _lglmf(self) -> Interactions:
        regions = _regions()
        parts = []
        for part, check_ins in CHECKINS.items():
            total = 0.0  # too large a sum is not wrapped
            for batch in _file(part).rows(_FIELDS):
                users = reading.codes(batch, "user", range(USERS))
                items = reading.codes(batch, "place", range(PLACES))
                counts = reading.counts_of(batch, "count")
                total += counts.sum(dtype=float)
                if total > check_ins:
                    break  # the rest is not laid out
                records = np.stack([users, items, regions[items]])
                parts.append(users_frame(*np.repeat(records, counts, axis=1)))
            if total != check_ins:
                path = _file(part).find()
                raise ValueError(f"{path}: found {total:,.0f} check-ins, need {check_ins:,}")
        return reading.interactions(parts, self.domain, UNBOUNDED, by_item=True)

    @cached_property
    def _check_ins(self) -> tuple[pl.DataFrame, tuple[int, ...]]:
        """The records, and the places that occur."""
        parts = []
        for batch in _SNAP_FILE.rows(_SNAP):
            utc = reading.times(batch, "time", "%Y-%m-%dT%H:%M:%SZ", "2010-10-19T23:55:27Z")
            users = reading.codes(batch, "user", range(2**31 - 1))
            places = reading.codes(batch, "place", range(2**31 - 1))
            records = users_frame(users, places, weekdays(utc))
            if self.version == "austin":
                records = records.filter(_in_austin(batch.frame, utc))
            parts.append(records)
        records = pl.concat([users_frame([], [], []), *parts])
        places, items = np.unique(records["item"], return_inverse=True)
        if not len(places):
            raise ValueError(f"{_SNAP_FILE.find()} holds no check-in: need one at least")
        records = users_frame(records["user"], items, records["context"])
        return records, tuple(places.tolist())


def _file(part: str) -> File:
    names = _PLACE if part == "poi_coos" else _FIELDS
    layout = Layout(names, separator="\t")
    return File("gowalla", f"Gowalla_{part}.txt", sha256=_SHA256[part], how=_HOW, layout=layout)


def _in_austin(frame: pl.DataFrame, times: pl.Series) -> pl.Series:
    """Which rows are in and around Austin, and in the months of Fan & Jin."""
    south, north, west, east = REGIONS["Austin"]
    since, before = (pl.lit(day).str.to_datetime(time_unit="us") for day in AUSTIN)
    inside = frame.select(
        pl.col("latitude").cast(pl.Float64, strict=False).is_between(south, north)
        & pl.col("longitude").cast(pl.Float64, strict=False).is_between(west, east)
        & times.is_between(since, before, closed="left")
    )
    return inside.to_series().fill_null(False)


def _regions() -> Int[np.ndarray, " places"]:
    """The region of each place."""
    regions = np.full(PLACES, -1, np.int64)
    file = _file("poi_coos")
    for batch in file.rows(_PLACE):
        places = reading.codes(batch, "place", range(PLACES))
        latitude = reading.degrees(batch, "latitude", 90)
        longitude = reading.degrees(batch, "longitude", 180)
        found = np.full(len(places), -1)
        for code, (south, north, west, east) in enumerate(REGIONS.values()):
            inside = (south <= latitude) & (latitude <= north)
            inside &= (west <= longitude) & (longitude <= east) & (found < 0)
            found[inside] = code
        regions[places] = found
    if (regions < 0).any():
        missing = int(regions.argmin())
        raise ValueError(f"{file.find()} lacks place {missing}; need 0 to {PLACES - 1}")
    return regions
