"""Claims of a paper, the statements that they consist of, results of checks, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler


# Decisions


def decide(holds: bool, fails: bool) -> bool | None:
    """Return True if a statement certainly holds, and False if it certainly fails. Return None if more
    seeds are needed.

    >>> decide(True, False), decide(False, True), decide(False, False)
    (True, False, None)
    """
    if holds:
        return True
    return False if fails else None


def decide_all(parts: Iterable[bool | None]) -> bool | None:
    """Combine the outcomes of parts. The whole fails if one part fails. Otherwise, it is undecided if one
    part is undecided.

    >>> decide_all([True, True]), decide_all([True, None, False]), decide_all([True, None])
    (True, False, None)
    """
    parts = list(parts)
    return decide(all(parts), False in parts)


# Finding

ALIKE = 1.25
ORDERS = 10.0
HOLDS = "holds"
DIFFERS = "differs"
DEPENDS = "depends on what is not printed"
UNDECIDED = "undecided"
UNTESTABLE = "not testable here"
NOT_JUDGED = "not judged"
OUTCOMES = (HOLDS, DIFFERS, DEPENDS, UNDECIDED, UNTESTABLE, NOT_JUDGED)
BY_DEFINITION = "follows from the definition"
MARKS = {True: "✓", False: "✗", None: "?"}
TICKS = dict(zip((*OUTCOMES, BY_DEFINITION), "✓✗◐?–·≡", strict=True))
_OF = {True: HOLDS, False: DIFFERS, None: UNDECIDED}


class MissingPoints(ValueError):
    """Error of a check whose rows lack the points that it needs."""


@dataclass(frozen=True)
class Strip:
    """Outcomes of a statement that depends on a parameter which the paper does not print. There is one
    outcome for each plausible value.

    Parameters
    ----------
    name : str
        Name of the parameter, for example "θ".
    holds : tuple of (str, bool or None)
        Values in order, as text, with the outcome at each.
    """

    name: str
    holds: tuple[tuple[str, bool | None], ...]

    @property
    def outcomes(self) -> set[bool | None]:
        """Return the outcomes that occur, over all values of the parameter."""
        return {holds for _, holds in self.holds}

    def __str__(self) -> str:
        """Return every value with a mark for its outcome.

        >>> print(Strip("θ", (("20", False), ("40", None), ("65", True))))
        θ: 20 ✗, 40 ?, 65 ✓
        """
        values = ", ".join(f"{value} {MARKS[holds]}" for value, holds in self.holds)
        return f"{self.name}: {values}"

    def in_words(self) -> str:
        """Return a sentence that lists the values for which the statement holds, and those for which it
        differs.

        >>> Strip("θ", (("20", False), ("40", False), ("65", True))).in_words()
        'holds for θ = 65; differs for θ = 20 … 40'
        """
        runs: dict[bool | None, list[list[str]]] = {True: [], False: [], None: []}
        before: Any = ""
        for value, holds in self.holds:
            if holds != before or before == "":
                runs[holds].append([])
            runs[holds][-1].append(value)
            before = holds
        parts = []
        for holds, stretches in runs.items():
            ends = [" … ".join(dict.fromkeys((own[0], own[-1]))) for own in stretches]
            if ends:
                parts.append(f"{_OF[holds]} for {self.name} = {', '.join(ends)}")
        return "; ".join(parts)


@dataclass(frozen=True)
class Finding:
    """Result of a check. It says whether the statement holds, and which values were measured.

    Parameters
    ----------
    holds : bool or None
        Outcome. None if these runs do not decide it at the given level.
    measured, why : str
        Measured values and explanation. Both are computed from the judged rows only.
    testable : bool
        False if the rows lack the data that the statement is about. `why` then explains this.
    runs : float
        Estimated number of repetitions that would decide the statement. Infinite or NaN if it is unknown.
    strip : Strip, optional
        Outcome for each value of a parameter that the paper does not print.
    printed : str
        Number from the paper, if it prints one.
    """

    holds: bool | None
    measured: str
    why: str = ""
    testable: bool = True
    runs: float = inf
    strip: Strip | None = None
    printed: str = ""

    @property
    def outcome(self) -> str:
        """Return the outcome of one check of the rows."""
        if not self.testable:
            return UNTESTABLE
        if self.strip is not None and self.strip.outcomes >= {True, False}:
            return DEPENDS
        return _OF[self.holds]


Check = Callable[["pd.DataFrame", float], Finding]


# Claim


@dataclass(frozen=True)
class Statement:
    """One part of a claim, in the words of the paper, with a check. The check looks at the rows of a
    figure.

    Parameters
    ----------
    id : str
        Unique id of the statement.
    says : str
        Words of the statement.
    check : callable or None
        Function of the figure's rows and a level of confidence that returns a `Finding`. It may be None
        only if `untestable` gives a reason.
    page : str
        Page of the paper.
    reading : str
        Interpretation of the sentence: the compared numbers, the points, and the criterion.
    by_definition : bool
        Whether the result follows from definitions alone.
    untestable : str
        Reason why the statement cannot be judged here.
    needs : tuple of str
        Classes of `datasets` whose real files are needed. With a synthetic stand-in, the statement is not
        testable.
    table : mapping
        Declaration of the check: the series and rows that it compares.
    """

    id: str
    says: str
    check: Check | None = None
    page: str = ""
    reading: str = ""
    by_definition: bool = False
    untestable: str = ""
    needs: tuple[str, ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.check is None and not self.untestable:
            raise ValueError(
                f"statement {self.id} has no check: need one, or `untestable` and the reason why"
            )
        if self.check is not None and self.untestable:
            raise ValueError(
                f"statement {self.id} has a check and `untestable`: need one of them"
            )

    def find(self, looks: Sequence[pd.DataFrame], level: float) -> Finding:
        """Check the rows several times, with more and more seeds. Return the finding of the first check
        that decides the statement, or of the last check.

        Parameters
        ----------
        looks : sequence of DataFrame
            Rows for increasing numbers of repetitions. Each look includes the rows of the looks before.
        level : float
            Level of confidence of each look.
        """
        finding = Finding(None, "", "fewer repetitions than the first look takes")
        check: Any = self.check  # where it has one: others are not testable
        for rows in looks:
            try:
                finding = check(rows, level)
            except MissingPoints as e:
                finding = Finding(
                    None, "", f"this run has no points for it: {e}", testable=False
                )
            if finding.outcome != UNDECIDED:
                break
        return finding


@dataclass(frozen=True)
class Claim:
    """Sentence of a paper about one of its figures. It is divided into statements, which can be checked on
    results.

    Parameters
    ----------
    id : str
        Id of the claim.
    page : str
        Page of the paper.
    sentence : str
        Sentence, quoted from the paper.
    statements : tuple of Statement
        Parts of the sentence. Each is judged by itself.
    """

    id: str
    page: str
    sentence: str
    statements: tuple[Statement, ...]

    @classmethod
    def of_one(cls, id: str, says: str, check: Check) -> Claim:
        """Make a claim that consists of one statement. This is for a figure that is not from a paper."""
        return cls(id, "", says, (Statement(id, says, check),))

    def judge(
        self,
        looks: Sequence[pd.DataFrame],
        level: float,
        has_file: Callable[[str], bool] = lambda name: True,
    ) -> list[Verdict]:
        """Return a verdict (whether it holds) on each statement of the claim.

        Parameters
        ----------
        looks, level
            The same as for `Statement.find`.
        has_file : callable
            Function that returns whether the rows come from the real file of the named dataset, and not
            from a synthetic stand-in.
        """
        verdicts = []
        for each in self.statements:
            if each.check is None:
                verdicts.append(self.verdict(each, UNTESTABLE, each.untestable))
                continue
            finding = each.find(looks, level)
            outcome, why = finding.outcome, ""
            missing = " and ".join(name for name in each.needs if not has_file(name))
            if missing:
                outcome = UNTESTABLE
                why = f"it needs the file of {missing}, and this number is from a stand-in"
            elif outcome == UNDECIDED and isfinite(finding.runs):
                why = f"about {_round(finding.runs):,} repetitions would decide"
            verdicts.append(self.verdict(each, outcome, why, finding))
        return verdicts

    def verdict(
        self, statement: Statement, outcome: str, why: str, finding: Finding | None = None
    ) -> Verdict:
        """Return whether one statement of the claim holds, as a `Verdict`."""
        finding = finding or Finding(None, "")
        by_value = finding.strip.in_words() if finding.strip is not None else ""
        decided = outcome in (HOLDS, DIFFERS)
        return Verdict(
            statement.id,
            statement.says,
            outcome,
            "; ".join(filter(None, [by_value, finding.measured])),
            "; ".join(filter(None, [finding.why, why])),
            claim=self.id,
            page=statement.page or self.page,
            mark=BY_DEFINITION if statement.by_definition and decided else "",
            strip=finding.strip,
            printed=finding.printed,
        )

    def not_judged(self, why: str) -> list[Verdict]:
        """Return a verdict of "not judged" for each statement. This is for a run whose parameters differ from
        those of the paper.
        """
        return [self.verdict(each, NOT_JUDGED, why) for each in self.statements]


def _round(runs: float) -> int:
    """Round up to two digits."""
    from math import ceil, floor, log10

    step = 10 ** max(0, floor(log10(max(runs, 1))) - 1)
    return ceil(runs / step) * step


@dataclass(frozen=True)
class Verdict:
    """Result of checking one statement of a paper.

    Parameters
    ----------
    id, says : str
        Id and words of the statement.
    outcome : str
        One of `claims.OUTCOMES`.
    measured : str
        Sentence with the measured values.
    why : str
        Explanation, if the outcome is not obvious.
    claim, page : str
        Id of the claim, and page of the paper.
    mark : str
        `claims.BY_DEFINITION` if the result follows from definitions alone.
    strip : Strip, optional
        Outcome for each value of a parameter that the paper does not print.
    printed : str
        Number from the paper, if it prints one.
    """

    id: str
    says: str
    outcome: str
    measured: str = ""
    why: str = ""
    claim: str = ""
    page: str = ""
    mark: str = ""
    strip: Strip | None = None
    printed: str = ""


@dataclass(frozen=True)
class Printed:
    """Number, or range of numbers, that a paper prints. It goes from `low` to `high`, which includes the
    error of reading it off a figure.

    `axis` is the axis to which the number belongs. `at` is a position on the other axis, a number or a
    name. `over` is a range of that axis instead. Without both, the number is about the whole axis. `value`
    is the number itself, if it is a single one.
    """

    says: str
    low: float
    high: float
    at: float | str | None = None
    value: float | None = None
    axis: str = "y"
    over: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        whose = f"printed value {self.says!r}"
        if not self.low <= self.high:
            raise ValueError(f"{whose}: need low <= high, not {self.low} and {self.high}")
        if self.value is not None and not self.covers(self.value):
            raise ValueError(
                f"{whose}: value {self.value} is outside {self.low} to {self.high}"
            )
        if self.axis not in ("x", "y"):
            raise ValueError(f"{whose}: need axis 'x' or 'y', not {self.axis!r}")
        if self.over is not None and not self.over[0] <= self.over[1]:
            ends = f"{self.over[0]} to {self.over[1]}"
            raise ValueError(f"{whose}: need over with its lower end first, not {ends}")

    @classmethod
    def approximately(
        cls, says: str, value: float, error: float = 0.0, **place: Any
    ) -> Printed:
        """Make a range for "about `value`". It extends by the factor 1.25 in both directions, and at least
        by `error`, the rounding error of the printed number.

        >>> Printed.approximately("around 5 %", 0.05, 0.005)
        Printed(says='around 5 %', low=0.04, high=0.0625, at=None, value=0.05, axis='y', over=None)
        """
        low = min(value / ALIKE, value - error)
        high = max(value * ALIKE, value + error)
        return cls(says, low, high, value=value, **place)

    def covers(self, measured: float) -> bool:
        """Return whether a measured number agrees with the printed one."""
        return bool(self.low <= measured <= self.high)


def left_open(verdict: Verdict, why: str) -> Verdict:
    """Return the verdict for a run that does not decide the statement, but shows a tendency."""
    if verdict.outcome not in (HOLDS, DIFFERS, DEPENDS) or verdict.mark:
        return verdict
    whys = "; ".join(filter(None, (why, verdict.why)))
    return replace(verdict, outcome=UNDECIDED, why=whys)


def to_frame(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return verdicts as a table with one row per statement."""
    import pandas as pd

    columns = "id claim says page outcome mark measured why by_value printed".split()
    entries = [vars(v) | {"by_value": str(v.strip or "")} for v in verdicts]
    return pd.DataFrame(entries, columns=columns)


def verdict_table(
    verdicts: Sequence[Verdict] | pd.DataFrame,
    caption: str = "What the paper says, judged",
    beside: Mapping[str, Sequence[str]] | None = None,
) -> Styler:
    """Return a table of verdicts for a notebook. It has one row per statement with the paper's words, the
    page, a mark, and the measured number.

    Parameters
    ----------
    verdicts : sequence of Verdict, or DataFrame
        Verdicts, or a table from `to_frame`.
    caption : str
        Caption of the table.
    beside : mapping, optional
        Additional columns, with one text per statement.
    """
    import pandas as pd

    table: Any = to_frame(verdicts) if isinstance(verdicts, list | tuple) else verdicts
    marks = table["mark"].map(lambda mark: f" ({mark})" if mark else "")
    measured = [
        ". ".join(filter(None, both)) for both in zip(table.measured, table.why, strict=True)
    ]
    pages = table.page.map(lambda page: f" ({page})" if page else "")
    columns = {
        "": table.id,
        "it says": table.says + pages,
        "verdict": table.outcome.map(TICKS) + " " + table.outcome + marks,
        **(beside or {}),
        "measured": measured,
    }
    rules = {
        "th, td": "text-align: left; vertical-align: top",
        "td:nth-child(1)": "white-space: nowrap",
        "td:nth-child(2)": "min-width: 14em",
        "caption": "text-align: left",
    }
    styles = [{"selector": where, "props": how} for where, how in rules.items()]
    return pd.DataFrame(columns).style.hide().set_caption(caption).set_table_styles(styles)
