"""Where a trial's rows are kept: a file named by all that decides them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import time
from typing import Any

from workbench.experiment.sweep import Dataset, Sweep, Trial
from workbench.temporary import Draft, remove_drafts

_STARTED = time()


def row_file(trial: Trial, sweep: Sweep, store: Path) -> Path | None:
    """Where a trial's rows are kept; None if code that is in no module's file decides them."""
    modules = _deciding_modules(trial, sweep)
    without_file = sorted(module for module in modules if not _has_source(module))
    if without_file:
        warnings.warn(f"not cached: {without_file} is not the file of a module", stacklevel=3)
        return None
    texts = [repr(trial), *map(repr, sweep.metrics), *map(repr, sweep.estimators)]
    nameless = [text for text in texts if " at 0x" in text]
    if nameless:
        warnings.warn(f"not cached: {nameless[0]} does not say what it is", stacklevel=3)
        return None
    edited = _edited(modules)
    if edited:
        warnings.warn(
            f"not cached: {edited} changed since it was imported; restart", stacklevel=3
        )
        return None
    texts += _file_states(trial.dataset)
    texts += [_source_hash(modules), _version("numpy"), _version("scipy")]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return store / f"{digest[:32]}.json"


def read_rows(file: Path | None) -> list[dict[str, Any]]:
    """Rows kept earlier; none if there are none, or if they cannot be read."""
    if file is None or not file.exists():
        return []
    try:
        return json.loads(file.read_text())
    except ValueError:
        return []


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Keep rows: all of them or, if the process is killed meanwhile, none."""
    _clean(file.parent)
    try:
        with closing(Draft(file, clean=False)) as draft:
            draft.path.write_text(json.dumps(rows))
            draft.replace(file)
    except OSError as e:
        raise OSError(
            f"{file} was not written: {e.strerror or e}; rows before it are kept"
        ) from None


@cache
def _clean(store: Path) -> None:
    """Remove what processes that were killed left half-written; once, since a store holds many files."""
    remove_drafts(store)


def _deciding_modules(trial: Trial, sweep: Sweep) -> frozenset[str]:
    """The modules of all values that decide a trial's rows, and of the values in them."""
    actors = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]
    for name in ("mechanism", "dataset"):  # what a value wraps
        actors += filter(None, [getattr(actor, name, None) for actor in actors])
    actors += filter(None, [getattr(metric, "workload", None) for metric in sweep.metrics])
    owners = [a if hasattr(a, "__qualname__") else type(a) for a in actors]
    return frozenset(owner.__module__ for owner in owners)


def _file_states(dataset: Dataset) -> list[str]:
    """The published files that a dataset reads, as they are now: name, size and time of change."""
    states = []
    for file in dataset.files() if hasattr(dataset, "files") else ():
        try:
            stat = file.stat()
            states.append(f"{file.name} {stat.st_size} {stat.st_mtime_ns}")
        except FileNotFoundError:
            states.append(f"{file.name} missing")
    return states


_version = cache(version)  # it reads a file, and every trial asks


@cache
def _source_hash(modules: frozenset[str]) -> str:
    """A hash of the sources of `modules` and of all workbench modules they reach by import."""
    text = "".join(path.read_text() for path in _sources(modules))
    return hashlib.sha256(text.encode()).hexdigest()


def _edited(modules: frozenset[str]) -> str:
    """The first of those sources that is younger than this process, whose code is then unknown."""
    young = (path.name for path in _sources(modules) if path.stat().st_mtime > _STARTED)
    return next(young, "")


@cache
def _sources(modules: frozenset[str]) -> tuple[Path, ...]:
    """The source files of `modules`, of this room, and of all that they reach by import.

    Imports are followed within workbench and within the packages of `modules`: somebody's mechanism, and a
    figure's own metric, are keyed by their sources as ours are.
    """
    packages = frozenset({"workbench", *(name.partition(".")[0] for name in modules)})
    sources: dict[str, Path] = {}
    remaining = [*modules, __package__]
    while remaining:
        name = remaining.pop()
        if name in sources or name == "workbench":
            continue
        path = _source(name)
        if path is not None:
            sources[name] = path
            remaining += [n for n in _imports(path) if n.partition(".")[0] in packages]
    return tuple(sources[name] for name in sorted(sources))


@cache
def _imports(path: Path) -> list[str]:
    """The names of modules, and of what may be modules, that a source file imports."""
    names = []
    for node in _statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, of blocks in blocks too; imports stand nowhere else."""
    for statement in body:
        yield statement
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(statement, block, ()))


def _has_source(name: str) -> bool:
    return name != "__main__" and _source(name) is not None


@cache
def _source(name: str) -> Path | None:
    """The source file of a module; None if there is none of that name, or it has no file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        return None
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return None
    return Path(str(spec.origin))
