"""Kernels for batches of notebooks, forked from one process that has loaded the libraries.

A kernel of its own takes some five seconds of processor time until its first figure is drawn: libraries
load, compiled loops and fonts too. Their common parent does it once; a child starts in a tenth of a second.
This needs Linux, where such a child is safe and can be watched by whoever asked for it. The parent has no
threads but that of pyarrow's allocator, which expects forks.
"""

from __future__ import annotations

import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines

from workbench.trials.running import BATCH, ROWS_SINCE, SCHEDULER

# Forks

CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")
_MOST = 1 << 17  # bytes of a request
_LIBRARIES = (  # of nearly every figure
    "ipykernel.ipkernel",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib_inline.backend_inline",
    "pandas.io.formats.style",
    "scipy.optimize",
    "scipy.stats",
    "ipywidgets",
    "workbench.figures",
    "workbench.figures.plots",
    "workbench.trials",
)


class KernelParent:
    """A process that forks kernels; it ends with the one that made it, and they end with it.

    Parameters
    ----------
    env : mapping
        Its environment, and that of its kernels where they say nothing else.
    """

    def __init__(self, env: Mapping[str, str]):
        self.env = dict(env)
        self._lock = Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = "from workbench.figures.kernels import serve; serve()"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(theirs.fileno())],
                env=self.env,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def start(
        self, arguments: Sequence[str], env: Mapping[str, str], cwd: str, log: Any
    ) -> Fork:
        """A new kernel; an OSError if there is none to be had.

        Parameters
        ----------
        arguments : sequence of str
            Of `python -m ipykernel_launcher`.
        env : mapping
            Its environment.
        cwd : str
            Its folder.
        log : file
            Takes what it prints.
        """
        differs = {name: x for name, x in env.items() if self.env.get(name) != x}
        request = json.dumps({"arguments": list(arguments), "env": differs, "cwd": cwd})
        with self._lock:
            socket.send_fds(self._channel, [request.encode()], [log.fileno()])
            pid = self._channel.recv(_MOST)
            if not pid:
                raise OSError("the parent of kernels has ended")
            return Fork(
                int(pid)
            )  # it is not reaped before the next request, and so not mistaken

    def close(self) -> None:
        """End it."""
        self._channel.close()
        self._process.wait()


class Fork:
    """What `subprocess.Popen` says of a process, said of one that is not our child."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid
        self._handle = os.pidfd_open(pid)
        self._ended = select.poll()
        self._ended.register(self._handle, select.POLLIN)

    def poll(self) -> int | None:
        """None while it runs; how it has ended is not known."""
        return 0 if self._handle < 0 or self._ended.poll(0) else None

    def wait(self) -> int:
        """Wait until it has ended."""
        if self._handle >= 0:
            self._ended.poll()
            os.close(self._handle)
            self._handle = -1
        return 0

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def serve() -> None:
    """Load what kernels need, and fork one for each request until nobody can ask."""
    if sys.path[0] == "":  # a kernel gets it from IPython
        del sys.path[0]
    channel = socket.socket(fileno=int(sys.argv[1]))
    _load()
    gc.collect()
    gc.freeze()
    while True:
        request, logs, _, _ = socket.recv_fds(channel, _MOST, 1)
        if not request:
            return
        with suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        pid = os.fork()
        if pid == 0:
            channel.close()
            _run_kernel(**json.loads(request), log=logs[0])
            return
        os.close(logs[0])
        with suppress(OSError):  # it has done so, or ended
            os.setpgid(pid, pid)
        channel.send(str(pid).encode())


def _load() -> None:
    """Libraries; then a trial and a figure, for loops, fonts and whatever else loads when used."""
    for name in _LIBRARIES:
        import_module(name)
    import numpy as np
    import pandas as pd

    from workbench.datasets import GaussianSparse
    from workbench.figures import plots
    from workbench.mechanisms import GeometricHistogram
    from workbench.privacy import DP
    from workbench.queries import RandomRanges
    from workbench.trials import Sweep, Trial
    from workbench.trials.metrics import MeanAbsoluteError
    from workbench.trials.running import row_file

    # Not by `run`: its progress bars start a thread, and hold a lock that all forks would share.
    dataset = GaussianSparse(1000)
    mechanism = GeometricHistogram(DP(1))
    metric = MeanAbsoluteError(RandomRanges(10, 10, seed=0))
    release = mechanism(dataset.load(), np.random.default_rng(0))
    value = metric(dataset.load(), release.estimate)
    row_file(Trial(dataset, mechanism, 0), Sweep([dataset], [mechanism], [metric]), Path())
    rows = pd.DataFrame({"series": "geometric", "seed": [0, 1], "value": value})
    fig = plots.grid(rows, [plots.Panel("$x^2$", {"series": "geometric"}, "seed")], 1)
    plots.lay_out(fig)
    for kind in ("png", "pdf", "svg"):
        fig.savefig(io.BytesIO(), format=kind)
    plots.close(fig)


def _run_kernel(arguments: Sequence[str], env: Mapping[str, str], cwd: str, log: int) -> None:
    """In a child: the kernel, from its first breath to its end."""
    os.setpgid(0, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(cwd)
    os.environ.update(env)
    tempfile.tempdir = None
    ends_with_us = f"--IPKernelApp.parent_handle={os.getppid()}"
    sys.argv = ["ipykernel_launcher", *arguments, ends_with_us]

    from ipykernel.kernelapp import IPKernelApp

    kernel = IPKernelApp.instance()
    kernel.initialize()
    inline = import_module("matplotlib_inline.backend_inline")
    inline._enable_matplotlib_integration()  # at import there was no shell to show figures after cells
    kernel.start()


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
    forked_by: KernelParent | None

    @classmethod
    def at(
        cls,
        folder: Path,
        threads: int,
        project: Path,
        alone: bool = False,
        forked_by: KernelParent | None = None,
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
        kernel.forked_by = forked_by
        return kernel

    async def _async_launch_kernel(self, kernel_cmd: list[str], **kwargs: Any) -> None:
        """Forked, where that can be; by itself otherwise, and where the parent has failed."""
        fork = None
        if self.forked_by is not None:
            arguments = kernel_cmd[kernel_cmd.index("-f") :]
            with suppress(OSError):
                fork = self.forked_by.start(
                    arguments, kwargs["env"], kwargs["cwd"], kwargs["stdout"]
                )
        if fork is None:
            await super()._async_launch_kernel(kernel_cmd, **kwargs)
            return
        self.provisioner.process = fork
        self.provisioner.pid = fork.pid
        self.provisioner.pgid = fork.pid
        self._reconcile_connection_info(self.provisioner.connection_info)

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
