"""A figure under its own parameters, moved in a dashboard by hand."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.conftest import CHROMIUM, served

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed"),
]
TINY = "seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100, 200), large=(500, 1000)"
MOVED = "document.querySelector('.widget-html-content').textContent.includes('epsilon=0.5')"


def test_a_move_draws_the_figure_again_and_says_what_makes_the_same(opened, tmp_path):
    cells = [
        "from workbench import widgets",
        f"panel = widgets.figure('cormode2012_fig3', {TINY})",
        f"panel.results = __import__('pathlib').Path({str(tmp_path)!r})\npanel",
    ]
    book = tmp_path / "01_explore.ipynb"
    nbformat.write(new_notebook(cells=[*map(new_code_cell, cells)]), book)
    with served("explore", tmp_path, tmp_path, 8972) as address:
        opened.goto(address)
        text = opened.locator(".widget-text", has_text="epsilon").locator("input")
        text.fill("0.5")
        text.press("Enter")
        opened.wait_for_function(MOVED)
        assert opened.locator("img.widget-image").evaluate("image => image.naturalWidth") > 400
        said = opened.locator(".widget-html-content").first.text_content()
        assert "not the paper's setting: " in said and "epsilon = 0.5" in said
        opened.screenshot(path=tmp_path / "figure.png", full_page=True)
        text.fill("0")
        text.press("Enter")
        opened.get_by_text("epsilon = 0 is not allowed").wait_for()
        assert not opened.wrong
