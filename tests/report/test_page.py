"""The page: all that was saved is on it, nothing comes from elsewhere, it fits a screen."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from tests.report.saved import ROWS, figure, notebook, status
from workbench import report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with all there can be: figures, a table, a tour, a failure, an old figure."""
    tmp_path = tmp_path_factory.mktemp("results")
    about = "# Figure 2\n\nPage 8. **Claim.** It wins where $\\theta \\ge \\tfrac{1}{2}$."
    reading = "**Reading the figure.** Lower.\n\n$$p = \\frac{2\\alpha^\\theta}{1+\\alpha}$$"
    differ = "## Where we differ\n\nBy 2×, <script>alert(1)</script> ![x](http://e.org/x.png)"
    rows = ROWS.assign(by_theorem="permute and flip")
    for stem in ("cormode2012_fig10", "cormode2012_fig2"):
        folder = figure(tmp_path, stem, "Error & ε", cells=(about, reading, differ), rows=rows)
        status(folder)
    figure(tmp_path, "cormode2012_table1", fig=None, verdicts=[], cells=["# Table"])
    failed = figure(tmp_path, "cormode2012_fig3")
    status(failed, state="failed", cell="In [3]: f()", error="ValueError: a < b")
    notebook(failed, "# half", name="cormode2012_fig3.partial")
    tour = tmp_path / "quick" / "00_tour"
    notebook(tour, "# The tour", "Welcome")
    status(tour)
    return report.write(tmp_path, "quick")


class Seen(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


OUTCOMES = [f"td .v.{kind}" for kind in ("holds", "differs", "depends", "undecided")]


@pytest.mark.slow
def test_everything_is_on_the_page(page):
    text = page.read_text(encoding="utf-8")
    order = [
        "00_tour",
        "cormode2012_fig2",
        "cormode2012_fig3",
        "cormode2012_fig10",
        "cormode2012_table1",
    ]
    assert [attrs["id"] for attrs in Seen(page).all("section")][:5] == order
    for words in (
        "18 statements", "holds 6", "differs 3", "undecided 3", "not testable here 3",
        "depends on what is not printed 3", "θ: 20 ✗, 65 ✓", "section 5",
        "follows from the definition",
        "<td>Trips</td>", "<code>Trips(2)</code>",
        "Error &amp; ε", "filter &lt; sampling", "ours is &lt;denser&gt;",
        "The tour", "Page 8.", "Reading the figure.", "Where we differ", "permute and flip",
        "workbench reproduce cormode2012_fig2 --profile quick", "1 min 20 s", "1.5 s",
    ):  # fmt: skip
        assert words in text, words
    for attrs in Seen(page).all("a"):
        if not attrs["href"].startswith("#"):
            assert (page.parent / attrs["href"]).exists(), attrs


def test_a_failed_notebook_shows_as_failed(page):
    text = page.read_text(encoding="utf-8")
    assert "1 notebook failed" in text and "In [3]: f() — ValueError: a &lt; b" in text
    assert "of an earlier run" in text and "cormode2012_fig3.partial.ipynb" in text


def test_nothing_runs_and_nothing_is_fetched(page):
    seen = Seen(page)
    assert not seen.all("script") and not seen.all("link") and not seen.all("iframe")
    pictures = [attrs["src"] for attrs in seen.all("img")]
    assert len(pictures) == 3 and all(src.startswith("data:image/svg+xml") for src in pictures)
    assert not [a for _, a in seen.tags for name in a if name.startswith("on")]
    text = re.sub(r"data:[^\"]*", "", page.read_text(encoding="utf-8"))
    assert set(re.findall(r"https?://[^\s\"<]*", text)) == {
        "http://www.w3.org/1998/Math/MathML"
    }
    assert "&lt;script&gt;alert(1)" in text


def test_tables_are_accessible(page):
    seen = Seen(page)
    assert len(seen.all("caption")) == len(seen.all("table")) == 5
    assert all("scope" in attrs for attrs in seen.all("th"))
    assert all(attrs["alt"] for attrs in seen.all("img"))


def test_an_empty_page_says_so(tmp_path):
    (tmp_path / "quick").mkdir()
    assert "Nothing has been run yet" in report.write(tmp_path, "quick").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_is_readable_in_a_browser(page, scheme):
    """No sideways scrolling, no request, no complaint; text stands out from its background."""
    sync = pytest.importorskip("playwright.sync_api")
    flags = (
        "--no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=flags.split())
        tab = browser.new_page(color_scheme=scheme)
        said, asked = [], []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(page.as_uri())
        for width in (390, 800, 1280):
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        table = "document.querySelector('.scroll')"
        tab.set_viewport_size({"width": 800, "height": 900})
        assert tab.evaluate(f"{table}.scrollWidth <= {table}.clientWidth"), "the summary is cut"
        assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
        behind = _luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        for selector in ("body", ".soft", "a", *OUTCOMES):
            color = tab.evaluate(
                f"getComputedStyle(document.querySelector('{selector}')).color"
            )
            light, dark = sorted((_luminance(color), behind), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (scheme, selector)
        browser.close()
    assert not said and all(url.startswith(("file:", "data:")) for url in asked)


def _luminance(color):
    """Relative luminance of rgb(…), as in WCAG 2."""
    parts = [int(x) / 255 for x in re.findall(r"\d+", color)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
