"""Ratings of films: MovieLens and the Netflix Prize."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data.sources import Batch
from workbench.datasets.kinds import RecordsFile, differences, records
from workbench.datasets.published import File
from workbench.datasets.reading import LINE, LINES, TEXT, integers, labels, weekday
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
        "occupation": TEXT,
        "zip": TEXT,
    },
    "movies.dat": {"movieId": _FILM, "title": TEXT, "genres": TEXT},
}
_HOW = (
    "save https://files.grouplens.org/datasets/movielens/ml-1m.zip in a folder movielens; it need not be "
    "unpacked"
)


class _File(File):
    """A file whose fields two colons separate."""

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        for batch in super().batches((LINE,)):
            lines = batch.frame[LINE]
            others = lines.str.count_matches("::", literal=True) != len(columns) - 1
            batch.refuse(others, LINE, "::".join(columns))
            fields = lines.str.split_exact("::", len(columns) - 1)
            frame = fields.struct.rename_fields([*columns]).struct.unnest()
            yield batch._replace(frame=frame.select(pl.all().replace("", None)))


def _file(name: str) -> File:
    layout = LINES._replace(encoding="latin-1")
    return _File("movielens", f"ml-1m/{name}", also=(name, "ml-1m"), how=_HOW, layout=layout)


@value
class MovieLens(RecordsFile):
    """Ratings of films: user, film, and the user's gender and age.

    1,000,209 ratings by 6,040 users (February 2003). Films are the published numbers 1 to 3952, of
    which 3,883 are films and 3,706 are rated (the number that Table 4 of Fan & Jin prints; which ones
    depends on the ratings).

    A context is gender × age (under 25, 25 to 34, above 34) of the user, as in Fan & Jin.

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
    context: str = parameter(None, choices=("group",), doc="meaning of contexts")

    items = FILMS
    once = True
    contexts = GROUPS

    def files(self) -> tuple[File, ...]:
        """Ratings, users with their groups, and the films with their titles."""
        return tuple(map(_file, _COLUMNS))

    def titles(self) -> dict[int, str]:
        """Titles of the films by number."""
        films = _file("movies.dat").frame(_COLUMNS["movies.dat"])
        return dict(films.select("movieId", "title").iter_rows())

    def remarks(self) -> tuple[str, ...]:
        """Differences between the file and what is published about it, if any."""
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "ratings": len(data)}
        return differences(ours, {"users": USERS, "ratings": RATINGS})

    def _records(self) -> pl.DataFrame:
        file = _file("ratings.dat")
        ratings = file.frame(_COLUMNS["ratings.dat"])
        users = _file("users.dat").frame(_COLUMNS["users.dat"])
        bands = np.array([*AGES.values()])
        groups = np.full(USERS + 1, -1)
        groups[users["userId"]] = len(BANDS) * users["gender"] + bands[users["age"]]
        ratings = ratings.with_columns(group=groups[ratings["userId"]])
        if len(strangers := ratings.filter(pl.col("group") < 0)):
            user = strangers["userId"][0]
            raise ValueError(f"{file.find()}: user {user} is not in users.dat")
        return ratings.select(records("userId", "movieId", pl.col("group")))


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
class NetflixPrize(RecordsFile):
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

    once = True

    @property
    def items(self) -> range:
        """Films by their published numbers."""
        return range(1, PARTS[-1][1] + 1)

    def files(self) -> tuple[File, ...]:
        """The four files, or the first film's of each."""
        return tuple(_part(k) for k in range(len(PARTS)))

    def _records(self) -> pl.DataFrame:
        return pl.concat(_ratings())


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
        films = [(file, first, last)]
        if file.find().name.startswith("mv_"):
            films = [(_film(number), number, number) for number in range(first, last + 1)]
        size = 0
        for one in films:
            for ratings in _ratings_of(*one):
                size += len(ratings)
                yield ratings
        if size != need:
            found = f"films {first} to {last} have {size:,} ratings; need {need:,}"
            raise ValueError(f"{file.find()}: {found}")


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
        yield ratings.select(records("customer", "film", weekday(pl.col("day"))))
    if film != last:
        raise ValueError(f"{file.find()} ends before film {film + 1} of {last}")
