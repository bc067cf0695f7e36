"""`workbench …` and `jupyter workbench …`: a file a command; each loads what it needs when it runs."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from workbench.cli import (
    advise,
    bench,
    data,
    explore,
    export,
    init,
    lab,
    release,
    reproduce,
    screen,
    show,
)


class _Commands(TyperGroup):
    """Whatever goes wrong is one line on stderr and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; 2 is bad input, 130 is Ctrl-C; a command says 1 for what failed in it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            screen.complain("stopped")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise  # whoever read our output has gone
        except (ValueError, OSError) as e:
            screen.complain(str(e))
            raise typer.Exit(2) from None
        except MemoryError:
            screen.complain("there is not enough memory for this")
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    help="A workbench for publishing data under differential privacy.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(reproduce.reproduce)
app.command()(advise.advise)
app.command(cls=release.Command)(release.release)
app.command()(show.show)
app.add_typer(data.app, name="data")
app.command()(explore.explore)
app.command()(export.export)
app.command()(lab.lab)
app.command()(init.init)
app.command()(bench.bench)


def main() -> None:
    """The console scripts."""
    app()
