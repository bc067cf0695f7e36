"""The table of the page on audits, from the rows of one recorded run of `workbench audit`."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

from docs.pages.text import cell

ROWS = Path(__file__).parents[1] / "audit.csv"
Row = dict[str, str]


def write(folder: Path) -> None:
    """Write `table.inc`."""
    (folder / "table.inc").write_text(table(rows()), "utf-8")


def rows() -> list[Row]:
    """What `workbench audit --out` wrote."""
    with open(ROWS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(rows: list[Row]) -> str:
    """A line for each mechanism and pair; a column for each ε."""
    epsilons = sorted({float(row["epsilon"]) for row in rows})
    lines: dict[tuple[str, str, str], dict[float, Row]] = defaultdict(dict)
    for row in rows:
        name = re.match(r"\w+", row["name"])
        kind = "ρ" if "ZCDP(" in row["name"] else "ε"
        pair = re.sub(r"\d+", "n", row["pair"]) if "count at" in row["pair"] else row["pair"]
        lines[name.group() if name else row["name"], kind, pair][float(row["epsilon"])] = row
    head = ["mechanism", "price", "neighbours", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (name, kind, pair), by_epsilon in sorted(lines.items()):
        shown = [measured(by_epsilon[epsilon]) for epsilon in epsilons]
        fields = by_epsilon[epsilons[0]]["name"]
        mechanism = f"[`{name}`](/mechanisms/{name}.md)<br>`{other_fields(fields)}`"
        out.append("| " + " | ".join([mechanism, kind, cell(pair), *shown]) + " |")
    return "\n".join(out) + "\n"


def other_fields(text: str) -> str:
    """The fields of a mechanism's text but for its budget, as they are at the smallest ε."""
    return (
        re.sub(r"budget=(DP|ZCDP)\([^)]*\)(, )?", "", text).partition("(")[2][:-1] or "example"
    )


def measured(row: Row) -> str:
    """What was computed, in parts of ε or ρ, and what runs showed, in parts of ε."""
    epsilon = float(row["epsilon"])
    parts = []
    if row["rho"] and row["exact"]:
        parts.append(f"**{part_of(float(row['exact_rho']) / float(row['rho']))}**")
    elif row["exact"]:
        parts.append(f"**{part_of(float(row['exact']) / epsilon)}**")
    if row["exact"]:
        if float(row["delta"]):
            parts.append(f"{part_of(float(row['spent_delta']) / float(row['delta']))} of δ")
        if row["all_noise"] == "False":
            parts.append("†")
    if row["bound"] and float(row["bound"]):
        parts.append(f"≥ {float(row['bound']) / epsilon:.0%} ({int(row['runs']):,} runs)")
    return " ".join(parts) or cell(row["note"])


def part_of(x: float) -> str:
    """A part in per cent, whole where it is all.

    >>> part_of(0.9999999), part_of(0.8926)
    ('100 %', '89.3 %')
    """
    return "100 %" if abs(x - 1) < 1e-6 else f"{x:.1%}".replace("%", " %")
