"""Pages ask no outside host: every request of every page in this folder is recorded, and judged.

The fixture `opened` fails each test of a page that makes a request to another machine: the dashboard of
`workbench explore`, JupyterLab, the page of a bank and the report.
"""

import pytest

from tests.browser.conftest import outside, recorded
from tests.figures.test_site import pages, top  # noqa: F401

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
ASKS = {
    "http://an.invalid/picture": "<img src='http://an.invalid/picture'>",
    "https://a.invalid/font": "<style>@font-face {font-family: f; src: url(https://a.invalid/font)} "
    "p {font-family: f}</style><p>words</p>",
    "http://in.invalid/frame": "<iframe srcdoc=\"<img src='http://in.invalid/frame'>\"></iframe>",
    "ws://a.invalid/socket": "<script>new WebSocket('ws://a.invalid/socket')</script>",
}


@pytest.mark.parametrize("address", ASKS)
def test_a_request_that_leaves_the_machine_is_seen(browser, address):
    context = recorded(browser)
    page = context.pages[0]
    page.set_content(ASKS[address])
    for _ in range(100):
        if outside(context.asked):
            break
        page.wait_for_timeout(50)
    assert outside(context.asked) == [address]
    context.close()


def test_the_report_asks_nobody(opened, top):  # noqa: F811
    for page in pages(top):
        opened.goto(page.as_uri())
        opened.wait_for_load_state("networkidle")
    assert len(opened.context.asked) >= len(pages(top))
