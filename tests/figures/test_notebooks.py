"""Notebooks call, choose, show and tell; the quick profile of every one of them runs."""

import ast
import csv
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pandas as pd
import pytest

from experiments.verdicts import committed
from workbench.figures import SavedFigure, find_figure, find_notebooks, load, parameters_cell
from workbench.figures.recorded import OTHER_DATA, SAME, WITHIN, compare
from workbench.figures.saved import TIMED
from workbench.trials import claims
from workbench.trials.claims import UNTESTABLE

ROOT = Path(__file__).parents[2]
NOTEBOOKS = find_notebooks(ROOT / "notebooks")
VERDICTS = ROOT / "experiments" / "verdicts"
RECORDS = ROOT / "tests" / "rows"
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
    assert "Reading the" in prose
    assert "Where we differ" in prose or "What it shows" in prose


WHOLE = {"fan2015_table5", "hay2010_thm4"}  # the command itself compares them with the records
TIMES_DECIDE = {"cormode2012_fig4", "cormode2012_table1"}  # of as many runs as quick takes
FROM_ALL_SEEDS = {  # some rows follow from all seeds: compared in the longest run alone
    "cormode2012_fig5",
    "cormode2012_fig6c",
    "cormode2012_sec45",
    "hay2010_appE",
}
RECORDED = [figure for figure in NOTEBOOKS if (RECORDS / f"{figure}.csv.xz").exists()]


def thin(figure):
    """The least of each effort that leaves the figure's other rows as they are."""
    if figure in WHOLE | TIMES_DECIDE:
        return []
    if "open_notebook" not in NOTEBOOKS[figure].read_text():
        return []
    cls = find_figure(figure)
    return [f"{name}=1" for name in ("seeds", "repeat") if cls.quick.get(name, 1) > 1]


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(True, marks=pytest.mark.slow, id="one seed"),
        pytest.param(False, marks=pytest.mark.long, id="every seed"),
    ],
)
def reproduced(request, tmp_path_factory):
    """The quick profile of everything, and each figure's folder.

    The longest run is `workbench reproduce` as users type it. The other is as short as it can be: rows of
    one seed are among the recorded ones of all, so every figure's are compared.
    """
    settings = {figure: thin(figure) if request.param else [] for figure in NOTEBOOKS}
    groups = {}
    for figure, setting in settings.items():
        groups.setdefault(tuple(setting), []).append(figure)
    results = tmp_path_factory.mktemp("reproduced")
    command = [Path(sys.executable).with_name("workbench"), "reproduce", "--results", results]
    outcomes = {
        setting: subprocess.run(
            [*command, *group, *(word for each in setting for word in ("-p", each))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=1500,
        )
        for setting, group in groups.items()
    }
    folders = {}
    for figure, setting in settings.items():
        values = dict(each.split("=") for each in setting)
        folders[figure] = (
            find_figure(figure).at("quick", **values).name("quick") if setting else figure
        )
    return results, folders, outcomes


run_once = pytest.mark.xdist_group("notebooks")  # by one worker, for all tests of the results


@run_once
def test_the_quick_profile_runs_and_ends_with_the_report(reproduced):
    results, folders, outcomes = reproduced
    for done in outcomes.values():
        assert done.returncode == 0, done.stdout + done.stderr
        assert "report.html" in done.stdout
    assert "have the recorded numbers" in outcomes[()].stdout
    pages = results / "quick" / "report"
    assert all((pages / f"{folder}.html").exists() for folder in folders.values())
    assert all((pages / f"{folder}.notebook.html").exists() for folder in folders.values())


@run_once
@each
def test_every_notebook_leaves_its_figure_rows_and_manifest(figure, reproduced):
    results, folders, _ = reproduced
    folder = results / "quick" / folders[figure]
    manifest = json.loads((folder / "manifest.json").read_text())
    for suffix in ["pdf", "svg", "png"]:
        assert (folder / f"{figure}.{suffix}").stat().st_size > 5000
    with open(folder / "rows.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert rows and manifest["profile"] == "quick"


@run_once
@pytest.mark.parametrize(
    "figure", [id for id in NOTEBOOKS if "draw(" in NOTEBOOKS[id].read_text()]
)
def test_every_executed_notebook_that_draws_holds_its_picture(figure, reproduced):
    results, folders, _ = reproduced
    executed = results / "quick" / folders[figure] / f"{folders[figure]}.ipynb"
    outputs = [output for cell in cells(executed, "code") for output in cell["outputs"]]
    assert any("image/png" in output.get("data", ()) for output in outputs)


@run_once
def test_no_row_moved(reproduced):
    """Of figures that ran on the data that was at hand when their rows were recorded."""
    results, folders, _ = reproduced
    outcomes = compare(results, folders)
    partly = {id for id in FROM_ALL_SEEDS if folders[id] != id}
    moved = {
        id: outcome
        for id, outcome in outcomes.items()
        if outcome not in (SAME, WITHIN, OTHER_DATA) and id not in partly
    }
    assert not moved


@pytest.mark.slow
def test_without_files_rows_are_those_of_synthetic_data(tmp_path):
    """Strings, places and users, in a process that finds no files."""
    figures = ("adaptive2009_fig10", "cormode2012_fig6b", "fan2015_fig8")
    command = [Path(sys.executable).with_name("workbench"), "reproduce", "--results", tmp_path]
    subprocess.run(
        [*command, *figures, "-p", "seeds=1"],
        cwd=ROOT,
        env=os.environ | {"WORKBENCH_DATA": str(tmp_path / "none")},
        check=True,
        capture_output=True,
        timeout=600,
    )
    folders = {each: find_figure(each).at("quick", seeds="1").name("quick") for each in figures}
    outcomes = compare(tmp_path, folders)
    assert [outcomes[figure] for figure in figures] == [SAME] * len(figures)


def contradictions(quick: SavedFigure) -> list[str]:
    """The statements of a quick run that say other than the committed paper run of the figure.

    A quick run agrees or is undecided. Only runs on data of the same classes are compared.
    """
    id = quick.manifest["id"]
    paper = committed(id.partition("_")[0])
    paper = paper[(paper.figure == id) & (paper.claim != "")]
    both = quick.verdicts.merge(paper, on="id", suffixes=("", "_of_paper"))
    against = []
    for v in both.itertuples():
        same = _classes(v.datasets) == _classes("; ".join(quick.manifest["datasets"]))
        if same and v.outcome not in (claims.UNDECIDED, claims.NOT_JUDGED, v.outcome_of_paper):
            told = f"{v.outcome} ({v.measured}), {v.outcome_of_paper} ({v.measured_of_paper})"
            against.append(f"{v.id}, quick and paper: {told}")
    return against


def _classes(datasets: str) -> set[str]:
    """The classes that the configurations of datasets name."""
    return set(re.findall(r"\b(\w+)\(", datasets))


@run_once
@pytest.mark.parametrize("figure", sorted(TIMES_DECIDE))
def test_no_verdict_on_times_contradicts_the_paper_profile(figure, reproduced):
    results, _, _ = reproduced
    assert contradictions(load(results / "quick" / figure)) == []


@pytest.mark.slow
def test_first_cells_load_no_library_of_tables_or_plots():
    heavy = {"matplotlib", "numba", "pandas", "polars", "pyarrow", "scipy", "typer"}
    code = (
        "import sys; from workbench.figures import find_figure\n"
        "for name in sys.argv[1:]:\n"
        "    figure = find_figure(name)\n"
        "    figure.refuse_unknown([], figure.parameters())\n"
        "    figure.at('quick', **{name: f.default for name, f in figure.parameters().items()})\n"
        f"    assert not {heavy!r} & sys.modules.keys(), name"
    )
    ids = [name for name in NOTEBOOKS if "_" in name and not name[0].isdigit()]
    run = [sys.executable, "-c", code, *ids]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("figure", RECORDED)
def test_no_quick_verdict_contradicts_the_paper_profile(figure):
    """On the recorded rows of all seeds, which a run's are found to be; those of times hold none."""
    if not (VERDICTS / f"{figure.partition('_')[0]}.csv").exists():
        pytest.skip("no paper's")
    rows = pd.read_csv(RECORDS / f"{figure}.csv.xz", low_memory=False)
    if "metric" in rows and rows.metric.isin(TIMED).any():
        pytest.skip("times are not recorded")
    verdicts = claims.to_frame(find_figure(figure).at("quick").judge(rows))
    datasets = rows.dataset.dropna().unique() if "dataset" in rows else []
    saved = SavedFigure(RECORDS, {"id": figure, "datasets": [*datasets]}, verdicts)
    assert contradictions(saved) == []


@run_once
@each
def test_a_verdict_speaks_of_no_dataset_that_the_run_had_not(figure, reproduced):
    if "open_notebook" not in NOTEBOOKS[figure].read_text():
        pytest.skip("no figure of its own")
    results, folders, _ = reproduced
    cls = find_figure(figure)
    saved = load(results / "quick" / folders[figure])
    names = cls.parameters()["data"].metadata["choices"] if "data" in cls.parameters() else ()
    used = " ".join(saved.rows.filter(["panel", "name"]).astype(str).stack().unique())
    split = saved.verdicts[saved.verdicts.claim != ""]
    said = " ".join(split[split.outcome != UNTESTABLE].measured)
    assert [name for name in names if name in said and name not in used] == []
