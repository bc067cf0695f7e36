"""Trials (runs of a mechanism on a dataset) and sweeps (plans of many trials). This module also determines
the columns that describe mechanisms and metrics in the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from workbench.estimates.release import Release
from workbench.mechanisms.protocol import Mechanism, series_name
from workbench.trials.inputs import located

if TYPE_CHECKING:
    import pandas as pd


# Columns


def mechanism_columns(mechanism: Any) -> dict[str, Any]:
    """Return the columns that describe a mechanism in a table of results: its class, its name in figures, its
    budget and its parameters.
    """
    names = {"mechanism": _class_names(mechanism), "mechanism_name": series_name(mechanism)}
    budget = {f.name: getattr(mechanism.budget, f.name) for f in fields(mechanism.budget)}
    return names | budget | _field_columns(mechanism)


def _field_columns(x: Any) -> dict[str, Any]:
    """Return the parameters of a mechanism as columns with numbers or text. If the mechanism contains another
    mechanism, also return the parameters of the inner one.
    """
    columns: dict[str, Any] = {}
    for f in fields(x):
        value = getattr(x, f.name)
        if hasattr(value, "budget"):
            columns |= _field_columns(value)
        elif isinstance(value, int | float | str | bool):
            columns[f.name] = value
        elif is_dataclass(value) and f.name != "budget":  # which is epsilon, or rho, and delta
            columns[f.name] = repr(value)
    return columns


def _class_names(mechanism: Any) -> str:
    """Return the name of a mechanism's class. If it contains another mechanism, the text also contains the
    name of the inner class.
    """
    name = type(mechanism).__name__
    inner = getattr(mechanism, "mechanism", None)
    return name if inner is None else f"{name}({_class_names(inner)})"


_METRIC_FIELDS = {"of": "of", "direction": "direction", "k": "top"}  # FPA has a column k too


def metric_columns(metric: Any) -> dict[str, Any]:
    """Return the columns that describe a metric in a table of results. The columns contain the metric's name,
    its weights, what it counts (for example items), and its workload (the queries).
    """
    columns = {"metric": type(metric).__name__, "weights": getattr(metric, "weights", None)}
    for name, column in _METRIC_FIELDS.items():
        if hasattr(metric, name):
            columns[column] = getattr(metric, name)
    workload = getattr(metric, "workload", None)
    if workload is not None:
        columns["workload"] = repr(workload)
        columns["query_size"] = getattr(workload, "size", None)
    return columns


# Sweep


class Dataset(Protocol):
    """Interface of a dataset. A dataset is an object with a method `load`. This method returns the data and
    their bound. The bound is the most that one protected unit, for example a person, may add to the data.
    """

    truth_public: bool

    def load(self) -> Any:
        """Load the data. The returned object also states the bound of the data, the most that one unit may
        add.
        """


Metric = Callable[[Any, Any], "float | pd.DataFrame"]
Estimator = Callable[[Any], Any]  # public in, better public out


def first_available(*datasets: Dataset | None) -> Dataset | None:
    """Return the first of several datasets whose files are all on your computer. Return None if each dataset
    lacks a file.

    A dataset without a method `files`, for example a synthetic one, is always available.
    """
    for dataset in datasets:
        try:
            files: Any = getattr(dataset, "files", tuple)
            for file in files():
                located(file)
        except FileNotFoundError:
            continue
        return dataset
    return None


@dataclass(frozen=True)
class Trial:
    """Run of one mechanism on one dataset with one seed. The text of a trial (its `repr`) contains the whole
    configuration.

    Parameters
    ----------
    dataset : Dataset
        Dataset with a method `load`, which returns the private data.
    mechanism : Mechanism
        Mechanism that runs on these data.
    seed : int
        Number of the repetition, from 0. The noise is determined by the text (`repr`) of the trial, which
        contains this number. So trials with different seeds get different noise.
    """

    dataset: Dataset
    mechanism: Mechanism
    seed: int

    def release(self, data: Any) -> Release:
        """Run the mechanism on `data`, the loaded data of the trial's dataset. Because the noise comes from a
        seed, the release is marked as simulated.
        """
        entropy = int(hashlib.sha256(repr(self).encode()).hexdigest()[:32], 16)
        return self.mechanism(data, np.random.default_rng(entropy))


@dataclass(frozen=True)
class Sweep:
    """Plan of an experiment. The experiment runs every mechanism on every dataset, several times with
    different noise. It computes every metric for every run.

    Parameters
    ----------
    datasets, mechanisms : sequences
        Datasets and mechanisms. Each dataset is combined with each mechanism.
    metrics : sequence of callables
        Metrics. A metric is a function of the true data and the released estimate. The metric returns a
        number, for example an error. It may also return a table with a column `value`, for example with one
        error per level of a hierarchy. Each row of such a table becomes a row of the results.
    seeds : int
        Number of repetitions of each combination, each with different noise. Default 20.
    estimators : sequence of callables
        Optional post-processing steps. An estimator takes the released estimate and returns an improved
        estimate. The experiment computes the metrics for the released estimate and for each improved
        estimate.

    Raises
    ------
    ValueError
        If `seeds` is below 1.
    """

    datasets: Sequence[Dataset]
    mechanisms: Sequence[Mechanism]
    metrics: Sequence[Metric]
    seeds: int = 20
    estimators: Sequence[Estimator] = field(default=())

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ValueError(f"Sweep.seeds = {self.seeds} is not allowed: need at least 1")

    def trials(self) -> Iterator[Trial]:
        """Yield all trials. Trials on the same dataset follow each other, so that each dataset is loaded only
        once.
        """
        for combination in product(self.datasets, self.mechanisms, range(self.seeds)):
            yield Trial(*combination)
