"""Claims (sentences of a paper), the statements into which a claim is divided, the results of their checks,
and verdicts.
"""

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
    """Combine two tests of a statement. Return True if the first test shows that the statement holds. Return
    False if the second test shows that the statement is false. If neither test decides, more runs are needed,
    and the function returns None.

    >>> decide(True, False), decide(False, True), decide(False, False)
    (True, False, None)
    """
    if holds:
        return True
    return False if fails else None


def decide_all(parts: Iterable[bool | None]) -> bool | None:
    """Combine the outcomes of the parts of a statement that holds only if all parts hold. If one part is
    False, the result is False. Otherwise, if one part is undecided (None), the result is None.

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
    """Error for a check that needs points which are missing from the rows (results) of a figure."""


@dataclass(frozen=True)
class Strip:
    """Outcome of one statement at each plausible value of a parameter whose value the paper does not print.

    Parameters
    ----------
    name : str
        Name of the parameter, for example "θ".
    holds : tuple of (str, bool or None)
        Each value of the parameter as text, with the outcome of the statement at this value: True if the
        statement holds, False if our results contradict the statement, and None if the statement is
        undecided.
    """

    name: str
    holds: tuple[tuple[str, bool | None], ...]

    @property
    def outcomes(self) -> set[bool | None]:
        """Set of the outcomes at all values of the parameter."""
        return {holds for _, holds in self.holds}

    def __str__(self) -> str:
        """Return all values of the parameter as text, each with a mark for its outcome.

        >>> print(Strip("θ", (("20", False), ("40", None), ("65", True))))
        θ: 20 ✗, 40 ?, 65 ✓
        """
        values = ", ".join(f"{value} {MARKS[holds]}" for value, holds in self.holds)
        return f"{self.name}: {values}"

    def in_words(self) -> str:
        """Return a text that lists the values of the parameter for which the statement holds, and the values
        for which our results contradict it.

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
    """Result of the check of a statement on the rows (results) of a figure: the outcome and the measured
    values.

    Parameters
    ----------
    holds : bool or None
        Whether the statement holds. None if the runs so far do not decide this at the given level of
        confidence.
    measured, why : str
        Measured values in words, and an explanation. Both texts follow from the checked rows alone.
    testable : bool
        Whether the rows contain the data that the statement is about. If they do not, `why` names the missing
        data.
    runs : float
        Estimated number of repetitions that the check needs to decide the statement. Infinite or NaN if this
        number is unknown.
    strip : Strip, optional
        Outcome at each value of a parameter, if the statement depends on a parameter that the paper does not
        print.
    printed : str
        Number in the paper with which the measured value is compared, if there is one.
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
        """Outcome in words, one of `claims.OUTCOMES`, for example "holds"."""
        if not self.testable:
            return UNTESTABLE
        if self.strip is not None and self.strip.outcomes >= {True, False}:
            return DEPENDS
        return _OF[self.holds]


Check = Callable[["pd.DataFrame", float], Finding]


# Claim


@dataclass(frozen=True)
class Statement:
    """One assertion of a paper about a figure, with a function that compares the assertion with the rows
    (results) of the figure.

    Parameters
    ----------
    id : str
        Id of the statement, for example "c-3a-2.1".
    says : str
        Assertion, in the words of the paper.
    check : callable or None
        Function that checks the assertion and returns a `Finding`. Its arguments are the figure's rows and a
        level of confidence. If `check` is None, `untestable` must give a reason.
    page : str
        Page of the paper.
    reading : str
        Our interpretation of the sentence: the compared numbers, the points of the figure, and the criterion.
    by_definition : bool
        Whether the assertion follows from definitions alone, so that results cannot contradict it.
    untestable : str
        Reason, if the assertion cannot be checked here.
    needs : tuple of str
        Names of datasets (classes in `datasets`) whose published files the check needs. With synthetic data
        instead of such a file, the assertion cannot be tested.
    table : mapping
        Check as it is written in `statements.toml`, with the series and rows that it compares.
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
        """Check the statement several times, each time on the rows from more repetitions. Return the result
        of the first check that decides the statement. If no check decides, return the result of the last
        check.

        Parameters
        ----------
        looks : sequence of DataFrame
            Rows (results) of the figure, for increasing numbers of repetitions. Each data frame contains the
            rows of the previous one.
        level : float
            Level of confidence of each check.
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
    """Sentence of a paper about one of its figures. The sentence is divided into statements, and each
    statement can be checked alone.

    Parameters
    ----------
    id : str
        Id of the claim, for example "c-3a-2".
    page : str
        Page of the paper.
    sentence : str
        Sentence, quoted from the paper.
    statements : tuple of Statement
        Assertions in the sentence. Each assertion gets its own verdict.
    """

    id: str
    page: str
    sentence: str
    statements: tuple[Statement, ...]

    @classmethod
    def of_one(cls, id: str, says: str, check: Check) -> Claim:
        """Make a claim with a single statement. Use this method for figures that are not from a paper."""
        return cls(id, "", says, (Statement(id, says, check),))

    def judge(
        self,
        looks: Sequence[pd.DataFrame],
        level: float,
        has_file: Callable[[str], bool] = lambda name: True,
    ) -> list[Verdict]:
        """Check all statements of the claim. Return one verdict per statement. The verdict says whether the
        statement holds.

        Parameters
        ----------
        looks : sequence of DataFrame
            Rows (results) of the figure, for increasing numbers of repetitions.
        level : float
            Level of confidence of each check, for example 0.95.
        has_file : callable
            Function that takes the name of a dataset. It returns True if the rows come from the real file of
            this dataset, and False if they come from synthetic data that replace the file.
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
        """Return the verdict on one statement of the claim. `finding` is the result of the check."""
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
        """Return the verdict "not judged" for each statement. Use this method if a run has other parameters
        than the paper.
        """
        return [self.verdict(each, NOT_JUDGED, why) for each in self.statements]


def _round(runs: float) -> int:
    """Round a number of runs up to two significant digits."""
    from math import ceil, floor, log10

    step = 10 ** max(0, floor(log10(max(runs, 1))) - 1)
    return ceil(runs / step) * step


@dataclass(frozen=True)
class Verdict:
    """Verdict on one statement of a paper. The verdict says whether the statement holds for our results.

    Parameters
    ----------
    id, says : str
        Id of the statement, and its text in the words of the paper.
    outcome : str
        One of `claims.OUTCOMES`, for example "holds".
    measured : str
        Sentence with the measured values.
    why : str
        Explanation of the outcome, if the measured values do not explain it.
    claim, page : str
        Id of the claim, and page of the paper.
    mark : str
        Mark next to the outcome: `claims.BY_DEFINITION` if the statement follows from definitions alone.
    strip : Strip, optional
        Outcome at each value of a parameter, if the statement depends on a parameter that the paper does not
        print.
    printed : str
        Number in the paper with which the measured value is compared, if there is one.
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
    """Number that a paper prints, with a tolerance. A measured number agrees with the printed number if it is
    between `low` and `high`. This range includes the error of reading a number off a figure. `says` describes
    the printed number in words.

    The other fields say where the number is in a figure. `axis` is the axis on which you read the number.
    `at` is the position on the other axis (a number or a name). If the number is about a range of positions,
    `over` is this range. If `at` and `over` are missing, the number is about the whole axis. `value` is the
    printed number, if the paper prints a single number and not a range.
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
        """Make a `Printed` for a number that the paper states as "about `value`". A result agrees if it is
        between `value`/1.25 and 1.25·`value`. A result also agrees if it differs from `value` by at most
        `error`, the rounding error of the printed number.

        >>> Printed.approximately("around 5 %", 0.05, 0.005)
        Printed(says='around 5 %', low=0.04, high=0.0625, at=None, value=0.05, axis='y', over=None)
        """
        low = min(value / ALIKE, value - error)
        high = max(value * ALIKE, value + error)
        return cls(says, low, high, value=value, **place)

    def covers(self, measured: float) -> bool:
        """Return whether a measured number is within the tolerance."""
        return bool(self.low <= measured <= self.high)


def left_open(verdict: Verdict, why: str) -> Verdict:
    """Change a verdict to "undecided", with the explanation `why`. Use this function for a run that shows
    only a tendency, for example a small run. The function does not change verdicts that were not decided
    before, or that follow from definitions.
    """
    if verdict.outcome not in (HOLDS, DIFFERS, DEPENDS) or verdict.mark:
        return verdict
    whys = "; ".join(filter(None, (why, verdict.why)))
    return replace(verdict, outcome=UNDECIDED, why=whys)


def to_frame(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return verdicts as a data frame, with one row per statement and one column per field of a verdict."""
    import pandas as pd

    columns = "id claim says page outcome mark measured why by_value printed".split()
    entries = [vars(v) | {"by_value": str(v.strip or "")} for v in verdicts]
    return pd.DataFrame(entries, columns=columns)


def verdict_table(
    verdicts: Sequence[Verdict] | pd.DataFrame,
    caption: str = "What the paper says, judged",
    beside: Mapping[str, Sequence[str]] | None = None,
) -> Styler:
    """Return verdicts as a formatted table for a notebook. Each row shows the words of a statement, the page
    of the paper, a mark for the outcome, and the measured number.

    Parameters
    ----------
    verdicts : sequence of Verdict, or DataFrame
        Verdicts, or a data frame of verdicts from `to_frame`.
    caption : str
        Caption of the table.
    beside : mapping, optional
        Additional columns by name, each with one text per statement.
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
