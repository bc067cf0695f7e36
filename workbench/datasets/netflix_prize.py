"""NetflixPrize: who rated which film on which day of the week, 1998 to 2005."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import UInt8

from workbench.datasets.delimited import opened
from workbench.datasets.published import SUFFIXES, File
from workbench.domain import Domain
from workbench.table import Bound
from workbench.value import sealed, value

if TYPE_CHECKING:
    from workbench.interactions import Interactions

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CUSTOMERS = 2_649_429  # the largest number of one; most numbers are nobody's
PARTS = (  # first film, last film and ratings of each of the four files
    (1, 4499, 24_053_764),
    (4500, 9210, 26_982_302),
    (9211, 13367, 22_601_629),
    (13368, 17770, 26_842_812),
)
FIRST, LAST = "1998-10-01", "2005-12-31"  # the time that the publisher says ratings are of

_SIZE = 1 << 24  # bytes of text parsed at once
_NEEDS = (
    "",
    f"a film's number and a colon, or customer,rating,date ({LAST})",
    "",
    f"a customer from 1 to {CUSTOMERS}",
    "a rating from 1 to 5",
    f"a day (YYYY-MM-DD) from {FIRST} to {LAST}",
    "a customer who has not rated this film before",
)


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

        from workbench.datasets import kernels
        from workbench.interactions import Interactions

        days, seen, scratch = date_tables(), customer_bits(), empty_columns()
        blocks, counts = [], np.zeros(CUSTOMERS + 1, np.int32)
        total = sum(need for *_, need in PARTS)
        bar = tqdm(total=total, desc="ratings", unit_scale=True, leave=False, disable=None)
        with bar:
            for paths, first, end, need in _sources():
                start, found = first, 0
                for path, stop in paths:
                    movie = -start
                    for at, text, size in text_pieces(path):
                        n, movie, bad, what = kernels.parse_ratings(
                            text, size, movie, stop, *days, CUSTOMERS, seen, *scratch
                        )
                        if bad >= 0:
                            _refuse(path, at, text, size, bad, what, movie, stop)
                        blocks.append(tuple(column[:n].copy() for column in scratch))
                        kernels.count_users(blocks[-1][0], counts)
                        found += n
                        bar.update(n)
                    if movie != stop:
                        raise ValueError(f"{path} ends before film {_next(movie)} of {stop}")
                    start = stop + 1
                if found != need:
                    raise ValueError(
                        f"{path} ends after {found:,} ratings of films {first} to {end}; "
                        f"need {need:,}"
                    )
        place = np.cumsum(counts, dtype=np.int64) - counts
        items = np.empty(counts.sum(), np.uint16)
        contexts = np.empty(len(items), np.uint8)
        for block in _popped(blocks):
            kernels.scatter_by_user(*block, place, items, contexts)
        users = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        bound, kept = Bound(self.domain.shape[0], 1), map(sealed, (users, items, contexts))
        return Interactions(self.domain, *kept, bound, self.truth_public, distinct=True)


def empty_columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Room for customers, films and days of as many ratings as a piece of text can hold."""
    most = _SIZE // 15 + 1  # a rating takes as many bytes, or more
    return np.empty(most, np.int32), np.empty(most, np.uint16), np.empty(most, np.uint8)


def customer_bits() -> UInt8[np.ndarray, " bytes"]:
    """A bit for each customer."""
    return np.zeros(CUSTOMERS // 8 + 1, np.uint8)


def _popped(blocks: list) -> Iterator[tuple]:
    """Hands the blocks out in their order, and lets each go."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


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


def _sources() -> Iterator[tuple[list[tuple[Path, int]], int, int, int]]:
    """Of each part: its files with the last film of each, its films, how many ratings."""
    for k, (first, end, need) in enumerate(PARTS):
        path = _part(k).find()
        if path.name.startswith("combined"):
            yield [(path, end)], first, end, need
        else:
            films = range(first, end + 1)
            yield [(sibling_file(path, _film(film)), film) for film in films], first, end, need


def sibling_file(path: Path, name: str) -> Path:
    """The file `name`, compressed or not, in the folder of another."""
    for suffix in (path.suffix.removesuffix(".txt"), *SUFFIXES):
        if (found := path.parent / (name + suffix)).is_file():
            return found
    raise FileNotFoundError(f"no {name} (plain, .gz, .xz or .zip) in {path.parent}")


def text_pieces(path: Path) -> Iterator[tuple[int, UInt8[np.ndarray, " bytes"], int]]:
    """The file in pieces of whole lines: where each begins, its bytes and some more, its length.

    The array is the same each time, filled anew.
    """
    buffer, start, held = np.empty(_SIZE + 32, np.uint8), 0, 0
    with opened(path) as (stream, _):
        while True:
            got = stream.readinto(memoryview(buffer)[held:_SIZE])
            if not got:
                if held:  # the last line lacks its end
                    buffer[held] = 10
                    yield start, buffer, held + 1
                return
            held += got
            back = buffer[:held][::-1][:4096] == 10  # lines are short
            if not back.any():
                if held < 4096:
                    continue
                buffer[held] = 10
                yield start, buffer, held  # what is no line is refused where it is parsed
                raise ValueError(f"{path} has lines of more than 4,096 characters")
            whole = held - int(back.argmax())
            yield start, buffer, whole
            start, held = start + whole, held - whole
            buffer[:held] = buffer[whole : whole + held].copy()


def _refuse(path, start, text, size, bad, what, movie, stop) -> None:
    line, found = 1, text[bad:size].tobytes().partition(b"\n")[0]
    with opened(path) as (stream, _):
        left = start + bad
        while left and (chunk := stream.read(min(left, _SIZE))):
            line, left = line + chunk.count(b"\n"), left - len(chunk)
    found = found.decode(errors="replace").rstrip("\r")[:80]
    need = _NEEDS[what]
    if what == 2:
        need = f"the film {_next(movie)} and a colon" if movie < stop else "no more films"
    raise ValueError(f"{path}, line {line}: found {found!r}, need {need}")


def _next(movie: int) -> int:
    return movie + 1 if movie > 0 else -movie


def date_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How each day is written, "2005-12-" and "31", as numbers, and its weekday, Monday 0.

    Days stand at (last digit of the year)·372 + (month − 1)·31 + day − 1; no other text fits.
    """
    days = np.arange(FIRST, np.datetime64(LAST) + 1, dtype="datetime64[D]")
    months = days.astype("datetime64[M]")
    place = months.astype(int) % 120 * 31 + (days - months).astype(int)
    written = days.astype("S10").view(np.uint8).reshape(-1, 10)
    out = np.zeros(3720, "<u8"), np.zeros(3720, "<u2"), np.zeros(3720, np.uint8)
    out[0][place] = np.ascontiguousarray(written[:, :8]).view("<u8")[:, 0]
    out[1][place] = np.ascontiguousarray(written[:, 8:]).view("<u2")[:, 0]
    out[2][place] = (days.astype(int) + 3) % 7
    return out
