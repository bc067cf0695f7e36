"""A page for whoever asks: a bank opened without its table, which nothing on the page can spend from.

A server of its own on this machine: a page is made anew for each question, without a script, and stands
below an address that has to be known. Several people read it at once; fits are made once for all.
"""

from __future__ import annotations

import secrets
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from workbench.session import Session
from workbench.widgets.bank_view import STYLE, BankView, refused

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
