"""The page of `workbench publish`, from a table to the zip file."""

import json
import re
import stat
import subprocess
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.browser.conftest import browser, opened  # noqa: F401
from tests.widgets.pages import until
from workbench.owner import Budget
from workbench.owner.publication import alone_in
from workbench.widgets import publishing
from workbench.widgets.publishing_page import PublishingPage, curve

STEP2 = dict(user="patient", person="patient", people="", row="<i>visit</i>", rows="visits")
STEP4 = {"count": "rows", "users": "50", "per_user": "2", "spread": "2", "limit": "3"}
WORDS = {
    "title": "Visits <b>2025</b>",
    "publisher": "City",
    "contact": "a@b.example",
    "licence": "CC0",
}


@pytest.fixture
def page(tmp_path):
    rows = {
        "patient": [f"p{i % 40}" for i in range(90)],
        "sex": ["F", "M", "Q7"] * 30,
        "age": 47,
    }
    pd.DataFrame(rows).to_csv(tmp_path / "visits.csv", index=False)
    return PublishingPage(tmp_path / "publication.json", tmp_path)


def send(page, do="", **fields):
    page.handle({"fields": fields, "do": do})
    while "data-poll" in page.html and page.step == 4:
        page.handle({})
    return page.html


def columns(**more):
    return {"on1": "1", "rule1": "labels", "text1": "F, M, <u>no</u>", "try1": "Z", **more}


def filled(page):
    """The page at step 6, with everything chosen."""
    send(page, "step 1", table="visits.csv")
    send(page, "step 2", **STEP2)
    send(page, "step 3", **columns())
    send(page, "step 4", **STEP4)
    assert 'name="total" value="2"' in send(page, epsilon="1", budget="b.sqlite", total="2")
    send(page, "ledger", epsilon="1", budget="b.sqlite", total="2")
    send(page, "step 5", epsilon="1", budget="b.sqlite")
    return send(page, folder="visits-2025", **WORDS)


def settled(page):
    until(lambda: page.state.is_published, 60.0)
    until(lambda: not page.state.is_running)


def test_choices_are_on_disk_and_no_value_of_the_table_is_shown(page, tmp_path):
    shown = [page.html]
    shown.append(send(page, "step 1", table="visits.csv"))
    shown.append(send(page, "step 2", **STEP2))
    shown.append(send(page, **columns()))
    assert "the row is left out" in shown[-1] and "&lt;u&gt;no" in shown[-1]
    assert 'value="FILL IN, FILL IN"' in send(page, **columns(rule1="range", text1=""))
    shown.append(send(page, **columns(other1="1")))
    assert "→ other" in shown[-1]
    shown.append(send(page, "step 3", **columns(says1="Sex, as the patient <u>says</u>.")))
    assert page.state.about.columns == {"sex": "Sex, as the patient <u>says</u>"}
    shown.append(send(page, **STEP4))
    best = publishing.bounds(page.state).bound
    send(page, "recommended", **STEP4)
    assert page.state.options["bound"] == f"{best},{best},{best}"
    shown.append(send(page, **STEP4 | {"count": "people"}))
    assert page.state.options["bound"] == "3,1" and page.state.counts_people
    (belief,) = page.state.about.beliefs  # which readers of the data sheet see
    assert belief.startswith("the bound leaves out about 16 % of what would be counted")
    for html in shown:
        assert "Q7" not in html and "p39" not in html
        assert "<i>visit" not in html and "<u>" not in html
    again = PublishingPage(page.state.source, tmp_path)
    assert again.state.about == page.state.about and again.state.columns == page.state.columns
    assert json.loads((tmp_path / "domain.json").read_text())["missing_user"] == "drop"


@pytest.mark.parametrize(
    ("step", "fields", "words"),
    [
        (0, {"table": "../other.csv"}, "not in the list"),
        (2, {"on1": "1", "rule1": "edges", "text1": "x"}, "need numbers in ascending order"),
        (0, {"table_name": ""}, ">Choose a table.<"),
        (3, STEP4 | {"limit": "none"}, "Bound: need a number"),
        (4, {"epsilon": "-1"}, "ε: need a number"),
        (5, {"folder": "../away"}, "without a path"),
        (5, {"folder": "taken"}, "exists already"),
    ],
)
def test_bad_input_is_said_and_changes_nothing(page, tmp_path, step, fields, words):
    (tmp_path / "taken").mkdir()
    send(page, "step 1", table="visits.csv")
    send(page, "step 2", **STEP2)
    send(page, "step 3", **columns())
    before = page.state.source.read_bytes()
    page.step = step
    assert words in send(page, **fields)
    assert page.state.source.read_bytes() == before


def test_labels_are_asked_for_when_their_step_ends(page):
    send(page, "step 1", table="visits.csv")
    send(page, "step 2", **STEP2)
    ticked = columns(text1="", try1="")
    html = send(page, **ticked)
    assert "need a list" not in html and 'role="alert"' not in html
    assert ">List the labels of sex.<" in send(page, "step 3", **ticked) and page.step == 2
    send(page, "step 1", **ticked)
    assert page.step == 1  # back is always possible


def test_a_file_that_is_no_table_is_refused(page, tmp_path):
    (tmp_path / "wrong.parquet").write_text("no parquet")
    assert 'role="alert"' in send(page, "step 1", table="wrong.parquet")
    assert page.state.page.get("table") != "wrong.parquet"
    send(page, "step 1", table="visits.csv")
    (tmp_path / "visits.csv").rename(tmp_path / "visits-2026.csv")  # last year's is gone
    html = PublishingPage(page.state.source, tmp_path).html
    assert "no such file" in html and 'value="visits-2026.csv"' in html
    named = PublishingPage(page.state.source, tmp_path, [str(tmp_path / "visits-2026.csv")])
    assert named.html.count('value="visits-2026.csv"') == 1


def test_a_column_that_this_years_table_lacks_is_named(page, tmp_path):
    filled(page)
    pd.DataFrame({"patient": [1], "gender": ["F"]}).to_csv(tmp_path / "visits.csv", index=False)
    assert "no column sex" in send(page, "publish", folder="visits-2025", **WORDS)
    page.step = 2
    assert "This table has no column sex" in send(page, **columns(), on2="1", rule2="kept")
    assert "sex" in page.state.columns  # no step drops it in silence
    pd.DataFrame({"pid": [1], "sex": ["F"]}).to_csv(tmp_path / "visits.csv", index=False)
    page.step = 1
    html = send(page)
    assert '<option value="patient" selected>patient (this table lacks it)' in html
    assert "no column gender, patient" in send(page, "step 5", **STEP2)
    assert not page.state.is_running and len(Budget(tmp_path / "b.sqlite").ledger) == 0


@pytest.mark.parametrize(
    ("rule", "text", "tried", "seen"),
    [
        ("time year-month", "2016-01, 2016-12, %d.%m.%Y", "31.03.2016", "→ 2016-03"),
        ("time date", "2016-01-01, 2016-12-31, %Y-%m-%d", "2016-02-29", "→ 2016-02-29"),
        ("time year", "2015, 2016, %Y-%m-%d", "2014-02-28", "→ the row is left out"),
        ("time month", "%d.%m.%Y", "31.03.2016", "→ 3"),
        ("map", "Bern=BE, Thun=BE, Chur=GR", "Thun", "→ BE"),
        ("map", "towns.csv", "Chur", "→ GR"),
        ("list weekdays", "", "Friday", "→ Friday"),
    ],
)
def test_rules_are_typed_previewed_and_shown_again(page, tmp_path, rule, text, tried, seen):
    (tmp_path / "towns.csv").write_text("sex,canton\nBern,BE\nChur,GR\n")
    send(page, "step 1", table="visits.csv")
    send(page, "step 2", **STEP2)
    html = send(page, on1="1", rule1=rule, text1=text, try1=tried)
    assert seen in html and f'value="{rule}"\nselected' in html
    assert text in html and publishing.rule_of(*publishing.words_of(page.state.columns["sex"]))


def test_a_rule_that_the_page_cannot_say_is_kept(page):
    for rule in (
        {"time": "hour", "zone": "Europe/Zurich"},
        {"edges": [0, 9], "above": "clamp"},
    ):
        assert publishing.words_of(rule | {"other": "drop"})[0] == "kept"


def test_names_may_be_read_as_text(page, tmp_path):
    pd.DataFrame({"patient": ["7", "007"], "sex": "F"}).to_csv(tmp_path / "t.csv", index=False)
    send(page, "step 1", table="t.csv")
    send(page, "step 2", **STEP2)
    send(page, **columns())
    html = send(page, "look")
    assert "1 row is refused" in html and "Step 2 can read names as text" in html
    page.step = 1
    send(page, "step 2", **STEP2, text="1")
    assert page.state.recipe.words(tmp_path)[-2:] == ["--user-type", "text"]
    assert "2 users" in send(page, "look", **columns())


def test_progress_is_shown_until_mechanisms_are_compared(page, monkeypatch):
    filled(page)
    advice, slow = publishing.simulation(page.state.believed, 1.0).result(), Future()
    monkeypatch.setattr(publishing, "simulation", lambda *_: slow)
    page.handle({"do": "step 4"})
    assert 'data-poll="1"><progress aria-label' in page.html
    slow.set_result(advice)
    page.handle({})
    assert 'name="mechanism"' in page.html and "<progress" not in page.html


@pytest.mark.slow
def test_two_tabs_and_a_second_press_publish_once(page, tmp_path):
    html = filled(page)
    assert "Visits &lt;b&gt;2025" in html and "disabled" not in html.split("</nav>")[1]
    other = PublishingPage(page.state.source, tmp_path)
    other.step = 5
    for each in (page, other, page):
        send(each, "publish", folder="visits-2025", **WORDS)
    settled(page)
    assert len(Budget(tmp_path / "b.sqlite").ledger) == 1
    assert (tmp_path / "visits-2025.zip").exists()
    assert (tmp_path / "visits-2025.log").stat().st_mode & 0o077 == 0
    later = PublishingPage(page.state.source, tmp_path)  # after the browser was closed
    later.step = 5
    assert "are written" in send(later) and later.state.about.edition == 2
    send(later, "publish")
    send(later, "next")
    assert later.state.folder is None
    assert "exists already" in send(later, folder="visits-2025", **WORDS)
    send(later, "publish", folder="second", **WORDS)
    settled(later)
    send(later, "next")
    html = send(later, folder="third", **WORDS)
    assert "ε = 0 of 2 remains" in html and "The last spend was at 20" in html
    assert 'data-do="publish"\ndisabled' in html


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_log_that_somebody_made_before_is_replaced(page, tmp_path, monkeypatch, kind):
    filled(page)
    monkeypatch.setattr(publishing, "_begun", lambda state, words, out: out.write("refused"))
    log, other = tmp_path / "visits-2025.log", tmp_path / "other"
    other.write_text("mine")
    if kind == "link":
        log.symlink_to(other)
    else:
        log.touch()
        log.chmod(0o666)
    publishing.start(page.state)
    assert log.read_text() == "refused" and other.read_text() == "mine"
    assert log.lstat().st_mode == stat.S_IFREG | 0o600


def test_one_process_publishes_from_a_folder(page, tmp_path):
    with alone_in(tmp_path):
        assert page.state.is_running
    assert not page.state.is_running


@pytest.mark.xdist_group("browser")
@pytest.mark.slow
def test_in_a_browser_from_the_file_to_the_zip(page, opened, tmp_path):  # noqa: F811
    words = ["-c", "from workbench.cli import main; main()", "publish", "--no-browser"]
    server = subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        address = next(
            found[0] for line in server.stdout if (found := re.search(r"http\S+", line))
        )
        opened.goto(address)
        opened.check("input[value='visits.csv']", timeout=90_000)
        opened.click(".ends .main")
        opened.select_option("[name=user]", "patient")
        opened.click(".ends .main")
        opened.check("[name=on1]")
        opened.fill("[name=text1]", "F, M")
        opened.fill("[name=try1]", "M")  # at once, while the page still answers
        opened.press("[name=try1]", "Tab")
        opened.get_by_text("→ M").wait_for()
        for heading in ("How much may", "How strong is"):
            opened.click(".ends .main")
            opened.get_by_role("heading", name=heading).wait_for(timeout=90_000)
        opened.click(".ends .main")
        for name, text in (WORDS | {"folder": "out"}).items():
            opened.fill(f"[name={name}]", text)
        opened.press("[name=folder]", "Tab")
        opened.click("[data-do=publish]:enabled")
        opened.get_by_role("heading", name="Publishing").wait_for()
        opened.close()  # which stops nothing
    finally:
        server.terminate()
        server.wait(30)
    settled(PublishingPage(page.state.source, tmp_path))
    assert (tmp_path / "out.zip").exists()


def test_noise_and_what_is_left_out_are_drawn_where_they_are():
    """Neither is flat, although each is much smaller than the error at one end."""
    errors = [
        SimpleNamespace(bound=x, noise=8.0 * x, truncation=2000.0 / x)
        for x in (1, 2, 5, 10, 20, 50)
    ]
    for each in errors:
        each.error = each.noise + each.truncation
    drawn = curve(SimpleNamespace(errors=errors, bound=20), 20)
    for kind, rises in (("noise", True), ("truncation", False)):
        heights = [-float(point.split(",")[1]) for point in drawn["lines"][kind].split()]
        assert heights == sorted(heights, reverse=not rises) and len({*heights}) == 6
        assert all(drawn["top"] <= -height <= drawn["base"] for height in heights)
