"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from workbench import value
from workbench.cli import screen
from workbench.cli.options import StatedSpace
from workbench.mechanisms.options import parse_bound, parse_number, parse_numbers

_beliefs = partial(typer.Option, rich_help_panel="What you believe, from public knowledge")
_for_tasks = partial(typer.Option, rich_help_panel="What some tasks need")
_OF_TABLES = {"density", "mean", "spread", "records", "cells", "popularity"}
_USES: dict[str, set[str]] = {
    "all": {"size", "queries", "order"},
    "cells": {"size"},
    "ranges": {"size", "queries"},
    "boxes": {"shape"},
    "marginals": {"order"},
    "rows": {"order", "rows"},
    "degrees": set(),
}  # of each task about a table
_USES = {task: {*options, *_OF_TABLES} for task, options in _USES.items()} | {
    "users": {"users", "per_user", "per_user_spread", "popularity"},
    "points": {"records"},
    "strings": {"records"},
    "bounds": {
        "users",
        "per_user",
        "per_user_spread",
        "per_user_most",
        "bounds",
        "order",
        "popularity",
    },
}


def advise(
    space: StatedSpace,
    context: typer.Context,
    epsilon: Annotated[float | None, typer.Option(help="Privacy loss ε.")] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Error in counts, in place of ε. The answer is the least ε that reaches it."
        ),
    ] = None,
    domain: Annotated[
        Path | None, typer.Option(help="Which cells there can be (JSON), as for `release`.")
    ] = None,
    task: Annotated[
        str, typer.Option(metavar="TASK", help=f"What you want to publish: {', '.join(_USES)}.")
    ] = "all",
    size: Annotated[
        int | None,
        typer.Option(
            help="About how many cells to release (all, cells, ranges).",
            show_default="as many as are not empty",
        ),
    ] = None,
    bound: Annotated[
        str, typer.Option(metavar="L0,LINF[,L1]", help="How far one unit moves the table.")
    ] = "1,1",
    delta: Annotated[
        float,
        typer.Option(
            help="δ, which adds mechanisms with Gaussian noise and stability histograms."
        ),
    ] = 0.0,
    records: Annotated[int | None, _beliefs(help="Number of records.")] = None,
    cells: Annotated[int | None, _beliefs(help="Number of cells that are not empty.")] = None,
    density: Annotated[
        float | None, _beliefs(help="Share of cells that are not empty, in place of --cells.")
    ] = None,
    mean: Annotated[
        float | None, _beliefs(help="Mean count of these cells, in place of --records.")
    ] = None,
    spread: Annotated[
        float | None,
        _beliefs(help="Standard deviation of their counts.", show_default="the mean"),
    ] = None,
    popularity: Annotated[
        float, _beliefs(help="Zipf's exponent of labels. 0: all are as frequent.")
    ] = 1.0,
    users: Annotated[int | None, _beliefs(help="Number of people (users, bounds).")] = None,
    per_user: Annotated[
        float | None, _beliefs(help="Mean number of records of a person (users, bounds).")
    ] = None,
    per_user_spread: Annotated[
        float | None,
        _beliefs(
            help="Standard deviation of the records of a person (users, bounds).",
            show_default="the mean",
        ),
    ] = None,
    per_user_most: Annotated[
        int | None, _beliefs(help="Most records that a person can have (bounds).")
    ] = None,
    queries: Annotated[
        str | None,
        _for_tasks(
            metavar="R,R,…",
            help="Sizes of ranges, in cells (all, ranges).",
            show_default="that hold 100 and 10000 non-empty cells",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        _for_tasks(
            metavar="N,N,…",
            help="Labels of each attribute that a box covers (boxes).",
            show_default="a quarter",
        ),
    ] = None,
    order: Annotated[int, _for_tasks(help="Attributes of a marginal.")] = 2,
    rows: Annotated[
        str,
        _for_tasks(metavar="N|paid", help="Records of microdata, if their number is public."),
    ] = "paid",
    bounds: Annotated[
        str | None,
        _for_tasks(
            metavar="N,N,…",
            help="Numbers of records of a person to compare. It means --task bounds.",
            show_default="from 1 to 1,000",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of users, for the command at the end."),
    ] = None,
    unit: Annotated[
        str, typer.Option(metavar="TEXT", help="What is protected, where no user is named.")
    ] = "a row",
) -> None:
    """Compare mechanisms on simulated data before any budget is spent. No data is read.

    State what you believe about the table from public knowledge, for example --records 400000 --cells 350000.
    The workbench simulates such a table, runs each mechanism on it, and prints the errors where people are.
    With --error 50 in place of --epsilon it finds the least ε. The last line is the command that releases.
    """
    from workbench.owner.advice import Beliefs, advise, advise_bounds

    task = "bounds" if bounds else task
    if task not in _USES:
        raise ValueError(f"no task {task!r}{value.did_you_mean(task.lower(), _USES)}")
    _refuse_unused(task, context)
    where = _where(task, domain, space)
    stated = parse_bound(bound)
    if task in ("users", "bounds") and (users is None or per_user is None):
        raise ValueError(
            "--users and --per-user are missing. Give the number of people and the mean number of records of a "
            "person that you believe, from public knowledge. For example, --users 60000 --per-user 1.8"
        )
    found: Any
    if task == "bounds":
        if epsilon is None:
            raise ValueError(
                "--epsilon is missing. Bounds are compared at one ε. For example, --epsilon 1"
            )
        beliefs: dict[str, Any] = dict(
            per_user_spread=per_user_spread,
            per_user_most=per_user_most,
            bounds=_numbers("--bounds", bounds),
            order=order,
            popularity=popularity,
        )
        found = advise_bounds(where, epsilon, users or 0, per_user or 0, **beliefs)
        title = f"Errors at ε = {value.stated(epsilon)}, in records"
        notes = found.notes
        bound = ",".join(3 * [str(found.bound)])
        user = user or "COLUMN"
    else:
        if task == "users":
            total = (users or 0) * (per_user or 0)
            told = Beliefs(where, total, None, per_user_spread, popularity, users, stated)
        elif task in ("points", "strings"):
            told = Beliefs(where, records or 10_000, bound=stated)
        else:
            cells, total = _counts(where.size, density, mean, records, cells)
            told = Beliefs(where, total, cells, spread, popularity, bound=stated)
        with screen.stages_bar() as show:
            found = advise(
                told,
                epsilon,
                error=error,
                task="records" if task in ("points", "strings") else task,
                size=size,
                delta=delta,
                queries=_numbers("--queries", queries),
                shape=_numbers("--shape", shape),
                order=order,
                rows=None if rows == "paid" else int(parse_number("--rows", rows)),
                progress=show,
            )
        title = (
            f"Simulated mean absolute errors at ε = {value.stated(found.epsilon)}, in counts"
        )
        notes = (*found.notes, found.recommendation)
    table = found.display_table()
    columns = list(table.columns)
    screen.table(title, columns, table.to_numpy(), right=columns[1:])
    for note in notes:
        screen.paragraph(note)
    if task != "bounds" and not found.shows:
        return
    protected = f"--user {quote(user)}" if user else f"--unit {quote(unit)}"
    screen.say(f"\n{_command(found.mechanism, domain, space, bound, protected, user)}")


def _numbers(name: str, text: str | None) -> Any:
    return parse_numbers(name, text) if text else None


def _counts(
    size: int,
    density: float | None,
    mean: float | None,
    records: int | None,
    cells: int | None,
) -> tuple[int, float]:
    """The believed non-empty cells and records of a table; a ValueError if they are stated twice or never."""
    for one, x, other, y in (
        ("--cells", cells, "--density", density),
        ("--records", records, "--mean", mean),
    ):
        if (x is None) == (y is None):
            why = "both" if x is not None else "none"
            raise ValueError(
                f"{one} or {other}: {why} is given. Give one of them, from public knowledge. For example, "
                "--records 400000 --cells 350000, or --density 0.1 --mean 2 --spread 3"
            )
    if density is not None:
        if not 0 < density <= 1:
            raise ValueError(f"--density {density:g}: need a share from 0 to 1")
        cells = max(1, round(density * size))
    if mean is not None and mean < 1:
        raise ValueError(f"--mean {mean:g}: a cell that is not empty holds at least 1")
    known = cells or 0
    return known, (records or 0) if mean is None else mean * known


def _refuse_unused(task: str, context: typer.Context) -> None:
    """Raise ValueError for an option that was typed and would change nothing."""
    for name in context.params:
        source = context.get_parameter_source(name)
        users = [other for other, used in _USES.items() if name in used]
        if source is not None and source.name == "COMMANDLINE" and users and task not in users:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} does not apply to {task}. It is for {', '.join(users)}")


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
