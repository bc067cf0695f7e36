"""Notebooks call, choose, show and tell; the quick profile of every one of them runs."""

import ast
import csv
import io
import json
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from experiments.verdicts import contradictions
from tests.rows.check import compare
from workbench.figures import find_figure, find_notebooks, load, parameters_cell

ROOT = Path(__file__).parents[2]
NOTEBOOKS = find_notebooks(ROOT / "notebooks")
VERDICTS = ROOT / "experiments" / "verdicts"
each = pytest.mark.parametrize("figure", NOTEBOOKS)
DRAWN_BY_HAND = {
    "plot",
    "scatter",
    "bar",
    "errorbar",
    "fill_between",
    "imshow",
    "hist",
    "subplots",
}


def cells(path, kind):
    return [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == kind]


def nodes(path):
    for cell in cells(path, "code"):
        yield from ast.walk(ast.parse("".join(cell["source"])))


def literals_of(source):
    return {s.targets[0].id: ast.literal_eval(s.value) for s in ast.parse(source).body}


def comments_of(source):
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def test_there_are_notebooks():
    assert {"00_tour", "cormode2012_table1", "cormode2012_fig2"} <= set(NOTEBOOKS)


@each
def test_defines_nothing_and_loops_over_nothing(figure):
    forbidden = ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.Lambda | ast.Try
    for node in nodes(NOTEBOOKS[figure]):
        assert not isinstance(node, forbidden), (
            f"move {ast.unparse(node)[:60]!r} to the package"
        )


@each
def test_draws_nothing_by_hand_and_touches_no_raw_data(figure):
    for node in nodes(NOTEBOOKS[figure]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            by_hand = node.value.id in ("plt", "ax", "axes") and node.attr in DRAWN_BY_HAND
            assert not by_hand and not node.attr.startswith("read_"), ast.unparse(node)


@each
def test_the_cell_of_parameters_lists_them_as_literals(figure):
    """papermill injects after this cell, so a derived value would keep its old default."""
    (cell,) = (
        c
        for c in cells(NOTEBOOKS[figure], "code")
        if "parameters" in c["metadata"].get("tags", ())
    )
    source = "".join(cell["source"])
    if "open_notebook" in NOTEBOOKS[figure].read_text():
        wanted = parameters_cell(find_figure(figure))
        assert literals_of(source) == literals_of(wanted)
        assert comments_of(source) == comments_of(wanted)
        return
    literals = literals_of(source)
    up = "../" * len(NOTEBOOKS[figure].relative_to(ROOT).parent.parts)
    assert literals == {"profile": "quick", "results": f"{up}experiments/results"}


@each
def test_cells_are_short(figure):
    for cell in cells(NOTEBOOKS[figure], "code"):
        if "parameters" not in cell["metadata"].get("tags", ()):
            assert len(cell["source"]) <= 14 and len("".join(cell["source"])) < 900


@each
def test_is_committed_without_outputs(figure):
    assert not any(
        c["outputs"] or c["execution_count"] for c in cells(NOTEBOOKS[figure], "code")
    )


@each
def test_a_figure_has_a_spec_of_its_name_and_tells_how_to_read_it(figure):
    if figure[:2].isdigit():
        return
    paper, _, stem = figure.partition("_")
    assert (ROOT / "experiments" / paper / f"{stem}.py").exists()
    prose = "\n".join("".join(c["source"]) for c in cells(NOTEBOOKS[figure], "markdown"))
    for heading in ("Reading the", "Where we differ"):
        assert heading in prose


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory):
    """The quick profile of everything, by the command that users type.

    Workers share one folder: who comes second waits for each figure and takes it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    results = folder / "reproduced"
    done = subprocess.run(
        [Path(sys.executable).with_name("workbench"), "reproduce", "--results", str(results)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    return results / "quick", done


run_once = pytest.mark.xdist_group("notebooks")  # by one worker, for all tests of the results


@run_once
@pytest.mark.slow
def test_the_quick_profile_runs_and_ends_with_the_report(reproduced):
    quick, done = reproduced
    assert done.returncode == 0, done.stdout + done.stderr
    assert "report.html" in done.stdout.strip().splitlines()[-1]
    page = (quick / "report.html").read_text()
    assert "<script" not in page and all(id in page for id in NOTEBOOKS if id != "00_tour")


@run_once
@pytest.mark.slow
@each
def test_every_notebook_leaves_its_figure_rows_and_manifest(figure, reproduced):
    folder = reproduced[0] / figure
    manifest = json.loads((folder / "manifest.json").read_text())
    for suffix in ("pdf", "svg", "png"):
        assert (folder / f"{figure}.{suffix}").stat().st_size > 5000
    with open(folder / "rows.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert rows and manifest["profile"] == "quick"


@run_once
@pytest.mark.slow
def test_no_row_moved(reproduced):
    """Of figures that ran on the data that was at hand when their rows were recorded."""
    outcomes = compare(reproduced[0].parent)
    moved = {
        id: outcome for id, outcome in outcomes.items() if outcome not in ("same", "other data")
    }
    assert not moved


@run_once
@pytest.mark.slow
@each
def test_no_quick_verdict_contradicts_the_paper_profile(figure, reproduced):
    if not (VERDICTS / f"{figure.partition('_')[0]}.csv").exists():
        pytest.skip("no paper's")
    assert contradictions(load(reproduced[0] / figure)) == []
