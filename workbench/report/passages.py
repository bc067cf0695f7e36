"""What a notebook says about its figure, in its own words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from workbench.report.markup import markdown

_PASSAGES = {"reading": "reading the figure", "differ": "where we differ"}
_COMPARISON = ".compare_with_paper("  # in the cell whose table is shown
_ANNOUNCED = re.compile(r"\n\n[^\n]*:$")  # what the next cell shows
_STYLE = re.compile(r"<(style|script)\b.*?</\1>", re.S)


def read_passages(notebook: Path) -> tuple[str, dict[str, str]]:
    """The notebook's title, and its passages as HTML; nothing of a file that is no notebook.

    The passages are `about`, `reading`, `differ` and `comparison`, as far as it has them.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return "", {}
    texts = ["".join(c["source"]).strip() for c in cells if c["cell_type"] == "markdown"]
    title = ""
    passages = {}
    for text in texts:
        first, _, rest = text.partition("\n")
        plain = first.strip("#* _").lower()
        if first.startswith("# ") and not title:
            title = first[2:].strip()
            passages["about"] = rest
        for name, opening in _PASSAGES.items():
            if plain.startswith(opening):
                passages[name] = _ANNOUNCED.sub("", text)
    found = {name: markdown(text) for name, text in passages.items() if text.strip()}
    tables = [_table(c) for c in cells if _COMPARISON in "".join(c["source"])]
    if any(tables):
        found["comparison"] = "".join(tables)
    return title, found


def _table(cell: dict[str, Any]) -> str:
    """The table that a cell has shown, without a style of its own."""
    shown = [o["data"] for o in cell.get("outputs", ()) if "text/html" in o.get("data", {})]
    return "".join(
        _STYLE.sub("", "".join(data["text/html"])).replace(' border="1"', "") for data in shown
    )
