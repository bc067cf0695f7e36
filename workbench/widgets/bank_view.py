"""What a bank holds and what it says, as pieces of a page: from the bank alone, all labels escaped."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from workbench.inference.marginals import used_attributes
from workbench.owner import Session
from workbench.privacy import ZCDP
from workbench.queries import Selections, TypedQuestion, linear_queries, typed_question
from workbench.spaces import Domain
from workbench.value import counted, format_number, number, stated

if TYPE_CHECKING:
    from workbench.estimates import NoisyAnswers
    from workbench.owner.price import Price


STYLE = (Path(__file__).parent / "bank.css").read_text()
_LABELS = 24  # of an attribute that are listed
_ATTRIBUTES = 20  # on the map
_CODES = 5_000_000  # of its largest attribute, over all cells that the map looks at
_SETS = 3  # of attributes that a row of the ledger names
_LEVELS = (
    1.25,
    2.5,
    6.0,
    20.0,
)  # errors, in deviations of the noise, between colours of the map
_SHARES = (0.5, 0.2)  # of the present error, that are priced where none is asked for
_UNREADABLE = "The bank cannot be read now; its owner's terminal says why."


class Answered(NamedTuple):
    """What is said of a question; the question and the price of the error that was asked for, if any."""

    html: str
    question: TypedQuestion | None = None
    price: Price | None = None


class BankView:
    """A session's bank, as whoever asks may see it: nothing here spends, or needs a table.

    Parameters
    ----------
    session : Session
        Its file may be in use by others meanwhile.
    owner : bool
        Whether files and the text of a release may be named; a page for others shows neither.
    """

    def __init__(self, session: Session, owner: bool = False):
        self.session = session
        self.owner = owner
        self._lock = threading.RLock()  # fits are made once, whoever asks
        self._map: tuple[int, bool, str] = (-1, False, "")

    @property
    def sign(self) -> str:
        """What a price is counted in."""
        return "ρ" if isinstance(self.session.budget, ZCDP) else "ε"

    def summary(self) -> str:
        """Whom the bank is about, and what is left of its budget."""
        session = self.session
        self._bought()
        facts = [("budget", str(session.budget))]
        facts += [("left", f"{self.sign} = {stated(session.remaining)}")]
        facts += [(name, x) for name in ("people", "unit") if (x := getattr(session, name))]
        if session.total is not None:
            facts.append(("records, declared", number(session.total)))
        parts = (f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in facts)
        return f"<dl>{''.join(parts)}</dl>"

    def contents(self) -> str:
        """What was asked, when, and what it cost."""
        ledger = self.session.ledger
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
            return "<p>Nothing was asked yet.</p>"
        columns = ["asked", "answers", "noise, ±", self.sign, "when (UTC)"]
        return _table("What was bought, and for what", columns, rows, numbers=(1, 2, 3))

    def map(self, link: str = "") -> str:
        """How far off each pair of attributes is expected to be, beside the noise of what was bought.

        With a `link` each pair is one, to the question.
        """
        with self._lock:
            bought = self._bought()
            size = 0 if bought is None else len(bought)
            if self._map[:2] != (size, bool(link)):
                text = "" if bought is None else self._drawn_map(bought, link)
                self._map = (size, bool(link), text)
            return self._map[2]

    def _drawn_map(self, bought: NoisyAnswers, link: str) -> str:
        domain = bought.domain
        names = domain.attributes[:_ATTRIBUTES]
        if len(names) < 2:
            return ""
        noise = float(np.median(bought.deviations_in_counts))
        queries = min(2_000, _CODES // max(domain.shape))
        errors = {
            frozenset((pair.first, pair.second)): pair
            for pair in self.session.pair_errors(queries).itertuples()
        }
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names[:-1])
        rows = []
        for i, name in enumerate(names[1:], 1):
            cells = []
            for other in names[:i]:
                pair = errors[frozenset((name, other))]
                cells.append(_map_cell(pair.error, noise, pair.bought, (other, name), link))
            rows.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>')
        left_out = len(domain.attributes) - len(names)
        more = f" {counted(left_out, 'attribute')} not shown." if left_out > 0 else ""
        return (
            "<p><b>How well each pair of attributes is known</b>: the typical error of its counts (one "
            "bar), predicted from the bank alone. What was bought has noise of "
            f"±{format_number(noise)}; • was bought.{more}</p>"
            '<div class="wbank-wide"><table class="wbank-map" aria-label="Errors of pairs of attributes">'
            f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
            f'<p class="wbank-legend">{_legend()}</p>'
        )

    def attributes(self) -> str:
        """What can be asked about: names and labels."""
        self._bought()
        domain = self.session.domain
        if domain is None:
            return ""
        rows = []
        for name, n in zip(domain.attributes, domain.shape, strict=True):
            labels = domain.decode(name, np.arange(min(n, _LABELS)))
            last = domain.decode(name, np.array([n - 1]))[0]
            if isinstance(domain.decode(name, np.arange(1))[0], int | np.integer):
                text = f"{labels[0]} .. {last}"
            else:
                text = ", ".join(map(str, labels)) + (f", … {last}" if n > _LABELS else "")
            rows.append((name, number(n), text))
        columns = ["attribute", "labels", "which"]
        return _table("What can be asked about", columns, rows, numbers=(1,))

    def example(self) -> str:
        """A question that this bank's labels allow."""
        self._bought()
        domain = self.session.domain
        if domain is None:
            return ""
        first, *others = domain.attributes
        label = domain.decode(first, np.array([0]))[0]
        return " by ".join(
            [_typed(others[0]), f"{_typed(first)}={_typed(label)}"][-len(others) - 1 :]
        )

    def answer(self, text: str, error: str = "") -> Answered:
        """What the bank says of a question, and what a better answer would cost.

        Parameters
        ----------
        text : str
            As `typed_question` reads it.
        error : str
            The error that would do, in counts, as it is typed, whose price is wanted.

        Returns
        -------
        Answered
            A sentence, where there is no answer.
        """
        try:
            with self._lock:
                bought = self._bought()
                if bought is None:
                    return refused(
                        "The bank is empty: nothing was bought that could be recalled."
                    )
                question = typed_question(bought.domain, text)
                recalled = self.session.recall(question.queries)
                values, errors = recalled
                costs, price = self._costs(question.queries, errors, _number(error))
        except (ValueError, OSError) as e:
            return refused(self.without_paths(e))
        except MemoryError:
            return refused("There is not enough memory for this question.")
        rows = []
        for labels, x, bar in zip(question.labels, values, errors, strict=True):
            shown = format_number(bar) if isfinite(bar) else "the bank cannot tell"
            rows.append(
                (*(map(str, labels) if question.by else (text,)), number(round(x)), shown)
            )
        columns = [*(question.by or ("question",)), "count", "±"]
        last = len(columns) - 1
        table = _table("Recalled, at no cost", columns, rows, numbers=(last - 1, last))
        note = (
            "<p>The truth is meant to lie within twice the bar, some 19 times in 20."
            f"{escape(self._truncation())}</p>"
            f"<p><b>By {escape(recalled.by)}</b>: {escape(recalled.why)}.</p>"
        )
        return Answered(f"{table}{note}{costs}", question, price)

    def _truncation(self) -> str:
        """What counts are about if the owner truncated units, which the bank does not say."""
        bound = self.session.bound
        if bound is None:
            return ""
        return f" {bound.in_words} If the owner left out the rest, counts and bars are about what was kept."

    def _costs(
        self, queries: Selections, errors: np.ndarray, error: float | None
    ) -> tuple[str, Price | None]:
        """What answers of less error would cost, and the price of the one that was asked for."""
        largest = float(np.max(errors))
        wanted = [error] if error is not None else [largest * share for share in _SHARES]
        rows = []
        price = None
        for x in wanted:
            if not 0 < x < inf:
                continue
            try:
                cost = self.session.price(queries, x)
            except ValueError as e:
                rows.append((format_number(x), self.without_paths(e)))
                continue
            price = cost if error is not None else None
            free = "nothing: the bank knows it as well already"
            if largest > x:  # a price foresees noise, a bar the error of the model as well
                free = "nothing for noise; what the bar has beyond is the model's error"
            paid = (
                f"{self.sign} = {format_number(cost)} of {stated(self.session.remaining)} left"
            )
            rows.append((format_number(x), f"{paid if cost else free}; {cost.why}"))
        if not rows:
            return "<p>What a better answer costs: say which error would do.</p>", None
        columns = ["error of each, at most", "further cost"]
        return _table("What a better answer would cost its owner", columns, rows), price

    def _bought(self) -> NoisyAnswers | None:
        """All answers that were paid for, also by others just now; None if there are none."""
        with self._lock:
            try:
                return self.session.bank
            except ValueError:
                if len(self.session.ledger) and self.session.domain is not None:
                    raise
                return None

    def without_paths(self, e: Exception) -> str:
        """What may be shown of an error to whom the file is no business."""
        path = self.session.path
        hidden = (str(path), path.name, str(path.parent))
        is_secret = not self.owner and any(name in str(e) for name in hidden)
        return _UNREADABLE if is_secret else str(e)


def _number(text: str) -> float | None:
    """An error as it is typed; None for nothing, and a ValueError for what is no number > 0."""
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
    """The sets of attributes that answers are about."""
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
) -> str:
    ratio = error / noise
    level = "none" if not isfinite(ratio) else str(np.searchsorted(_LEVELS, ratio))
    shown = "?" if level == "none" else format_number(error)
    said = "the bank cannot tell" if level == "none" else f"{ratio:.2g} × the noise"
    title = escape(f"{pair[0]} × {pair[1]}: {said}{', bought' if bought else ''}", quote=True)
    text = f"{shown}{' •' if bought else ''}"
    if link:
        asked = quote(" × ".join(map(_typed, pair)))
        text = f'<a href="{link}{asked}#answer" title="{title}">{text}</a>'
    return f'<td class="wbank-{level}" title="{title}">{text}</td>'


def _legend() -> str:
    """The colours of the map, in deviations of the noise."""
    ends = [f"to {_LEVELS[0]:g} × noise"]
    ends += [f"to {high:g}" for _, high in pairwise(_LEVELS)]
    ends += ["more"]
    spans = [f'<span class="wbank-{i}">{escape(end)}</span>' for i, end in enumerate(ends)]
    return " ".join([*spans, '<span class="wbank-none">cannot tell</span>'])


def _typed(label: Any) -> str:
    """A name or a label as it is typed, in quotes where it needs them."""
    text = str(label)
    plain = text and not any(c.isspace() or c in "=|,\"'" for c in text) and ".." not in text
    is_word = text in ("&", "and", "by", "×", "in", "*")
    return text if plain and not is_word else '"' + text.replace('"', '""') + '"'


def _table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int] = (),
) -> str:
    """A table of plain texts; those in `numbers` stand to the right."""

    def cell(tag: str, i: int, x: Any) -> str:
        side = ' class="wbank-number"' if i in numbers else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{side}{scope}>{escape(str(x))}</{tag}>"

    def line(tag: str, row: Sequence[str]) -> str:
        return f"<tr>{''.join(cell(tag, i, x) for i, x in enumerate(row))}</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f'<div class="wbank-wide"><table><caption>{escape(caption)}</caption>'
        f"<thead>{line('th', columns)}</thead><tbody>{body}</tbody></table></div>"
    )


def refused(text: str) -> Answered:
    """A sentence in place of an answer."""
    return Answered(f'<p class="wbank-error" role="alert">{escape(text)}</p>')
