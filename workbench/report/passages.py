"""What a notebook says about its figure, in its own words."""

from __future__ import annotations

import json
from pathlib import Path

from workbench.report.markup import markdown

_PASSAGES = {"reading": "reading the figure", "differ": "where we differ"}


def read_passages(notebook: Path) -> tuple[str, dict[str, str]]:
    """The notebook's title, and its passages as HTML; nothing of a file that is no notebook."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError):
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
                passages[name] = text
    return title, {name: markdown(text) for name, text in passages.items() if text.strip()}
