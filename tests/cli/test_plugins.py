"""Somebody's own package: its mechanism and its figure work wherever ours do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.commands import run_command
from workbench import compiled
from workbench.cli import app

ROOT = Path(__file__).parents[2]
RUN = "from workbench.cli import main; main()"
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "outsiders"
version = "1.0"

[project.entry-points."workbench.mechanisms"]
OutsiderHistogram = "outsiders.histogram:OutsiderHistogram"

[project.entry-points."workbench.figures"]
outsiders2026_fig1 = "outsiders.figure:Fig1"

[tool.setuptools]
packages = ["outsiders"]
"""
FIGURE = '''
from workbench import DP, RandomRanges, Sweep
from workbench.trials.claims import Claim, Finding
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilon, seeds
from workbench.trials.metrics import MeanAbsoluteError
from workbench.figures.plots import Panel
from workbench.value import value

from outsiders.histogram import OutsiderHistogram


@value
class Fig1(Figure):
    """An outsider's histogram."""

    id = "outsiders2026_fig1"
    title = "Error of an outsider's histogram"
    page = "nowhere"
    quick = {"seeds": 3}
    claims = (
        Claim.of_one("o-1", "It errs.", lambda rows, _: Finding(bool(rows.value.mean() > 0), "yes")),
    )

    epsilon: float = epsilon(1.0)
    seeds: int = seeds(20)

    def sweeps(self):
        """One table, one mechanism, three sizes of ranges."""
        metrics = [MeanAbsoluteError(RandomRanges(size, 10)) for size in (1, 10, 100)]
        table = GaussianSparse(m=1000)
        return {"a": Sweep([table], [OutsiderHistogram(DP(self.epsilon))], metrics, self.seeds)}

    def panels(self, rows):
        """One panel."""
        return [Panel("error", {"panel": "a"}, "query_size")]
'''


def workbench(*arguments, cwd, path=""):
    paths = [str(path), str(ROOT)] if path else [str(ROOT)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", RUN, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def table(tmp_path):
    (tmp_path / "rows.csv").write_text("hour\n3\n4\n4\n")
    (tmp_path / "domain.json").write_text('{"hour": 24}')
    return tmp_path


def release(more, cwd, path=""):
    line = "release rows.csv --domain domain.json --bound 1,1 --unit person --epsilon 1"
    return workbench(*f"{line} --out out.parquet {more}".split(), cwd=cwd, path=path)


def test_a_module_that_is_named_is_known_and_no_other(table):
    made = workbench("new", "mechanism", "OutsiderHistogram", cwd=table)
    assert made.returncode == 0 and "workbench laws outsider_histogram:Outsider" in made.stdout
    assert len((table / "outsider_histogram.py").read_text().splitlines()) <= 52
    unknown = release("--mechanism OutsiderHistogram", cwd=table)
    assert unknown.returncode == 2 and "no mechanism 'OutsiderHistogram'" in unknown.stderr
    done = release("--mechanism OutsiderHistogram --with outsider_histogram", cwd=table)
    assert done.returncode == 0, done.stderr
    shown = workbench("show", "out.parquet", cwd=table)  # which knows nothing of the module
    assert "OutsiderHistogram(" in shown.stdout and shown.returncode == 0


FILTER = """
from workbench.mechanisms.protocol import value
from workbench.mechanisms import HighPassFilter

@value
class TwiceFiltered(HighPassFilter):
    \"\"\"As ours, under another name.\"\"\"

    series = "outsider's filter"
"""


@pytest.mark.slow
def test_advice_is_given_about_a_mechanism_of_a_plug_in(table):
    (table / "twice_filtered.py").write_text(FILTER)
    asked = ("advise", "--domain", "domain.json", "--epsilon", "1", "--size", "10")
    asked += ("--records", "500", "--cells", "20")
    done = workbench(*asked, "--with", "twice_filtered", cwd=table)
    assert done.returncode == 0, done.stderr
    assert "outsider's filter" in done.stdout
    assert "outsider's" not in workbench(*asked, cwd=table).stdout


DATASET = """
from workbench import PUBLIC, Domain, SparseTable
from workbench.value import value

@value
class Diary:
    truth_public = True

    def load(self):
        return SparseTable.from_keys(Domain(("day",), (7,)), [3], [2], PUBLIC)
"""


def test_datasets_of_a_module_are_listed_and_no_other_class_of_it(table, monkeypatch):
    (table / "diaries.py").write_text(DATASET)
    monkeypatch.setattr("workbench.datasets.published.verify", list)
    monkeypatch.setattr("workbench.figures.figure.data_in_use", list)
    monkeypatch.syspath_prepend(table)
    assert compiled.other_datasets() == []
    monkeypatch.setenv(compiled.WITH, "diaries")
    assert compiled.other_datasets() == [("Diary", "diaries")]
    listed = CliRunner().invoke(app, ["data", "list"])
    assert listed.exit_code == 0 and "Diary" in listed.output


@pytest.mark.parametrize(
    "name, text, why",
    [
        ("nosuchmodule", None, "--with nosuchmodule: there is no such module"),
        ("halfwritten", "def f(:", "--with halfwritten: SyntaxError"),
        ("failing", "1 / 0", "--with failing: ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("command", ["data path Adult", "advise", "--help"])
def test_a_command_stops_at_once_at_a_module_that_cannot_be_imported(
    table, monkeypatch, command, name, text, why
):
    monkeypatch.chdir(table)
    for variable in (compiled.WITH, "PYTHONPATH"):
        monkeypatch.setenv(variable, os.environ.get(variable, ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    if text:
        Path(f"{name}.py").write_text(text)
    assert why in run_command(f"{command} --with {name}", 2).stderr


@pytest.mark.slow
def test_bad_names_are_said_in_a_line(table):
    again = workbench("new", "mechanism", "mine", cwd=table)
    assert again.returncode == 2 and "need the name of a class" in again.stderr
    missing = release("--mechanism X --with no_such_module", cwd=table)
    assert missing.returncode == 2 and "there is no such module" in missing.stderr
    (table / "broken.py").write_text("import no_such_thing")
    broken = release("--mechanism X --with broken", cwd=table)
    assert "--with broken: No module named 'no_such_thing'" in broken.stderr
    (table / "other.py").write_text("x = 1")
    lacking = release("--mechanism other:Y", cwd=table, path=table)
    assert "module other has no Y" in lacking.stderr


@pytest.mark.slow
def test_an_installed_package_is_known_by_its_entry_points(table, tmp_path):
    assert workbench("new", "mechanism", "OutsiderHistogram", cwd=table).returncode == 0
    package = table / "source" / "outsiders"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (table / "outsider_histogram.py").rename(package / "histogram.py")
    (package / "figure.py").write_text(FIGURE)
    (package.parent / "pyproject.toml").write_text(PROJECT)
    site = table / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site]
    built = subprocess.run(
        [*install, package.parent], capture_output=True, text=True, timeout=300
    )
    if built.returncode and "No matching distribution" in built.stderr:
        pytest.skip("no package index is reached, and the package's builder is not installed")
    assert built.returncode == 0, built.stderr

    done = release("--mechanism OutsiderHistogram --noise laplace", cwd=table, path=site)
    assert done.returncode == 0, done.stderr
    results = table / "results"
    run = ("reproduce", "outsiders2026_fig1", "-p", "epsilon=0.5,1", "--results", str(results))
    done = workbench(*run, cwd=table, path=site)
    assert done.returncode == 0, done.stdout + done.stderr
    folders = {path.parent.name for path in results.glob("quick/*/manifest.json")}
    assert folders == {"outsiders2026_fig1", "outsiders2026_fig1,epsilon=0.5"}
    assert "holds" in (results / "quick" / "outsiders2026_fig1" / "verdicts.csv").read_text()
    assert len(list((results / "store").iterdir())) == 6  # kept by its sources
    drawn = workbench(
        "export", "OutsiderHistogram", "--to", str(table / "exported"), cwd=table, path=site
    )
    assert drawn.returncode == 0, drawn.stderr
