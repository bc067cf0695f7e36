"""A claim, the numbers that a paper prints, and the verdict on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

ALIKE = 1.25
MUCH = 3.0
ORDERS = 10.0
HOLDS = "holds"
DIFFERS = "differs"
UNDECIDED = "undecided (quick)"
UNTESTABLE = "not testable here"
NOT_JUDGED = "not judged"
OUTCOMES = (HOLDS, DIFFERS, UNDECIDED, UNTESTABLE, NOT_JUDGED)


class MissingPoints(ValueError):
    """Rows lack points that a check is about: a figure need not draw what its paper does not print."""


@dataclass(frozen=True)
class Verdict:
    """What checking a claim has shown.

    Parameters
    ----------
    id : str
        The claim's.
    says : str
        The claim's sentence.
    outcome : str
        One of `claims.OUTCOMES`.
    measured : str
        What was measured, in words with numbers.
    why : str
        Why it is so, where that is not plain.
    """

    id: str
    says: str
    outcome: str
    measured: str = ""
    why: str = ""

    def __post_init__(self):
        if self.outcome not in OUTCOMES:
            raise ValueError(f"Verdict.outcome = {self.outcome!r}: need one of {OUTCOMES}")


@dataclass(frozen=True)
class Finding:
    """What a check returns: whether the claim holds (None: too few seeds to say) and what was measured.

    `if_unsettled` is what an unsettled check counts as when there are no more seeds to come. `testable` is
    False where the rows lack what the claim is about; `why` then names it.
    """

    holds: bool | None
    measured: str
    why: str = ""
    if_unsettled: bool = False
    testable: bool = True


@dataclass(frozen=True)
class Printed:
    """A number, or a range of numbers, as a paper prints it: `low` to `high`, reading error included.

    `at` is its place on the other axis, a number or a name, or `over` the stretch of that axis that
    it is about (neither: all of it); `value` is the number itself if it is one, `axis` the axis that
    it lies along.
    """

    says: str
    low: float
    high: float
    at: float | str | None = None
    value: float | None = None
    axis: str = "y"
    over: tuple[float, float] | None = None

    @classmethod
    def approximately(cls, says: str, value: float, error: float = 0.0, **place) -> Printed:
        """ "About `value`": within 1.25× of it, or what rounds to it (± `error`) as printed.

        >>> Printed.approximately("around 5 %", 0.05, 0.005)
        Printed(says='around 5 %', low=0.04, high=0.0625, at=None, value=0.05, axis='y', over=None)
        """
        low = min(value / ALIKE, value - error)
        high = max(value * ALIKE, value + error)
        return cls(says, low, high, value=value, **place)

    def covers(self, measured: float) -> bool:
        """Whether a measured number agrees with it."""
        return bool(self.low <= measured <= self.high)


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


def to_frame(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Verdicts as a table."""
    import pandas as pd

    columns = ["id", "says", "outcome", "measured", "why"]
    return pd.DataFrame([vars(v) for v in verdicts], columns=columns)


def verdict_table(
    verdicts: Sequence[Verdict], caption: str = "What the paper says, judged"
) -> Styler:
    """Verdicts for a notebook: whole sentences, nothing cut off."""
    rules = {
        "th, td": "text-align: left; vertical-align: top",
        "th:first-child, td:first-child": "white-space: nowrap",
        "caption": "text-align: left",
    }
    styles = [{"selector": where, "props": how} for where, how in rules.items()]
    return to_frame(verdicts).style.hide().set_caption(caption).set_table_styles(styles)


def compare_with_paper(*lines: tuple[str, Printed, Finding]) -> pd.DataFrame:
    """Printed numbers and ours, side by side: one line each of what it is, the number, the finding."""
    import pandas as pd

    rows = [
        {"what": what, "the paper prints": point.says, "we measure": finding.measured}
        for what, point, finding in lines
    ]
    return pd.DataFrame(rows).set_index("what")
