"""Processes of this machine, of which the caller is one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from math import inf
from threading import Thread
from typing import Any

_LOOK = 0.5  # seconds
_TASKS = 2  # that each of the others is given at a time


class Workers(Executor):
    """So many processes for `scale.release`, of which this is one; the others start at once.

    Parameters
    ----------
    workers : int
        How many processes, at least 1.

    Raises
    ------
    ValueError
        Another number of processes.
    """

    def __init__(self, workers: int):
        if not isinstance(workers, int) or workers < 1:
            raise ValueError(f"workers = {workers!r} is not allowed: need an integer >= 1")
        self.others = workers - 1
        self._given: list[Future[Any]] = []
        if self.others:
            from joblib.externals.loky import ProcessPoolExecutor

            self._pool: Any = ProcessPoolExecutor(
                self.others, initializer=_start, initargs=(os.getpid(),)
            )
            self._started = self._pool.submit(os.getpid)  # without a task none starts

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have one of the others call a function; this process does while they start or are busy."""
        self._given = [future for future in self._given if not future.done()]
        future: Future[Any]
        if self._started.done() and len(self._given) < _TASKS * self.others:
            future = self._pool.submit(function, *args, **kwargs)
            self._given.append(future)
        else:
            future = Future()
            future.set_result(function(*args, **kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the others, whatever they do."""
        if self.others:
            self._pool.shutdown(wait, kill_workers=True)


def _start(parent: int) -> None:
    """What a worker does first; it is not started again because its tasks take memory."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = inf  # loky takes 300 MB more for a leak
    end_with(parent)
    # by name: it stands below, and takes time to import here
    import_module("workbench.owner.scale.counting").load()


def end_with(parent: int) -> None:
    """Let this worker end when its parent does, which cannot say so if it is killed."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    Thread(target=look, daemon=True).start()
