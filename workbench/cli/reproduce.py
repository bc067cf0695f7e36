"""`workbench reproduce`: run the figures' notebooks and write the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen

if TYPE_CHECKING:
    from workbench.reproduction import NotebookRun

_MARKS = {
    "waiting": ("·", "dim"),
    "running": ("…", "cyan"),
    "done": ("✓", "green"),
    "kept": ("=", "green"),
    "failed": ("✗", "red"),
    "stopped": ("✗", "yellow"),
}


def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(metavar="[FIGURE]…", help="All, if none is named.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="quick (minutes) or paper (the papers' own sizes).")
    ] = "quick",
    workers: Annotated[
        int | None, typer.Option(help="Notebooks at once.", show_default="one a core")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Where to.", show_default="experiments/results")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Run what is up to date too.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds a cell may take.", show_default="600; paper: 6 hours"),
    ] = None,
    notebooks: Annotated[
        Path | None, typer.Option(help="Where from.", show_default="notebooks")
    ] = None,
) -> None:
    """Reproduce figures: pictures, rows and verdicts, and one report of all of them.

    What has not changed since it last ran is not run again, and finished trials are never repeated,
    so a run that was stopped continues. The exit code is 1 if a notebook fails.
    """
    from workbench import reproduction
    from workbench.figures import project_folder

    project = project_folder()
    results = results or project / "experiments" / "results"
    runs: dict[str, NotebookRun] = {}
    try:
        with _Progress(runs) as progress:
            reproduction.reproduce(
                figures or (),
                notebooks=notebooks or project / "notebooks",
                results=results,
                profile=profile,
                workers=workers,
                force=force,
                timeout=timeout,
                on_change=progress.update,
            )
    except KeyboardInterrupt:
        finished = sum(run.state in ("done", "kept") for run in runs.values())
        screen.complain("stopped")
        screen.say(
            f"{finished} of {len(runs)} notebooks are finished and kept in {results}, and so are "
            "the finished trials of the others: the same command goes on from here.",
            err=True,
        )
        raise typer.Exit(130) from None

    from workbench import report

    failed = [run for run in runs.values() if run.state == "failed"]
    for run in failed:
        why = " — ".join(text for text in (run.cell, run.error) if text)
        screen.complain(f"{run.stem}: {why}")
        if run.notebook:
            screen.say(f"  how far it came: {run.notebook}", err=True)
    screen.say(f"Report: {report.write(results, profile)}")
    if failed:
        raise typer.Exit(1)


class _Progress:
    """A line a notebook that changes in place; where nobody watches, a line a change."""

    def __init__(self, runs: dict[str, NotebookRun]):
        self.runs = runs
        self.started: dict[str, float] = {}
        self.live = None

    def __enter__(self) -> _Progress:
        if sys.stdout.isatty():
            from rich.live import Live

            self.live = Live(get_renderable=self.lines, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_) -> None:
        if self.live:
            self.live.stop()

    def update(self, run: NotebookRun) -> None:
        """Hear of a change, from any thread."""
        from time import monotonic

        self.runs[run.stem] = run
        if run.state == "running":
            self.started[run.stem] = monotonic()
        if not self.live and run.state not in ("waiting", "stopped"):
            screen.say(f"{run.stem}: {self.state_text(run)}")

    def state_text(self, run: NotebookRun) -> str:
        """How a run stands."""
        from time import monotonic

        if run.state == "running" and self.live:
            return f"running, {monotonic() - self.started[run.stem]:.0f} s"
        text = run.state
        if run.state == "done":
            text = f"done in {run.seconds:.1f} s"
        elif run.state == "kept":
            text = "up to date"
        if run.verdicts:
            counts = ", ".join(f"{outcome} {n}" for outcome, n in run.verdicts.items())
            text = f"{text} ({counts})"
        return f"{text}: {run.error}" if run.state == "failed" else text

    def lines(self):
        """All notebooks, for the screen."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for run in list(self.runs.values()):
            mark, style = _MARKS[run.state]
            state = Text(screen.plain(self.state_text(run)), style)
            grid.add_row(Text(mark, style), Text(run.stem), state)
        return grid
