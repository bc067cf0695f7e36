"""The project's notebooks: where they are, what each needs, and all that decides what it shows."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.experiment.inputs import state

if TYPE_CHECKING:
    from nbformat import NotebookNode


def check_parameters(notebook: NotebookNode, parameters: dict[str, Any]) -> None:
    """Refuse a notebook that would ignore its parameters; papermill only warns, if at all."""
    tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", ())]
    if len(tagged) != 1:
        raise ValueError(f"need one cell tagged `parameters`, there are {len(tagged)}")
    statements = ast.parse(tagged[0].source).body
    assignments = [s for s in statements if isinstance(s, ast.Assign)]
    names = {getattr(target, "id", "") for line in assignments for target in line.targets}
    missing = [name for name in parameters if name not in names]
    if missing:
        raise ValueError(
            f"there is no parameter {', '.join(missing)}: the cell tagged `parameters` must "
            f"set {' and '.join(parameters)}"
        )


def runs_alone(path: Path) -> bool:
    """Whether a notebook must not run beside others."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return any("alone" in cell["metadata"].get("tags", ()) for cell in cells)
    except (ValueError, KeyError, TypeError):
        return False  # not a notebook; running it says so


def source_hashes(project: Path, store: Path) -> dict[str, str]:
    """Hashes of what notebooks reach: workbench, experiments, and the data in their folders.

    Data is named as it is looked for, so that it may move. `store` keeps hashes of large files.
    """
    package = Path(__file__).resolve().parents[1]
    hashes = {}
    for folder in (package, project / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if "results" not in relative.parts:
                name = f"{folder.name}/{relative.as_posix()}"
                hashes[name] = state(str(path))
    stated = os.environ.get("WORKBENCH_DATA")
    for data in (*([Path(stated).expanduser()] if stated else []), project / "data" / "raw"):
        for path in sorted(data.rglob("*")):
            if path.is_file():
                name = f"data: {path.relative_to(data).as_posix()}"
                hashes.setdefault(name, state(str(path.resolve()), store))
    return hashes
