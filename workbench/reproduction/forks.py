"""Kernels forked from one process that has loaded what they all need.

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
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

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
    "workbench.plots",
    "workbench.experiment",
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
        code = "from workbench.reproduction.forks import serve; serve()"
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

    from workbench import plots
    from workbench.datasets import GaussianSparse
    from workbench.experiment import Sweep, Trial
    from workbench.experiment.store import row_file
    from workbench.mechanisms import GeometricHistogram
    from workbench.metrics import MeanAbsoluteError
    from workbench.privacy import DP
    from workbench.workload import RandomRanges

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
