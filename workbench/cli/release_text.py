"""`workbench show` and `workbench answer`, and the text that describes a release."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen
from workbench.cli.budget import amount
from workbench.value import number

if TYPE_CHECKING:
    from workbench.estimates.release import Release
    from workbench.owner import Budget


# Release text

_AGAIN = "every release of the same data adds its ε or ρ, also one that replaces another"


def print_release(
    release: Release, file: Path, top: int = 10, delta: float | None = None
) -> None:
    """Print the description of a release and its largest cells.

    If a δ is given, a price in ρ is also printed as an ε.
    """
    screen.say(f"{file}\n")
    screen.rows(release.describe(delta))
    columns, largest = release.largest_in_words(top)
    if largest:
        of_all = f"The {len(largest)} largest" if len(largest) > 1 else "The largest of the"
        screen.table(f"{of_all} {release.estimate.contents}", columns, largest, columns[-2:])


def again(budget: Budget | None = None) -> str:
    """Return what remains of the budget or, without one, how releases of the same data add up."""
    if budget is None:
        return _AGAIN
    left = amount(budget.limit, budget.remaining, budget.remaining_delta)
    return f"{left} of {budget.limit} remain for {budget.people} ({budget.path.name})"


# Show

_PICTURES = (".png", ".svg", ".pdf")


def show(
    file: Path,
    *,
    top: Annotated[int, typer.Option(min=0)] = 10,
    picture: Path | None = None,
    force: bool = False,
    delta: float | None = None,
) -> None:
    """Show a release: its guarantee, receipts and largest cells.

    All of it comes from the file alone.

    Parameters
    ----------
    file
        Release file.
    top
        Number of largest cells to show.
    picture
        Picture to write (.png, .svg or .pdf).
    force
        Overwrite the picture.
    delta
        Failure probability δ at which to show the cost as an ε.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")
    if picture is not None:
        _refuse_picture(picture, file, force)

    from workbench.estimates.release import Release

    release = Release.load(file)
    print_release(release, file, top, delta)
    if picture is not None:
        _draw(release, file, picture)
        screen.say(f"Picture    {picture}")


def _refuse_picture(path: Path, file: Path, force: bool) -> None:
    from workbench.estimates.files import sidecar
    from workbench.estimates.release_files import refuse_existing, refuse_input

    if path.suffix not in _PICTURES:
        raise ValueError(f"--picture {path}: need a name that ends in {' or '.join(_PICTURES)}")
    refuse_input(path, [file, sidecar(file)])
    refuse_existing(path, force)


def _draw(release: Release, file: Path, path: Path) -> None:
    """Write the picture completely or not at all, with the release that it shows."""
    from workbench.estimates import files
    from workbench.figures import plots, versions
    from workbench.figures.saved import release_record, save_picture

    record = {
        "command": shlex.join(["workbench", "show", file.name, "--picture", path.name]),
        "release": release_record(file),
        "noise": "simulated" if release.simulated else "system",
        "versions": versions("numpy", "matplotlib"),
        "commit": files.commit(),
    }
    fig = plots.release_picture(release)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        save_picture(fig, path, path.suffix.removeprefix("."), record)
    plots.close(fig)


# Answer


def answer(
    file: Path, queries: list[str], *, error: bool = False, belief: str | None = None
) -> None:
    """Answer queries from a release file, at no cost.

    Nothing is spent because only the release is read.

    Parameters
    ----------
    file
        Release file.
    queries : QUERY...
        For example 'origin=Bern hour=7..9': labels, ranges with both ends included, sets such as
        Bern|Genf; '*' is everything. Quotes around labels with spaces or any of = .. | ,
    error
        Show the error of each answer.
    belief
        With `empty`, treat cells that were not released as empty. Needs --error.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")
    if belief is not None and not error:
        raise ValueError("--belief narrows error bars: add --error")

    from workbench.estimates.release import Release

    release = Release.load(file)
    answers = release.answer(queries, error=error, belief=belief)
    told = answers.in_words() if error else [(number(x),) for x in answers]
    columns = ["query", "count", "noise", "absent", "which hold"][: 5 if error else 2]
    rows = [(query, *row) for query, row in zip(queries, told, strict=True)]
    screen.table("Answers, in counts", columns, rows, right=columns[1:])
    if error:
        absent = release.estimate.contents if release.absent_at_most >= 0 else "cells"
        screen.paragraph(
            "noise: one standard deviation. In about 19 of 20 cases the noise is within two of them. "
            f"absent: {absent} of the query that were not released. Together they hold no more than is "
            "shown, so the true count may be higher by as much."
        )
    screen.paragraph(release.counts_what)
    if error and release.estimate.why_unknown:
        screen.paragraph(f"unknown: {release.estimate.why_unknown}")
    if error and answers.belief:
        screen.warn(f"absent: 0 {answers.belief}")
