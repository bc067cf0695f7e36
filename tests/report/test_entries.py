"""What lies in a folder of results is read as it was saved, or shown as failed."""

from pathlib import Path

from tests.report.saved import figure, notebook, status
from workbench import report


def test_a_figure_whose_files_changed_shows_as_failed(tmp_path):
    folder = figure(tmp_path, "cormode2012_fig2")
    (folder / "rows.csv").write_text("value\n1")
    text = report.write(tmp_path, "quick").read_text(encoding="utf-8")
    assert "This notebook failed" in text and "rows.csv is not the file" in text


def test_entries_stand_in_natural_order_with_what_lies_beside_them(tmp_path):
    for stem in ("cormode2012_fig10", "cormode2012_fig2"):
        figure(tmp_path, stem, cells=["# Notebook"])
    folder = tmp_path / "quick" / "00_tour"
    notebook(folder, "# The tour")
    status(folder)
    entries = report.collect(tmp_path / "quick")
    assert [e.stem for e in entries] == ["00_tour", "cormode2012_fig2", "cormode2012_fig10"]
    assert [e.title for e in entries] == ["The tour", "A title", "A title"]
    assert entries[0].datasets == [] and entries[1].datasets == ["Trips"]
    for _, address in entries[1].links:
        assert (tmp_path / "quick" / Path(address)).is_file(), address
