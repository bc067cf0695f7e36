"""NetflixPrize: who rated which film on which day of the week, 1998 to 2005."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers import kernels
from workbench.datasets.readers.compressed import opened, tar_members
from workbench.datasets.readers.netflix_ratings import CUSTOMERS, Ratings, RatingsReader
from workbench.datasets.readers.published import File, sibling_file
from workbench.datasets.readers.user_records import WEEKDAYS
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.table import Bound
from workbench.value import sealed, value

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
