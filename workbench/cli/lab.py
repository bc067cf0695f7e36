"""`workbench lab`: JupyterLab in the notebooks' folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import serving

FIRST = "01_explore.ipynb"


def lab(
    browser: Annotated[bool, typer.Option(help="Open it in a browser.")] = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8888,
    notebooks: Annotated[
        Path | None, typer.Option(help="Where.", show_default="notebooks")
    ] = None,
) -> None:
    """Open JupyterLab on the notebooks, at the explorer; Ctrl-C stops it."""
    top, token = folder(notebooks), serving.token()
    page = f"/lab/tree/{FIRST}" if (top / FIRST).is_file() else "/lab"

    def words(port: int) -> list[str]:
        return [
            *("jupyterlab", "--ServerApp.ip=127.0.0.1", "--no-browser", "--log-level=WARN"),
            *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.root_dir={top}", *serving.root_allowed()),
        ]

    serving.serve(
        "JupyterLab",
        port,
        words,
        lambda port: f"http://127.0.0.1:{port}{page}?token={token}",
        top=top.parent,
        browser=browser,
        environment={"JUPYTER_TOKEN": token},
    )


def folder(notebooks: Path | None) -> Path:
    """Where the notebooks are; a FileNotFoundError if there is no such folder."""
    from workbench.reproduction import project_folder

    top = (notebooks or project_folder() / "notebooks").resolve()
    if not top.is_dir():
        raise FileNotFoundError(f"{top}: no such folder; name one with --notebooks")
    return top
