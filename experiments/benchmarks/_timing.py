"""Functions that measure time and memory for benchmarks. Calls that are compared take turns, several times,
and their time is measured by the clock.

Seconds differ between machines. So a limit on time is a ratio to another method, or a number of sorts that
are timed in the same run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from math import exp
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np

from workbench.compiled import pd, project_folder
from workbench.figures import recorded

COLUMNS = ["what", "ours", "peer", "ratio", "limit", "met"]


def seconds_in_turns(
    *calls: Callable, repeat: int, cold: Collection[Callable] = ()
) -> list[list[float]]:
    """Time several calls in turns, `repeat` times each. Return a list of seconds by the clock for each call.

    Before each timed run, the call runs once without being timed. So nothing is compiled during the timed
    run, and the caches contain what this call left there, instead of another one. Calls in `cold` are too
    slow for this, and have no such run.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeat):
        for call, seconds in zip(calls, times, strict=True):
            if call not in cold:
                call()
            start = perf_counter_ns()
            call()
            seconds.append((perf_counter_ns() - start) / 1e9)
    return times


def median_seconds(
    *calls: Callable, repeat: int, cold: Collection[Callable] = ()
) -> list[float]:
    """Time several calls in turns (see `seconds_in_turns`), and return the median seconds of each call."""
    return [median(times) for times in seconds_in_turns(*calls, repeat=repeat, cold=cold)]


@cache
def _seconds_of_a_sort() -> float:
    values = np.random.default_rng(0).integers(0, 2**62, 10**6)
    return min(seconds_in_turns(partial(np.sort, values, kind="stable"), repeat=9)[0])


def at_most_sorts(seconds: float, sorts: float) -> dict[str, Any]:
    """Return the cells of a table row for a limit on time: at most `sorts` times a stable sort of 10⁶
    integers on one thread.
    """
    return at_most(seconds / _seconds_of_a_sort(), sorts, " sorts of 10⁶")


def once(call: Callable) -> tuple[float, Any]:
    """Make one call. Return its seconds by the clock, and its result."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def in_process(
    step: Callable,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    **how: object,
) -> str:
    """Run a function of a benchmark or figure in a separate process, and return what it prints."""
    call = f"import {step.__module__} as b; b.{step.__name__}(*{arguments!r}, **{how!r})"
    command = [sys.executable, "-c", call]
    own = dict(cwd=project_folder(), env=os.environ | (environment or {}))
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **own).stdout


def peak_megabytes() -> float:
    """Return the largest memory of this process since it began. The module `resource` would also count memory
    of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def peak_bytes(call: Callable) -> tuple[int, Any]:
    """Make a call. Return the largest memory that it uses at once, and its result."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    result = call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before, result


def numpy_geometric(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Add two-sided geometric noise by the usual method, the difference of two vectors of numpy's geometric
    numbers.
    """
    rng = np.random.default_rng()
    p = 1 - exp(-epsilon)
    return values + (rng.geometric(p, values.shape) - rng.geometric(p, values.shape))


def format_seconds(seconds: float, per: float = 1) -> str:
    """Return a time as text. With `per`, it is the time for each of so many things."""
    seconds = seconds / per
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def row(what: str, ours=None, peer=None, ratio=None, limit=None, met=None) -> dict[str, Any]:
    """Return one row of a benchmark's table. Missing cells are empty."""
    return dict(what=what, ours=ours, peer=peer, ratio=ratio, limit=limit, met=met)


def at_most(value: float, limit: float, unit: str = "") -> dict[str, Any]:
    """Return the cells of a table row for an upper limit on a value, and whether it is met."""
    return dict(limit=f"≤ {limit:g}{unit}", met=value <= limit)


def at_least(ratio: float, limit: float) -> dict[str, Any]:
    """Return the cells of a table row for a lower limit on a ratio, and whether it is met."""
    return dict(ratio=ratio, limit=f"≥ {limit:.3g}×", met=ratio >= limit)


def compared(
    what: str,
    ours: float,
    peer: float,
    name: str,
    least: float | None = None,
    per: float = 1,
    **limit: Any,
) -> dict[str, Any]:
    """Return a table row that compares two times. The ratio says how many times as long the other method
    takes, and should be at least `least`.
    """
    ratio = peer / ours
    if least is not None:
        limit = at_least(ratio, least)
    text = f"{name} {format_seconds(peer, per)}"
    return row(what, format_seconds(ours, per), text, **({"ratio": ratio} | limit))


def print_results(rows: list[dict]) -> None:
    """Print the name of the machine, and the rows of a benchmark's table."""
    print(machine())
    table = pd.DataFrame(rows, columns=COLUMNS).fillna("")
    with pd.option_context("display.width", 200, "display.max_colwidth", 90):
        print(table.to_string(index=False, float_format="{:.3g}".format))


def machine() -> str:
    """Return a text that describes the machine on which the numbers are measured."""
    about = recorded.machine()
    return (
        f"{about['processor']}, {os.cpu_count()} cores; "
        f"Python {about['python']}, numpy {about['numpy']}"
    )
