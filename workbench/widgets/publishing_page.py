"""Web page of `workbench publish`, with its six steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from math import log
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from workbench.compiled import pd
from workbench.data import PUBLIC, SparseTable
from workbench.owner.advice import BoundAdvice
from workbench.owner.publication.folder import template
from workbench.owner.publication.sheet import certainty
from workbench.spaces import Domain
from workbench.value import format_number, number
from workbench.widgets import publishing as steps
from workbench.widgets.publishing import State


def simulated(state: State) -> list[tuple[str, float, float]]:
    """Return the largest cells of simulated data, with their true counts and their noisy counts in a
    simulated release.
    """
    row = steps.row_of(state, state.recipe.mechanism)
    table = state.believed.simulated()[0].load()
    release = row.mechanism(table, np.random.default_rng(0))  # of beliefs: nothing private
    largest = np.argsort(-table.counts, kind="stable")[: steps.SHOWN]
    cells = table.domain.frame(table.keys[largest]).to_dict("records")
    truths, noisy = table.counts[largest].tolist(), release.answer(cells).tolist()
    return [(f"cell {i}", *both) for i, both in enumerate(zip(truths, noisy, strict=True), 1)]


_PAGE = Path(__file__).with_name("publishing")  # .js, .css and .html


class PublishingPage(anywidget.AnyWidget):
    """Page that shows the six steps of `workbench publish` in a browser.

    Parameters
    ----------
    source : path
        File publication.json.
    home : path
        Folder whose tables can be chosen.
    tables : sequence of str
        Additional tables, named when the page was started.
    """

    _esm = _PAGE.with_suffix(".js")
    html = traitlets.Unicode().tag(sync=True)
    seq = traitlets.Float().tag(sync=True)

    def __init__(self, source: str | Path, home: str | Path, tables: Sequence[str] = ()):
        self.state = State(source, home, tables)
        self.step = len(steps.STEPS) - 1 if self.state.is_running else 0
        self.tried: dict[str, str] = {}
        self.looked = self.error = ""
        super().__init__()
        steps.warm()
        self.on_msg(self._on_message)
        self.show()

    def _on_message(self, _: Any, message: Mapping[str, Any], buffers: list[Any]) -> None:
        with self.hold_sync():
            self.handle(message)
            self.seq = message["seq"]  # the page shows the answer to its last message

    def handle(self, message: Mapping[str, Any]) -> None:
        """Read the fields of the current step, run the action of a button, and show the new page."""
        state, fields, action = self.state, message.get("fields", {}), message.get("do", "")
        error = "" if fields or action else self.error  # which stays while the page looks again
        try:
            state.read()
            if action == "recommended":
                fields = dict(fields) | {"limit": f"{steps.bounds(state).bound}"}
            if fields and not state.is_running:
                self.tried = {n: x for n, x in fields.items() if n.startswith(("try", "total"))}
                steps.CHOOSE[self.step](state, fields)
                state.write()
            match action.split():
                case ["step", i]:
                    if int(i) > self.step == 2:
                        steps.need_labels(state)
                    self.step, self.looked = int(i), ""
                case ["ledger"]:
                    steps.new_ledger(state, fields)
                case ["look"]:
                    self.looked = steps.look(state)
                case ["publish"]:
                    steps.start(state)
                case ["next"]:
                    state.set_page(folder="")
                    state.write()
        except Exception as e:  # a page that stays silent helps nobody
            error = str(e) or type(e).__name__
            if action == f"step {self.step - 1}":
                self.step -= 1  # back is always possible
        self.error = error
        self.show(error)

    def show(self, error: str = "") -> None:
        """Show the page of the current step, with an error message if there is one."""
        try:
            shown = self._shown()
        except Exception as e:
            shown = {"problem": self.step > 0, "tables": self.state.tables(), "columns": []}
            error = error or str(e) or type(e).__name__
        given = dict(
            state=self.state,
            step=self.step,
            steps=steps.STEPS,
            error=error,
            number=number,
            rounded=format_number,
            certainty=certainty,
        )
        page = template(_PAGE.with_suffix(".html"))
        self.html = page.render(given, **shown)

    def _shown(self) -> dict[str, Any]:
        """Return the values for the template of this step."""
        state = self.state
        match self.step:
            case 0:
                return dict(tables=state.tables(), columns=self._columns())
            case 1:
                return dict(columns=self._columns())
            case 2:
                return dict(
                    cards=[self._card(i, name) for i, name in enumerate(state.attributes())],
                    rules=steps.RULES,
                    looked=self.looked,
                )
            case 3:
                found = steps.bounds(state) if state.user else None
                return dict(
                    believed=state.beliefs,
                    found=found,
                    curve=found and curve(found, state.bound.l0),
                )
            case 4:
                advice = steps.simulation(state.believed, state.epsilon)
                ready = wait([advice], timeout=0.2).done
                return dict(
                    mean=ready and advice.result().truths["cell"],
                    ledger=steps.ledger(state),
                    total=self.tried.get("total", 3),
                    rows=steps.mechanisms(state) if ready else None,
                    simulated=simulated(state) if ready else (),
                    no_ledger=bool(state.recipe.budget)
                    and not state.beside(state.recipe.budget).exists(),
                )
        log = steps.log_file(state)
        running, done = state.is_running, state.is_published
        return dict(
            running=running, done=done, paid=state.is_paid, ledger=steps.ledger(state), mark=steps.MARK,
            log=log.read_text() if log.exists() and not (running or done) else "",
            missing=steps.missing(state),
            files=sorted(p.name for p in state.folder.iterdir()) if done and state.folder else [],
        )  # fmt: skip

    def _columns(self) -> list[tuple[str, str]]:
        """Return the columns with their declared types in words."""
        kinds = {
            "from": "integers",
            "low": "numbers",
            "time": "dates or times",
            "labels": "text",
        }
        return [
            (name, next((kinds[k] for k in kinds if k in x), ""))
            for name, x in self.state.draft().items()  # a blank is a text without these words
        ]

    def _card(self, i: int, name: str) -> dict[str, Any]:
        """Return one column of step 3: its rule, its labels and a typed example."""
        rule = self.state.columns.get(name)
        kind, text = ("labels", "") if rule is None else steps.words_of(rule)
        tried, labels, size, seen = self.tried.get(f"try{i}", ""), [], 0, ""
        gone: list[str] = []
        if rule is not None and not steps.lacks_labels(rule):
            try:
                domain = Domain.from_dict({name: rule}, self.state.source.parent)
                size, gone = domain.shape[0], self.state.lacks(domain.columns)
                labels = domain.decode(name, np.arange(min(size, steps.SHOWN))).tolist()
                if tried:
                    frame = pd.DataFrame({column: [tried] for column in domain.columns})
                    keys = SparseTable.read(frame, domain, PUBLIC).keys
                    seen = "→ the row is left out"
                    if len(keys):
                        seen = f"→ {domain.decode(name, keys)[0]}"
            except (ValueError, OSError) as e:
                seen = str(e)
        other = isinstance(rule, dict) and rule.get("other") == "label"
        return dict(i=i, name=name, on=rule is not None, kind=kind, text=text, other=other,
                    example=steps.RULES.get(kind, ("", ""))[1],
                    tried=tried, labels=labels, size=size, seen=seen, gone=gone,
                    is_user=name == self.state.user)  # fmt: skip


_WIDE, _HIGH = 600, 300
_TOP, _BASE = 15, _HIGH - 60  # of the axes


def curve(found: BoundAdvice, limit: int) -> dict[str, Any]:
    """Return the coordinates of a curve of the error against the bound, on logarithmic axes."""
    errors = found.errors
    least = min(each.error for each in errors)
    kinds = "truncation", "noise", "error"
    shown = [getattr(each, kind) for each in errors for kind in kinds]
    lowest = min(x for x in shown if x > least / 50)  # what is less does not matter
    low, high = log(lowest / 1.3), log(max(each.error for each in errors) * 1.3)
    last = log(max(errors[-1].bound, limit, 2))

    def x(bound: float) -> float:
        return round(50 + (_WIDE - 70) * log(bound) / last, 1)

    def y(error: float) -> float:
        share = (log(error) - low) / (high - low)
        return round(_TOP + (_BASE - _TOP) * (1 - share), 1)

    near = [each.bound for each in errors if each.error <= 1.2 * least]
    lines = {
        kind: " ".join(
            f"{x(e.bound)},{y(getattr(e, kind))}" for e in errors if getattr(e, kind) >= lowest
        )
        for kind in kinds
    }
    best = next(e for e in errors if e.bound == found.bound)
    round_ones = [m * 10.0**k for k in range(-2, 12) for m in (1, 2, 5)]
    marks = [x for x in round_ones if low <= log(x) <= high]
    return dict(
        lines=lines, zone=(x(near[0]) - 4, x(near[-1]) + 4), best=(x(best.bound), y(best.error)),
        chosen=x(limit), ticks=[(x(b.bound), b.bound) for b in errors[:: 1 + len(errors) // 6]],
        grid=[(y(x), number(x)) for x in marks[:: 1 + len(marks) // 6]],
        wide=_WIDE, high=_HIGH, top=_TOP, base=_BASE,
    )  # fmt: skip
