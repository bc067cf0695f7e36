"""What a paper says its figure shows, as something that can be checked, and what checking found.

A claim's words become numbers before the first run: *about, comparable, alike* = within 1.25× (or
95 % intervals overlap); *better* = lower with intervals apart at three quarters of the points;
*much, far, considerably* >= 3×; *orders of magnitude* >= 10×; *uniformly* = at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

ALIKE, MUCH, ORDERS = 1.25, 3.0, 10.0
HOLDS, DIFFERS = "holds", "differs"
UNDECIDED, UNTESTABLE = "undecided (quick)", "not testable here"
OUTCOMES = (HOLDS, DIFFERS, UNDECIDED, UNTESTABLE)


@dataclass(frozen=True)
class Verdict:
    """What checking a claim found: `measured` in words with numbers, `why` where it is not plain."""

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

    `leans` is what an unsettled check counts as when there are no more seeds to come. `testable` is
    False where the rows lack what the claim is about; `why` then names it.
    """

    holds: bool | None
    measured: str
    why: str = ""
    leans: bool = False
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
    def about(cls, says: str, value: float, error: float = 0.0, **place) -> Printed:
        """ "About `value`": within 1.25× of it, or what rounds to it (± `error`) as printed.

        >>> Printed.about("around 5 %", 0.05, 0.005)
        Printed(says='around 5 %', low=0.04, high=0.0625, at=None, value=0.05, axis='y', over=None)
        """
        low, high = min(value / ALIKE, value - error), max(value * ALIKE, value + error)
        return cls(says, low, high, value=value, **place)

    def covers(self, measured: float) -> bool:
        """Whether a measured number agrees with it."""
        return bool(self.low <= measured <= self.high)


@dataclass(frozen=True)
class Claim:
    """One sentence about a figure, and the function of the figure's rows that checks it.

    `check` is None where the claim can never be tested here. `why` says why not, or, once a run has
    shown that the claim differs, why it does.
    """

    id: str
    says: str
    check: Callable[[pd.DataFrame], Finding] | None
    why: str = ""

    def judge(self, rows: pd.DataFrame, profile: str) -> Verdict:
        """The verdict; a claim that differs, or that its seeds cannot settle, is a result too."""
        if self.check is None:
            return Verdict(self.id, self.says, UNTESTABLE, why=self.why)
        found = self.check(rows)
        holds = found.leans if found.holds is None else found.holds
        if not found.testable:
            outcome = UNTESTABLE
        elif found.holds is None and profile == "quick":
            outcome = UNDECIDED
        else:
            outcome = HOLDS if holds else DIFFERS
        why = found.why or ("" if outcome in (HOLDS, UNDECIDED) else self.why)
        return Verdict(self.id, self.says, outcome, found.measured, why)


def judge(claims: Sequence[Claim], rows: pd.DataFrame, profile: str) -> list[Verdict]:
    """All verdicts of one figure."""
    return [claim.judge(rows, profile) for claim in claims]


def to_frame(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Verdicts as a table."""
    columns = ["id", "says", "outcome", "measured", "why"]
    return pd.DataFrame([vars(v) for v in verdicts], columns=columns)


def table(verdicts: Sequence[Verdict], caption: str = "What the paper says, judged") -> Styler:
    """Verdicts for a notebook: whole sentences, nothing cut off."""
    rules = {
        "th, td": "text-align: left; vertical-align: top",
        "th:first-child, td:first-child": "white-space: nowrap",
        "caption": "text-align: left",
    }
    styles = [{"selector": where, "props": how} for where, how in rules.items()]
    return to_frame(verdicts).style.hide().set_caption(caption).set_table_styles(styles)


def beside(*lines: tuple[str, Printed, Finding]) -> pd.DataFrame:
    """Printed numbers and ours, side by side: one line each of what it is, the number, the finding."""
    told = [
        {"what": what, "the paper prints": point.says, "we measure": found.measured}
        for what, point, found in lines
    ]
    return pd.DataFrame(told).set_index("what")


def every(parts: Mapping[str, Finding]) -> Finding:
    """A claim of several parts: it holds if all do, and is settled once one differs."""
    found = [part.holds for part in parts.values()]
    holds = False if False in found else None if None in found else True
    marks = {True: "yes", False: "no", None: "not settled"}
    told = (f"{words}: {marks[p.holds]} ({p.measured})" for words, p in parts.items())
    whys = (part.why for part in parts.values() if part.why)
    leans = all(part.leans for part in parts.values() if part.holds is None)
    return Finding(holds, "; ".join(told), " ".join(whys), leans)


def intervals(rows: pd.DataFrame, by: str | list[str], level: float = 0.95) -> pd.DataFrame:
    """Mean of `value` over seeds at each point, with its t interval: columns mean, low, high, seeds."""
    from scipy.special import stdtrit  # t's quantiles; scipy.stats takes a third of a second

    grouped = rows.groupby(by).value
    out = pd.DataFrame({"mean": grouped.mean(), "seeds": grouped.count()})
    half = stdtrit(np.maximum(out.seeds - 1, 1), (1 + level) / 2) * grouped.std().fillna(np.inf)
    half = half / np.sqrt(out.seeds)
    return out.assign(low=out["mean"] - half, high=out["mean"] + half)


def curve(rows: pd.DataFrame, by: str, level: float = 0.95, **where) -> pd.DataFrame:
    """The `intervals` over `by` of the rows whose columns equal what `where` says."""
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    if rows.empty:
        raise ValueError(f"no rows have {where}")
    return intervals(rows, by, level)


def better(
    ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75, times: float = 1.0
) -> Finding:
    """Whether `ours` (from `intervals`) lies below `other`/`times`, at `share` of the points.

    It does where intervals are apart at so many points, it does not where at so many that the rest
    is too few they are apart the other way round, and otherwise more seeds are needed (None).
    """
    a, b = _paired(ours, other)
    apart, against = a.high < b.low / times, a.low > b.high / times
    below = (a["mean"] < b["mean"] / times).mean()
    measured = f"the other is {_span(b['mean'] / a['mean'])} as large"
    if len(a) > 1:
        measured += f"; lower at {below:.0%} of {len(a)} points"
        measured += f", intervals apart at {apart.mean():.0%}"
    else:
        measured += f", intervals {'apart' if apart.all() else 'overlap'}"
    holds = True if apart.mean() >= share else False if against.mean() > 1 - share else None
    return Finding(holds, measured)


def alike(ours: pd.DataFrame, other: pd.DataFrame, share: float = 0.75) -> Finding:
    """Whether two curves (from `intervals`) are alike at `share` of the points.

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
    maybe = (close | possible).mean() >= share
    leans = bool((close | overlap).mean() >= share)
    return Finding(None if maybe else False, measured, leans=leans)


def falls(curve: pd.DataFrame) -> Finding:
    """Whether a curve falls along its index: clearly lower at its end, and never clearly up.

    Clearly up is more than 1.25× the point before, intervals apart.
    """
    before, after = (
        curve.iloc[:-1].reset_index(drop=True),
        curve.iloc[1:].reset_index(drop=True),
    )
    up = ((after["mean"] > ALIKE * before["mean"]) & (after.low > before.high)).sum()
    first, last = curve.iloc[0], curve.iloc[-1]
    measured = f"{number(first['mean'])} → {number(last['mean'])}"
    measured += f", up at {up} of {len(after)} steps"
    down = True if last.high < first.low else None if last["mean"] < first["mean"] else False
    return Finding(False if up else down, measured)


def agrees(point: Printed, curve: pd.DataFrame, percent: bool = False) -> Finding:
    """Whether all means of a curve lie where the paper's number says, its reading error included.

    None where a mean does not, but its interval still reaches in.
    """
    inside = curve["mean"].map(point.covers)
    reach = (curve.low <= point.high) & (curve.high >= point.low)
    unit, factor = (" %", 100) if percent else ("", 1)
    low, high = (number(factor * x) for x in (curve["mean"].min(), curve["mean"].max()))
    measured = (low if low == high else f"{low} … {high}") + unit
    return Finding(True if inside.all() else None if reach.all() else False, measured)


def number(x: float) -> str:
    """Three digits, as sentences have them.

    >>> number(0.01234), number(-20749.8)
    ('0.0123', '−20,700')
    """
    if abs(x) >= 1000:
        x = round(x, 2 - int(np.floor(np.log10(abs(x)))))
        return f"{x:,.0f}".replace("-", "−")
    return f"{x:.3g}".replace("-", "−")


def _paired(ours: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    points = ours.index.intersection(other.index)
    if points.empty:
        raise ValueError("the two curves have no point in common")
    return ours.loc[points], other.loc[points]


def _span(ratio: pd.Series) -> str:
    low, high = f"{ratio.min():.3g}", f"{ratio.max():.3g}"
    return f"{low}×" if low == high else f"{low}–{high}×"
