"""Commands about figures of papers: `workbench reproduce` runs them, `export` writes pictures and tables, and
`whereis` says how a file was made.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench import mechanisms
from workbench.cli import options, screen
from workbench.compiled import project_folder

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures import Export, Figure
    from workbench.figures.status import NotebookRun

# Reproduce


def reproduce(
    context: typer.Context,
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
    """Run experiments of the papers, draw their figures, and write a report.

    The command skips a figure if nothing has changed since its last run. It stores the results of each
    finished trial (one run of a mechanism), so you can stop the command and continue later. With --force, the
    command runs everything again. The exit code is 1 if a figure fails.

    Parameters
    ----------
    figures : FIGURE
        Figures to run, for example cormode2012_fig5. By default all figures.
    profile
        Size of the runs: quick (takes minutes) or paper (as large as in the paper, takes hours).
    parameters : -p NAME=VALUE
        Value of a parameter of a figure. For several values, separate them by commas, or by semicolons if the
        values are lists. The command then runs the figure for each value.
    data
        Dataset to use instead of the figure's own dataset. The same as -p data=NAME.
    yes
        Start more than 200 runs without asking you.
    workers
        Number of figures that run at the same time. By default one per core of your computer.
    results
        Folder for the results. By default experiments/results.
    force
        Run all figures again, even if nothing has changed. The command then ignores stored results.
    only_failed
        Run only the figures that failed in their last run.
    changed
        Run a figure again only if its notebook, its data or the code for this figure changed. By default, the
        command runs it again after any change of the code.
    timeout
        Time limit of each cell of a notebook, in seconds. By default 600, or 6 hours with --profile paper.
    notebooks
        Folder that contains the notebooks. By default notebooks.

    Many machines
    -------------
    scheduler : ADDRESS|FILE
        Dask cluster that does the work. Give the address of its scheduler, or the scheduler's JSON file.
    insecure
        Accept an unencrypted connection (tcp://) to another machine.
    """
    from workbench.figures import find_notebooks, results_folder
    from workbench.figures.batch import reproduce as run_notebooks
    from workbench.figures.recorded import compare, sentence
    from workbench.figures.site import write, write_comparison
    from workbench.figures.status import MANY, Task, tasks
    from workbench.trials.running import SCHEDULER, SCHEDULER_INSECURE

    if scheduler is not None:  # where trials run, except those that measure times
        options.connected(scheduler, insecure).shutdown()
        is_file = Path(scheduler).exists()  # kernels run in another folder
        os.environ[SCHEDULER] = str(Path(scheduler).resolve()) if is_file else scheduler
        os.environ[SCHEDULER_INSECURE] = "1" if insecure else ""
    notebooks = notebooks or project_folder() / "notebooks"
    results = results or results_folder()
    settings = [*(parameters or ()), *([f"data={data}"] if data else ())]
    chosen: list[Task] = []
    if settings and not figures:
        raise ValueError("-p needs the names of figures: their parameters are their own")
    if settings:
        names = list(dict.fromkeys(figures or ()))
        chosen = tasks(names, find_notebooks(notebooks), profile, settings)
    if len(chosen) > MANY and not yes:
        raise ValueError(f"these are {len(chosen)} runs; to start more than {MANY} say --yes")
    runs: dict[str, NotebookRun] = {}
    how = options.taken(run_notebooks, context.params)
    how |= {"notebooks": notebooks, "results": results, "settings": settings}
    try:
        run_notebooks(figures or (), **how, on_change=_announcer(runs))
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
    outcomes = compare(results) if profile == "quick" else {}
    screen.say(f"Report: {write(results, profile, outcomes)}")
    said = "" if settings else sentence(outcomes, runs)
    if said:
        screen.say(said)
    if failed:
        raise typer.Exit(1)


def _announcer(runs: dict[str, NotebookRun]) -> Callable[[NotebookRun], None]:
    """Return a function that prints a line when the state of a run changes, and stores the run in `runs`. It
    may be called from any thread.
    """
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
    """Return the state of a run in words."""
    text = {"done": f"done in {run.seconds:.1f} s", "kept": "up to date"}.get(
        run.state, run.state
    )
    if run.verdicts:
        counts = ", ".join(f"{n} {name}" for name, n in run.verdicts.items() if n)
        text = f"{text} ({counts})"
    return f"{text}: {run.error}" if run.state == "failed" else text


# Export


def export(
    names: list[str],
    *,
    parameters: list[str] | None = None,
    to: Annotated[Path | None, typer.Option(file_okay=False)] = None,
    width: str = "page",
    panels: str = "",
    font: str = "sans",
    formats: str = "pdf,svg,png,csv,tex,md",
    profile: str = "quick",
) -> None:
    """Write pictures and tables of figures for your own paper.

    The files are pictures, the numbers as CSV, and tables in LaTeX and Markdown.

    The command uses stored results of earlier runs. The noise comes from a seed, so the same command always
    writes the same files. `workbench whereis FILE` shows the command that made a file.

    Parameters
    ----------
    names : NAME
        Figures or mechanisms, for example cormode2012_fig5 or PrivTree. After the names, you can give values
        of parameters, for example epsilon=0.5.
    parameters : --parameter -p NAME=VALUE
        Value of a parameter. You can repeat this option.
    to
        Folder for the files. By default experiments/results/exported.
    width : WIDTH
        Width of the pictures: column, page, slide, or a number of centimetres.
    panels : LETTERS
        Panels to draw, for example ac for the panels a and c. By default all panels.
    font
        Font of the pictures: serif or sans.
    formats : --format
        Formats to write, separated by commas: pdf, svg, png, csv, tex or md.
    profile
        Size of the run: quick (takes minutes) or paper (as large as in the paper, takes hours).
    """
    chosen = [name for name in names if "=" not in name]
    settings = [name for name in names if "=" in name]
    if not chosen:
        raise ValueError("name a figure or a mechanism")
    settings += parameters or []
    found = [_of_name(name) for name in chosen]

    from workbench.figures import results_folder
    from workbench.figures.exported import parse_formats, write
    from workbench.figures.plots import on_page

    kinds = parse_formats(formats)
    with on_page(width, font):  # refuses what is not allowed before anything runs
        pass
    folder = to or results_folder() / "exported"
    if panels and any(isinstance(x, str) for x in found):
        raise ValueError("--panels is for figures: the panel of a mechanism is drawn whole")
    for x in found:
        for one in _exports(x, settings, profile, panels):
            for path in write(one, folder, width=width, font=font, formats=kinds):
                screen.say(path)


def _of_name(name: str) -> str | type[Figure]:
    """Return the name of a mechanism, or the class of a figure, that a name stands for."""
    from workbench.figures import find_figure, find_notebooks
    from workbench.value import did_you_mean

    if mechanisms.find(name) is not None:
        return name
    try:
        return find_figure(name)
    except ValueError:
        figures = find_notebooks(project_folder() / "notebooks")
        near = did_you_mean(name, [*mechanisms.__all__, *figures])
        if not near.startswith(". Did you mean"):
            near = ". An example is cormode2012_fig5 or ThresholdSampling"
        raise ValueError(f"no figure or mechanism {name!r}{near}") from None


def _exports(
    named: str | type[Figure], settings: Sequence[str], profile: str, panels: str
) -> Iterator[Export]:
    """Yield one export for every combination of parameter values, if parameters have several values."""
    from workbench import widgets
    from workbench.figures import results_folder
    from workbench.figures.exported import of_figure
    from workbench.figures.status import grid

    if isinstance(named, str):
        yield widgets.from_settings(named, settings).to_export()
        return
    values = [named.at(profile, **given) for given in grid(named, settings)]
    for figure in dict.fromkeys(values):
        yield of_figure(figure, profile, results_folder() / "store", panels)


# Whereis

_SAID = "figure title profile parameters release datasets files seeds noise commit versions"


def whereis(file: Path, *, check: bool = False) -> None:
    """Show which command made a file.

    With --check, the command runs a figure again, and compares the new results with those in the file. The
    exit code is 1 if they differ. The command never makes a release again.

    Parameters
    ----------
    file
        File that some command made: a picture, a table, a release, or the folder of a saved figure.
    check
        Run the figure again, and compare the new results with those in the file.
    """
    from workbench.estimates import files as provenance

    record = provenance.read(file)
    rows = [(name.capitalize(), _text(record.get(name))) for name in _SAID.split()]
    if "mechanism" in record:
        from workbench.estimates.release import Release

        rows = [*Release.load(file).describe(), *rows]
    screen.rows(rows)
    words = _words(record)
    if words:
        screen.say(f"\n{shlex.join(words)}")
    if check:
        _check(file, record, words)


def _text(x: Any) -> str:
    """Return one entry of a record as text."""
    if isinstance(x, Mapping):
        return ", ".join(f"{name} {y}" for name, y in x.items())
    return "; ".join(map(str, x)) if isinstance(x, list) else str(x or "")


def _words(record: Mapping[str, Any]) -> list[str]:
    """Return the words of the command that makes a figure. Return none for a release, or if another program
    wrote the file.
    """
    try:
        words = shlex.split(str(record.get("command", "")))
    except ValueError:
        return []
    return words if words[:2] in (["workbench", "export"], ["workbench", "reproduce"]) else []


def _check(file: Path, record: Mapping[str, Any], words: list[str]) -> None:
    from workbench.estimates import files as provenance
    from workbench.figures.saved import row_digest

    if not words or "rows" not in record or record.get("noise") == "system":
        raise ValueError(
            f"{file} is not of a figure with simulated noise that a command made: only these run again"
        )
    if row_digest(_rows_again(record, words)) == record["rows"]:
        screen.say("It was run again: all rows agree, times left out.")
        return
    is_same = provenance.commit() == record.get("commit")
    then = "" if is_same else "; it was made by other sources"
    screen.complain(f"it was run again, and rows differ{then}")
    raise typer.Exit(1)


def _rows_again(record: Mapping[str, Any], words: list[str]) -> pd.DataFrame:
    """Run the figure that a record names, with its parameters, and return the rows. No words from the record
    are run as a command, because the file may be untrusted.
    """
    from workbench import widgets
    from workbench.figures.exported import rows_again

    if record.get("profile") == "explorer":
        settings = [word for word in words[3:] if "=" in word and not word.startswith("-")]
        return widgets.from_settings(words[2], settings).to_export().rows
    with tempfile.TemporaryDirectory() as store:
        return rows_again(record, Path(store))
