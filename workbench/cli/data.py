"""`workbench data`: published files, where they are and whether they are the right ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen

if TYPE_CHECKING:
    from workbench.datasets.readers.published import FileStatus

_SHORT = 60  # characters
Name = Annotated[str, typer.Argument(help="A dataset, as `workbench data list` names it.")]

app = typer.Typer(no_args_is_help=True, help="Published datasets: list, fetch, path, verify.")


@app.command("list")
def list_() -> None:
    """Every published file, and where it is; datasets of others; and what data each figure uses now."""
    from workbench import plugins
    from workbench.datasets import published
    from workbench.figures.data import data_in_use

    rows = published.status()
    _table("Published files", rows)
    missing = list(dict.fromkeys(row.dataset for row in rows if row.state == "missing"))
    if missing:
        screen.say(f"Fetch what is missing: workbench data fetch {missing[0]}")
    others = plugins.other_datasets()
    if others:
        screen.table("Datasets of other packages", ["dataset", "from"], others)
    first_figure: dict[str, str] = {}  # by what is to be done, which is said once
    cells = []
    for use in data_in_use():
        first = first_figure.setdefault(use.remedy, use.figure)
        is_new = first == use.figure or len(use.remedy) < _SHORT
        cells.append((*use[:3], use.remedy if is_new else f"as for {first}"))
    if cells:
        columns = ["figure", "uses now", "which is", "to make it the paper's"]
        screen.table("Data of figures", columns, cells)


@app.command()
def fetch(
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch again what is already there.")
    ] = False,
) -> None:
    """Bring a dataset's files from their publisher into data/raw/."""
    from workbench.datasets import published

    for path in published.fetch(name, force=force):
        screen.say(path)


@app.command()
def path(name: Name) -> None:
    """Where a dataset's files are, one a line."""
    from workbench.datasets import published

    for file in published.path(name):
        screen.say(file)


@app.command()
def verify(
    name: Annotated[
        str | None, typer.Argument(help="One dataset; all, if none is named.")
    ] = None,
) -> None:
    """Read files and compare them with the recorded sha256; 1 if one differs."""
    from workbench.datasets import published

    rows = published.verify(name)
    _table("Checked", rows)
    different = [row for row in rows if row.state == "different"]
    for row in different:
        screen.complain(f"{row.path} is not the published file; fetch it again with --force")
    if different:
        raise typer.Exit(1)


def _table(title: str, rows: list[FileStatus]) -> None:
    cells = []
    for row in rows:
        size = "" if row.size is None else screen.size(row.size)
        cells.append((row.dataset, row.file, row.state, size, row.path or ""))
    screen.table(title, ["dataset", "file", "state", "size", "path"], cells, right=["size"])
