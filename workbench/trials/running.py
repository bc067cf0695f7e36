"""Runner for the trials of a sweep, with a store that keeps the rows of each trial."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from workbench.compiled import limited_threads
from workbench.estimates.files import Draft, remove_drafts
from workbench.trials import inputs
from workbench.trials.inputs import data_states
from workbench.trials.sweep import Dataset, Sweep, Trial, mechanism_columns, metric_columns

if TYPE_CHECKING:
    import pandas as pd


# Store

ROWS_SINCE = "WORKBENCH_ROWS_SINCE"  # a time: rows that were kept before it are drawn anew
_version = cache(version)  # it reads a file, and every trial asks


def row_file(
    trial: Trial, sweep: Sweep, store: Path, data: Sequence[str] | None = None
) -> Path | None:
    """Return the file for the rows of a trial. Return None if the rows depend on code that is not in a
    file.

    `data` is the result of `inputs.data_states` for the trial's dataset, if it is already known.
    """
    values = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]
    modules = inputs.modules_of(values)
    without_file = sorted(module for module in modules if not inputs.has_source(module))
    if without_file:
        warnings.warn(f"not cached: {without_file} is not the file of a module", stacklevel=3)
        return None
    texts = [repr(trial), *map(repr, sweep.metrics), *map(repr, sweep.estimators)]
    nameless = [text for text in texts if " at 0x" in text]
    if nameless:
        warnings.warn(f"not cached: {nameless[0]} does not say what it is", stacklevel=3)
        return None
    inputs.note_sources(modules)
    edited = inputs.edited(modules)
    if edited:
        warnings.warn(
            f"not cached: {edited} changed since it was imported; restart", stacklevel=3
        )
        return None
    texts += inputs.data_states(trial.dataset, store) if data is None else data
    texts += [inputs.source_hash(modules), _version("numpy"), _version("scipy")]
    texts += inputs.versions(modules)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return store / f"{digest[:32]}.json"


def read_rows(file: Path | None) -> list[dict[str, Any]]:
    """Return stored rows. Return an empty list if they cannot be read, or are older than ROWS_SINCE."""
    try:
        if file is None or file.stat().st_mtime < float(os.environ.get(ROWS_SINCE, 0)):
            return []
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return []


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Store rows. If the process is killed, all of the rows are stored or none."""
    _clean(file.parent)
    try:
        with closing(Draft(file, clean=False)) as draft:
            draft.path.write_text(json.dumps(rows))
            draft.replace(file)
    except OSError as e:
        raise OSError(
            f"{file} was not written: {e.strerror or e}. Earlier rows are kept"
        ) from None


@cache
def _clean(store: Path) -> None:
    """Remove incomplete files of killed processes. This is done once per store, because a store has
    many files.
    """
    remove_drafts(store)


# Running

SCHEDULER = "WORKBENCH_SCHEDULER"  # the address or file of a cluster that runs trials
BATCH = "WORKBENCH_BATCH"  # set in kernels at which nobody looks
SCHEDULER_INSECURE = "WORKBENCH_SCHEDULER_INSECURE"  # set: it may be unencrypted

_tell: ContextVar[Callable[[int, int], None] | None] = ContextVar("tell", default=None)


@contextmanager
def watched(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Report the progress of a run. Inside the `with` block, the function `tell(done, of)` is called after each
    trial.
    """
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def run(
    sweep: Sweep, store: Path | str, workers: int = 1, executor: Executor | None = None
) -> pd.DataFrame:
    """Run the trials of a sweep whose results are not in `store` yet. Return a data frame with the results of
    all trials.

    The rows of a trial are written when it ends, all of them or none. You can therefore stop a run and
    continue it later. Two runs can share a store.

    Parameters
    ----------
    sweep : Sweep
        Trials to run.
    store : path
        Folder that keeps rows. It is created if it does not exist.
    workers : int
        Number of worker processes.
    executor : concurrent.futures.Executor, optional
        Executor for trials, for example a pool of processes, or a cluster from `scale.dask.connect`. Rows
        do not depend on it, except for `seconds`, which cannot be compared between machines. Default: the
        cluster that WORKBENCH_SCHEDULER names, if any.

    Returns
    -------
    DataFrame
        One tidy row per trial, estimator and metric: dataset, mechanism and its parameters, seed, seconds,
        number of released cells, metric, workload and `value`.
    """
    import pandas as pd

    store = Path(store)
    store.mkdir(parents=True, exist_ok=True)
    rows: dict[
        str, list[dict[str, Any]]
    ] = {}  # by text: 1 and 1.0 are equal, and seed differently
    missing: dict[Dataset, list[tuple[Trial, Path | None]]] = {}
    states = {repr(dataset): data_states(dataset, store) for dataset in sweep.datasets}
    for trial in sweep.trials():
        file = row_file(trial, sweep, store, states[repr(trial.dataset)])
        rows[repr(trial)] = read_rows(file)
        if not rows[repr(trial)]:
            missing.setdefault(trial.dataset, []).append((trial, file))
    if executor is None and missing and os.environ.get(SCHEDULER):
        insecure = bool(os.environ.get(SCHEDULER_INSECURE))
        executor = _cluster(os.environ[SCHEDULER], insecure)
    for dataset, tasks in missing.items():
        measured = _measure_all(dataset, tasks, sweep, workers, executor)
        for (trial, _), rows_of_trial in zip(tasks, measured, strict=True):
            rows[repr(trial)] = rows_of_trial
    return pd.DataFrame([row for rows_of_trial in rows.values() for row in rows_of_trial])


@cache
def _cluster(address: str, insecure: bool) -> Executor:
    """Return the cluster to which this process is connected. It is connected only once.

    The module is not imported by its name in the code, because its source does not affect any rows.
    """
    return import_module("workbench.owner.scale.dask").connect(address, insecure=insecure)


def _measure_all(
    dataset: Dataset,
    tasks: list[tuple[Trial, Path | None]],
    sweep: Sweep,
    workers: int,
    executor: Executor | None,
) -> Iterator[list[dict[str, Any]]]:
    from tqdm.auto import tqdm

    data = dataset.load()
    arguments = ((trial, data, sweep.metrics, sweep.estimators, file) for trial, file in tasks)
    if executor is not None:
        measured = _measure_elsewhere(executor, data, tasks, sweep)
    elif workers > 1:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=workers, return_as="generator", mmap_mode="r")
        measured = parallel(delayed(_measure_alone)(*each) for each in arguments)
    else:
        measured = (_measure(*each) for each in arguments)
    name = type(dataset).__name__
    tell = _tell.get()
    # None: where there is no terminal. Whoever watches shows progress in another way.
    hidden = True if BATCH in os.environ or tell is not None else None
    bar = tqdm(measured, total=len(tasks), desc=name, disable=hidden, leave=False)
    for done, rows in enumerate(bar, start=1):
        if tell is not None:
            tell(done, len(tasks))
        yield rows


def _measure_elsewhere(
    executor: Executor, data: Any, tasks: list[tuple[Trial, Path | None]], sweep: Sweep
) -> Iterator[list[dict[str, Any]]]:
    """Run trials on an executor, and store their rows in this process, so that workers need no access
    to the store.
    """
    if hasattr(executor, "share"):
        data = executor.share(data)
    how = (sweep.metrics, sweep.estimators, None)
    futures = [executor.submit(_measure_alone, trial, data, *how) for trial, _ in tasks]
    try:
        for future, (_, file) in zip(futures, tasks, strict=True):
            rows = future.result()
            if file is not None:
                write_rows(file, rows)
            yield rows
    finally:
        for future in futures:
            future.cancel()


def _measure_alone(*arguments: Any) -> list[dict[str, Any]]:
    """Call `_measure` in one of several processes, with one thread."""
    with limited_threads(1):
        return _measure(*arguments)


def _measure(
    trial: Trial,
    data: Any,
    metrics: Sequence[Any],
    estimators: Sequence[Any],
    file: Path | None,
) -> list[dict[str, Any]]:
    """Return the rows of one trial, and store them in `file` if there is one."""
    start = perf_counter()
    release = trial.release(data)
    seconds = perf_counter() - start
    trial_columns = {
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
        estimator_column = {"estimator": repr(estimator)} if estimators else {}
        for metric in metrics:
            columns = trial_columns | estimator_column | metric_columns(metric)
            rows += [columns | own for own in _own_rows(metric(data, estimate))]
    if file is not None:
        write_rows(file, rows)
    return rows


def _own_rows(measured: float | pd.DataFrame) -> list[dict[str, Any]]:
    """Return the columns that a metric adds to a trial: one row, or one per row of the metric's table."""
    if hasattr(measured, "to_dict"):
        return measured.to_dict("records")
    return [{"value": measured}]
