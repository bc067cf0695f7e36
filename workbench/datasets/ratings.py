"""Ratings of films: MovieLens and the Netflix Prize."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions
from workbench.data.sources import CSV, Batch, Layout
from workbench.datasets.kinds import RealFile, differences
from workbench.datasets.published import File, sibling_file
from workbench.datasets.reading import (
    LINE,
    LINES,
    WEEKDAYS,
    codes,
    fields,
    integers,
    interactions,
    rows,
    users_frame,
    weekdays,
)
from workbench.spaces import Domain
from workbench.spaces.labels import Labels
from workbench.value import Int, not_allowed, parameter, value

# Movielens

BANDS = ("under 25", "25-34", "above 34")
GROUPS = tuple(f"{gender} {band}" for gender in "FM" for band in BANDS)
SINCE = 788_918_400  # seconds: 1995, when there were no ratings yet; a number cut short is less


class Form(NamedTuple):
    """How a version is published: its files, its fields, and what its description promises."""

    folders: tuple[str, ...]
    ratings: str
    users: str
    films: str
    separator: str
    last_user: int
    last_film: int
    ratings_in_all: int


FORMS = {
    "1m": Form(
        ("ml-1m",), "ratings.dat", "users.dat", "movies.dat", "::",
        6040, 3952, 1_000_209,
    ),
    "100k": Form(
        ("ml-100k",), "u.data", "u.user", "u.item", "|", 943, 1682, 100_000
    ),
    "latest": Form(
        ("ml-latest", "ml-latest-small"), "ratings.csv", "", "movies.csv", ",",
        2**31 - 1, 0, 0,
    ),
}  # fmt: skip
FILM = "movieId"
FIELDS = ("userId", FILM, "rating", "timestamp")
AGES = {"1": 0, "18": 0, "25": 1, "35": 2, "45": 2, "50": 2, "56": 2}  # codes of users.dat


@value
class MovieLens(RealFile):
    """Ratings of films: user, film, and the user's gender and age or the day of the week.

    "1m": 1,000,209 ratings by 6,040 users (February 2003); "100k": 100,000 by 943 (April 1998);
    "latest": `ratings.csv` of ml-latest or ml-latest-small, whatever their date. Films are the
    published numbers: of "1m" 1 to 3952, of which 3,883 are films and 3,706 are rated (the
    number that Table 4 of Fan & Jin prints; which ones depends on the ratings), of "100k" 1 to
    1682, of "latest" those listed in `movies.csv`, beside `ratings.csv`.

    `context="group"` is gender × age (under 25, 25 to 34, above 34) of the user, as in Fan &
    Jin, and the default where the publisher tells it; "weekday" is the day in UTC, the zone of
    the published seconds, and all that "latest" has.

    One unit is one user with all their ratings, 20 or more in the publisher's choice. Nobody
    rates a film twice, which loading enforces, so that a user moves as many counts as there are
    films, by one each. A file with other numbers of users or ratings is taken as it is; `remarks` names
    them.

    The published archives (`ml-1m.zip` …) are read as they are.

    Terms: research use, no redistribution of "1m" and "100k"; cite. Source: Harper and Konstan,
    ACM TiiS 5(4), 2015.
    """

    cite: ClassVar[str] = "harper2015"
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    version: str = parameter("1m", choices=tuple(FORMS), doc="which published file")
    context: str = parameter(None, choices=("group", "weekday"), doc="what contexts are")

    def __post_init__(self) -> None:
        if self.version == "latest" and self.context == "group":
            why = "version 'latest' says nothing about its users; need 'weekday'"
            raise not_allowed(self, "context", why)

    @property
    def domain(self) -> Domain:
        """Films by their published numbers, and groups of users or days of the week."""
        contexts = GROUPS if self._grouped else WEEKDAYS
        last = self._form.last_film
        films = range(1, last + 1) if last else self._listed
        return Domain(("item", "context"), (len(films), len(contexts)), (films, contexts))

    def files(self) -> tuple[File, ...]:
        """Ratings, users where their groups are asked for, and the films with their titles."""
        form = self._form
        users = [form.users] if self._grouped else []
        return tuple(self._file(name) for name in [form.ratings, *users, form.films])

    def titles(self) -> dict[int, str]:
        """What the films are called, by their numbers."""
        titles: dict[int, str] = {}
        for batch in self._films:
            numbers = integers(batch, FILM, 1, 2**31 - 1, "a film's number")
            titles.update(zip(numbers.tolist(), batch.frame["title"], strict=True))
        return titles

    def load(self) -> Interactions:
        """The records; a bad row is a ValueError that says where."""
        domain = self.domain
        bound = Bound(domain.shape[0], 1)
        path = self._file(self._form.ratings).find()
        return interactions(self._records(domain), domain, bound, once_in=path)

    def _records(self, domain: Domain) -> Iterator[pl.DataFrame]:
        form = self._form
        groups = self._groups() if self._grouped else None
        films = Labels((domain.labels or ((),))[0])
        for batch in self._ratings():
            users = integers(batch, "userId", 1, form.last_user)
            need = "" if form.last_film else f"a film of {form.films}"
            items = codes(batch, FILM, films, need)
            half_stars = batch.frame["rating"].cast(pl.Float64, strict=False) * 2
            is_rating = half_stars.is_between(1, 10) & (half_stars == half_stars.floor())
            if form.last_film:
                is_rating &= half_stars % 2 == 0
            batch.refuse(~is_rating, "rating", "stars, at most 5")
            need = "seconds since 1970, in or after 1995"
            seconds = integers(batch, "timestamp", SINCE, 2**32, need)
            if groups is None:
                contexts = (seconds // 86_400 + 3) % 7
            else:
                contexts = groups[users]
                batch.refuse(pl.Series(contexts < 0), "userId", f"a user of {form.users}")
            yield users_frame(users, items, contexts)

    def remarks(self) -> tuple[str, ...]:
        """How the file differs from what is published of it; nothing if it does not."""
        form = self._form
        if not form.ratings_in_all:
            return ()
        data = self.load()
        ours = {"users": len(np.unique(data.users)), "ratings": len(data)}
        return differences(ours, {"users": form.last_user, "ratings": form.ratings_in_all})

    @property
    def _form(self) -> Form:
        return FORMS[self.version]

    @property
    def _grouped(self) -> bool:
        return self.context == "group" or self.context is None and self.version != "latest"

    @cached_property
    def _listed(self) -> tuple[int, ...]:
        """The films of movies.csv."""
        return tuple(sorted(self.titles()))

    def _ratings(self) -> Iterator[Batch]:
        path = self._file(self._form.ratings).find()
        if self.version == "1m":
            return (fields(batch, FIELDS, "::") for batch in rows(path, (LINE,), LINES))
        tabs = Layout(FIELDS, separator="\t")
        return rows(path, FIELDS, tabs if self.version == "100k" else CSV)

    @property
    def _films(self) -> Iterator[Batch]:
        """Numbers and titles of films."""
        form = self._form
        path = self._beside(form.films)
        if form.separator == ",":
            return rows(path, (FILM, "title"))
        latin = LINES._replace(encoding="latin-1")
        return (self._film_of(batch) for batch in rows(path, (LINE,), latin))

    def _film_of(self, batch: Batch) -> Batch:
        frame = batch.frame[LINE].str.splitn(self._form.separator, 3).struct.unnest()
        frame.columns = [FILM, "title", "more"]
        batch.refuse(frame["more"].is_null(), LINE, "a film's number, title and more")
        return batch._replace(frame=frame)

    def _groups(self) -> Int[np.ndarray, " users"]:
        """The group of each user by number; −1 where no user has it."""
        form = self._form
        path = self._beside(form.users)
        groups = np.full(form.last_user + 1, -1, np.int64)
        first = ("user", "gender", "age") if self.version == "1m" else ("user", "age", "gender")
        names = (*first, "occupation", "zip")
        for lines in rows(path, (LINE,), LINES):
            batch = fields(lines, names, form.separator)
            users = integers(batch, "user", 1, form.last_user)
            gender = codes(batch, "gender", ("F", "M"))
            if self.version == "1m":
                band = np.array(list(AGES.values()))[codes(batch, "age", tuple(AGES))]
            else:
                ages = integers(batch, "age", 0, 150, "an age in years")
                band = np.searchsorted([25, 35], ages, side="right")
            groups[users] = len(BANDS) * gender + band
        return groups

    def _file(self, name: str) -> File:
        folders = self._form.folders
        site = "https://files.grouplens.org/datasets/movielens"
        archives = " or ".join(f"{site}/{folder}.zip" for folder in folders)
        first, *others = (f"{folder}/{name}" for folder in folders)
        how = f"save {archives} in a folder movielens; it need not be unpacked"
        zips = tuple(f"{folder}.zip" for folder in folders)
        return File("movielens", first, also=(*others, name), how=how, archives=zips)

    def _beside(self, name: str) -> Path:
        return sibling_file(self._file(self._form.ratings).find(), name)


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

    Takes 1.3 GB and well under a minute. Table 4 of Fan & Jin prints rounded numbers, 17,700 films
    and at most 17,000 ratings a customer.

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
        """The records; a bad line, or a file that is cut, is a ValueError."""
        bound = Bound(self.domain.shape[0], 1)
        return interactions(_ratings(), self.domain, bound, once_in=_part(0).find())


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
    for batch in rows(path, (LINE,), LINES):
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
        yield users_frame(customers, films.filter(is_rating) - 1, weekdays(days))
    if film != last:
        raise ValueError(f"{path} ends before film {film + 1} of {last}")
