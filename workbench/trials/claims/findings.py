"""Findings: the main results of a paper. Each finding rests on several statements, which are checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.trials.claims import claim as _claim
from workbench.trials.claims.declared import read_declared, refuse_keys

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {  # an outcome of statements, as it is counted everywhere
    _claim.HOLDS: "holds",
    _claim.DEPENDS: "holds for some unprinted value",
    _claim.DIFFERS: "contradicted",
    _claim.UNDECIDED: "needs runs",
    _claim.UNTESTABLE: "needs data",
    _claim.BY_DEFINITION: "follows from the definition",
}
DECIDED = ("holds", "holds for some unprinted value", "contradicted")
DATA = (
    "the paper's data",
    "the paper's generator",
    "real data of the same kind",
    "a stand-in",
    "any data",
)
_WORST_FIRST = {  # the statement that is furthest from holding decides
    _claim.DIFFERS: "does not reproduce",
    _claim.UNTESTABLE: "needs data",
    _claim.UNDECIDED: "needs more runs",
    _claim.DEPENDS: "reproduces for some values",
    _claim.HOLDS: "reproduces",
}
_MOST_WORDS = 25
_KEYS = {"says", "statements", "data", "needs"}


@dataclass(frozen=True)
class PaperFinding:
    """One of the main results of a paper, with the checked statements from which the result follows.

    Parameters
    ----------
    says : str
        The result in one sentence of at most 25 words.
    statements : tuple of str
        Ids of the statements from which the result follows.
    data : str
        Kind of data on which the statements were checked, one of `DATA`.
    needs : str, optional
        Data that the result needs and that we do not have. The text also says whether anyone can get these
        data.
    """

    says: str
    statements: tuple[str, ...]
    data: str
    needs: str = ""

    def outcome(self, verdicts: pd.DataFrame) -> str:
        """Return the outcome of this finding as text, for example "reproduces". The outcome follows from
        `verdicts`, a data frame with one row per statement.
        """
        own = verdicts[verdicts.id.isin(self.statements)]
        worst = next((end for end in _WORST_FIRST if end in set(own.outcome)), None)
        judged = set(own.id[own.outcome.isin(_WORST_FIRST)])
        missing = judged != set(self.statements)
        if worst is None or (missing and worst != _claim.DIFFERS):
            return "not judged"
        words = _WORST_FIRST[worst]
        if worst == _claim.DEPENDS:
            return f"{words}: {_where_all_hold(own[own.outcome == worst].by_value)}"
        return f"{words}: {self.needs}" if worst == _claim.UNTESTABLE else words


def _where_all_hold(by_values: Iterable[str]) -> str:
    """Return the values of unprinted parameters at which all statements hold, as text. Each text in
    `by_values` lists the outcomes of one statement by value.

    >>> _where_all_hold(["θ: 20 ✗, 60 ✓, 70 ✓", "θ: 20 ✓, 60 ?, 70 ✓", "s: 5 ✓, 9 ✗"])
    'θ = 70 and s = 5'
    """
    good: dict[str, list[str]] = {}
    for by_value in by_values:
        name, _, values = by_value.partition(": ")
        each = re.split("(?<= [✓✗?]), ", values)  # a value may hold a comma
        own = [x.removesuffix(" ✓") for x in each if x.endswith(" ✓")]
        good[name] = [x for x in good.get(name, own) if x in own]
    return " and ".join(
        f"{name} = {', '.join(values)}" if values else f"{name} (none for all statements)"
        for name, values in good.items()
    )


def read_findings(file: str | Path) -> tuple[PaperFinding, ...]:
    """Read the findings (main results) of a paper from its file `statements.toml`.

    Parameters
    ----------
    file : path
        Path of the file. The file has a table `[[finding]]` for each finding, with the keys `says`,
        `statements` and `data`. If data are missing, the table also has the key `needs`.

    Returns
    -------
    tuple of PaperFinding
        Findings of the paper, in the order of the file.

    Raises
    ------
    ValueError
        If a key is unknown or missing, a sentence has more than 25 words, `data` has an invalid value, or a
        statement is not declared in the file.
    """
    declared = read_declared(Path(file))
    claims = (claim for own in declared.claims.values() for claim in own.values())
    known = {id for claim in claims for id in claim["statements"]}
    return tuple(_finding(table, known, Path(file)) for table in declared.findings)


def _finding(table: Mapping[str, Any], known: set[str], file: Path) -> PaperFinding:
    whose = f"{file}: the finding {str(table.get('says', ''))[:60]!r}"
    refuse_keys(whose, table, _KEYS, _KEYS - {"needs"})
    if len(table["says"].split()) > _MOST_WORDS:
        raise ValueError(f"{whose} has more than {_MOST_WORDS} words")
    if table["data"] not in DATA:
        raise ValueError(f"{whose} was judged on {table['data']!r}: need one of {DATA}")
    absent = [id for id in table["statements"] if id not in known]
    if absent or not table["statements"]:
        raise ValueError(
            f"{whose} rests on {absent or 'no statement'}: need statements of this file"
        )
    return PaperFinding(**{**table, "statements": tuple(table["statements"])})


def agreement(committed: str, ours: str) -> str:
    """Return a phrase that compares two outcomes of a statement: in a small run (`ours`), and in the full
    run, whose results are in the repository (`committed`). For example, the phrase is "this run agrees" if
    both outcomes are the same.
    """
    if ours == committed:
        return "this run agrees"
    if ours in (_claim.UNDECIDED, _claim.UNTESTABLE, _claim.NOT_JUDGED):
        return "this run is too short to tell"
    return f"this run: {ours}"


def count_outcomes(verdicts: pd.DataFrame) -> dict[str, int]:
    """Count the statements by outcome, for example "holds". `verdicts` has one row per statement. The result
    has an entry for every outcome in `COLUMNS`, even if no statement has this outcome.
    """
    return add_up(
        [_claim.BY_DEFINITION if v.mark else v.outcome] for v in verdicts.itertuples()
    )


def add_up(outcomes: Iterable[Iterable[str]]) -> dict[str, int]:
    """Count the statements of several figures by outcome, for example "holds". `outcomes` contains the
    outcomes of the statements of each figure. The function leaves out statements that were not judged.
    """
    counts = dict.fromkeys(COLUMNS.values(), 0)
    for outcome in (end for each in outcomes for end in each):
        if outcome in COLUMNS:
            counts[COLUMNS[outcome]] += 1
    return counts


def share_that_holds(counts: Mapping[str, int]) -> str:
    """Return a phrase with the number of statements that hold, among all decided statements. A statement is
    decided in three cases: it holds, it is contradicted, or it holds only for some values of a parameter that
    the paper does not print.

    >>> share_that_holds({"holds": 3, "holds for some unprinted value": 1, "contradicted": 0})
    '3 of 4 decided statements hold (75 %)'
    """
    decided = sum(counts[name] for name in DECIDED)
    if not decided:
        return "no statement is decided"
    return (
        f"{counts['holds']} of {decided} decided statements hold "
        f"({100 * counts['holds'] / decided:.0f} %)"
    )
