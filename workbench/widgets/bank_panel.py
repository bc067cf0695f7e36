"""The page of an answer bank: a line to type queries in, answers, and prices.

A server of its own on this machine: a page is made anew for each question, without a script, and stands
below an address that has to be known. Several people read it at once; fits are made once for all.
"""

from __future__ import annotations

import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import ipywidgets

from workbench.datasets import IPUMSTwin, Projected
from workbench.estimates.files import process_folder
from workbench.owner import Session
from workbench.privacy import DP, ZCDP
from workbench.queries import Marginals, NamedMarginals
from workbench.value import format_number
from workbench.widgets.bank_view import STYLE, Answered, BankView, refused

# Bank panel

_EMPTY = Answered("")
_PEOPLE = 20_000


class BankPanel(ipywidgets.VBox):
    """What a session's bank holds and says. A session with its table can also spend, by a button.

    Parameters
    ----------
    session : Session
        With its table only if the panel may spend.

    Attributes
    ----------
    answered : Answered
        What is said of the question; its `html` is shown.
    """

    def __init__(self, session: Session):
        self.session = session
        self.view = BankView(session, owner=True)
        self.answered = _EMPTY
        self._head = ipywidgets.HTML()
        self._said = ipywidgets.HTML()
        self._map = ipywidgets.HTML()
        wide = ipywidgets.Layout(width="min(34rem, 100%)")
        self.question = ipywidgets.Text(
            placeholder=self.view.example(),
            description="Question",
            tooltip="by label, such as sex=F & age in 30..39; attributes alone are counted one by one",
            layout=wide,
        )
        self.error = ipywidgets.Text(
            placeholder="in counts",
            description="Error",
            tooltip="that would do: its price is told",
            layout=ipywidgets.Layout(width="14rem"),
        )
        self.ask = ipywidgets.Button(description="Recall", tooltip="costs nothing")
        self.spend = ipywidgets.Button(
            button_style="warning",
            layout=ipywidgets.Layout(width="auto", align_self="flex-start"),
        )
        self.ask.on_click(lambda _: self.recall())
        self.spend.on_click(lambda _: self._buy())
        for box in (self.question, self.error):
            box.observe(self._changed, "value")
        line = ipywidgets.HBox(
            [self.question, self.error, self.ask],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )
        super().__init__([self._head, line, self._said, self.spend, self._map])
        self._refresh()

    def __repr__(self) -> str:
        return f"widgets.bank({str(self.session.path)!r}) needs a kernel; workbench bank serves a page"

    def recall(self, question: str | None = None, error: str | None = None) -> Answered:
        """Say what the bank knows, at no cost, and what the error that is stated would cost.

        Parameters
        ----------
        question, error : str, optional
            Typed in place of what stands there.

        Returns
        -------
        Answered
        """
        if question is not None:
            self.question.value = question
        if error is not None:
            self.error.value = error
        if not self.question.value.strip():
            return self._show(refused("Type a question first."))
        return self._show(self.view.answer(self.question.value, self.error.value))

    def _show(self, answered: Answered) -> Answered:
        self.answered = answered
        self._said.value = _page(answered.html)
        price = answered.price or 0.0
        self.spend.layout.display = "" if self.session.has_table and price else "none"
        self.spend.disabled = not price
        sign = self.view.sign
        self.spend.description = f"Spend {sign} = {format_number(price)} on this question"
        return answered

    def _changed(self, _: Any) -> None:
        """Another question: what was said, and its price, are of the one before."""
        self._show(_EMPTY)

    def _buy(self) -> None:
        """Ask the table the question on the screen, at the price on the button, once."""
        answered = self.answered
        self.spend.disabled = True
        if answered.question is None or not answered.price:
            return
        price = float(answered.price)
        is_zcdp = isinstance(self.session.budget, ZCDP)
        budget: dict[str, Any] = {"rho": price} if is_zcdp else {"epsilon": price}
        self.answered = _EMPTY  # a second click spends nothing
        try:
            self.session.ask(answered.question.queries, **budget)
        except (ValueError, OSError) as e:
            self._show(refused(str(e)))
            return
        self._refresh()
        # Only who asks for a price again may spend again: two clicks buy once.
        again = self.view.answer(self.question.value, self.error.value)
        self._show(again._replace(price=None))

    def _refresh(self) -> None:
        """Draw what changes when answers are bought."""
        try:
            self._head.value = _page(
                f"<style>{STYLE}</style><b>The answer bank</b>{self.view.summary()}"
            )
            details = "<details><summary>{}</summary>{}</details>"
            self._map.value = _page(
                self.view.map()
                + details.format("What can be asked about", self.view.attributes())
                + details.format("What is in the bank", self.view.contents())
            )
        except (ValueError, OSError) as e:
            self._show(refused(str(e)))
            return
        if not self.answered.html:
            self._show(_EMPTY)


def made_up_session() -> Session:
    """A session before a table of made-up people, of whom little was asked; half its budget is left."""
    attributes = ("Gender", "Education", "Marital", "Workclass")
    people = Projected(IPUMSTwin(_PEOPLE), attributes)
    path = process_folder() / "made-up-people.sqlite"
    session = Session.open(path, people.load(), DP(1.0), total=_PEOPLE, dataset=repr(people))
    session.ask(Marginals(1), 0.2)
    session.ask(NamedMarginals((("Gender", "Marital"),)), 0.3)
    return session


def _page(html: str) -> str:
    return f'<div class="wbank">{html}</div>'


# Bank page

_LONGEST = 2_000  # characters of a question
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_COLOURS = """
:root { color-scheme: light dark; --jp-layout-color0: #fff; --jp-content-font-color1: #1a1a1a; }
@media (prefers-color-scheme: dark) {
  :root { --jp-layout-color0: #16181c; --jp-content-font-color1: #e8e8e8; }
}
body { margin: 0; background: var(--jp-layout-color0); } main { margin: 0 auto; padding: 16px; }
h1 { font-size: 22px; margin: 0 0 4px; }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Ask a bank</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
<body><main class="wbank"><h1>Ask a bank of noisy answers</h1>
<p>Every answer here follows from answers that were paid for, under differential privacy. Asking costs
nothing and spends nothing: the table itself is not here.</p>
{summary}
<form method="get" action="#answer"><div><label for="q">Question, by label</label>
<input id="q" name="q" value="{question}" placeholder="{example}" maxlength="{longest}" {focus}></div>
<div><label for="error">Error that would do</label>
<input id="error" name="error" value="{error}" inputmode="decimal" placeholder="in counts"></div>
<button>Ask</button></form>
<p>Such as <code>{example}</code>: conditions, and attributes whose labels are counted one by one; ranges as
<code>first..last</code>, sets as <code>one|other</code>, quotes around labels with spaces.</p>
<section id="answer" aria-live="polite">{answer}</section>
{map}
<details><summary>What can be asked about</summary>{attributes}</details>
<details><summary>What is in the bank</summary>{contents}</details>
</main></body></html>
"""


class BankPage:
    """The page of one bank, and its server.

    Parameters
    ----------
    path : path
        The session's file; its table is neither needed nor opened.
    port : int
        Where; 0 for any that is free.

    Raises
    ------
    FileNotFoundError
        If there is no such session.
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
        """What to open; who does not know it sees nothing."""
        return f"http://127.0.0.1:{self.server.server_port}/{self.token}/"

    def html(self, question: str = "", error: str = "") -> str:
        """The page with what the bank says of a question.

        Parameters
        ----------
        question : str
            As it is typed; nothing is asked if it is empty.
        error : str
            The error that would do, as it is typed.

        Returns
        -------
        str
        """
        view = self.view
        question = question[:_LONGEST].strip()
        answer = view.answer(question, error).html if question else ""
        try:
            parts = {
                "summary": view.summary(),
                "map": view.map("?q="),
                "attributes": view.attributes(),
                "contents": view.contents(),
                "example": escape(view.example(), quote=True),
            }
        except (ValueError, OSError) as e:
            answer = refused(view.without_paths(e)).html
            parts = dict.fromkeys(("summary", "map", "attributes", "contents", "example"), "")
        return _PAGE.format(
            style=_COLOURS + STYLE,
            question=escape(question, quote=True),
            error=escape(error[:40], quote=True),
            answer=answer,
            longest=_LONGEST,
            focus="" if question else "autofocus",
            **parts,
        )

    def serve(self) -> None:
        """Answer until `close`, or Ctrl-C."""
        self.server.serve_forever()

    def close(self) -> None:
        """End the server."""
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
        """The page, below its address alone."""
        path, _, query = self.path.partition("?")
        ours = f"/{self.server.page.token}/"
        if not secrets.compare_digest(path.encode(), ours.encode()):
            self.send_error(404)
            return
        fields = parse_qs(query[: 4 * _LONGEST])
        question, error = (fields.get(name, [""])[0] for name in ("q", "error"))
        body = self.server.page.html(question, error).encode()
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody's questions are written down."""
