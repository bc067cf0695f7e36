"""Fields of figures: parameters with a range, a unit and a kind, which `Figure` describes."""

from __future__ import annotations

from typing import Any

from workbench.figures.figure import EFFORT, SETTING, other_dataset
from workbench.value import parameter


def epsilon(default: float, doc: str = "privacy budget ε") -> Any:
    """A privacy budget."""
    return parameter(default, 1e-6, 1000, doc=doc)


def epsilons(default: tuple[float, ...], doc: str = "privacy budgets ε") -> Any:
    """A list of privacy budgets."""
    return parameter(default, 1e-6, 1000, doc=doc, many=True)


def number(
    default: Any,
    doc: str,
    low: float | None = 0,
    high: float | None = None,
    *,
    unit: str = "",
    kind: str = SETTING,
    strict: bool = False,
    many: bool = False,
) -> Any:
    """A real number."""
    return parameter(
        default, low, high, unit=unit, doc=doc, kind=kind, strict=strict, many=many
    )


def numbers(
    default: tuple[float, ...],
    doc: str,
    low: float | None = 0,
    high: float | None = None,
    **rules: Any,
) -> Any:
    """A list of real numbers, with the options of `number`."""
    return number(default, doc, low, high, many=True, **rules)


def whole(
    default: Any,
    doc: str,
    low: int = 1,
    high: int | None = None,
    *,
    unit: str = "",
    kind: str = SETTING,
    many: bool = False,
) -> Any:
    """An integer."""
    return parameter(default, low, high, unit=unit, doc=doc, kind=kind, integer=True, many=many)


def wholes(
    default: tuple[int, ...], doc: str, low: int = 1, high: int | None = None, **rules: Any
) -> Any:
    """A list of integers, with the options of `whole`."""
    return whole(default, doc, low, high, many=True, **rules)


def choice(default: Any, choices: tuple[Any, ...], doc: str, *, kind: str = SETTING) -> Any:
    """One of several values, for example the name of a dataset."""
    return parameter(default, choices=choices, doc=doc, kind=kind)


def selection(
    default: tuple[Any, ...], choices: tuple[Any, ...], doc: str, *, kind: str = SETTING
) -> Any:
    """Some of several values, for example names of datasets."""
    return parameter(default, choices=choices, doc=doc, kind=kind, many=True)


def datasets(
    default: tuple[str, ...], choices: tuple[str, ...], doc: str, *, kind: str = SETTING
) -> Any:
    """Some datasets by name: those of `choices`, or of other packages (`other_dataset`)."""
    return parameter(
        default, choices=choices, check=_unknown_dataset, doc=doc, kind=kind, many=True
    )


def _unknown_dataset(name: Any) -> str | None:
    """What is wrong with a name that is none of ours."""
    known = isinstance(name, str) and other_dataset(name) is not None
    return None if known else "no dataset has this name"


def queries(default: int, doc: str = "queries of each size") -> Any:
    """Number of queries over which errors are averaged: effort."""
    return whole(default, doc, kind=EFFORT)


def seeds(default: int, doc: str = "releases of each mechanism") -> Any:
    """Number of releases behind each point: effort."""
    return whole(default, doc, kind=EFFORT)
