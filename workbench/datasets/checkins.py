"""Check-ins of Foursquare and Gowalla by place, region or weekday."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import UNBOUNDED, Interactions
from workbench.datasets.delimited import WEEKDAYS, UserRecords, read_blocks
from workbench.datasets.kinds import REAL_FILE, differences
from workbench.datasets.published import File
from workbench.spaces import Domain
from workbench.value import Bool, Int, parameter, value

# Foursquare


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


class FoursquareCheckIns(NamedTuple):
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
    def _check_ins(self) -> FoursquareCheckIns:
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
        return FoursquareCheckIns(records, tuple(names))


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


class CheckIns(NamedTuple):
    """The rows of SNAP's file; items are places in the ascending list of those that occur."""

    records: UserRecords
    places: Int[np.ndarray, " places"]


@value
class Gowalla:
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

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "cho2011"
    truth_public: ClassVar[bool] = True

    version: str = parameter(
        "lglmf", choices=("lglmf", "snap", "austin"), doc="which published file"
    )

    @property
    def domain(self) -> Domain:
        """Places by number, and regions or days of the week; reads the file of SNAP's."""
        if self.version == "lglmf":
            places: range | tuple[int, ...] = range(PLACES)
            contexts = tuple(REGIONS)
        else:
            places = tuple(self._check_ins.places.tolist())
            contexts = WEEKDAYS
        return Domain(("item", "context"), (len(places), len(contexts)), (places, contexts))

    def files(self) -> tuple[File, ...]:
        """Three parts and the places; or SNAP's one file."""
        if self.version == "lglmf":
            return tuple(_file(part) for part in _SHA256)
        name = "loc-gowalla_totalCheckins.txt"
        return (File("gowalla", name, f"https://snap.stanford.edu/data/{name}.gz"),)

    def load(self) -> Interactions:
        """The records; a bad row, or a part of another size, is a ValueError that says where."""
        if self.version == "lglmf":
            return self._lglmf()
        return self._check_ins.records.interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    def remarks(self) -> tuple[str, ...]:
        """How "austin" differs from the collection of Fan & Jin, by their Table 4."""
        if self.version != "austin":
            return ()
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "check-ins": len(data)}
        return differences(ours, PRINTED)

    def _lglmf(self) -> Interactions:
        regions = _regions()
        records = UserRecords()
        counts = [np.empty(0, np.int64)]
        for part, check_ins in CHECKINS.items():
            path = _file(part).find()
            total = 0
            for block in read_blocks(path, _FIELDS, _FIELDS, separator="\t", strip=" \r"):
                users = block.codes("user", range(USERS))
                items = block.codes("place", range(PLACES))
                counts.append(block.positive_counts("count"))
                total += int(counts[-1].sum(dtype=float))  # too large a sum is not wrapped
                records.add(block, users, items, regions[items])
                if total > check_ins:
                    break  # the rest is not read
            if total != check_ins:
                raise ValueError(f"{path}: found {total:,} check-ins, need {check_ins:,}")
        return records.interactions(
            self.domain,
            UNBOUNDED,
            np.concatenate(counts),
            once=True,  # a user and place stand in one row, with their count
            truth_public=self.truth_public,
        )

    @cached_property
    def _check_ins(self) -> CheckIns:
        path = self.files()[0].find()
        records = UserRecords()
        for block in read_blocks(path, _SNAP, _SNAP, separator="\t", strip=" \r"):
            times = block.times("time", "%Y-%m-%dT%H:%M:%SZ", "a time as 2010-10-19T23:55:27Z")
            users = block.codes("user", range(2**31 - 1))
            places = block.codes("place", range(2**31 - 1))
            days = times.dt.weekday().to_numpy() - 1
            if self.version == "austin":
                in_austin = _in_austin(block.frame, times)
                block.keep(in_austin)
                users = users[in_austin]
                places = places[in_austin]
                days = days[in_austin]
            records.add(block, users, places, days)
        places = np.unique(records.column("items", np.int32))
        if not len(places):
            raise ValueError(f"{path} holds no check-in: need one at least")
        for k, own in enumerate(records.blocks):
            items = np.searchsorted(places, own.items).astype(np.int32)
            records.blocks[k] = own._replace(items=items)
        return CheckIns(records, places)


def _file(part: str) -> File:
    return File("gowalla", f"Gowalla_{part}.txt", sha256=_SHA256[part], how=_HOW)


def _in_austin(frame: pl.DataFrame, times: pl.Series) -> Bool[np.ndarray, " rows"]:
    """Which rows are in and around Austin, and in the months of Fan & Jin."""
    south, north, west, east = REGIONS["Austin"]
    since, before = (pl.lit(day).str.to_datetime(time_unit="us") for day in AUSTIN)
    inside = frame.select(
        pl.col("latitude").cast(pl.Float64, strict=False).is_between(south, north)
        & pl.col("longitude").cast(pl.Float64, strict=False).is_between(west, east)
        & times.is_between(since, before, closed="left")
    )
    return inside.to_series().fill_null(False).to_numpy()


def _regions() -> Int[np.ndarray, " places"]:
    """The region of each place."""
    regions = np.full(PLACES, -1, np.int64)
    path = _file("poi_coos").find()
    for block in read_blocks(path, _PLACE, _PLACE, separator="\t", strip=" \r"):
        places = block.codes("place", range(PLACES))
        latitude = block.degrees("latitude", 90)
        longitude = block.degrees("longitude", 180)
        codes = np.full(len(places), -1)
        for code, (south, north, west, east) in enumerate(REGIONS.values()):
            inside = (south <= latitude) & (latitude <= north)
            inside &= (west <= longitude) & (longitude <= east) & (codes < 0)
            codes[inside] = code
        regions[places] = codes
    if (regions < 0).any():
        missing = int(regions.argmin())
        raise ValueError(f"{path} lacks place {missing}; need 0 to {PLACES - 1}")
    return regions
