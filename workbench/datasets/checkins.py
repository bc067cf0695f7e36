"""Check-ins of users at places, from the services Foursquare and Gowalla."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data.sources import Layout
from workbench.datasets.kinds import RecordsFile, differences, records
from workbench.datasets.published import (
    WEEKDAYS,
    Column,
    File,
    degrees,
    integers,
    matching,
    times,
    weekday,
)
from workbench.value import parameter, value

# Foursquare


FORMS = {"nyc": (1083, 227_428), "tky": (2293, 573_703)}  # largest number of a user, check-ins
_CITY = ("user", "venue", "category", "kind", "latitude", "longitude", "offset", "time")
_ARCHIVE = "dataset_tsmc2014"
_SITE = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"


@value
class Foursquare(RecordsFile):
    """Check-ins of users of the service Foursquare at venues, for example cafés. Each record consists of a
    user, a venue (the item) and the day of the week (the context).

    The check-ins are from 12 April 2012 to 16 February 2013. There are two cities: New York ("nyc") with
    227,428 check-ins of 1,083 users, and Tokyo ("tky") with 573,703 check-ins of 2,293 users. The class
    computes the day of the week in local time. For each check-in, the publisher states the time in UTC and
    the offset of local time. The class reads the published archive, so you need not unpack the archive. The
    paper of Fan & Jin (2015) uses another collection of Foursquare check-ins (45,289 users, February to July
    2012), which is not published.

    We treat the list of venues as public, because it is published with the check-ins. The list consists of
    all identifiers of venues that occur in the file, in ascending order. Strictly speaking, the list reveals
    a little about users, because a venue is in the file only if someone was there.

    The protected unit is one user with all of their check-ins. A user may have any number of check-ins, and
    may have several at the same venue.

    Terms: for research only, and with a citation. Source: Yang, Zhang, Zheng, Yu, IEEE Transactions on
    Systems, Man, and Cybernetics: Systems 45(1), 2015.
    """

    cite: ClassVar[str] = "yang2015"

    city: str = parameter("nyc", choices=tuple(FORMS), doc="city of the check-ins")

    def files(self) -> tuple[File, ...]:
        """Return the published file with the check-ins of the chosen city, as a tuple of one file."""
        name = f"dataset_TSMC2014_{self.city.upper()}.txt"
        how = f"save {_ARCHIVE}.zip of {_SITE} in a folder foursquare; it need not be unpacked"
        also = (f"{_ARCHIVE}/{name}", _ARCHIVE)
        layout = Layout(_CITY, separator="\t")
        return (File("foursquare", name, also=also, how=how, layout=layout),)

    def _records(self) -> pl.DataFrame:
        last_user, need = FORMS[self.city]
        (file,) = self.files()
        columns = {
            "user": integers(1, last_user),
            "venue": matching("^[0-9a-f]{24}$", "24 digits 0 … f"),
            "offset": integers(-720, 840, "minutes from -720 to 840"),
            "time": times("%a %b %d %H:%M:%S +0000 %Y", "Tue Apr 03 18:00:09 +0000 2012"),
        }
        local = pl.col("time") + pl.duration(minutes="offset")
        return file.frame(columns, *records("user", "venue", weekday(local)), rows=need)


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
AUSTIN = datetime(2010, 6, 1), datetime(2010, 11, 1)  # from, to before
PRINTED = {"users": 12_579, "check-ins": 739_600}  # in Austin, by Fan & Jin

_VISIT = ("user", "place", "count")
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
    "train": "c47451c15f86ac6fb0ef22edd258263ce3c84a7bd1706962aa0ca067ddbd58d8",
    "tune": "79f2ed31085140a6420425c0fa4e4d749146633fec80363bc2419327462c35dc",
    "test": "c9ec8be54c36b57b20f286c047c37e1fe0986931d84e7fd97bbe70f74745c8b3",
    "poi_coos": "42a78f74f44d06a7861dd302e184b882e44888eff12034c6ca8eaa61008c8b11",
}


_ANYWHERE = Column("", lambda texts: texts.cast(pl.Float64, strict=False).fill_null(np.nan))


def _file(part: str) -> File:
    layout = Layout(_PLACE if part == "poi_coos" else _VISIT, separator="\t")
    return File("gowalla", f"Gowalla_{part}.txt", "", (_SHA256[part],), how=_HOW, layout=layout)


@value
class Gowalla(RecordsFile):
    """Check-ins of users of the social network Gowalla at places. Each record consists of a user, a place
    (the item), and a region or a day of the week (the context).

    There are three versions of the data. The version "lglmf" is the copy that the authors of the recommender
    LGLMF published, in three parts (train, tune, test). This copy contains 620,683 check-ins of 5,628 users
    at 31,803 places. The authors included only users with at least 15 places. These users have 15 to 1,624
    check-ins each. The copy contains no times, so we use the region of the place as the context. We chose
    seven regions. In this version, each place has only one context, because a place is in only one region.

    The version "snap" contains all check-ins that the Stanford collection SNAP publishes, from February 2009
    to October 2010. The version "austin" contains only the check-ins of "snap" in and around Austin, from
    June to October 2010. Fan & Jin (2015) used 739,600 check-ins from the same area and months. Berjani &
    Strufe collected those check-ins and did not publish them. In the versions "snap" and "austin", the
    context is the day of the week in UTC, the time zone of the published times. For these versions, the class
    does not check the number of rows. So you get no error if lines are missing at the end of the file.

    We treat the list of places as public, because it is published with the check-ins. Strictly speaking, the
    list reveals a little about users, because a place is in the file only if someone was there. Each place
    has an identifier, which is an integer. In "lglmf", the identifiers are 0 to 31802. In the other two
    versions, each place keeps its identifier from the file, and only places that occur in the file are items.
    The class does not read the published friendships between users.

    The protected unit is one user with all of their check-ins. A user may have any number of check-ins, and
    may have several at the same place.

    Terms: for research only, and with a citation. Source: Rahmani, Aliannejadi, Ahmadian, Baratchi,
    Afsharchi, Crestani, AIRS 2019 (for LGLMF), and Cho, Myers, Leskovec, KDD 2011 (for SNAP).
    """

    cite: ClassVar[str] = "cho2011"

    version: str = parameter("lglmf", choices=("lglmf", "snap", "austin"), doc="version")

    @property
    def items(self) -> range | tuple[Any, ...]:
        """Published identifiers of the places. For the versions "snap" and "austin", the property reads these
        identifiers from the file.
        """
        return range(PLACES) if self.version == "lglmf" else super().items

    @property
    def contexts(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the seven regions (version "lglmf") or of the weekdays (other versions)."""
        return tuple(REGIONS) if self.version == "lglmf" else WEEKDAYS

    def files(self) -> tuple[File, ...]:
        """Return the published files. For "lglmf", these are three parts and the list of places. For the
        other versions, there is only one file.
        """
        return tuple(map(_file, _SHA256)) if self.version == "lglmf" else (_SNAP_FILE,)

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on differences between the version "austin" and the data in Table 4 of Fan & Jin
        (2015). For other versions, return an empty tuple.
        """
        if self.version != "austin":
            return ()
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "check-ins": len(data)}
        return differences(ours, PRINTED)

    def _records(self) -> pl.DataFrame:
        if self.version == "lglmf":
            return _lglmf()
        columns = {
            "time": times("%Y-%m-%dT%H:%M:%SZ", "2010-10-19T23:55:27Z"),
            "user": integers(0, 2**31 - 2),
            "place": integers(0, 2**31 - 2),
            "latitude": _ANYWHERE,
            "longitude": _ANYWHERE,
        }
        kept: Any = True
        if self.version == "austin":
            kept = _inside(*REGIONS["Austin"])
            kept &= pl.col("time").is_between(*AUSTIN, closed="left")
        own = records("user", "place", weekday(pl.col("time")))
        return _SNAP_FILE.frame(columns, *own, where=kept)


def _inside(south: float, north: float, west: float, east: float) -> pl.Expr:
    """Return an expression that selects the rows inside a rectangle of latitudes and longitudes."""
    is_between = pl.col("latitude").is_between(south, north)
    return is_between & pl.col("longitude").is_between(west, east)


def _lglmf() -> pl.DataFrame:
    """Return the check-ins of all three parts, with the region of the place as the context."""
    regions = _regions()
    parts = []
    for part, check_ins in CHECKINS.items():
        columns = {
            "user": integers(0, USERS - 1),
            "place": integers(0, PLACES - 1),
            "count": integers(1, check_ins),
        }
        file = _file(part)
        places = file.frame(columns)
        file.expect(places["count"].sum(), check_ins, "check-ins")
        each = places[np.repeat(np.arange(len(places)), places["count"])]
        region = pl.lit(regions).gather(pl.col("place"))
        parts.append(each.select(records("user", "place", region)))
    return pl.concat(parts).sort("item")


def _regions() -> pl.Series:
    """Return the region of each place, in the order of the places' numbers."""
    file = _file("poi_coos")
    columns = {
        "place": integers(0, PLACES - 1),
        "latitude": degrees(90),
        "longitude": degrees(180),
    }
    boxes = enumerate(REGIONS.values())
    regions = [pl.when(_inside(*box)).then(region) for region, box in boxes]
    region = pl.coalesce(regions).alias("region")
    places = file.frame(columns, pl.col("place"), region, rows=PLACES)
    file.expect(places["place"].n_unique(), PLACES, "different places")
    return places.sort("place")["region"]
