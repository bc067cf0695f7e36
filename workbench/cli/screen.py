"""Functions that print the output of commands, and a check of numbers and options for all commands.

Printed text may come from an untrusted file. So control characters are escaped, and no text is interpreted as
markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

import typer
from typer.core import TyperCommand

from workbench.cli.options import command
from workbench.mechanisms.options import parse_number
from workbench.value import plain as plain

# Screen


def plain_lines(text: Any) -> str:
    """Escape control characters in a text, as the function `plain` does, but keep the ends of lines."""
    return "\n".join(map(plain, str(text).split("\n")))


def say(text: Any, *, err: bool = False, end: str = "\n", colour: str | None = None) -> None:
    """Print lines. If the output goes to a program that ends early, for example `head`, the command continues
    without printing.
    """
    try:
        typer.secho(plain_lines(text) + end, fg=colour, err=err, nl=False)
    except BrokenPipeError:
        _print_nothing()


def warn(text: str) -> None:
    """Print lines in red."""
    say(text, colour="red")


def _print_nothing() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(text: str) -> None:
    """Print an error message to stderr. The first line is red, and the other lines are help."""
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
    """Print a table. The columns whose names are in `right` are aligned to the right."""
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


def rows(pairs: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and a text, one per line. Warnings are red."""
    for name, text in pairs:
        if text:
            tell = warn if name == "Caution" else say
            tell(f"{name:10} {plain(text)}")


def paragraph(text: str) -> None:
    """Print a text with lines as long as the screen is wide. Print nothing if the text is empty."""
    if text:
        console().print(plain(text), markup=False)


def console() -> Any:
    """Return a console for printing tables. It is as wide as the terminal, or 160 columns if the output is
    not a terminal.
    """
    from rich.console import Console

    shown: Any = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    shown.on_broken_pipe = _print_nothing
    return shown


@contextmanager
def stages_bar() -> Iterator[Callable[..., Any] | None]:
    """Show a progress bar for each stage of the work on stderr. Yield the function that updates the bar, or
    None if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    columns = "{task.description}", BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: float, whole: float = 1.0) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage)
            bar.update(tasks[stage], completed=done, total=whole)

        yield show


@contextmanager
def reading_bar() -> Iterator[Callable[[int, int], Any] | None]:
    """Show a progress bar for reading files on stderr. Yield the function that updates the bar, or None if
    stderr is not a terminal.
    """
    with stages_bar() as show:
        yield show and partial(show, "bytes read")


# Command

WITH_MODULE = "Use --with MODULE to add what your own module defines."
GIVEN = f"{__name__}.given"  # in the context: the words of a command

_running: ContextVar[dict[str, Any]] = ContextVar("running")


class Command(TyperCommand):
    """Command that raises an error for numbers and options that are probably typing mistakes."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options to the help, by section. The options of the mechanism come first."""
        first = f"Options of {ctx.info_name}", "Arguments", "Options"
        sections: dict[str, list[Any]] = {title: [] for title in first}
        for param in self.get_params(ctx):
            section: Any = getattr(param, "rich_help_panel", None)
            section = section or f"{param.param_type_name.capitalize()}s"
            sections.setdefault(section, []).append(param.get_help_record(ctx))
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise an error if an option is given twice, or for a number such as 1_0, which Python would read as
        10.
        """
        ctx.meta.setdefault(GIVEN, [ctx.info_name, *args])
        _running.set(ctx.meta)
        parser: Any = self.make_parser(ctx)
        texts, _, params = parser.parse_args([*args])
        for param in params:
            name, text = param.opts[0], texts[param.name]
            if param.param_type_name == "argument" or not isinstance(text, str):
                continue
            if params.count(param) > 1:
                raise ValueError(f"{name} is given twice: need it once")
            if text.startswith("--"):
                raise ValueError(f"{name} needs a value, and {text} stands there")
            if param.type_descriptor.annotation in (int, float):
                parse_number(name, text)
        return super().parse_args(ctx, args)


def given() -> list[str]:
    """Return the words of the command line, beginning with the name of the command and without `--with`."""
    return [*_running.get()[GIVEN]]


def use_for_all(app: typer.Typer, without: Mapping[str, str]) -> None:
    """Make every command of an app, and of the apps in it, an instance of the class `Command`. Remove the
    options that `without` names for a command.
    """
    for info in app.registered_commands:
        info.cls = Command
        run: Any = info.callback
        info.callback = command(run, without.get(run.__name__, ""))
        info.help = info.callback.__doc__
        info.epilog = WITH_MODULE
    for group in app.registered_groups:
        group.epilog = WITH_MODULE
        if group.typer_instance is not None:
            use_for_all(group.typer_instance, without)
