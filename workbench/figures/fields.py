"""Fields of figures: parameters with a range, a unit and a kind, which `Figure` describes."""

from __future__ import annotations

from typing import Any

from workbench.figures.figure import EFFORT, other_dataset
from workbench.value import parameter


def epsilon(default: Any, doc: str = "privacy budget ε") -> Any:
    """Return the field of a privacy budget."""
    return number(default, doc, 1e-6, 1000)


def epsilons(default: tuple[float, ...], doc: str = "privacy budgets ε") -> Any:
    """Return the field of a list of privacy budgets."""
    return epsilon(default, doc)


def number(
    default: Any, doc: str, low: float | None = 0, high: float | None = None, **rules: Any
) -> Any:
    """Return the field of a real number. If the default is a list, return the field of a list. Other
    `rules` are those of `parameter`.
    """
    rules = {"many": isinstance(default, tuple)} | rules
    return parameter(default, low, high, doc=doc, **rules)


def whole(
    default: Any, doc: str, low: int | None = 1, high: int | None = None, **rules: Any
) -> Any:
    """Return the field of an integer, or of a list of integers."""
    return number(default, doc, low, high, integer=True, **rules)


def choice(default: Any, choices: tuple[Any, ...], doc: str, **rules: Any) -> Any:
    """Return the field of one value, or of several values, from a list of choices, for example the name
    of a dataset.
    """
    return number(default, doc, None, choices=choices, **rules)


def datasets(default: tuple[str, ...], choices: tuple[str, ...], doc: str, **rules: Any) -> Any:
    """Return the field of names of datasets. A name is one of `choices`, or that of a dataset of another
    package (`other_dataset`).
    """
    return choice(default, choices, doc, check=_unknown_dataset, **rules)


def _unknown_dataset(name: Any) -> str | None:
    """Return a description of the fault in the name of a dataset of another package, or None."""
    known = isinstance(name, str) and other_dataset(name) is not None
    return None if known else "no dataset has this name"


def queries(default: int, doc: str = "number of queries of each size") -> Any:
    """Return the field for the number of queries over which errors are averaged. It is part of the effort,
    which a profile sets.
    """
    return whole(default, doc, kind=EFFORT)


def seeds(default: int, doc: str = "number of releases of each mechanism") -> Any:
    """Return the field for the number of releases behind each point. It is part of the effort, which a
    profile sets.
    """
    return whole(default, doc, kind=EFFORT)
