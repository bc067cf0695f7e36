"""Parsing ratings in Netflix's combined format, against polars' ragged lazy scan, and pandas."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_least, format_seconds, power_of_ten, row
from workbench.datasets.netflix_ratings import (
    CUSTOMERS,
    FIRST_DAY,
    LAST_DAY,
    Ratings,
    RatingsReader,
)

RATINGS = 10**7
FILMS = 1770
POLARS = 1  # times as long as ours, at least


def main():
    """Time by the clock."""
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "combined_data_1.txt")
        check(path)
        by_pandas = partial(pandas, path)
        ours, polars_seconds, pandas_seconds = timing.median_seconds(
            partial(parse, path), partial(polars, path), by_pandas, repeat=3, cold=(by_pandas,)
        )
    what = f"{power_of_ten(RATINGS)} ratings: customer, film, day of the week"
    text = f"{format_seconds(ours)}, {format_seconds(ours, RATINGS)} a rating"
    scan = f"polars, ragged lazy scan {format_seconds(polars_seconds)}"
    limit = at_least(polars_seconds / ours, POLARS)
    usual = f"pandas {format_seconds(pandas_seconds)}"
    return timing.to_frame(
        [
            row(f"{what}, every field checked", text, scan, **limit),
            row("…", text, usual, pandas_seconds / ours),
        ]
    )


def write(path: Path) -> Path:
    """Films of Zipf's sizes, each rated by different customers on random days."""
    rng = np.random.default_rng(0)
    sizes = 1 / np.arange(10, FILMS + 10)
    sizes = np.rint(sizes * (RATINGS / sizes.sum())).astype(int)
    sizes[0] += RATINGS - sizes.sum()
    days = np.arange(FIRST_DAY, np.datetime64(LAST_DAY) + np.timedelta64(1, "D")).astype(str)
    with path.open("w") as file:
        for film, size in enumerate(rng.permutation(sizes), 1):
            customers = rng.choice(CUSTOMERS, size, replace=False) + 1
            stars = rng.integers(1, 6, size)
            day = rng.choice(days, size)
            rows = zip(customers.tolist(), stars.tolist(), day.tolist(), strict=True)
            file.write(f"{film}:\n" + "".join(f"{c},{s},{d}\n" for c, s, d in rows))
    return path


def parse(path: Path) -> list[Ratings]:
    """Ours, as `NetflixPrize.load` does it before the records go to their users."""
    with path.open("rb") as stream:
        return list(RatingsReader().read(path, stream, 1, FILMS))


def polars(path: Path):
    """Three text columns of which a film's line fills one; films filled forward."""
    import polars as pl

    rows = pl.scan_csv(
        path,
        has_header=False,
        schema={"user": pl.String, "rating": pl.UInt8, "day": pl.Date},
        truncate_ragged_lines=True,
        missing_columns="insert",
    )
    film = pl.when(pl.col("rating").is_null()).then(pl.col("user").str.strip_suffix(":"))
    rows = rows.with_columns(film=film.cast(pl.UInt16).forward_fill())
    weekday = pl.col("day").dt.weekday().cast(pl.UInt8)
    ratings = rows.filter(pl.col("rating").is_not_null())
    return ratings.select(pl.col("user").cast(pl.Int32), "film", weekday).collect()


def pandas(path: Path):
    """The usual recipe."""
    import pandas as pd

    rows = pd.read_csv(path, header=None, names=["user", "rating", "day"], dtype={"user": str})
    head = rows["rating"].isna()
    film = rows["user"].where(head).str.rstrip(":").ffill().astype(np.uint16)
    rows = rows[~head]
    weekday = pd.to_datetime(rows["day"]).dt.day_of_week
    return rows["user"].astype(np.int32), film[~head], weekday


def check(path: Path) -> None:
    """All ways find the same."""
    users, films, days = (np.concatenate(column) for column in zip(*parse(path), strict=True))
    for theirs, first_weekday in ((polars(path).get_columns(), 1), (pandas(path), 0)):
        np.testing.assert_array_equal(users, theirs[0])
        np.testing.assert_array_equal(films + 1, theirs[1])
        np.testing.assert_array_equal(days + first_weekday, theirs[2])


if __name__ == "__main__":
    timing.print_results(main)
