"""`workbench init`: a project of one's own, with every notebook and spec."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen

_SKIPPED = shutil.ignore_patterns("results", "__pycache__", ".ipynb_checkpoints")
_IGNORED = "data/raw/\nexperiments/results/\n.ipynb_checkpoints/\n__pycache__/\n"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where; it must not be there, or be empty.")
    ],
) -> None:
    """Lay out a project: notebooks, specs and a folder for data, in which `reproduce`, `lab`, … work."""
    from workbench.project import template_folder

    target = folder.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is there already and is not an empty folder")
    source = template_folder()
    for name in ("notebooks", "experiments"):
        shutil.copytree(source / name, target / name, ignore=_SKIPPED)
    (target / "data" / "raw").mkdir(parents=True)
    shutil.copyfile(source / "data" / "README.md", target / "data" / "README.md")
    (target / ".gitignore").write_text(_IGNORED)
    screen.say(f"{target}: go there, and try\n  workbench reproduce\n  workbench lab")
