"""The project: the folder that holds notebooks, specs, data and results."""

from __future__ import annotations

from pathlib import Path


def project_folder() -> Path:
    """The current folder or the nearest above it that holds notebooks and specs.

    Where there is none: the checkout that this package stands in, or else the current folder.
    """
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, checkout):
        if (folder / "notebooks").is_dir() and (folder / "experiments").is_dir():
            return folder
    return here


def template_folder() -> Path:
    """What a new project is copied from: a part of the installed package, or the checkout."""
    installed = Path(__file__).resolve().parent / "_project"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[1]
