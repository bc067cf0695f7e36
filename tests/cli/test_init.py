"""A project of one's own, from a wheel: everything works outside the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from workbench.cli import app

ROOT = Path(__file__).parents[2]
RUN = "from workbench.cli import main; main()"
PANEL = """
from pathlib import Path
from workbench.widgets.figure_subject import FigureSubject
subject = FigureSubject("hay2010_fig5", Path("nothing"))
start = {c.name: c.value for c in subject.controls({})}
first, second = subject.saved(start), subject.draw(start, False, None)
print(bool(first.image), bool(second.image), second.lead)
"""


def test_a_project_is_laid_out_and_nothing_is_overwritten(tmp_path):
    result = CliRunner().invoke(app, ["init", str(tmp_path / "mine")])
    assert result.exit_code == 0 and "workbench reproduce" in result.stdout
    mine = tmp_path / "mine"
    assert (mine / "notebooks" / "cormode2012" / "fig5.ipynb").is_file()
    assert (mine / "experiments" / "cormode2012" / "fig5.py").is_file()
    assert (mine / "experiments" / "cormode2012" / "statements.toml").is_file()
    assert (mine / "data" / "raw").is_dir() and not (mine / "experiments" / "results").exists()
    again = CliRunner().invoke(app, ["init", str(mine)])
    assert again.exit_code == 2 and "is not an empty folder" in again.stderr


@pytest.mark.slow
def test_a_wheel_reproduces_lists_and_measures_outside_the_checkout(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT]
    built = subprocess.run(build, capture_output=True, text=True, timeout=300)
    if built.returncode and "No matching distribution" in built.stderr:
        pytest.skip("no package index is reached, and the wheel's builder is not installed")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert {path.name for path in site.iterdir() if "dist-info" not in path.name} == {
        "workbench"
    }
    environment = os.environ | {"PYTHONPATH": str(site)}

    def workbench(*arguments, cwd):
        command = [sys.executable, "-c", RUN, *arguments]
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=500
        )

    assert workbench("init", "mine", cwd=tmp_path).returncode == 0
    mine = tmp_path / "mine"
    assert len([*mine.glob("experiments/*/statements.toml")]) == 5
    done = workbench("reproduce", "hay2010_fig3", "-p", "seeds=1", cwd=mine)
    assert done.returncode == 0, done.stderr
    assert (mine / "experiments" / "results" / "quick" / "report.html").is_file()
    measured = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks", "core"],
        cwd=mine, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert measured.returncode == 0 and "sorts of" in measured.stdout, measured.stderr

    def python(code):
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, cwd=mine, env=environment, text=True)

    assert python("import workbench; print(workbench.__file__)").startswith(str(site))
    assert python(PANEL) == "True True Numbers recorded with the package.\n"
    with open(mine / "experiments" / "hay2010" / "fig5.py", "a") as file:
        file.write("# of my own\n")
    assert python(PANEL) == "True True \n"  # the picture of a run
