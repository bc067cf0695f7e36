"""A bank under lists of its labels, and its page for others: free, escaped, and without the table."""

import re
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest

from workbench import (
    DP,
    Bound,
    Domain,
    Marginals,
    NamedMarginals,
    Session,
    SparseTable,
    widgets,
)
from workbench.owner import Bank, Budget
from workbench.owner.bank import Price
from workbench.privacy import ZCDP
from workbench.queries import Products, TableQueries, Together, labelled_queries
from workbench.widgets.bank_page import BankPage, BankView

TOWNS = ("Bern", "St. Gallen", "<script>alert(1)</script>")
DOMAIN = Domain(("sex", "age", "town"), (2, 5, 3), (("F", "M"), range(30, 35), TOWNS))
PEOPLE = 900


def a_table(domain=DOMAIN):
    keys = np.random.default_rng(0).integers(0, domain.size, PEOPLE)
    return SparseTable.from_keys(domain, keys, np.ones(PEOPLE, int), Bound(1, 1))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret-folder") / "secret.session"
    with Session.open(path, a_table(), DP(2.0), total=PEOPLE) as session:
        session.ask(Marginals(1), 0.5)
        session.ask(NamedMarginals((("sex", "age"),)), 0.5)
    return path


@contextmanager
def running(path):
    """The page of a bank, while its server runs."""
    page = BankPage(path)
    thread = threading.Thread(target=page.serve_forever, daemon=True)
    thread.start()
    try:
        yield page
    finally:
        page.shutdown()
        page.server_close()
        thread.join(10)


@pytest.fixture(scope="module")
def page(path):
    with running(path) as page:
        yield page


FEMALE_BY_AGE = {"a0": "=F", "a1": "*"}


def got(page, **fields):
    with urlopen(f"{page.address}?{urlencode(fields)}", timeout=60) as answer:
        return answer.read().decode()


def asked(session, text, error=""):
    """The page for others, once they have asked."""
    return unescape(BankView(session).ask({"q": text, "error": error}).html)


def test_the_page_recalls_what_is_chosen_and_spends_nothing(page, path):
    before = Session.open(path)
    text = got(page, **FEMALE_BY_AGE)
    values, errors = before.bank.recall(
        labelled_queries(DOMAIN, [{"age": a, "sex": "F"} for a in range(30, 35)])
    )
    shown = re.findall(r'<td>(3\d)</td><td class="wbank-number">(\d+)</td>', text)
    assert [int(count) for _, count in shown] == values.round().tolist()
    assert [int(age) for age, _ in shown] == [*range(30, 35)]
    bars = re.findall(r"M([\d.]+),8H([\d.]+).*?cx=\"([\d.]+)\"", text)
    scale = [(float(right) - float(left)) / 2 for left, right, _ in bars]
    assert np.ptp(scale / errors) < 0.1 * np.mean(scale / errors)  # drawn on one scale
    assert all(float(a) < float(at) < float(b) for a, b, at in bars) and len(bars) == 5
    assert "A better answer" in text and "data-spend" not in text
    for chosen in ('value="=F" selected', 'value="*" selected'):
        assert chosen in text  # what was asked stays chosen
    after = Session.open(path)
    assert after.budget.remaining == before.budget.remaining
    assert len(after.budget.ledger) == len(before.budget.ledger) == 2
    assert page.view.session.table is None


def test_choices_are_the_question_that_they_look_like(path):
    view = BankView(Session.open(path))
    assert view.question({"a0": "*", "a2": "=St. Gallen"}) == 'sex & town="St. Gallen"'
    assert view.question({"a1": "=31", "b1": "=33"}) == "age=31..33"
    assert view.question({"a0": "", "b1": "=33"}) == ""
    assert "Choose a value" in view.ask({"a0": ""}).html
    both = view.ask({"a1": "=31", "b1": "=33", "a0": "=F"})
    assert "Answer to sex=F &amp; age=31..33, at no cost" in both.html


def test_it_says_whose_data_it_is(path, tmp_path):
    assert "has not stated whose data" in BankView(Session.open(path)).ask({}).html
    with opened(tmp_path, DP(1.0), [(Marginals(1), {"epsilon": 0.1})], dataset="<riders>") as s:
        assert "<dd>&lt;riders&gt;</dd>" in BankView(s).ask({}).html


def test_a_file_that_is_locked_is_said_beside_the_page(path, tmp_path):
    copy = tmp_path / "copied.session"
    copy.write_bytes(path.read_bytes())
    shown = widgets.bank(copy)
    shown.session.budget.file.wait = 0.1
    before = shown.ask({"a0": "*"})
    db = sqlite3.connect(copy, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    shown.ask({"a0": "=F"})
    assert "Nothing is lost: ask again" in shown.html and 'class="wbank-map"' in shown.html
    assert "copied" not in shown.html and 'value="=F" selected' in shown.html
    db.execute("ROLLBACK")
    assert shown.ask({"a0": "*"}).html == before.html and "Nothing is lost" not in shown.html


def test_nothing_of_the_owners_is_on_the_page(page, path):
    for label in ("", "*", "=<script>alert(1)</script>", "=<b>", "=\x00", "é" * 3000):
        text = got(page, a2=label, error="<b>")
        assert "<script" not in text and "<b>=" not in text and '"<b>' not in text
        assert "secret" not in text and str(path.parent.parent) not in text
    assert "&lt;script&gt;alert(1)" in got(page)


def test_a_file_that_is_damaged_or_gone_is_not_named(tmp_path, path):
    copy = tmp_path / "copied.session"
    copy.write_bytes(path.read_bytes())
    shown = BankPage(copy)
    copy.unlink()
    try:
        text = shown.view.ask({"a0": "*"}).html
    finally:
        shown.server_close()
    assert "cannot be read now" in text and "copied" not in text
    with pytest.raises(FileNotFoundError, match="no such budget"):
        BankPage(copy)


def test_a_counter_in_another_folder_is_not_named(tmp_path):
    files = [tmp_path / name / name for name in ("mine", "yours")]
    counters = [tmp_path / name / "count" for name in ("kept", "also kept")]
    for file, counter in zip(files, counters, strict=True):
        file.parent.mkdir()
        counter.parent.mkdir()
        Budget.create(file, DP(2.0), people="us", unit="a user", counter=counter)
    view = BankView(Session(files[0], table=a_table()))
    counters[1].rename(counters[0])
    text = view.ask({}).html
    assert "cannot be read now" in text and str(tmp_path) not in text


def test_who_does_not_know_the_address_sees_nothing(page):
    for place in ("/", "/?q=sex", "/x/", f"/{page.token[:-1]}/", f"/{page.token}"):
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{page.server_port}{place}", timeout=10)
    with socket.create_connection(("127.0.0.1", page.server_port), 10) as asked:
        asked.sendall(b"GET http://[/ HTTP/1.0\r\n\r\n")  # an address that is none
        assert asked.recv(12) == b"HTTP/1.0 404"
    asked = HTTPConnection("127.0.0.1", page.server_port, timeout=10)
    asked.request("POST", f"/{page.token}/", "q=sex")
    assert asked.getresponse().status == 501


def test_several_people_ask_at_once(page):
    questions = [{"a0": "*"}, {"a1": "*"}, {"a2": "*", "a0": "*"}, FEMALE_BY_AGE] * 3
    alone = [got(page, **question) for question in questions]
    with ThreadPoolExecutor(6) as people:
        assert [*people.map(lambda q: got(page, **q), questions)] == alone


def test_the_map_leads_to_every_pair(page):
    links = re.findall(r'<td class="wbank-(\w+)"><a href="(\?[^"]+)#answer"', got(page))
    assert len(links) == 3 and " •" in got(page)
    for _, link in links:
        with urlopen(page.address + unescape(link), timeout=60) as answer:
            assert ", at no cost</caption>" in answer.read().decode()


@pytest.mark.parametrize(
    "question, error, said",
    [
        ("sex=Female", "", "sex = 'Female' is not in the domain: there are F, M"),
        ("age=34..31", "", "selects nothing"),
        ("sex sex", "", "names 'sex' twice"),
        ("sex=F", "-3", "error = -1.5 is not allowed: need a number > 0"),
        ("sex=F", "much", "error = 'much' is not allowed: need a number"),
        ("sex=F", "1e-9", "remain of 2-DP"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(path, question, error, said):
    assert said in asked(Session.open(path), question, error)


@contextmanager
def opened(tmp_path, budget, purchases, domain=DOMAIN, **stated):
    with Session.open(tmp_path / "x.session", a_table(domain), budget, **stated) as session:
        for workload, price in purchases:
            session.ask(workload, **price)
        yield session


def test_an_empty_bank_and_a_bank_of_one_answer(tmp_path):
    empty = Session(Budget.create(tmp_path / "budget", DP(1.0), people="us", unit="a user"))
    view = BankView(empty)
    html = view.ask({"q": "sex"}).html
    assert "is empty" in html and "Nothing was asked" in html and "<dd>us</dd>" in html
    assert 'class="wbank-map"' not in html and "<form" not in html
    one = labelled_queries(DOMAIN, {"sex": "F"})
    with opened(tmp_path, DP(1.0), [(one, {"epsilon": 0.5})]) as session:
        said = asked(session, "sex=F")
        assert "Answer to sex=F, at no cost" in said and 'class="wbank-map"' in said
        assert "adds at most 1 to one cell. If the owner left out the rest, counts" in said
        assert "<td>1 query about sex</td>" in said
        assert "the bank cannot tell" in asked(session, "town")


@pytest.mark.parametrize("weight", [1.0, 1 / 16, 8.0])
def test_noise_of_weighted_sums_is_told_in_counts(tmp_path, weight):
    either = [(weight, {"town": {0}}), (weight, {"town": {1, 2}})]
    products = Products.of(DOMAIN, [(weight, {"age": (0, 3)}), either])
    table = TableQueries.of(DOMAIN, [(("sex",), [weight, -weight]), (("sex",), [0, 0])])
    purchases = [(Together((products, table)), {"rho": 0.125})]
    with opened(tmp_path, ZCDP(0.125), purchases) as session:
        noise = session.bank.answers.deviations_in_counts
        # three queries move by a weight each, so that ρ = 3w²/2σ²
        np.testing.assert_allclose(noise[:3], np.sqrt(12), rtol=1e-3)
        np.testing.assert_allclose(session.budget.ledger.deviation, noise.max())
        assert noise[3] == pytest.approx(np.sqrt(12) * weight, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1e-6, 1e3])
def test_extreme_prices(tmp_path, epsilon):
    purchases = [(Marginals(1), {"epsilon": epsilon})]
    with opened(tmp_path, DP(2 * epsilon), purchases, total=PEOPLE) as session:
        html = asked(session, "sex × age", "5")
        assert "Answer to sex × age" in html and 'class="wbank-map"' in html


def test_a_price_of_nothing_does_not_deny_the_bar(path, monkeypatch):
    nothing = Price(0.0, "so it is")
    monkeypatch.setattr(Bank, "price", lambda self, queries, error: nothing)
    session = Session.open(path)
    assert "knows it as well already" in asked(session, "sex", "1e6")
    html = asked(session, "sex", "1e-6")
    assert "the model's error beyond it" in html and "<p>so it is.</p>" in html


def test_how_often_bars_hold_is_said_only_where_it_is_known(tmp_path, monkeypatch):
    with opened(tmp_path, DP(9.0), [(Marginals(2), {"epsilon": 5.0})], total=PEOPLE) as session:
        assert "about 19 times in 20" in asked(session, "sex")
    monkeypatch.setattr("workbench.inference.answer_bank.AnswerBank.most_answers", 4)
    with Session.open(session.budget.path) as session:
        told = asked(session, "sex")
    assert "19 times" not in told and "leaves out how far the method" in told


def test_a_declared_total_that_cannot_be_is_told(tmp_path):
    with opened(tmp_path, DP(9.0), [(Marginals(1), {"epsilon": 5.0})], total=5000) as session:
        assert "the declared total of 5000 does not fit" in asked(session, "sex")


def test_an_attribute_of_very_many_labels(tmp_path):
    wide = Domain(("place", "sex"), (100_000, 2), (range(100_000), ("F", "M")))
    with opened(
        tmp_path, DP(1.0), [(NamedMarginals((("sex",),)), {"epsilon": 0.5})], wide
    ) as session:
        assert "at most 1,000 are answered at once" in asked(session, "place")
        html = BankView(session).ask({"a0": "7", "b0": "1007"}).html
        assert "Answer to place=7..1007, at no cost" in html and html.count("•</a>") == 0
        assert 'value="1007"' in html and "0 .. 99999" in html and html.count("<option") == 4


def test_a_session_with_its_table_spends_what_the_button_says_and_once(tmp_path):
    with opened(tmp_path, ZCDP(1.0), [(Marginals(1), {"rho": 0.01})], total=PEOPLE) as session:
        shown = widgets.bank(session)
        assert "data-spend" not in shown.html
        fields = urlencode({"a0": "*", "a2": "*", "error": "8"})
        shown._on_message(None, {"fields": fields}, [])
        ((error, price),) = shown.answered.prices.items()
        assert error == 4.0 and 'data-spend="4.0">Spend ρ = ' in shown.html
        before = session.budget.remaining
        for _ in range(2):
            shown._on_message(None, {"spend": error}, [])
        assert session.budget.remaining == pytest.approx(before - price, rel=1e-9)
        assert len(session.budget.ledger) == 2 and "data-spend" not in shown.html
        assert "Answer to sex &amp; town, at no cost" in shown.html
        shown.recall("age", error="2")
        assert "data-spend" in shown.html and 1.0 in shown.answered.prices
        shown.ask({"a1": "*", "a0": "*"})  # the price was another question's
        shown.spend(1.0)
        assert len(session.budget.ledger) == 2


@pytest.mark.slow
def test_a_panel_of_synthetic_people():
    shown = widgets.bank()
    assert "Education × Workclass" in shown.html and shown.html.count(" •</a>") == 1
    shown.recall("Marital by Gender=Female & Education=9", error="40")
    assert "Widowed" in shown.html
    shown.spend(20.0)
    assert len(shown.session.budget.ledger) == 3


def test_without_its_table_a_panel_has_no_button(path):
    shown = widgets.bank(path)
    shown.recall("sex × town", error="8")
    assert "further cost to the owner" in shown.html and "data-spend" not in shown.html
    shown.spend(4.0)
    assert len(Session.open(path).budget.ledger) == 2
    assert "workbench bank" in repr(shown)


def test_a_budget_that_is_used_up_still_answers(tmp_path):
    with opened(tmp_path, DP(1.0), [(Marginals(1), {"epsilon": 1.0})], total=PEOPLE) as session:
        html = asked(session, "sex × age")
        assert "at no cost</caption>" in html and "The budget is used up" in html
