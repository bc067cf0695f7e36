"""The report in a browser: squares, statements that point at their series, and values under the pointer."""

import pandas as pd
import pytest

from tests.browser.conftest import ROOT
from tests.figures.saved import notebook
from workbench import figures
from workbench.figures import site

ID = "cormode2012_fig3"


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    """The report of one figure, drawn from its recorded rows."""
    results = tmp_path_factory.mktemp("results")
    figure = figures.find_figure(ID).at("quick")
    rows = pd.read_csv(ROOT / "tests" / "rows" / f"{ID}.csv.xz")
    verdicts = figure.judge(rows)
    drawing = figure.draw(rows, verdicts)
    how = dict(spec=figure, profile="quick", results=results, verdicts=verdicts)
    notebook(figures.save(drawing, rows, **how), "# Figure 3: errors")
    return site.write(results, "quick").parent


@pytest.fixture
def page(opened):
    opened.set_viewport_size({"width": 1400, "height": 900})
    return opened


def test_a_statement_in_focus_keeps_its_series_and_others_fade(page, top):
    page.goto((top / "report" / f"{ID}.html").as_uri())
    page.locator(".statement[data-marks] summary").first.focus()
    marks = page.evaluate(
        "document.activeElement.closest('.statement').dataset.marks.split(' ')"
    )
    kept = page.evaluate("[...document.querySelectorAll('.drawn .on')].map((g) => g.id)")
    assert kept and {*kept} <= {*marks}  # some marks have no width, and are not drawn
    faded = page.evaluate(
        "[...document.querySelectorAll('.drawn g[id^=series]:not(.on)')]"
        ".map((g) => getComputedStyle(g).opacity)"
    )
    assert faded and set(faded) == {"0.13"}


def test_the_value_under_the_pointer_is_read_out(page, top):
    page.goto((top / "report" / f"{ID}.html").as_uri())
    panels = page.evaluate("JSON.parse(document.getElementById('aggregates').textContent)")
    (series,) = [s for s in panels[0]["series"] if s["name"] == "geometric"]
    x, y = page.evaluate(
        "([x, y]) => { const p = new DOMPoint(x, y).matrixTransform("
        "document.querySelector('.drawn svg').getScreenCTM()); return [p.x, p.y]; }",
        series["places"][2],
    )
    page.mouse.move(x, y)
    at, mean, low, high = series["points"][2]
    assert (
        page.inner_text(".readout") == f"Panel a, geometric, at {at}: {mean} ({low} to {high})"
    )


def test_aggregates_are_the_means_of_the_rows(top):
    saved = figures.load(top / ID)
    rows = saved.rows
    panel = saved.aggregates[0]
    for column, value in panel["where"].items():
        rows = rows[rows[column].astype(str) == value]
    for series in panel["series"]:
        if series["points"]:
            own = rows[rows.series == series["name"]].groupby("query_size").value.mean()
            shown = [float(point[1].replace(",", "")) for point in series["points"]]
            assert shown == pytest.approx(own.tolist(), rel=0.006)


def test_a_link_opens_its_statement_and_the_page_is_short(page, top):
    saved = figures.load(top / ID)
    id = saved.verdicts.id.iloc[-1]
    page.goto(f"{(top / 'report' / f'{ID}.html').as_uri()}#{id}")
    page.wait_for_function("document.querySelectorAll('.statement[open]').length === 1")
    page.goto("about:blank")
    page.goto((top / "report" / f"{ID}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 2250


def test_words_and_outcomes_fade_the_other_squares(page, top):
    page.goto((top / "report.html").as_uri())
    count = page.locator(".square").count()
    page.fill("#sought", "sigma-that-is-nowhere")
    assert page.locator(".square.pale").count() == count
    page.fill("#sought", "filtering")
    found = count - page.locator(".square.pale").count()
    assert 0 < found < count and page.inner_text(".said").startswith(f"{found} of {count}")
    page.fill("#sought", "")
    page.uncheck(".key [value=holds]")
    pale = page.eval_on_selector_all(".square.pale", "all => all.map(a => a.dataset.outcome)")
    assert set(pale) == {"holds"}


def test_a_long_number_wraps_on_a_phone(page, top):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((top / "report" / f"{ID}.html").as_uri())
    page.locator(".statement b").first.evaluate("b => b.textContent = '2 → 7 → 25 '.repeat(9)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
