"""Steps of a command that makes a release from private data: read the data, draw the noise, save the release.

The order is fixed. First, the options and the mechanism are checked. Then all data are read. Only then is the
noise drawn. The file gets its name when the release is complete.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import data, noise
from workbench.cli import options, screen
from workbench.cli.budget import amount
from workbench.privacy import DP
from workbench.value import stated_at_most

if TYPE_CHECKING:
    from workbench.cli.request import Request
    from workbench.estimates.release import Release
    from workbench.owner import Booking, Budget
    from workbench.owner.scale import Rows
    from workbench.spaces import Domain


def publish(request: Request, mechanism: Any) -> Release:
    """Make a release from private data. The steps are: read the data, book the cost, draw the noise, save the
    release.
    """
    booked: list[Booking] = []
    with ExitStack() as room:

        def ready(private: Any) -> None:
            if request.budget is not None:
                paying = request.budget.paying(
                    mechanism,
                    private,
                    unit=request.paying_unit,
                    report_cut=request.report_cut,
                    out=request.out,
                )
                booked.append(room.enter_context(paying))

        draw = _in_parts if request.is_in_parts else _at_once
        release = draw(request, mechanism, ready)
    if request.user is not None and release.bound:
        release = replace(release, bound=replace(release.bound, unit=request.who))
    if request.domain_from_data:
        receipt = noise.unprotected("domain read off the data")
        release = replace(release, ledger=(receipt, *release.ledger))
    save(request, release, *booked)
    return release


@contextmanager
def spending_said(request: Request) -> Iterator[None]:
    """If Ctrl-C stops the `with` block, say how much of the budget was spent, and how to continue without
    paying again.
    """
    budget = request.budget
    before = 0 if budget is None else len(budget.ledger)
    try:
        yield
    except KeyboardInterrupt:
        if budget is None:
            raise
        text = f"To see what was spent: workbench budget show {budget.path}"
        with suppress(OSError, ValueError):  # the file may be locked
            text = _spent(request, budget, before)
        raise KeyboardInterrupt(text) from None


def _spent(request: Request, budget: Budget, before: int) -> str:
    """Return a sentence about the rows of the ledger that this command has added, and about its release."""
    rows = budget.ledger.iloc[before:]
    rows = rows[rows["file"] == str(request.out.resolve())]
    if rows.empty:
        return f"Nothing was spent from {budget.path}."
    spent = amount(budget.limit, rows[budget.price].sum(), rows["delta"].sum())
    text = f"{spent} was spent from {budget.path} and stays spent"
    if not rows["answered"].all():
        return f"{text}, but there is no release. The next run pays again."
    if request.lacks_publication:
        return (
            f"{text}. The paid release is {request.out}, but its publication is missing. To finish it "
            f"without paying again: {request.finish}"
        )
    return f"{text}. The paid release is {request.out}, and nothing is missing."


def _at_once(request: Request, mechanism: Any, ready: Callable[[Any], None]) -> Release:
    private = read(request, mechanism)
    ready(private)
    release: Release = mechanism(private, request.rng("noise"))
    if request.report_cut is None:
        return release
    return release.with_users_cut(private, request.report_cut, request.rng("users cut"))


def _in_parts(request: Request, mechanism: Any, ready: Callable[[Any], None]) -> Release:
    """Make a release from rows that need not fit in memory. All rows are read before any cost is booked."""
    from workbench.owner import scale

    rows = _rows(request, mechanism)
    cluster: AbstractContextManager[Any] = nullcontext()
    if request.scheduler is not None:
        cluster = options.connected(request.scheduler, request.insecure)
    with cluster as executor, screen.stages_bar() as progress:
        return scale.release(
            mechanism,
            rows,
            executor=executor,
            workers=request.workers or 1,
            scratch=request.scratch,
            rng=request.rng("noise"),
            report_cut=request.report_cut,
            progress=progress,
            ready=lambda: ready(rows.without_rows()),
        )


def _rows(request: Request, mechanism: Any) -> Rows:
    from workbench.owner.scale import Rows

    how: dict[str, Any] = {"table": request.table_name, **_people(request)}
    if mechanism.takes is not data.Interactions:
        domain = request.stated_domain
        _refuse_count(request, domain)
        return Rows.read(
            request.table, domain, request.bound_of_unit, count=request.count, **how
        )
    edges = request.edges
    if edges.keys() != {"domain"}:
        raise ValueError(
            "--workers, --scratch and --scheduler do not take items or contexts of several attributes"
        )
    return Rows.read(request.table, edges["domain"], data.UNBOUNDED, **how)


def read(request: Request, mechanism: Any) -> Any:
    """Read the private data, and return them in the form that the mechanism accepts.

    If a value is outside the domain, or if a count is invalid, the error message names the file and the line.
    """
    with screen.reading_bar() as progress:
        how: dict[str, Any] = {"table": request.table_name, "progress": progress}
        if mechanism.takes is data.Interactions:
            edges = {"user": request.user, "user_type": request.user_type} | request.edges
            return data.Interactions.read(request.table, bound=data.UNBOUNDED, **edges, **how)
        bound = request.bound_of_unit
        how |= _people(request)
        if mechanism.takes is data.UnlistedValues:
            return data.UnlistedValues.read(request.table, request.unlisted, bound, **how)
        how["count"] = request.count
        if request.has_space:
            return data.Records.read(request.table, request.hierarchy(), bound, **how)
        domain = request.domain
        if domain is None:
            domain = data.observed_domain(
                request.table,
                request.count,
                request.user,
                table=request.table_name,
                progress=progress,
            )
        _refuse_count(request, domain)
        if not mechanism.takes_wide:
            domain.refuse_wide()
        kind: Any = data.WideTable if domain.is_wide else data.SparseTable
        table = kind.read(request.table, domain, bound, **how)
        return data.Records.from_table(table) if mechanism.takes is data.Records else table


def _refuse_count(request: Request, domain: Domain) -> None:
    if request.count in domain.attributes:
        raise ValueError(
            f"--count {request.count!r} is an attribute of the domain: need another column"
        )


def _people(request: Request) -> dict[str, Any]:
    """Return the arguments of the reader that truncate each user's rows to the bound. They are empty if no
    column of users is given.
    """
    if request.user is None:
        return {}
    rng = request.rng("users")
    return {"user": request.user, "user_type": request.user_type, "rng": rng}


def save(request: Request, release: Release, booking: Booking | None = None) -> None:
    """Save the release. If the process is killed, no incomplete file is left. If the release costs more than
    was booked, it is not saved.
    """
    words = [] if request.seed is None else ["workbench", *screen.given()]
    with nullcontext() if booking is None else booking.saving(release):
        release.save(
            request.out,
            simulated=request.simulated,
            force=request.force,
            command=shlex.join(words),
        )
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
        if request.budget is not None and isinstance(release.privacy, DP):
            _say_unnamed_costs(request.budget, release.privacy.epsilon, request.about_file)


def _say_unnamed_costs(budget: Budget, epsilon: float, source: Path) -> None:
    """Print a warning if the budget has paid for more than the data sheet names."""
    from workbench.owner.publication import read_about

    spent = budget.ledger["epsilon"].sum() if budget.price == "epsilon" else 0.0
    named = epsilon + sum(x.epsilon for x in read_about(source).earlier)
    if spent > named * (1 + 1e-9):
        screen.say(
            f"{budget.path} has paid ε = {stated_at_most(spent)} for these people, but the data sheet names "
            f'ε = {stated_at_most(named)}. List all other publications as "earlier" in {source}, so that the '
            "next edition names the sum.\n"
        )


def _public_command(request: Request) -> str:
    """Return the command that the user typed. Each private table becomes TABLE, and the address of a cluster
    becomes ADDRESS. Paths of other files are shortened to their names.
    """
    return shlex.join(["workbench", *(_public_word(request, x) for x in screen.given())])


def _public_word(request: Request, word: str) -> str:
    option, equals, text = word.partition("=") if word.startswith("--") else ("", "", word)
    path = Path(text)
    if path in request.table:
        text = "TABLE"
    elif text == request.scheduler:
        text = "ADDRESS"
    elif path == request.folder or os.path.exists(path):
        text = path.name or text
    return f"{option}{equals}{text}"
