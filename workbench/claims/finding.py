"""What a check finds in rows: whether a statement holds, by what is not printed too, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 1.25
MUCH = 3.0
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
    """Rows lack points that a check is about: a figure need not draw what its paper does not print."""


@dataclass(frozen=True)
class Strip:
    """Whether a statement holds, by the value of what the paper does not print.

    Parameters
    ----------
    name : str
        Of what is swept, as "θ".
    holds : tuple of (str, bool or None)
        The values in their order, as they are written, with what was found at each.
    """

    name: str
    holds: tuple[tuple[str, bool | None], ...]

    @property
    def outcomes(self) -> set[bool | None]:
        """What was found at all values."""
        return {holds for _, holds in self.holds}

    def __str__(self) -> str:
        """Every value with its mark.

        >>> print(Strip("θ", (("20", False), ("40", None), ("65", True))))
        θ: 20 ✗, 40 ?, 65 ✓
        """
        values = ", ".join(f"{value} {MARKS[holds]}" for value, holds in self.holds)
        return f"{self.name}: {values}"

    def in_words(self) -> str:
        """For which values it holds, for which not.

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
    """What a check returns: whether the statement holds (None: undecided) and what was measured.

    Parameters
    ----------
    holds : bool or None
        None: these runs do not decide it at the level that was asked.
    measured, why : str
        Only what was computed from the rows that were judged.
    testable : bool
        False where the rows lack what it is about; `why` then names it.
    runs : float
        How many repetitions it would take to decide it, infinite or NaN where that cannot be said.
    strip : Strip, optional
        By the value of what the paper does not print.
    printed : str
        The paper's own number, where it prints one.
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
        """Of one look at the rows."""
        if not self.testable:
            return UNTESTABLE
        if self.strip is not None and self.strip.outcomes >= {True, False}:
            return DEPENDS
        return _OF[self.holds]


Check = Callable[["pd.DataFrame", float], Finding]
