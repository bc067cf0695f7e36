"""How claims were judged before they were split into statements; it goes when the last paper is converted.

A claim is one sentence with one check of rows alone; a run either settles it or leaves it undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.claims.claim import (
    ALIKE,
    DIFFERS,
    HOLDS,
    NOT_JUDGED,
    UNDECIDED,
    UNTESTABLE,
    Finding,
    MissingPoints,
    Printed,
    Verdict,
)
from workbench.claims.curves import _paired
from workbench.claims.decisions import decide, decide_all
from workbench.wording import format_number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Claim:
    """One sentence about a figure, and the function of the figure's rows that checks it.

    Parameters
    ----------
    id : str
        Names it among all claims.
    says : str
        The paper's sentence.
    check : callable or None
        Takes the figure's rows and returns a `Finding`; None where the claim can never be tested here.
    why : str
        Why it cannot be tested or, once a run has shown that it differs, why it does.
    """

    id: str
    says: str
    check: Callable[[pd.DataFrame], Finding] | None
    why: str = ""

    def judge(self, rows: pd.DataFrame, profile: str) -> Verdict:
        """Check the claim on a figure's rows.

        Parameters
        ----------
        rows : DataFrame
            What the figure's specification returns.
        profile : str
            "quick" or "paper": what a quick run cannot settle is undecided.

        Returns
        -------
        Verdict
            A claim that differs, or that its seeds cannot settle, is a result too.
        """
        if self.check is None:
            return Verdict(self.id, self.says, UNTESTABLE, why=self.why)
        try:
            finding = self.check(rows)
        except MissingPoints as e:
            finding = Finding(None, "", f"this run has no points for it: {e}", testable=False)
        holds = finding.if_unsettled if finding.holds is None else finding.holds
        if not finding.testable:
            outcome = UNTESTABLE
        elif finding.holds is None and profile == "quick":
            outcome = UNDECIDED
        else:
            outcome = HOLDS if holds else DIFFERS
        why = finding.why
        if not why and outcome in (DIFFERS, UNTESTABLE):
            why = self.why
        return Verdict(self.id, self.says, outcome, finding.measured, why)

    def not_judged(self, why: str) -> Verdict:
        """The verdict of a run that is not on the paper's path."""
        return Verdict(self.id, self.says, NOT_JUDGED, why=why)


def judge(claims: Sequence[Claim], rows: pd.DataFrame, profile: str) -> list[Verdict]:
    """All verdicts of one figure."""
    return [claim.judge(rows, profile) for claim in claims]


def judge_or_not(
    claims: Sequence[Claim], rows: pd.DataFrame, full_effort: bool, off_paper: str
) -> list[Verdict]:
    """All verdicts of one figure, which judges nothing off the paper's path."""
    if off_paper:
        return [claim.not_judged(off_paper) for claim in claims]
    return judge(claims, rows, "paper" if full_effort else "quick")


def all_of(parts: Mapping[str, Finding]) -> Finding:
    """A claim of several parts: it holds if all do, and is settled once one differs."""
    holds = decide_all(part.holds for part in parts.values())
    answers = {True: "yes", False: "no", None: "not settled"}
    measured = [f"{name}: {answers[p.holds]} ({p.measured})" for name, p in parts.items()]
    whys = [part.why for part in parts.values() if part.why]
    unsettled = [part for part in parts.values() if part.holds is None]
    if_unsettled = all(part.if_unsettled for part in unsettled)
    return Finding(holds, "; ".join(measured), " ".join(whys), if_unsettled)


def check_lower(
    ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75, times: float = 1.0
) -> Finding:
    """Whether `ours` (from `confidence_intervals`) lies below `other`/`times`, at `share` of the points.

    It does where intervals are apart at so many points, it does not where at so many that the rest
    is too few they are apart the other way round, and otherwise more seeds are needed (None).
    """
    a, b = _paired(ours, other)
    apart = a.high < b.low / times
    opposed = a.low > b.high / times
    lower = (a["mean"] < b["mean"] / times).mean()
    measured = f"the other is {_span(b['mean'] / a['mean'])} as large"
    if len(a) > 1:
        measured += f"; lower at {lower:.0%} of {len(a)} points"
        measured += f", intervals apart at {apart.mean():.0%}"
    else:
        measured += f", intervals {'apart' if apart.all() else 'overlap'}"
    return Finding(decide(apart.mean() >= share, opposed.mean() > 1 - share), measured)


def check_similar(ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75) -> Finding:
    """Whether two curves (from `confidence_intervals`) are alike at `share` of the points.

    Alike is within 1.25× of each other, or with overlapping intervals where both are noisy. More
    seeds may still decide (None) where the overlap does, leaning to yes, and where the intervals
    leave 1.25× possible, leaning to no.
    """
    a, b = _paired(ours, other)
    ratio = a["mean"] / b["mean"]
    close = np.maximum(ratio, 1 / ratio) <= ALIKE
    overlap = (a.low <= b.high) & (b.low <= a.high)
    measured = f"{_span(ratio)} as large; within 1.25× at {close.mean():.0%} of {len(a)} points"
    if close.mean() >= share:
        return Finding(True, measured)
    measured += f", intervals apart at {1 - overlap.mean():.0%}"
    possible = (a.low <= ALIKE * b.high) & (b.low <= ALIKE * a.high)
    undecided = (close | possible).mean() >= share
    if_unsettled = bool((close | overlap).mean() >= share)
    return Finding(None if undecided else False, measured, if_unsettled=if_unsettled)


def check_decreasing(curve: pd.DataFrame) -> Finding:
    """Whether a curve falls along its index: clearly lower at its end, and never clearly up.

    Clearly up is more than 1.25× the point before, intervals apart.
    """
    if len(curve) < 2:
        raise MissingPoints("a curve of less than two points neither rises nor falls")
    before = curve.iloc[:-1].reset_index(drop=True)
    after = curve.iloc[1:].reset_index(drop=True)
    rises = ((after["mean"] > ALIKE * before["mean"]) & (after.low > before.high)).sum()
    first = curve.iloc[0]
    last = curve.iloc[-1]
    measured = f"{format_number(first['mean'])} → {format_number(last['mean'])}"
    measured += f", up at {rises} of {len(after)} steps"
    if rises:
        return Finding(False, measured)
    if last.high < first.low:
        return Finding(True, measured)
    return Finding(None if last["mean"] < first["mean"] else False, measured)


def check_printed(point: Printed, curve: pd.DataFrame, percent: bool = False) -> Finding:
    """Whether all means of a curve lie where the paper's number says, its reading error included.

    None where a mean does not, but its interval still reaches in.
    """
    if curve.empty:
        raise MissingPoints(f"none is where the paper prints {point.says}")
    inside = curve["mean"].map(point.covers).all()
    reached = ((curve.low <= point.high) & (curve.high >= point.low)).all()
    unit = " %" if percent else ""
    factor = 100 if percent else 1
    low = format_number(factor * curve["mean"].min())
    high = format_number(factor * curve["mean"].max())
    measured = (low if low == high else f"{low} … {high}") + unit
    return Finding(decide(inside, not reached), measured)


def _span(ratio: pd.Series) -> str:
    low = f"{ratio.min():.3g}"
    high = f"{ratio.max():.3g}"
    return f"{low}×" if low == high else f"{low}–{high}×"
