"""An executed notebook as a page: nbconvert's cells, our frame and mathematics."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.libraries import load_nbformat
from workbench.report.markup import markdown

if TYPE_CHECKING:
    from nbconvert.exporters import TemplateExporter
    from nbformat import NotebookNode

# What a page without a kernel cannot show, or shows by running what came with the notebook.
_NAMELESS = re.compile(r"<[\w.]+ object at 0x\w+>$")
_BAR = re.compile(r"\d%\|.*\|")
_NO_WORDS = re.compile(r"<img(?![^>]* alt=)")
_PICTURE = (
    "What the cell above draws; its statements and numbers stand on the page of the figure"
)
_DEAD = ("application/vnd.jupyter.widget-view+json", "application/javascript")


def notebook_body(path: Path) -> str:
    """The cells and outputs of an executed notebook as HTML that runs nothing."""
    notebook = load_nbformat().read(path, as_version=4)
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        outputs[:] = [output for output in outputs if not _is_progress(output)]
        for output in outputs:
            _leave_out_what_moves(output)
    body, _ = _exporter().from_notebook_node(notebook)
    return _NO_WORDS.sub(f'<img alt="{_PICTURE}"', body)


def _is_progress(output: NotebookNode) -> bool:
    """Whether it is a bar that told how far a run was."""
    data = output.get("data", {})
    return _DEAD[0] in data and bool(_BAR.search("".join(data.get("text/plain", ""))))


def _leave_out_what_moves(output: NotebookNode) -> None:
    data = output.get("data", {})
    moves = [kind for kind in _DEAD if data.pop(kind, None) is not None]
    if moves or _NAMELESS.match(data.get("text/plain", "")):
        data["text/plain"] = "What stands here moves in Jupyter."


@cache
def _exporter() -> TemplateExporter:
    from nbconvert import HTMLExporter
    from nbconvert.exporters import TemplateExporter
    from nbconvert.filters import Highlight2HTML, clean_html

    class Exporter(HTMLExporter):
        """Without reading the page that it has written once more."""

        def from_notebook_node(
            self, nb: NotebookNode, resources: Any = None, **kw: Any
        ) -> tuple[str, dict[str, Any]]:
            return TemplateExporter.from_notebook_node(self, nb, resources, **kw)

    exporter = Exporter(template_name="basic", default_preprocessors=[])
    highlighted = Highlight2HTML(pygments_lexer="ipython3", parent=exporter)
    exporter.register_filter("markdown2html", partial(markdown, first_heading=1))
    exporter.register_filter("highlight_code", highlighted)
    exporter.register_filter("clean_html", cache(clean_html))  # notebooks have cells in common
    return exporter
