"""Reader for `statements.toml`, which declares the statements of a paper and the check of each.

    [fig3.c-3a-2]
    sentence = "For small and medium range queries, filtering performs best."

    [fig3.c-3a-2.1]
    says = "Filtering performs best."
    check = {kind = "lower", ours = "filter", other = "priority", by = "query_size", rows = {panel = "a"}}

A check compares series of the rows. Alternatively it names a function of the rows and the level of
confidence, for example `check = "fig3_checks.large_enough"` or `check = {function = "fig5_checks.cut",
series = "filter"}`. If you give a list of series, the check applies to all of them. `over` gives values for
a parameter that the paper does not print. Each value replaces the parameter's name in braces, for example
with `over = {"θ" = [20, 40]}` and `ours = "filter, θ = {θ}"`.
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
    """Return the check that a statement declares in its file.

    Parameters
    ----------
    id : str
        Id of the statement.
    check : str or mapping
        Name of a function, `module.name`, or a table with `function` and its arguments, or a table with a
        `kind` and the series to compare.
    package : str
        Package that contains the modules of the functions.

    Raises
    ------
    ValueError
        If the kind is unknown, a key is unknown or missing, a share has an invalid word, or `over` and the
        names in braces do not match.
    """
    table = {"function": check} if isinstance(check, str) else dict(check)
    if "function" not in table:
        _refuse_kind(id, table)
    in_braces = {*re.findall(r"\{([^{}]+)\}", "\n".join(_texts(table)))}
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
    for key in needed - table.keys():
        raise ValueError(f"{id}: its check lacks {key!r}")
    for key in table.keys() - known:
        raise ValueError(f"{id}: its check has an unknown key {key!r}")
    if table.get("share", "often") not in SHARES:
        raise ValueError(f"{id}: share = {table['share']!r}, need one of {', '.join(SHARES)}")


def _texts(x: Any) -> Iterator[str]:
    """Yield every text in a check, at any depth."""
    if isinstance(x, str):
        yield x
    elif isinstance(x, Mapping | list):
        for each in x.values() if isinstance(x, Mapping) else x:
            yield from _texts(each)


# Evaluation


def _over(table: Mapping[str, Any], package: str, rows: pd.DataFrame, level: float) -> Finding:
    """Return the check at each value of a parameter that the paper does not print. Values that were not
    run are undecided.
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
    """Return x with each name in braces replaced by its value."""
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
    """Return a function with its arguments. Its argument `check` may itself be a function."""
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
    """Yield a check of each series, or of each pair of series. If there are several, each has a name."""
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
    """Content of a `statements.toml`. It has claims by figure and id, the statements of each claim by id,
    and findings.
    """

    claims: dict[str, dict[str, Any]]
    findings: list[dict[str, Any]]


def read(file: str | Path, figure: str, package: str) -> tuple[Claim, ...]:
    """Return the claims of one figure, from the paper's `statements.toml`.

    Parameters
    ----------
    file : path
        File with one table `[fig1.x-1]` for each claim x-1 of the figure fig1, with `page` and `sentence`,
        and one table `[fig1.x-1.1]` for each of its statements, with `says`, `check` and the other fields
        of `Statement`. The keys of a table `[fig1.check]` are defaults for every check with a `kind`. The
        `needs` of a claim apply to all of its statements.
    figure : str
        Id of the figure. The part after the first underscore is the name of its tables.
    package : str
        Package that contains the modules which checks name.

    Returns
    -------
    tuple of Claim
        Claims in the order of the file.

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
    """Read all claims and findings that a file declares. A ValueError names the file and the place."""
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
        _refuse(id, claim, _CLAIM, "sentence", file)
        for name, statement in claim["statements"].items():
            _refuse(name, statement, _STATEMENT, "says", file)
            check = statement.get("check")
            if isinstance(check, dict) and "kind" in check:
                statement["check"] = default | check
        if not numbers:
            raise ValueError(f"{file}: {id} has no statement")
        if id in seen:
            raise ValueError(f"{file}: two figures have the claim {id}")
        seen.add(id)
    return Declared(tables, findings)


def _refuse(id: str, table: dict[str, Any], known: set[str], needed: str, file: Path) -> None:
    """Raise a ValueError for an unknown or missing key."""
    for key in table.keys() - known:
        raise ValueError(
            f"{file}: {id} has an unknown key {key!r}; known: {', '.join(sorted(known))}"
        )
    if needed not in table:
        raise ValueError(f"{file}: {id} lacks {needed!r}")


def _claim(id: str, claim: Mapping[str, Any], package: str) -> Claim:
    statements = []
    for name, each in claim["statements"].items():
        check = declared(name, each["check"], package) if "check" in each else None
        table = each.get("check") if isinstance(each.get("check"), dict) else {}
        needs = tuple(each.get("needs", claim.get("needs", ())))
        rules = dict(each, needs=needs, check=check, table=table)
        statements.append(Statement(name, **rules))
    return Claim(id, claim.get("page", ""), claim["sentence"], tuple(statements))
