"""What commands print, and the numbers that all commands refuse.

What is printed may come from a file of somebody else: no character of it reaches the terminal as a
command, and none is read as markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperCommand

from workbench.mechanisms.options import parse_number
from workbench.value import plain as plain
from workbench.value import stated_at_most

if TYPE_CHECKING:
    from workbench.privacy import DP


# Screen


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
def _bar(*columns: str) -> Iterator[Any]:
    """A bar on stderr of these columns of rich, or texts; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    made = [x if "{" in x else getattr(progress, x)() for x in columns]
    with progress.Progress(*made, console=Console(stderr=True), transient=True) as bar:
        yield bar


@contextmanager
def reading_bar() -> Iterator[Callable[[int, int], Any] | None]:
    """What shows the bytes that were read of those that there are; nothing, where nobody watches."""
    with _bar("BarColumn", "DownloadColumn", "TimeRemainingColumn") as bar:
        task = bar and bar.add_task("reading", total=None)
        yield bar and (lambda read, whole: bar.update(task, completed=read, total=whole))


@contextmanager
def stages_bar() -> Iterator[Callable[[str, float], Any] | None]:
    """What shows a stage and its share that is done; nothing, where nobody watches."""
    with _bar("{task.description}", "BarColumn", "TimeRemainingColumn") as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=1.0)
            bar.update(tasks[stage], completed=share)

        yield bar and show


def rounded(cost: DP) -> DP:
    """What follows from a ρ, with an ε that a person can read: rounded up, it is promised too."""
    return replace(cost, epsilon=float(stated_at_most(cost.epsilon)))


# Command

GIVEN = f"{__name__}.given"  # in the context: the words of a command

_running: ContextVar[dict[str, Any]] = ContextVar("running")


class Command(TyperCommand):
    """A command that reads what people write, and never one of two things that they say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse numbers like 1_0, which Python would read as 10, and options that are given twice."""
        ctx.meta.setdefault(GIVEN, [ctx.info_name, *args])
        _running.set(ctx.meta)
        params = {name: param for param in self.get_params(ctx) for name in param.opts}
        given = set()
        words = iter(args)
        for word in words:
            name, equals, text = word.partition("=")
            param = params.get(name) if name.startswith("-") else None
            if word == "--":
                break
            if param is None or getattr(param, "is_flag", False):
                continue
            if param.name in given and not param.multiple:
                raise ValueError(f"{name} is given twice: need it once")
            given.add(param.name)
            if not equals:
                text = next(words, "")
                if text.startswith("--"):
                    raise ValueError(f"{name} needs a value, and {text} stands there")
            if _is_number(param):
                parse_number(name, text)
        return super().parse_args(ctx, args)


def given() -> list[str]:
    """The words of the command that runs, its own name first; `--with` is not among them."""
    return [*_running.get()[GIVEN]]


def use_for_all(app: typer.Typer) -> None:
    """Make every command of an app, and of the apps in it, one of these."""
    for info in app.registered_commands:
        if not issubclass(info.cls or TyperCommand, Command):
            info.cls = Command
        paragraphs = cleandoc(info.callback.__doc__ or "").split("\n\n")
        info.help = "\n\n".join(p.replace("\n", " ") for p in paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_for_all(group.typer_instance)


def _is_number(param: Any) -> bool:
    """Whether an option is declared as one."""
    return getattr(param, "type_descriptor", param).annotation in (int, float)
