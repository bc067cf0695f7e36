"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from workbench import value
from workbench.cli import screen
from workbench.cli.options import StatedSpace
from workbench.mechanisms.options import parse_bound, parse_number, parse_numbers

TASKS = {
    "cells": "single cells of a large sparse table",
    "ranges": "ranges of its cells",
    "boxes": "boxes over all attributes",
    "marginals": "all marginals of an order",
    "rows": "microdata",
    "top": "the largest counts",
    "degrees": "sorted counts, without their names",
    "users": "counts of items where users have many records",
    "per-user": "how many users have how many records",
    "points": "synthetic points in a box",
    "strings": "synthetic strings",
    "bounds": "how many records of each person to count",
}
_for_tasks = partial(typer.Option, rich_help_panel="What some tasks need")
_GENERAL = {"domain", "epsilon", "bound", "delta"}  # options that every task may be given


def advise(
    space: StatedSpace,
    context: typer.Context,
    epsilon: Annotated[float, typer.Option(help="Privacy loss ε.")],
    domain: Annotated[
        Path | None, typer.Option(help="Which cells there can be (JSON), as for `release`.")
    ] = None,
    task: Annotated[
        str, typer.Option(metavar="TASK", help=f"What you want: {', '.join(TASKS)}.")
    ] = "ranges",
    size: Annotated[
        int | None, typer.Option(help="About how many cells to release (cells, ranges, top).")
    ] = None,
    bound: Annotated[
        str, typer.Option(metavar="L0,LINF[,L1]", help="How far one unit moves the table.")
    ] = "1,1",
    delta: Annotated[
        float, typer.Option(help="δ, for a stability histogram, and to compare Gaussian noise.")
    ] = 0.0,
    density: Annotated[
        float | None, typer.Option(help="Believed: the fraction of cells that are not empty.")
    ] = None,
    mean: Annotated[float | None, typer.Option(help="Believed: their mean count.")] = None,
    spread: Annotated[
        float | None, typer.Option(help="Believed: their counts' standard deviation.")
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="R,R,…",
            help="Sizes of ranges, in cells.",
            show_default="that hold 1, 100, 10000 non-empty cells",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        _for_tasks(
            metavar="N,N,…",
            help="Codes of each attribute that a box covers (boxes, per-user).",
            show_default="a quarter",
        ),
    ] = None,
    order: Annotated[int, _for_tasks(help="Attributes of a marginal.")] = 2,
    rows: Annotated[
        str,
        _for_tasks(metavar="N|paid", help="Records of microdata."),
    ] = "paid",
    records: Annotated[
        int | None,
        _for_tasks(help="Believed: how many records there are, or the sum of all degrees."),
    ] = None,
    users: Annotated[int | None, _for_tasks(help="Believed: how many users.")] = None,
    per_user: Annotated[
        float | None,
        _for_tasks(help="Believed: records of each user, their mean for bounds."),
    ] = None,
    per_user_spread: Annotated[
        float | None,
        _for_tasks(
            help="Believed: standard deviation of the records of a user (bounds).",
            show_default="the mean",
        ),
    ] = None,
    per_user_most: Annotated[
        int | None,
        _for_tasks(help="Known: most records that a user can have (bounds)."),
    ] = None,
    bounds: Annotated[
        str | None,
        _for_tasks(
            metavar="N,N,…",
            help="Numbers of records to compare. It means --task bounds.",
            show_default="from 1 to 1,000",
        ),
    ] = None,
    popularity: Annotated[
        float,
        _for_tasks(help="Believed: Zipf's exponent of items."),
    ] = 1.0,
    user: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Whose each row is, for the command at the end."),
    ] = None,
    unit: Annotated[
        str, typer.Option(metavar="TEXT", help="What is protected, where no user is named.")
    ] = "a row",
) -> None:
    """Compare what can be released before any budget is spent. No data is read: there is no table to name.

    Errors follow from public numbers alone; what you believe of the table must not be read off private
    data. Without beliefs the worst case decides. The last line is the command that releases it.
    """
    from workbench.owner.advice import TaskAdvice
    from workbench.owner.advice.bounds import BoundAdvice

    task = "bounds" if bounds else task
    if task not in TASKS:
        raise ValueError(f"no task {task!r}{value.did_you_mean(task.lower(), TASKS)}")
    _refuse_unused(task, context)
    beliefs_of_cells = {"--density": density, "--mean": mean, "--spread": spread}
    missing = [name for name, value in beliefs_of_cells.items() if value is None]
    if 0 < len(missing) < len(beliefs_of_cells):
        raise ValueError(
            f"need all three of {', '.join(beliefs_of_cells)}, or none of them: "
            f"{' and '.join(missing)} missing"
        )
    where = _where(task, domain, space)
    stated = parse_bound(bound)
    if task == "per-user":
        if user:
            raise ValueError(
                "--user: the table has a row a user, and no column of users is needed"
            )
        if (stated.l0, stated.linf) != (1, 1):
            raise ValueError("--bound: a user has one number of records, so that 1,1 holds")
        unit = "a user" if unit == "a row" else unit
    if task in ("cells", "ranges") and size is None:
        raise ValueError(f"--size is missing: about how many cells to release, for {task}")
    if task in ("users", "bounds") and None in (users, per_user):
        raise ValueError(
            "--users and --per-user are missing. Give the number of people and the mean number of records of a "
            "person that you believe, from public knowledge. For example, --users 60000 --per-user 1.8"
        )
    if task == "cells":
        queries = "1"
    function = _function(task)
    if per_user is not None and task != "bounds" and per_user != int(per_user):
        raise ValueError(f"--per-user {per_user:g}: {task} needs an integer")
    given = context.params | {
        "per_user": per_user if task == "bounds" or per_user is None else int(per_user),
        "domain": where,
        "tree": where,
        "bound": stated,
        "shape": parse_numbers("--shape", shape) if shape else None,
        "bounds": parse_numbers("--bounds", bounds) if bounds else None,
        "queries": parse_numbers("--queries", queries) if queries else None,
        "rows": None if rows == "paid" else parse_number("--rows", rows),
        "others": _others(epsilon, size) if size else (),
    }
    asked = signature(function).parameters
    advice = function(**{k: x for k, x in given.items() if k in asked and x is not None})
    table = advice.display_table()
    columns = list(table.columns)
    if isinstance(advice, BoundAdvice):
        title, right = f"Errors at ε = {value.stated(epsilon)}, in records", columns
        notes = advice.notes
        bound = ",".join(3 * [str(advice.bound)])
        user = user or "COLUMN"
    elif isinstance(advice, TaskAdvice):
        about = f"{TASKS[task][0].upper()}{TASKS[task][1:]}"
        title, right = f"{about} at ε = {value.stated(epsilon)}, in counts", ["value"]
        notes = advice.notes
    else:
        title, right = advice.caption, columns[1:]
        reason = f"{advice.reason[0].upper()}{advice.reason[1:]}."
        notes = (*advice.notes, reason, *advice.sentences_on_noise)
    screen.table(title, columns, table.to_numpy(), right=right)
    for note in notes:
        screen.paragraph(note)
    protected = f"--user {quote(user)}" if user else f"--unit {quote(unit)}"
    screen.say(f"\n{_command(advice.mechanism, domain, space, bound, protected, user)}")


def _function(task: str) -> Callable[..., Any]:
    """The function of the package that advises on a task."""
    from workbench.owner import advice

    if task in ("cells", "ranges"):
        return advice.advise
    kind = "records" if task in ("points", "strings") else task.replace("-", "_")
    function: Callable[..., Any] = getattr(advice, f"advise_{kind}")
    return function


def _used(task: str) -> set[str]:
    """The options, as Python names them, that this task uses and not every one does."""
    fixed = {"queries"} if task == "cells" else set()
    return {*signature(_function(task)).parameters} - _GENERAL - fixed


def _refuse_unused(task: str, context: typer.Context) -> None:
    """A ValueError for an option that was typed and would change nothing."""
    for name in context.params:
        source = context.get_parameter_source(name)
        users = [other for other in TASKS if name in _used(other)]
        if source is not None and source.name == "COMMANDLINE" and users and task not in users:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} says nothing of {task}: it is for {', '.join(users)}")


def _where(task: str, domain: Path | None, space: StatedSpace) -> Any:
    """The domain, or the space of records, that the task is about."""
    from workbench.spaces import Domain

    needed = {"points": "--box", "strings": "--strings"}.get(task)
    if needed is None:
        if domain is None:
            raise ValueError(f"--domain is missing: which cells there can be, for {task}")
        return Domain.read(domain)
    stated = space.box if task == "points" else space.strings
    if stated is None:
        raise ValueError(f"{needed} is missing: which {task} there can be")
    return space.hierarchy()


def _command(
    mechanism: Any,
    domain: Path | None,
    space: StatedSpace,
    bound: str,
    protected: str,
    user: str | None,
) -> str:
    """The line that releases it, from a table in YOUR.csv."""
    from workbench.data import Interactions
    from workbench.mechanisms import MaximumEntropySynthesis
    from workbench.mechanisms.options import mechanism_options

    if space.box is not None:
        data = f"--box {quote(space.box)} --levels {space.levels}"
    elif space.strings is not None:
        alphabet = f" --alphabet {quote(space.alphabet)}" if space.alphabet else ""
        data = f"--strings {quote(space.strings)} --length {space.length}{alphabet}"
    else:
        data = f"--domain {quote(str(domain))}"
    asked = mechanism_options(mechanism)
    if isinstance(mechanism, MaximumEntropySynthesis):
        rows = "paid" if mechanism.rows is None else mechanism.rows
        asked = f"--epsilon {mechanism.budget.epsilon!r} --marginals {mechanism.marginals.k}"
        return (
            f"workbench synthesize YOUR.csv {data} --bound {bound} {protected} --out microdata.csv "
            f"--rows {rows} {asked}"
        )
    if mechanism.takes is Interactions:  # which bounds the records of each user itself
        protected = f"--user {quote(user or 'user')}"
    else:
        protected = f"--bound {bound} {protected}"
    return f"workbench release YOUR.csv {data} {protected} --out release.parquet {asked}"


def _others(epsilon: float, size: int) -> list[Any]:
    """The mechanisms of the modules that `--with` names whose errors follow from a formula."""
    from dataclasses import fields

    from workbench.compiled import stated_modules
    from workbench.privacy import DP

    members = [x for module in stated_modules() for x in vars(module).values()]
    others = []
    for cls in members:
        own = isinstance(cls, type) and not cls.__module__.startswith("workbench.")
        if own and hasattr(cls, "release_rule"):
            sized = "size" in {f.name for f in fields(cls)}
            budget = DP(epsilon)
            others.append(cls(budget, size=size) if sized else cls.example(budget))
    return others
