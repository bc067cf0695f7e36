"""How long `workbench reproduce --profile quick` takes, from the records that its last run left."""

from __future__ import annotations

from experiments.benchmarks import _timing as timing
from workbench.compiled import project_folder
from workbench.figures import find_notebooks
from workbench.figures.status import read_status

SORTS = 4800
CORES = 2


def main():
    """Seconds of every notebook that ran to its end, and all of them on two cores."""
    quick = project_folder() / "experiments" / "results" / "quick"
    notebooks = find_notebooks(project_folder() / "notebooks")
    records = {stem: read_status(quick / stem) for stem in notebooks}
    done = {stem: s["seconds"] for stem, s in records.items() if s.get("state") == "done"}
    rows = [timing.row(stem, timing.format_seconds(time)) for stem, time in done.items()]
    missing = ", ".join(stem for stem in notebooks if stem not in done)
    if not notebooks or missing:
        missing = f"no record of {missing or 'any notebook'}: run `workbench reproduce` first"
        return [*rows, timing.row("all", missing, limit=f"≤ {SORTS:,} sorts")]
    total = together(notebooks, done)
    limit = timing.at_most_sorts(total, SORTS)
    return [*rows, timing.row(f"all, on {CORES} cores", timing.format_seconds(total), **limit)]


def together(notebooks: dict, seconds: dict[str, float]) -> float:
    """What the recorded times add up to: timings run alone, the others on the first free core."""
    alone = [stem for stem, path in notebooks.items() if '"alone"' in path.read_text("utf-8")]
    cores = [0.0] * CORES
    for stem in notebooks:
        if stem not in alone:
            cores.sort()
            cores[0] += seconds[stem]
    return max(cores) + sum(seconds[stem] for stem in alone)
