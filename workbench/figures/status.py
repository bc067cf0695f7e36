"""Tasks of a batch, and the record that each run of a notebook leaves in its folder."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from workbench import compiled
from workbench.compiled import load_nbformat, pd
from workbench.figures.figure import Figure, find_figure
from workbench.figures.saved import write_json
from workbench.mechanisms import options
from workbench.trials import claims
from workbench.trials.inputs import state
from workbench.value import did_you_mean, number

# Tasks

MANY = 200  # runs that start without --yes


@dataclass(frozen=True)
class Task:
    """Run of a figure's notebook in a batch.

    `name` is the name of the folder for the results of the run. The library papermill sets the `parameters`
    in the notebook, in addition to `profile` and `results`. A figure of another package has no `path`, and
    runs the default notebook.
    """

    id: str
    path: Path | None
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tasks(
    ids: Sequence[str], paths: Mapping[str, Path], profile: str, settings: Sequence[str]
) -> list[Task]:
    """Return the runs of some figures, one run for every combination of the values in `settings`.

    Parameters
    ----------
    ids : sequence of str
        Figures.
    paths : mapping
        Paths of notebooks, by the ids of their figures.
    profile : str
        "quick" or "paper".
    settings : sequence of str
        Values of parameters, each as a text `name=value`, for example `epsilon=0.1,0.5`. Commas separate
        several values. If the values are lists, semicolons separate them.

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
    """Return every combination of the values in `settings` for a figure. Each combination is a dictionary
    from names of parameters to values as text.
    """
    known = cls.parameters()
    values: dict[str, list[str]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"-p {setting!r}: need name=value, for example -p epsilon=0.5")
        cls.refuse_unknown([name])
        if name in values:
            raise ValueError(f"-p {name} is given twice. Separate several values with commas.")
        between = ";" if known[name].metadata["many"] else ","
        values[name] = [part.strip() for part in text.split(between) if part.strip()]
        if not values[name]:
            raise ValueError(
                f"-p {name}: need at least one value; {options.parameter_help(known[name])}"
            )
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def _plain(x: Any) -> Any:
    """Return a parameter's value in the form that the library papermill writes to a notebook.

    None becomes "none", because None in a notebook means the value of the profile.
    """
    return list(x) if isinstance(x, tuple) else "none" if x is None else x


def runs_alone(task: Task) -> bool:
    """Return whether a notebook must run alone, because it measures times."""
    if task.path is None:
        return False
    cells = read_json(task.path).get("cells", ())
    return any("alone" in cell.get("metadata", {}).get("tags", ()) for cell in cells)


def source_hashes(project: Path, store: Path) -> dict[str, str]:
    """Return the hashes of all source files and data files that notebooks may use, by name. The files are in
    the folders of the workbench, the experiments and the data.

    A data file is named relative to its folder, so the folder may move. The folder `store` keeps hashes of
    large files.
    """
    package = Path(__file__).resolve().parents[1]
    hashes = {}
    for folder in (package, project / "experiments"):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("statements.toml")]):
            relative = path.relative_to(folder)
            if "results" not in relative.parts:
                hashes[f"{folder.name}/{relative.as_posix()}"] = state(str(path))
    stated = os.environ.get("WORKBENCH_DATA")
    for data in (*([Path(stated).expanduser()] if stated else []), project / "data" / "raw"):
        for path in sorted(data.rglob("*")):
            if path.is_file():
                name = f"data: {path.relative_to(data).as_posix()}"
                hashes.setdefault(name, state(str(path.resolve()), store))
    return hashes


# Records

LOG = "run.log"


@dataclass(frozen=True)
class NotebookRun:
    """State of one run of a notebook, and its outcome at the end.

    `state` is waiting, running, done, kept (up to date, not run again), failed or stopped. If the notebook
    failed, `cell` names the cell, and `error` the reason. `verdicts` contains the number of statements by
    outcome. `seconds` is the duration of the run.
    """

    stem: str
    state: str = "waiting"
    seconds: float = 0.0
    notebook: Path | None = None
    cell: str = ""
    error: str = ""
    verdicts: dict[str, int] = field(default_factory=dict)


def read_status(folder: Path) -> dict[str, Any]:
    """Return the record that the last run left in a notebook's folder. The result is empty if there is no
    record.
    """
    return read_json(folder / "status.json")


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file as a dictionary. The dictionary is empty if the file is missing or
    incomplete.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_status(folder: Path, keys: dict[str, str], run: NotebookRun) -> None:
    """Write the record of a finished run to its folder. The record lists all other files in the folder, so
    write it last.
    """
    files = [path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    told = {name: getattr(run, name) for name in ("state", "seconds", "cell", "error")}
    write_json(folder / "status.json", {**keys, **told, "files": sorted(files)})


def count_verdicts(folder: Path) -> dict[str, int]:
    """Return the number of statements by outcome. The dictionary is empty if the notebook has saved no
    verdicts.
    """
    file = folder / "verdicts.csv"
    if not file.exists():
        return {}
    return claims.count_outcomes(pd.read_csv(file, dtype=str, keep_default_na=False))


@contextmanager
def locked(folder: Path, stopped: threading.Event) -> Iterator[None]:
    """Wait until no other process works in a folder, and then keep others out. Stop waiting if `stopped` is
    set.

    The lock is SQLite's, on an empty database. It works on every system and ends with its process.
    """
    try:
        with closing(sqlite3.connect(folder / ".lock", 0.2, isolation_level=None)) as lock:
            while not stopped.is_set():
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.OperationalError as e:
                    if e.sqlite_errorname != "SQLITE_BUSY":
                        raise
            yield
    except sqlite3.OperationalError as e:
        raise OSError(f"{folder} cannot be written: {e}") from None


# Failures


def describe_failure(e: Exception, partial: Path, timeout: float) -> tuple[str, str]:
    """Return two texts: the cell in which a failed run ended, and the first line of the error."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError, strip_color

    match e:
        case PapermillExecutionError():
            error = strip_color(f"{e.ename}: {e.evalue}")
        case CellTimeoutError():
            error = f"took longer than {number(timeout)} s"
        case DeadKernelError():
            error = "the kernel died (killed, or out of memory)"
        case ValueError() | RuntimeError():
            error = str(e)
        case _:
            error = f"{type(e).__name__}: {e}"
    return _last_started_cell(partial), (error.strip() or type(e).__name__).splitlines()[0]


def _last_started_cell(partial: Path) -> str:
    """Return the number and the first line of the last cell that an unfinished notebook started."""
    try:
        cells = load_nbformat().read(partial, as_version=4).cells
    except (OSError, ValueError):  # missing, or incomplete on a full disk
        return ""
    started = [c for c in cells if c.cell_type == "code" and c.metadata.papermill.start_time]
    if not started:
        return ""
    first, *more = [line for line in started[-1].source.splitlines() if line.strip()] or [""]
    count = started[-1].execution_count or len(started)
    return f"In [{count}]: {first}{' …' if more else ''}"
