"""Notebooks of a batch: settings, order, logs, and whether a result is up to date."""

from __future__ import annotations

import ast
import csv
import json
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import compiled
from workbench.compiled import load_nbformat
from workbench.figures.figure import Figure, find_figure
from workbench.figures.saved import write_json
from workbench.mechanisms import options
from workbench.trials import claims
from workbench.trials.inputs import state
from workbench.value import did_you_mean, number

if TYPE_CHECKING:
    from nbformat import NotebookNode


# Settings

MANY = 200  # runs that are started without being asked for twice


@dataclass(frozen=True)
class Task:
    """One run of a figure's notebook.

    `name` is its folder among the profile's results, `parameters` what papermill sets beside `profile`
    and `results`; a figure of another package has no `path`, and the cells that every figure has.
    """

    id: str
    path: Path | None
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tasks(
    ids: Sequence[str], paths: Mapping[str, Path], profile: str, settings: Sequence[str]
) -> list[Task]:
    """The runs of figures at every combination of what `settings` list.

    Parameters
    ----------
    ids : sequence of str
        Figures.
    paths : mapping
        Their notebooks.
    profile : str
        "quick" or "paper".
    settings : sequence of str
        `name=value`; several values stand between commas, several lists between semicolons.

    Raises
    ------
    ValueError
        If a figure lacks a parameter, or a value is not allowed for it.
    """
    for id in ids:
        if id not in paths and compiled.find("figures", id) is None:
            raise ValueError(f"no figure {id!r}{did_you_mean(id, paths)}")
    if not settings:
        return [Task(id, paths.get(id), id) for id in ids]
    runs = []
    for id in ids:
        cls = find_figure(id)
        figures = [cls.at(profile, **given) for given in grid(cls, settings)]
        for figure in dict.fromkeys(figures):
            given = {n: _plain(x) for n, x in figure.differences(profile).items()}
            runs.append(Task(id, paths.get(id), figure.name(profile), given))
    return runs


def grid(cls: type[Figure], settings: Sequence[str]) -> list[dict[str, Any]]:
    """Every combination of the values that `settings` list for a figure."""
    known = cls.parameters()
    values: dict[str, list[str]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"-p {setting!r}: need name=value, as in -p epsilon=0.5")
        cls.refuse_unknown([name])
        if name in values:
            raise ValueError(f"-p {name} is given twice; several values stand between commas")
        between = ";" if known[name].metadata["many"] else ","
        values[name] = [part.strip() for part in text.split(between) if part.strip()]
        if not values[name]:
            raise ValueError(
                f"-p {name}: need at least one value; {options.parameter_help(known[name])}"
            )
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def _plain(x: Any) -> Any:
    """A value as papermill writes it: the text `none`, because a notebook's None is the profile's own."""
    return list(x) if isinstance(x, tuple) else "none" if x is None else x


# Notebooks


def check_parameters(notebook: NotebookNode, parameters: dict[str, Any]) -> None:
    """Refuse a notebook that would ignore its parameters; papermill only warns, if at all."""
    tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    if len(tagged) != 1:
        raise ValueError(f"need one cell tagged `parameters`, there are {len(tagged)}")
    statements = ast.parse(tagged[0].source).body
    assignments = [s for s in statements if isinstance(s, ast.Assign)]
    names = {getattr(target, "id", "") for line in assignments for target in line.targets}
    missing = [name for name in parameters if name not in names]
    if missing:
        raise ValueError(
            f"there is no parameter {', '.join(missing)}: the cell tagged `parameters` must "
            f"set {' and '.join(parameters)}"
        )


def runs_alone(path: Path) -> bool:
    """Whether a notebook must not run beside others."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return any("alone" in cell["metadata"].get("tags", ()) for cell in cells)
    except (ValueError, KeyError, TypeError):
        return False  # not a notebook; running it says so


def source_hashes(project: Path, store: Path) -> dict[str, str]:
    """Hashes of what notebooks reach: workbench, experiments, and the data in their folders.

    Data is named as it is looked for, so that it may move. `store` keeps hashes of large files.
    """
    package = Path(__file__).resolve().parents[1]
    hashes = {}
    for folder in (package, project / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if "results" not in relative.parts:
                name = f"{folder.name}/{relative.as_posix()}"
                hashes[name] = state(str(path))
    stated = os.environ.get("WORKBENCH_DATA")
    for data in (*([Path(stated).expanduser()] if stated else []), project / "data" / "raw"):
        for path in sorted(data.rglob("*")):
            if path.is_file():
                name = f"data: {path.relative_to(data).as_posix()}"
                hashes.setdefault(name, state(str(path.resolve()), store))
    return hashes


# Schedule


@dataclass(eq=False)
class Job:
    """A task that waits or runs, and what is known of it from its last run.

    `alone` runs beside nothing; `seconds` and `memory`, in bytes, are what it took last time; `patient`
    waits for another process that works on the figure, instead of letting others go first.
    """

    task: Task
    alone: bool = False
    seconds: float | None = None
    memory: int = 0
    patient: bool = False


def in_order(jobs: Sequence[Job]) -> list[Job]:
    """The longest first, before them those of which nothing is known; what runs alone comes last."""
    unknown = float("inf")
    return sorted(jobs, key=lambda job: (job.alone, -(job.seconds or unknown)))


def next_job(
    waiting: Sequence[Job], running: Collection[Job], workers: int, ceiling: float
) -> Job | None:
    """The first that may start now; None while there is no room.

    Parameters
    ----------
    waiting : sequence of Job
        In their order.
    running : collection of Job
        What runs now.
    workers : int
        How many may run at once.
    ceiling : float
        Bytes of memory that all may take together; one alone always starts.
    """
    if not running:
        return waiting[0] if waiting else None
    if len(running) >= workers or any(job.alone for job in running):
        return None
    taken = sum(job.memory for job in running)
    fitting = (job for job in waiting if not job.alone and taken + job.memory <= ceiling)
    return next(fitting, None)


# Run log

LOG = "run.log"


class RunLog:
    """The log of one notebook's run, beside what it makes."""

    def __init__(self, file: Path):
        self.file = file

    def begin(self, text: str) -> None:
        """A new log."""
        self.file.unlink(missing_ok=True)
        self.add(text)

    def add(self, text: str) -> None:
        """A line with the time, or several."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError), open(self.file, "a", encoding="utf-8") as file:  # a full disk
            file.write(f"{now}  {text}\n")

    def add_cells(self, executed: NotebookNode) -> None:
        """How long each cell took."""
        for cell in executed.cells:
            seconds = cell.metadata.get("papermill", {}).get("duration")
            if cell.cell_type == "code" and seconds is not None:
                first = cell.source.strip().partition("\n")[0]
                self.add(f"{seconds:8.1f} s  In [{cell.execution_count}]: {first}")


# Status


@dataclass(frozen=True)
class NotebookRun:
    """What became of one notebook.

    `state` is waiting, running, done, kept (up to date, not run again), failed or stopped;
    `cell` and `error` say where and why it failed; `verdicts` counts outcomes of its claims;
    `expected` is how many seconds it took last time, `memory` how many bytes at most.
    """

    stem: str
    state: str = "waiting"
    seconds: float = 0.0
    notebook: Path | None = None
    cell: str = ""
    error: str = ""
    verdicts: dict[str, int] = field(default_factory=dict)
    expected: float | None = None
    memory: int = 0


def read_status(folder: Path) -> dict[str, Any]:
    """The status record of a notebook's folder; empty while it has none."""
    return read_json(folder / "status.json")


def read_json(file: Path) -> dict[str, Any]:
    """What a file holds; empty where there is none, or half of one."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_status(folder: Path, keys: dict[str, str], run: NotebookRun) -> None:
    """Write the status, last of all: what is named in it is there."""
    files = [path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    status = {
        **keys,
        "state": run.state,
        "seconds": run.seconds,
        "memory": run.memory,
        "cell": run.cell,
        "error": run.error,
        "files": sorted(files),
    }
    write_json(folder / "status.json", status)


def count_verdicts(folder: Path) -> dict[str, int]:
    """How many statements ended how, in six columns; none where a notebook judges nothing."""
    try:
        with open(folder / "verdicts.csv", encoding="utf-8", newline="") as file:
            return claims.add_up(
                [row["mark"] or row["outcome"]] for row in csv.DictReader(file)
            )
    except FileNotFoundError:
        return {}


class Stopped(Exception):
    """The batch was stopped while a notebook waited for another process."""


class Busy(Exception):
    """Another process works in a notebook's folder."""


@contextmanager
def locked(folder: Path, stopped: threading.Event, patient: bool = True) -> Iterator[None]:
    """Wait until no other process or thread works in a folder, and keep them out meanwhile.

    SQLite's own lock, of an empty database: it works on every system, and ends with its process.
    Who is not patient gets a `Busy` instead of waiting.
    """
    try:
        lock = sqlite3.connect(folder / ".lock", timeout=0.2, isolation_level=None)
    except sqlite3.OperationalError as e:
        raise OSError(f"{folder} cannot be written: {e}") from None
    with closing(lock):
        while True:
            if stopped.is_set():
                raise Stopped
            try:
                lock.execute("BEGIN EXCLUSIVE")
                break
            except sqlite3.OperationalError as e:
                if e.sqlite_errorname != "SQLITE_BUSY":
                    raise OSError(f"{folder} cannot be written: {e}") from None
                if not patient:
                    raise Busy from None
        yield


def describe_failure(e: Exception, partial: Path, timeout: float) -> tuple[str, str]:
    """The cell that failed and the last line of its error."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError, strip_color

    if isinstance(e, PapermillExecutionError):
        lines = strip_color(f"{e.ename}: {e.evalue}").strip().splitlines()
        return _describe_cell(e.source, e.exec_count), lines[0]
    cell = _last_started_cell(partial) if partial.exists() else ""
    if isinstance(e, CellTimeoutError):
        return cell, f"took longer than {number(timeout)} s"
    if isinstance(e, DeadKernelError):
        return cell, "the kernel died (killed, or out of memory)"
    ours = isinstance(e, ValueError | RuntimeError)
    error = str(e) if ours else f"{type(e).__name__}: {e}"
    return cell, error.strip().splitlines()[0]


def _last_started_cell(partial: Path) -> str:
    """Of a partial notebook, whose cells all say `completed`."""
    try:
        cells = load_nbformat().read(partial, as_version=4).cells
    except ValueError:  # half of it is there: the disk was full
        return ""
    code = [cell for cell in cells if cell.cell_type == "code"]
    started = [c for c in code if c.metadata.get("papermill", {}).get("start_time")]
    return _describe_cell(started[-1].source, len(started)) if started else ""


def _describe_cell(source: str, count: int | None) -> str:
    lines = [line for line in source.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    more = " …" if len(lines) > 1 else ""
    return f"In [{count or ' '}]: {first}{more}"
