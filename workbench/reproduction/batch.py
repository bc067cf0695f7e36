"""Notebooks that are run together: each once, several at once, timings alone."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from workbench.figures import figure_folder, find_notebooks, versions
from workbench.reproduction.notebooks import (
    check_parameters,
    runs_alone,
    source_hashes,
)
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
    for stem in stems:
        if stem not in paths:
            raise ValueError(f"no figure {stem!r}; there are: {', '.join(paths)}")
    for name, x, least in (("workers", workers, 1), ("timeout", timeout, 0.1)):
        if x is not None and not x >= least:
            raise ValueError(f"{name} = {x!r} is not allowed: need a number >= {least}")
    chosen = list(dict.fromkeys(stems or paths))
    for stem in chosen:
        figure_folder(results, profile, stem).mkdir(parents=True, exist_ok=True)

    import joblib

    cores = joblib.cpu_count()
    workers = min(workers or cores, len(chosen))
    timeout = timeout or TIMEOUT[profile]
    batch = _Batch(notebooks, results, profile, force, timeout, on_change)
    for stem in chosen:
        on_change(NotebookRun(stem))
    alone = [stem for stem in chosen if runs_alone(paths[stem])]
    together = [stem for stem in chosen if stem not in alone]
    done: dict[str, NotebookRun] = {}
    for group, at_once in ((together, workers), (alone, 1)):
        threads = max(1, cores // min(at_once, len(group) or 1))
        with ThreadPoolExecutor(at_once) as pool:
            futures = {
                stem: pool.submit(batch.run, stem, paths[stem], threads) for stem in group
            }
            try:
                wait(futures.values())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                batch.stop()
                raise
        done |= {stem: future.result() for stem, future in futures.items()}
    return [done[stem] for stem in chosen]


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

    def run(self, stem: str, path: Path, threads: int) -> NotebookRun:
        """One notebook, from waiting to done, kept, failed or stopped."""
        folder = figure_folder(self.results, self.profile, stem)
        try:
            with locked(folder, self.stopped):
                run = self._run_locked(stem, path, folder, threads)
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

    def _run_locked(self, stem: str, path: Path, folder: Path, threads: int) -> NotebookRun:
        """The same, while no other process works in the figure's folder."""
        import nbformat

        partial = folder / f"{stem}.partial.ipynb"
        key = ""
        start = perf_counter()
        try:
            notebook = nbformat.read(path, as_version=4)
            new_key = self.key(notebook)
            status = read_status(folder)
            same = not self.force and status.get("key") == new_key
            if same and all((folder / name).exists() for name in status["files"]):
                return NotebookRun(stem, "kept", status["seconds"])
            check_parameters(notebook, self.parameters)
            self.on_change(NotebookRun(stem, "running"))
            (folder / "status.json").unlink(missing_ok=True)
            self._execute(notebook, partial, threads)
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

    def key(self, notebook: NotebookNode) -> str:
        """Names a run by all that decides what it shows."""
        cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
        parts = [cells, self.parameters, self.sources, versions("numpy", "scipy", "matplotlib")]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _execute(self, notebook: NotebookNode, out: Path, threads: int) -> None:
        import papermill

        logging.getLogger("papermill").addHandler(logging.NullHandler())  # we say it ourselves
        out.unlink(missing_ok=True)
        with self._kernel(threads) as kernel:
            template = str(out).replace("{", "{{").replace("}", "}}")  # papermill fills it in
            papermill.execute_notebook(
                notebook,
                template,
                self.parameters,
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
