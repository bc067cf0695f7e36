"""`workbench export`: figures, panels and mechanisms as a paper has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen

if TYPE_CHECKING:
    from workbench.figures import Figure
    from workbench.figures.exported import Export


def export(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…",
            help="Figures, panels or mechanisms: cormode2012_fig5, summaries, PrivTree. With one "
            "name its settings may follow, name=value.",
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A setting; repeatable."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="The folder.", show_default="experiments/results/exported"),
    ] = None,
    width: Annotated[
        str, typer.Option(metavar="WIDTH", help="column, page, slide, or centimetres.")
    ] = "page",
    font: Annotated[str, typer.Option(help="serif or sans.")] = "sans",
    formats: Annotated[
        str, typer.Option("--format", help="Some of pdf,svg,png,csv,tex,md.")
    ] = "pdf,svg,png,csv,tex,md",
    profile: Annotated[str, typer.Option(help="quick or paper, of figures.")] = "quick",
) -> None:
    """Write figures for a paper: pictures, rows, LaTeX and Markdown, each saying how it was made.

    Finished trials are taken from the results; noise is simulated. The same command gives the same
    bytes, and `workbench whereis FILE` says which command it was.
    """
    from workbench.option_grammar import refuse_renamed

    chosen = [name for name in names if "=" not in name]
    settings = [name for name in names if "=" in name]
    if not chosen:
        raise ValueError("name a figure, a panel or a mechanism")
    if settings and len(chosen) > 1:
        raise ValueError(
            f"{settings[0]!r} is not allowed beside several names: say -p {settings[0]}"
        )
    settings += parameters or []
    for setting in settings:
        refuse_renamed(setting.partition("=")[0])
    found = [_of_name(name) for name in chosen]

    from workbench.figures import results_folder
    from workbench.figures.exported import parse_formats, write
    from workbench.plots import on_page

    kinds = parse_formats(formats)
    with on_page(width, font):  # refuses what is not allowed before anything runs
        pass
    folder = to or results_folder() / "exported"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--to {folder} is a file: need a folder")
    for one in chain.from_iterable(_exports(x, settings, profile) for x in found):
        for path in write(one, folder, width=width, font=font, formats=kinds):
            screen.say(path)


def _of_name(name: str) -> str | type[Figure]:
    """What a name stands for: a panel, by its name, or a figure."""
    from workbench import widgets
    from workbench.figures.project import find_figure, find_notebooks
    from workbench.project import project_folder
    from workbench.wording import did_you_mean

    if widgets.is_panel(name):
        return name
    try:
        return find_figure(name)
    except ValueError:
        figures = find_notebooks(project_folder() / "notebooks")
        near = did_you_mean(name, [*widgets.panel_names(), *figures])
        if not near.startswith("; did you mean"):
            near = (
                f"; there are the panels {', '.join(widgets.ALL)}, one a mechanism, and figures"
            )
        raise ValueError(f"no figure, panel or mechanism {name!r}{near}") from None


def _exports(
    named: str | type[Figure], settings: Sequence[str], profile: str
) -> Iterator[Export]:
    """What is written of it, at every combination of settings that are lists of values."""
    from workbench import widgets
    from workbench.figures import results_folder
    from workbench.figures.exported import of_figure
    from workbench.reproduction.settings import grid

    if isinstance(named, str):
        yield widgets.from_settings(named, settings).to_export()
        return
    values = [named.at(profile, **given) for given in grid(named, settings)]
    for figure in dict.fromkeys(values):
        yield of_figure(figure, profile, results_folder() / "store")
