"""The steps of a command that publishes something of private data: read, make, save.

Nothing of the data is read before the request and the mechanism are known to be sound, no noise is drawn
before all of the data is, and no file is there before its release is whole.
"""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.cli import options, screen
from workbench.cli.screen import given
from workbench.privacy import DP

if TYPE_CHECKING:
    from workbench.cli.request import Request
    from workbench.estimates.release import Release
    from workbench.mechanisms.protocol import Mechanism
    from workbench.owner import Booking
    from workbench.owner.scale import Rows
    from workbench.spaces import Domain


def read(request: Request, mechanism: type[Mechanism]) -> Any:
    """Return the private data that a class of mechanisms takes.

    A value outside the domain, or a count that is none, is named by file and line.
    """
    from workbench.data import (
        UNBOUNDED,
        Interactions,
        Records,
        SparseTable,
        UnlistedValues,
        WideTable,
        observed_domain,
    )

    with screen.reading_bar() as progress:
        how: dict[str, Any] = {"table": request.table_name, "progress": progress}
        if mechanism.takes is Interactions:
            edges = {"user": request.user, "user_type": request.user_type} | request.edges
            return Interactions.read(request.table, bound=UNBOUNDED, **edges, **how)
        if mechanism.takes is UnlistedValues:
            column = request.unlisted
            return UnlistedValues.read(
                request.table, column, request.bound, **_people(request), **how
            )
        people = {"count": request.count} | _people(request)
        if request.has_space:
            space = request.hierarchy()
            return Records.read(request.table, space, request.bound, **people, **how)
        domain = request.domain
        if domain is None:
            domain = observed_domain(request.table, request.count, request.user, **how)
        _refuse_count(request, domain)
        if not mechanism.takes_wide:
            domain.refuse_wide()
        kind: Any = WideTable if domain.is_wide else SparseTable
        table = kind.read(request.table, domain, request.bound, **people, **how)
        return Records.from_table(table) if mechanism.takes is Records else table


def _refuse_count(request: Request, domain: Domain) -> None:
    if request.count in domain.attributes:
        raise ValueError(
            f"--count {request.count!r} is an attribute of the domain: need another column"
        )


def _people(request: Request) -> dict[str, Any]:
    """Return how the reader cuts each user to the bound, where rows say whose they are."""
    if request.user is None:
        return {}
    return {
        "user": request.user,
        "user_type": request.user_type,
        "rng": request.rng("users"),
    }


def publish(request: Request, mechanism: Any, private: Any) -> Release:
    """Book, draw and save, in this order."""
    with _room(request, private):
        booking = book(request, mechanism, private)
        release = make(request, mechanism, private)
    save(request, release, booking)
    return release


def publish_in_parts(request: Request, mechanism: Any) -> Release:
    """Return the same of rows that need not fit in memory: all are read before anything is booked."""
    from workbench.owner import scale

    rows = _rows(request, mechanism)
    cluster: AbstractContextManager[Any] = nullcontext()
    if request.scheduler is not None:
        cluster = options.connected(request.scheduler, request.insecure)
    booked: list[Booking | None] = []
    room = ExitStack()

    def ready() -> None:
        private = rows.without_rows()
        room.enter_context(_room(request, private))
        booked.append(book(request, mechanism, private))

    with cluster as executor, screen.stages_bar() as progress, room:
        made = scale.release(
            mechanism,
            rows,
            executor=executor,
            workers=request.workers or 1,
            scratch=request.scratch,
            rng=request.rng("noise"),
            report_cut=request.report_cut,
            progress=progress,
            ready=ready,
        )
    made = _of_unit(request, made)
    save(request, made, booked[0])
    return made


def _room(request: Request, private: Any) -> AbstractContextManager[Any]:
    """Return the disk space of what a budget file pays for."""
    if request.budget is None:
        return nullcontext()
    from workbench.estimates.release_files import reserve

    return closing(reserve(request.out, private))


def _rows(request: Request, mechanism: Any) -> Rows:
    from workbench.data import UNBOUNDED, Interactions
    from workbench.owner.scale import Rows

    how: dict[str, Any] = {"table": request.table_name, **_people(request)}
    if mechanism.takes is not Interactions:
        domain = request.stated_domain
        _refuse_count(request, domain)
        return Rows.read(request.table, domain, request.bound, count=request.count, **how)
    edges = request.edges
    if edges.keys() != {"domain"}:
        raise ValueError(
            "--workers, --scratch and --scheduler do not take items or contexts of several attributes"
        )
    return Rows.read(request.table, edges["domain"], UNBOUNDED, **how)


def book(request: Request, mechanism: Any, private: Any) -> Booking | None:
    """Spend from the budget file, if one is named, before anything is drawn."""
    if request.budget is None:
        return None
    from workbench.estimates.describing import USERS_CUT
    from workbench.owner.costs import description

    also = [] if request.report_cut is None else [(DP(request.report_cut), USERS_CUT)]
    budget = request.budget
    cost: Any = budget.check(mechanism, private, unit=request.paying_unit)
    return budget.book(cost, description(mechanism, budget.limit), also=also, out=request.out)


def make(request: Request, mechanism: Any, private: Any) -> Release:
    """Return the release: noise is drawn here, and nowhere else."""
    from workbench import noise

    release = mechanism(private, request.rng("noise"))
    release = _of_unit(request, release)
    if request.report_cut is not None:
        rng = request.rng("users cut")
        release = release.with_users_cut(private, request.report_cut, rng)
    if request.domain_from_data:
        receipt = noise.unprotected("domain read off the data")
        release = replace(release, ledger=(receipt, *release.ledger))
    return release


def _of_unit(request: Request, release: Release) -> Release:
    """Return the release, whose bound names the unit as the request does."""
    if request.user is None or not release.bound:
        return release
    return replace(release, bound=replace(release.bound, unit=request.who))


def save(request: Request, release: Release, booking: Booking | None = None) -> None:
    """Write the release whole or not at all. A release that costs more than was booked is not written."""
    if booking is not None:
        booking.check(release)
    words = [] if request.seed is None else ["workbench", *given()]
    with nullcontext() if booking is None else booking.saving():
        release.save(
            request.out,
            simulated=request.simulated,
            force=request.force,
            command=shlex.join(words),
        )
    if booking is not None:
        booking.confirm()
    if request.folder is not None:
        from workbench.owner.publication import publish

        folder = publish(
            release,
            request.folder,
            request.about_file,
            command=_public_command(request),
            simulated=request.simulated,
        )
        screen.say(f"{folder} and {folder}.zip are written for the public.\n")


def _public_command(request: Request) -> str:
    """Return what was typed, with names in place of the paths of inputs."""
    tables = {str(path) for path in request.table}
    words = dict.fromkeys(tables, "TABLE")
    others = [request.domain_file, request.budget_file, request.taxonomy, request.about_file]
    words |= {str(path): path.name for path in [*others, request.out, request.folder] if path}
    return shlex.join(["workbench", *(words.get(word, word) for word in given())])
