"""How `workbench lab` saves the project's notebooks: as they are committed, so running changes none.

Outputs stay on the screen, and `reproduce` keeps executed copies among the results; the notebooks hold
what somebody wrote.
"""

from __future__ import annotations

from typing import Any


def strip(model: dict[str, Any], **_: Any) -> None:
    """What Jupyter's server calls before it saves: leaves out what running has added.

    Parameters
    ----------
    model : dict
        Of the contents manager; notebooks of format 4 are changed in place, all else stays.
    """
    from workbench.figures.notebook import METADATA

    if model["type"] != "notebook" or model["content"]["nbformat"] != 4:
        return
    notebook = model["content"]
    notebook["metadata"] = METADATA
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
