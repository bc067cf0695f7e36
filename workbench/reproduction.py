"""Notebooks to executed notebooks: several at once, each in a kernel of its own.

A notebook is run by papermill with two parameters, `profile` ("quick" or "paper") and `results`
(a folder), in its own folder, by this very interpreter. Its executed copy takes its place in
`<results>/<profile>/<stem>/` when it has run to its end; until then, and after a failure, the
copy is called `<stem>.partial.ipynb`. A status record, renamed into place last, says under
which sources it ran: while these are the same, the notebook is not run again. Of several
processes on one results folder, one at a time makes a figure, and the others then take what it
made. A cell tagged `alone` keeps its notebook (a timing) from running beside others.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, sleep

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync

from workbench.figures import figure_folder, versions, write_atomically

TIMEOUT = {"quick": 600, "paper": 6 * 3600}  # seconds a cell may take
_START = 60  # seconds a kernel may take to answer
_LIMITS = ("OMP", "OPENBLAS", "MKL", "NUMBA")  # <LIMIT>_NUM_THREADS


@dataclass(frozen=True)
class NotebookRun:
    """What became of one notebook.

    `state` is waiting, running, done, kept (up to date, not run again), failed or stopped;
    `cell` and `error` say where and why it failed; `verdicts` counts outcomes of its claims.
    """

    stem: str
    state: str = "waiting"
    seconds: float = 0.0
    notebook: Path | None = None
    cell: str = ""
    error: str = ""
    verdicts: dict[str, int] = field(default_factory=dict)


def project_folder() -> Path:
    """The project: the folder that holds the package and notebooks, else the current one."""
    beside = Path(__file__).resolve().parents[1]
    return beside if (beside / "notebooks").is_dir() else Path.cwd()


def find_notebooks(notebooks: Path) -> dict[str, Path]:
    """The notebooks of a folder by stem, in the order of their names."""
    return {path.stem: path for path in sorted(notebooks.glob("*.ipynb"))}


def reproduce(
    stems: Sequence[str] = (),
    *,
    notebooks: Path,
    results: Path,
    profile: str = "quick",
    workers: int | None = None,
    force: bool = False,
    timeout: float | None = None,
    tell: Callable[[NotebookRun], None] = lambda run: None,
) -> list[NotebookRun]:
    """Run notebooks (all, if none is named) and say what became of each.

    One that fails is reported and the rest go on. `tell` hears of every change of state, from
    any thread. A KeyboardInterrupt stops the kernels and is passed on; what had finished stays.
    """
    notebooks, results = Path(notebooks).resolve(), Path(results).resolve()
    there = find_notebooks(notebooks)
    if not there:
        raise ValueError(f"{notebooks} holds no notebooks")
    for stem in stems:
        if stem not in there:
            raise ValueError(f"no figure {stem!r}; there are: {', '.join(there)}")
    for name, x, least in (("workers", workers, 1), ("timeout", timeout, 0.1)):
        if x is not None and not x >= least:
            raise ValueError(f"{name} = {x!r} is not allowed: need a number >= {least}")
    for stem in (chosen := list(dict.fromkeys(stems or there))):
        figure_folder(results, profile, stem).mkdir(parents=True, exist_ok=True)

    import joblib

    cores = joblib.cpu_count()
    workers = min(workers or cores, len(chosen))
    batch = _Batch(notebooks, results, profile, force, timeout or TIMEOUT[profile], tell)
    for stem in chosen:
        tell(NotebookRun(stem))
    alone = [stem for stem in chosen if _is_alone(there[stem])]
    together = [stem for stem in chosen if stem not in alone]
    done = {}
    for some, hands in ((together, workers), (alone, 1)):
        threads = max(1, cores // min(hands, len(some) or 1))
        with ThreadPoolExecutor(hands) as pool:
            futures = {stem: pool.submit(batch.run, there[stem], threads) for stem in some}
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
    """Notebooks that are run together: what they share, and the kernels that are alive."""

    notebooks: Path
    results: Path
    profile: str
    force: bool
    timeout: float
    tell: Callable[[NotebookRun], None]

    def __post_init__(self):
        self.stopped = threading.Event()
        self.kernels: set[_Kernel] = set()
        self.sources = _sources(self.notebooks.parent)
        self.parameters = {"profile": self.profile, "results": str(self.results)}

    def stop(self) -> None:
        """Kill every kernel and let none start; who waits for one notices within a second."""
        self.stopped.set()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for kernel in list(self.kernels):
                kernel.signal(number)
            sleep(0.5)  # joblib's workers clean up after themselves meanwhile

    def run(self, path: Path, threads: int) -> NotebookRun:
        """One notebook, from waiting to done, kept, failed or stopped."""
        run, into = NotebookRun(path.stem), figure_folder(self.results, self.profile, path.stem)
        try:
            with _locked(into, self.stopped):
                return self._run_locked(path, threads, run, into)
        except _Stopped:
            return self._end(into, replace(run, state="stopped"))

    def _run_locked(
        self, path: Path, threads: int, run: NotebookRun, into: Path
    ) -> NotebookRun:
        """The same, while no other process works in the figure's folder."""
        start = perf_counter()
        try:
            notebook = nbformat.read(path, as_version=4)
            key = self.key(notebook)
            known = read_status(into)
            same = not self.force and known.get("key") == key
            if same and all((into / name).exists() for name in known["files"]):
                return self._end(into, replace(run, state="kept", seconds=known["seconds"]))
            _check(notebook, self.parameters)
            self.tell(replace(run, state="running"))
            (into / "status.json").unlink(missing_ok=True)
            self._execute(notebook, into / f"{path.stem}.partial.ipynb", threads)
            os.replace(into / f"{path.stem}.partial.ipynb", into / f"{path.stem}.ipynb")
            run = replace(run, state="done")
        except Exception as e:
            key, state = "", "stopped" if self.stopped.is_set() else "failed"
            cell, error = _what_failed(e, into / f"{path.stem}.partial.ipynb", self.timeout)
            run = replace(run, state=state, cell=cell, error=error)
        run = replace(run, seconds=round(perf_counter() - start, 2))
        if run.state != "stopped":
            _record(into, key, run)
        return self._end(into, run)

    def key(self, notebook: nbformat.NotebookNode) -> str:
        """Names a run by all that decides what it shows."""
        cells = [[cell.cell_type, cell.source, cell.metadata] for cell in notebook.cells]
        parts = [cells, self.parameters, self.sources, versions("numpy", "scipy", "matplotlib")]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _end(self, into: Path, run: NotebookRun) -> NotebookRun:
        """Name the notebook, count the verdicts, tell."""
        kind = "partial.ipynb" if run.state in ("failed", "stopped") else "ipynb"
        notebook = into / f"{run.stem}.{kind}"
        run = replace(
            run,
            notebook=notebook if notebook.exists() else None,
            verdicts=_counts(into) if run.state in ("done", "kept") else {},
        )
        self.tell(run)
        return run

    def _execute(self, notebook: nbformat.NotebookNode, out: Path, threads: int) -> None:
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
    def _kernel(self, threads: int) -> Iterator[_Kernel]:
        """A kernel that answers, tried three times; it does not outlive the block."""
        for _attempt in range(3):
            with tempfile.TemporaryDirectory(
                prefix="wb-", dir=_short(), ignore_cleanup_errors=True
            ) as home:
                kernel = _Kernel.at(Path(home), threads, self.notebooks.parent)
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


class _Stopped(Exception):
    """The batch was stopped while a notebook waited for another process."""


@contextmanager
def _locked(into: Path, stopped: threading.Event) -> Iterator[None]:
    """Wait until no other process or thread works in a folder, and keep them out meanwhile.

    SQLite's own lock, of an empty database: it works on every system, and ends with its process.
    """
    with closing(sqlite3.connect(into / ".lock", timeout=0.2, isolation_level=None)) as lock:
        while True:
            if stopped.is_set():
                raise _Stopped
            try:
                lock.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as e:
                if e.sqlite_errorname != "SQLITE_BUSY":
                    raise
        yield


class _ThisPython(KernelSpecManager):
    """Whatever kernels the machine knows: notebooks are run by the interpreter that runs us."""

    env: dict[str, str] = {}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The one kernel there is."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, env=self.env, display_name="Python", language="python")


class _Kernel(AsyncKernelManager):
    """A kernel with sockets in a folder of its own, that can hang up on its clients."""

    clients: list

    @classmethod
    def at(cls, home: Path, threads: int, project: Path) -> _Kernel:
        """A kernel not yet started, with its share of the cores."""
        specs = _ThisPython()
        wanted = {f"{name}_NUM_THREADS": str(threads) for name in _LIMITS}
        wanted |= {"POLARS_MAX_THREADS": str(threads), "LOKY_MAX_CPU_COUNT": str(threads)}
        specs.env = {name: n for name, n in wanted.items() if name not in os.environ}
        paths = [str(project), os.environ.get("PYTHONPATH", "")]  # for `import experiments`
        specs.env |= {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        specs.env |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        ipc = {"transport": "ipc", "ip": str(home / "k")} if os.name == "posix" else {}
        kernel = cls(
            kernel_spec_manager=specs, connection_file=str(home / "kernel.json"), **ipc
        )
        kernel.clients = []
        return kernel

    def client(self, **kwargs):
        """A client, remembered."""
        self.clients.append(super().client(**kwargs))
        return self.clients[-1]

    def begin(self, cwd: Path, log: Path) -> str:
        """Start and wait for an answer; returns why there is none, or nothing."""
        try:
            with open(log, "wb") as out:
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
            said = log.read_text(errors="replace").strip().splitlines()
            return said[-1] if said else str(e) or "it does not answer"

    def signal(self, number: int) -> None:
        """Signal it and the processes it has started, from any thread."""
        _signal(getattr(self.provisioner, "pgid", None), number)

    def end(self) -> None:
        """Hang up, shut it down, and end what it has started."""
        group = getattr(self.provisioner, "pgid", None)
        for client in self.clients:
            client.stop_channels()
        if self.has_kernel:
            run_sync(self.shutdown_kernel)()
        _signal(group, signal.SIGTERM)


def _signal(group: int | None, number: int) -> None:
    if group and group != os.getpgrp():
        with suppress(OSError):  # it is gone
            os.killpg(group, number)


def _short() -> str | None:
    """A folder for sockets, whose names may not be longer than about 100 bytes."""
    fits = len(os.fsencode(tempfile.gettempdir())) <= 60
    return None if fits or os.name != "posix" else "/tmp"


def _check(notebook: nbformat.NotebookNode, parameters: dict) -> None:
    """Refuse a notebook that would ignore what it is told; papermill only warns, if at all."""
    tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    if len(tagged) != 1:
        raise ValueError(f"need one cell tagged `parameters`, there are {len(tagged)}")
    lines = [x for x in ast.parse(tagged[0].source).body if isinstance(x, ast.Assign)]
    known = [getattr(target, "id", "") for line in lines for target in line.targets]
    if missing := [name for name in parameters if name not in known]:
        raise ValueError(
            f"there is no parameter {', '.join(missing)}: the cell tagged `parameters` must "
            f"set {' and '.join(parameters)}"
        )


def _is_alone(path: Path) -> bool:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return any("alone" in cell["metadata"].get("tags", ()) for cell in cells)
    except (ValueError, KeyError, TypeError):
        return False  # not a notebook; running it says so


def _sources(project: Path) -> dict[str, str]:
    """What notebooks reach: the sources of workbench and experiments, and the data at hand."""
    package = Path(__file__).resolve().parent
    found = {}
    for top in (package, project / "experiments"):
        for path in sorted(top.rglob("*.py")):
            if "results" not in path.relative_to(top).parts:
                name = f"{top.name}/{path.relative_to(top).as_posix()}"
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    for top in filter(None, (os.environ.get("WORKBENCH_DATA"), project / "data" / "raw")):
        for path in sorted(Path(top).rglob("*")):
            if path.is_file():
                found[str(path)] = str(path.stat().st_size)
    return found


def _what_failed(e: Exception, partial: Path, timeout: float) -> tuple[str, str]:
    """The cell that failed and the last line of what it said."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError, strip_color

    if isinstance(e, PapermillExecutionError):
        last = strip_color(f"{e.ename}: {e.evalue}").strip().splitlines()
        return _cell(e.source, e.exec_count), last[0]
    started = ""
    if partial.exists():  # its cells all say `completed`; the last that was started is the one
        cells = nbformat.read(partial, as_version=4).cells
        begun = [c for c in cells if c.metadata.get("papermill", {}).get("start_time")]
        code = [c for c in begun if c.cell_type == "code"]
        started = _cell(code[-1].source, len(code)) if code else ""
    if isinstance(e, CellTimeoutError):
        return started, f"took longer than {timeout:g} s"
    if isinstance(e, DeadKernelError):
        return started, "the kernel died (killed, or out of memory)"
    ours = isinstance(e, ValueError | RuntimeError)
    return started, f"{'' if ours else type(e).__name__ + ': '}{e}".strip().splitlines()[0]


def _cell(source: str, count: int | None) -> str:
    lines = [line for line in source.splitlines() if line.strip()]
    return f"In [{count or ' '}]: {lines[0] if lines else ''}{' …' * (len(lines) > 1)}"


def _record(into: Path, key: str, run: NotebookRun) -> None:
    """Write the status, last of all: what is named in it is there."""
    told = {
        "key": key,
        "state": run.state,
        "seconds": run.seconds,
        "cell": run.cell,
        "error": run.error,
        "files": sorted(p.name for p in into.iterdir() if p.is_file() and p.name[0] != "."),
    }
    text = json.dumps(told, indent=1, ensure_ascii=False)
    write_atomically(
        into / "status.json", lambda path: path.write_text(text + "\n", encoding="utf-8")
    )


def read_status(into: Path) -> dict:
    """The status record of a notebook's folder; empty while it has none."""
    try:
        return json.loads((into / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _counts(into: Path) -> dict[str, int]:
    import csv
    from collections import Counter

    try:
        with open(into / "verdicts.csv", encoding="utf-8", newline="") as file:
            return dict(Counter(row["outcome"] for row in csv.DictReader(file)))
    except FileNotFoundError:
        return {}  # a tour judges nothing
