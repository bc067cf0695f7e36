"""Ratings of films by users, from MovieLens and from the Netflix Prize."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data.sources import Layout
from workbench.datasets.kinds import RecordsFile, differences, records
from workbench.datasets.published import LINE, LINES, File, integers, labels, matching, weekday
from workbench.value import parameter, value

# Movielens

BANDS = ("under 25", "25-34", "above 34")
GROUPS = tuple(f"{gender} {band}" for gender in "FM" for band in BANDS)
USERS = 6040
FILMS = range(1, 3953)
RATINGS = 1_000_209
AGES = {"1": 0, "18": 0, "25": 1, "35": 2, "45": 2, "50": 2, "56": 2}  # codes of users.dat

_HOW = (
    "save https://files.grouplens.org/datasets/movielens/ml-1m.zip in a folder movielens; it need not be "
    "unpacked"
)


def _file(name: str, *fields: str) -> File:
    """Return the declaration of a file of MovieLens, in which two colons separate the fields. If no fields
    are given, each line is read as one text.
    """
    names = tuple(x for field in fields for x in (field, f"after {field}"))[:-1]
    layout = Layout(names, ":") if fields else LINES
    layout = layout._replace(encoding="latin-1")
    return File("movielens", f"ml-1m/{name}", also=(name, "ml-1m"), how=_HOW, layout=layout)


_RATINGS = _file("ratings.dat", "userId", "movieId", "rating", "timestamp")
_USERS = _file("users.dat", "userId", "gender", "age", "occupation", "zip")
_FILMS = _file("movies.dat")


@value
class MovieLens(RecordsFile):
    """Ratings of films by users of MovieLens. Each record consists of a user, a film (the item), and the
    gender and age of the user (the context).

    There are 1,000,209 ratings by 6,040 users (MovieLens 1M, published in February 2003). An item is a film,
    identified by the publisher's number (1 to 3952). There are films for 3,883 of these numbers, and ratings
    for 3,706. Table 4 of Fan & Jin (2015) prints 3,706 items. We do not restrict the items to the films with
    ratings, because a list of these films would reveal a little about the ratings.

    The context is a combination of the user's gender and age group (under 25, 25 to 34, above 34), as in the
    paper of Fan & Jin.

    The protected unit is one user with all of their ratings. The publisher selected users with 20 ratings or
    more. Loading checks that nobody rates a film twice, so a user changes each count by at most one. Loading
    also accepts files with other numbers of users or ratings than stated above. The method `remarks` then
    reports the differences.

    The class reads the published archive `ml-1m.zip`, so you need not unpack it.

    Terms: for research only, without redistribution, and with a citation. Source: Harper and Konstan, ACM
    TiiS 5(4), 2015.
    """

    cite: ClassVar[str] = "harper2015"
    schema = (_RATINGS, _USERS, _FILMS)
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    version: str = parameter("1m", choices=("1m",), doc="version of the data")
    context: str = parameter(None, choices=("group",), doc="what the context of a record is")

    items = FILMS
    once = True
    contexts = GROUPS

    def titles(self) -> dict[int, str]:
        """Return a dictionary of the films' titles, whose keys are the publisher's numbers of the films."""
        line = matching("^[0-9]+::.*::", "movieId::title::genres")
        number, title = (pl.col(LINE).str.extract(x) for x in ("^([0-9]+)", "::(.*)::"))
        films = _FILMS.frame({LINE: line}, number.cast(pl.Int64), title.alias("title"))
        return dict(films.iter_rows())

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on differences between the file and the published numbers of users and ratings."""
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "ratings": len(data)}
        return differences(ours, {"users": USERS, "ratings": RATINGS})

    def _records(self) -> pl.DataFrame:
        user = integers(1, USERS)
        film = integers(FILMS[0], FILMS[-1])
        ratings = _RATINGS.frame({"userId": user, "movieId": film, "rating": integers(1, 5)})
        group = {"gender": labels(("F", "M")), "age": labels(tuple(AGES))}
        users = _USERS.frame({"userId": user, **group})
        bands = np.array([*AGES.values()])
        groups = np.full(USERS + 1, -1)
        groups[users["userId"]] = len(BANDS) * users["gender"] + bands[users["age"]]
        ratings = ratings.with_columns(group=groups[ratings["userId"]])
        if len(strangers := ratings.filter(pl.col("group") < 0)):
            stranger = strangers["userId"][0]
            raise ValueError(f"{_RATINGS.find()}: user {stranger} is not in users.dat")
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
    """Ratings of films by customers of Netflix: 100,480,507 ratings of 17,770 films by 480,189 customers.
    Each record consists of a customer, a film (the item) and the day of the week (the context).

    The ratings are the training set of the Netflix Prize. There are two forms of the data, and the class
    reads both. The first is the published archive, with 17,770 files `mv_0000001.txt` … in a folder
    `training_set`. The second consists of four files `combined_data_1.txt` …, which may be in a zip archive.
    The class computes the day of the week from the published date, which has no hour and no time zone. An
    item is a film, identified by its published number (1 to 17,770). A user is a customer, identified by the
    published number of the customer. The class does not use the number of stars of a rating.

    The protected unit is one customer with all of their ratings. Loading checks that nobody rates a film
    twice. So a customer changes at most 17,770 counts, each by one. Loading also checks that no film and no
    rating is missing.

    Reading all ratings takes minutes. In a test on one core, reading 5 million synthetic ratings took 7
    seconds. Table 4 of Fan & Jin (2015) prints rounded numbers: 17,700 films, and at most 17,000 ratings per
    customer.

    Terms: for research only, without redistribution, and with a citation. Netflix no longer publishes the
    data. Source: Bennett and Lanning, KDD Cup and Workshop 2007.
    """

    cite: ClassVar[str] = "bennett2007"
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    once = True

    @property
    def items(self) -> range:
        """Published numbers of the films, from 1 to 17,770."""
        return range(1, PARTS[-1][1] + 1)

    def files(self) -> tuple[File, ...]:
        """Return the four files that contain the ratings. The files have the names `combined_data_1.txt` to
        `combined_data_4.txt`.
        """
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
    """Yield the ratings in batches, from the four files or from the files per film."""
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
        file.expect(size, need, f"ratings of films {first} to {last}")


_FORM = "^(?:([0-9]{1,8}):|([0-9]{1,8}),[1-5],([0-9]{4}-[0-9]{2}-[0-9]{2}))$"


def _ratings_of(file: File, first: int, last: int) -> Iterator[pl.DataFrame]:
    """Yield the ratings of a file in batches. For each film, the file has a line with the film's number and a
    colon, and then one line customer,rating,date for each rating.
    """
    film = first - 1
    need = (
        f"films {first} to {last}, each once and in order: its number and a colon, then lines "
        f"customer,rating,date with a customer from 1 to {CUSTOMERS}, a rating from 1 to 5, a day "
        f"(YYYY-MM-DD) from {FIRST_DAY} to {LAST_DAY}"
    )
    for batch in file.batches((LINE,)):
        rows = batch.frame[LINE].str.extract_groups(_FORM).struct.unnest()
        rows = rows.select(
            number=pl.col("1").cast(pl.Int64),
            film=film + pl.col("1").is_not_null().cum_sum(),
            customer=pl.col("2").cast(pl.Int64),
            day=pl.col("3").str.to_date("%Y-%m-%d", strict=False),
        )
        film = rows["film"][-1]
        is_film = (pl.col("number") == pl.col("film")) & (pl.col("film") <= last)
        is_rating = (
            pl.col("customer").is_between(1, CUSTOMERS)
            & pl.col("day").is_between(FIRST_DAY, LAST_DAY)
            & (pl.col("film") >= first)
        )
        batch.refuse([(LINE, need, ~rows.select(is_film | is_rating).to_series())])
        ratings = rows.filter(pl.col("number").is_null())
        yield ratings.select(records("customer", "film", weekday(pl.col("day"))))
    file.expect(film, last, "as its last film")
