"""`workbench lab`: JupyterLab in the notebooks' folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import serving

FIRST = "01_explore.ipynb"
Browser = Annotated[bool, typer.Option(help="Open it in a browser.")]
Notebooks = Annotated[Path | None, typer.Option(help="Where.", show_default="notebooks")]


def lab(
    browser: Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8888,
    notebooks: Notebooks = None,
) -> None:
    """Open JupyterLab on the notebooks, at the explorer; Ctrl-C stops it.

    Notebooks are saved without outputs, as they are committed; results hold executed copies.
    """
    top = notebooks_folder(notebooks)
    page = f"/lab/tree/{FIRST}" if (top / FIRST).is_file() else "/lab"

    def arguments(port: int) -> list[str]:
        return [
            "jupyterlab",
            "--ServerApp.ip=127.0.0.1",
            "--no-browser",
            "--log-level=WARN",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={top}",
            "--ContentsManager.pre_save_hook=workbench.cli.saving.strip",
            *serving.allow_root(),
        ]

    serving.serve("JupyterLab", port, arguments, page, top.parent, browser)


def notebooks_folder(notebooks: Path | None) -> Path:
    """Where the notebooks are; a FileNotFoundError if there is no such folder."""
    if notebooks is None:
        from workbench.figures import project_folder

        notebooks = project_folder() / "notebooks"
    notebooks = notebooks.resolve()
    if not notebooks.is_dir():
        raise FileNotFoundError(f"{notebooks}: no such folder; name one with --notebooks")
    return notebooks
