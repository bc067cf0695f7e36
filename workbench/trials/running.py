"""Runner of the trials of a sweep. The rows of each trial (its results) are stored in a folder, so that no
trial runs twice.
"""

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
    """Return the path of the file in which the results of a trial are stored. Return None if the results
    depend on code that is not in a file, because changes of this code cannot be detected.

    If the caller already knows the result of `inputs.data_states` for the trial's dataset, it can pass this
    as `data`.
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
            f"not cached: {edited} changed since it was imported. Restart", stacklevel=3
        )
        return None
    texts += inputs.data_states(trial.dataset, store) if data is None else data
    texts += [inputs.source_hash(modules), _version("numpy"), _version("scipy")]
    texts += inputs.versions(modules)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return store / f"{digest[:32]}.json"


def read_rows(file: Path | None) -> list[dict[str, Any]]:
    """Read the stored results of a trial. Return an empty list if the file cannot be read, or if it is older
    than the time in the environment variable WORKBENCH_ROWS_SINCE.
    """
    try:
        if file is None or file.stat().st_mtime < float(os.environ.get(ROWS_SINCE, 0)):
            return []
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return []


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Store the results of a trial in a file. If the process is killed while it writes, either all rows are
    stored or none.
    """
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
    """Remove the incomplete files that killed processes left in a store. A process does this once per store,
    because it takes long if there are many files.
    """
    remove_drafts(store)


# Running

SCHEDULER = "WORKBENCH_SCHEDULER"  # the address or file of a cluster that runs trials
BATCH = "WORKBENCH_BATCH"  # set in kernels at which nobody looks
SCHEDULER_INSECURE = "WORKBENCH_SCHEDULER_INSECURE"  # set: it may be unencrypted

_tell: ContextVar[Callable[[int, int], None] | None] = ContextVar("tell", default=None)


@contextmanager
def watched(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Report the progress of runs inside a `with` block. Each time a trial ends, `run` calls your function
    `tell(done, of)`. `of` is the number of trials on the same dataset that must be run. `done` is the number
    of these trials that have ended.
    """
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def run(
    sweep: Sweep, store: Path | str, workers: int = 1, executor: Executor | None = None
) -> pd.DataFrame:
    """Run all trials of a sweep, and return their results as a data frame. If the results of a trial are
    already in the folder `store`, the function reads them instead of running the trial again.

    The function stores the results of a trial when the trial ends. So you can stop a run at any time and
    continue it later. Two runs can use the same folder at the same time.

    Parameters
    ----------
    sweep : Sweep
        Plan of the trials to run.
    store : path
        Folder for the results. The function creates the folder if it does not exist.
    workers : int
        Number of worker processes, if you pass no executor. Default 1.
    executor : concurrent.futures.Executor, optional
        Executor that runs the trials, for example a pool of processes, or a cluster from
        `scale.dask.connect`. The executor changes only the column `seconds` of the results. By default, the
        trials run on the Dask cluster whose address is in the environment variable WORKBENCH_SCHEDULER. If
        this variable is not set, the trials run on your computer.

    Returns
    -------
    DataFrame
        Table with one row per trial, estimator (post-processing step) and metric. If a metric returns a
        table, each row of that table becomes a row of the results. The first columns contain the dataset, the
        mechanism and its parameters, the seed, the seconds that the release took, and the number of released
        cells. The last columns contain the metric, the workload (the queries on which the metric compares
        answers), and the measured `value`.
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
    """Connect to a cluster, and return its executor. A process connects to each address only once.

    The module for clusters is imported by its name as a text, and not by an import statement. So its source
    code is not an input of the trials, whose results it does not affect.
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
    """Run trials on an executor. This process stores the results, so the workers need no access to the
    folder.
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
    """Call `_measure` in a worker process. The process uses one thread, because several such processes run at
    once.
    """
    with limited_threads(1):
        return _measure(*arguments)


def _measure(
    trial: Trial,
    data: Any,
    metrics: Sequence[Any],
    estimators: Sequence[Any],
    file: Path | None,
) -> list[dict[str, Any]]:
    """Run one trial and return its results as rows. If a file is given, store the rows there."""
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
    """Return the columns that a metric adds to the rows of a trial. If the metric returned a number, there is
    one row. If it returned a table, there is one row per row of this table.
    """
    if hasattr(measured, "to_dict"):
        return measured.to_dict("records")
    return [{"value": measured}]
