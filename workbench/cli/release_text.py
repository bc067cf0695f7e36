"""What a release promises and holds, in words."""

from __future__ import annotations

from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli import screen
from workbench.privacy import DP
from workbench.release.words import described, promises_nothing, users_cut_in_words, warnings
from workbench.wording import cell, format_number, number, stated

if TYPE_CHECKING:
    from workbench.cli.budget import Account
    from workbench.mechanism import Release
    from workbench.privacy import Receipt


_AGAIN = "every release of the same data adds its ε or ρ, also one that replaces another"


def print_release(
    release: Release, file: Path, top: int = 10, delta: float | None = None
) -> None:
    """All that a release file says of itself, in words; nothing here has seen the table.

    Where a δ is named, its price is said as an ε as well.
    """
    at_delta = "" if delta is None else guarantee_at(release, delta)
    screen.say(f"{file}\n")
    screen.say(screen.plain(guarantee(release)))
    if at_delta:
        screen.say(at_delta)
    if release.bound:
        screen.say(screen.plain(release.bound.in_words))
    users_cut = users_cut_in_words(release)
    if users_cut:
        screen.say(users_cut)
    for warning in warnings(release):
        screen.warn(warning)
    screen.table(
        "What paid for it",
        ["measurement", "ε", "ρ", "δ", "relation", "part", "noise"],
        [_ledger_row(receipt) for receipt in release.ledger],
        right=["ε", "ρ", "δ"],
    )
    lines = [
        ("Mechanism", screen.plain(release.mechanism)),
        ("Size", sizes(release, file)),
        *described(release),
        ("Versions", screen.plain(_versions(file))),
    ]
    for name, text in lines:
        if text:
            screen.say(f"{name:10} {text}")
    if top and len(release.estimate):
        print_largest(release, top)


def again(account: Account | None = None) -> str:
    """What a person has to know who releases again."""
    return _AGAIN if account is None else account.remaining_in_words()


def _ledger_row(receipt: Receipt) -> tuple[str, ...]:
    drawn = "simulated" if receipt.simulated else "system"
    epsilon = getattr(receipt.cost, "epsilon", None)
    if epsilon == inf and not receipt.simulated:
        drawn = "none"
    rho = getattr(receipt.cost, "rho", receipt.rho)
    return (
        receipt.description,
        "" if epsilon is None else number(epsilon),
        "" if rho is None else format_number(rho),
        number(receipt.cost.delta),
        receipt.relation,
        " / ".join(receipt.part or ()),
        drawn,
    )


def _versions(file: Path) -> str:
    from workbench.release_files import read_record

    versions = read_record(file)["versions"]
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def print_largest(release: Release, top: int) -> None:
    """The largest released cells, each with the standard deviation of its noise."""
    try:
        labels, counts, noise = release.largest(top)
    except ValueError:  # nothing like cells
        return
    rows = [
        (*map(cell, row), number(count), f"± {format_number(deviation)}")
        for row, count, deviation in zip(
            labels.itertuples(index=False), counts, noise, strict=True
        )
    ]
    of_all = f"The {len(rows)} largest" if len(rows) > 1 else "The largest of the"
    title = f"{of_all} {release.estimate.contents}"
    columns = [*labels.columns, "count", "noise"]
    screen.table(title, columns, rows, right=["count", "noise"])


def guarantee(release: Release) -> str:
    """What the release promises, for someone who has not read the papers."""
    from workbench import privacy

    cost = release.privacy
    if promises_nothing(release):
        return "It promises nothing: part of it was read off the data without any protection."
    unit = release.bound.unit if release.bound else ""
    whose = f"the records of {unit}" if unit else "one unit's records"
    usually = "" if unit else " (usually one person's)"
    moves = {
        privacy.ADD_REMOVE: f"{whose}{usually} are added or removed",
        privacy.REPLACE: f"{whose} are replaced by any others",
        privacy.LOCAL: "one unit's own value is any other",
    }.get(release.relation, f"the data changes in this way: {release.relation}")
    if isinstance(cost, privacy.ZCDP):
        failing = f", but for a chance of {number(cost.delta)}" if cost.delta else ""
        return (
            f"{cost}: if {moves}, outcomes differ by at most α·{stated(cost.rho)} in the Rényi divergence "
            f"of every order α > 1{failing}. It promises an ε at every δ: name one with workbench show "
            "FILE --delta D."
        )
    promise = f"{cost}: if {moves}, no outcome becomes more than {_times(cost)} as likely"
    if cost.delta:
        return f"{promise}, but for a chance of {number(cost.delta)}."
    return f"{promise}."


def _times(cost: DP) -> str:
    """By what factor a chance may grow."""
    factor = f"e^{stated(cost.epsilon)}"
    if cost.epsilon < 700:
        factor = f"{factor} = {exp(cost.epsilon):.3g}"
    return f"{factor} times"


def guarantee_at(release: Release, delta: float) -> str:
    """What the release promises at a δ, by the best proven line over all that paid for it."""
    cost = screen.rounded(release.at(delta))
    return (
        f"At δ = {stated(delta)} it is {cost}: no outcome becomes more than {_times(cost)} as likely, but "
        f"for a chance of {number(delta)}."
    )


def sizes(release: Release, file: Path) -> str:
    """Cells and bytes, against the table with every cell of the domain."""
    estimate = release.estimate
    cells = estimate.domain.size
    written = file.stat().st_size
    dense = 8 * cells
    saved = f"{dense / written:,.3g} times smaller" if written < dense else "no smaller"
    held = f"{len(estimate):,} {estimate.contents}"
    if estimate.contents == "cells":
        held = f"{len(estimate):,} of {cells:,} cells"
    dense_size = screen.size(dense)
    return f"{held} in {screen.size(written)}, {saved} than the dense table's {dense_size}"
