"""Worker process for long tasks. It runs one task at a time. The Stop button, or the next change of a control,
ends the task and the process.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from workbench.compiled import end_after

SPARED = 1.0  # seconds in which a task may finish, because a new process costs as much


class Ended(Exception):
    """Error of a task that did not finish. The Stop button, or the next change of a control, ended its
    process.
    """


class Worker:
    """Process that runs one task at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._pool: Any = None
        atexit.register(self._end)

    def start(self) -> None:
        """Start the process if it is not running."""
        with suppress(Ended, MemoryError):
            self.run(threading.Event(), warm)

    def _end(self) -> None:
        with self._lock:
            pool = self._pool
            self._pool = None
        if pool is not None:
            pool.shutdown(wait=False, kill_workers=True)

    def run(
        self,
        stopped: threading.Event,
        task: Callable[..., Any],
        *args: Any,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Any:
        """Run `task(*args)` in the process, and return the result. Until then, call `meanwhile` every 0.2 s.
        If `stopped` is set and the task has run for more than a second, the process is ended.

        Raises
        ------
        Ended
            If `stopped` is set first.
        MemoryError
            If the process died without being stopped.
        """
        from concurrent.futures import BrokenExecutor, CancelledError, wait

        from joblib.externals.loky.process_executor import (
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        gone = BrokenExecutor, CancelledError, ShutdownExecutorError
        while not self._turn.acquire(timeout=0.2):
            if stopped.is_set():
                raise Ended
        try:
            if stopped.is_set():
                raise Ended
            for fresh in (False, True):  # one that died while it was idle is replaced
                with self._lock:
                    if fresh or self._pool is None:
                        self._pool = ProcessPoolExecutor(
                            1, timeout=600, initializer=end_after, initargs=(os.getpid(),)
                        )
                    pool = self._pool
                since = time.monotonic()
                with suppress(*gone):
                    future = pool.submit(task, *args)
                    break
            else:
                raise MemoryError("(no process starts)")
            try:
                while not wait([future], timeout=0.2).done:
                    if stopped.is_set() and time.monotonic() > since + SPARED:
                        self._end()
                    meanwhile()
                return future.result()
            except gone:
                if stopped.is_set() or self._pool is not pool:
                    raise Ended from None
                self._end()
                raise MemoryError("(the process that drew has died)") from None
        finally:
            self._turn.release()


def warm() -> None:
    """Load the libraries that a picture needs. A kernel of `workbench lab` or `workbench explore` calls this
    function when it starts, so that the first panel appears at once.
    """
    from workbench.mechanisms import ThresholdSampling
    from workbench.widgets import chart, mechanism_subject, panels  # noqa: F401

    subject = mechanism_subject.MechanismSubject.of(ThresholdSampling)
    values = {control.name: control.value for control in subject.controls({})}
    rows = subject.draw(values, False, None).rows
    chart.charts(rows, subject.panels(values, rows))
    chart.marker_paths()
    chart.packed_script()


worker = Worker()
