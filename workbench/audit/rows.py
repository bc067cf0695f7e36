"""Audits in a CSV file, a row each, in the order in which they ended."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from workbench.audit.measure import Audit

_SPENT = 0.95  # of ε: what spends less is shown


def read_rows(path: Path) -> list[Audit]:
    """What `add_row` wrote.

    Parameters
    ----------
    path : Path
        The file; none is as if it were empty. A last row that a kill cut off is removed from it.

    Returns
    -------
    list of Audit

    Raises
    ------
    ValueError
        If it holds something else.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    try:
        rows = csv.DictReader(io.StringIO(whole))
        audits = [
            Audit(
                **{f.name: _read(f.type, row[f.name]) for f in fields(Audit) if f.name in row}
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} holds something else than rows of audits: name a new file"
        ) from None
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return audits


def add_row(audit: Audit, path: Path) -> None:
    """One more row, at the end of the file, which begins with names of columns."""
    row = asdict(audit) | {"reached": audit.reached, "leaks": audit.leaks}
    is_new = not path.exists() or not path.stat().st_size
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def budget_unused(audits: Iterable[Audit]) -> dict[str, float]:
    """The part of ε that no pair spends, of mechanisms whose losses were computed; sharp ones left out.

    Parameters
    ----------
    audits : iterable of Audit
        Of several pairs of each mechanism, of which the largest loss counts.

    Returns
    -------
    dict
        By the mechanism's text, from most to least.
    """
    largest: dict[str, float] = {}
    for audit in audits:
        part = audit.computed_part
        if part is not None:
            largest[audit.name] = max(part, largest.get(audit.name, 0.0))
    unused = {name: 1 - part for name, part in largest.items() if part < _SPENT}
    return dict(sorted(unused.items(), key=lambda item: -item[1]))


def _read(kind: Any, text: str) -> Any:
    """One field of an audit, from the text of its row."""
    if kind == "str":
        return text
    if kind == "bool":
        return text == "True"
    if not text and kind.endswith("None"):
        return None
    return int(text) if kind == "int" else float(text)
