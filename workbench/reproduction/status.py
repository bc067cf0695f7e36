"""What became of a notebook, as its folder records it; and the lock of a folder."""

from __future__ import annotations

import csv
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.figures import write_json
from workbench.libraries import load_nbformat
from workbench.wording import number


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
    """How many claims ended how; none where a notebook judges nothing."""
    try:
        with open(folder / "verdicts.csv", encoding="utf-8", newline="") as file:
            return dict(Counter(row["outcome"] for row in csv.DictReader(file)))
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
