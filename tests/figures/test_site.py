"""The pages: all that was saved is on them, nothing comes from elsewhere, they fit a screen."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from tests.figures.saved import ROWS, figure, notebook, status
from workbench.figures import site as report_site
from workbench.figures.site import write
from workbench.trials import claims

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OUTCOMES = ("holds", "differs", "depends", "undecided", "untestable", "hollow")


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    """A site with all there can be: figures, a table, a tour, a failure, an old figure."""
    tmp_path = tmp_path_factory.mktemp("results")
    about = (
        "# Figure 2: errors\n\nPage 8. **Claim.** It wins where $\\theta \\ge \\tfrac{1}{2}$."
    )
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
    figure(tmp_path, "04_accounting", fig=None, cells=["# A tutorial that judges statements"])
    write(tmp_path, "quick")
    return tmp_path / "quick"


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


def pages(top):
    return [top / "report.html", *sorted((top / "report").glob("*.html"))]


def text(top, name):
    return " ".join((top / name).read_text(encoding="utf-8").split())


def test_the_front_page_counts_what_holds_by_paper_with_what_is_hollow_apart(top):
    front = text(top, "report.html")
    for words in (
        "For 0 of 1 papers, no statement is contradicted, and 3 of 9 decided statements hold (33 %)",
        "follows from the definition 3", "contradicted 3",
        "needs runs 3", "needs data 3", "holds for some unprinted value 3",
        "A summary with a tenth of the cells answers queries as accurately as the full noisy table.",
        "needs data: OnTheMap of 2008", "the paper&#39;s generator",
        "Differentially Private Publication of Sparse Data",
        "1 notebook failed",
    ):  # fmt: skip
        assert words in front, words
    squares = [a for a in Seen(top / "report.html").all("a") if "square" in a.get("class", "")]
    assert len(squares) == 18, "a statement of a paper each; those of tutorials are not counted"
    assert all(" — " in a["aria-label"] and "#" in a["href"] for a in squares)
    assert {a["data-outcome"] for a in squares} == {*claims.COLUMNS.values()}


def test_a_figure_stands_with_what_is_said_of_it(top):
    page = text(top, "report/cormode2012_fig2.html")
    for words in (
        "Outcome by θ", "1 of 2 values", "section 5", "follows from the definition", "Page 8.",
        "<code>Trips(2)</code>", "Error &amp; ε", "filter &lt; sampling",
        "ours is &lt;denser&gt;", "Reading the figure.", "Where we differ", "<mfrac>",
        "workbench reproduce cormode2012_fig2 --profile quick", "1 min 20 s", "1.5 s",
        "../cormode2012_fig2/rows.csv", "../cormode2012_fig2/cormode2012_fig2.pdf",
        "&lt;script&gt;alert(1)", "permute and flip",
    ):  # fmt: skip
        assert words in page, words
    assert "In [3]: f() — ValueError: a &lt; b" in text(top, "report/cormode2012_fig3.html")
    assert "from an earlier run" in text(top, "report/cormode2012_fig3.html")
    assert "Welcome" in text(top, "report/00_tour.notebook.html")


def test_pages_lead_to_the_next_and_every_link_leads_somewhere(top):
    following = {}
    for page in pages(top):
        for attrs in Seen(page).all("a"):
            address = attrs["href"].partition("#")[0]
            assert not address or (page.parent / address).exists(), (page.name, address)
        after = [a["href"] for a in Seen(page).all("link") if a.get("rel") == "next"]
        following[page.name] = after
    assert following["cormode2012_fig2.html"] == ["cormode2012_fig3.html"]
    assert following["cormode2012_fig3.html"] == ["cormode2012_fig10.html"]
    assert following["04_accounting.html"] == []


def test_nothing_is_fetched_and_no_page_runs_what_came_with_a_notebook(top):
    for page in pages(top):
        seen = Seen(page)
        assert [a["src"].rpartition("/")[2] for a in seen.all("script")] == ["script.js"]
        assert not seen.all("iframe")
        assert not [a for _, a in seen.tags for name in a if name.startswith("on")]
        links = set(
            re.findall(r"https?://[^\s\"<]*", re.sub(r"data:[^\"]*", "", page.read_text()))
        )
        assert links <= {"http://www.w3.org/1998/Math/MathML"}, page.name
        policy = seen.all("meta")[3]["content"]
        assert policy.startswith("default-src 'none'") and "http" not in policy


def test_pages_are_accessible(top):
    for page in pages(top):
        seen = Seen(page)
        assert len(seen.all("h1")) == 1 or "notebook" in page.name, page.name
        assert all("scope" in attrs for attrs in seen.all("th"))
        assert all("alt" in attrs for attrs in seen.all("img"))
        ids = [attrs["id"] for _, attrs in seen.tags if "id" in attrs]
        assert len(ids) == len(set(ids)), page.name
        described = {a["aria-describedby"] for _, a in seen.tags if "aria-describedby" in a}
        assert described <= {*ids}


def test_pages_of_what_is_gone_go_and_notebooks_are_not_converted_twice(tmp_path, monkeypatch):
    figure(tmp_path, "cormode2012_fig2", cells=["# Figure 2: a"])
    gone = figure(tmp_path, "cormode2012_fig3", cells=["# Figure 3: b"])
    write(tmp_path, "quick")
    pages = tmp_path / "quick" / "report"
    assert (pages / "cormode2012_fig3.html").exists()
    shutil.rmtree(gone)
    monkeypatch.setattr(report_site, "notebook_body", None)  # is not called again
    write(tmp_path, "quick")
    assert not (pages / "cormode2012_fig3.html").exists()
    assert (pages / "cormode2012_fig2.notebook.html").exists()


def test_an_empty_report_says_so(tmp_path):
    assert "Nothing has been run yet" in write(tmp_path, "quick").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_is_readable_in_a_browser(top, scheme):
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
        for page in pages(top):
            tab.goto(page.as_uri())
            for width in (390, 800, 1400):
                tab.set_viewport_size({"width": width, "height": 900})
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, page.name
        tab.goto((top / "report" / "cormode2012_fig2.html").as_uri())
        assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
        behind = _luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        for selector in ("body", ".soft", "a", *(f"dd .v.{kind}" for kind in OUTCOMES)):
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
