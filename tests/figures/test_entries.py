"""What lies in a folder of results is read as it was saved, or shown as failed."""

import json

from tests.figures.saved import figure, notebook, status
from workbench import figures
from workbench.datasets import NetTraceTwin, OnTheMapTwin, Ranked
from workbench.figures.entries import collect, count, markdown
from workbench.figures.figure import data_used
from workbench.figures.notebook import FigureRun
from workbench.figures.site import write


def test_a_figure_whose_files_changed_shows_as_failed(tmp_path):
    folder = figure(tmp_path, "cormode2012_fig2")
    (folder / "rows.csv").write_text("value\n1")
    (entry,) = collect(tmp_path / "quick")
    assert "rows.csv is not the file" in entry.failed and entry.statements
    assert all(line.committed and not line.here for line in entry.statements)


def test_a_figure_of_another_version_says_so(tmp_path):
    folder = figure(tmp_path, "cormode2012_fig2")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["trials"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    half = figure(tmp_path, "cormode2012_fig3")
    (half / "manifest.json").write_text('{"id": ')
    killed = figure(tmp_path, "cormode2012_fig4")
    (killed / "manifest.json").unlink()
    (killed / "run.log").touch()
    first, second, third = collect(tmp_path / "quick")
    assert "its run has not ended" in third.failed
    assert (
        "another version of the workbench (Object missing required field `trials`)"
        in first.failed
    )
    assert second.failed


def test_entries_stand_in_natural_order_with_what_lies_beside_them(tmp_path):
    for stem in ("cormode2012_fig10", "cormode2012_fig2"):
        figure(tmp_path, stem, cells=["# Notebook"])
    folder = tmp_path / "quick" / "00_tour"
    notebook(folder, "# The tour")
    status(folder)
    entries = collect(tmp_path / "quick")
    assert [e.stem for e in entries] == ["00_tour", "cormode2012_fig2", "cormode2012_fig10"]
    assert [e.title for e in entries] == ["The tour", "A title", "A title"]
    assert entries[0].datasets == [] and [d.name for d in entries[1].datasets] == ["Trips"]
    pages = tmp_path / "quick" / "report"
    pages.mkdir()
    for _, address, _ in entries[1].files:
        assert (pages / address).is_file(), address


def test_data_is_described_by_what_its_class_says():
    twin, ranked = OnTheMapTwin(), Ranked(NetTraceTwin())
    texts = [repr(twin), "Unknown(3)", repr(ranked)]
    first, unknown, second = data_used(texts, [twin, ranked])
    assert first.kind == "twin" and "47 states" in first.original and first.invented
    assert unknown.kind == "" and unknown.configurations == ("Unknown(3)",)
    assert second.name == "NetTraceTwin" and "NetTrace" in second.original


def test_what_is_half_written_is_shown_as_failed_and_the_pages_are_written(tmp_path):
    folder = figure(tmp_path, "cormode2012_fig2", cells=["# Figure 2: a"])
    (folder / "status.json").write_text('{"state": "failed"')
    (folder / "cormode2012_fig2.ipynb").write_text('{"cells": [')
    (figure(tmp_path, "cormode2012_fig3") / "verdicts.csv").unlink()
    first, second = collect(tmp_path / "quick")
    assert not first.failed and first.title == "A title"
    assert "verdicts.csv" in second.failed
    write(tmp_path, "quick")
    page = tmp_path / "quick" / "report" / "cormode2012_fig2.notebook.html"
    assert "cormode2012_fig2.ipynb cannot be read" in page.read_text()


def test_math_is_mathml_or_its_source():
    assert "<mfrac>" in markdown(r"$\frac{1}{2}$")
    assert 'display="block"' in markdown("$$\nx^2\n$$")
    assert "<code>" in markdown(r"at $\frac{$ or so")
    assert markdown("5$ and 6$") == "<p>5$ and 6$</p>\n"


def test_a_statement_of_several_runs_is_counted_once(tmp_path):
    for name in ("cormode2012_fig5", "cormode2012_fig5,seeds=3"):
        figure(tmp_path, name)
    entries = collect(tmp_path / "quick")
    assert len(entries) == 2 and entries[0].counts == entries[1].counts
    assert count(entries) == entries[0].counts and sum(count(entries).values()) > 0


def test_a_run_with_other_settings_is_not_judged_nor_counted(tmp_path):
    other = figures.find_figure("cormode2012_fig5").at("quick", epsilon=0.5)
    verdicts = [
        v for claim in other.claims for v in claim.not_judged("not the paper's setting")
    ]
    figure(tmp_path, "cormode2012_fig5,epsilon=0.5", verdicts=verdicts)
    stopped = tmp_path / "quick" / "cormode2012_fig5,epsilon=0.1"
    stopped.mkdir()
    status(stopped, state="failed")
    failed, judged = collect(tmp_path / "quick")
    assert not failed.statements and not sum(judged.counts.values())
    assert len(judged.statements) == len(verdicts)
    for line in judged.statements:
        assert (line.outcome, line.reason) == ("not judged", "not the paper's setting")
        assert not line.agreement and not line.committed
    write(tmp_path, "quick")
    assert "decided statements hold" not in (tmp_path / "quick" / "report.html").read_text()
    table = FigureRun(other, "quick", tmp_path).outcomes(verdicts).to_html()
    assert table.count("not the paper's setting") == len(verdicts)
    assert "too short to tell" not in table
