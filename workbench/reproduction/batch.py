"""Notebooks that are run together: each once, several at once, timings alone."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from workbench.figures import (
    default_notebook,
    figure_folder,
    find_figure,
    find_notebooks,
    versions,
)
from workbench.reproduction.notebooks import (
    check_parameters,
    runs_alone,
    source_hashes,
)
from workbench.reproduction.settings import Task, tasks
from workbench.reproduction.status import (
    NotebookRun,
    Stopped,
    count_verdicts,
    describe_failure,
    locked,
    read_status,
    write_status,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from workbench.reproduction.kernel import Kernel

TIMEOUT = {"quick": 600, "paper": 6 * 3600}  # seconds a cell may take
_ATTEMPTS = 3  # to start a kernel


def reproduce(
    stems: Sequence[str] = (),
    *,
    notebooks: Path,
    results: Path,
    profile: str = "quick",
    settings: Sequence[str] = (),
    workers: int | None = None,
    force: bool = False,
    timeout: float | None = None,
    on_change: Callable[[NotebookRun], None] = lambda run: None,
) -> list[NotebookRun]:
    """Run notebooks and say what became of each; one that fails is reported and the rest go on.

    A KeyboardInterrupt stops the kernels and is passed on; what had finished stays.

    Parameters
    ----------
    stems : sequence of str
        Names of figures; all, if none is named.
    notebooks : path
        The folder of notebooks.
    results : path
        The folder of all results.
    profile : str
        "quick" or "paper".
    settings : sequence of str
        `name=value` for parameters of the figures; of several values every combination is run, each to
        a folder of its own.
    workers : int, optional
        Notebooks at once; one a core unless it is given.
    force : bool
        Run what is up to date too.
    timeout : float, optional
        Seconds that a cell may take.
    on_change : callable
        Is called with every change of state, from any thread.

    Returns
    -------
    list of NotebookRun

    Raises
    ------
    ValueError
        If there are no notebooks, or none of a name, or a number is out of its range.
    """
    notebooks = Path(notebooks).resolve()
    results = Path(results).resolve()
    paths = find_notebooks(notebooks)
    if not paths:
        raise ValueError(f"{notebooks} holds no notebooks")
    for name, x, least in (("workers", workers, 1), ("timeout", timeout, 0.1)):
        if x is not None and not x >= least:
            raise ValueError(f"{name} = {x!r} is not allowed: need a number >= {least}")
    ids = list(dict.fromkeys(stems or paths))
    chosen = tasks(ids, paths, profile, settings)
    for task in chosen:
        figure_folder(results, profile, task.name).mkdir(parents=True, exist_ok=True)

    import joblib

    cores = joblib.cpu_count()
    workers = min(workers or cores, len(chosen))
    timeout = timeout or TIMEOUT[profile]
    batch = _Batch(notebooks, results, profile, force, timeout, on_change)
    for task in chosen:
        status = read_status(figure_folder(results, profile, task.name))
        on_change(NotebookRun(task.name, expected=status.get("seconds")))
    alone = [task for task in chosen if task.path and runs_alone(task.path)]
    together = [task for task in chosen if task not in alone]
    done: dict[str, NotebookRun] = {}
    for group, at_once in ((together, workers), (alone, 1)):
        threads = max(1, cores // min(at_once, len(group) or 1))
        with ThreadPoolExecutor(at_once) as pool:
            futures = {task.name: pool.submit(batch.run, task, threads) for task in group}
            try:
                wait(futures.values())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                batch.stop()
                raise
        done |= {name: future.result() for name, future in futures.items()}
    return [done[task.name] for task in chosen]


@dataclass
class _Batch:
    """What notebooks that are run together share, and the kernels that are alive."""

    notebooks: Path
    results: Path
    profile: str
    force: bool
    timeout: float
    on_change: Callable[[NotebookRun], None]

    def __post_init__(self):
        self.stopped = threading.Event()
        self.kernels: set[Kernel] = set()
        self.sources = source_hashes(self.notebooks.parent)
        self.parameters = {"profile": self.profile, "results": str(self.results)}

    def stop(self) -> None:
        """Kill every kernel and let none start; who waits for one notices within a second."""
        self.stopped.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for kernel in list(self.kernels):
                kernel.signal(number)
            sleep(0.5)  # joblib's workers clean up after themselves meanwhile

    def run(self, task: Task, threads: int) -> NotebookRun:
        """One notebook, from waiting to done, kept, failed or stopped."""
        stem = task.name
        folder = figure_folder(self.results, self.profile, stem)
        try:
            with locked(folder, self.stopped):
                run = self._run_locked(task, folder, threads)
        except Stopped:
            run = NotebookRun(stem, "stopped")
        finished = run.state in ("done", "kept")
        notebook = folder / f"{stem}.{'ipynb' if finished else 'partial.ipynb'}"
        run = replace(
            run,
            notebook=notebook if notebook.exists() else None,
            verdicts=count_verdicts(folder) if finished else {},
        )
        self.on_change(run)
        return run

    def _run_locked(self, task: Task, folder: Path, threads: int) -> NotebookRun:
        """The same, while no other process works in the figure's folder."""
        stem = task.name
        parameters = self.parameters | task.parameters
        partial = folder / f"{stem}.partial.ipynb"
        key = ""
        start = perf_counter()
        try:
            notebook = _read(task)
            new_key = self.key(notebook, [parameters, _own_source(task)])
            status = read_status(folder)
            same = not self.force and status.get("key") == new_key
            if same and all((folder / name).exists() for name in status["files"]):
                return NotebookRun(stem, "kept", status["seconds"])
            check_parameters(notebook, parameters)
            self.on_change(NotebookRun(stem, "running"))
            (folder / "status.json").unlink(missing_ok=True)
            self._execute(notebook, partial, parameters, threads)
            os.replace(partial, folder / f"{stem}.ipynb")
            run = NotebookRun(stem, "done")
            key = new_key
        except Exception as e:
            state = "stopped" if self.stopped.is_set() else "failed"
            cell, error = describe_failure(e, partial, self.timeout)
            run = NotebookRun(stem, state, cell=cell, error=error)
        run = replace(run, seconds=round(perf_counter() - start, 2))
        if run.state != "stopped":
            write_status(folder, key, run)
        return run

    def key(self, notebook: NotebookNode, setting: Any) -> str:
        """Names a run by all that decides what it shows."""
        cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
        parts = [cells, setting, self.sources, versions("numpy", "scipy", "matplotlib")]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _execute(
        self, notebook: NotebookNode, out: Path, parameters: Mapping[str, Any], threads: int
    ) -> None:
        import papermill

        logging.getLogger("papermill").addHandler(logging.NullHandler())  # we say it ourselves
        out.unlink(missing_ok=True)
        with self._kernel(threads) as kernel:
            template = str(out).replace("{", "{{").replace("}", "}}")  # papermill fills it in
            papermill.execute_notebook(
                notebook,
                template,
                parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                execution_timeout=self.timeout,
                km=kernel,
            )

    @contextmanager
    def _kernel(self, threads: int) -> Iterator[Kernel]:
        """A kernel that answers, tried three times; it does not outlive the block."""
        from workbench.reproduction.kernel import Kernel, socket_folder

        for _attempt in range(_ATTEMPTS):
            with tempfile.TemporaryDirectory(
                prefix="wb-", dir=socket_folder(), ignore_cleanup_errors=True
            ) as home:
                kernel = Kernel.at(Path(home), threads, self.notebooks.parent)
                self.kernels.add(kernel)
                try:
                    why = "stopped"
                    if not self.stopped.is_set():
                        why = kernel.begin(self.notebooks, Path(home) / "log")
                    if not why and not self.stopped.is_set():
                        yield kernel
                        return
                finally:
                    kernel.end()
                    self.kernels.discard(kernel)
            if self.stopped.is_set():
                break
        raise RuntimeError(f"no kernel: {why}")


def _read(task: Task) -> NotebookNode:
    """The notebook of a figure: its own, or what every figure has."""
    import nbformat

    if task.path is None:
        return default_notebook(find_figure(task.id))
    return nbformat.read(task.path, as_version=4)


def _own_source(task: Task) -> str:
    """The source of a figure that is not the project's, whose sources are hashed anyway."""
    if task.path is not None:
        return ""
    file = inspect.getsourcefile(find_figure(task.id))
    return Path(file).read_text(encoding="utf-8") if file else ""
