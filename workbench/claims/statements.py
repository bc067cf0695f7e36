"""The statements of a paper, from the file in which whoever has not seen its rows has written them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from workbench.claims.claim import Claim, Statement
from workbench.claims.finding import Check

_CLAIM = {"id", "figure", "page", "sentence", "statement"}
_STATEMENT = {
    "id",
    "says",
    "page",
    "reading",
    "by_definition",
    "untestable",
    "needs",
    "sweeps",
}


def read(file: str | Path, figure: str, checks: Mapping[str, Check]) -> tuple[Claim, ...]:
    """The claims of one figure, from the paper's `statements.toml`, with the figure's checks.

    Parameters
    ----------
    file : path
        Holds `[[claim]]` with `id`, `figure`, `page`, `sentence` and its `[[claim.statement]]`, each with
        `id`, `says` and what else a `Statement` takes.
    figure : str
        The figure's id.
    checks : mapping
        The check of each statement that is judged, by its id.

    Returns
    -------
    tuple of Claim
        In the order of the file.

    Raises
    ------
    ValueError
        If two claims or statements have one id, a key is unknown or missing, a statement has no check, or
        a check no statement.
    """
    own = [claim for claim in _parse(Path(file)) if claim["figure"] == figure]
    known = {each["id"] for claim in own for each in claim["statement"]}
    for id in checks:
        if id not in known:
            raise ValueError(
                f"{figure}: a check for {id}, which is no statement of it in {file}"
            )
    try:
        return tuple(_claim(claim, checks) for claim in own)
    except ValueError as e:
        raise ValueError(f"{figure}: {e}") from None


@cache
def _parse(file: Path) -> list[dict[str, Any]]:
    """All claims of a file."""
    claims = tomllib.loads(file.read_text(encoding="utf-8")).get("claim", [])
    for claim in claims:
        _refuse(claim, _CLAIM, _CLAIM - {"page"}, file)
        for statement in claim["statement"]:
            _refuse(statement, _STATEMENT, {"id", "says"}, file)
    statements = [each["id"] for claim in claims for each in claim["statement"]]
    for kind, ids in {"claims": [c["id"] for c in claims], "statements": statements}.items():
        id, times = Counter(ids).most_common(1)[0] if ids else ("", 0)
        if times > 1:
            raise ValueError(f"{file}: {times} {kind} have the id {id}")
    return claims


def _refuse(table: dict[str, Any], known: set[str], needed: set[str], file: Path) -> None:
    """A ValueError for a key that is unknown, or missing."""
    id = table.get("id", "without an id")
    for key in table.keys() - known:
        raise ValueError(
            f"{file}: {id} has an unknown key {key!r}; known: {', '.join(sorted(known))}"
        )
    for key in sorted(needed - table.keys()):
        raise ValueError(f"{file}: {id} lacks {key!r}")


def _claim(claim: dict[str, Any], checks: Mapping[str, Check]) -> Claim:
    statements = []
    for each in claim["statement"]:
        rules = dict(each, needs=tuple(each.get("needs", ())))
        statements.append(Statement(**rules, check=checks.get(each["id"])))
    return Claim(claim["id"], claim.get("page", ""), claim["sentence"], tuple(statements))
