"""A figure under its own parameters in a dashboard; `tests/widgets` tries every stop of every slider."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.conftest import served

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
TINY = "seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100, 200), large=(500, 1000)"


def test_a_move_draws_the_figure_again_and_says_what_makes_the_same(opened, tmp_path):
    cells = [
        "from workbench import widgets",
        f"panel = widgets.figure('cormode2012_fig3', {TINY})",
        f"object.__setattr__(panel.subject, 'results', __import__('pathlib').Path({str(tmp_path)!r}))\npanel",
    ]
    book = tmp_path / "01_explore.ipynb"
    nbformat.write(new_notebook(cells=[*map(new_code_cell, cells)]), book)
    with served("explore", tmp_path, tmp_path, 8972) as address:
        opened.goto(address)
        root = opened.locator("[data-panel=cormode2012_fig3]")
        picture = root.locator(".wb-image img")
        picture.wait_for()
        assert picture.evaluate("image => image.naturalWidth") > 400
        box = root.locator("[data-name=epsilon] .wb-box")
        box.fill("0.5")
        box.press("Enter")
        opened.wait_for_function(
            "root => root.dataset.exact === 'true' && root.textContent.includes('-p epsilon=0.5')",
            arg=root.element_handle(),
        )
        assert "not the paper's setting" in root.locator(".wb-facts").inner_text()
        box.fill("0")
        box.press("Enter")
        wrong = root.locator("[data-name=epsilon] .wb-error")
        wrong.wait_for()
        assert "epsilon = 0.0 is not allowed" in wrong.inner_text()
        assert not opened.wrong
