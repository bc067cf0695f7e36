"""Pictures are part of the page, while there is room."""

from tests.report.saved import figure
from workbench import report
from workbench.report import pictures


def test_a_large_drawing_becomes_a_png_and_a_full_page_links(tmp_path, monkeypatch):
    figure(tmp_path, "cormode2012_fig2")
    monkeypatch.setattr(pictures, "LARGEST_SVG", 10)
    assert "data:image/png" in report.write(tmp_path, "quick").read_text(encoding="utf-8")
    monkeypatch.setattr(pictures, "ROOM", 10)
    text = report.write(tmp_path, "quick").read_text(encoding="utf-8")
    assert "data:image" not in text and "too large for this page" in text
