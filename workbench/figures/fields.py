"""Functions that declare the parameters of figures, with their ranges and kinds. A parameter is a field of a
subclass of `Figure`.
"""

from __future__ import annotations

from typing import Any

from workbench.figures.figure import EFFORT, other_dataset
from workbench.value import parameter


def epsilon(default: Any, doc: str = "privacy budget ε") -> Any:
    """Return the field for a privacy budget ε, which must be from 10⁻⁶ to 1000."""
    return number(default, doc, 1e-6, 1000)


def epsilons(default: tuple[float, ...], doc: str = "privacy budgets ε") -> Any:
    """Return the field for a list of privacy budgets ε."""
    return epsilon(default, doc)


def number(
    default: Any, doc: str, low: float | None = 0, high: float | None = None, **rules: Any
) -> Any:
    """Return the field for a real number from `low` to `high`, or for a list of such numbers if the default
    is a tuple. `rules` are further arguments of the function `parameter`.
    """
    rules = {"many": isinstance(default, tuple)} | rules
    return parameter(default, low, high, doc=doc, **rules)


def whole(
    default: Any, doc: str, low: int | None = 1, high: int | None = None, **rules: Any
) -> Any:
    """Return the field for an integer from `low` to `high`, or for a list of integers if the default is a
    tuple.
    """
    return number(default, doc, low, high, integer=True, **rules)


def choice(default: Any, choices: tuple[Any, ...], doc: str, **rules: Any) -> Any:
    """Return the field for a value from a list of choices, or for several such values. For example, the value
    is the name of a dataset.
    """
    return number(default, doc, None, choices=choices, **rules)


def datasets(default: tuple[str, ...], choices: tuple[str, ...], doc: str, **rules: Any) -> Any:
    """Return the field for names of datasets. Each name is one of `choices`, or the name of a dataset in
    another package (see `other_dataset`).
    """
    return choice(default, choices, doc, check=_unknown_dataset, **rules)


def _unknown_dataset(name: Any) -> str | None:
    """Return an error text if no dataset of another package has this name. Otherwise return None."""
    known = isinstance(name, str) and other_dataset(name) is not None
    return None if known else "no dataset has this name"


def queries(default: int, doc: str = "number of queries of each size") -> Any:
    """Return the field for the number of queries over which errors are averaged. This number is part of the
    effort of a run, so the profile ("quick" or "paper") sets it.
    """
    return whole(default, doc, kind=EFFORT)


def seeds(default: int, doc: str = "number of releases of each mechanism") -> Any:
    """Return the field for the number of releases over which each point is averaged. This number is part of
    the effort of a run, so the profile ("quick" or "paper") sets it.
    """
    return whole(default, doc, kind=EFFORT)
