"""What a release promises and holds, in words."""

from __future__ import annotations

from math import ceil, exp, inf, log
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli import screen
from workbench.wording import number, stated

if TYPE_CHECKING:
    from workbench.cli.budget import Account
    from workbench.mechanism import Release
    from workbench.table import Bound


_AGAIN = "every release of the same data adds its ε, also one that replaces another"


def summary(release: Release, file: Path, account: Account | None = None) -> list[str]:
    """What a person reads who has just made a release, a line each."""
    lines = [
        str(file),
        guarantee(release),
        bound_in_words(release.bound) if release.bound else "",
        users_cut_in_words(release),
        sizes(release, file),
        cells_from_nothing(release),
        _AGAIN if account is None else account.remaining_in_words(),
    ]
    return [line for line in lines if line]


def guarantee(release: Release) -> str:
    """What the release promises, for someone who has not read the papers."""
    from workbench import privacy

    cost = release.privacy
    if cost.epsilon == inf:
        return "It promises nothing: part of it was read off the data without any protection."
    unit = release.bound.unit if release.bound else ""
    whose = f"the records of {unit}" if unit else "one unit's records"
    usually = "" if unit else " (usually one person's)"
    moves = {
        privacy.ADD_REMOVE: f"{whose}{usually} are added or removed",
        privacy.REPLACE: f"{whose} are replaced by any others",
        privacy.LOCAL: "one unit's own value is any other",
    }.get(release.relation, f"the data changes in this way: {release.relation}")
    factor = f"e^{stated(cost.epsilon)}"
    if cost.epsilon < 700:
        factor = f"{factor} = {exp(cost.epsilon):.3g}"
    promise = f"{cost}: if {moves}, no outcome becomes more than {factor} times as likely"
    if cost.delta:
        return f"{promise}, but for a chance of {number(cost.delta)}."
    return f"{promise}."


def warnings(release: Release) -> list[str]:
    """Why the release is not fit to publish."""
    reasons = []
    if release.simulated:
        reasons.append(
            "Simulated: anyone with the seed can take the noise off. Do not publish it."
        )
    if release.privacy.epsilon == inf:
        reasons.append("No guarantee: the release must be handled like the data itself.")
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

    paid = [r.cost.epsilon for r in release.ledger if r.name == USERS_CUT]
    if release.users_cut is None or not paid:
        return ""
    alpha = exp(-paid[0])
    within = max(0, ceil(log(0.05 * (1 + alpha) / 2) / -paid[0]) - 1)
    return (
        f"Users who lost anything to the bound: {number(release.users_cut)}, in 95 of 100 cases within "
        f"± {number(within)}."
    )


def cells_from_nothing(release: Release) -> str:
    """How many cells the same thresholds keep of a table that holds nothing; public numbers only."""
    from fractions import Fraction

    from workbench import noise
    from workbench.estimates import Summary
    from workbench.transform import basis_of

    estimate = release.estimate
    if not isinstance(estimate, Summary) or estimate.decay is None or estimate.scale != 1:
        return ""  # nothing is known, or as many whatever the table holds
    theta = estimate.theta
    tau = estimate.tau
    everything = theta == 0 and tau == 0 and estimate.sides == 2
    if everything or getattr(estimate, "consistent", False):
        return ""
    expected = 0.0
    basis = basis_of(getattr(estimate, "transform", None), estimate.domain)
    for block in basis.noise_blocks:
        decay = Fraction(estimate.decay) * block.share / block.nodes_per_count
        law = noise.empty_cell(decay, theta, estimate.sides, tau)
        expected += block.size * float(law.survival(192))
    number = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
    return (
        f"of an empty table, the same thresholds would keep about {number} {estimate.contents}"
    )
