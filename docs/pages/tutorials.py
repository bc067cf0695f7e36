"""The tours, as `workbench reproduce` has run them."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

import nbformat

from workbench import figures

TOURS = ("00_tour", "01_explore", "02_your_data", "03_answer_bank", "04_accounting")
WIDGET = "application/vnd.jupyter.widget-view+json"


EXPLORER = """\
<iframe src="../explorer.html" title="The explorer: five panels with sliders" loading="lazy"></iframe>
"""
NOTE = """\
The panels of this notebook, as one page whose sliders move without a kernel \
(<a href="../explorer.html">open it alone</a>):

"""


def write(folder: Path, results: Path, site: Path) -> None:
    """Write the executed notebook of each tour, without what only a kernel can show.

    The explorer, which is a page already, goes to the `site` itself.
    """
    for id in TOURS:
        run = figures.figure_folder(results, "quick", id)
        path = run / f"{id}.ipynb"
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; run: workbench reproduce {id}")
        notebook = nbformat.read(path, as_version=4)
        notebook.cells = [cell for cell in notebook.cells if not is_injected(cell)]
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if stays(output)]
        if (run / "explorer.html").exists():
            copyfile(run / "explorer.html", site / "explorer.html")
            notebook.cells.insert(1, nbformat.v4.new_markdown_cell(NOTE + EXPLORER))
        nbformat.write(notebook, folder / f"{id}.ipynb")


def is_injected(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is that in which a run says its profile and its folder of results."""
    return "injected-parameters" in cell.metadata.get("tags", ())


def stays(output: nbformat.NotebookNode) -> bool:
    """Whether an output can be shown on a page: no widget, and no path of this machine."""
    data = output.get("data", {})
    return WIDGET not in data and not data.get("text/plain", "").startswith("PosixPath(")
