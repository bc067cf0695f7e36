"""`workbench show`: what a release file promises and holds."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import release_text, screen

if TYPE_CHECKING:
    from workbench.mechanism import Release

_PICTURES = (".png", ".svg", ".pdf")


def show(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    top: Annotated[int, typer.Option(min=0, help="How many of its largest cells.")] = 10,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw it into this file: .png, .svg or .pdf."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the picture.")] = False,
    delta: Annotated[
        float | None,
        typer.Option(help="Say what it costs as an ε at this failure probability δ."),
    ] = None,
) -> None:
    """Show a release: its guarantee in words, what paid for it, its size and its largest cells.

    All of it comes from the file alone.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")
    if picture is not None:
        _refuse_picture(picture, file, force)

    from workbench.mechanism import Release

    release = Release.load(file)
    release_text.print_release(release, file, top, delta)
    if picture is not None:
        _draw(release, file, picture)
        screen.say(f"Picture    {picture}")


def _refuse_picture(path: Path, file: Path, force: bool) -> None:
    from workbench.provenance import sidecar
    from workbench.release_files import refuse_existing, refuse_input

    if path.suffix not in _PICTURES:
        raise ValueError(f"--picture {path}: need a name that ends in {' or '.join(_PICTURES)}")
    refuse_input(path, [file, sidecar(file)])
    refuse_existing(path, force)


def _draw(release: Release, file: Path, path: Path) -> None:
    """The picture, whole or not at all, which says what release it shows."""
    from workbench import plots, provenance
    from workbench.figures.records import release_record
    from workbench.figures.saved import versions, write_atomically

    record = {
        "command": shlex.join(["workbench", "show", file.name, "--picture", path.name]),
        "release": release_record(file),
        "noise": "simulated" if release.simulated else "system",
        "versions": versions("numpy", "matplotlib"),
        "commit": provenance.commit(),
    }
    kind = path.suffix.removeprefix(".")
    metadata = provenance.picture_metadata(kind, record)
    fig = plots.release_picture(release)

    def fill(draft: Path) -> None:
        fig.savefig(draft, format=kind, dpi=200, metadata=metadata)
        provenance.seal(draft)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        write_atomically(path, fill)
    plots.close(fig)
