"""A figure under its own parameters in a dashboard; `tests/widgets` tries every stop of every slider."""

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.conftest import served

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
TINY = "seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100, 200), large=(500, 1000)"

FAILING = """
from pathlib import Path
from workbench.widgets.figure_subject import FigureSubject
from workbench.widgets.panels import Panel

class Failing(FigureSubject):
    def draw(self, values, exact, progress):
        return 1 / 0

Panel(Failing('hay2010_thm4', Path('none')))
"""
SLOW = FAILING.replace("Failing", "Slow").replace("hay2010_thm4", "")
SLOW = SLOW.replace("return 1 / 0", "__import__('time').sleep(600)")


def test_a_choice_does_not_wait_for_the_picture_before(opened, tmp_path):
    book = tmp_path / "01_explore.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(SLOW)]), book)
    with served("explore", tmp_path, tmp_path, 8973) as address:
        opened.goto(address)
        root = opened.locator("[data-panel=figures]")
        choice = root.locator("[data-name=figure] select")
        choice.select_option(label="Hay 2010, Theorem 4: no better tree")
        epsilon = root.locator("[data-name=epsilon] .wb-box")
        for typed in ("0.4", "0"):
            epsilon.fill(typed)
            epsilon.press("Enter")
            opened.wait_for_timeout(200)
        wrong = root.locator("[data-name=epsilon] .wb-error")
        wrong.wait_for(timeout=20_000)
        assert "epsilon = 0.0 is not allowed" in wrong.inner_text()
        epsilon.fill("0.5")
        epsilon.press("Enter")
        wrong.wait_for(state="detached", timeout=20_000)  # long before its picture


def test_a_move_draws_the_figure_again_and_says_what_makes_the_same(opened, tmp_path):
    cells = [
        "from workbench import widgets",
        f"panel = widgets.figure('cormode2012_fig3', {TINY})",
        f"object.__setattr__(panel.subject, 'results', __import__('pathlib').Path({str(tmp_path)!r}))\npanel",
        FAILING,
        "widgets.bank()",
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
        box.fill("0.4")  # and another setting while its picture is drawn
        box.press("Enter")
        opened.wait_for_timeout(500)
        box.fill("0.5")
        box.press("Enter")
        opened.wait_for_function(
            "root => root.dataset.exact === 'true' && root.textContent.includes('-p epsilon=0.5')",
            arg=root.element_handle(),
        )
        assert "not the paper's setting" in root.locator(".wb-facts").inner_text()
        fails = opened.locator("[data-panel=hay2010_thm4]")
        wrong = fails.locator(".wb-stage > .wb-error")
        wrong.wait_for()
        assert wrong.inner_text() == "ZeroDivisionError: division by zero"
        assert fails.locator("img").is_visible() and fails.locator(".wb-old").count() == 2
        box.fill("0")
        box.press("Enter")
        wrong = root.locator("[data-name=epsilon] .wb-error")
        wrong.wait_for()
        assert "epsilon = 0.0 is not allowed" in wrong.inner_text()
        box.fill("0.6")
        box.press("Enter")
        for process in psutil.Process().children(recursive=True):
            if "ipykernel_launcher" in process.cmdline():
                process.kill()  # while it draws
        said = "root => root.querySelector('.wb-message').textContent.startsWith('The kernel has ended')"
        opened.wait_for_function(said, arg=root.element_handle())
        box.fill("0.7")
        box.press("Enter")
        assert root.locator(".wb-busy").count() == 0
        opened.locator(".wbank-answer", has_text="The kernel has ended").wait_for()
        assert opened.locator(".wbank form button").is_disabled()
