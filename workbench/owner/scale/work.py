"""Runner of tasks, which run in this thread, in several threads or on any executor. The module also creates a
scratch folder for temporary files.

A task is a module-level function with arguments. The function and the arguments can be pickled. A task that is
repeated gives the same result. Executors write error messages to their logs, which must not contain private
data. If a task rejects data with a ValueError, the worker therefore returns a marker without the message. The
caller then runs the task again in its own process to get the message.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from workbench.compiled import limited_threads
from workbench.estimates.files import temporary_folder
from workbench.owner.scale.spill import scratch_errors

_TASKS_A_WORKER = 2  # that wait: results do not pile up
_WORKERS = 64  # where an executor does not say how many it has


class _Refused:
    """Result of a task that raised a ValueError on its worker."""


class Tasks:
    """Runner of tasks. The runner uses an executor, or runs the tasks one after another in this process."""

    def __init__(self, executor: Executor | None = None):
        self._executor = executor
        workers = getattr(executor, "_max_workers", None) or _WORKERS
        self._most = _TASKS_A_WORKER * workers
        self._under_way: deque[tuple[tuple[Any, ...], Future[Any]]] = deque()

    def map(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call a function with each tuple of arguments, as tasks. Yield the results in the order of the
        arguments. Only one map may run at a time.
        """
        if self._executor is None:
            yield from (function(*own) for own in arguments)
            return
        arguments = iter(arguments)
        under_way = self._under_way
        while True:
            while len(under_way) < self._most and not (under_way and under_way[0][1].done()):
                own = next(arguments, None)
                if own is None:
                    break
                under_way.append((own, self._executor.submit(attempt, function, *own)))
            if not under_way:
                return
            own, future = under_way[0]
            result = future.result()
            under_way.popleft()
            yield function(*own) if isinstance(result, _Refused) else result

    def close(self) -> None:
        """Cancel the tasks that have not begun, and wait for the others."""
        futures = [future for _, future in self._under_way]
        wait([future for future in futures if not future.cancel()])
        self._under_way.clear()


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task on a worker. The task uses one thread, because there are as many workers as cores."""
    try:
        with limited_threads(1):
            return function(*arguments)
    except ValueError:
        return _Refused()


@contextmanager
def tasks(executor: Executor | None, workers: int) -> Iterator[Tasks]:
    """Create a runner of tasks for the `with` block. The runner uses the executor, if you pass one. Otherwise
    it uses `workers` threads, or only this thread if `workers` is 1.
    """
    with ExitStack() as stack:
        if executor is None and workers != 1:
            executor = stack.enter_context(ThreadPoolExecutor(workers))
        try:
            yield stack.enter_context(closing(Tasks(executor)))
        except BrokenExecutor:
            raise ChildProcessError(
                "a worker process was killed, or had too little memory: nothing was released"
            ) from None


@contextmanager
def scratch_folder(parent: str | Path | None) -> Iterator[Path]:
    """Create a private folder for scratch files, which is removed at the end of the `with` block."""
    parent = Path(parent or tempfile.gettempdir()).absolute()
    if not parent.is_dir():
        raise FileNotFoundError(f"scratch = {parent}: no such folder")
    mode = parent.stat().st_mode
    if os.name == "posix" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise ValueError(
            f"scratch = {parent} is not allowed: others could replace a private folder there. Need a "
            "folder of your own, or set chmod +t"
        )
    with ExitStack() as stack:
        with scratch_errors(parent):
            folder = stack.enter_context(temporary_folder(str(parent)))
        yield folder
