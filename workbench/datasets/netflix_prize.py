"""NetflixPrize: who rated which film on which day of the week, 1998 to 2005."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.datasets.readers import kernels
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


class FilmFile(NamedTuple):
    """A file, and the films that it must hold."""

    path: Path
    first: int
    last: int


@value
class NetflixPrize:
    """100,480,507 ratings of 17,770 films by 480,189 customers: customer, film, day of the week.

    The training set of the Netflix Prize, either as published (17,770 files `mv_0000001.txt` …
    in a folder `training_set`) or as the four files `combined_data_1.txt` … that go about. The
    day is that of the date as published, which has neither hour nor time zone. Films are the
    published numbers 1 to 17,770, users the published numbers of customers. The rating itself is
    not kept.

    One unit is one customer with all their ratings. Nobody rates a film twice, which loading
    enforces, so that a customer moves at most 17,770 counts by one each. Every film and every
    rating must be there: a file that is cut anywhere is refused.

    Takes 1.3 GB and well under a minute. Table 4 of Fan & Jin prints rounded numbers, 17,700 films
    and at most 17,000 ratings a customer.

    Terms: research use, no redistribution; cite. No longer published by Netflix. Source: Bennett
    and Lanning, KDD Cup and Workshop 2007.
    """

    cite: ClassVar[str] = "bennett2007"
    truth_public: ClassVar[bool] = True

    @property
    def domain(self) -> Domain:
        """Films by their published numbers, and days of the week."""
        films = PARTS[-1][1]
        labels = (range(1, films + 1), WEEKDAYS)
        return Domain(("item", "context"), (films, len(WEEKDAYS)), labels)

    def files(self) -> tuple[File, ...]:
        """The four files, or the first film's of each part."""
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
            for k, (first, last, need) in enumerate(PARTS):
                size = 0
                for file in _film_files(k):
                    for ratings in reader.read(*file):
                        blocks.append(ratings)
                        counts += np.bincount(ratings.customers, minlength=len(counts))
                        size += len(ratings.customers)
                        bar.update(len(ratings.customers))
                if size != need:
                    raise ValueError(
                        f"{file.path} ends after {size:,} ratings of films {first} to {last}; "
                        f"need {need:,}"
                    )
        ends = np.cumsum(counts, dtype=np.int64)
        items = np.empty(counts.sum(), np.uint16)
        contexts = np.empty(len(items), np.uint8)
        place = ends - counts
        blocks.reverse()
        while blocks:  # each is let go once its ratings have their places
            kernels.scatter_by_user(*blocks.pop(), place, items, contexts)
        users = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        columns = map(sealed, (users, items, contexts))
        bound = Bound(self.domain.shape[0], 1)
        return Interactions(self.domain, *columns, bound, self.truth_public, distinct=True)


def _part(k: int) -> File:
    return File(
        "netflix_prize",
        f"combined_data_{k + 1}.txt",
        also=(f"training_set/{_film(PARTS[k][0])}",),
        how="Netflix has withdrawn it; copies of the training set go about, as 17,770 files "
        "mv_0000001.txt … in a folder training_set, or as four files combined_data_1.txt …",
    )


def _film(number: int) -> str:
    return f"mv_{number:07}.txt"


def _film_files(k: int) -> Iterator[FilmFile]:
    """The files of a part: one, or one a film."""
    first, last, _ = PARTS[k]
    path = _part(k).find()
    if path.name.startswith("combined"):
        yield FilmFile(path, first, last)
    else:
        for film in range(first, last + 1):
            yield FilmFile(sibling_file(path, _film(film)), film, film)
