"""The tours, as `workbench reproduce` has run them."""

from __future__ import annotations

from pathlib import Path

import nbformat

from workbench import figures

TOURS = ("00_tour", "01_explore", "02_your_data", "03_answer_bank", "04_accounting")
WIDGET = "application/vnd.jupyter.widget-view+json"


def write(folder: Path, results: Path) -> None:
    """Write the executed notebook of each tour, without what only a kernel can show."""
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
        nbformat.write(notebook, folder / f"{id}.ipynb")


def is_injected(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is that in which a run says its profile and its folder of results."""
    return "injected-parameters" in cell.metadata.get("tags", ())


def stays(output: nbformat.NotebookNode) -> bool:
    """Whether an output can be shown on a page: no widget, and no path of this machine."""
    data = output.get("data", {})
    return WIDGET not in data and not data.get("text/plain", "").startswith("PosixPath(")
