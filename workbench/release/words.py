"""Sentences about a release, which the terminal and notebooks both show."""

from __future__ import annotations

from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.estimates import Summary
from workbench.release.answering import USERS_CUT
from workbench.wording import counted, format_number, number

if TYPE_CHECKING:
    from workbench.release.release import Release


def described(release: Release) -> list[tuple[str, str]]:
    """Names and sentences about the noise on a release, and about the cells that it leaves out."""
    rows = [
        ("Noise", noise_in_words(release)),
        ("Unknown", release.estimate.why_unknown),
        ("Sampled", sampled_in_words(release)),
        ("Absent", absent_in_words(release)),
        ("By chance", cells_from_nothing(release)),
    ]
    return [(name, text) for name, text in rows if text]


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
            "Most of it may be noise: an empty table would release at least half as many such cells."
        )
    return reasons


def promises_nothing(release: Release) -> bool:
    """Whether a part of it was read off the data without protection."""
    return getattr(release.privacy, "epsilon", 0.0) == inf


def noise_in_words(release: Release) -> str:
    """The noise on a released value: exact, from the law that the file names."""
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


def users_cut_in_words(release: Release) -> str:
    """How many users lost anything to the bound, where that was paid for."""
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
