"""Mechanisms and metrics as columns of rows."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from workbench.mechanism import series_name


def mechanism_columns(mechanism: Any) -> dict[str, Any]:
    """A mechanism as columns: its class, its name in figures, its budget, its fields."""
    names = {"mechanism": _class_names(mechanism), "mechanism_name": series_name(mechanism)}
    budget = {f.name: getattr(mechanism.budget, f.name) for f in fields(mechanism.budget)}
    return names | budget | _field_columns(mechanism)


def _field_columns(x: Any) -> dict[str, Any]:
    """The fields of a mechanism, and of one that it wraps, as columns: plain ones, or their text."""
    columns: dict[str, Any] = {}
    for field in fields(x):
        value = getattr(x, field.name)
        if hasattr(value, "budget"):
            columns |= _field_columns(value)
        elif isinstance(value, int | float | str | bool):
            columns[field.name] = value
        elif (
            is_dataclass(value) and field.name != "budget"
        ):  # which is epsilon, or rho, and delta
            columns[field.name] = repr(value)
    return columns


def _class_names(mechanism: Any) -> str:
    """The class, and the class it wraps."""
    name = type(mechanism).__name__
    inner = getattr(mechanism, "mechanism", None)
    return name if inner is None else f"{name}({_class_names(inner)})"


_METRIC_FIELDS = {"of": "of", "direction": "direction", "k": "top"}  # FPA has a column k too


def metric_columns(metric: Any) -> dict[str, Any]:
    """A metric as columns: its name, its weights, what it counts, its workload."""
    columns = {"metric": type(metric).__name__, "weights": getattr(metric, "weights", None)}
    for field, column in _METRIC_FIELDS.items():
        if hasattr(metric, field):
            columns[column] = getattr(metric, field)
    workload = getattr(metric, "workload", None)
    if workload is not None:
        columns["workload"] = repr(workload)
        columns["query_size"] = getattr(workload, "size", None)
    return columns
