"""The project's notebooks: where they are, what each needs, and all that decides what it shows."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode


INDEX = "index"  # the notebook that opens a paper's folder


def project_folder() -> Path:
    """The project: the folder that holds the package and notebooks, else the current one."""
    project = Path(__file__).resolve().parents[2]
    return project if (project / "notebooks").is_dir() else Path.cwd()


def find_notebooks(folder: Path) -> dict[str, Path]:
    """The figures' notebooks by id: `fig5.ipynb` in a folder `cormode2012` is cormode2012_fig5."""
    paths = [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob("[!.]*/*.ipynb"))]
    return {figure_id(path, folder): path for path in paths if path.stem != INDEX}


def figure_id(path: Path, folder: Path) -> str:
    """The id of the figure whose file stands at `path`, in `folder` or in a paper's folder in it.

    >>> figure_id(Path("notebooks/cormode2012/fig5.ipynb"), Path("notebooks"))
    'cormode2012_fig5'
    """
    return "_".join(path.relative_to(folder).with_suffix("").parts)


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


def source_hashes(project: Path) -> dict[str, str]:
    """What notebooks reach: hashes of workbench and experiments, and sizes of the data at hand."""
    package = Path(__file__).resolve().parents[1]
    hashes = {}
    for folder in (package, project / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if "results" not in relative.parts:
                name = f"{folder.name}/{relative.as_posix()}"
                hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    for folder in (os.environ.get("WORKBENCH_DATA"), project / "data" / "raw"):
        for path in sorted(Path(folder).rglob("*")) if folder else ():
            if path.is_file():
                hashes[str(path)] = str(path.stat().st_size)
    return hashes
