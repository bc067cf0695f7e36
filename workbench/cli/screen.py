"""What commands print with: plain lines, tables, and the one line that says what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

say = typer.echo


def complain(words: str) -> None:
    """The first line in red on stderr; what follows it is help."""
    first, _, rest = words.partition("\n")
    typer.secho(f"Error: {first}" if first != "stopped" else first, fg="red", err=True)
    if rest:
        typer.echo(rest, err=True)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], right: str = ""
) -> None:
    """Print a table; the columns named in `right` are set to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in columns:
        shown.add_column(
            name, justify="right" if name in right.split() else "left", overflow="fold"
        )
    for row in rows:
        shown.add_row(*(x if isinstance(x, Text) else Text(str(x)) for x in row))
    console().print(shown)


def console():
    """Where tables go; as wide as a screen, or as they need where nobody watches."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def size(count: float) -> str:
    """Bytes in words.

    >>> size(999), size(12_345), size(8e15)
    ('999 B', '12.3 kB', '8 PB')
    """
    units = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"]
    while count >= 999.5 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.3g} {units[0]}"
