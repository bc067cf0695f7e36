"""The explorer in a real browser: JupyterLab, the dashboard, and the page that needs no kernel."""

import json
import re
import shutil
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import CHROMIUM, served
from workbench import widgets

ROOT = Path(__file__).parents[2]
FIRST = "01_explore.ipynb"

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed"),
]


def command(root):
    return root.locator("[data-what='the command'] code").first.text_content()


def settled(page, root, text):
    """Once the command says so, and the picture is exact."""
    page.wait_for_function(
        "([root, text]) => root.dataset.exact === 'true' && "
        "root.querySelector(\"[data-what='the command'] code\").textContent.includes(text)",
        arg=[root.element_handle(), text],
    )


def drag(page, root, name, share, *, back=False):
    """Take a slider's handle to a share of its way, as a hand does, and perhaps back again."""
    slider = root.locator(f"[data-name={name}] input[type=range]")
    slider.scroll_into_view_if_needed()
    slider.hover()
    box = slider.bounding_box()
    now = float(slider.input_value()) / float(slider.get_attribute("max"))
    y, at = box["y"] + box["height"] / 2, lambda s: box["x"] + 8 + s * (box["width"] - 16)
    page.mouse.move(at(now), y)
    page.mouse.down()
    for k in range(1, 6):
        page.mouse.move(at(now + (share - now) * k / 5), y)
    if back:
        page.mouse.move(at(now), y)
    page.mouse.up()


def used(page, root, tmp_path):
    """What a person does with the first panel, and what must come of it."""
    picture, status = root.locator(".wb-charts svg").first, root.locator(".wb-message")
    assert command(root) == "workbench export summaries"
    before = picture.inner_html()

    drag(page, root, "epsilon", 0.9)
    settled(page, root, "epsilon=")
    assert picture.inner_html() != before
    told = float(re.search(r"epsilon=(\S+)", command(root)).group(1))
    assert (
        2 <= told <= 10
        and f"DP(epsilon={told})" in root.locator(".wb-code").first.text_content()
    )
    assert f"{told:g}-DP" in root.locator(".wb-facts dl").text_content().replace(".0-DP", "-DP")

    asked, spoken = int(root.get_attribute("data-seq")), command(root)
    drag(page, root, "epsilon", 0.5, back=True)
    page.wait_for_function(
        "([root, asked]) => +root.dataset.seq > asked + 1 && root.dataset.exact === 'true'",
        arg=[root.element_handle(), asked],
    )
    assert command(root) == spoken

    slider = root.locator("[data-name=epsilon] input[type=range]")
    slider.focus()  # keys reach it, and not the notebook
    place = int(slider.input_value())
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert int(slider.input_value()) == place - 2
    page.wait_for_function(
        "told => !document.body.textContent.includes(`epsilon=${told}`)", arg=told
    )

    box = root.locator("[data-name=epsilon] .wb-box")
    box.fill("-1")
    box.press("Enter")
    wrong = root.locator(".wb-error")
    wrong.wait_for(state="visible")
    assert "epsilon = -1.0 is not allowed" in wrong.inner_text()
    assert "Traceback" not in page.text_content("body")
    assert root.locator(".wb-charts.wb-old, .wb-facts.wb-old").count() == 2
    assert status.inner_text() == ""
    box.fill("0.25")
    box.press("Enter")
    settled(page, root, "epsilon=0.25")
    assert not wrong.is_visible() and root.locator(".wb-old").count() == 0
    box.fill("")  # says nothing
    box.press("Enter")
    assert box.input_value() == "0.25" and not wrong.is_visible()

    root.locator("button", has_text="Draw again").click()
    settled(page, root, "seed=1")
    root.get_by_label("Copy the export command").click()
    assert page.evaluate("navigator.clipboard.readText()") == command(root)

    root.locator("button", has_text="Export").click()
    link = status.locator("a")
    link.wait_for()
    with page.expect_download() as coming:
        link.click()
    coming.value.save_as(tmp_path / "figure.zip")
    shutil.unpack_archive(tmp_path / "figure.zip", tmp_path)
    (folder,) = tmp_path.glob("summaries_*")
    assert json.loads((folder / "manifest.json").read_text())["command"] == command(root)
    assert (folder / f"{folder.name}.pdf").read_bytes()[:4] == b"%PDF"


def stopped(page, root):
    """Stop ends long work, and what follows it works."""
    density = root.locator("[data-name=density] .wb-box")
    size = root.locator("[data-name=m] .wb-box")
    for box, x in ((density, "0.5"), (size, "10000000")):
        box.fill(x)
        box.press("Enter")
    settled(page, root, "m=10000000")
    root.locator(".wb-bands input").check()
    stop = root.locator(".wb-stop")
    page.wait_for_function("b => !b.disabled", arg=stop.element_handle())
    stop.click()
    said = "root => /stopped after [0-9]+ of 20/.test(root.querySelector('.wb-message').textContent)"
    page.wait_for_function(said, arg=root.element_handle())
    assert stop.is_disabled()
    root.locator(".wb-bands input").uncheck()
    size.fill("2000000")
    size.press("Enter")
    settled(page, root, "m=2000000 ")


def test_in_jupyterlab(opened, tmp_path):
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    book = json.loads((ROOT / "notebooks" / FIRST).read_text())
    book["cells"].pop()  # which draws all of a page, for half a minute
    (notebooks / FIRST).write_text(json.dumps(book))
    with served("lab", tmp_path, notebooks, 8941) as address:
        opened.goto(address)
        opened.wait_for_selector(".jp-Notebook .jp-CodeCell")
        opened.wait_for_selector("text=Python 3 (ipykernel) | Idle")
        opened.click('li.lm-MenuBar-item:has-text("Run")')
        opened.click('li.lm-Menu-item:has-text("Run All Cells")')
        root = opened.locator("[data-panel=summaries]").first
        root.locator(".wb-charts svg").first.wait_for()
        used(opened, root, tmp_path)
        stopped(opened, root)
        assert opened.locator(".jp-Notebook.jp-mod-editMode").count() == 0
    assert opened.wrong == []


def test_as_a_dashboard(opened, tmp_path):
    with served("explore", tmp_path, ROOT / "notebooks", 8951) as address:
        for path in ("/", "/api/kernels"):  # nobody else on this machine may look
            stranger = HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=30)
            stranger.request("GET", path)
            assert stranger.getresponse().status in (302, 403)
        opened.goto(address)
        root = opened.locator("[data-panel=summaries]")
        root.locator(".wb-charts svg").first.wait_for()
        assert "import" not in opened.inner_text("body").split("from workbench import *")[0]
        assert opened.locator(".jp-InputArea-editor:visible, .highlight:visible").count() == 0
        for name in widgets.ALL:
            opened.locator(f"[data-panel={name}] figure").first.wait_for()
        used(opened, root, tmp_path)
        stopped(opened, root)
    assert opened.wrong == []
