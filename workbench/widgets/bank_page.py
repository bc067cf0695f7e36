"""Panel of a bank for notebooks, and web page of a bank for other people. Both let you choose attributes
and values, and ask.

A small server on this machine makes the page anew for each question. The page has no scripts, and its
address contains a secret part. Several people may use it at the same time.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import anywidget
import traitlets

from workbench.datasets import IPUMSTwin, Projected
from workbench.estimates.files import process_folder
from workbench.owner import Session
from workbench.privacy import DP, ZCDP
from workbench.queries import Marginals, NamedMarginals
from workbench.widgets.bank_view import STYLE, Answered, BankView, Fields, html, refused

# Bank panel

_EMPTY = Answered("")
_PEOPLE = 20_000
_SCRIPT = Path(__file__).with_name("bank.js")


class BankPanel(anywidget.AnyWidget):
    """Panel of a session's bank. If the session has its table, a button can also spend budget.

    Parameters
    ----------
    session : Session
        Session. Give it its table only if the panel may spend budget.

    Attributes
    ----------
    answered : Answered
        Result of the last question.
    """

    _esm = _SCRIPT
    html = traitlets.Unicode().tag(sync=True)

    def __init__(self, session: Session):
        self.session = session
        self.view = BankView(session, owner=True)
        self.answered = _EMPTY
        self._fields: Fields = {}
        super().__init__()
        self.on_msg(self._on_message)
        self._show(_EMPTY)

    def __repr__(self) -> str:
        return f"widgets.bank({str(self.session.budget.path)!r}) needs a kernel; workbench bank serves a page"

    def ask(self, fields: Fields) -> Answered:
        """Answer the question of a form from the bank, at no cost.

        Parameters
        ----------
        fields : mapping
            For attribute i of the domain, `a{i}` is "*" for every value, or "=" and a label, and `b{i}` is
            the last label of a range. `error` is the acceptable error bar, of two standard errors.

        Returns
        -------
        Answered
        """
        self._fields = fields
        return self._show(self.view.ask(fields))

    def recall(self, question: str, error: str = "") -> Answered:
        """Answer a typed question from the bank, at no cost.

        Parameters
        ----------
        question : str
            Question in the form of `typed_question`, for example "age by sex=F".
        error : str
            Acceptable standard error, in counts, for which a price is computed.

        Returns
        -------
        Answered
        """
        self._fields = {"error": [error]}
        return self._show(self.view.answer(question, error))

    def spend(self, error: float) -> None:
        """Ask the table the displayed question, at the price that is offered for an error. A second call
        does nothing.
        """
        question, price = self.answered.question, self.answered.prices.get(error)
        if question is None or not price:
            return
        is_zcdp = isinstance(self.session.budget.limit, ZCDP)
        budget: dict[str, Any] = {"rho" if is_zcdp else "epsilon": float(price)}
        self.answered = _EMPTY  # a second click spends nothing
        try:
            self.session.ask(question.queries, **budget)
        except (ValueError, OSError) as e:
            self._show(refused(self.view.without_paths(e)))
            return
        asked = self.view.question(self._fields)
        self._show(self.view.ask(self._fields, offer=False) if asked else _EMPTY)

    def _show(self, answered: Answered) -> Answered:
        self.answered = answered
        body = self.view.body(self._fields, answered.html)
        self.html = f'<style>{STYLE}</style><div class="wbank">{body}</div>'
        return answered

    def _on_message(self, _: Any, message: Mapping[str, Any], buffers: list[Any]) -> None:
        if "spend" in message:
            self.spend(message["spend"])
        else:
            self.ask(parse_qs(message["fields"]))


def synthetic_session() -> Session:
    """Return a session with synthetic people and a few answers. Half of its budget remains."""
    attributes = ("Gender", "Education", "Marital", "Workclass")
    people = Projected(IPUMSTwin(_PEOPLE), attributes)
    path = process_folder() / "synthetic-people.sqlite"
    session = Session.open(path, people.load(), DP(1.0), total=_PEOPLE, dataset=repr(people))
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


class BankPage:
    """Web page of one bank, with its server.

    Parameters
    ----------
    path : path
        File of the session. The table is not needed and not opened.
    port : int
        Port of the server. 0 selects a free port.

    Raises
    ------
    FileNotFoundError
        If the session does not exist.
    """

    def __init__(self, path: str | Path, port: int = 0):
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such session")
        self.view = BankView(Session.open(path))
        self.token = secrets.token_urlsafe(24)
        self.server = _Server(("127.0.0.1", port), _Handler)
        self.server.page = self

    @property
    def address(self) -> str:
        """Address of the page. Only people who know this address can see the page."""
        return f"http://127.0.0.1:{self.server.server_port}/{self.token}/"

    def html(self, fields: Fields) -> str:
        """Return the page with the bank's answer to the question of a form.

        Parameters
        ----------
        fields : mapping
            The same as for `BankPanel.ask`. If it is empty, the page shows no answer.

        Returns
        -------
        str
        """
        answer = self.view.ask(fields).html if fields else ""
        return html("page", STYLE, self.view.body(fields, answer))

    def serve(self) -> None:
        """Serve the page until `close` or Ctrl-C."""
        self.server.serve_forever()

    def close(self) -> None:
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    page: BankPage


class _Handler(BaseHTTPRequestHandler):
    timeout = 30  # seconds that somebody may take to ask
    server: _Server
    server_version = "workbench"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page, under its own address only."""
        path, _, query = self.path.partition("?")
        ours = f"/{self.server.page.token}/"
        if not secrets.compare_digest(path.encode(), ours.encode()):
            self.send_error(404)
            return
        body = self.server.page.html(parse_qs(query[:_LONGEST])).encode()
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing, so that no questions are logged."""
