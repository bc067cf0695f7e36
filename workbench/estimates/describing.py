"""Descriptions of releases in words. A description is a list of pairs of a topic and a text, which the
command line, panels and files show.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.estimates.summary import Summary
from workbench.privacy import ADD_REMOVE, DP, LOCAL, REPLACE, ZCDP
from workbench.value import counted, format_number, number, stated, stated_at_most

if TYPE_CHECKING:
    from workbench.estimates.release import Release

USERS_CUT = "users who lost anything to the bound"  # its receipt


def described(release: Release, delta: float | None = None) -> list[tuple[str, str]]:
    """Return the description of a release for the method `Release.describe`, as pairs of a topic and a text."""
    rows = [
        ("Released", _released_in_words(release)),
        ("Mechanism", str(release.mechanism)),
        ("Guarantee", guarantee_in_words(release)),
        ("At δ", "" if delta is None else guarantee_at(release, delta)),
        ("Protected", release.bound.in_words if release.bound else ""),
        ("Truncated", users_cut_in_words(release)),
        *(("Caution", text) for text in cautions(release)),
        *(("Paid", text) for text in paid_in_words(release)),
        ("Noise", noise_in_words(release)),
        ("Unknown", release.estimate.why_unknown),
        ("Sampled", sampled_in_words(release)),
        ("Absent", absent_in_words(release)),
        ("By chance", cells_from_nothing(release)),
    ]
    return [(name, text) for name, text in rows if text]


def paid_in_words(release: Release) -> list[str]:
    """Return sentences that state the privacy cost of each measurement of the private data. Measurements of
    the same kind and cost share a sentence.
    """
    alike = Counter((r.description, r.cost, r.relation, r.part) for r in release.ledger)
    lines = []
    for (name, cost, relation, part), count in alike.items():
        times = f"{count} × " if count > 1 else ""
        each = ", each" if count > 1 else ""
        of = f", of the part {' / '.join(part)}" if part else ""
        lines.append(f"{times}{name}: {cost}{each} ({relation}{of})")
    return lines


def _released_in_words(release: Release) -> str:
    estimate = release.estimate
    attributes = " × ".join(getattr(estimate.domain, "attributes", ()))
    drawn = "simulated noise" if release.simulated else "noise from the operating system"
    if release.idealised:
        drawn = "noise drawn in floating point (idealised, not to be published)"
    return f"{estimate.held}{f' of {attributes}' if attributes else ''}, with {drawn}"


def cautions(release: Release) -> list[str]:
    """Return a list of warnings. Each warning is a reason not to publish the release, or not to use the numbers
    of the release as data.
    """
    reasons = []
    if release.simulated:
        reasons.append(
            "Simulated: anyone with the seed can subtract the noise. Do not publish it."
        )
    if promises_nothing(release):
        reasons.append("No guarantee: handle the release like the data itself.")
    if release.mostly_noise:
        reasons.append(
            "Most of it may be noise: an empty table would release at least half as many such cells."
        )
    return reasons


def promises_nothing(release: Release) -> bool:
    """Return whether the release has no guarantee, because part of it was read from the data without noise."""
    return getattr(release.privacy, "epsilon", 0.0) == inf


def noise_in_words(release: Release) -> str:
    """Return a sentence that describes the noise on a released value. The numbers in the sentence are computed
    from the noise distribution that the release contains.
    """
    deviations = np.atleast_1d(release.deviations())
    deviations = deviations[np.isfinite(deviations)]
    if not len(deviations):
        return ""
    low = format_number(deviations.min())
    high = format_number(deviations.max())
    spread = f"± {low}" if low == high else f"± {low} to ± {high}"
    sampled = ", including the sampling of cells" if getattr(release.estimate, "tau", 0) else ""
    return (
        f"{spread} on each of the {release.estimate.contents} (one standard deviation{sampled}). About 19 "
        "times in 20 it is within two standard deviations"
    )


def sampled_in_words(release: Release) -> str:
    """Return a sentence that explains why the `count` of a sampled cell may be larger than its noisy value."""
    tau = getattr(release.estimate, "tau", 0)
    if not tau:
        return ""
    return (
        f"A part of the {release.estimate.contents} below τ = {number(tau)}. Each of them counts as τ, so that "
        "sums are unbiased"
    )


def absent_in_words(release: Release) -> str:
    """Return a sentence that states how large the count of a cell that was not released may be."""
    estimate = release.estimate
    if not isinstance(estimate, Summary) or not estimate.absent_cells:
        return ""
    most = release.absent_at_most
    absent = counted(estimate.absent_cells, f"other {estimate.contents[:-1]}")
    if most != most:
        return f"{absent}, and the file does not say how much they may hold"
    if not most:
        return f"{absent}, whose noisy value is 0"
    why = f"{'τ' if estimate.tau > estimate.theta else 'θ'} = {format_number(estimate.cut)}"
    return f"{absent} with at most {number(ceil(most))} each ({why} plus three standard deviations of noise)"


def chosen_in_words(shown: int, released: int, contents: str, left_out: int = 0) -> str:
    """Return a phrase which says that the shown cells were chosen by their noisy counts. `left_out` is the
    number of cells that were not released because of their noisy counts. If all cells are shown, the phrase
    is empty.
    """
    if shown < released:
        each = f"released {contents}" if left_out else contents
        largest = f"{shown} largest" if shown > 1 else "largest"
        return f"{largest} of {released:,} {each}, chosen by their noisy counts"
    if shown and left_out:
        possible = released + left_out
        return f"{shown} released of {possible:,} {contents}, chosen by their noisy counts"
    return ""


def cells_from_nothing(release: Release) -> str:
    """Return a sentence that states how many cells would be released from an empty table because of noise."""
    expected = release.cells_from_nothing
    what = release.estimate.contents
    released = len(release.estimate)
    if expected is None:
        return ""
    if not expected:
        return f"An empty table would release no {what}."
    if expected == released:
        return f"An empty table would release as many {what}, so their presence shows nothing."
    shown = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
    noise = "All" if expected >= released else "On average at most that many"
    said = f"An empty table would release about {shown} {what}."
    return f"{said} {noise} of these {released:,} may be noise alone."


def users_cut_in_words(release: Release) -> str:
    """Return a sentence that states how many users lost data because they exceeded the bound. If the release
    does not contain this number, return an empty text.
    """
    costs: list[Any] = [r.cost for r in release.ledger if r.name == USERS_CUT]  # in ε
    paid = [cost.epsilon for cost in costs]
    if release.users_cut is None or not paid:
        return ""
    alpha = exp(-paid[0])
    within = max(0, ceil(log(0.05 * (1 + alpha) / 2) / -paid[0]) - 1)
    return (
        f"{number(release.users_cut)} users lost something to the bound (within ± {number(within)} in 95 of "
        "100 cases)."
    )


def guarantee_in_words(release: Release) -> str:
    """Return a sentence that states the guarantee of the release in plain words."""
    cost = release.privacy
    if promises_nothing(release):
        return (
            "It promises nothing, because part of it was read from the data without protection."
        )
    unit = release.bound.unit if release.bound else ""
    whose = f"the records of {unit}" if unit else "one unit's records"
    usually = "" if unit else " (usually one person's)"
    moves = {
        ADD_REMOVE: f"{whose}{usually} are added or removed",
        REPLACE: f"{whose} are replaced by any others",
        LOCAL: "one unit's own value is any other",
    }.get(release.relation, f"the data changes in this way: {release.relation}")
    if isinstance(cost, ZCDP):
        failing = f", except with probability {number(cost.delta)}" if cost.delta else ""
        return (
            f"{cost}: if {moves}, outcomes differ by at most α·{stated(cost.rho)} in the Rényi divergence "
            f"of every order α > 1{failing}. It implies an ε at every δ. To see it, run workbench show "
            "FILE --delta D."
        )
    return f"{cost}: if {moves}, {_promise(cost)}."


def _promise(cost: DP) -> str:
    """Return the definition of (ε, δ)-differential privacy in words."""
    if not cost.delta:
        return f"no outcome becomes more than {_times(cost)} as likely"
    return (
        f"the probability of a set of outcomes becomes at most {_times(cost)} as large, plus "
        f"{number(cost.delta)}"
    )


def _times(cost: DP) -> str:
    """Return the factor e^ε by which the probability of an outcome may grow at the given privacy cost. The
    factor is a text.
    """
    factor = f"e^{stated(cost.epsilon)}"
    if cost.epsilon < 700:
        factor = f"{factor} = {number(exp(cost.epsilon), 3)}"
    return f"{factor} times"


def guarantee_at(release: Release, delta: float) -> str:
    """Return a sentence that states the guarantee of the release for a given δ. The sentence contains the
    smallest ε that is proven for all measurements together.
    """
    cost = release.at(delta)
    cost = replace(cost, epsilon=float(stated_at_most(cost.epsilon)))  # rounded up
    return f"At δ = {stated(delta)} it is {cost}: {_promise(cost)}."
