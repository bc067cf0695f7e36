"""The steps of a command that publishes something of private data: read, make, save.

Nothing of the data is read before the request and the mechanism are known to be sound, no noise is drawn
before all of the data is, and no file is there before its release is whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.cli import screen

if TYPE_CHECKING:
    from workbench.cli.request import Request
    from workbench.mechanism import Release
    from workbench.session.booking import Booking
    from workbench.table import SparseTable


def read(request: Request, mechanism: type) -> Any:
    """The private data that a class of mechanisms takes.

    A value outside the domain, or a count that is none, is named by file and line.
    """
    with screen.reading_bar() as progress:
        return _read(request, mechanism, {"table": request.table_name, "progress": progress})


def _read(request: Request, mechanism: type, how: dict[str, Any]) -> Any:
    from workbench.interactions import Interactions
    from workbench.records import Records
    from workbench.table import UNBOUNDED

    if mechanism.takes is Interactions:
        return Interactions.read(
            request.table, user=request.user, bound=UNBOUNDED, **request.edges, **how
        )
    if mechanism.takes is not Records:
        return _read_table(request, how)
    if not request.space.is_stated:
        return Records.from_table(_read_table(request, how))
    return Records.read(
        request.table,
        request.space.hierarchy(),
        request.bound,
        count=request.count,
        **_people(request),
        **how,
    )


def _read_table(request: Request, how: dict[str, Any]) -> SparseTable:
    """The table; rows of the same cell add up."""
    from workbench.reading import observed_domain
    from workbench.table import SparseTable

    domain = request.domain
    if domain is None:
        domain = observed_domain(request.table, request.count, request.user, **how)
    if request.count in domain.attributes:
        raise ValueError(
            f"--count {request.count!r} is an attribute of the domain: need another column"
        )
    return SparseTable.read(
        request.table, domain, request.bound, count=request.count, **_people(request), **how
    )


def _people(request: Request) -> dict[str, Any]:
    """How the reader cuts each user to the bound, where rows say whose they are."""
    if request.user is None:
        return {}
    return {"user": request.user, "rng": request.rng("users")}


def publish(request: Request, mechanism: Any, private: Any) -> Release:
    """Book, draw and save, in this order."""
    booking = book(request, mechanism, private)
    release = make(request, mechanism, private)
    save(request, release, booking)
    return release


def book(request: Request, mechanism: Any, private: Any) -> Booking | None:
    """Spend from the budget file, if one is named, before anything is drawn."""
    if request.account is None:
        return None
    from workbench.privacy import DP
    from workbench.release import USERS_CUT

    also = [] if request.report_cut is None else [(DP(request.report_cut), USERS_CUT)]
    return request.account.book(mechanism, private, request.out, also)


def make(request: Request, mechanism: Any, private: Any) -> Release:
    """The release: noise is drawn here, and nowhere else."""
    from workbench import noise

    release = mechanism(private, request.rng("noise"))
    if request.user is not None and release.bound:
        release = replace(release, bound=replace(release.bound, unit=request.who))
    if request.report_cut is not None:
        rng = request.rng("users cut")
        release = release.with_users_cut(private, request.report_cut, rng)
    if request.domain_from_data:
        receipt = noise.unprotected("domain read off the data")
        release = replace(release, ledger=(receipt, *release.ledger))
    return release


def save(request: Request, release: Release, booking: Booking | None = None) -> None:
    """Write the release whole, or not at all; of what costs more than was booked, nothing."""
    if booking is not None:
        booking.check(release)
    release.save(request.out, simulated=request.simulated, force=request.force)
    if booking is not None:
        booking.confirm()
