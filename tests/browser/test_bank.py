"""The page of a bank, and its panel, in a real browser: by keys alone, on a narrow screen."""

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.conftest import served
from tests.widgets.test_bank import running
from workbench import DP, Bound, Domain, Marginals, Session, SparseTable

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
DOMAIN = Domain(("sex", "place"), (2, 3), (("F", "M"), ("Bern", "Genf", "<b>Chur</b>")))


def test_a_question_is_chosen_and_a_pair_is_followed(opened, tmp_path):
    table = SparseTable.from_keys(DOMAIN, range(6), np.full(6, 50), Bound())
    with Session.open(tmp_path / "x.session", table, DP(2.0), total=300) as session:
        session.ask(Marginals(1), 1.0)
    with running(tmp_path / "x.session") as page:
        opened.set_viewport_size(dict(width=390, height=844))
        opened.emulate_media(color_scheme="dark")
        opened.goto(page.address)
        place, sex = (opened.locator(f"select[name={name}]") for name in ("a1", "a0"))
        place.focus()
        opened.keyboard.press("ArrowDown")  # each value
        sex.focus()
        opened.keyboard.press("f")
        opened.locator("input[name=error]").press("Enter")
        answer = opened.locator("#answer")
        answer.locator("text=<b>Chur</b>").wait_for()
        assert answer.locator("tbody").first.locator("tr").count() == 3
        assert answer.locator("svg").count() == 3
        assert (place.input_value(), sex.input_value()) == ("*", "=F")
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
        assert not opened.locator("select[name=b1]").is_visible()
        with opened.expect_request("**"):  # the same question, of a bank that may know more
            opened.click("form button")
        assert (
            opened.evaluate("getComputedStyle(document.body).backgroundColor")
            == "rgb(22, 24, 28)"
        )
        opened.wait_for_load_state()
        opened.locator(".wbank-map a").focus()
        opened.keyboard.press("Enter")
        opened.wait_for_function("document.querySelector('select[name=a0]').value === '*'")
        assert answer.locator("tbody").first.locator("tr").count() == 6
        assert opened.locator("script").count() == 0


def test_a_panel_keeps_the_focus_and_shows_the_answer(opened, tmp_path):
    cells = map(new_code_cell, ["from workbench import widgets", "widgets.bank()"])
    nbformat.write(new_notebook(cells=[*cells]), tmp_path / "01_explore.ipynb")
    with served("explore", tmp_path, tmp_path, 8992) as address:
        opened.set_viewport_size(dict(width=390, height=600))
        opened.emulate_media(color_scheme="dark")
        opened.goto(address)
        panel, focused = opened.locator(".wbank"), opened.locator(":focus")
        panel.locator("select[name=a1]").select_option("*")
        error = panel.locator("input[name=error]")
        error.fill("1e-9")
        error.press("Enter")
        answer = panel.locator(".wbank-answer")
        answer.locator("caption", has_text="Answer to Education").wait_for()
        assert answer.get_by_text("remain of 1-DP").is_visible()
        assert focused.get_attribute("name") == "error"
        error.fill("100")
        panel.locator("form button").click()
        answer.locator("[data-spend], td:has-text('free')").first.wait_for()
        assert focused.inner_text() == "Ask"
        cell = panel.locator("[data-pair]").first
        cell.focus()
        opened.keyboard.press("Enter")
        caption = answer.locator("caption", has_text="Answer to Gender & Education")
        caption.wait_for()
        assert focused.get_attribute("data-pair") == "a0=%2A&a1=%2A"
        place = answer.bounding_box()
        assert 0 <= place["y"] + 1 < 600 or place["y"] + place["height"] <= 601
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
        offer = answer.locator("[data-spend]").first
        offer.click()
        opened.wait_for_function("!document.querySelector('[data-spend]')")
        assert (
            panel.locator("details", has_text="What was bought").locator("tbody tr").count()
            == 3
        )
        assert focused.inner_text() == "Ask"
