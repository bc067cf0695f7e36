"""`workbench show`: what a release file promises and holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import release_text


def show(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    top: Annotated[int, typer.Option(min=0, help="How many of its largest cells.")] = 10,
) -> None:
    """Show a release: its guarantee in words, what paid for it, its size and its largest cells.

    All of it comes from the file alone.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")

    from workbench.mechanism import Release

    release_text.print_release(Release.load(file), file, top)
