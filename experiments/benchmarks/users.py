"""Rows of users from a file to a release that protects users: seconds on the clock and memory.

20 million rows of Parquet, of a million users, who are integers or text, and of whom each keeps ten
cells; in a process of its own, after everything was compiled on a little.
Reading is compared with a group-by of polars over the same columns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_most, at_most_sorts, format_seconds, row
from workbench import DP, Bound, Domain, SparseTable
from workbench.mechanisms import HighPassFilter

ROWS = 20_000_000
USERS = 1_000_000
DOMAIN = Domain(("home", "work", "hour"), (1000, 1000, 100))
SORTS = 240
GIGABYTES = 2
POLARS = 3  # times as long as polars takes, where users are text


def main():
    """Seconds and GB, for each kind of user."""
    rows = []
    for kind in ("integers", "text"):
        with tempfile.TemporaryDirectory() as home:
            path = str(Path(home) / "trips.parquet")
            _in_a_process("write_rows", path, kind, ROWS)
            measured = json.loads(_in_a_process("measure", path))
            peer = float(_in_a_process("group_by_polars", path))
        what = f"{ROWS:,} rows of {USERS:,} users ({kind}), read, cut and released"
        seconds = measured["seconds"]
        memory = measured["memory"]
        rows += [
            row(f"{what}: time", f"{seconds:.3g} s", **at_most_sorts(seconds, SORTS)),
            row(
                f"{what}: peak memory", f"{memory:.3g} GB", **at_most(memory, GIGABYTES, " GB")
            ),
        ]
    times = format_seconds(measured["read"]), f"polars {format_seconds(peer)}"
    ratio = measured["read"] / peer
    rows.append(row("… reading of text alone", *times, ratio, **at_most(ratio, POLARS, "×")))
    return timing.to_frame(rows)


def _in_a_process(step: str, *arguments: str | int) -> str:
    """What a function of this file prints in a process of its own."""
    call = f"b.{step}({', '.join(map(repr, arguments))})"
    command = [sys.executable, "-c", f"from experiments.benchmarks import users as b; {call}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_rows(path: str, kind: str, size: int) -> None:
    """Write made-up rows, and a little file of the same kind."""
    rng = np.random.default_rng(0)
    for name, n in ((path, size), (path.replace(".parquet", ".little.parquet"), 1000)):
        users = pl.Series("user", rng.integers(0, USERS, n))
        if kind == "text":
            users = pl.Series("user", "user-" + users.cast(pl.String))
        cells = zip(DOMAIN.attributes, DOMAIN.shape, strict=True)
        columns = {name: rng.integers(0, m, n).astype(np.int16) for name, m in cells}
        pl.DataFrame({"user": users} | columns).write_parquet(name)


def measure(path: str) -> None:
    """Print seconds and GB."""
    import resource

    for file in path.replace(".parquet", ".little.parquet"), path:
        start = perf_counter()
        table = SparseTable.read(file, DOMAIN, Bound(10, 1), user="user")
        read = perf_counter() - start
        HighPassFilter(DP(1.0), size=100_000)(table)
        seconds = perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps({"seconds": seconds, "read": read, "memory": memory}))


def group_by_polars(path: str) -> None:
    """Print seconds."""
    start = perf_counter()
    rows = pl.scan_parquet(path).group_by("user", *DOMAIN.attributes).len()
    rows.collect(engine="streaming")
    print(perf_counter() - start)


if __name__ == "__main__":
    timing.print_results(main)
