"""`workbench domain`: the file that says which cells there can be, begun and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import options, screen
from workbench.release_files import refuse_input
from workbench.value import shown
from workbench.wording import counted

if TYPE_CHECKING:
    from workbench.reading import TableCheck

_HOW = """\
What values there can be is public knowledge, and is not looked up in the table: fill in what stands
blank ("FILL IN"), and take out the columns that are no attribute (a user's name, a count). An attribute is

  ["F", "M"]                                          its labels; {"file": "towns.txt"}: one a line
  {"from": 0, "to": 99}                               whole numbers
  {"low": 0, "high": 100, "width": 10}                bins of numbers; {"edges": [0, 18, 65]}
  {"time": "hour", "column": "start"}                 or weekday, day, month; of text with
                                                      "format": "%d.%m.%Y %H:%M"
  {"map": "cantons.csv", "column": "town"}            many values to one label: lines of value,label
  {"cross": [{"column": "sex", …}, {"column": …}]}    two columns as one list of labels

with "other" and "missing": "refuse" (an error), "drop" (the row is left out) or "label" (a label more)."""

_PRIVATE = """\
This tells about the data: it is for your eyes alone. Labels that are added to the domain because they
stand here would make the domain private, and publishing it would tell that they occur: say
"other": "label" (or "drop"), and the same of "missing", instead."""

app = typer.Typer(no_args_is_help=True, help="Which cells there can be: new, check.")


@app.command()
def new(
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="CSV, Parquet, DuckDB or SQLite.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The domain file to write; without it, print it.")
    ] = None,
    name: options.TableName = None,
    force: options.Force = False,
) -> None:
    """Draft a domain from a file's columns: their names and types, never their values."""
    import json

    from workbench.reading import draft_domain

    if out is not None:
        refuse_input(out, [source])
    if out is not None and out.exists() and not force:
        raise ValueError(f"{out} exists: choose another name, or --force to overwrite it")
    draft = draft_domain(source, name)
    lines = [
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(stated, ensure_ascii=False)}"
        for name, stated in draft.items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if out is None:
        screen.say(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    screen.say(f"{out}: {counted(len(draft), 'attribute')}\n\n{_HOW}")


@app.command()
def check(
    domain: Annotated[Path, typer.Argument(help="The domain file.")],
    table: options.Tables,
    count: options.Count = None,
    user: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Whose each row is.")
    ] = None,
    user_type: options.UserType = None,
    name: options.TableName = None,
) -> None:
    """Say what a release of a table would refuse, for its owner's eyes; nothing is written."""
    from workbench.domain import Domain
    from workbench.reading import check_table

    cells = Domain.read(domain)
    with screen.reading_bar() as progress:
        result = check_table(
            table,
            cells,
            count=count,
            user=user,
            user_type=user_type,
            table=name,
            progress=progress,
        )
    names = ", ".join(map(str, table))
    screen.say(f"{names}: {counted(result.rows, 'row')}, {_left_out(result)}")
    for column in result.refused:
        rows = counted(column.rows, "row is", "rows are")
        screen.say(f"\nColumn {shown(column.column)}: {rows} refused; need {column.need}")
        for found, place in column.examples.items():
            screen.say(f"  {place}: {found}")
    if result.refused:
        screen.say(f"\n{_PRIVATE}")
        raise typer.Exit(1)
    screen.say("Nothing would be refused.")


def _left_out(result: TableCheck) -> str:
    left_out = counted(result.left_out, "row")
    return f"{left_out} left out as the domain says" if result.left_out else "none left out"
