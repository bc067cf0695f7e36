"""`workbench reproduce`: run the figures' notebooks and write the report."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import options, screen
from workbench.compiled import project_folder

if TYPE_CHECKING:
    from workbench.figures.status import NotebookRun


def _use_cluster(scheduler: str, insecure: bool) -> None:
    """Run the trials of all notebooks on a cluster, except those that measure times."""
    from workbench.trials.running import SCHEDULER, SCHEDULER_INSECURE

    options.connected(scheduler, insecure).shutdown()
    is_file = Path(scheduler).exists()  # kernels run in another folder
    os.environ[SCHEDULER] = str(Path(scheduler).resolve()) if is_file else scheduler
    os.environ[SCHEDULER_INSECURE] = "1" if insecure else ""


def reproduce(
    figures: list[str] | None = None,
    *,
    profile: str = "quick",
    parameters: list[str] | None = None,
    data: str | None = None,
    yes: bool = False,
    workers: options.Positive = None,
    results: Path | None = None,
    force: bool = False,
    only_failed: bool = False,
    changed: bool = False,
    timeout: Annotated[float | None, typer.Option(min=0.1)] = None,
    scheduler: str | None = None,
    insecure: bool = False,
    notebooks: Path | None = None,
) -> None:
    """Reproduce figures of the papers, and write one report.

    A figure that has not changed since it last ran is not run again, and finished trials are kept, so
    a run that was stopped continues. `--force` draws all anew. The exit code is 1 if a notebook fails.

    Parameters
    ----------
    figures : [FIGURE]…
        Figures to run. All by default.
    profile
        Size of the runs: quick (minutes) or paper (as printed, hours).
    parameters : -p NAME=VALUE
        Parameter of a figure. Commas between values run each (semicolons between lists).
    data
        Dataset to use instead, same as -p data=NAME.
    yes
        Start more than 200 runs without asking.
    workers
        Number of notebooks that run at once. By default one per core.
    results
        Folder for results. By default experiments/results.
    force
        Run figures again that are up to date, with all their rows.
    only_failed
        Run only the figures that failed last time.
    changed
        Run only figures whose own notebook, modules or data changed.
    timeout
        Time limit of one notebook cell, in seconds. By default 600, or 6 hours for paper.
    notebooks
        Folder with the notebooks. By default notebooks.

    Many machines
    -------------
    scheduler : ADDRESS|FILE
        Dask cluster to run on: the address of its scheduler, or its scheduler file.
    insecure
        Accept a tcp:// scheduler on another machine, although it is not encrypted.
    """
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
            on_change=_announcer(runs),
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
    screen.say(f"Report: {write(results, profile)}")
    if profile == "quick" and not settings:
        from workbench.figures.recorded import compare, sentence

        said = sentence(compare(Path(results)), runs)
        if said:
            screen.say(said)
    if failed:
        raise typer.Exit(1)


def _announcer(runs: dict[str, NotebookRun]) -> Callable[[NotebookRun], None]:
    """Return what prints a line for each change of a run, from any thread, and keeps the run in `runs`."""
    begun = monotonic()

    def announce(run: NotebookRun) -> None:
        runs[run.stem] = run
        if run.state in ("waiting", "stopped"):
            return
        text = f"{run.stem}: {_state(run)}"
        if run.state != "running":
            states = [x.state for x in runs.values()]
            left = states.count("waiting") + states.count("running")
            over = len(states) - left
            text += f" — {over} of {len(states)}"
            minutes = (monotonic() - begun) / over * left / 60
            if left:
                text += (
                    f", about {minutes:.0f} min left"
                    if minutes >= 1
                    else ", under a minute left"
                )
        screen.say(text)

    return announce


def _state(run: NotebookRun) -> str:
    """State of a run in words."""
    text = {"done": f"done in {run.seconds:.1f} s", "kept": "up to date"}.get(
        run.state, run.state
    )
    if run.verdicts:
        counts = ", ".join(f"{n} {name}" for name, n in run.verdicts.items() if n)
        text = f"{text} ({counts})"
    return f"{text}: {run.error}" if run.state == "failed" else text
