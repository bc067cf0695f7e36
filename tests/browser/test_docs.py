"""The documentation builds without a warning, and opens from disk: no network, a search that answers."""

import shutil
import subprocess
from os import environ

import pytest

from tests.browser.conftest import ROOT

PAGES = (
    "index start papers report report/hay2010 report/hay2010_fig5 mechanisms/SRA tutorials/01_explore api/table"
).split()

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site():
    if not (ROOT / ".venv/docs").exists():
        pytest.skip("what builds the documentation is not installed; run: make docs")
    environment = environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([shutil.which("make"), "docs"], cwd=ROOT, env=environment, check=True)
    return ROOT / "build/docs/html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_pages_open_from_disk_and_fit(site, browser, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    page.close()


def test_search_answers_from_disk(site, browser):
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=stability")
    page.wait_for_selector("#search-results li a")
    assert "StabilityHistogram" in page.locator("#search-results").inner_html()
    page.close()
