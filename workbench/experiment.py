"""From a sweep to rows. This module knows protocols; it imports no mechanism and no dataset.

A trial's `repr` is its whole configuration: paste it and it runs. Its random stream is seeded from
that text, so trials may be added, removed or reordered freely. Its rows are kept under a name made of
that text, the sources of every workbench module that decides them, the data files as they are, and
the numpy and scipy versions.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from time import perf_counter, time
from typing import Any, Protocol

import numpy as np
import pandas as pd

from workbench.mechanism import Mechanism, Release


class Dataset(Protocol):
    """A frozen value that knows how to fetch and bound one table."""

    truth_public: bool

    def load(self) -> Any:
        """The private data, with its bound."""


def first_available(*datasets: Dataset | None) -> Dataset | None:
    """The first dataset all of whose files are found here; None if there is none.

    A dataset without `files()` needs none; None stands for nothing and is taken last.
    """
    for dataset in datasets:
        try:
            files = dataset.files() if hasattr(dataset, "files") else ()
            for file in files:
                file.find()
        except FileNotFoundError:
            continue
        return dataset
    return None


_STARTED = time()
Metric = Callable[[Any, Any], float]
Estimator = Callable[[Any], Any]  # public in, better public out


@dataclass(frozen=True)
class Trial:
    """One mechanism on one dataset with one seed."""

    dataset: Dataset
    mechanism: Mechanism
    seed: int

    def release(self, data: Any) -> Release:
        """Run it, on noise that anyone can replay."""
        entropy = int(hashlib.sha256(repr(self).encode()).hexdigest()[:32], 16)
        return self.mechanism(data, np.random.default_rng(entropy))


@dataclass(frozen=True)
class Sweep:
    """Every mechanism on every dataset, `seeds` times, scored by every metric.

    `estimators` turn the released estimate into better ones; each is scored beside the release itself.
    """

    datasets: Sequence[Dataset]
    mechanisms: Sequence[Mechanism]
    metrics: Sequence[Metric]
    seeds: int = 20
    estimators: Sequence[Estimator] = field(default=())

    def __post_init__(self):
        if self.seeds < 1:
            raise ValueError(f"Sweep.seeds = {self.seeds} is not allowed: need at least 1")

    def with_max_seeds(self, seeds: int) -> Sweep:
        """The same sweep with at most `seeds` repetitions."""
        return replace(self, seeds=min(seeds, self.seeds))

    def trials(self) -> Iterator[Trial]:
        """All trials, dataset by dataset, so that each table is loaded once."""
        for dataset, mechanism, seed in product(
            self.datasets, self.mechanisms, range(self.seeds)
        ):
            yield Trial(dataset, mechanism, seed)


def run(sweep: Sweep, store: Path | str, workers: int = 1) -> pd.DataFrame:
    """Run the trials that `store` does not hold; return one tidy row a trial, estimator and metric.

    Each trial's rows are written when it ends, whole or not at all, so that a run may be killed and
    continued, and two runs may share a store.
    """
    store = Path(store)
    store.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict]] = {}  # by text: 1 and 1.0 are equal, and seed differently
    missing: dict[Dataset, list[tuple[Trial, Path | None]]] = {}
    for trial in sweep.trials():
        kept = _place(trial, sweep, store)
        rows[repr(trial)] = _read(kept)
        if not rows[repr(trial)]:
            missing.setdefault(trial.dataset, []).append((trial, kept))
    for dataset, work in missing.items():
        for (trial, _), measured in zip(work, _all(dataset, work, sweep, workers), strict=True):
            rows[repr(trial)] = measured
    return pd.DataFrame([row for kept in rows.values() for row in kept])


def _all(dataset: Dataset, work: list, sweep: Sweep, workers: int) -> Iterator[list[dict]]:
    from tqdm.auto import tqdm

    data = dataset.load()
    tasks = ((trial, data, sweep.metrics, sweep.estimators, kept) for trial, kept in work)
    if workers > 1:
        from joblib import Parallel, delayed

        done = Parallel(n_jobs=workers, return_as="generator", mmap_mode="r")(
            delayed(_measure)(*task) for task in tasks
        )
    else:
        done = (_measure(*task) for task in tasks)
    yield from tqdm(
        done, total=len(work), desc=type(dataset).__name__, disable=None, leave=False
    )


def _measure(trial: Trial, data, metrics, estimators, kept: Path | None) -> list[dict]:
    start = perf_counter()
    release = trial.release(data)
    seconds = perf_counter() - start
    about = {
        "dataset": repr(trial.dataset),
        "truth_public": bool(trial.dataset.truth_public),
        **mechanism_columns(trial.mechanism),
        "seed": trial.seed,
        "seconds": seconds,
        "released": len(release.estimate),
        "by_theorem": release.by_theorem,
        "trial": repr(trial),
    }
    rows = []
    for estimator in (None, *estimators):
        estimate = estimator(release.estimate) if estimator else release.estimate
        for metric in metrics:
            rows.append(
                about
                | ({"estimator": repr(estimator)} if estimators else {})
                | _about_metric(metric)
                | {"value": metric(data, estimate)}
            )
    if kept is not None:
        part = kept.with_suffix(f".{secrets.token_hex(8)}.part")
        part.write_text(json.dumps(rows))
        os.replace(part, kept)
    return rows


def mechanism_columns(mechanism: Any) -> dict:
    """A mechanism as columns: its name, its budget, its fields."""
    paid = dict(epsilon=mechanism.budget.epsilon, delta=mechanism.budget.delta)
    return {"mechanism": _name(mechanism), **paid, **_parameters(mechanism)}


def _parameters(x: Any) -> dict:
    """The fields of a mechanism, and of one that it wraps, as columns: plain ones, or their text."""
    told: dict = {}
    for f in fields(x):
        v = getattr(x, f.name)
        if hasattr(v, "budget"):
            told |= _parameters(v)
        elif isinstance(v, int | float | str | bool):
            told[f.name] = v
        elif is_dataclass(v) and f.name != "budget":  # told by epsilon and delta
            told[f.name] = repr(v)
    return told


def _name(mechanism: Any) -> str:
    """The class, and the class it wraps."""
    inner = getattr(mechanism, "mechanism", None)
    return type(mechanism).__name__ + (f"({_name(inner)})" if inner is not None else "")


def _about_metric(metric: Metric) -> dict:
    asked = getattr(metric, "workload", None)
    told = {"metric": type(metric).__name__, "weights": getattr(metric, "weights", None)}
    if asked is not None:
        told |= {"workload": repr(asked), "query_size": getattr(asked, "size", None)}
    return told


def _place(trial: Trial, sweep: Sweep, store: Path) -> Path | None:
    """Where a trial's rows are kept; None if code outside the package decides them."""
    actors = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]
    for name in ("mechanism", "dataset"):  # what a value wraps
        actors += [inner for actor in actors if (inner := getattr(actor, name, None))]
    actors += [asked for m in sweep.metrics if (asked := getattr(m, "workload", None))]
    modules = {
        a.__module__ if hasattr(a, "__qualname__") else type(a).__module__ for a in actors
    }
    if outside := {m for m in modules if not m.startswith("workbench.")}:
        warnings.warn(f"not cached: {sorted(outside)} is not part of workbench", stacklevel=3)
        return None
    if edited := _edited(frozenset(modules)):
        warnings.warn(
            f"not cached: {edited} changed since it was imported; restart", stacklevel=3
        )
        return None
    text = [repr(trial), *map(repr, sweep.metrics), *map(repr, sweep.estimators)]
    text += _files(trial.dataset)
    text += [_sources(frozenset(modules)), *map(_version, ("numpy", "scipy"))]
    return store / f"{hashlib.sha256(chr(10).join(text).encode()).hexdigest()[:32]}.json"


def _files(dataset: Dataset) -> list[str]:
    """The published files that a dataset reads, as they are now: name, size and time of change."""
    told = []
    for file in dataset.files() if hasattr(dataset, "files") else ():
        try:
            stat = file.find().stat()
            told.append(f"{file.name} {stat.st_size} {stat.st_mtime_ns}")
        except FileNotFoundError:
            told.append(f"{file.name} missing")
    return told


def _read(kept: Path | None) -> list[dict]:
    """Rows kept earlier; none if there are none, or if they cannot be read."""
    if kept is None or not kept.exists():
        return []
    try:
        return json.loads(kept.read_text())
    except ValueError:
        return []


_version = cache(version)  # it reads a file, and every trial asks


@cache
def _sources(modules: frozenset[str]) -> str:
    """A hash of the sources of `modules` and of all workbench modules they reach by import."""
    return hashlib.sha256(
        "".join(p.read_text() for p in _reached(modules)).encode()
    ).hexdigest()


def _edited(modules: frozenset[str]) -> str:
    """The first of those sources that is younger than this process, whose code is then unknown."""
    return next((p.name for p in _reached(modules) if p.stat().st_mtime > _STARTED), "")


@cache
def _reached(modules: frozenset[str]) -> tuple[Path, ...]:
    """The source files of `modules` and of all workbench modules they reach by import."""
    seen: dict[str, Path] = {}
    todo = [*modules, __name__]
    while todo:
        name = todo.pop()
        if name in seen or not name.startswith("workbench"):
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or name == "workbench":
            continue
        seen[name] = Path(spec.origin)
        todo += _imports(seen[name])
    return tuple(seen[k] for k in sorted(seen))


@cache
def _imports(path: Path) -> list[str]:
    """The workbench modules that a source file names."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        elif isinstance(node, ast.Import):
            found += [a.name for a in node.names]
    return [m for m in found if _is_module(m)]


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
