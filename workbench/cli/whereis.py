"""`workbench whereis` and `workbench export`: where files come from, and figures for a paper."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from workbench import mechanisms
from workbench.cli import screen
from workbench.compiled import project_folder
from workbench.mechanisms.options import refuse_renamed

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures import Export, Figure


# Export


def export(
    names: list[str],
    *,
    parameters: list[str] | None = None,
    to: Path | None = None,
    width: str = "page",
    panels: str = "",
    font: str = "sans",
    formats: str = "pdf,svg,png,csv,tex,md",
    profile: str = "quick",
) -> None:
    """Export figures for your paper: pictures, rows, LaTeX and Markdown.

    Finished trials are taken from the results; noise is simulated. The same command gives the same
    bytes, and `workbench whereis FILE` says which command it was.

    Parameters
    ----------
    names : NAME…
        Figures or mechanisms, for example cormode2012_fig5 or PrivTree. With one name its
        settings may follow, name=value.
    parameters : --parameter -p NAME=VALUE
        Parameter to set. Can be repeated.
    to
        Folder to write to. By default experiments/results/exported.
    width : WIDTH
        Width of pictures: column, page, slide, or centimetres.
    panels : LETTERS
        Panels to draw, for example ac.
    font
        Font: serif or sans.
    formats : --format
        Formats to write, some of pdf,svg,png,csv,tex,md.
    profile
        Size of the run: quick or paper.
    """
    chosen = [name for name in names if "=" not in name]
    settings = [name for name in names if "=" in name]
    if not chosen:
        raise ValueError("name a figure or a mechanism")
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
    from workbench.figures.plots import on_page

    kinds = parse_formats(formats)
    with on_page(width, font):  # refuses what is not allowed before anything runs
        pass
    folder = to or results_folder() / "exported"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--to {folder} is a file: need a folder")
    if panels and any(isinstance(x, str) for x in found):
        raise ValueError("--panels is for figures: the panel of a mechanism is drawn whole")
    for x in found:
        for one in _exports(x, settings, profile, panels):
            for path in write(one, folder, width=width, font=font, formats=kinds):
                screen.say(path)


def _of_name(name: str) -> str | type[Figure]:
    """Return what a name stands for: a mechanism, by its name, or a figure."""
    from workbench import widgets
    from workbench.figures import find_figure, find_notebooks
    from workbench.value import did_you_mean

    if widgets.is_panel(name):
        return name
    try:
        return find_figure(name)
    except ValueError:
        figures = find_notebooks(project_folder() / "notebooks")
        near = did_you_mean(name, [*mechanisms.__all__, *figures])
        if not near.startswith("; did you mean"):
            near = "; an example is cormode2012_fig5 or ThresholdSampling"
        raise ValueError(f"no figure or mechanism {name!r}{near}") from None


def _exports(
    named: str | type[Figure], settings: Sequence[str], profile: str, panels: str
) -> Iterator[Export]:
    """Yield what is written of it, at every combination of settings that are lists of values."""
    from workbench import widgets
    from workbench.figures import results_folder
    from workbench.figures.exported import of_figure
    from workbench.figures.status import grid

    if isinstance(named, str):
        yield widgets.from_settings(named, settings).to_export()
        return
    values = [named.at(profile, **given) for given in grid(named, settings)]
    for figure in dict.fromkeys(values):
        yield of_figure(figure, profile, results_folder() / "store", panels)


# Whereis

_SAID = "figure title profile parameters release datasets files seeds noise commit versions"


def whereis(file: Path, *, check: bool = False) -> None:
    """Show how a file was made, and the command that makes it again.

    The exit code of --check is 1 if rows differ. A release is never run again.

    Parameters
    ----------
    file
        Picture, table, release, or folder of a saved figure.
    check
        Run a figure again and compare its rows.
    """
    from workbench.estimates import files as provenance

    record = provenance.read(file)
    rows = [(name.capitalize(), _text(record.get(name))) for name in _SAID.split()]
    if "mechanism" in record:
        from workbench.estimates.release import Release

        rows = [*Release.load(file).describe(), *rows]
    screen.rows(rows)
    words = _words(record)
    if words:
        screen.say(f"\n{shlex.join(words)}")
    if check:
        _check(file, record, words)


def _text(x: Any) -> str:
    """Return what a record says of one thing."""
    if isinstance(x, Mapping):
        return ", ".join(f"{name} {y}" for name, y in x.items())
    return "; ".join(map(str, x)) if isinstance(x, list) else str(x or "")


def _words(record: Mapping[str, Any]) -> list[str]:
    """Return the words of the command that makes a figure; none of a release's or of what others wrote."""
    try:
        words = shlex.split(str(record.get("command", "")))
    except ValueError:
        return []
    return words if words[:2] in (["workbench", "export"], ["workbench", "reproduce"]) else []


def _check(file: Path, record: Mapping[str, Any], words: list[str]) -> None:
    from workbench.estimates import files as provenance
    from workbench.figures.saved import row_digest

    if not words or "rows" not in record or record.get("noise") == "system":
        raise ValueError(
            f"{file} is not of a figure with simulated noise that a command made: only these run again"
        )
    if row_digest(_rows_again(record, words)) == record["rows"]:
        screen.say("It was run again: all rows agree, times left out.")
        return
    is_same = provenance.commit() == record.get("commit")
    then = "" if is_same else "; it was made by other sources"
    screen.complain(f"it was run again, and rows differ{then}")
    raise typer.Exit(1)


def _rows_again(record: Mapping[str, Any], words: list[str]) -> pd.DataFrame:
    """Rows by the record's figure and settings alone: none of its words is run as a command."""
    from workbench import widgets
    from workbench.figures.exported import rows_again

    if record.get("profile") == "explorer":
        settings = [word for word in words[3:] if "=" in word and not word.startswith("-")]
        return widgets.from_settings(words[2], settings).to_export().rows
    with tempfile.TemporaryDirectory() as store:
        return rows_again(record, Path(store))
