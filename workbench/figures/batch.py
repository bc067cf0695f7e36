"""Notebooks that are run together: each once, several at once, the longest first, timings alone.

One batch, from what is asked to what is left of it: longer than other files, and one idea.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter, sleep, time
from typing import TYPE_CHECKING, Any

from workbench.compiled import load_nbformat
from workbench.estimates.files import temporary_folder
from workbench.figures.figure import find_figure, find_notebooks
from workbench.figures.notebook import default_notebook
from workbench.figures.saved import INPUTS, figure_folder, versions
from workbench.figures.status import (
    LOG,
    Busy,
    Job,
    NotebookRun,
    RunLog,
    Stopped,
    Task,
    check_parameters,
    count_verdicts,
    describe_failure,
    in_order,
    locked,
    next_job,
    read_json,
    read_status,
    runs_alone,
    source_hashes,
    tasks,
    write_status,
)
from workbench.trials.inputs import state
from workbench.value import counted, format_number

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from workbench.figures.kernels import Kernel


TIMEOUT = {"quick": 600, "paper": 6 * 3600}  # seconds a cell may take
_ATTEMPTS = 3  # to start a kernel
_PAUSE = 0.5  # seconds between two looks at the memory that is taken


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
    memory: float | None = None,
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
        Run what is up to date too, and draw all rows anew.
    only_failed : bool
        Run only what failed last time.
    changed : bool
        Run only what its own notebook, modules, settings or data have changed for since it ran; otherwise
        any change of any source counts.
    memory : float, optional
        Bytes that all notebooks may take together: what took more last time than is left waits, and what
        goes over it is stopped, to be run by itself. By itself it fails there.
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
    OSError
        If the folder of results cannot be written.
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
    limits = (("workers", workers, 1), ("timeout", timeout, 0.1), ("memory", memory, 1))
    for name, x, least in limits:
        if x is not None and not x >= least:
            raise ValueError(f"{name} = {x!r} is not allowed: need a number >= {least}")
    ids = list(dict.fromkeys(stems or paths))
    chosen = tasks(ids, paths, profile, settings)
    if only_failed:
        folders = {task.name: figure_folder(results, profile, task.name) for task in chosen}
        chosen = [t for t in chosen if read_status(folders[t.name]).get("state") == "failed"]
    try:
        for task in chosen:
            figure_folder(results, profile, task.name).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise OSError(f"no results can be written to {results}: {e.strerror}") from None

    import joblib

    cores = joblib.cpu_count()
    workers = max(1, min(workers or cores, len(chosen)))
    timeout = timeout or TIMEOUT[profile]
    batch = _Batch(notebooks, results, profile, force, changed, timeout, on_change)
    jobs = []
    for task in chosen:
        status = read_status(figure_folder(results, profile, task.name))
        alone = task.path is not None and runs_alone(task.path)
        jobs.append(Job(task, alone, status.get("seconds"), status.get("memory") or 0))
        on_change(NotebookRun(task.name, expected=status.get("seconds")))
    done = _run_all(batch, in_order(jobs), workers, cores, memory or inf)
    return [done[task.name] for task in chosen]


def _run_all(
    batch: _Batch, waiting: list[Job], workers: int, cores: int, ceiling: float
) -> dict[str, NotebookRun]:
    """Start jobs while there is room for them, until none is left."""
    running: dict[Future[NotebookRun], Job] = {}
    done: dict[str, NotebookRun] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                job = next_job(waiting, running.values(), workers, ceiling)
                if job is not None:
                    waiting.remove(job)
                    job.patient = job.patient or not waiting
                    threads = cores if job.alone else max(1, cores // workers)
                    running[pool.submit(batch.run, job, threads)] = job
                    continue
                finished, _ = wait(running, _PAUSE, return_when=FIRST_COMPLETED)
                for future in finished:
                    job = running.pop(future)
                    run = future.result()
                    if run.state == "waiting":
                        waiting.append(job)
                    else:
                        done[run.stem] = run
                batch.keep_below(ceiling)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            batch.stop()
            raise
    return done


@dataclass
class _Batch:
    """What notebooks that are run together share, and the kernels that are alive."""

    notebooks: Path
    results: Path
    profile: str
    force: bool
    changed: bool
    timeout: float
    on_change: Callable[[NotebookRun], None]

    def __post_init__(self) -> None:
        self.stopped = threading.Event()
        self.kernels: dict[Kernel, Job] = {}
        self.over: dict[Job, str] = {}
        self.began = time()
        self.store = self.results / "store"
        self.sources = source_hashes(self.notebooks.parent, self.store)
        self.parameters = {"profile": self.profile, "results": str(self.results)}

    def stop(self) -> None:
        """Kill every kernel and let none start; who waits for one notices within a second."""
        self.stopped.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for kernel in list(self.kernels):
                kernel.signal(number)
            sleep(0.5)  # joblib's workers clean up after themselves meanwhile

    def keep_below(self, ceiling: float) -> None:
        """End the kernel that began last, if all take more memory than they may."""
        taken = {kernel: kernel.memory() for kernel in list(self.kernels)}
        if sum(taken.values()) <= ceiling:
            return
        kernel = list(taken)[-1]
        job = self.kernels.get(kernel)
        if job is not None and job not in self.over:
            self.over[job] = (
                f"more than {format_number(ceiling / 1e9)} GB of memory were taken (--memory)"
            )
            if len(taken) > 1:
                job.alone = True
            kernel.signal(signal.SIGKILL)

    def run(self, job: Job, threads: int) -> NotebookRun:
        """One notebook, from waiting to done, kept, failed or stopped; or to waiting once more."""
        stem = job.task.name
        folder = figure_folder(self.results, self.profile, stem)
        try:
            with locked(folder, self.stopped, job.patient):
                run = self._run_locked(job, folder, threads)
        except Stopped:
            run = NotebookRun(stem, "stopped")
        except Busy:
            job.patient = True
            run = NotebookRun(stem, expected=job.seconds)
        finished = run.state in ("done", "kept")
        notebook = folder / f"{stem}.{'ipynb' if finished else 'partial.ipynb'}"
        run = replace(
            run,
            notebook=notebook if notebook.exists() else None,
            verdicts=count_verdicts(folder) if finished and self.profile == "paper" else {},
        )
        self.on_change(run)
        return run

    def _run_locked(self, job: Job, folder: Path, threads: int) -> NotebookRun:
        """The same, while no other process works in the figure's folder."""
        task = job.task
        stem = task.name
        parameters = {**self.parameters, **task.parameters}
        partial = folder / f"{stem}.partial.ipynb"
        log = RunLog(folder / LOG)
        setting: list[Any] = []
        keys = {"key": "", "own_key": ""}
        alone = job.alone
        start = perf_counter()
        try:
            notebook = _read(task)
            setting = [parameters, _own_source(task)]
            status = read_status(folder)
            if self._is_same(notebook, setting, folder, status):
                return NotebookRun(stem, "kept", status["seconds"])
            check_parameters(notebook, parameters)
            self.on_change(NotebookRun(stem, "running"))
            for file in ("status.json", INPUTS):
                (folder / file).unlink(missing_ok=True)
            log.begin(f"{task.id}, {self.profile} profile, {counted(threads, 'thread')}")
            self._execute(job, notebook, partial, parameters, threads, log)
            os.replace(partial, folder / f"{stem}.ipynb")
            run = NotebookRun(stem, "done")
            keys = self._keys(notebook, setting, folder)
        except Exception as e:
            over = self.over.pop(job, "")
            if over and job.alone and not alone:
                return NotebookRun(stem, expected=job.seconds)
            state = "stopped" if self.stopped.is_set() else "failed"
            cell, error = describe_failure(e, partial, self.timeout)
            log.add(str(e))
            run = NotebookRun(stem, state, cell=cell, error=over or error)
        run = replace(run, seconds=round(perf_counter() - start, 2), memory=job.memory)
        log.add(f"{run.state} after {run.seconds} s, {run.memory / 1e9:.2f} GB of memory")
        if run.state != "stopped":
            write_status(folder, keys, run)
        return run

    def _is_same(
        self, notebook: NotebookNode, setting: list[Any], folder: Path, status: dict[str, Any]
    ) -> bool:
        """Whether a notebook's last run was this one, and all that it left is there."""
        if self.force or not status.get("key"):
            return False
        name = "own_key" if self.changed else "key"
        same = status.get(name) == self._keys(notebook, setting, folder)[name]
        others = read_json(folder / INPUTS)
        same = same and all(state(x, self.store) == others[x] for x in others)
        return same and all((folder / file).exists() for file in status["files"])

    def _keys(self, notebook: NotebookNode, setting: list[Any], folder: Path) -> dict[str, str]:
        """Names of a run: by all sources, and by those alone that its kernel had loaded."""
        modules = set(read_json(folder / "manifest.json").get("modules", self.sources))
        own = {
            file: state
            for file, state in self.sources.items()
            if file in modules or not file.endswith(".py")
        }
        return {
            "key": self.key(notebook, setting, self.sources),
            "own_key": self.key(notebook, setting, own),
        }

    def key(self, notebook: NotebookNode, setting: Any, sources: Mapping[str, str]) -> str:
        """Names a run by all that decides what it shows."""
        cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
        parts = [cells, setting, sources, versions("numpy", "scipy", "matplotlib")]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _execute(
        self,
        job: Job,
        notebook: NotebookNode,
        out: Path,
        parameters: Mapping[str, Any],
        threads: int,
        log: RunLog,
    ) -> None:
        import papermill

        from workbench.figures.kernels import ENGINE

        logging.getLogger("papermill").addHandler(logging.NullHandler())  # we say it ourselves
        out.unlink(missing_ok=True)
        with self._kernel(job, threads, log.file) as kernel:
            template = str(out).replace("{", "{{").replace("}", "}}")  # papermill fills it in
            executed = papermill.execute_notebook(
                notebook,
                template,
                parameters,
                engine_name=ENGINE,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                execution_timeout=self.timeout,
                iopub_timeout=60,  # on a busy machine outputs come late, or are lost:
                raise_on_iopub_timeout=False,  # the cell has run, and the page lacks them
                km=kernel,
            )
            log.add_cells(executed)
            kernel.memory()

    @contextmanager
    def _kernel(self, job: Job, threads: int, log: Path) -> Iterator[Kernel]:
        """A kernel that answers, tried three times; it does not outlive the block."""
        from workbench.figures.kernels import Kernel, socket_folder

        for _attempt in range(_ATTEMPTS):
            with temporary_folder(socket_folder()) as home:
                since = self.began if self.force else 0
                kernel = Kernel.at(home, threads, self.notebooks.parent, job.alone, since)
                self.kernels[kernel] = job
                try:
                    why = "stopped"
                    if not self.stopped.is_set():
                        why = kernel.begin(self.notebooks, log)
                    if not why and not self.stopped.is_set():
                        yield kernel
                        return
                finally:
                    kernel.end()
                    del self.kernels[kernel]
                    job.memory = kernel.peak or job.memory
            if self.stopped.is_set():
                break
        raise RuntimeError(f"no kernel: {why}")


def _read(task: Task) -> NotebookNode:
    """The notebook of a figure: its own, or what every figure has."""
    nbformat = load_nbformat()
    if task.path is None:
        return default_notebook(find_figure(task.id))
    return nbformat.read(task.path, as_version=4)


def _own_source(task: Task) -> str:
    """The source of a figure that is not the project's, whose sources are hashed anyway."""
    if task.path is not None:
        return ""
    file = inspect.getsourcefile(find_figure(task.id))
    return Path(file).read_text(encoding="utf-8") if file else ""
