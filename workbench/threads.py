"""How many threads a computation may take, and calls of a function on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

VARIABLE = "WORKBENCH_THREADS"
PLACES_FOR_THREADS = 2**18

Item = TypeVar("Item")
Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count(threads: int | None = None) -> int:
    """So many threads, or as many as `limited_threads`, WORKBENCH_THREADS or the cores allow.

    Parameters
    ----------
    threads : int, optional
        What a caller asks for.

    Returns
    -------
    int
        At least 1; where nothing says how many, the cores that this process may use.

    Raises
    ------
    ValueError
        A number below 1, or a variable that is none.

    Examples
    --------
    >>> with limited_threads(1):
    ...     thread_count()
    1
    """
    if threads is None:
        threads = _limit.get()
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads = {threads!r} is not allowed: need a whole number >= 1")
        return threads
    stated = os.environ.get(VARIABLE)
    if not stated:
        return _cores()
    if not stated.isdecimal() or int(stated) < 1:
        raise ValueError(f"{VARIABLE} = {stated!r} is not allowed: need a whole number >= 1")
    return int(stated)


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Have what is called inside the block take at most so many threads.

    Parameters
    ----------
    threads : int
        At least 1.
    """
    token = _limit.set(thread_count(threads))
    try:
        yield
    finally:
        _limit.reset(token)


def limit_process(threads: int) -> None:
    """Have this process, and those that it starts, take at most so many threads."""
    os.environ[VARIABLE] = str(threads)


def on_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """The function of each item, in order; compiled loops that release the lock run at once."""
    items = list(items)
    threads = min(threads, len(items))
    if threads <= 1:
        return list(map(function, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def slices(size: int, parts: int) -> list[slice]:
    """So many runs of places, as equal as can be, that follow each other.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(size * i // parts, size * (i + 1) // parts) for i in range(parts)]


def in_slices(function: Callable[[slice], object], size: int, least: int | None = None) -> None:
    """Call the function of all places, or on as many threads as there are of a part of them each.

    Parameters
    ----------
    function : of a slice of places.
    size : how many places there are.
    least : fewer places are one's; by default `PLACES_FOR_THREADS`.
    """
    least = PLACES_FOR_THREADS if least is None else least
    threads = thread_count() if size >= least else 1
    on_threads(function, slices(size, threads), threads)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
