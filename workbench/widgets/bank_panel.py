"""A bank under a line to type in: what it holds, what it can answer, and what more would cost."""

from __future__ import annotations

from typing import Any

import ipywidgets

from workbench.datasets import IPUMSTwin, Projected
from workbench.privacy import DP, ZCDP
from workbench.session import Session
from workbench.temporary import process_folder
from workbench.widgets.bank_view import STYLE, Answered, BankView, refused
from workbench.wording import format_number
from workbench.workload import Marginals, NamedMarginals

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
