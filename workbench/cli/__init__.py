"""The command line, `workbench …` or `jupyter workbench …`. Each group of commands has a module. A command
imports large libraries only when it runs.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from workbench.cli import (
    advise,
    audit,
    budget,
    data,
    figures,
    options,
    release,
    screen,
    serving,
)
from workbench.compiled import WITH, stated_modules, use_current_folder

_TRACEBACKS = "WORKBENCH_TRACEBACKS"  # whether they are shown


class _Commands(TyperGroup):
    """The group of all commands. If a command raises an error, one line with the message is printed to
    stderr, and the exit code is not 0. No traceback is printed.

    The option `--with MODULE` may be anywhere in the line. The commands then know the mechanisms, datasets
    and figures that this module defines.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remove `--with MODULE` from the arguments, and remember the module for this process and for the
        processes that it starts.
        """
        with _one_line(ctx):
            return super().parse_args(ctx, _take_modules(args))

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and convert its errors to a line on stderr and an exit code."""
        with _one_line(ctx):
            return super().invoke(ctx)


def _take_modules(args: list[str]) -> list[str]:
    """Import the modules that `--with` names, also from the current folder. Return the other words of the
    command line.
    """
    modules, rest = options.take("--with", args)
    if modules:
        paths = [use_current_folder(), os.environ.get("PYTHONPATH")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        os.environ[WITH] = ",".join(modules)
        stated_modules()
    return rest


@contextmanager
def _one_line(ctx: Any) -> Iterator[None]:
    """Convert errors in the `with` block to one line and an exit code: 2 for bad input, 130 for Ctrl-C, and 1
    if a check failed.
    """
    try:
        yield
    except KeyboardInterrupt as e:
        screen.complain("\n".join(["stopped", *map(str, e.args)]))
        raise typer.Exit(130) from None
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # whoever read our output has gone, or a command has said what is wrong
    except options.UsageError as e:
        if not e.format_message() or type(e).__name__ == "NoArgsIsHelpError":
            raise  # which prints the help
        path = (e.ctx or ctx).command_path
        screen.complain(f"{_as_typed(e.format_message())}\nSee: {path} --help")
        raise typer.Exit(2) from None
    except (ValueError, OSError, MemoryError) as e:
        text = str(e)
        if isinstance(e, OSError) and e.filename:
            text = f"{e.filename}: {e.strerror}"
        screen.complain(_as_typed(text) or "there is not enough memory for this")
        raise typer.Exit(2) from None
    except Exception as e:  # its traceback would show values of private data
        if isinstance(e.__context__, KeyboardInterrupt):  # as libraries do during their import
            screen.complain("stopped")
            raise typer.Exit(130) from None
        if os.environ.get(_TRACEBACKS):
            raise
        screen.complain(
            f"this is a mistake of the workbench, please report it ({type(e).__name__}: {e})\n"
            f"Where it happened is shown with {_TRACEBACKS}=1."
        )
        raise typer.Exit(1) from None


def _as_typed(text: str) -> str:
    """Replace the names of Python parameters in an error message by the names of options.

    >>> _as_typed("SRA.l = None is not allowed: need an integer")
    '--l is missing: need an integer'
    """
    text = re.sub(r"\w+=True \((.+?)\)", r"\1", text)  # force=True (--force)
    text = re.sub(r"^Bound\.", "--bound: ", text)
    text = re.sub(r"^[A-Z]\w+\.budget = (.+?\)) is", r"the budget \1 is", text)
    text = re.sub(r"^[A-Z]\w+\.(\w+) = ", lambda m: f"{options.option_of(m[1])} = ", text)
    return re.sub("^(--[a-z-]+) = None is not allowed:", r"\1 is missing:", text)


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Publish data under differential privacy. With --with MODULE, any command also knows the "
    "mechanisms, datasets and figures of your own module.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(figures.reproduce)
app.command()(advise.advise)
app.command()(release.publish)
app.command()(release.synthesize)
app.command()(release.show)
app.command()(release.answer)
of_mechanisms = typer.Typer(
    cls=release.Mechanisms, help="Make a release of a private table with noise."
)
of_mechanisms.command(release.ANY)(release.release)
app.add_typer(of_mechanisms, name="release")
app.add_typer(budget.app, name="budget")
app.command()(serving.bank)
app.add_typer(data.app, name="data")
app.add_typer(data.domain_app, name="domain")
app.command()(serving.explore)
app.command()(figures.export)
app.command()(figures.whereis)
app.command()(serving.lab)
app.command()(serving.init)
app.command()(audit.laws)
app.command()(audit.audit)
app.add_typer(audit.app, name="new")

screen.use_for_all(app, {"advise": "taxonomy code", "synthesize": release.NOT_OF_RECORDS})


def _freeze() -> None:
    """Skip the removal of objects when the process ends, which saves 0.4 s. This is not done if DuckDB is
    loaded, because DuckDB would report these objects as leaked.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line, as `workbench.__main__` does."""
    atexit.register(_freeze)
    app()
