"""Counting rows into cells: frames, Parquet and CSV files, against limits and against polars.

Rows of Parquet are counted without users, and cut by users who are integers or text.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import polars as pl

from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    compared,
    format_seconds,
    in_process,
    median_seconds,
    peak_megabytes,
    row,
)
from workbench import Bound, Domain, SparseTable
from workbench.compiled import pd
from workbench.value import power_of_ten

FRAME_ROWS = 10**7
PARQUET_ROWS = 2 * 10**7
CSV_ROWS = 10**7  # 10⁸ take a disk of 2 GB, and minutes
USERS = 10**6
SHAPE = (100, 1000, 1000)
NAMES = ("origin", "destination", "hour")

FRAME_SORTS = 12
PARQUET = {"": (80, 1), "user": (240, 2), "name": (240, 2)}  # sorts and GB
POLARS = 1.5  # times as long as polars, at most
POLARS_OF_NAMES = 3


class Spent(NamedTuple):
    """What a process of its own took."""

    processor: float  # seconds, of all threads
    wall: float
    peak: float  # in MB, with everything that is loaded


def main():
    """Frames; and files, each in a process of their own, so that its peak is theirs."""
    frame = pd.DataFrame(columns(FRAME_ROWS))
    count = partial(SparseTable.from_frame, frame, Domain(NAMES, SHAPE), Bound())
    sort = partial(np.sort, np.random.default_rng(1).integers(0, 10**8, FRAME_ROWS))
    what = f"from_frame, {power_of_ten(FRAME_ROWS)} rows of 3 integers"
    ours, peer = median_seconds(count, sort, repeat=3)
    limit = at_most_sorts(ours, FRAME_SORTS)
    rows = [compared(what, ours, peer, "np.sort of as many", **limit)]
    del frame, count
    with TemporaryDirectory() as folder:
        rows += read_parquet(f"{folder}/trips.parquet")
        rows += read_csv(f"{folder}/trips.csv")
    return rows


def read_parquet(path: str) -> list[dict]:
    """Without and with users. Names are also compared with polars."""
    users = pl.Series(np.random.default_rng(2).integers(0, USERS, PARQUET_ROWS))
    kinds = {"user": users, "name": "user-" + users.cast(pl.String)}
    table = pl.DataFrame(columns(PARQUET_ROWS) | kinds)
    table.head(1000).write_parquet(few := path.replace("trips", "few"))
    table.write_parquet(path, row_group_size=2**20)
    rows = []
    for user, (sorts, gigabytes) in PARQUET.items():
        _spent(read, few, user)  # compiles
        spent = _spent(read, path, user)
        what = f"read, {PARQUET_ROWS:,} rows of Parquet{f', cut by {user}' if user else ''}"
        limit = at_most_sorts(spent.wall, sorts)
        rows.append(row(what, format_seconds(spent.wall), **limit))
        size = spent.peak / 1e3
        rows.append(row("… memory", f"{size:.2f} GB", **at_most(size, gigabytes, " GB")))
    return [*rows, _beside_polars("… time", spent, path, "name", POLARS_OF_NAMES)[0]]


def read_csv(path: str) -> list[dict]:
    """Beside polars, which takes every core, and the processor time of both."""
    pd.DataFrame(columns(CSV_ROWS)).to_csv(path, index=False)
    what = f"read, {power_of_ten(CSV_ROWS)} rows of CSV"
    return _beside_polars(what, _spent(read, path, ""), path, "", POLARS)


def _beside_polars(what: str, ours: Spent, path: str, user: str, most: float) -> list[dict]:
    peer = _spent(group_by_polars, path, user)
    ratio = ours.wall / peer.wall
    limit = dict(ratio=ratio, **at_most(ratio, most, "×"))
    return [
        compared(what, ours.wall, peer.wall, "polars, scan and group_by", **limit),
        compared("… processor time", ours.processor, peer.processor, "polars"),
    ]


def columns(rows: int) -> dict[str, np.ndarray]:
    """Even rows, of which hardly any two share a cell: the most cells there can be."""
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, n, rows) for name, n in zip(NAMES, SHAPE, strict=True)}


def _spent(step, path: str, user: str) -> Spent:
    return Spent(*json.loads(in_process(_measure, step.__name__, path, user)))


def _measure(step: str, path: str, user: str) -> None:
    start, clock = process_time(), perf_counter()
    globals()[step](path, user)
    print(json.dumps([process_time() - start, perf_counter() - clock, peak_megabytes()]))


def read(path: str, user: str) -> None:
    """As the workbench reads."""
    SparseTable.read(path, Domain(NAMES, SHAPE), Bound(10, 1), user=user or None)


def group_by_polars(path: str, user: str) -> None:
    """The same counts by polars."""
    scan = pl.scan_csv if Path(path).suffix == ".csv" else pl.scan_parquet
    scan(path).group_by(*filter(None, [user]), *NAMES).len().collect(engine="streaming")
