"""Ratings of films: MovieLens and the Netflix Prize."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions
from workbench.data.sources import Batch
from workbench.datasets.kinds import RealFile, differences
from workbench.datasets.published import File
from workbench.datasets.reading import (
    LINE,
    LINES,
    WEEKDAYS,
    Column,
    integers,
    interactions,
    labels,
    records,
    typed,
    weekday,
)
from workbench.spaces import Domain
from workbench.value import parameter, value

# Movielens

BANDS = ("under 25", "25-34", "above 34")
GROUPS = tuple(f"{gender} {band}" for gender in "FM" for band in BANDS)
SINCE = 788_918_400  # seconds: 1995, when there were no ratings yet; a number cut short is less
USERS = 6040
FILMS = range(1, 3953)
RATINGS = 1_000_209
AGES = {"1": 0, "18": 0, "25": 1, "35": 2, "45": 2, "50": 2, "56": 2}  # codes of users.dat

_USER = integers(1, USERS)
_FILM = integers(FILMS[0], FILMS[-1])
_TEXT = Column("", optional=True)
_COLUMNS = {
    "ratings.dat": {
        "userId": _USER,
        "movieId": _FILM,
        "rating": integers(1, 5),
        "timestamp": integers(SINCE, 2**32, "seconds since 1970, in or after 1995"),
    },
    "users.dat": {
        "userId": _USER,
        "gender": labels(("F", "M")),
        "age": labels(tuple(AGES)),
        "occupation": _TEXT,
        "zip": _TEXT,
    },
    "movies.dat": {"movieId": _FILM, "title": _TEXT, "genres": _TEXT},
}
_HOW = (
    "save https://files.grouplens.org/datasets/movielens/ml-1m.zip in a folder movielens; it need not be "
    "unpacked"
)
_FILES = {
    name: File(
        "movielens",
        f"ml-1m/{name}",
        also=(name, "ml-1m"),
        how=_HOW,
        layout=LINES._replace(encoding="latin-1"),
    )
    for name in _COLUMNS
}


def _rows(name: str) -> Iterator[Batch]:
    """Rows of a file whose fields two colons separate."""
    columns = _COLUMNS[name]
    for batch in _FILES[name].batches((LINE,)):
        lines = batch.frame[LINE]
        others = lines.str.count_matches("::", literal=True) != len(columns) - 1
        batch.refuse(others, LINE, "::".join(columns))
        fields = lines.str.split_exact("::", len(columns) - 1).struct.rename_fields([*columns])
        frame = fields.struct.unnest().select(pl.all().replace("", None))
        yield typed(batch._replace(frame=frame), columns)


@value
class MovieLens(RealFile):
    """Ratings of films: user, film, and the user's gender and age or the day of the week.

    1,000,209 ratings by 6,040 users (February 2003). Films are the published numbers 1 to 3952, of
    which 3,883 are films and 3,706 are rated (the number that Table 4 of Fan & Jin prints; which ones
    depends on the ratings).

    `context="group"`, the default, is gender × age (under 25, 25 to 34, above 34) of the user, as in
    Fan & Jin; "weekday" is the day in UTC, the zone of the published seconds.

    One unit is one user with all their ratings, 20 or more in the publisher's choice. Nobody
    rates a film twice, which loading enforces, so that a user moves as many counts as there are
    films, by one each. A file with other numbers of users or ratings is taken as it is; `remarks` names
    them.

    The published archive `ml-1m.zip` is read as it is.

    Terms: research use, no redistribution; cite. Source: Harper and Konstan, ACM TiiS 5(4), 2015.
    """

    cite: ClassVar[str] = "harper2015"
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    version: str = parameter("1m", choices=("1m",), doc="published file")
    context: str = parameter(None, choices=("group", "weekday"), doc="meaning of contexts")

    @property
    def domain(self) -> Domain:
        """Films by their published numbers, and groups of users or days of the week."""
        contexts = WEEKDAYS if self.context == "weekday" else GROUPS
        return Domain(("item", "context"), (len(FILMS), len(contexts)), (FILMS, contexts))

    def files(self) -> tuple[File, ...]:
        """Ratings, users where their groups are asked for, and the films with their titles."""
        unused = "users.dat" if self.context == "weekday" else None
        return tuple(file for name, file in _FILES.items() if name != unused)

    def titles(self) -> dict[int, str]:
        """Titles of the films by number."""
        films = [batch.frame.select("movieId", "title") for batch in _rows("movies.dat")]
        return dict(pl.concat(films).iter_rows())

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad row, with its place."""
        file = _FILES["ratings.dat"]
        parts = [*self._records()]
        if not parts:
            raise ValueError(f"{file.find()} has no rows")
        bound = Bound(len(FILMS), 1)
        return interactions(pl.concat(parts), self.domain, bound, once_in=file.find())

    def remarks(self) -> tuple[str, ...]:
        """Differences between the file and what is published about it, if any."""
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "ratings": len(data)}
        return differences(ours, {"users": USERS, "ratings": RATINGS})

    def _records(self) -> Iterator[pl.DataFrame]:
        day = weekday(pl.from_epoch("timestamp"))
        groups = pl.Series() if self.context == "weekday" else _groups()
        film = pl.col("movieId") - FILMS[0]
        for batch in _rows("ratings.dat"):
            if self.context == "weekday":
                yield batch.frame.select(records("userId", film, day))
                continue
            group = groups.gather(batch.frame["userId"])
            batch.refuse(group.is_null(), "userId", "a user of users.dat")
            yield batch.frame.select(records("userId", film, pl.lit(group)))


def _groups() -> pl.Series:
    """The group of each user by number; null where no user has it."""
    groups = pl.Series([None] * (USERS + 1), dtype=pl.Int64)
    bands = pl.Series(AGES.values())
    for batch in _rows("users.dat"):
        group = len(BANDS) * batch.frame["gender"] + bands.gather(batch.frame["age"])
        groups.scatter(batch.frame["userId"], group)
    return groups


# Netflix prize

PARTS = (  # first film, last film and ratings of each of the four files
    (1, 4499, 24_053_764),
    (4500, 9210, 26_982_302),
    (9211, 13367, 22_601_629),
    (13368, 17770, 26_842_812),
)


CUSTOMERS = 2_649_429  # the largest number of one; most numbers are nobody's
FIRST_DAY = date(1998, 10, 1)  # the time that the publisher says ratings are of
LAST_DAY = date(2005, 12, 31)
HOW = (
    "Netflix has withdrawn it; copies go about: unpack nf_prize_dataset.tar.gz and its training_set.tar, or "
    "save a zip archive of the four files combined_data_1.txt …, in a folder netflix_prize"
)


@value
class NetflixPrize(RealFile):
    """100,480,507 ratings of 17,770 films by 480,189 customers: customer, film, day of the week.

    The training set of the Netflix Prize, either the 17,770 files `mv_0000001.txt` … of the published
    archive in a folder `training_set`, or the four files `combined_data_1.txt` … that go about, also in
    a zip archive. The day is that of the date as published, which has neither hour nor time zone. Films
    are the published numbers 1 to 17,770, users the published numbers of customers. The rating
    itself is not kept.

    One unit is one customer with all their ratings. Nobody rates a film twice, which loading
    enforces, so that a customer moves at most 17,770 counts by one each. Every film and every
    rating must be there: a file that is cut anywhere is refused.

    Reading takes minutes: 5 million made-up ratings take 7 seconds of one core. Table 4 of Fan & Jin
    prints rounded numbers, 17,700 films and at most 17,000 ratings a customer.

    Terms: research use, no redistribution; cite. No longer published by Netflix. Source: Bennett
    and Lanning, KDD Cup and Workshop 2007.
    """

    cite: ClassVar[str] = "bennett2007"
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    @property
    def domain(self) -> Domain:
        """Films by their published numbers, and days of the week."""
        films = PARTS[-1][1]
        labels = (range(1, films + 1), WEEKDAYS)
        return Domain(("item", "context"), (films, len(WEEKDAYS)), labels)

    def files(self) -> tuple[File, ...]:
        """The four files, or the first film's of each."""
        return tuple(_part(k) for k in range(len(PARTS)))

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad line or an incomplete file."""
        bound = Bound(self.domain.shape[0], 1)
        ratings = pl.concat(_ratings())
        return interactions(ratings, self.domain, bound, once_in=_part(0).find())


def _part(k: int) -> File:
    return File(
        "netflix_prize",
        f"combined_data_{k + 1}.txt",
        also=(_film(PARTS[k][0]).name, "netflix-prize-data", "archive"),
        how=HOW,
        layout=LINES,
    )


def _film(number: int) -> File:
    return File("netflix_prize", f"training_set/mv_{number:07}.txt", how=HOW, layout=LINES)


def _ratings() -> Iterator[pl.DataFrame]:
    """Those of the four files, or of a file a film."""
    for k, (first, last, need) in enumerate(PARTS):
        file = _part(k)
        path = file.find()
        films = [(file, first, last)]
        if path.name.startswith("mv_"):
            films = [(_film(number), number, number) for number in range(first, last + 1)]
        size = 0
        for own, low, high in films:
            for ratings in _ratings_of(own, low, high):
                size += len(ratings)
                if size > need:
                    break  # the rest is not read
                yield ratings
        if size != need:
            raise ValueError(
                f"{path}: films {first} to {last} have {size:,} ratings; need {need:,}"
            )


def _ratings_of(file: File, first: int, last: int) -> Iterator[pl.DataFrame]:
    """A file of these films: each has its number and a colon, then lines customer,rating,date."""
    film = first - 1
    need = (
        f"customer,rating,date after the film {first} and a colon: a customer from 1 to {CUSTOMERS}, "
        f"a rating from 1 to 5, a day (YYYY-MM-DD) from {FIRST_DAY} to {LAST_DAY}"
    )
    for batch in file.batches((LINE,)):
        lines = batch.frame[LINE]
        number = lines.str.extract("^([0-9]{1,8}):$").cast(pl.Int64)
        is_rating = number.is_null()
        films = film + (~is_rating).cum_sum().cast(pl.Int64)
        wrong = ~is_rating & ((number != films) | (films > last))
        batch.refuse(wrong, LINE, f"films {first} to {last}, each once and in order")
        film = int(films[-1])
        batch = batch.where(is_rating)
        form = "^([0-9]{1,8}),[1-5],([0-9]{4}-[0-9]{2}-[0-9]{2})$"
        parts = batch.frame[LINE].str.extract_groups(form).struct.unnest()
        ratings = parts.select(
            customer=pl.col("1").cast(pl.Int64),
            film=films.filter(is_rating),
            day=pl.col("2").str.to_date("%Y-%m-%d", strict=False),
        )
        good = ratings.select(
            pl.col("customer").is_between(1, CUSTOMERS)
            & pl.col("day").is_between(FIRST_DAY, LAST_DAY)
            & (pl.col("film") >= first)
        )
        batch.refuse(~good.to_series(), LINE, need)
        yield ratings.select(records("customer", pl.col("film") - 1, weekday(pl.col("day"))))
    if film != last:
        raise ValueError(f"{file.find()} ends before film {film + 1} of {last}")
