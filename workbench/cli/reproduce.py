"""`workbench reproduce`: run the figures' notebooks and write the report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli import options, screen

if TYPE_CHECKING:
    from workbench.figures.status import NotebookRun


_MARKS = {
    "waiting": ("·", "dim"),
    "running": ("…", "cyan"),
    "done": ("✓", "green"),
    "kept": ("=", "green"),
    "failed": ("✗", "red"),
    "stopped": ("✗", "yellow"),
}


def _use_cluster(scheduler: str, insecure: bool) -> None:
    """Run the trials of all notebooks on a cluster, except those that measure times."""
    from workbench.trials.running import SCHEDULER, SCHEDULER_INSECURE

    options.connected(scheduler, insecure).shutdown()
    is_file = Path(scheduler).exists()  # kernels run in another folder
    os.environ[SCHEDULER] = str(Path(scheduler).resolve()) if is_file else scheduler
    os.environ[SCHEDULER_INSECURE] = "1" if insecure else ""


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]…", help="Figures to run. All by default."),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(help="Size of the runs: quick (minutes) or paper (as printed, hours)."),
    ] = "quick",
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            metavar="NAME=VALUE",
            help="Parameter of a figure. Commas between values run each (semicolons between lists).",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Dataset to use instead, same as -p data=NAME.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Start more than 200 runs without asking.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of notebooks that run at once.", show_default="one per core"
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder for results.", show_default="experiments/results"),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Run figures again that are up to date, with all their rows."
        ),
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Run only the figures that failed last time.")
    ] = False,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed",
            help="Run only figures whose own notebook, modules or data changed.",
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Time limit of one notebook cell, in seconds.",
            show_default="600; paper: 6 hours",
        ),
    ] = None,
    scheduler: options.Scheduler = None,
    insecure: options.Insecure = False,
    notebooks: Annotated[
        Path | None, typer.Option(help="Folder with the notebooks.", show_default="notebooks")
    ] = None,
) -> None:
    """Reproduce figures of the papers, and write one report.

    A figure that has not changed since it last ran is not run again, and finished trials are kept, so
    a run that was stopped continues. `--force` draws all anew. The exit code is 1 if a notebook fails.
    """
    from workbench.compiled import project_folder
    from workbench.figures import find_notebooks, results_folder
    from workbench.figures.batch import reproduce as run_notebooks
    from workbench.figures.site import write, write_comparison
    from workbench.figures.status import MANY, Task, tasks

    if scheduler is not None:
        _use_cluster(scheduler, insecure)
    notebooks = notebooks or project_folder() / "notebooks"
    results = results or results_folder()
    settings = [*(parameters or ()), *([f"data={data}"] if data else ())]
    chosen: list[Task] = []
    if settings:
        if not figures:
            raise ValueError("-p needs the names of figures: their parameters are their own")
        paths = find_notebooks(notebooks)
        chosen = tasks(list(dict.fromkeys(figures)), paths, profile, settings)
        if len(chosen) > MANY and not yes:
            raise ValueError(
                f"these are {len(chosen)} runs; to start more than {MANY} say --yes"
            )
    runs: dict[str, NotebookRun] = {}
    try:
        with _Progress(runs) as progress:
            run_notebooks(
                figures or (),
                notebooks=notebooks,
                results=results,
                profile=profile,
                settings=settings,
                workers=workers,
                force=force,
                only_failed=only_failed,
                changed=changed,
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
    from workbench.owner.audit.measure import read_rows

    if only_failed and not runs:
        screen.say("Nothing failed last time.")
    failed = [run for run in runs.values() if run.state == "failed"]
    for run in failed:
        why = " — ".join(text for text in (run.cell, run.error) if text)
        screen.complain(f"{run.stem}: {why}")
        if run.notebook:
            screen.say(f"  how far it came: {run.notebook}", err=True)
    for id in dict.fromkeys(task.id for task in chosen):
        names = [task.name for task in chosen if task.id == id]
        if len(names) > 1:
            screen.say(f"Compared: {write_comparison(results, profile, id, names)}")
    audits = read_rows(Path(results) / "audit.csv")
    screen.say(f"Report: {write(results, profile, audits)}")
    if profile == "quick" and not settings:
        from workbench.figures.recorded import compare, sentence

        said = sentence(compare(Path(results)), runs)
        if said:
            screen.say(said)
    if failed:
        raise typer.Exit(1)


class _Progress:
    """One line per notebook that changes in place or, without a terminal, one line per change."""

    def __init__(self, runs: dict[str, NotebookRun]):
        self.runs = runs
        self.started: dict[str, float] = {}
        self.expected: dict[str, float] = {}
        self.live: Any = None

    def __enter__(self) -> _Progress:
        if sys.stdout.isatty():
            from rich.live import Live

            self.live = Live(get_renderable=self.lines, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.live:
            self.live.stop()

    def update(self, run: NotebookRun) -> None:
        """Take a change of state, from any thread."""
        self.runs[run.stem] = run
        if run.expected:
            self.expected[run.stem] = run.expected
        if run.state == "running":
            self.started[run.stem] = monotonic()
        if not self.live and run.state not in ("waiting", "stopped"):
            how_far = f" — {self.how_far()}" if run.state != "running" else ""
            screen.say(f"{run.stem}: {self.state_text(run)}{how_far}")

    def how_far(self) -> str:
        """Number of runs that ended, and the estimated time of the others if there is one."""
        runs = list(self.runs.values())
        open_runs = [run for run in runs if run.state in ("waiting", "running")]
        text = f"{len(runs) - len(open_runs)} of {len(runs)}"
        seconds = [run.seconds for run in runs if run.state == "done"]
        usual = sum(seconds) / len(seconds) if seconds else None
        if not open_runs or not (usual or all(r.stem in self.expected for r in open_runs)):
            return text
        left = 0.0
        for run in open_runs:
            elapsed = monotonic() - self.started[run.stem] if run.state == "running" else 0
            left += max(self.expected.get(run.stem, usual or 0) - elapsed, 0)
        at_once = max(sum(run.state == "running" for run in runs), 1)
        minutes = left / at_once / 60
        left_text = f"about {minutes:.0f} min" if minutes >= 1 else "under a minute"
        return f"{text}, {left_text} left"

    def state_text(self, run: NotebookRun) -> str:
        """State of a run in words."""
        if run.state == "running" and self.live:
            return f"running, {monotonic() - self.started[run.stem]:.0f} s"
        text = run.state
        if run.state == "done":
            text = f"done in {run.seconds:.1f} s"
        elif run.state == "kept":
            text = "up to date"
        if run.verdicts:
            counts = ", ".join(f"{n} {name}" for name, n in run.verdicts.items() if n)
            text = f"{text} ({counts})"
        return f"{text}: {run.error}" if run.state == "failed" else text

    def lines(self) -> Any:
        """Table of all notebooks."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        for run in list(self.runs.values()):
            mark, style = _MARKS[run.state]
            state = Text(screen.plain(self.state_text(run)), style)
            grid.add_row(Text(mark, style), Text(run.stem), state)
        grid.add_row(Text(""), Text(self.how_far(), "dim"), Text(""))
        return grid
