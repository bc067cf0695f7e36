"""Checks as `statements.toml` declares them: which rows, which of their series, and how they compare.

    check = "fig5.same_entries"                     # a function of the rows and the level
    check = {function = "fig5.cut", series = "filter"}
    check = {kind = "lower", ours = "filter", other = "priority", by = "query_size", rows = {panel = "a"}}

A list of series stands for all of them. `over` names what the paper does not print, with its values, each
of which takes the place of its name in braces: `over = {θ = [20, 40]}` and `ours = "filter, θ = {θ}"`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.trials.claims import checks
from workbench.trials.claims.checks import EVERYWHERE, OFTEN, SOMEWHERE
from workbench.trials.claims.claim import ALIKE, Check, Finding, MissingPoints
from workbench.trials.claims.intervals import means, ratios, select, steps

if TYPE_CHECKING:
    import pandas as pd

SHARES = {"everywhere": EVERYWHERE, "often": OFTEN, "somewhere": SOMEWHERE}
ABOVE_1 = float(np.nextafter(1, 2))
_OF_TWO = {"lower", "higher", "at most", "similar"}  # series
_OF_ONE = {"between", "falls", "rises"}
_KEYS = {"kind", "ours", "other", "by", "rows", "prepare", "share", "any", "over"}
_LIMITS = {"times", "low", "high", "scale", "unit"}


def declared(id: str, check: str | Mapping[str, Any], package: str) -> Check:
    """The check that a statement declares.

    Parameters
    ----------
    id : str
        The statement's.
    check : str or mapping
        The name of a function, `module.name`; or a table with `function` and its arguments; or a
        table with a `kind` and what it compares.
    package : str
        In which the modules of functions are.

    Raises
    ------
    ValueError
        If the kind is unknown, or a key that it does not take or lacks.
    """
    table = {"function": check} if isinstance(check, str) else dict(check)
    if "function" not in table:
        kind = table.get("kind")
        if kind not in _OF_TWO | _OF_ONE:
            kinds = ", ".join(sorted(_OF_TWO | _OF_ONE))
            raise ValueError(
                f"{id} has a check of kind {kind!r}: need a function, or one of {kinds}"
            )
        needed = {"ours", "by"} | ({"other"} if kind in _OF_TWO else set())
        if wrong := (needed - table.keys()) or (table.keys() - _KEYS - _LIMITS):
            lacks = "lacks" if wrong <= needed else "has an unknown key"
            raise ValueError(f"{id}: its check {lacks} {min(wrong)!r}")
    return partial(_over, table, package)


def named(function: str, package: str) -> Any:
    """What `module.name` names in a package."""
    module, _, name = function.rpartition(".")
    found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
    if found is None:
        raise ValueError(f"{package}.{module} has no function {name}, which a statement names")
    return found


def _over(table: Mapping[str, Any], package: str, rows: pd.DataFrame, level: float) -> Finding:
    """The check at every value of what the paper does not print."""
    check = {key: x for key, x in table.items() if key != "over"}
    swept = table.get("over", {})
    if not swept:
        return _found(check, package, rows, level)
    values: list[Any] = list(product(*swept.values()))

    missing = []

    def at(value: Any, level: float) -> Finding:
        own = value if len(swept) > 1 else (value,)
        filled = _filled(check, dict(zip(swept, own, strict=True)))
        try:
            return _found(filled, package, rows, level)
        except MissingPoints as e:
            missing.append(e)
            return Finding(None, "not run")

    if len(swept) == 1:
        values = [value for (value,) in values]
    finding = checks.over(" and ".join(swept), values, at, level)
    if len(missing) == len(values):
        raise missing[0]
    return finding


def _filled(x: Any, values: Mapping[str, Any]) -> Any:
    """Values in place of their names in braces."""
    if isinstance(x, Mapping):
        return {key: _filled(each, values) for key, each in x.items()}
    if isinstance(x, list):
        return [_filled(each, values) for each in x]
    for name, value in values.items():
        if x == f"{{{name}}}":
            return value
        if isinstance(x, str):
            x = x.replace(f"{{{name}}}", f"{value}")
    return x


def _found(check: dict[str, Any], package: str, rows: pd.DataFrame, level: float) -> Finding:
    if prepare := check.pop("prepare", None):
        rows = named(prepare, package)(rows)
    if "rows" in check:
        rows = select(rows, **check.pop("rows"))
    if "function" in check:
        return _function(check, package)(rows, level)
    ours, other = (_listed(check.pop(name, None)) for name in ("ours", "other"))
    join = checks.any_of if check.pop("any", False) else checks.all_of
    parts: dict[str, Any] = {}
    for mine, theirs in product(ours, other):
        several = [(mine, ours), (theirs, other)]
        name = " against ".join(_name(x) for x, every in several if len(every) > 1)
        parts[name] = partial(_compared, rows, mine, theirs, **check)
    if len(parts) == 1:
        return parts[name](level)
    return join(parts, level)


def _function(table: Mapping[str, Any], package: str) -> Any:
    """A function with its arguments, of which `check` may be a function in its turn."""
    arguments = {key: x for key, x in table.items() if key != "function"}
    inner = arguments.get("check")
    if inner is not None:
        inner = {"function": inner} if isinstance(inner, str) else inner
        arguments["check"] = _function(inner, package)
    return partial(named(table["function"], package), **arguments)


def _listed(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def _columns(series: Any) -> Mapping[str, Any]:
    return series if isinstance(series, Mapping) else {"series": series}


def _name(series: str | Mapping[str, Any]) -> str:
    return series if isinstance(series, str) else ", ".join(map(str, series.values()))


def _compared(
    rows: pd.DataFrame,
    ours: str | Mapping[str, Any],
    other: str | Mapping[str, Any] | None,
    level: float,
    *,
    kind: str,
    by: str | list[str],
    share: str | None = None,
    times: float | None = None,
    low: float = -np.inf,
    high: float = np.inf,
    scale: float = 1,
    unit: str = "",
) -> Finding:
    """One series by itself, or against another."""
    own = select(rows, **_columns(ours))
    if kind in _OF_ONE:
        own = own.assign(series="ours", value=scale * own.value)
        if kind == "between":
            part = SHARES[share or "everywhere"]
            return checks.check_between(
                means(own, "ours", by), level, low, high, part, "as printed", unit
            )
        along = steps(own, "ours", by if isinstance(by, str) else by[0])
        part = SHARES[share or "everywhere"]
        if kind == "falls":
            return checks.check_lower(along, level, part)
        return checks.check_between(along, level, low=ABOVE_1, share=part, words="higher")
    against = ratios(own, select(rows, **_columns(other)), by)
    if kind == "similar":
        part = SHARES[share or "often"]
        return checks.check_similar(against, level, part, times or ALIKE)
    part = SHARES[share or "everywhere"]
    if kind == "lower":
        return checks.check_lower(against, level, part, times or 1)
    if kind == "higher":
        return checks.check_between(
            against, level, times or ABOVE_1, share=part, words="higher"
        )
    most = times or ALIKE
    return checks.check_between(
        against, level, high=most, share=part, words=f"at most {most:g}×"
    )
