"""Kernels for batches of notebooks: each in a folder of its own, with its share of the cores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

from workbench.trials.running import BATCH, ROWS_SINCE, SCHEDULER

# Kernel

_START = 60  # seconds a kernel may take to answer
_THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "PYTHON_CPU_COUNT",
    "WORKBENCH_THREADS",
)


class _ThisPython(KernelSpecManager):
    """Whatever kernels the machine knows: notebooks are run by the interpreter that runs us."""

    env: dict[str, str] = {}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The one kernel there is."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, env=self.env, display_name="Python", language="python")


class Kernel(AsyncKernelManager):
    """A kernel with sockets in a folder of its own, that can hang up on its clients."""

    clients: list[Any]
    peak: int  # bytes of memory that it has taken, as far as it was asked

    @classmethod
    def at(
        cls,
        folder: Path,
        threads: int,
        project: Path,
        alone: bool = False,
        rows_since: float = 0,
    ) -> Kernel:
        """A kernel not yet started, with its share of the cores; one that is `alone` has no cluster.

        It draws rows anew that were kept before `rows_since`.
        """
        specs = _ThisPython()
        specs.env = environment(threads, project)
        specs.env["TMPDIR"] = str(folder)  # what a kernel leaves goes with it
        if rows_since:
            specs.env[ROWS_SINCE] = repr(rows_since)
        if alone:
            specs.env[SCHEDULER] = ""  # it measures times
        ipc = {"transport": "ipc", "ip": str(folder / "k")} if os.name == "posix" else {}
        kernel = cls(
            kernel_spec_manager=specs, connection_file=str(folder / "kernel.json"), **ipc
        )
        kernel.clients = []
        kernel.peak = 0
        return kernel

    def client(self, **kwargs: Any) -> Any:
        """A client, remembered."""
        self.clients.append(super().client(**kwargs))
        return self.clients[-1]

    def begin(self, cwd: Path, log: Path) -> str:
        """Start and wait for an answer; returns why there is none, or nothing."""
        before = log.stat().st_size if log.exists() else 0
        try:
            with open(log, "ab") as out:
                run_sync(self.start_kernel)(
                    cwd=str(cwd),
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    extra_arguments=["--HistoryManager.hist_file=:memory:"],
                )
            client = self.client()
            client.start_channels()
            run_sync(client.wait_for_ready)(timeout=_START)
            return ""
        except (RuntimeError, TimeoutError, OSError) as e:
            said = log.read_bytes()[before:] if log.exists() else b""
            lines = said.decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else str(e) or "it does not answer"

    def memory(self) -> int:
        """Bytes of memory that it and the processes it has started take now."""
        import psutil

        try:
            own = psutil.Process(getattr(self.provisioner, "pid", None) or -1)
            taken = sum(each.memory_info().rss for each in [own, *own.children(recursive=True)])
        except (psutil.Error, ValueError):  # it has ended, or not begun
            return 0
        self.peak = max(self.peak, taken)
        return taken

    def signal(self, number: int) -> None:
        """Signal it and the processes it has started, from any thread."""
        _signal_group(getattr(self.provisioner, "pgid", None), number)

    def end(self) -> None:
        """Hang up, and end it and what it has started; its own farewell would take half a second."""
        group = getattr(self.provisioner, "pgid", None)
        for client in self.clients:
            client.stop_channels()
        if self.has_kernel:
            run_sync(self.shutdown_kernel)(now=True)
        _signal_group(group, signal.SIGTERM)


def environment(threads: int, project: Path) -> dict[str, str]:
    """What kernels find in their environment that the batch has not, or not so."""
    limits = {name: _at_most(threads, os.environ.get(name)) for name in _THREAD_LIMITS}
    paths = [str(project), os.environ.get("PYTHONPATH", "")]  # for `import experiments`
    return limits | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        BATCH: "1",
    }


def _at_most(threads: int, asked: str | None) -> str:
    """A number of threads: a kernel's share of the cores, or less where the environment says so.

    >>> _at_most(2, None), _at_most(2, "1"), _at_most(2, "64")
    ('2', '1', '2')
    """
    return str(min(int(asked), threads)) if asked and asked.isdigit() else str(threads)


def _signal_group(group: int | None, number: int) -> None:
    if group and group != os.getpgrp():
        with suppress(OSError):  # it is gone
            os.killpg(group, number)


def socket_folder() -> str | None:
    """A folder for sockets, whose names may not be longer than about 100 bytes."""
    fits = len(os.fsencode(tempfile.gettempdir())) <= 60
    return None if fits or os.name != "posix" else "/tmp"


# Engine

ENGINE = "workbench"
_EVERY = timedelta(seconds=10)


class _Engine(NBClientEngine):
    """Papermill saves before and after each cell, which takes longer than most cells of ours."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **kwargs: Any
    ) -> Any:
        save = nb_man.save

        def save_now_and_then() -> None:
            if nb_man.now() - nb_man.last_save_time > _EVERY:
                save()

        nb_man.save = save_now_and_then
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
        finally:
            nb_man.save = save  # as the engine does at the end, however that comes


papermill_engines.register(ENGINE, _Engine)
