"""The figures of a project, by id: their notebooks, their specs and their results."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import plugins
from workbench.project import project_folder
from workbench.wording import did_you_mean

if TYPE_CHECKING:
    from workbench.figures.figure import Figure

INDEX = "index"  # the notebook that opens a paper's folder


def results_folder() -> Path:
    """Where the project's results are."""
    return project_folder() / "experiments" / "results"


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


def find_figure(id: str) -> type[Figure]:
    """The class of a figure, from its file.

    Parameters
    ----------
    id : str
        The figure's: its paper and its name, as in cormode2012_fig5; a number that orders notebooks,
        as in 00_tour, is no part of the file's name. Where it is none of the project's it may be that
        of a figure of another package.

    Raises
    ------
    ValueError
        If the project has no such figure; the nearest ids are named.
    """
    folder = project_folder() / "experiments"
    files = {figure_id(path, folder): path for path in _spec_files(folder)}
    name = re.sub(r"^\d+_", "", id)
    if name not in files:
        other = plugins.find("figures", id)
        if other is not None:
            return other
        known = find_notebooks(project_folder() / "notebooks")
        raise ValueError(f"no figure {id!r}{did_you_mean(id, known)}")
    return load_figure(files[name], folder.parent)


def load_figure(path: Path, project: Path) -> type[Figure]:
    """The one `Figure` that the file of a spec defines."""
    from workbench.figures.figure import Figure

    if str(project) not in sys.path:
        sys.path.insert(0, str(project))  # specs import each other
    name = ".".join(path.relative_to(project).with_suffix("").parts)
    module = importlib.import_module(name)
    classes = [
        x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Figure)
    ]
    own = [x for x in classes if x.__module__ == name]
    if len(own) != 1:
        raise ValueError(f"{path}: need one Figure, there are {len(own)}")
    return own[0]


def _spec_files(folder: Path) -> list[Path]:
    return [*sorted(folder.glob("[!_.]*.py")), *sorted(folder.glob("[!_.]*20??/[!_]*.py"))]
