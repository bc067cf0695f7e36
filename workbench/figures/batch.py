"""Batches of notebooks. The library papermill runs each notebook, and joblib runs several at the same time.
The notebooks that take longest are started first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4
from weakref import WeakSet

import joblib
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from traitlets import Dict, Unicode
from traitlets.config import Config

from workbench.compiled import load_nbformat
from workbench.estimates.files import socket_folder
from workbench.figures.figure import find_figure, find_notebooks
from workbench.figures.notebook import METADATA, default_notebook
from workbench.figures.saved import INPUTS, figure_folder, versions
from workbench.figures.status import (
    LOG,
    NotebookRun,
    Task,
    count_verdicts,
    describe_failure,
    locked,
    read_json,
    read_status,
    runs_alone,
    source_hashes,
    tasks,
    write_status,
)
from workbench.trials.inputs import state
from workbench.trials.running import BATCH, ROWS_SINCE, SCHEDULER

if TYPE_CHECKING:
    from nbformat import NotebookNode


TIMEOUT = {"quick": 600, "paper": 6 * 3600}  # seconds a cell may take
_LINEAR_ALGEBRA = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_THREADS = (
    "LOKY_MAX_CPU_COUNT",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "PYTHON_CPU_COUNT",
    "WORKBENCH_THREADS",
)


def reproduce(
    stems: Sequence[str] = (),
    *,
    notebooks: Path,
    results: Path,
    profile: str = "quick",
    settings: Sequence[str] = (),
    workers: int | None = None,
    force: bool = False,
    only_failed: bool = False,
    changed: bool = False,
    timeout: float | None = None,
    on_change: Callable[[NotebookRun], None] = lambda run: None,
) -> list[NotebookRun]:
    """Run notebooks of figures, several at the same time, and return the outcome of each. If a notebook
    fails, the others continue.

    If you press Ctrl-C, all notebooks stop, and a KeyboardInterrupt is raised. The results of finished
    notebooks stay.

    Parameters
    ----------
    stems : sequence of str
        Names of figures, for example cormode2012_fig5. Default: all figures.
    notebooks : path
        Folder that contains the notebooks.
    results : path
        Folder in which the results of all figures are stored.
    profile : str
        "quick" or "paper".
    settings : sequence of str
        Values of the figures' parameters, each as a text `name=value`, for example `epsilon=0.1,0.5`. If
        parameters have several values, every combination of values is run, and each gets a separate folder.
    workers : int, optional
        Number of notebooks that run at the same time. Default: one per core of this machine. With the profile
        "paper", notebooks that measure times run afterwards, one after the other.
    force : bool
        Whether to run all notebooks again, even if nothing has changed, without using stored results.
    only_failed : bool
        Whether to run only notebooks that failed in their last run.
    changed : bool
        Whether to run a notebook again only if its settings, its data, or a module that it loaded have
        changed. By default, a change of any source file leads to a new run.
    timeout : float, optional
        Time limit of each cell, in seconds. Default: 600, or 6 hours with the profile "paper".
    on_change : callable
        Function that is called whenever the state of a run changes. It may be called from any thread.

    Returns
    -------
    list of NotebookRun

    Raises
    ------
    ValueError
        If there is no notebook with a given name, or if a setting is invalid.
    OSError
        If files cannot be written to the folder of results.
    """
    notebooks = Path(notebooks).resolve()
    results = Path(results).resolve()
    paths = find_notebooks(notebooks)
    if not paths:
        raise ValueError(f"{notebooks} holds no notebooks")
    if profile not in TIMEOUT:
        raise ValueError(
            f"profile = {profile!r} is not allowed: need one of {', '.join(TIMEOUT)}"
        )
    chosen = tasks(list(dict.fromkeys(stems or paths)), paths, profile, settings)
    folders = {task.name: figure_folder(results, profile, task.name) for task in chosen}
    last = {name: read_status(folder) for name, folder in folders.items()}
    if only_failed:
        chosen = [task for task in chosen if last[task.name].get("state") == "failed"]
    try:
        for task in chosen:
            folders[task.name].mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise OSError(f"no results can be written to {results}: {e.strerror}") from None
    for task in chosen:
        on_change(NotebookRun(task.name))
    longest_first = sorted(chosen, key=lambda task: -(last[task.name].get("seconds") or inf))
    batch = _Batch(
        notebooks, results, profile, force, changed, timeout or TIMEOUT[profile], on_change
    )
    done: dict[str, NotebookRun] = {}
    try:
        judged = {x.name for x in chosen if profile == "paper" and runs_alone(x)}
        for alone in (False, True):
            group = [task for task in longest_first if (task.name in judged) == alone]
            at_once = 1 if alone else max(1, min(workers or joblib.cpu_count(), len(group)))
            run = joblib.delayed(batch.run)
            runs = joblib.Parallel(at_once, backend="threading")(
                run(task, folders[task.name], batch.environment(at_once, runs_alone(task)))
                for task in group
            )
            done |= {run.stem: run for run in runs}
    except BaseException:
        batch.stopped.set()
        Kernel.end_all()
        raise
    return [done[task.name] for task in chosen]


@dataclass
class _Batch:
    """Runs of notebooks that share folders and options."""

    notebooks: Path
    results: Path
    profile: str
    force: bool
    changed: bool
    timeout: float
    on_change: Callable[[NotebookRun], None]

    def __post_init__(self) -> None:
        self.stopped = threading.Event()
        self.began = time()
        self.store = self.results / "store"
        self.sources = source_hashes(self.notebooks.parent, self.store)
        for name in ("asyncio", "papermill"):  # what they would print is in the outcome
            logging.getLogger(name).addHandler(logging.NullHandler())

    def environment(self, at_once: int, alone: bool) -> dict[str, str]:
        """Return the environment variables of kernels. They give each kernel one thread for linear algebra,
        and a share of the cores.
        """
        share = max(1, joblib.cpu_count() // at_once)
        threads = dict.fromkeys(_LINEAR_ALGEBRA, "1") | dict.fromkeys(_THREADS, str(share))
        paths = [str(self.notebooks.parent), os.environ.get("PYTHONPATH", "")]
        return {
            **threads,
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),  # for `import experiments`
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            BATCH: "1",
            **({ROWS_SINCE: repr(self.began)} if self.force else {}),
            **({SCHEDULER: ""} if alone else {}),  # times are measured on this machine
        }

    def run(self, task: Task, folder: Path, environment: dict[str, str]) -> NotebookRun:
        """Run a notebook. Meanwhile, no other process may work in its folder."""
        with locked(folder, self.stopped):
            run = NotebookRun(task.name, "stopped")
            if not self.stopped.is_set():
                run = self._run(task, folder, environment)
        finished = run.state in ("done", "kept")
        notebook = folder / f"{task.name}.{'ipynb' if finished else 'partial.ipynb'}"
        run = replace(
            run,
            notebook=notebook if notebook.exists() else None,
            verdicts=count_verdicts(folder) if finished and self.profile == "paper" else {},
        )
        self.on_change(run)
        return run

    def _run(self, task: Task, folder: Path, environment: dict[str, str]) -> NotebookRun:
        parameters = {"profile": self.profile, "results": str(self.results), **task.parameters}
        partial = folder / f"{task.name}.partial.ipynb"
        keys = {"key": "", "own_key": ""}
        start = perf_counter()
        try:
            notebook = _read(task)
            cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
            content = [cells, parameters]
            status = read_status(folder)
            if not self.force and self._is_same(content, folder, status):
                return NotebookRun(task.name, "kept", status["seconds"])
            self.on_change(NotebookRun(task.name, "running"))
            for file in ("status.json", INPUTS, LOG, partial.name):
                (folder / file).unlink(missing_ok=True)
            self._execute(notebook, partial, parameters, environment)
            os.replace(partial, folder / f"{task.name}.ipynb")
            run = NotebookRun(task.name, "done")
            keys = self._keys(content, folder)
        except Exception as e:
            _add_line(folder / LOG, str(e))
            cell, error = describe_failure(e, partial, self.timeout)
            ended = "stopped" if self.stopped.is_set() else "failed"
            run = NotebookRun(task.name, ended, cell=cell, error=error)
        run = replace(run, seconds=round(perf_counter() - start, 2))
        _add_line(folder / LOG, f"{run.state} after {run.seconds} s")
        if run.state != "stopped":
            write_status(folder, keys, run)
        return run

    def _is_same(self, content: Any, folder: Path, status: Mapping[str, Any]) -> bool:
        """Return whether the last run had the same inputs and all of its files still exist."""
        name = "own_key" if self.changed else "key"
        if not status.get(name) or status[name] != self._keys(content, folder)[name]:
            return False
        inputs = read_json(folder / INPUTS)
        same = all(state(x, self.store) == inputs[x] for x in inputs)
        return same and all((folder / file).exists() for file in status["files"])

    def _keys(self, content: Any, folder: Path) -> dict[str, str]:
        """Return two hashes of a run: with all sources, and with only the modules that its kernel
        loaded.
        """
        modules = set(read_json(folder / "manifest.json").get("modules", self.sources))
        own = {x: self.sources[x] for x in self.sources if x in modules or x[-3:] != ".py"}
        libraries = versions("numpy", "scipy", "matplotlib")

        def digest(sources: Mapping[str, str]) -> str:
            text = json.dumps([content, sources, libraries], sort_keys=True)
            return hashlib.sha256(text.encode()).hexdigest()

        return {"key": digest(self.sources), "own_key": digest(own)}

    def _execute(
        self,
        notebook: NotebookNode,
        out: Path,
        parameters: dict[str, Any],
        environment: dict[str, str],
    ) -> None:
        import papermill

        missing = sorted(parameters.keys() - papermill.inspect_notebook(notebook))
        if missing:  # papermill would only warn
            raise ValueError(
                f"there is no parameter {', '.join(missing)}: need a cell tagged `parameters` that "
                f"sets {' and '.join(parameters)}"
            )
        papermill.execute_notebook(
            notebook,
            str(out).replace("{", "{{").replace("}", "}}"),  # papermill fills in parameters
            parameters,
            progress_bar=False,
            start_timeout=180,
            execution_timeout=self.timeout,
            iopub_timeout=60,  # on a busy machine outputs are late or lost, but the cell has run
            raise_on_iopub_timeout=False,
            kernel_manager_class=Kernel,
            config=Config(
                Kernel={"environment": environment, "messages": str(out.parent / LOG)}
            ),
            resources={"metadata": {"path": str(self.notebooks)}},
            shutdown_kernel="immediate",
        )


class Kernel(AsyncKernelManager):
    """Kernel that uses the same Python as the workbench. Its messages go to a log."""

    environment = Dict(config=True)
    messages = Unicode(config=True)
    started: ClassVar[WeakSet[Kernel]] = WeakSet()

    def __init__(self, **options: Any):
        # Another process can take a port between its choice and the start of the kernel, but not a socket.
        super().__init__(
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
            connection_file=f"{socket_folder()}/{uuid4().hex}",
            **options,
        )

    async def start_kernel(self, **options: Any) -> None:
        """Start the kernel process."""
        Kernel.started.add(self)
        with open(self.messages, "ab") as out:
            options |= {"stdout": out, "stderr": subprocess.STDOUT}
            await super().start_kernel(env=self.environment, **options)

    @classmethod
    def end_all(cls) -> None:
        """Kill the kernels that still run, and the processes that they started."""
        processes = [
            kernel.provisioner.process for kernel in list(cls.started) if kernel.has_kernel
        ]
        for process in processes:
            with suppress(OSError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait()


def _add_line(log: Path, text: str) -> None:
    with suppress(OSError), open(log, "a", encoding="utf-8") as file:  # the disk may be full
        file.write(f"{text}\n")


def _read(task: Task) -> NotebookNode:
    """Return the notebook of a figure, or a default notebook if the figure has none. The notebook is set to
    run with the workbench's Python.
    """
    nbformat = load_nbformat()
    if task.path is None:
        return default_notebook(find_figure(task.id))
    notebook = nbformat.read(task.path, as_version=4)
    notebook.metadata.update(METADATA)
    return notebook
