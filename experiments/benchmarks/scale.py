"""Benchmark of releases from folders that are larger than memory: rows per second and peak memory, in
separate processes.

The data are 10⁸ synthetic rows of three integers over 10⁸ cells, in twenty Parquet files. For the benchmark
with users, there are 10⁷ users with ten rows each. The files are in the cache of the operating system, so
disks are not measured. The environment variable `WORKBENCH_ROWS` sets another number of rows. Each timed run
starts its threads, and this time counts. Workers of Dask are already running, and have compiled the code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from experiments.benchmarks._timing import (
    at_least,
    at_most,
    in_process,
    once,
    peak_megabytes,
    row,
)
from workbench import DP, Bound, Domain, SparseTable
from workbench.compiled import pa, parquet
from workbench.mechanisms import HighPassFilter
from workbench.owner.scale import Rows, release
from workbench.value import power_of_ten

ROWS = int(float(os.environ.get("WORKBENCH_ROWS", "1e8")))
FILES = 20
DOMAIN = Domain(("origin", "destination", "hour"), (100, 1000, 1000))
MECHANISM = HighPassFilter(DP(1.0), theta=20)

ROWS_A_SECOND = 15e6
WITH_USERS = 12e6
MEGABYTES = 600
TWO_THREADS = 1.5
OF_TWO_THREADS = 0.75
OF_MEMORY = 0.6
ROWS_IN_MEMORY = 2 * 10**8  # a table of more takes over 10 GB


class Spent(NamedTuple):
    """Time and peak memory of a separate process."""

    seconds: float
    megabytes: float  # at its peak, with everything that is loaded


def main():
    """Return the rows of the table: one core, two threads, two workers of Dask, users, and the table in
    memory if it fits.
    """
    with TemporaryDirectory() as home:
        folder = Path(home) / "trips"
        folder.mkdir()
        for number in range(FILES):
            write_rows(folder / f"{number:03}.parquet", number, ROWS // FILES)
        write_rows(Path(home) / "few.parquet", 0, 10_000)
        one = _spent(out_of_core, home, cores=1)
        two = _spent(out_of_core, home, workers=2)
        dask = None
        if find_spec("distributed"):
            from distributed import LocalCluster

            alone = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
            with LocalCluster(host="127.0.0.1", **alone) as cluster:
                dask = _spent(on_dask, home, scheduler=cluster.scheduler_address)
        users = _spent(out_of_core, home, user="user", cores=1)
        fits = ROWS <= ROWS_IN_MEMORY
        whole = _spent(in_memory, home, cores=1) if fits else None
    what = f"{power_of_ten(ROWS)} rows, filtered"
    fast = ROWS / one.seconds
    memory = at_most(one.megabytes, MEGABYTES, " MB")
    of_users = _at_least(ROWS / users.seconds, WITH_USERS)
    return [
        row(f"{what}, one core", _rate(one), **_at_least(fast, ROWS_A_SECOND)),
        row(f"{what}, one core: peak memory", f"{one.megabytes:.0f} MB", **memory),
        _beside(f"{what}, two threads", two, one, "one core", TWO_THREADS),
        _beside(f"{what}, two workers of Dask", dask, two, "two threads", OF_TWO_THREADS),
        row(f"{what}, one core, users cut to 4 cells", _rate(users), **of_users),
        _beside(f"{what}, one core", one, whole, "SparseTable.read", OF_MEMORY),
    ]


def _beside(what: str, ours: Spent | None, peer: Spent | None, name: str, least: float) -> dict:
    """Return a table row that compares two runs. It says "not run" without Dask, or if the table is too large
    for memory.
    """
    if ours is None or peer is None:
        return row(what, "not run")
    text = f"{name}, {peer.megabytes:.0f} MB: {_rate(peer)}"
    return row(what, _rate(ours), text, **at_least(peer.seconds / ours.seconds, least))


def _rate(spent: Spent) -> str:
    return f"{ROWS / spent.seconds / 1e6:.1f} M rows/s"


def _at_least(rate: float, limit: float) -> dict:
    return dict(limit=f"≥ {limit / 1e6:g} M rows/s", met=rate >= limit)


def _spent(step: Callable, home: str, **how) -> Spent:
    return Spent(*json.loads(in_process(measure, step.__name__, home, **how)))


def measure(step: str, home: str, cores: int | None = None, **how) -> None:
    """Run a step on few rows, so that its code is compiled, and then on all rows. Print the seconds of the
    second run and the peak memory.
    """
    if cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    seconds = []
    for rows in ("few.parquet", "trips"):
        seconds.append(once(partial(globals()[step], f"{home}/{rows}", home, **how))[0])
    print(json.dumps([seconds[1], peak_megabytes()]))


def out_of_core(path: str, home: str, user: str | None = None, workers: int = 1) -> None:
    """Make a release from a folder, with temporary files."""
    rows = Rows.read(path, DOMAIN, Bound(4, 1) if user else Bound(), user=user)
    release(MECHANISM, rows, workers=workers, scratch=home)


def on_dask(path: str, home: str, scheduler: str) -> None:
    """Make a release from a folder, by the workers of a Dask scheduler."""
    from workbench.owner.scale.dask import connect

    rows = Rows.read(path, DOMAIN, Bound())
    with connect(scheduler) as executor:
        release(MECHANISM, rows, executor=executor, scratch=home)


def in_memory(path: str, home: str) -> None:
    """Make a release from the whole table in memory."""
    MECHANISM(SparseTable.read(path, DOMAIN, Bound()))


def write_rows(path: Path, seed: int, size: int) -> None:
    """Write a file of synthetic rows."""
    rng = np.random.default_rng(seed)
    columns = {
        name: rng.integers(0, n, size).astype(np.int32)
        for name, n in zip(DOMAIN.attributes, DOMAIN.shape, strict=True)
    }
    columns["user"] = rng.integers(0, max(ROWS // 10, 1), size)
    parquet.write_table(pa.table(columns), path, row_group_size=2**20)
