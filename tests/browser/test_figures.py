"""Figures under their own parameters in a dashboard: every slider of every figure, moved by hand."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.conftest import CHROMIUM, ROOT, served
from workbench.widgets.figure_subject import listed_figures

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed"),
]
TINY = "seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100, 200), large=(500, 1000)"
# Recorded rows in place of runs, drawn once for each figure, in the kernel instead of the worker.
RECORDED = f"""
import pandas as pd
from pathlib import Path
from workbench import widgets
from workbench.figures import Figure
from workbench.widgets import figure_subject, panels

panels.PAUSE = 0
panels.worker.run = lambda client, stopped, task, *args: task(*args)
drawn = {{}}

def draw(subject, values, seed, exact, progress):
    if subject._class(values) is None:
        return subject.saved(values)
    figure = subject.at(values)
    if figure.id not in drawn:
        rows = pd.read_csv(f"{ROOT}/tests/rows/{{figure.id}}.csv.xz", low_memory=False)
        quick = type(figure).at("quick")
        type(figure).rows = lambda figure, store=None: rows
        alone = figure_subject.FigureSubject(figure.id, Path())
        drawn[figure.id] = own(alone, alone.settings(quick), seed, exact, None)
    return drawn[figure.id]

own = figure_subject.FigureSubject.draw
figure_subject.FigureSubject.draw = draw
"""


def opened_at(page, tmp_path, cells, port):
    book = tmp_path / "01_explore.ipynb"
    nbformat.write(new_notebook(cells=[*map(new_code_cell, cells)]), book)
    return served("explore", tmp_path, tmp_path, port)


def test_a_move_draws_the_figure_again_and_says_what_makes_the_same(opened, tmp_path):
    cells = [
        "from workbench import widgets",
        f"panel = widgets.figure('cormode2012_fig3', {TINY})",
        f"object.__setattr__(panel.subject, 'results', __import__('pathlib').Path({str(tmp_path)!r}))\npanel",
    ]
    with opened_at(opened, tmp_path, cells, 8972) as address:
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


@pytest.mark.long
def test_every_slider_of_every_figure_can_be_moved(opened, tmp_path):
    with opened_at(opened, tmp_path, [RECORDED, "widgets.figures()"], 8973) as address:
        opened.goto(address)
        root = opened.locator(".wb")
        choice = root.locator("[data-name=figure] select")
        choice.wait_for()
        assert choice.locator("option").first.inner_text() == "choose a figure"
        assert choice.locator("option").count() == len(listed_figures()) + 1
        moved = 0
        for i, id in enumerate(listed_figures(), 1):
            choice.select_option(index=i)
            has = (
                "([root, id]) => root.textContent.includes(id) && root.dataset.exact === 'true'"
            )
            opened.wait_for_function(has, arg=[root.element_handle(), f"reproduce {id}"])
            assert root.locator(".wb-error").count() == 0, id
            picture = root.locator(".wb-image img")
            if picture.count():
                assert picture.evaluate("image => image.naturalWidth") > 200, id
            else:
                assert root.locator(".wb-table table").count() == 1, id
            if root.locator(".wb-more:not([open]):not([hidden]) summary").count():
                root.locator(".wb-more summary").click()
            for name in opened.evaluate(
                "root => [...root.querySelectorAll('.wb-slider')].map((c) => c.dataset.name)",
                root.element_handle(),
            ):
                moved += moved_and_back(opened, root, name)
        assert moved > 150 and not opened.wrong


def moved_and_back(page, root, name):
    """Move a slider by one notch with a key; what comes is a picture, or a sentence beside it."""
    slider = root.locator(f"[data-name='{name}'] input[type=range]")
    before = int(root.get_attribute("data-seq"))
    slider.focus()
    first = slider.input_value()
    page.keyboard.press("ArrowRight")
    if slider.input_value() == first:
        page.keyboard.press("ArrowLeft")
    if slider.input_value() == first:
        return 0
    page.keyboard.press("Tab")
    page.wait_for_function(
        "([root, before]) => +root.dataset.seq > before && "
        "(root.dataset.exact === 'true' || root.querySelector('.wb-error'))",
        arg=[root.element_handle(), before],
    )
    for wrong in root.locator(".wb-error").all():
        place = wrong.evaluate("e => e.closest('[data-name]')?.dataset.name")
        assert place and " need" in wrong.inner_text(), (name, place, wrong.inner_text())
    return 1
