"""Ratings of films: MovieLens and the Netflix Prize."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions
from workbench.data.sources import Batch
from workbench.datasets import reading
from workbench.datasets.kinds import RealFile, differences
from workbench.datasets.published import File, sibling_file
from workbench.datasets.reading import LINE, LINES, WEEKDAYS
from workbench.spaces import Domain
from workbench.value import Int, parameter, value

# Movielens

BANDS = ("under 25", "25-34", "above 34")
GROUPS = tuple(f"{gender} {band}" for gender in "FM" for band in BANDS)
SINCE = 788_918_400  # seconds: 1995, when there were no ratings yet; a number cut short is less
USERS = 6040
FILMS = range(1, 3953)
RATINGS = 1_000_209
AGES = {"1": 0, "18": 0, "25": 1, "35": 2, "45": 2, "50": 2, "56": 2}  # codes of users.dat

_FIELDS = {
    "ratings.dat": ("userId", "movieId", "rating", "timestamp"),
    "users.dat": ("userId", "gender", "age", "occupation", "zip"),
    "movies.dat": ("movieId", "title", "genres"),
}
_HOW = (
    "save https://files.grouplens.org/datasets/movielens/ml-1m.zip in a folder movielens; it need not be "
    "unpacked"
)


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
        names = [*_FIELDS]
        if self.context == "weekday":
            names.remove("users.dat")
        return tuple(map(self._file, names))

    def titles(self) -> dict[int, str]:
        """Titles of the films by number."""
        titles: dict[int, str] = {}
        for batch in self._rows("movies.dat"):
            numbers = 1 + reading.codes(batch, "movieId", FILMS)
            titles.update(zip(numbers.tolist(), batch.frame["title"], strict=True))
        return titles

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad row, with its place."""
        path = self._file("ratings.dat").find()
        bound = Bound(len(FILMS), 1)
        return reading.interactions(self._records(), self.domain, bound, once_in=path)

    def remarks(self) -> tuple[str, ...]:
        """Differences between the file and what is published about it, if any."""
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "ratings": len(data)}
        return differences(ours, {"users": USERS, "ratings": RATINGS})

    def _records(self) -> Iterator[pl.DataFrame]:
        groups = None if self.context == "weekday" else self._groups()
        for batch in self._rows("ratings.dat"):
            users = reading.integers(batch, "userId", 1, USERS)
            items = reading.codes(batch, "movieId", FILMS)
            reading.integers(batch, "rating", 1, 5)
            need = "seconds since 1970, in or after 1995"
            seconds = reading.integers(batch, "timestamp", SINCE, 2**32, need)
            if groups is None:
                contexts = (seconds // 86_400 + 3) % 7
            else:
                contexts = groups[users]
                batch.refuse(pl.Series(contexts < 0), "userId", "a user of users.dat")
            yield reading.users_frame(users, items, contexts)

    def _groups(self) -> Int[np.ndarray, " users"]:
        """The group of each user by number; −1 where no user has it."""
        groups = np.full(USERS + 1, -1, np.int64)
        bands = np.array(list(AGES.values()))
        for batch in self._rows("users.dat"):
            users = reading.integers(batch, "userId", 1, USERS)
            gender = reading.codes(batch, "gender", ("F", "M"))
            band = bands[reading.codes(batch, "age", tuple(AGES))]
            groups[users] = len(BANDS) * gender + band
        return groups

    def _rows(self, name: str) -> Iterator[Batch]:
        """The fields of a file, which lies beside that of ratings."""
        path = self._file("ratings.dat").find()
        if name != "ratings.dat":
            path = sibling_file(path, name)
        lines = LINES._replace(encoding="latin-1")
        for batch in reading.rows(path, (LINE,), lines):
            yield reading.fields(batch, _FIELDS[name], "::")

    @staticmethod
    def _file(name: str) -> File:
        return File(
            "movielens", f"ml-1m/{name}", also=(name,), how=_HOW, archives=("ml-1m.zip",)
        )


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
        return reading.interactions(_ratings(), self.domain, bound, once_in=_part(0).find())


def _part(k: int) -> File:
    return File(
        "netflix_prize",
        f"combined_data_{k + 1}.txt",
        also=(f"training_set/{_film(PARTS[k][0])}",),
        how=HOW,
        archives=("netflix-prize-data.zip", "archive.zip"),
    )


def _film(number: int) -> str:
    return f"mv_{number:07}.txt"


def _ratings() -> Iterator[pl.DataFrame]:
    """Those of the four files, or of a file a film."""
    for k, (first, last, need) in enumerate(PARTS):
        path = _part(k).find()
        films = [(path, first, last)]
        if not path.name.startswith("combined"):
            numbers = range(first, last + 1)
            films = [(sibling_file(path, _film(number)), number, number) for number in numbers]
        size = 0
        for place, low, high in films:
            for ratings in _ratings_of(place, low, high):
                size += len(ratings)
                if size > need:
                    break  # the rest is not read
                yield ratings
        if size != need:
            raise ValueError(
                f"{path}: films {first} to {last} have {size:,} ratings; need {need:,}"
            )


def _ratings_of(path: Path, first: int, last: int) -> Iterator[pl.DataFrame]:
    """A file of these films: each has its number and a colon, then lines customer,rating,date."""
    film = first - 1
    for batch in reading.rows(path, (LINE,), LINES):
        lines = batch.frame[LINE]
        is_film = lines.str.contains("^[0-9]{1,8}:$").fill_null(False)
        films = film + is_film.cast(pl.Int64).cum_sum()
        number = lines.str.strip_suffix(":").cast(pl.Int64, strict=False)
        wrong = is_film & ((number != films) | (films > last)).fill_null(True)
        batch.refuse(wrong, LINE, f"films {first} to {last}, each once and in order")
        film = int(films[-1])
        is_rating = ~is_film
        batch = batch.where(is_rating)
        lines = batch.frame[LINE]
        batch.refuse(films.filter(is_rating) < first, LINE, f"the film {first} and a colon")
        form = "^[0-9]{1,8},[1-5],[0-9]{4}-[0-9]{2}-[0-9]{2}$"
        batch.refuse(~lines.str.contains(form), LINE, f"customer,rating,date ({LAST_DAY})")
        parts = lines.str.split_exact(",", 2).struct.unnest()
        customers = parts["field_0"].cast(pl.Int64)
        inside = customers.is_between(1, CUSTOMERS)
        batch.refuse(~inside, LINE, f"a customer from 1 to {CUSTOMERS}")
        days = parts["field_2"].str.to_date("%Y-%m-%d", strict=False)
        inside = days.is_between(FIRST_DAY, LAST_DAY)
        batch.refuse(~inside, LINE, f"a day (YYYY-MM-DD) from {FIRST_DAY} to {LAST_DAY}")
        yield reading.users_frame(
            customers, films.filter(is_rating) - 1, reading.weekdays(days)
        )
    if film != last:
        raise ValueError(f"{path} ends before film {film + 1} of {last}")
