"""Where a trial's rows are kept: a file named by all that decides them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import secrets
import sys
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.experiment.sweep import Dataset, Sweep, Trial

_STARTED = time()


def row_file(trial: Trial, sweep: Sweep, store: Path) -> Path | None:
    """Where a trial's rows are kept; None if code outside the package decides them."""
    modules = _deciding_modules(trial, sweep)
    outside = sorted(m for m in modules if not m.startswith("workbench."))
    if outside:
        warnings.warn(f"not cached: {outside} is not part of workbench", stacklevel=3)
        return None
    edited = _edited(modules)
    if edited:
        warnings.warn(
            f"not cached: {edited} changed since it was imported; restart", stacklevel=3
        )
        return None
    text = [repr(trial), *map(repr, sweep.metrics), *map(repr, sweep.estimators)]
    text += _file_states(trial.dataset)
    text += [_source_hash(modules), _version("numpy"), _version("scipy")]
    digest = hashlib.sha256("\n".join(text).encode()).hexdigest()
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
    draft = file.with_suffix(f".{secrets.token_hex(8)}.part")
    draft.write_text(json.dumps(rows))
    os.replace(draft, file)


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
            stat = file.find().stat()
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
    """The source files of `modules`, of this room, and of all workbench modules they reach by import."""
    sources: dict[str, Path] = {}
    remaining = [*modules, __package__]
    while remaining:
        name = remaining.pop()
        if name in sources or name == "workbench" or not name.startswith("workbench"):
            continue
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            sources[name] = Path(spec.origin)
            remaining += _imports(sources[name])
    return tuple(sources[name] for name in sorted(sources))


@cache
def _imports(path: Path) -> list[str]:
    """The workbench modules that a source file names."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if _is_module(name)]


@cache
def _is_module(name: str) -> bool:
    if not name.startswith("workbench"):
        return False
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
