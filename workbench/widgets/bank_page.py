"""Panel of a bank for notebooks, and web page of a bank for other people. A bank stores the noisy answers
that a budget has paid for. In the panel and on the page, you choose attributes and values, and get an answer
from the stored answers.

Both are made from the template `bank.html`. A small server on this machine makes a new page for each
question. The page contains no scripts, and its address contains a secret part. Several people may use the
page at the same time.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anywidget
import numpy as np
import traitlets

from workbench.datasets import IPUMSTwin, Projected
from workbench.estimates.files import process_folder
from workbench.mechanisms.options import parse_number
from workbench.owner import Session
from workbench.owner.publication.folder import template
from workbench.privacy import DP
from workbench.queries import Marginals, NamedMarginals, TypedQuestion, typed_question
from workbench.value import format_number, number

if TYPE_CHECKING:
    from workbench.estimates import NoisyAnswers
    from workbench.owner.bank import Price


_PAGE = Path(__file__).with_name("bank.html")
_CHOICES = 300  # labels of an attribute that can be chosen from a list; others are typed
_EACH = "*"  # chosen where the labels of an attribute are asked for one by one
# errors, in deviations of the noise, between colours of the map
_LEVELS = 1.25, 2.5, 6.0, 20.0
_SHARES = (0.5, 0.2)  # of the present error, that are priced where none is asked for
_UNREADABLE = "The bank cannot be read now. Its owner's terminal says why."
_LOCKED = "Another process is writing to the bank. Nothing is lost: ask again in a moment."
_WAIT = 3.0  # seconds until a visitor is told so
_WIDE, _EDGE = 150, 6  # px of an answer that is drawn

Fields = Mapping[str, str]  # of a form, by the names of its controls


class Answered(NamedTuple):
    """Page with the answer to a question, the question itself, and the offered prices of better answers, by
    standard error.
    """

    html: str
    question: TypedQuestion | None
    prices: Mapping[float, Price]


class BankView:
    """View of a bank (stored noisy answers that a budget has paid for), which you may show to other people.
    The view spends no budget and needs no private table.

    Parameters
    ----------
    session : Session
        Session that contains the bank. Other processes may use its file at the same time.
    owner : bool
        Whether the view is part of the owner's notebook. The view then also shows the names of files, the
        text of releases, and a button for each price.
    """

    def __init__(self, session: Session, owner: bool = False):
        self.session = session
        self.owner = owner
        self._lock = threading.RLock()  # fits are made once, whoever asks
        # what was last read, for a file that is locked
        self._seen: dict[str, Any] = {"facts": {}, "map": {}, "spends": []}

    def ask(self, fields: Fields, pay: Callable[[], Any] | None = None) -> Answered:
        """Answer a question from the bank. The fields of the page's form state the question.

        Parameters
        ----------
        fields : mapping
            For attribute number i of the domain, `a{i}` is "*" (one answer for every value), or "=" and a
            label. If a range is chosen, `b{i}` is "=" and its last label. `error` is the acceptable error
            bar, of two standard errors. Instead, `q` may state the question as text, which the function
            `typed_question` reads. If there are no fields, there is no answer.
        pay : function, optional
            Function that spends budget before the bank is read. The prices then have no buttons.

        Returns
        -------
        Answered
            Page with the answer, or with a sentence that explains why there is none.
        """
        answer: dict[str, Any] = {}
        refused = ""
        with self._lock:
            try:
                if pay is not None:
                    pay()
                self._read()
                if fields:
                    answer = self._answer(fields, pay is None)
            except (ValueError, OSError) as e:
                refused = self._in_words(e)
            except MemoryError:
                refused = "There is not enough memory for this question."
            html = template(_PAGE).render(
                self._seen,
                owner=self.owner,
                controls=self._controls(fields),
                fields=fields,
                refused=refused,
                answer=answer,
            )
        return Answered(html, answer.get("question"), answer.get("offers", {}))

    def _controls(self, fields: Fields) -> list[dict[str, Any]]:
        """Return a description of the form's control for each attribute. The description contains the
        attribute's labels, if there are at most 300.
        """
        domain: Any = self.session.bank.domain
        found = []
        for i, name in enumerate(domain.attributes if domain else ()):
            n = domain.shape[i]
            labels = domain.decode(name, np.arange(n if n <= _CHOICES else 0)).tolist()
            ends = domain.decode(name, np.array([0, n - 1]))
            first, last = _chosen(fields, i)
            found.append(dict(name=name, labels=labels, ends=ends, first=first, last=last))
        return found

    def question(self, fields: Fields) -> str:
        """Return the question that the fields of a form state, as text for the function `typed_question`. The
        text is empty if nothing is chosen.
        """
        domain = self.session.bank.domain
        by = []
        conditions = []
        for i, name in enumerate(domain.attributes if domain else ()):
            first, last = _chosen(fields, i)
            if first == _EACH:
                by.append(_typed(name))
            elif first:
                ends = [_typed(end.removeprefix("=")) for end in (first, last) if end]
                conditions.append(f"{_typed(name)}={'..'.join(ends)}")
        return fields.get("q") or " & ".join([*by, *conditions])

    def _read(self) -> None:
        """Read what the page shows: the people, the budget, the paid questions, and a map of the errors of
        pairs of attributes.
        """
        budget, bank = self.session.budget, self.session.bank
        answers = bank.by_question()
        remaining = budget.remaining
        unstated = "" if budget.people else "its owner has not stated whose data it is"
        sign = "ρ" if budget.price == "rho" else "ε"
        facts = {
            "people": budget.people,
            "data": bank.dataset or unstated,
            "protects": budget.unit,
            "records, declared": bank.total and number(bank.total),
            "budget left": f"{sign} = {format_number(remaining)} of {budget.limit}",
        }
        spends = []
        for spend in budget.ledger.itertuples():
            is_question = spend.queries == spend.queries
            what = spend.asked if is_question or self.owner else "a release"
            if is_question and not spend.answered:
                what += " (the answers were lost)"
            spends.append(
                (
                    what,
                    format_number(spend.deviation) if spend.deviation else "",
                    format_number(getattr(spend, budget.price)),
                    spend.time[:16].replace("T", " "),
                )
            )
        if answers and self._seen.get("bought") != len(answers):
            self._seen["map"] = self._map(bank.answers)
        self._seen |= dict(facts=facts, spends=spends, bought=len(answers))
        self._seen |= dict(sign=sign, remaining=remaining)

    def _map(self, bought: NoisyAnswers) -> dict[str, Any]:
        """Return the expected error of each pair of attributes, with a link to its question."""
        names = bought.domain.attributes
        noise = float(np.median(bought.deviations_in_counts))
        rows: list[list[dict[str, Any]]] = [[] for _ in names]
        for pair in self.session.bank.pair_errors().itertuples():
            i, j = names.index(pair.first), names.index(pair.second)
            rows[j].append(
                dict(
                    level=np.searchsorted([*_LEVELS, 1e300], pair.error / noise),
                    link=urlencode({f"a{i}": _EACH, f"a{j}": _EACH}),
                    title=f"{pair.first} × {pair.second}",
                    bar=_bar(pair.error),
                    bought=pair.bought,
                )
            )
        return dict(names=names, rows=rows[1:], noise=_bar(noise), levels=_LEVELS)

    def _answer(self, fields: Fields, offer: bool) -> dict[str, Any]:
        """Return the answer to a question, and the prices of better answers."""
        bank = self.session.bank
        domain: Any = bank.domain
        text = self.question(fields)
        if not self._seen["bought"]:
            raise ValueError("The bank is empty: nothing was bought that could be recalled.")
        if not text:
            raise ValueError("Choose a value, or each value, of at least one attribute.")
        question = typed_question(domain, text)
        recalled = bank.recall(question.queries)
        values, errors = recalled
        bars = np.where(np.isfinite(errors), 2 * errors, 0)
        low = min(0.0, float(np.min(values - bars)))
        high = max(1.0, float(np.max(values + bars)))
        drawn = np.array([values - bars, values + bars, values, 0 * values]) - low
        places = np.round(_EDGE + drawn * (_WIDE - 2 * _EDGE) / (high - low), 1)
        return dict(
            question=question,
            text=text,
            rows=[
                ((*map(str, labels), number(round(x)), _bar(error)), error < inf and place)
                for labels, x, error, place in zip(
                    question.labels, values, errors, places.T.tolist(), strict=True
                )
            ],
            recalled=recalled,
            bound=bank.bound,
            **self._prices(question, float(np.max(errors)), fields.get("error", ""), offer),
        )

    def _prices(
        self, question: TypedQuestion, largest: float, typed: str, offer: bool
    ) -> dict[str, Any]:
        """Return the prices of better answers. They are for the typed error bar, or for a half and a fifth of
        the present error. The `offers` are the prices with a button.
        """
        wanted = [x for share in _SHARES if 0 < (x := share * largest) < inf]
        if typed.strip():
            wanted = [parse_number("error", typed) / 2]
        if not self._seen["remaining"]:
            wanted = []
        rows: list[tuple[str, str, float | None]] = []
        offers = {}
        why = ""
        for x in wanted:
            try:
                cost = self.session.bank.price(question.queries, x)
            except ValueError as e:
                rows.append((_bar(x), self._in_words(e), None))
                continue
            why = cost.why
            text = f"{self._seen['sign']} = {format_number(cost)}"
            # a price covers noise alone, and a bar the error of the model too
            if not cost and largest > x:
                text = "free of noise, but the bar has the model's error beyond it"
            elif not cost:
                text = "free, because the bank knows it as well already"
            is_offer = bool(cost and offer and self.owner and self.session.table is not None)
            if is_offer:
                offers[x] = cost
            rows.append((_bar(x), text, x if is_offer else None))
        return dict(prices=rows, why=why, offers=offers)

    def _in_words(self, e: Exception) -> str:
        """Return an error message without file paths, for people other than the owner."""
        if isinstance(e, TimeoutError):
            return _LOCKED
        path = self.session.budget.path
        counters = (str(counter.path) for counter in self.session.budget.file.counters)
        hidden = (str(path), path.name, str(path.parent), *counters)
        is_secret = not self.owner and any(name in str(e) for name in hidden)
        return _UNREADABLE if is_secret else str(e)


def _bar(error: float) -> str:
    """Return an error bar of two standard errors as text."""
    return f"±{format_number(2 * error)}" if error < inf else "the bank cannot tell"


def _chosen(fields: Fields, i: int) -> tuple[str, str]:
    """Return what is chosen for attribute number `i`, and the last label if a range is chosen."""
    return fields.get(f"a{i}", "").strip(), fields.get(f"b{i}", "").strip()


def _typed(text: str) -> str:
    """Return a name or a label as a user types it in a question, in quotes if necessary."""
    is_plain = re.fullmatch(r"[\w<>+-]+", text) and text not in ("and", "by", "in")
    return text if is_plain else '"' + text.replace('"', '""') + '"'


# Panel

_PEOPLE = 20_000


class BankPanel(anywidget.AnyWidget):
    """Panel that answers questions from the bank of a session. A bank stores the noisy answers that were paid
    for. If the session has its private table, buttons with prices can also spend budget.

    Parameters
    ----------
    session : Session
        Session with the bank. Open it with its private table only if the panel may spend budget.

    Attributes
    ----------
    answered : Answered
        Answer to the last question, as text.
    """

    _esm = _PAGE.with_suffix(".js")
    html = traitlets.Unicode().tag(sync=True)

    def __init__(self, session: Session):
        self.session = session
        self.view = BankView(session, owner=True)
        super().__init__()
        self.on_msg(self._on_message)
        self.ask({})

    def __repr__(self) -> str:
        return f"widgets.bank({str(self.session.budget.path)!r}) needs a kernel; workbench bank serves a page"

    def ask(self, fields: Fields, pay: Callable[[], Any] | None = None) -> Answered:
        """Answer a question from the bank, and show the answer. The fields of the panel's form state the
        question.

        Parameters
        ----------
        fields, pay
            The same as for `BankView.ask`.

        Returns
        -------
        Answered
        """
        self._fields = fields
        self.answered = self.view.ask(fields, pay)
        self.html = self.answered.html
        return self.answered

    def recall(self, question: str, error: str = "") -> Answered:
        """Answer a typed question from the bank, at no cost.

        Parameters
        ----------
        question : str
            Question as text, which the function `typed_question` reads, for example "age by sex=F".
        error : str
            Acceptable error bar, as a number of records, for which the page computes a price.

        Returns
        -------
        Answered
        """
        return self.ask({"q": question, "error": error})

    def spend(self, error: float) -> None:
        """Answer the displayed question from the private table, and pay the offered price. `error` is the
        standard error to which this price belongs. A second call does nothing.
        """
        _, question, prices = self.answered
        if question is not None and error in prices:
            price: Any = {self.session.budget.price: float(prices[error])}
            self.ask(self._fields, lambda: self.session.ask(question.queries, **price))

    def _on_message(self, _: Any, message: Mapping[str, Any], buffers: list[Any]) -> None:
        if "spend" in message:
            self.spend(message["spend"])
        else:
            self.ask(dict(parse_qsl(message["fields"])))


def synthetic_session() -> Session:
    """Return a session with synthetic people and a few answers. Half of its budget remains."""
    attributes = ("Gender", "Education", "Marital", "Workclass")
    people = Projected(IPUMSTwin(_PEOPLE), attributes)
    path = process_folder() / "synthetic-people.sqlite"
    stated: Any = dict(total=_PEOPLE, dataset="synthetic people")
    session = Session.open(path, people.load(), DP(1.0), **stated)
    session.ask(Marginals(1), 0.2)
    session.ask(NamedMarginals((("Gender", "Marital"),)), 0.3)
    return session


# Bank page

_LONGEST = 8_000  # characters of a question
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class BankPage(ThreadingHTTPServer):
    """Server for the web page of one bank (stored noisy answers that a budget has paid for). The method
    `serve_forever` runs the server until `shutdown` is called or Ctrl-C is pressed.

    Parameters
    ----------
    path : path
        File of the session. The table is not needed and not opened.
    port : int
        Port of the server. 0 selects a free port.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    """

    def __init__(self, path: str | Path, port: int = 0):
        self.view = BankView(Session.open(path))
        self.view.session.budget.file.wait = _WAIT
        self.token = secrets.token_urlsafe(24)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """Address of the page. Only people who know this address can see the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    timeout = 30  # seconds that somebody may take to ask
    server: BankPage
    server_version = "workbench"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request with the page, if the request has the address of the page."""
        path, _, query = self.path.partition("?")
        if not secrets.compare_digest(path.encode(), f"/{self.server.token}/".encode()):
            self.send_error(404)
            return
        fields = dict(parse_qsl(query[:_LONGEST]))
        body = self.server.view.ask(fields).html.encode()
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log, so that questions stay private."""
