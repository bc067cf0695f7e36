"""Reader of the files `statements.toml`. Such a file contains the sentences of a paper, the statements that
they make, and the check of each statement, for example:

    [fig3.c-3a-2]
    sentence = "For small and medium range queries, filtering performs best."

    [fig3.c-3a-2.1]
    says = "Filtering performs best."
    check = {kind = "lower", ours = "filter", other = "priority", by = "query_size", rows = {panel = "a"}}

This check compares two series (curves) of the figure, "filter" and "priority". If you give a list of series,
each series of the list is compared. Instead of a comparison, a check can name a Python function, which gets
the rows and a level of confidence. Examples are `check = "fig3_checks.large_enough"` and, with a further
argument, `check = {function = "fig5_checks.cut", series = "filter"}`. If the paper does not print the value
of a parameter, the key `over` lists plausible values. Each value is put in place of the parameter's name in
braces. For example, `over = {"θ" = [20, 40]}` and `ours = "filter, θ = {θ}"` check the series "filter, θ =
20" and "filter, θ = 40".
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from inspect import signature
from itertools import product
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.trials.claims import checks
from workbench.trials.claims.checks import EVERYWHERE, OFTEN, SOMEWHERE
from workbench.trials.claims.claim import (
    ALIKE,
    Check,
    Claim,
    Finding,
    MissingPoints,
    Statement,
)
from workbench.trials.claims.intervals import Intervals, means, ratios, select, steps

if TYPE_CHECKING:
    import pandas as pd

# Kinds of checks

SHARES = {"everywhere": EVERYWHERE, "often": OFTEN, "somewhere": SOMEWHERE}
_ABOVE_1 = float(np.nextafter(1, 2))
_BY = str | list[str]


def _lower(
    against: Intervals, level: float, share: str = "everywhere", times: float = 1
) -> Finding:
    return checks.check_lower(against, level, SHARES[share], times)


def _higher(
    against: Intervals, level: float, share: str = "everywhere", times: float = _ABOVE_1
) -> Finding:
    return checks.check_between(against, level, times, share=SHARES[share], words="higher")


def _at_most(
    against: Intervals, level: float, share: str = "everywhere", times: float = ALIKE
) -> Finding:
    words = f"at most {times:g}×"
    return checks.check_between(against, level, high=times, share=SHARES[share], words=words)


def _similar(
    against: Intervals, level: float, share: str = "often", times: float = ALIKE
) -> Finding:
    return checks.check_similar(against, level, SHARES[share], times)


def _between(
    rows: pd.DataFrame,
    level: float,
    by: _BY,
    share: str = "everywhere",
    low: float = -inf,
    high: float = inf,
    scale: float = 1,
    unit: str = "",
) -> Finding:
    numbers = means(rows.assign(series="ours", value=scale * rows.value), "ours", by)
    return checks.check_between(numbers, level, low, high, SHARES[share], "as printed", unit)


def _falls(rows: pd.DataFrame, level: float, by: str, share: str = "everywhere") -> Finding:
    along = steps(rows.assign(series="ours"), "ours", by)
    return checks.check_lower(along, level, SHARES[share])


_OF_TWO: dict[str, Callable[..., Finding]] = {  # of the ratios of two series
    "lower": _lower,
    "higher": _higher,
    "at most": _at_most,
    "similar": _similar,
}
_OF_ONE: dict[str, Callable[..., Finding]] = {"between": _between, "falls": _falls}
_KINDS = _OF_TWO | _OF_ONE
_ROWS = {"rows", "prepare", "over"}  # of every check: which rows, and what is swept


def declared(id: str, check: str | Mapping[str, Any], package: str) -> Check:
    """Make the function that checks a statement, from the key `check` in `statements.toml`.

    Parameters
    ----------
    id : str
        Id of the statement.
    check : str or mapping
        Either the name of a function, as `module.name`, or a table with this name as `function` and further
        arguments, or a table with a `kind` of comparison and the series to compare.
    package : str
        Name of the package that contains the modules of such functions.

    Raises
    ------
    ValueError
        If the kind is unknown, a key is unknown or missing, or a share has an invalid word. The error is also
        raised if the parameters in `over` differ from the names in braces.
    """
    table = {"function": check} if isinstance(check, str) else dict(check)
    if "function" not in table:
        _refuse_kind(id, table)
    in_braces = {*re.findall(r"\{([^{}]+)\}", "\n".join(texts(table)))}
    for name in in_braces ^ {*table.get("over", ())}:
        raise ValueError(f"{id}: its check needs {name!r} both in `over` and in braces")
    return partial(_over, table, package)


def _refuse_kind(id: str, table: Mapping[str, Any]) -> None:
    kind = table.get("kind")
    if kind not in _KINDS:
        kinds = ", ".join(_KINDS)
        raise ValueError(
            f"{id} has a check of kind {kind!r}: need a function, or one of {kinds}"
        )
    needed = {"ours", "by"} | ({"other"} if kind in _OF_TWO else set())
    known = needed | {"kind", "any", *_ROWS, *list(signature(_KINDS[kind]).parameters)[2:]}
    refuse_keys(f"{id}: its check", table, known, needed)
    if table.get("share", "often") not in SHARES:
        raise ValueError(f"{id}: share = {table['share']!r}, need one of {', '.join(SHARES)}")


def texts(x: Any) -> Iterator[str]:
    """Yield every text in a check, also those in nested tables and lists."""
    if isinstance(x, str):
        yield x
    elif isinstance(x, Mapping | list):
        for each in x.values() if isinstance(x, Mapping) else x:
            yield from texts(each)


# Evaluation


def _over(table: Mapping[str, Any], package: str, rows: pd.DataFrame, level: float) -> Finding:
    """Check a statement at each plausible value of a parameter that the paper does not print. If the rows
    contain no runs at a value, the outcome at this value is undecided.
    """
    check = {key: x for key, x in table.items() if key != "over"}
    swept = table.get("over")
    if not swept:
        return _found(check, package, rows, level)
    settings = list(product(*swept.values()))
    missing = []

    def at(values: tuple[Any, ...], level: float) -> Finding:
        filled = _filled(check, dict(zip(swept, values, strict=True)))
        try:
            return _found(filled, package, rows, level)
        except MissingPoints as e:
            missing.append(e)
            return Finding(None, "not run")

    finding = checks.over(", ".join(swept), settings, at, level)
    if len(missing) == len(settings):
        raise missing[0]
    return finding


def _filled(x: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of x in which each name in braces is replaced by its value."""
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
        rows = _named(prepare, package)(rows)
    rows = select(rows, **check.pop("rows", {}))
    if "function" in check:
        return _function(check, package)(rows, level)
    join = checks.any_of if check.pop("any", False) else checks.all_of
    parts = dict(_compared(rows, **check))
    return join(parts, level) if len(parts) > 1 else next(iter(parts.values()))(level)


def _function(table: Mapping[str, Any], package: str) -> Any:
    """Return the function that a check names, with its arguments. An argument `check` may name another
    function.
    """
    arguments = {key: x for key, x in table.items() if key != "function"}
    if inner := arguments.get("check"):
        inner = {"function": inner} if isinstance(inner, str) else inner
        arguments["check"] = _function(inner, package)
    return partial(_named(table["function"], package), **arguments)


def _named(function: str, package: str) -> Any:
    module, _, name = function.rpartition(".")
    found = getattr(importlib.import_module(f"{package}.{module}"), name, None)
    if found is None:
        raise ValueError(f"a statement needs {package}.{module}.{name}, which does not exist")
    return found


def _compared(
    rows: pd.DataFrame, *, kind: str, by: _BY, ours: Any, other: Any = None, **limits: Any
) -> Iterator[tuple[str, checks.Part]]:
    """Yield the parts of a check, each with its name: one part for each series, or for each pair of series.
    If there is only one part, its name is empty.
    """
    mine, theirs = (x if isinstance(x, list) else [x] for x in (ours, other))
    for one, two in product(mine, theirs):
        named = [(one, mine), (two, theirs)]
        name = " against ".join(_words(x) for x, every in named if len(every) > 1)
        own = select(rows, **_columns(one))
        if kind in _OF_ONE:
            yield name, partial(_OF_ONE[kind], own, by=by, **limits)
        else:
            against = ratios(own, select(rows, **_columns(two)), by)
            yield name, partial(_OF_TWO[kind], against, **limits)


def _columns(series: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"series": series} if isinstance(series, str) else series


def _words(series: str | Mapping[str, Any]) -> str:
    return ", ".join(map(str, _columns(series).values()))


# Statements

_CLAIM = {"page", "sentence", "needs", "statements"}
_STATEMENT = {"says", "page", "reading", "by_definition", "untestable", "needs", "check"}


class Declared(NamedTuple):
    """Content of a file `statements.toml`: the claims by figure and id, the statements of each claim by id,
    and the findings.
    """

    claims: dict[str, dict[str, Any]]
    findings: list[dict[str, Any]]


def read(file: str | Path, figure: str, package: str) -> tuple[Claim, ...]:
    """Read the claims (sentences of the paper) about one figure, from the paper's `statements.toml`.

    Parameters
    ----------
    file : path
        Path of the file. The file has a table for each claim. For example, the table `[fig1.x-1]` contains
        `page` and `sentence` of the claim x-1 about the figure fig1. The file also has a table for each
        statement, for example `[fig1.x-1.1]`, with `says`, `check` and the other fields of `Statement`. A
        table `[fig1.check]` contains default values for all checks of this figure that have a `kind`. If a
        claim has the key `needs`, this key applies to all statements of the claim.
    figure : str
        Id of the figure, for example "cormode2012_fig3". The names of its tables begin with the part after
        the first underscore, here "fig3".
    package : str
        Name of the package that contains the functions for the checks in the file.

    Returns
    -------
    tuple of Claim
        Claims about the figure, in the order of the file.

    Raises
    ------
    ValueError
        If two claims or statements have the same id, a key is unknown or missing, or a statement has no
        check.
    """
    own = read_declared(Path(file)).claims.get(figure.partition("_")[2], {})
    try:
        return tuple(_claim(id, claim, package) for id, claim in own.items())
    except ValueError as e:
        raise ValueError(f"{figure}: {e}") from None


@cache
def read_declared(file: Path) -> Declared:
    """Read all claims and findings in a file. If something is wrong, raise a ValueError that names the file
    and the place.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as e:
        raise ValueError(f"{file}: {e}") from None
    findings = tables.pop("finding", [])
    seen = set()
    usual = {figure: own.pop("check", {}) for figure, own in tables.items()}
    places = [(usual[figure], *each) for figure, own in tables.items() for each in own.items()]
    for default, id, claim in places:
        numbers = [key for key, x in claim.items() if isinstance(x, dict)]
        claim["statements"] = {f"{id}.{number}": claim.pop(number) for number in numbers}
        refuse_keys(f"{file}: {id}", claim, _CLAIM, {"sentence"})
        for name, statement in claim["statements"].items():
            refuse_keys(f"{file}: {name}", statement, _STATEMENT, {"says"})
            check = statement.get("check")
            if isinstance(check, dict) and "kind" in check:
                statement["check"] = default | check
        if not numbers:
            raise ValueError(f"{file}: {id} has no statement")
        if id in seen:
            raise ValueError(f"{file}: two figures have the claim {id}")
        seen.add(id)
    return Declared(tables, findings)


def refuse_keys(
    whose: str, table: Mapping[str, Any], known: set[str], needed: set[str]
) -> None:
    """Raise a ValueError if a table has an unknown key, or lacks a key that is needed."""
    for key in sorted(table.keys() - known):
        raise ValueError(
            f"{whose} has an unknown key {key!r}; known: {', '.join(sorted(known))}"
        )
    for key in sorted(needed - table.keys()):
        raise ValueError(f"{whose} lacks {key!r}")


def _claim(id: str, claim: Mapping[str, Any], package: str) -> Claim:
    statements = []
    for name, each in claim["statements"].items():
        check = declared(name, each["check"], package) if "check" in each else None
        table = each.get("check") if isinstance(each.get("check"), dict) else {}
        needs = tuple(each.get("needs", claim.get("needs", ())))
        rules = dict(each, needs=needs, check=check, table=table)
        statements.append(Statement(name, **rules))
    return Claim(id, claim.get("page", ""), claim["sentence"], tuple(statements))
