"""Panel of a bank for notebooks, and web page of a bank for other people. Both let you choose attributes
and values, and ask.

Both are made from the template `bank.html`. A small server on this machine makes the page anew for each
question. The page has no scripts, and its address contains a secret part. Several people may use it at
the same time.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anywidget
import numpy as np
import traitlets

from workbench.datasets import IPUMSTwin, Projected
from workbench.estimates.files import process_folder
from workbench.inference.marginals import used_attributes
from workbench.owner import Session
from workbench.owner.publication.folder import template
from workbench.privacy import DP, ZCDP
from workbench.queries import (
    Marginals,
    NamedMarginals,
    Selections,
    TypedQuestion,
    linear_queries,
    typed_question,
)
from workbench.spaces import Domain
from workbench.value import counted, format_number, number, stated

if TYPE_CHECKING:
    from workbench.estimates import NoisyAnswers
    from workbench.owner.bank import Price


_PAGE = Path(__file__).with_name("bank.html")
STYLE = _PAGE.with_suffix(".css").read_text()
_CHOICES = 300  # labels of an attribute that can be chosen from a list; others are typed
_EACH = "*"  # chosen where the labels of an attribute are asked for one by one
_ATTRIBUTES = 20  # on the map
_CODES = 5_000_000  # of its largest attribute, over all cells that the map looks at
_SETS = 3  # of attributes that a row of the ledger names
# errors, in deviations of the noise, between colours of the map
_LEVELS = 1.25, 2.5, 6.0, 20.0
_SHARES = (0.5, 0.2)  # of the present error, that are priced where none is asked for
_UNREADABLE = "The bank cannot be read now. Its owner's terminal says why."
_LOCKED = "Another process is writing to the bank. Nothing is lost: ask again in a moment."
_WIDE, _EDGE = 150, 6  # px of an answer that is drawn

Fields = Mapping[str, str]  # of a form, by the names of its controls


class Answered(NamedTuple):
    """Answer to a question as text, with the question, and the price of each offered error."""

    html: str
    question: TypedQuestion | None = None
    prices: Mapping[float, Price] = MappingProxyType({})


class BankView:
    """View of a session's bank that you may show to others. It spends no budget and needs no table.

    Parameters
    ----------
    session : Session
        Session. Other processes may use its file at the same time.
    owner : bool
        Whether the view is for the owner. It then shows the names of files, the text of releases, and a
        button for each price.
    """

    def __init__(self, session: Session, owner: bool = False):
        self.session = session
        self.owner = owner
        self._lock = threading.RLock()  # fits are made once, whoever asks
        self._map: tuple[int, str] = (-1, "")
        self._frame = ("", "", "", "")  # what was last read, for a file that is locked

    def body(self, fields: Fields, answer: str) -> str:
        """Return the body of the page: the people, the form, the answer, the map of errors, and the paid
        questions.
        """
        try:
            self._frame = (self.summary(), self.form(fields), self.map(), self.contents())
        except (ValueError, OSError) as e:
            answer = refused(self.without_paths(e)).html
        return html("body", *self._frame, answer)

    def form(self, fields: Fields) -> str:
        """Return the form, with a list of labels for each attribute, and a field for the acceptable error."""
        self._bought()
        domain = self.session.bank.domain
        if domain is None:
            return ""
        parts = []
        for i, (name, n) in enumerate(zip(domain.attributes, domain.shape, strict=True)):
            chosen, last = _chosen(fields, i)
            listed = range(n if n <= _CHOICES else 0)
            labels = [(f"={x}", str(x)) for x in domain.decode(name, np.array(listed, int))]
            ends = domain.decode(name, np.array([0, n - 1]))
            parts.append((name, labels, ends, chosen, last))
        return html("form", parts, fields.get("error", "")[:40])

    def question(self, fields: Fields) -> str:
        """Return the question of a form as text for `typed_question`. It is empty if nothing is chosen."""
        domain = self.session.bank.domain
        by = []
        conditions = []
        for i, name in enumerate(domain.attributes if domain else ()):
            chosen, last = _chosen(fields, i)
            if chosen == _EACH:
                by.append(_typed(name))
            elif chosen:
                labels = _typed(chosen.removeprefix("="))
                if last:
                    labels += f"..{_typed(last.removeprefix('='))}"
                conditions.append(f"{_typed(name)}={labels}")
        return " & ".join([*by, *conditions])

    def ask(self, fields: Fields, offer: bool = True) -> Answered:
        """Answer the question of a form from the bank. With `offer`, include the prices of better answers."""
        text = self.question(fields)
        if not text:
            return refused("Choose a value, or each value, of at least one attribute.")
        return self.answer(text, fields.get("error", ""), 2, offer)

    @property
    def sign(self) -> str:
        """Symbol of prices, ε or ρ."""
        return "ρ" if isinstance(self.session.budget.limit, ZCDP) else "ε"

    def summary(self) -> str:
        """Sentence on the people of the bank, and on the rest of its budget."""
        budget, bank = self.session.budget, self.session.bank
        self._bought()
        named = {"people": budget.people, "data": bank.dataset, "protects": budget.unit}
        facts = [(name, text) for name, text in named.items() if text]
        if not (budget.people or bank.dataset):
            facts = [("data", "its owner has not stated whose data it is"), *facts]
        if bank.total is not None:
            facts.append(("records, declared", number(bank.total)))
        facts += [("budget", str(budget.limit))]
        facts += [("left", f"{self.sign} = {stated(budget.remaining)}")]
        return html("summary", facts)

    def contents(self) -> str:
        """Return the table of paid questions, with their times and costs."""
        ledger = self.session.budget.ledger
        bought = self._bought()
        price = "rho" if "rho" in ledger else "epsilon"
        rows = []
        start = 0
        for spend in ledger.itertuples():
            what = "a release"
            if spend.queries == spend.queries and spend.queries:
                what = "an answer that was lost"
                if spend.answered and bought is not None:
                    stop = start + int(spend.queries)
                    what = _attributes_asked(bought.workload[start:stop], bought.domain)
                    start = stop
            elif self.owner:
                what = spend.asked
            noise = format_number(spend.deviation) if spend.deviation else ""
            time = spend.time.replace("T", " ").removesuffix("+00:00")
            answers = number(spend.queries) if spend.queries == spend.queries else ""
            rows.append((what, answers, noise, stated(getattr(spend, price)), time))
        if not rows:
            return "Nothing was asked yet."
        columns = ["asked", "answers", "noise, ±", self.sign, "when (UTC)"]
        return html("table", "What was bought, and for what", columns, rows, (1, 2, 3))

    def map(self) -> str:
        """Return a map of the expected errors for pairs of attributes. Each pair is a link to its question."""
        with self._lock:
            bought = self._bought()
            size = 0 if bought is None else len(bought)
            if self._map[0] != size:
                self._map = (size, "" if bought is None else self._drawn_map(bought))
            return self._map[1]

    def _drawn_map(self, bought: NoisyAnswers) -> str:
        domain = bought.domain
        names = domain.attributes[:_ATTRIBUTES]
        if len(names) < 2:
            return ""
        noise = float(np.median(bought.deviations_in_counts))
        queries = min(2_000, _CODES // max(domain.shape))
        errors = {
            frozenset((pair.first, pair.second)): pair
            for pair in self.session.bank.pair_errors(queries).itertuples()
        }
        rows = []
        for i, name in enumerate(names[1:], 1):
            cells = []
            for j, other in enumerate(names[:i]):
                pair = errors[frozenset((name, other))]
                link = urlencode({f"a{j}": _EACH, f"a{i}": _EACH})
                cells.append(_map_cell(pair.error, noise, pair.bought, (other, name), link))
            rows.append(cells)
        left_out = len(domain.attributes) - len(names)
        more = f" {counted(left_out, 'attribute')} not shown." if left_out > 0 else ""
        return html("map", names, rows, format_number(2 * noise), more, _legend())

    def answer(
        self, text: str, error: str = "", errors_per_bar: int = 1, offer: bool = True
    ) -> Answered:
        """Answer a question from the bank, and compute the price of a better answer.

        Parameters
        ----------
        text : str
            Question in the form of `typed_question`.
        error : str
            Acceptable error, in counts, as typed text. The price is for this error.
        errors_per_bar : int
            Number of standard errors that `error` stands for.
        offer : bool
            Whether prices may have a button, for an owner with a table.

        Returns
        -------
        Answered
            Answer, or a sentence that explains why there is none.
        """
        try:
            with self._lock:
                bought = self._bought()
                if bought is None:
                    return refused(
                        "The bank is empty: nothing was bought that could be recalled."
                    )
                question = typed_question(bought.domain, text)
                recalled = self.session.bank.recall(question.queries)
                values, errors = recalled
                wanted = _number(error)
                wanted = wanted and wanted / errors_per_bar
                costs, prices = self._costs(question.queries, errors, wanted, offer)
        except (ValueError, OSError) as e:
            return refused(self.without_paths(e))
        except MemoryError:
            return refused("There is not enough memory for this question.")
        table = _answers(question, text, values, errors)
        inside = ", and the truth is inside about 19 times in 20"
        if recalled.noise_only:
            inside = " of the noise, and leaves out how far the method itself may be off"
        note = html("note", inside, self._truncation(), recalled.by, recalled.why)
        return Answered(table + note + costs, question, prices)

    def _truncation(self) -> str:
        """Return sentences on the bound, and on its meaning for counts if the owner truncated units.
        The bank does not record whether this was done.
        """
        bound = self.session.bank.bound
        if bound is None:
            return ""
        return f" {bound.in_words} If the owner left out the rest, counts and bars are about what was kept."

    def _costs(
        self, queries: Selections, errors: np.ndarray, error: float | None, offer: bool
    ) -> tuple[str, dict[float, Price]]:
        """Return the prices of better answers: for the requested error, or for some shares of the
        present error.
        """
        largest = float(np.max(errors))
        wanted = [error] if error is not None else [largest * share for share in _SHARES]
        rows = []
        prices: dict[float, Price] = {}
        for x in wanted:
            if not 0 < x < inf:
                continue
            shown = f"±{format_number(2 * x)}"
            try:
                cost = self.session.bank.price(queries, x)
            except ValueError as e:
                rows.append((shown, self.without_paths(e), ""))
                continue
            free = "free, because the bank knows it as well already"
            if largest > x:  # a price foresees noise, a bar the error of the model as well
                free = "free of noise, but the bar has the model's error beyond it"
            paid = f"{self.sign} = {format_number(cost)} of {stated(self.session.budget.remaining)} left"
            button = ""
            if cost and offer and self.owner and self.session.table is not None:
                prices[x] = cost
                button = html("spend", x, f"{self.sign} = {format_number(cost)}")
            rows.append((shown, f"{paid if cost else free}; {cost.why}", button))
        if not rows:
            return "To see a price, state the error that would do.", prices
        columns = ["error bar of each answer, at most", "further cost to the owner", ""]
        return html("table", "A better answer", columns, rows), prices

    def _bought(self) -> NoisyAnswers | None:
        """Return all paid answers, including recent ones from other processes, or None if there are
        none.
        """
        with self._lock:
            try:
                return self.session.bank.answers
            except ValueError:
                if len(self.session.budget.ledger) and self.session.bank.domain is not None:
                    raise
                return None

    def without_paths(self, e: Exception) -> str:
        """Return an error message without file paths, for people other than the owner."""
        if isinstance(e, TimeoutError):
            return _LOCKED
        path = self.session.budget.path
        hidden = (str(path), path.name, str(path.parent))
        is_secret = not self.owner and any(name in str(e) for name in hidden)
        return _UNREADABLE if is_secret else str(e)


def _number(text: str) -> float | None:
    """Return a typed error as a number, or None for empty text. Raise a ValueError for text that is not
    a number > 0.
    """
    if not text.strip():
        return None
    try:
        x = float(text)
    except ValueError:
        x = 0.0
    if not 0 < x < inf:
        raise ValueError(f"error = {text[:40]!r} is not allowed: need a number > 0, in counts")
    return x


def _attributes_asked(workload: Any, domain: Domain) -> str:
    """Return the sets of attributes that queries use."""
    used = used_attributes(linear_queries(workload, domain), domain)
    sets = np.unique(used, axis=0)
    if len(sets) > _SETS:
        sizes = sorted(set(sets.sum(axis=1).tolist()))
        about = " and ".join(counted(k, "attribute") for k in sizes)
        return f"{len(sets)} sets of {about}"
    names = [" × ".join(np.array(domain.attributes)[row]) or "everybody" for row in sets]
    return ", ".join(names)


def _map_cell(
    error: float, noise: float, bought: bool, pair: tuple[str, str], link: str
) -> tuple[str, str, str, str]:
    """Return the colour, link, title and text of a cell of the map."""
    ratio = error / noise
    level, shown, said = "none", "?", "the bank cannot tell"
    if isfinite(ratio):
        level = str(np.searchsorted(_LEVELS, ratio))
        shown, said = f"±{format_number(2 * error)}", f"{ratio:.2g} × the noise"
    title = f"{pair[0]} × {pair[1]}: {said}{', bought' if bought else ''}"
    return level, link, title, f"{shown}{' •' if bought else ''}"


def _chosen(fields: Fields, i: int) -> tuple[str, str]:
    """Return what is chosen for an attribute, and the end of a range."""
    return fields.get(f"a{i}", "").strip(), fields.get(f"b{i}", "").strip()


def _answers(question: TypedQuestion, text: str, values: np.ndarray, errors: np.ndarray) -> str:
    """Return a row per answer: its labels, its count, its error bar, and a drawing of both on a common
    scale.
    """
    bars = np.where(np.isfinite(errors), 2 * errors, 0)
    low = min(0.0, float(np.min(values - bars)))
    high = max(1.0, float(np.max(values + bars)))
    scale = (_WIDE - 2 * _EDGE) / (high - low)

    def place(x: float) -> str:
        return f"{_EDGE + (x - low) * scale:.1f}"

    rows = []
    for labels, x, error, bar in zip(question.labels, values, errors, bars, strict=True):
        shown = f"±{format_number(2 * error)}" if isfinite(error) else "the bank cannot tell"
        drawn = html("bar", *map(place, (x - bar, x + bar, x, 0))) if isfinite(error) else ""
        names = [*map(str, labels)] if question.by else [text]
        rows.append((*names, number(round(x)), shown, drawn))
    columns = [*(question.by or ("question",)), "count", "error bar", ""]
    return html(
        "table", "Answer, at no cost", columns, rows, (len(columns) - 3, len(columns) - 2)
    )


def _legend() -> list[tuple[str, str]]:
    """Return the legend of the map, with its colours in standard deviations of the noise."""
    ends = [f"to {_LEVELS[0]:g} × noise", *(f"to {x:g}" for x in _LEVELS[1:]), "more"]
    return [*((str(i), end) for i, end in enumerate(ends)), ("none", "cannot tell")]


def _typed(label: Any) -> str:
    """Return a name or a label as a user types it, in quotes if necessary."""
    text = str(label)
    plain = text and not any(c.isspace() or c in "=|,\"'" for c in text) and ".." not in text
    is_word = text in ("&", "and", "by", "×", "in", "*")
    return text if plain and not is_word else '"' + text.replace('"', '""') + '"'


def html(part: str, *given: Any) -> str:
    """Return HTML of a part of the page. Texts are escaped."""
    found: str = getattr(_parts(), part)(*given)
    return found


@cache
def _parts() -> Any:
    return template(_PAGE).module


def refused(text: str) -> Answered:
    """Return an error as a sentence in place of an answer."""
    return Answered(html("refused", text))


# Panel

_EMPTY = Answered("")
_PEOPLE = 20_000


class BankPanel(anywidget.AnyWidget):
    """Panel that answers questions from a session's bank, which stores past noisy answers. If the session
    has its table, a button can also spend budget.

    Parameters
    ----------
    session : Session
        Session. Give it its table only if the panel may spend budget.

    Attributes
    ----------
    answered : Answered
        Result of the last question.
    """

    _esm = _PAGE.with_suffix(".js")
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
        self._fields = {"error": error}
        return self._show(self.view.answer(question, error))

    def spend(self, error: float) -> None:
        """Ask the table the displayed question, and pay the price that is offered for an error. A second
        call does nothing.
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
        else:
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
            self.ask(dict(parse_qsl(message["fields"])))


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
        """Answer a request with the page, if the request has the address of the page."""
        path, _, query = self.path.partition("?")
        ours = f"/{self.server.page.token}/"
        if not secrets.compare_digest(path.encode(), ours.encode()):
            self.send_error(404)
            return
        body = self.server.page.html(dict(parse_qsl(query[:_LONGEST]))).encode()
        self.send_response(200)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log, so that questions stay private."""
