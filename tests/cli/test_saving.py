"""Notebooks that were run and saved in the lab are the files that are committed."""

from pathlib import Path

import nbformat
import pytest

from workbench.figures import find_notebooks
from workbench.figures.notebook import strip

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted([*find_notebooks(FOLDER).values(), *FOLDER.glob("*/index.ipynb")])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(FOLDER)))
def test_running_and_saving_changes_no_byte(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["language_info"] = {"name": "python", "version": "3.12.1"}
    notebook.metadata["widgets"] = {"state": {}}
    for k, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
        cell.execution_count = k
        cell.outputs = [nbformat.v4.new_output("stream", text="a line")]
        cell.metadata["execution"] = {"iopub.execute_input": "now"}
    strip({"type": "notebook", "content": notebook})
    assert nbformat.writes(notebook).rstrip() == path.read_text().rstrip()


def test_other_files_and_formats_stay():
    model = {"type": "file", "content": "text"}
    strip(model)
    assert model == {"type": "file", "content": "text"}
    old = {"type": "notebook", "content": {"nbformat": 3, "worksheets": []}}
    strip(old)
    assert "worksheets" in old["content"]
