"""An executed notebook as a page: nbconvert's cells, our frame and mathematics."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.report.markup import markdown

if TYPE_CHECKING:
    from nbconvert import HTMLExporter
    from nbformat import NotebookNode

# What a page without a kernel cannot show, or shows by running what came with the notebook.
_NAMELESS = re.compile(r"<[\w.]+ object at 0x\w+>$")
_DEAD = ("application/vnd.jupyter.widget-view+json", "application/javascript")


def notebook_body(path: Path) -> str:
    """The cells and outputs of an executed notebook as HTML that runs nothing."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            _leave_out_what_moves(output)
    body, _ = _exporter().from_notebook_node(notebook)
    return body


def _leave_out_what_moves(output: NotebookNode) -> None:
    data = output.get("data", {})
    moves = [kind for kind in _DEAD if data.pop(kind, None) is not None]
    if moves or _NAMELESS.match(data.get("text/plain", "")):
        data["text/plain"] = "What stands here moves in Jupyter."


@cache
def _exporter() -> HTMLExporter:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="basic")
    exporter.register_filter("markdown2html", partial(markdown, first_heading=1))
    return exporter
