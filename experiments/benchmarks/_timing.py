"""How benchmarks measure: in turns, several times, in processor time of one process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from statistics import median
from time import process_time_ns

import numpy as np
import pandas as pd

from workbench import Bound, SparseTable
from workbench.domain import Domain

COLUMNS = ["what", "ours", "peer", "ratio", "limit", "met"]


def seconds_in_turns(*ways: Callable, repeat: int, cold: Collection = ()) -> list[list[float]]:
    """Processor seconds of each way, `repeat` times; they take turns.

    Right before each timed run the way runs once without being timed, so that nothing is compiled
    and no table made, and caches hold what it left there and not what another way did. Ways in
    `cold` are too slow for that.
    """
    spent: list[list[float]] = [[] for _ in ways]
    for _ in range(repeat):
        for way, own in zip(ways, spent, strict=True):
            if way not in cold:
                way()
            start = process_time_ns()
            way()
            own.append((process_time_ns() - start) / 1e9)
    return spent


def median_seconds(*ways: Callable, repeat: int, cold: Collection = ()) -> list[float]:
    """Median processor seconds of each way, out of `turns`."""
    return [median(own) for own in seconds_in_turns(*ways, repeat=repeat, cold=cold)]


def sparse_table(n: int, m: int, mean: int = 100) -> SparseTable:
    """A table of about n non-empty cells among m, values around `mean`, and always the same."""
    rng = np.random.default_rng(0)
    keys = np.sort(rng.integers(0, m, n))
    keys = keys[np.diff(keys, prepend=-1) > 0]
    counts = np.maximum(1, np.rint(rng.normal(mean, mean / 5, keys.size))).astype(np.int64)
    return SparseTable(Domain(("cell",), (m,)), keys, counts, Bound(), truth_public=True)


def format_seconds(x: float) -> str:
    """A time in words."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if x >= size:
            return f"{x / size:.3g} {unit}"
    return f"{x * 1e9:.3g} ns"


def power_of_ten(x: float) -> str:
    """10⁷ for 1e7: powers of ten in words."""
    return "10" + str(round(np.log10(x))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def to_frame(rows: list[dict]) -> pd.DataFrame:
    """The rows as `workbench bench` shows them; what is not said is empty."""
    return pd.DataFrame(rows, columns=COLUMNS)


def print_results(main: Callable[[], pd.DataFrame]) -> None:
    """Print the machine and the table: a benchmark run by itself."""
    from workbench.cli.bench import machine

    print(machine())
    with pd.option_context("display.width", 200, "display.max_colwidth", 90):
        print(main().fillna("").to_string(index=False, float_format="{:.3g}".format))
