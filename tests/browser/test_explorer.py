"""The explorer in a real browser: JupyterLab, and the dashboard, by light and in the dark."""

import json
import re
import shutil
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.browser.conftest import served

ROOT = Path(__file__).parents[2]
FIRST = "01_explore.ipynb"

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


def command(root):
    return root.locator("[data-what='the command'] code").first.text_content()


def settled(page, root, text):
    """Once the command says so, and the picture is exact."""
    page.wait_for_function(
        "([root, text]) => root.dataset.exact === 'true' && "
        "root.querySelector(\"[data-what='the command'] code\").textContent.includes(text)",
        arg=[root.element_handle(), text],
    )


def gone(page, root, text):
    """Once no code and no command says so any more."""
    page.wait_for_function(
        "([root, text]) => ![...root.querySelectorAll('.wb-code')].some((c) => c.textContent.includes(text))",
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
    start = "workbench export ThresholdSampling compare=HighPassFilter tau=auto size=20"
    assert command(root) == start
    before = picture.inner_html()
    assert root.locator(".wb-top [data-name]").count() == 4

    drag(page, root, "epsilon", 0.9)
    settled(page, root, "epsilon=")
    assert picture.inner_html() != before
    told = float(re.search(r"epsilon=(\S+)", command(root)).group(1))
    code = root.locator(".wb-code").first.text_content()
    assert 2 <= told <= 10 and code.count(f"DP(epsilon={told})") == 2
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
    wrong = root.locator("[data-name=epsilon] .wb-error")
    wrong.wait_for(state="visible")
    assert "epsilon = -1.0 is not allowed" in wrong.inner_text()
    assert "Traceback" not in page.text_content("body")
    assert root.locator(".wb-charts.wb-old, .wb-facts.wb-old").count() == 2
    box.fill("0.25")
    box.press("Enter")
    settled(page, root, "epsilon=0.25")
    assert not wrong.is_visible() and root.locator(".wb-old").count() == 0
    box.fill("")  # says nothing
    box.press("Enter")
    assert box.input_value() == "0.25" and not wrong.is_visible()

    root.locator(".wb-more summary").click()
    drag(page, root, "tau", 0.7)  # which takes the place of the size
    gone(page, root, "size=20")
    assert "tau=" in command(root) and "tau=auto" not in command(root)
    size = root.locator("[data-name=size] .wb-box")
    page.wait_for_function("box => box.value === ''", arg=size.element_handle())
    root.locator("[data-name=compare] select").select_option("none")
    gone(page, root, "other =")
    assert "compare=" not in command(root)

    root.locator("button", has_text="Draw again").click()
    settled(page, root, "seed=1")
    root.get_by_label("Copy the export command").click()
    assert page.evaluate("navigator.clipboard.readText()") == command(root)
    root.get_by_label("Copy the link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "#ThresholdSampling?epsilon=0.25&" in link and "token" not in link

    root.locator("button", has_text="Export").click()
    saved = status.locator("a")
    saved.wait_for()
    with page.expect_download() as coming:
        saved.click()
    coming.value.save_as(tmp_path / "figure.zip")
    shutil.unpack_archive(tmp_path / "figure.zip", tmp_path)
    (folder,) = tmp_path.glob("ThresholdSampling_*")
    assert json.loads((folder / "manifest.json").read_text())["command"] == command(root)
    assert (folder / f"{folder.name}.pdf").read_bytes()[:4] == b"%PDF"
    return link


def stopped(page, root):
    """Stop ends long work, and what follows it works."""
    root.locator(".wb-chance input").check()
    stop = root.locator(".wb-stop")
    page.wait_for_function("b => !b.disabled", arg=stop.element_handle())
    stop.click()
    said = "root => /stopped after [0-9]+ of 20/.test(root.querySelector('.wb-message').textContent)"
    page.wait_for_function(said, arg=root.element_handle())
    assert stop.is_disabled()
    root.locator(".wb-chance input").uncheck()
    root.locator("button", has_text="Reset").click()
    settled(page, root, "export ThresholdSampling")


def live():
    """The kernels of this process's servers."""
    commands = {p.pid: p.cmdline() for p in psutil.Process().children(recursive=True)}
    return {pid for pid, words in commands.items() if "ipykernel_launcher" in words}


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
        root = opened.locator("[data-panel=ThresholdSampling]").first
        root.locator(".wb-charts svg").first.wait_for()
        used(opened, root, tmp_path)
        stopped(opened, root)
        assert opened.locator(".jp-Notebook.jp-mod-editMode").count() == 0


def test_as_a_dashboard(opened, tmp_path):
    with served("explore", tmp_path, ROOT / "notebooks", 8951) as address:
        for path in ("/", "/api/kernels"):  # nobody else on this machine may look
            stranger = HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=30)
            stranger.request("GET", path)
            assert stranger.getresponse().status in (302, 403)
        opened.goto(address)
        root = opened.locator("[data-panel=ThresholdSampling]")
        root.locator(".wb-charts svg").first.wait_for()
        assert (
            "import mechanisms"
            not in opened.inner_text("body").split("from workbench import *")[0]
        )
        assert opened.locator(".jp-InputArea-editor:visible, .highlight:visible").count() == 0
        for name in ("HierarchicalHistogram", "PrivTree", "SRA", "StabilityHistogram"):
            opened.locator(f"[data-panel={name}] figure").first.wait_for()
        opened.locator(".wbank-map").first.wait_for()
        assert (
            opened.locator("[data-panel=figures] option").first.inner_text()
            == "choose a figure"
        )
        link = used(opened, root, tmp_path)
        stopped(opened, root)

        opened.emulate_media(color_scheme="dark")
        opened.wait_for_function(
            "root => root.classList.contains('wb-dark')", arg=root.element_handle()
        )
        opened.set_viewport_size(dict(width=390, height=844))
        opened.wait_for_function("document.documentElement.scrollWidth <= 390")

        kernels = live()
        opened.goto("about:blank")
        opened.wait_for_timeout(
            3000
        )  # the next page's kernel is ready; the last page's has ended
        assert len(kernels - live()) == 1
        opened.goto(link)  # the cookie of the first visit lets it in
        settled(opened, opened.locator("[data-panel=ThresholdSampling]"), "epsilon=0.25")
