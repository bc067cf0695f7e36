"""What a release promises and holds, in words."""

from __future__ import annotations

from math import ceil, exp, inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli import screen
from workbench.privacy import DP
from workbench.wording import cell, counted, format_number, number, stated

if TYPE_CHECKING:
    from workbench.cli.budget import Account
    from workbench.mechanism import Release
    from workbench.privacy import Receipt
    from workbench.table import Bound


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
        screen.say(screen.plain(bound_in_words(release.bound)))
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
        ("Noise", noise_in_words(release)),
        ("Unknown", release.estimate.why_unknown),
        ("Sampled", sampled_in_words(release)),
        ("Absent", absent_in_words(release)),
        ("By chance", cells_from_nothing(release)),
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


def noise_in_words(release: Release) -> str:
    """The noise on a released value: exact, from the law that the file names."""
    import numpy as np

    deviations = np.atleast_1d(release.deviations())
    deviations = deviations[np.isfinite(deviations)]
    if not len(deviations):
        return ""
    low = format_number(deviations.min())
    high = format_number(deviations.max())
    spread = f"± {low}" if low == high else f"± {low} to ± {high}"
    sampled = ", the sampling of cells included" if getattr(release.estimate, "tau", 0) else ""
    return (
        f"{spread} on each of the {release.estimate.contents} (one standard deviation{sampled}); two of "
        "them cover it some 19 times in 20"
    )


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


def promises_nothing(release: Release) -> bool:
    """Whether a part of it was read off the data without protection."""
    return getattr(release.privacy, "epsilon", 0.0) == inf


def warnings(release: Release) -> list[str]:
    """Why the release is not fit to publish, or to be read as data."""
    reasons = []
    if release.simulated:
        reasons.append(
            "Simulated: anyone with the seed can take the noise off. Do not publish it."
        )
    if promises_nothing(release):
        reasons.append("No guarantee: the release must be handled like the data itself.")
    if release.mostly_noise:
        reasons.append(
            "Most of it may be noise: of an empty table half as many cells would stand out, or more."
        )
    return reasons


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


def bound_in_words(bound: Bound) -> str:
    """What the guarantee rests on."""
    from workbench.table import BELIEVED, ENFORCED

    if bound.l0 == 1:
        limit = f"{number(bound.linf)} to one cell"
    else:
        limit = f"{number(bound.linf)} to each of {number(bound.l0)} cells"
    if bound.l1 != bound.l0 * bound.linf:
        limit = f"{limit}, {number(bound.l1)} in all"
    unit = bound.unit
    if bound.status == ENFORCED:
        each = unit.partition(" ")[2] if unit.startswith(("a ", "an ")) else unit
        return (
            f"Enforced: each {each or 'user'} adds at most {limit}; what one has beyond that was left out, "
            "at random."
        )
    one = f"one unit ({unit})" if unit else "one unit"
    if bound.status == BELIEVED:
        return f"Believed, not enforced: {one} adds at most {limit}. Whoever adds more is protected less."
    return f"As stated, {one} adds at most {limit}."


def users_cut_in_words(release: Release) -> str:
    """How many users lost anything to the bound, where that was paid for."""
    from workbench.release import USERS_CUT

    costs: list[Any] = [r.cost for r in release.ledger if r.name == USERS_CUT]  # in ε
    paid = [cost.epsilon for cost in costs]
    if release.users_cut is None or not paid:
        return ""
    alpha = exp(-paid[0])
    within = max(0, ceil(log(0.05 * (1 + alpha) / 2) / -paid[0]) - 1)
    return (
        f"Users who lost anything to the bound: {number(release.users_cut)}, in 95 of 100 cases within "
        f"± {number(within)}."
    )


def sampled_in_words(release: Release) -> str:
    """Why a count may stand above its noisy value."""
    tau = getattr(release.estimate, "tau", 0)
    if not tau:
        return ""
    return (
        f"of the {release.estimate.contents} below τ = {number(tau)} a part: each stands for τ, so that "
        "sums are unbiased"
    )


def absent_in_words(release: Release) -> str:
    """What was not released may hold so much: the second part of what may be wrong."""
    from workbench.estimates import Summary

    estimate = release.estimate
    if not isinstance(estimate, Summary) or not estimate.absent_cells:
        return ""
    most = release.absent_at_most
    absent = counted(estimate.absent_cells, f"other {estimate.contents[:-1]}")
    if most != most:
        return f"{absent}, of which the file does not tell what they may hold"
    if not most:
        return f"{absent}, whose noisy value is 0"
    why = f"{'τ' if estimate.tau > estimate.theta else 'θ'} = {format_number(estimate.cut)}"
    return (
        f"{absent} of at most {number(ceil(most))} each ({why} and three deviations of noise)"
    )


def cells_from_nothing(release: Release) -> str:
    """How many cells noise alone would have released; from the file alone, on average an upper bound."""
    expected = release.cells_from_nothing
    what = release.estimate.contents
    if expected is None:
        return ""
    if expected == len(release.estimate):
        return f"of an empty table as many {what} would be released: they say nothing by being there"
    if not expected:
        return f"of an empty table no {what} would be released"
    shown = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
    said = f"of an empty table, the same thresholds would keep about {shown} {what}"
    released = len(release.estimate)
    if expected >= released:
        return f"{said}: all of these {released:,} may be noise alone"
    return f"{said}: on average at most so many of these {released:,} are noise alone"
