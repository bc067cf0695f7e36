"""Trials, sweeps of trials, and the columns that describe mechanisms and metrics in their rows."""

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
    """Return the columns that describe a mechanism in a table of results. They are its class, its name in
    figures, its budget, and its parameters.
    """
    names = {"mechanism": _class_names(mechanism), "mechanism_name": series_name(mechanism)}
    budget = {f.name: getattr(mechanism.budget, f.name) for f in fields(mechanism.budget)}
    return names | budget | _field_columns(mechanism)


def _field_columns(x: Any) -> dict[str, Any]:
    """Return the fields of a mechanism, and of the mechanism that it contains, as columns with plain
    values or text.
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
    """Return the name of the class, and of the class that it contains."""
    name = type(mechanism).__name__
    inner = getattr(mechanism, "mechanism", None)
    return name if inner is None else f"{name}({_class_names(inner)})"


_METRIC_FIELDS = {"of": "of", "direction": "direction", "k": "top"}  # FPA has a column k too


def metric_columns(metric: Any) -> dict[str, Any]:
    """Return the columns that describe a metric. They are its name, its weights, what it counts, and its
    workload.
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
    """Protocol of datasets. A dataset is an immutable object with a method that loads one private table and its
    bound (the most that one unit changes it).
    """

    truth_public: bool

    def load(self) -> Any:
        """Load the private data, together with their bound."""


Metric = Callable[[Any, Any], "float | pd.DataFrame"]
Estimator = Callable[[Any], Any]  # public in, better public out


def first_available(*datasets: Dataset | None) -> Dataset | None:
    """Return the first dataset whose files are all available, or None.

    A dataset without a method `files` is always available.
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
    """One run of one mechanism on one dataset with one seed. The text form (`repr`) of a trial contains its
    whole configuration.

    Parameters
    ----------
    dataset : Dataset
        Dataset to load.
    mechanism : Mechanism
        Mechanism that releases an estimate.
    seed : int
        Number of the repetition. The noise follows from the trial's whole text.
    """

    dataset: Dataset
    mechanism: Mechanism
    seed: int

    def release(self, data: Any) -> Release:
        """Run the mechanism on loaded data. Its noise comes from a seed, so the release is marked as
        simulated.
        """
        entropy = int(hashlib.sha256(repr(self).encode()).hexdigest()[:32], 16)
        return self.mechanism(data, np.random.default_rng(entropy))


@dataclass(frozen=True)
class Sweep:
    """Plan of an experiment. It runs every mechanism on every dataset, with `seeds` seeds each, and computes
    every metric for every run.

    Parameters
    ----------
    datasets, mechanisms : sequences
        Datasets and mechanisms to combine.
    metrics : sequence of callables
        Metrics. Each takes the truth and an estimate, and returns a number, or a table with a column
        `value` (for example a curve or errors by level), whose rows become rows of the trial.
    seeds : int
        Number of repetitions of each combination.
    estimators : sequence of callables
        Post-processing steps. Each takes the released estimate and returns an improved one. The metrics
        score both.

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
        """Yield all trials, ordered by dataset, so that each table is loaded only once."""
        for combination in product(self.datasets, self.mechanisms, range(self.seeds)):
            yield Trial(*combination)
