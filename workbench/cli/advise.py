"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

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
    """Compare mechanisms on simulated data, before any budget is spent.

    The command reads no data, except with --choose-from. State what you believe about the table from public
    knowledge, for example --records 400000 --cells 350000. The workbench simulates such a table, runs each
    mechanism on it, and prints the errors in those parts of the table that have records. With --error 50 in
    place of --epsilon it finds the smallest ε for this error. The last line of the output is the command
    that makes the release.

    Parameters
    ----------
    epsilon
        Privacy loss ε.
    error
        Largest acceptable error in counts, in place of --epsilon. The command finds the smallest ε for it.
    domain
        Domain file (JSON) with the possible cells, as for `release`.
    task : TASK
        What you want to publish: all, cells, ranges, boxes, marginals, rows, degrees, users, points,
        strings or bounds.
    size
        Approximate number of cells to release (all, cells, ranges). By default the number of non-empty
        cells.
    bound : L0,LINF[,L1]
        Most that one unit can change: number of cells, per cell, in total.
    delta
        Failure probability δ. Above 0, mechanisms with Gaussian noise and stability histograms are also
        compared.
    user : COLUMN
        Column of users, for the command at the end.
    unit : TEXT
        Unit of protection, for the command at the end.
    budget : FILE
        Budget file, for the command at the end.
    publish : FOLDER
        Publication folder, for the command at the end.

    What you believe, from public knowledge
    ---------------------------------------
    records
        Number of records.
    cells
        Number of cells that are not empty.
    density
        Share of cells that are not empty, in place of --cells.
    mean
        Mean count of these cells, in place of --records.
    spread
        Standard deviation of their counts. By default the mean.
    users
        Number of people (users, bounds).
    per_user
        Mean number of records of a person (users, bounds).
    per_user_spread
        Standard deviation of the records of a person (users, bounds). By default the mean.

    A choice by the table, for a price
    ----------------------------------
    choose_from : TABLE
        Table that chooses one of --bounds, by the number of records of each --user.
    choose_epsilon
        Privacy loss of this choice, in addition to --epsilon of the release.
    choose_budget : FILE
        Budget file that pays for this choice.

    What some tasks need
    --------------------
    queries : R,R,…
        Sizes of ranges, in cells (all, ranges). By default those that hold 100 and
        10,000 non-empty cells.
    shape : N,N,…
        Number of labels of each attribute that a box covers (boxes). By default a quarter of the labels.
    order
        Number of attributes of a marginal.
    rows : N|paid
        Number of synthetic records, if it is public. `paid` spends budget on a noisy number.
    bounds : N,N,…
        Bounds on the records of a person to compare. Implies --task bounds. By default from 1 to 1,000.
    from_release : FILE
        Earlier release of such a table (bounds). Its counts say how full the labels are, in place of
        Zipf's distribution, and with --users how many records a person has, in place of --per-user.
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
        title = f"Errors at ε = {value.stated(epsilon)}, in records"
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
        title = (
            f"Simulated mean absolute errors at ε = {value.stated(found.epsilon)}, in counts"
        )
        known = {"bound": bound} | known
    table = found.display_table()
    columns = list(table.columns)
    screen.table(title, columns, table.to_numpy(), right=columns[1:])
    for note in (*found.notes, getattr(found, "recommendation", "")):
        screen.paragraph(note)
    if getattr(found, "shows", True):
        screen.say(_command(found.mechanism, known, unit))


def _typed(context: typer.Context, task: str) -> dict[str, Any]:
    """Return the options that are typed, or raise a ValueError for one that only other tasks have."""
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
    """Return the command that releases a table with a mechanism and the options that are known."""
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
    """Return a mechanism and the bound that a table chooses. The table is read before anything is booked."""
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
    """Return the domain, or the space of records, that the task is about."""
    from workbench.spaces import Domain

    needed = {"points": "box", "strings": "strings"}.get(task)
    if needed is None:
        if domain is None:
            raise ValueError(f"--domain is missing: which cells there can be, for {task}")
        return Domain.read(domain)
    if getattr(space, needed) is None:
        raise ValueError(f"--{needed} is missing: which {task} there can be")
    return space.hierarchy()
