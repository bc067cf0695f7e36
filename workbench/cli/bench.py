"""`workbench bench`: how fast we are beside our peers, as ratios measured in one run."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen
from workbench.compiled import pd

_COLUMNS = ["what", "ours", "peer", "ratio", "limit", "met"]
_RUN = (
    "import runpy, sys; runpy.run_path(sys.argv[1])['main']().to_csv(sys.argv[2], index=False)"
)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="All, if none is named.")
    ] = None,
) -> None:
    """Measure: run experiments/benchmarks/<name>.py, one after another, each in its own process."""
    from workbench.compiled import project_folder

    folder = project_folder() / "experiments" / "benchmarks"
    scripts = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
    if not scripts:
        raise FileNotFoundError(f"{folder} holds no benchmarks")
    for name in names or ():
        if name not in scripts:
            raise ValueError(f"no benchmark {name!r}; there are: {', '.join(scripts)}")
    screen.say(machine())
    failed = False
    for name in names or scripts:
        try:
            rows = _measure(scripts[name])
        except subprocess.CalledProcessError as e:
            last = (e.stderr or "").strip().splitlines()[-1:]
            screen.complain(f"{name}: {' '.join(last) or f'ended with code {e.returncode}'}")
            failed = True
            continue
        cells = rows.reindex(columns=_COLUMNS).fillna("").map(_cell)
        screen.table(name, _COLUMNS, cells.to_numpy(), right=_COLUMNS[1:5])
    if failed:
        raise typer.Exit(1)


def machine() -> str:
    """What the numbers were measured on."""
    from importlib.metadata import version

    try:
        cpu = Path("/proc/cpuinfo").read_text()
        model = next(
            x.split(":")[1].strip() for x in cpu.splitlines() if x.startswith("model name")
        )
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {screen.size(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'))}"
    return (
        f"{model}, {os.cpu_count()} cores{memory}; Python {platform.python_version()}, "
        f"numpy {version('numpy')}"
    )


def _measure(script: Path) -> pd.DataFrame:
    """What the script's `main()` returns, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "rows.csv"
        project = str(script.parents[2])
        paths = os.pathsep.join(filter(None, [project, os.environ.get("PYTHONPATH", "")]))
        subprocess.run(
            [sys.executable, "-c", _RUN, str(script), str(out)],
            env=os.environ | {"PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        return pd.read_csv(out)


def _cell(x: object) -> str:
    if isinstance(x, float):
        return f"{x:.3g}"
    return {"True": "yes", "False": "NO"}.get(str(x), str(x))
