"""`workbench data` finds and downloads published datasets. `workbench domain` writes and checks domain files,
which list all possible cells.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from workbench import compiled
from workbench.cli import screen
from workbench.value import counted, shown

if TYPE_CHECKING:
    from workbench.datasets.published import FileStatus
    from workbench.spaces import Domain


# Data

_SHORT = 60  # characters
_LABELS = 8  # of an attribute that are shown one by one

app = typer.Typer(no_args_is_help=True, help="List, download and check published datasets.")


@app.command("list")
def list_() -> None:
    """List published datasets, and the folders of their files.

    The command also lists the data that each figure would use now.
    """
    from workbench.datasets import published
    from workbench.figures.figure import data_in_use

    rows = published.verify()
    _table("Published files", rows)
    missing = list(dict.fromkeys(row.dataset for row in rows if row.state == "missing"))
    if missing:
        screen.say(f"Fetch what is missing: workbench data fetch {missing[0]}")
    others = compiled.other_datasets()
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
def fetch(name: str, *, force: bool = False) -> None:
    """Download the files of a dataset to data/raw/.

    Parameters
    ----------
    name
        Name of the dataset. `workbench data list` shows all names.
    force
        Download files again, even if they are already there.
    """
    from workbench.datasets import published

    for path in published.fetch(name, force=force):
        screen.say(path)


@app.command()
def path(name: str) -> None:
    """Print the paths of a dataset's files on your computer.

    Parameters
    ----------
    name
        Name of the dataset. `workbench data list` shows all names.
    """
    from workbench.datasets import published

    for file in published.path(name):
        screen.say(file)


@app.command()
def verify(name: str | None = None) -> None:
    """Check whether files of datasets are the published files.

    The command compares SHA-256 hashes. The exit code is 1 if a file differs from the published file.

    Parameters
    ----------
    name
        Name of the dataset to check. By default all datasets.
    """
    from workbench.datasets import published

    rows = published.verify(name)
    _table("Checked", rows)
    different = [row for row in rows if row.state == "different"]
    for row in different:
        screen.complain(f"{row.path} is not the published file. Fetch it again with --force")
    if different:
        raise typer.Exit(1)


def _table(title: str, rows: list[FileStatus]) -> None:
    from rich.filesize import decimal

    cells = []
    for row in rows:
        size = "" if row.size is None else decimal(row.size)
        cells.append((row.dataset, row.file, row.state, size, row.path or ""))
    screen.table(title, ["dataset", "file", "state", "size", "path"], cells, right=["size"])


# Domain

_HOW = """\
Replace each "FILL IN" by what is public knowledge: the workbench does not look it up in the table. Delete
columns by which you do not count, for example the user's. An attribute is

  ["F", "M"]                                          labels; {"file": "towns.txt"}: one per line
  {"from": 0, "to": 99}                               integers
  {"low": 0, "high": 100, "width": 10}                bins of numbers; {"edges": [0, 18, 65]}
  {"time": "hour", "format": "%d.%m.%Y %H:%M"}        or weekday, day, week, month, quarter
  {"time": "year", "first": 2020, "last": 2024}       or year-month, date
  {"map": "cantons.csv", "column": "town"}            many values to one label: lines of value,label
  {"cross": [{"column": "sex", …}, {"column": …}]}    two columns as one list of labels

with "other" and "missing": "refuse" (an error), "drop" (the row is left out) or "label" (one more label)."""

_PRIVATE = """\
This reveals information about the data, so do not share it. Labels that you add because you see them here
would make the domain private. Use "other": "label" or "other": "drop" instead, and the same for "missing"."""

domain_app = typer.Typer(
    no_args_is_help=True, help="Write or check a domain file (all possible cells)."
)


@domain_app.command()
def new(
    *, source: Path, out: Path | None = None, name: str | None = None, force: bool = False
) -> None:
    """Write a draft of a domain file for a table.

    The draft uses only the names and types of the columns, and no values.

    Parameters
    ----------
    source : --from FILE
        Table file: CSV, Parquet, DuckDB or SQLite.
    out
        Domain file to write. By default, the command prints the draft.
    name : --table NAME
        Name of the table in a DuckDB or SQLite file.
    force
        Overwrite an existing file.
    """
    import json

    from workbench.data import draft_domain
    from workbench.estimates.release_files import refuse_existing, refuse_input

    if out is not None:
        refuse_input(out, [source])
        refuse_existing(out, force)
    draft = draft_domain(source, name)
    write = partial(json.dumps, ensure_ascii=False)
    lines = ",\n".join(f"  {write(name)}: {write(stated)}" for name, stated in draft.items())
    text = f"{{\n{lines}\n}}\n"
    if out is None:
        screen.say(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    screen.say(f"{out}: {counted(len(draft), 'attribute')}\n\n{_HOW}")


@domain_app.command()
def check(
    domain: Path,
    table: list[Path] | None = None,
    *,
    count: str | None = None,
    user: str | None = None,
    user_type: Literal["text"] | None = None,
    name: str | None = None,
    look: bool = False,
) -> None:
    """Show a domain file, and the rows of a table that do not fit it.

    `workbench release` would refuse these rows. The output describes private rows, so do not share it. The
    command writes nothing to disk.

    Parameters
    ----------
    domain
        Domain file to show.
    table : TABLE
        Private table to compare with the domain.
    count
        Column that contains counts. By default each row counts 1.
    user : COLUMN
        Column that identifies the user of each row.
    user_type
        Type of the column of users. With `text`, 7 and 007 are two people. By default, 007 is an error.
    name : --table NAME
        Name of the table in a DuckDB or SQLite file.
    look
        Also count rows, users and cells. These numbers have no noise, so do not publish them.
    """
    from workbench.data import check_table
    from workbench.spaces import Domain

    cells = Domain.read(domain)
    _say_attributes(cells)
    if not table:
        return
    who: dict[str, Any] = {"user": user, "user_type": user_type}
    how: dict[str, Any] = {"count": count, "table": name}
    with screen.reading_bar() as progress:
        result = check_table(table, cells, progress=progress, **who, **how)
    names = ", ".join(map(str, table))
    left_out = f"{counted(result.left_out, 'row')} left out as the domain says"
    screen.say(
        f"{names}: {counted(result.rows, 'row')}, {left_out if result.left_out else 'none left out'}"
    )
    for column in result.refused:
        wrong = counted(column.rows, "row is", "rows are")
        screen.say(f"\nColumn {shown(column.column)}: {wrong} refused; need {column.need}")
        for found, place in column.examples.items():
            screen.say(f"  {place}: {found}")
    if result.refused:
        screen.say(f"\n{_PRIVATE}")
        raise typer.Exit(1)
    screen.say("Nothing would be refused.")
    if look:
        import numpy as np

        from workbench.data.reading import all_rows, counted_rows
        from workbench.data.users import UserNumbers

        users = None if user is None else UserNumbers(user, user_type, cells.missing_user)
        rows = all_rows(counted_rows(table, cells, users=users, **how), np.zeros(0, np.int64))
        held = [
            counted(len(rows.keys), "row"),
            f"{len(np.unique(rows.keys)):,} cells that hold any",
        ]
        if rows.users is not None and users is not None:
            held.append(counted(len(np.unique(rows.users)), "user"))
        screen.warn(f"Not for publication: the table has {', '.join(held)}.")


def _say_attributes(domain: Domain) -> None:
    """Print each attribute with its first and last labels. Then print the number of possible cells."""
    import numpy as np

    rows = []
    for attribute, size in zip(domain.attributes, domain.shape, strict=True):
        codes = np.arange(size) if size <= _LABELS else np.array([0, 1, 2, size - 1])
        labels = [str(label) for label in domain.decode(attribute, codes)]
        if size > _LABELS:
            labels.insert(-1, "…")
        rows.append((attribute, f"{size:,}", ", ".join(labels)))
    screen.table(f"{domain.size:,} cells", ["attribute", "labels", "which"], rows, ["labels"])
