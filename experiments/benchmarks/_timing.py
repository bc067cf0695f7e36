"""How benchmarks measure: calls take turns, several times, and the clock counts.

A limit of time is a ratio to a peer, or a number of sorts that are timed in the same run, because seconds
differ between machines.
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
    """Seconds by the clock of each call, `repeat` times; they take turns.

    Right before each timed run the call runs once without being timed, so that nothing is compiled
    and no table made, and caches hold what it left there and not what another call did. Those in
    `cold` are too slow for that.
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
    """Median seconds of each call, out of `seconds_in_turns`."""
    return [median(times) for times in seconds_in_turns(*calls, repeat=repeat, cold=cold)]


@cache
def _seconds_of_a_sort() -> float:
    values = np.random.default_rng(0).integers(0, 2**62, 10**6)
    return min(seconds_in_turns(partial(np.sort, values, kind="stable"), repeat=9)[0])


def at_most_sorts(seconds: float, sorts: float) -> dict[str, Any]:
    """The part of a row that limits a time to so many stable sorts of 10⁶ integers, on one thread."""
    return at_most(seconds / _seconds_of_a_sort(), sorts, " sorts of 10⁶")


def once(call: Callable) -> tuple[float, Any]:
    """Seconds by the clock of one call, and what it returns."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def in_process(
    step: Callable,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    **how: object,
) -> str:
    """What a function of a benchmark or figure prints in a process of its own."""
    call = f"import {step.__module__} as b; b.{step.__name__}(*{arguments!r}, **{how!r})"
    command = [sys.executable, "-c", call]
    own = dict(cwd=project_folder(), env=os.environ | (environment or {}))
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **own).stdout


def peak_megabytes() -> float:
    """Of this process since it began: what `resource` tells starts from its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def peak_bytes(call: Callable) -> tuple[int, Any]:
    """The most bytes that a call holds at once, and what it returns."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    result = call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before, result


def numpy_geometric(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Two-sided geometric noise the usual way: the difference of two of numpy's geometric vectors."""
    rng = np.random.default_rng()
    p = 1 - exp(-epsilon)
    return values + (rng.geometric(p, values.shape) - rng.geometric(p, values.shape))


def format_seconds(seconds: float, per: float = 1) -> str:
    """A time in words; `per` how many things, if each of them has its part of it."""
    seconds = seconds / per
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def row(what: str, ours=None, peer=None, ratio=None, limit=None, met=None) -> dict[str, Any]:
    """One row of a benchmark's table; what is not given is empty."""
    return dict(what=what, ours=ours, peer=peer, ratio=ratio, limit=limit, met=met)


def at_most(value: float, limit: float, unit: str = "") -> dict[str, Any]:
    """The part of a row that says what limit is set, and whether it is met."""
    return dict(limit=f"≤ {limit:g}{unit}", met=value <= limit)


def at_least(ratio: float, limit: float) -> dict[str, Any]:
    """The same of a ratio that should be large, with the ratio."""
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
    """A row of two times: how many times as long a peer takes, which should be `least`."""
    ratio = peer / ours
    if least is not None:
        limit = at_least(ratio, least)
    text = f"{name} {format_seconds(peer, per)}"
    return row(what, format_seconds(ours, per), text, **({"ratio": ratio} | limit))


def print_results(rows: list[dict]) -> None:
    """Print the machine, and the rows in the order of the table's columns."""
    print(machine())
    table = pd.DataFrame(rows, columns=COLUMNS).fillna("")
    with pd.option_context("display.width", 200, "display.max_colwidth", 90):
        print(table.to_string(index=False, float_format="{:.3g}".format))


def machine() -> str:
    """What the numbers were measured on."""
    about = recorded.machine()
    return (
        f"{about['processor']}, {os.cpu_count()} cores; "
        f"Python {about['python']}, numpy {about['numpy']}"
    )
