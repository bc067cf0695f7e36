"""Statements as the report shows them: one line each, with what opens and what it points at."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.trials import claims

_NUMBER = 54  # characters of a number with its interval
_REASON = 8  # words
_MARKS = {"✓": "holds", "✗": "differs", "?": "undecided"}


@dataclass(frozen=True)
class Line:
    """A statement and its outcome: the committed one of the paper profile, or else that of this run.

    Parameters
    ----------
    id, says : str
        Its id and its words.
    page, sentence, reading : str
        Where the paper says it, the paper's own sentence, and how it is read.
    needs : tuple of str
        The datasets that decide it.
    here : row of verdicts, optional
        What this run found.
    committed : row of verdicts, optional
        What the paper profile found.
    points_at : mapping
        The declared check, which names series and rows.
    """

    id: str
    says: str
    page: str = ""
    sentence: str = ""
    reading: str = ""
    needs: tuple[str, ...] = ()
    here: Any = None
    committed: Any = None
    points_at: Mapping[str, Any] | None = None

    @property
    def verdict(self) -> Any:
        """The verdict that counts."""
        return self.committed or self.here

    @property
    def counted_as(self) -> str:
        """The column that it is counted in."""
        told = self.verdict.mark or self.verdict.outcome
        return claims.COLUMNS.get(told, told)

    @property
    def agreement(self) -> str:
        """Whether a run that does not judge agrees with the committed outcome."""
        if not (self.committed and self.here) or self.committed.mark:
            return ""
        return claims.agreement(self.committed.outcome, self.here.outcome)

    @property
    def printed(self) -> str:
        """The paper's own number."""
        return self.verdict.printed or (self.here.printed if self.here else "")

    @property
    def values(self) -> list[tuple[str, str]]:
        """The values of what the paper does not print, each with the outcome's class of style."""
        _, _, values = self.verdict.by_value.partition(": ")
        each = re.findall(r"(.+?) ([✓✗?])(?:, |$)", values)
        return [(value, _MARKS[mark]) for value, mark in each]

    @property
    def swept(self) -> str:
        """What the paper does not print."""
        return self.verdict.by_value.partition(": ")[0]

    @property
    def number(self) -> str:
        """One number with its interval, or at how many values of an unprinted parameter it holds."""
        if self.values:
            good = sum(kind == "holds" for _, kind in self.values)
            return f"{good} of {len(self.values)} values"
        first = self.verdict.measured.split("; ")[0]
        part = re.match(r"(.*): (?:yes|no|undecided) \((.*)", first)
        if part:  # of several parts, the first
            first = (
                part[2].removesuffix(")")
                if part[2].count("(") < part[2].count(")")
                else part[2]
            )
        return first if len(first) <= _NUMBER else ""

    @property
    def reason(self) -> str:
        """Why it does not simply hold, in at most eight words."""
        verdict = self.verdict
        if verdict.mark:
            return verdict.mark
        if self.needs and verdict.outcome == claims.UNTESTABLE:
            return f"needs the file of {self.needs[0]}"
        if verdict.outcome == claims.DEPENDS:
            return _short(f"depends on {self.swept}", "depends on what is not printed")
        if verdict.outcome == claims.UNDECIDED:
            return _short(verdict.why.split("; ")[-1], "more repetitions would decide")
        if verdict.outcome == claims.UNTESTABLE:
            return _short(verdict.why, "needs the paper's data")
        return ""

    def series(self, names: Collection[str]) -> list[str]:
        """The series of a picture that it is about."""
        wanted = [_pattern(text) for text in _texts(self.points_at or {})]
        return [name for name in names if any(re.fullmatch(p, name) for p in wanted)]

    def is_about(self, where: Mapping[str, str]) -> bool:
        """Whether a panel shows rows that it is about."""
        rows = (self.points_at or {}).get("rows", {})
        return all(key not in rows or _holds(x, rows[key]) for key, x in where.items())


def _holds(value: str, wanted: Any) -> bool:
    """Whether a value is among those that a check selects; a range or what is swept may be any."""
    if isinstance(wanted, list):
        return any(_holds(value, each) for each in wanted)
    return isinstance(wanted, Mapping) or "{" in str(wanted) or str(wanted) == value


def _short(text: str, otherwise: str) -> str:
    return text if text and len(text.split()) <= _REASON else otherwise


def _texts(x: Any) -> Iterator[str]:
    """Every text in a check that may name a series."""
    if isinstance(x, str):
        yield x
    elif isinstance(x, Mapping):
        for key, each in x.items():
            if key not in ("kind", "function", "share", "by", "rows", "over", "prepare"):
                yield from _texts(each)
    elif isinstance(x, Sequence):
        for each in x:
            yield from _texts(each)


def _pattern(text: str) -> str:
    """A series' name with anything in place of what is swept.

    >>> bool(re.fullmatch(_pattern("filter, θ = {θ}"), "filter, θ = 40"))
    True
    """
    return ".+".join(map(re.escape, re.split(r"\{[^{}]*\}", text)))
