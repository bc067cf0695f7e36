"""Ratings of films: MovieLens and the Netflix Prize."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Interactions
from workbench.data.columns import LabelledRows
from workbench.datasets import netflix_ratings as kernels
from workbench.datasets.compressed import opened, read_whole, tar_members
from workbench.datasets.delimited import WEEKDAYS, UserRecords, read_blocks, read_lines
from workbench.datasets.kinds import REAL_FILE, differences
from workbench.datasets.netflix_ratings import CUSTOMERS, Ratings, RatingsReader
from workbench.datasets.published import File, sibling_file
from workbench.spaces import Domain
from workbench.value import Int, not_allowed, parameter, sealed, value

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
    encoding: str
    last_user: int
    last_film: int
    ratings_in_all: int


FORMS = {
    "1m": Form(
        ("ml-1m",), "ratings.dat", "users.dat", "movies.dat", "::", "latin-1",
        6040, 3952, 1_000_209,
    ),
    "100k": Form(
        ("ml-100k",), "u.data", "u.user", "u.item", "|", "latin-1", 943, 1682, 100_000
    ),
    "latest": Form(
        ("ml-latest", "ml-latest-small"), "ratings.csv", "", "movies.csv", ",", "utf-8-sig",
        2**31 - 1, 0, 0,
    ),
}  # fmt: skip
FIELDS = ("userId", "movieId", "rating", "timestamp")
AGES = {"1": 0, "18": 0, "25": 1, "35": 2, "45": 2, "50": 2, "56": 2}  # codes of users.dat


@value
class MovieLens:
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

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "harper2015"
    truth_public: ClassVar[bool] = True
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
        form = self._form
        path = self._beside(form.films)
        text = read_whole(path).decode(form.encoding, errors="replace")
        rows: Iterator[list[str]]
        if form.separator == ",":
            rows = csv.reader(io.StringIO(text, newline=""))
            next(rows, None)
        else:
            lines = (line.rstrip("\r") for line in text.split("\n") if line.strip())
            rows = (line.split(form.separator) for line in lines)
        titles = {}
        for row in rows:
            if len(row) < 3 or not row[0].isdecimal():
                raise ValueError(f"{path}: found {row!r}, need a film's number, title and more")
            titles[int(row[0])] = row[1]
        return titles

    def load(self) -> Interactions:
        """The records; a bad row is a ValueError that says where."""
        form = self._form
        domain = self.domain
        records = UserRecords()
        path = self._file(form.ratings).find()
        groups = self._groups() if self._grouped else None
        if not form.last_film:
            labels: Any = domain.labels
            films = pl.Enum([str(film) for film in labels[0]])
        need = "seconds since 1970, in or after 1995"
        for block in _rows(path, self.version):
            users = 1 + block.codes("userId", range(1, form.last_user + 1))
            if form.last_film:
                items = block.codes("movieId", range(1, form.last_film + 1))
            else:
                items = block.codes("movieId", films, f"a film of {form.films}")
            half_stars = block.frame["rating"].cast(pl.Float64, strict=False) * 2
            is_rating = half_stars.is_between(1, 10) & (half_stars == half_stars.floor())
            if form.last_film:
                is_rating &= half_stars % 2 == 0
            block.refuse(~is_rating, "rating", "stars, at most 5")
            seconds = block.whole_numbers("timestamp", SINCE, 2**32, need)
            if groups is None:
                contexts = (seconds // 86_400 + 3) % 7
            else:
                contexts = groups[users]
                block.refuse(pl.Series(contexts < 0), "userId", f"a user of {form.users}")
            records.add(block, users, items, contexts)
        bound = Bound(domain.shape[0], 1)
        return records.interactions(domain, bound, once=True, truth_public=self.truth_public)

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
        films: set[int] = set()
        for block in read_blocks(self._beside(self._form.films), ("movieId",)):
            numbers = block.whole_numbers("movieId", 1, 2**31 - 1, "a film's number")
            films.update(numbers.tolist())
        return tuple(sorted(films))

    def _groups(self) -> Int[np.ndarray, " users"]:
        """The group of each user by number; −1 where no user has it."""
        form = self._form
        path = self._beside(form.users)
        groups = np.full(form.last_user + 1, -1, np.int64)
        first = ("user", "gender", "age") if self.version == "1m" else ("user", "age", "gender")
        names = (*first, "occupation", "zip")
        for block in _split(path, names, form.separator):
            users = 1 + block.codes("user", range(1, form.last_user + 1))
            gender = block.codes("gender", ("F", "M"))
            if self.version == "1m":
                codes = block.codes("age", tuple(AGES))
                band = np.array(list(AGES.values()))[codes]
            else:
                ages = block.whole_numbers("age", 0, 150, "an age in years")
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


def _rows(path: Path, version: str) -> Iterator[LabelledRows]:
    match version:
        case "1m":
            return _split(path, FIELDS, "::")
        case "100k":
            return read_blocks(path, FIELDS, FIELDS, separator="\t", strip=" \r")
        case _:
            return read_blocks(path, FIELDS)


def _split(path: Path, names: tuple[str, ...], separator: str) -> Iterator[LabelledRows]:
    """Fields between separators of any length."""
    for block in read_lines(path):
        text = block.frame["line"]
        other_width = text.str.count_matches(separator, literal=True) != len(names) - 1
        block.refuse(other_width, "line", separator.join(names))
        fields = text.str.split_exact(separator, len(names) - 1).struct.unnest()
        fields.columns = list(names)
        yield LabelledRows(path, block.lines, fields.select(pl.all().replace("", None)))


# Netflix prize

PARTS = (  # first film, last film and ratings of each of the four files
    (1, 4499, 24_053_764),
    (4500, 9210, 26_982_302),
    (9211, 13367, 22_601_629),
    (13368, 17770, 26_842_812),
)


HOW = (
    "Netflix has withdrawn it; copies go about: save nf_prize_dataset.tar.gz, or a zip archive of the four "
    "files combined_data_1.txt …, in a folder netflix_prize; neither need be unpacked"
)
ARCHIVE = File("netflix_prize", "nf_prize_dataset.tar", also=("training_set.tar",), how=HOW)


@value
class NetflixPrize:
    """100,480,507 ratings of 17,770 films by 480,189 customers: customer, film, day of the week.

    The training set of the Netflix Prize, either as published (`nf_prize_dataset.tar.gz` with
    17,770 files `mv_0000001.txt` … in the `training_set.tar` in it, or these in a folder
    `training_set`) or as the four files `combined_data_1.txt` … that go about. Archives are read as
    they are. The day is that of the date as published, which has neither hour nor time zone. Films
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

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "bennett2007"
    truth_public: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("fan2015",)  # that use it

    @property
    def domain(self) -> Domain:
        """Films by their published numbers, and days of the week."""
        films = PARTS[-1][1]
        labels = (range(1, films + 1), WEEKDAYS)
        return Domain(("item", "context"), (films, len(WEEKDAYS)), labels)

    def files(self) -> tuple[File, ...]:
        """The published archive where it is at hand; else the four files, or the first film's of each."""
        if _find_archive():
            return (ARCHIVE,)
        return tuple(_part(k) for k in range(len(PARTS)))

    def load(self) -> Interactions:
        """The records; a bad line, or a file that is cut, is a ValueError."""
        from tqdm import tqdm

        reader = RatingsReader()
        blocks: list[Ratings] = []
        counts = np.zeros(CUSTOMERS + 1, np.int64)
        total = sum(ratings for _, _, ratings in PARTS)
        bar = tqdm(total=total, desc="ratings", unit_scale=True, leave=False, disable=None)
        with bar:
            sizes = np.zeros(PARTS[-1][1], np.int64)  # by film
            for ratings in _ratings(reader):
                if len(ratings.customers):
                    blocks.append(ratings)
                np.add.at(counts, ratings.customers, 1)
                np.add.at(sizes, ratings.films, 1)
                bar.update(len(ratings.customers))
                if sizes.sum() > total:
                    break  # the rest is not read
        for k, (first, last, need) in enumerate(PARTS):
            size = sizes[first - 1 : last].sum()
            if size != need:
                raise ValueError(
                    f"{_find_archive() or _part(k).find()}: films {first} to {last} have {size:,} "
                    f"ratings; need {need:,}"
                )
        blocks.sort(
            key=lambda ratings: ratings.films[0]
        )  # an archive may have films in any order
        ends = np.cumsum(counts, dtype=np.int64)
        items = np.empty(counts.sum(), np.uint16)
        contexts = np.empty(len(items), np.uint8)
        place = ends - counts
        blocks.reverse()
        while blocks:  # each is let go once its ratings have their places
            kernels.scatter_by_user(*blocks.pop(), place, items, contexts)
        users = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        bound = Bound(self.domain.shape[0], 1)
        return Interactions(
            self.domain,
            sealed(users),
            sealed(items),
            sealed(contexts),
            bound,
            self.truth_public,
            distinct=True,
        )


def _part(k: int) -> File:
    return File(
        "netflix_prize",
        f"combined_data_{k + 1}.txt",
        also=(f"training_set/{_film(PARTS[k][0])}",),
        how=HOW,
        archives=("netflix-prize-data.zip", "archive.zip"),
    )


def _find_archive() -> Path | None:
    try:
        return ARCHIVE.find()
    except FileNotFoundError:
        return None


def _film(number: int) -> str:
    return f"mv_{number:07}.txt"


def _ratings(reader: RatingsReader) -> Iterator[Ratings]:
    """Those of the published archive, of the four files, or of a file a film."""
    archive = _find_archive()
    if archive:
        yield from _archived_ratings(reader, archive)
        return
    films: Iterator[tuple[Path, int, int]]
    for k, (first, last, _) in enumerate(PARTS):
        path = _part(k).find()
        if path.name.startswith("combined"):
            films = iter([(path, first, last)])
        else:
            numbers = range(first, last + 1)
            films = ((sibling_file(path, _film(number)), number, number) for number in numbers)
        for place, low, high in films:
            with opened(place) as (stream, _):
                yield from reader.read(place, stream, low, high)


def _archived_ratings(reader: RatingsReader, archive: Path) -> Iterator[Ratings]:
    """Those of the films of the published archive, each once, in its order."""
    missing = set(range(1, PARTS[-1][1] + 1))
    with opened(archive) as (whole, _):
        for path, stream in tar_members(archive, whole):
            name = re.fullmatch(r"mv_(\d{7})\.txt", path.name)
            if name:
                film = int(name[1])
                if film not in missing:
                    raise ValueError(f"{path}: need films 1 to {PARTS[-1][1]}, each once")
                missing.remove(film)
                yield from reader.read(path, stream, film, film)
    if missing:
        raise ValueError(f"{archive} ends without {_film(min(missing))}")
