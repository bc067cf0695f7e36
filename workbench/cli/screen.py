"""What commands print with: plain lines, tables, and the one line that says what went wrong.

What is printed may come from a file of somebody else: no character of it reaches the terminal as a
command, and none is read as markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import typer

from workbench.value import plain as plain
from workbench.wording import stated_at_most

if TYPE_CHECKING:
    from workbench.privacy import DP


def plain_lines(text: Any) -> str:
    """`plain` text of which line ends are kept."""
    return "\n".join(map(plain, str(text).split("\n")))


def say(text: Any, *, err: bool = False, end: str = "\n") -> None:
    """Print lines."""
    with _while_somebody_reads():
        typer.echo(plain_lines(text) + end, err=err, nl=False)


def warn(text: str) -> None:
    """Print lines in red."""
    with _while_somebody_reads():
        typer.secho(plain_lines(text), fg="red")


@contextmanager
def _while_somebody_reads() -> Iterator[None]:
    """Who reads what is printed may leave, as `head` does: then the command goes on, and prints nothing."""
    try:
        yield
    except BrokenPipeError:
        _print_nothing()


def _print_nothing() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(text: str) -> None:
    """The first line in red on stderr; what follows it is help."""
    first, _, rest = plain_lines(text).partition("\n")
    typer.secho(f"Error: {first}" if first != "stopped" else first, fg="red", err=True)
    if rest:
        typer.echo(rest, err=True)


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    right: Sequence[str] = (),
) -> None:
    """Print a table; the columns named in `right` are set to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heading = Text(plain(title), style="table.title")
    shown = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD)
    for name in columns:
        justify: Literal["right", "left"] = "right" if name in right else "left"
        shown.add_column(Text(plain(name)), justify=justify, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(plain(x)) for x in row))
    console().print(shown)


def paragraph(text: str) -> None:
    """Print text that is wrapped to the screen."""
    console().print(plain(text), markup=False)


def console() -> Any:
    """Where tables go; as wide as a screen, or as they need where nobody watches."""
    from rich.console import Console

    shown: Any = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    shown.on_broken_pipe = _print_nothing
    return shown


@contextmanager
def reading_bar() -> Iterator[Callable[[int, int], Any] | None]:
    """What shows the bytes that were read of those that there are; nothing, where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda read, whole: bar.update(task, completed=read, total=whole)


@contextmanager
def stages_bar() -> Iterator[Callable[[str, float], Any] | None]:
    """What shows a stage and its share that is done; nothing, where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=1.0)
            bar.update(tasks[stage], completed=share)

        yield show


def size(count: float) -> str:
    """Bytes in words.

    >>> size(999), size(12_345), size(8e15)
    ('999 B', '12.3 kB', '8 PB')
    """
    unit = "B"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB", "ZB"):
        if count < 999.5:
            break
        count /= 1000
        unit = larger
    return f"{count:.3g} {unit}"


def rounded(cost: DP) -> DP:
    """What follows from a ρ, with an ε that a person can read: rounded up, it is promised too."""
    return replace(cost, epsilon=float(stated_at_most(cost.epsilon)))
