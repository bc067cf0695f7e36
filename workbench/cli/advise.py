"""The command `workbench advise`, which recommends a mechanism before any budget is spent. It reads private
data only for a choice that costs budget (`--choose-from`).
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from workbench import value
from workbench.cli import screen
from workbench.cli.budget import opened_for
from workbench.cli.options import (
    Numbers,
    StatedSpace,
    need_one,
    option_of,
    refuse_unmeant,
    taken,
)
from workbench.mechanisms.options import mechanism_options, parse_bound, parse_number

_OF_RELEASE = "domain box levels strings length alphabet bound user unit budget publish out"
_KNOWN = ", from public knowledge. For example, --records 400000 --cells 350000, or --density 0.1 --mean 2"
_OF_TABLES = "density mean spread records cells"
_OF_PEOPLE = "users per_user per_user_spread"
_USES = {
    "all": f"{_OF_TABLES} size queries order",
    "cells": f"{_OF_TABLES} size",
    "ranges": f"{_OF_TABLES} size queries",
    "boxes": f"{_OF_TABLES} shape",
    "marginals": f"{_OF_TABLES} order",
    "rows": f"{_OF_TABLES} order rows",
    "degrees": _OF_TABLES,
    "users": _OF_PEOPLE,
    "points": "records",
    "strings": "records",
    "bounds": f"{_OF_PEOPLE} bounds order from_release",
}  # the options that only some tasks have


def advise(
    space: StatedSpace,
    context: typer.Context,
    *,
    epsilon: float | None = None,
    error: float | None = None,
    domain: Path | None = None,
    task: str = "all",
    size: int | None = None,
    bound: str = "1,1",
    delta: float = 0.0,
    choose_from: Path | None = None,
    choose_epsilon: float | None = None,
    choose_budget: Path | None = None,
    records: int | None = None,
    cells: int | None = None,
    density: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    mean: Annotated[float | None, typer.Option(min=1)] = None,
    spread: float | None = None,
    users: int | None = None,
    per_user: float | None = None,
    per_user_spread: float | None = None,
    queries: Numbers = None,
    shape: Numbers = None,
    order: int = 2,
    rows: str = "paid",
    bounds: Numbers = None,
    from_release: Path | None = None,
    user: str | None = None,
    unit: str = "a row",
    budget: Path | None = None,
    publish: Path | None = None,
) -> None:
    """Recommend a mechanism, before you spend any budget.

    You describe the table from public knowledge, for example with --records 400000 --cells 350000. The
    workbench simulates such a table and runs each mechanism on it. Then the workbench prints the mean error
    of each mechanism, for queries that count at least one record. If you give --error 50 in place of
    --epsilon, the workbench finds the smallest ε for this error. The last line of the output is the command
    with which you can make the release. The workbench reads real data only if you use --choose-from.

    Parameters
    ----------
    epsilon
        Privacy loss ε of the planned release.
    error
        Largest mean error that you accept, as a number of records. The command then finds the smallest ε for
        this error. Use --error in place of --epsilon.
    domain
        Domain file (JSON), which lists all possible cells. Use the same file for `release`.
    task : TASK
        Kind of numbers that you want to publish: all, cells, ranges, boxes, marginals, rows, degrees, users,
        points or strings. With --task bounds, the command compares limits on the number of records per
        person.
    size
        Approximate number of cells that you want in the release (tasks all, cells and ranges). By default the
        number of non-empty cells.
    bound : L0,LINF[,L1]
        Largest change of the table that one protected unit, for example a person, can cause: the number of
        cells, the change per cell, and the change in total.
    delta
        Probability δ with which the factor e^ε may be exceeded. If δ is above 0, the command also compares
        mechanisms with Gaussian noise, and mechanisms that find the non-empty cells themselves (stability
        histograms).
    user : COLUMN
        Column that names the user of each row. The printed command contains this option.
    unit : TEXT
        Person, household or event that is protected, for example 'a trip'. The printed command contains this
        option.
    budget : FILE
        Budget file that will pay for the release. The printed command contains this option.
    publish : FOLDER
        Folder of the publication. The printed command contains this option.

    Beliefs from public knowledge
    -----------------------------
    records
        Approximate number of records.
    cells
        Approximate number of cells that are not empty.
    density
        Share of cells that are not empty, from 0 to 1. Use --density in place of --cells.
    mean
        Mean count of the cells that are not empty. Use --mean in place of --records.
    spread
        Standard deviation of the counts of the cells that are not empty. By default equal to the mean.
    users
        Approximate number of people (tasks users and bounds).
    per_user
        Mean number of records per person (tasks users and bounds).
    per_user_spread
        Standard deviation of the number of records per person (tasks users and bounds). By default equal to
        the mean.

    A choice by the table, for a price
    ----------------------------------
    choose_from : TABLE
        Private table from which the command chooses one of --bounds. The choice depends on the number of
        records of each --user, is made with noise, and costs budget.
    choose_epsilon
        Privacy loss ε of this choice. It is added to --epsilon, the privacy loss of the release.
    choose_budget : FILE
        Budget file that pays for this choice.

    Options of some tasks
    ---------------------
    queries : R,R,…
        Lengths of ranges, in cells (tasks all and ranges). By default two lengths: ranges with about 100 and
        with about 10,000 non-empty cells.
    shape : N,N,…
        Number of labels that a box covers, for each attribute (task boxes). By default a quarter of the
        labels.
    order
        Number of attributes of each marginal (table of counts by some attributes).
    rows : N|paid
        Number of synthetic records (task rows). Give the number of records of the table if it is public.
        Otherwise give `paid`, to spend budget on a noisy number.
    bounds : N,N,…
        Limits on the number of records per person, which the command compares. By default from 1 to 1,000.
        With this option, you need not give --task bounds.
    from_release : FILE
        Earlier release of a similar table (task bounds). The simulated table gets the frequencies of labels
        from this release. If you also give --users, you need no --per-user, because the release then gives
        the mean number of records per person.
    """
    from workbench.estimates.release import Release
    from workbench.owner.advice import Beliefs, advise, advise_bounds

    task = "bounds" if bounds else task
    typed = _typed(context, task)
    where = _where(task, domain, space)
    is_of_people = task in ("users", "bounds")
    known = typed | {"user": user} if user else typed
    if typed.keys() & {"choose_from", "choose_epsilon", "choose_budget"}:
        whose = str(typed.get("unit", "a user"))
        mechanism, best = _chosen_bound(
            where, choose_from, user, epsilon, choose_epsilon, bounds, choose_budget, whose
        )
        screen.say(_command(mechanism, known | {"bound": best}, unit))
        return
    if is_of_people and (users is None or (per_user or from_release) is None):
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
        how = taken(advise_bounds, context.params) | {"domain": where}
        if from_release is not None:
            how["earlier"] = Release.load(from_release)
        found = advise_bounds(**how)
        title = f"Errors of a count at ε = {value.stated(epsilon)}, in records"
        known = {"user": "COLUMN"} | known | {"bound": ",".join(3 * [str(found.bound)])}
    else:
        stated = parse_bound("--bound", bound)
        if task in ("points", "strings"):
            told = Beliefs(where, records or 10_000, bound=stated)
        elif is_of_people:
            total = (users or 0) * (per_user or 0)
            told = Beliefs(where, total, None, per_user_spread, users=users, bound=stated)
        else:
            need_one({"--cells": cells, "--density": density}, _KNOWN)
            need_one({"--records": records, "--mean": mean}, _KNOWN)
            cells = max(1, round(density * where.size)) if density else cells or 0
            total = mean * cells if mean else records or 0
            told = Beliefs(where, total, cells, spread, bound=stated)
        with screen.stages_bar() as show:
            how = taken(advise, context.params) | {
                "task": "records" if task in ("points", "strings") else task,
                "rows": None if rows == "paid" else int(parse_number("--rows", rows)),
            }
            found = advise(told, **how, progress=show)
        title = f"Simulated errors of a count at ε = {value.stated(found.epsilon)}"
        known = {"bound": bound} | known
    table = found.display_table()
    columns = list(table.columns)
    screen.table(title, columns, table.to_numpy(), right=columns[1:])
    for note in (*found.notes, getattr(found, "recommendation", "")):
        screen.paragraph(note)
    if getattr(found, "shows", True):
        screen.say(_command(found.mechanism, known, unit))


def _typed(context: typer.Context, task: str) -> dict[str, Any]:
    """Return the options that the user typed. Raise a ValueError for an option that only other tasks have."""
    if task not in _USES:
        raise ValueError(f"no task {task!r}{value.did_you_mean(task.lower(), _USES)}")
    typed = {}
    for name, x in context.params.items():
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        typed[name] = x
        tasks = [other for other, used in _USES.items() if name in used.split()]
        if tasks and task not in tasks:
            raise ValueError(
                f"{option_of(name)} does not apply to {task}. It is for {', '.join(tasks)}"
            )
    return typed


def _command(mechanism: Any, known: dict[str, Any], unit: str) -> str:
    """Return the command `workbench release …` with a mechanism and all options that are known so far."""
    from workbench.data import Interactions

    if mechanism.takes is Interactions:  # it bounds the records of each user itself
        known = {"user": "user"} | known | {"bound": None}
    if "user" not in known:
        known = known | {"unit": unit}
    if "publish" not in known:
        known = known | {"out": "release.parquet"}
    words = [
        f"--{name} {quote(str(known[name]))}"
        for name in _OF_RELEASE.split()
        if known.get(name) is not None
    ]
    return f"\nworkbench release YOUR.csv {' '.join(words)} {mechanism_options(mechanism)}"


def _chosen_bound(
    domain: Any,
    table: Path | None,
    user: str | None,
    epsilon: float | None,
    price: float | None,
    bounds: Any,
    budget_file: Path | None,
    unit: str,
) -> tuple[Any, str]:
    """Choose a bound from the private table with noise, which costs budget. Return a mechanism and the bound.
    The table is read before any cost is booked.
    """
    from workbench.mechanisms import GeometricHistogram
    from workbench.noise.additive import choice_rho
    from workbench.owner.advice import choose_bound, records_of_people, refuse_bounds
    from workbench.privacy import ADD_REMOVE, DP, ZCDP

    if table is None or not (user and epsilon and price and bounds):
        raise ValueError(
            "--choose-from needs --bounds, --user, --epsilon and --choose-epsilon. For example, --choose-from "
            "trips.csv --user rider --bounds 1,3,10,30 --epsilon 1 --choose-epsilon 0.1"
        )
    refuse_bounds(bounds)
    released = GeometricHistogram(DP(epsilon))
    refuse_unmeant(DP(price), 0, False)
    budget = None if budget_file is None else opened_for(budget_file, unit, user)
    with screen.reading_bar() as progress:
        records = records_of_people(table, domain, user, progress=progress)
    if budget is not None:
        paid = ZCDP(choice_rho(price)) if isinstance(budget.limit, ZCDP) else DP(price)
        booking = budget.book(paid, "choice of a bound", relation=ADD_REMOVE)
    chosen, receipt = choose_bound(records, bounds, domain.size / epsilon, epsilon=price)
    if budget is not None:
        booking.check([receipt])
        booking.confirm()
    screen.paragraph(
        f"Use at most {chosen} records of each person. The table chose this bound at a cost of "
        f"ε = {value.stated(price)}, in addition to the release."
    )
    return released, f"{chosen},{chosen},{chosen}"


def _where(task: str, domain: Path | None, space: StatedSpace) -> Any:
    """Return the domain (all possible cells) that the task is about, or the space of points or strings."""
    from workbench.spaces import Domain

    needed = {"points": "box", "strings": "strings"}.get(task)
    if needed is None:
        if domain is None:
            raise ValueError("--domain is missing. Name a file of all possible cells")
        return Domain.read(domain)
    if getattr(space, needed) is None:
        raise ValueError(f"--{needed} is missing: which {task} there can be")
    return space.hierarchy()
