"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli import options, screen
from workbench.cli.options import StatedSpace
from workbench.cli.request import stated_bound

if TYPE_CHECKING:
    from workbench.data import Bound
    from workbench.owner.advice import TaskAdvice
    from workbench.spaces import Domain


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
}
_FOR_TASKS = "What some tasks need"
_TASKS_OF = {  # an option that some tasks alone use
    "size": ("cells", "ranges", "top"),
    "density": ("cells", "ranges"),
    "mean": ("cells", "ranges"),
    "spread": ("cells", "ranges"),
    "queries": ("ranges",),
    "shape": ("boxes", "per-user"),
    "order": ("marginals", "rows"),
    "rows": ("rows",),
    "records": ("degrees", "points", "strings"),
    "users": ("users",),
    "per_user": ("users",),
    "popularity": ("users",),
}


def advise(
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
        typer.Option(
            metavar="N,N,…",
            help="Codes of each attribute that a box covers (boxes, per-user).",
            show_default="a quarter",
            rich_help_panel=_FOR_TASKS,
        ),
    ] = None,
    order: Annotated[
        int, typer.Option(help="Attributes of a marginal.", rich_help_panel=_FOR_TASKS)
    ] = 2,
    rows: Annotated[
        str,
        typer.Option(
            metavar="N|paid", help="Records of microdata.", rich_help_panel=_FOR_TASKS
        ),
    ] = "paid",
    records: Annotated[
        int | None,
        typer.Option(
            help="Believed: how many records there are, or the sum of all degrees.",
            rich_help_panel=_FOR_TASKS,
        ),
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Believed: how many users.", rich_help_panel=_FOR_TASKS)
    ] = None,
    per_user: Annotated[
        int | None,
        typer.Option(help="Believed: records of each user.", rich_help_panel=_FOR_TASKS),
    ] = None,
    popularity: Annotated[
        float,
        typer.Option(help="Believed: Zipf's exponent of items.", rich_help_panel=_FOR_TASKS),
    ] = 1.0,
    box: options.Box = None,
    levels: options.Levels = 20,
    strings: options.Strings = None,
    length: options.Length = 20,
    alphabet: options.Alphabet = None,
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
    if task not in TASKS:
        from difflib import get_close_matches

        spelt = "-".join(task.lower().removeprefix("counts ").split())
        near = get_close_matches(spelt, TASKS, n=1)
        perhaps = f", perhaps {near[0]}" if near else ""
        raise ValueError(f"no task {task!r}{perhaps}; there are: {', '.join(TASKS)}")
    _refuse_unused(task, context)
    beliefs_of_cells = {"--density": density, "--mean": mean, "--spread": spread}
    missing = [name for name, value in beliefs_of_cells.items() if value is None]
    if 0 < len(missing) < len(beliefs_of_cells):
        raise ValueError(
            f"need all three of {', '.join(beliefs_of_cells)}, or none of them: "
            f"{' and '.join(missing)} missing"
        )
    space = StatedSpace(
        box=box, levels=levels, strings=strings, length=length, alphabet=alphabet
    )
    stated = stated_bound(bound)
    where = _where(task, domain, space)
    if task == "per-user":
        if user:
            raise ValueError(
                "--user: the table has a row a user, and no column of users is needed"
            )
        unit = "a user" if unit == "a row" else unit
    protected = f"--user {quote(user)}" if user else f"--unit {quote(unit)}"
    if task in ("cells", "ranges"):
        if size is None:
            raise ValueError(f"--size is missing: about how many cells to release, for {task}")
        mechanism = _advise_summaries(
            where,
            epsilon,
            size,
            delta=delta,
            bound=stated,
            density=density,
            mean=mean,
            spread=spread,
            queries="1" if task == "cells" else queries,
        )
    else:
        beliefs = {
            "shape": shape,
            "order": order,
            "rows": rows,
            "size": size,
            "records": records,
            "users": users,
            "per_user": per_user,
            "popularity": popularity,
        }
        beliefs["delta"] = delta
        advice = _task_advice(task, where, epsilon, stated, beliefs)
        mechanism = advice.mechanism
        _show(task, epsilon, advice)
    screen.say(f"\n{_command(mechanism, domain, space, bound, protected, user)}")


def _refuse_unused(task: str, context: typer.Context) -> None:
    """A ValueError for an option that was typed and would change nothing."""
    for name, tasks in _TASKS_OF.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and task not in tasks:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} says nothing of {task}: it is for {', '.join(tasks)}")


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


def _numbers(option: str, text: str | None) -> Any:
    """What a comma parts; whether they are whole numbers is for whoever takes them to say."""
    from workbench.mechanisms.options import parse_numbers

    return parse_numbers(option, text) if text else None


def _task_advice(
    task: str, where: Any, epsilon: float, bound: Bound, beliefs: dict[str, Any]
) -> TaskAdvice:
    """What the package says of a task."""
    from workbench.mechanisms.options import parse_number
    from workbench.owner.advice import tasks

    if task == "boxes":
        text = beliefs["shape"]
        return tasks.advise_boxes(
            where,
            epsilon,
            bound,
            _numbers("--shape", text),
            delta=beliefs["delta"],
        )
    if task == "per-user":
        if (bound.l0, bound.linf) != (1, 1):
            raise ValueError("--bound: a user has one number of records, so that 1,1 holds")
        text = beliefs["shape"]
        return tasks.advise_per_user(
            where,
            epsilon,
            _numbers("--shape", text),
            delta=beliefs["delta"],
        )
    if task == "marginals":
        return tasks.advise_marginals(
            where, epsilon, bound, beliefs["order"], delta=beliefs["delta"]
        )
    if task == "rows":
        text = beliefs["rows"]
        rows: Any = None if text == "paid" else parse_number("--rows", text)
        return tasks.advise_rows(where, epsilon, bound, rows, beliefs["order"])
    if task == "top":
        return tasks.advise_top(where, epsilon, bound, beliefs["size"], delta=beliefs["delta"])
    if task == "degrees":
        return tasks.advise_degrees(
            where, epsilon, bound, beliefs["records"], delta=beliefs["delta"]
        )
    if task == "users":
        if beliefs["users"] is None or beliefs["per_user"] is None:
            raise ValueError(
                "--users and --per-user are missing: what you believe, and may say in public, of how many "
                "users there are and how many records each has"
            )
        return tasks.advise_users(
            where,
            epsilon,
            beliefs["users"],
            beliefs["per_user"],
            beliefs["popularity"],
            delta=beliefs["delta"],
        )
    records = 10_000 if beliefs["records"] is None else beliefs["records"]
    return tasks.advise_records(where, epsilon, bound, records)


def _show(task: str, epsilon: float, advice: TaskAdvice) -> None:
    from workbench.value import stated

    table = advice.display_table()
    title = f"{TASKS[task][0].upper()}{TASKS[task][1:]} at ε = {stated(epsilon)}, in counts"
    screen.table(title, list(table.columns), table.to_numpy(), right=["value"])
    for note in advice.notes:
        screen.paragraph(note)


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

    data = f"--domain {quote(str(domain))}" if not space.is_stated else space.typed()
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


def _advise_summaries(
    cells: Domain, epsilon: float, size: int, *, queries: str | None, **beliefs: Any
) -> Any:
    """The best of the summaries of a sparse table, which are shown."""
    from workbench.owner.advice import advise

    advice = advise(
        cells,
        epsilon,
        size,
        queries=_numbers("--queries", queries),
        others=_others(epsilon, size),
        **beliefs,
    )
    rows = advice.display_table()
    columns = list(rows.columns)
    screen.table(advice.caption, columns, rows.to_numpy(), right=columns[1:])
    reason = f"{advice.reason[0].upper()}{advice.reason[1:]}."
    for note in (*advice.notes, reason, *advice.sentences_on_noise):
        screen.paragraph(note)
    return advice.mechanism


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
