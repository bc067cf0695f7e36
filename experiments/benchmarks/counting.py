"""Counting rows into cells: frames, Parquet and CSV files, against limits and against polars."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    format_seconds,
    power_of_ten,
    row,
)
from workbench import Bound, Domain, SparseTable
from workbench.compiled import pa, parquet, pd

FRAME_ROWS = 10**7
PARQUET_ROWS = 2 * 10**7
CSV_ROWS = 10**7  # 10⁸ take a disk of 2 GB, and minutes
USERS = 10**6
SHAPE = (100, 1000, 1000)
NAMES = ("origin", "destination", "hour")

FRAME_SORTS = 12
PARQUET_SORTS = 80
PARQUET_GIGABYTES = 1
USER_SORTS = 240
USER_GIGABYTES = 2
POLARS = 1.5  # times as long as polars, at most

_READ = """
import json, resource, sys, time
from workbench import Bound, Domain, SparseTable
path, user = sys.argv[1], sys.argv[2] or None
domain = Domain(("origin", "destination", "hour"), (100, 1000, 1000))
start, clock = time.process_time(), time.perf_counter()
SparseTable.read(path, domain, Bound(10, 1), user=user)
print(json.dumps([time.process_time() - start, time.perf_counter() - clock,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""
_POLARS = """
import json, resource, sys, time
import polars as pl
start, clock = time.process_time(), time.perf_counter()
rows = pl.scan_csv(sys.argv[1]).group_by("origin", "destination", "hour").len()
rows.collect(engine="streaming")
print(json.dumps([time.process_time() - start, time.perf_counter() - clock,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


class Spent(NamedTuple):
    """What a process of its own took."""

    processor: float  # seconds, of all threads
    wall: float
    peak: float  # in kB, with everything that is loaded


def main():
    """Frames; and files, each in a process of their own, so that its peak is theirs."""
    frame = pd.DataFrame(columns(FRAME_ROWS))
    ours, numbers = timing.median_seconds(
        partial(SparseTable.from_frame, frame, Domain(NAMES, SHAPE), Bound()),
        partial(np.sort, np.random.default_rng(1).integers(0, 10**8, FRAME_ROWS)),
        repeat=3,
    )
    peer = f"np.sort of as many {format_seconds(numbers)}"
    what = f"{power_of_ten(FRAME_ROWS)} rows of 3 integers"
    limit = at_most_sorts(ours, FRAME_SORTS)
    rows = [row(f"from_frame, {what}", format_seconds(ours), peer, ours / numbers, **limit)]
    del frame
    with TemporaryDirectory() as folder:
        rows += read_parquet(Path(folder) / "trips.parquet")
        rows += read_csv(Path(folder) / "trips.csv")
    return timing.to_frame(rows)


def read_parquet(path: Path) -> list[dict]:
    """Without users, and with."""
    write_parquet(path)
    rows = []
    for user, sorts, gigabytes in (
        ("", PARQUET_SORTS, PARQUET_GIGABYTES),
        ("user", USER_SORTS, USER_GIGABYTES),
    ):
        spent = in_process(_READ, path, user)
        what = f"read, {PARQUET_ROWS:,} rows of Parquet{', cut by user' if user else ''}"
        limit = at_most_sorts(spent.wall, sorts)
        rows.append(row(what, format_seconds(spent.wall), **limit))
        size = spent.peak / 1e6
        rows.append(row("… memory", f"{size:.2f} GB", **at_most(size, gigabytes, " GB")))
    return rows


def read_csv(path: Path) -> list[dict]:
    """Beside polars, which takes every core, and the processor time of both."""
    pd.DataFrame(columns(CSV_ROWS)).to_csv(path, index=False)
    ours = in_process(_READ, path, "")
    peer = in_process(_POLARS, path)
    ratio = ours.wall / peer.wall
    what = f"read, {power_of_ten(CSV_ROWS)} rows of CSV"
    scan = f"polars, scan_csv and group_by {format_seconds(peer.wall)}"
    processor = f"{format_seconds(ours.processor)} against {format_seconds(peer.processor)}"
    return [
        row(what, format_seconds(ours.wall), scan, ratio, **at_most(ratio, POLARS, "×")),
        row("… processor time", processor, ratio=ours.processor / peer.processor),
    ]


def columns(rows: int) -> dict[str, np.ndarray]:
    """Even rows, of which hardly any two share a cell: the most cells there can be."""
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, n, rows) for name, n in zip(NAMES, SHAPE, strict=True)}


def write_parquet(path: Path) -> None:
    """Row groups of a million rows, with users who have about 20 each."""
    users = np.random.default_rng(2).integers(0, USERS, PARQUET_ROWS)
    table = pa.table({**columns(PARQUET_ROWS), "user": users})
    parquet.write_table(table, path, row_group_size=2**20)


def in_process(code: str, *arguments: object) -> Spent:
    """Run in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Spent(*json.loads(done.stdout))


if __name__ == "__main__":
    timing.print_results(main)
