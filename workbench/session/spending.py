"""What is left of a budget, and what is booked on it before anything is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.contributions import without_column
from workbench.enclosures import round_down
from workbench.libraries import pd
from workbench.privacy import DP, ZCDP
from workbench.session import file as session_file
from workbench.session.booking import (
    Booking,
    exact_price,
    in_rho_for_less,
    refuse_unpaid,
    refuse_unpayable,
    rho_of_receipts,
    stays_spent,
)
from workbench.session.file import SessionFile, same_unit
from workbench.table import ENFORCED, SparseTable
from workbench.wording import stated

if TYPE_CHECKING:
    import sqlite3


class Spending:
    """The budget of one file: whom it is about, what is left of it, and a row for each spend."""

    budget: DP | ZCDP
    people: str | None
    unit: str | None
    relation: str

    def __init__(self, file: SessionFile, table: SparseTable | None):
        self._file = file
        self._table = table

    def _belong_to(self, metadata: dict[str, Any]) -> None:
        """Take over what the file says."""
        self.budget = session_file.budget_of(metadata["budget"])
        self.people = metadata["people"]
        self.unit = metadata["unit"]
        self.relation = metadata["relation"]
        counter = metadata["counter"]
        self._counter = None if counter is None else self.path.parent / counter

    @property
    def path(self) -> Path:
        """The session's file."""
        return self._file.path

    @property
    def has_table(self) -> bool:
        """Whether it was opened with a table, so that questions can be asked of it."""
        return self._table is not None

    def check(
        self,
        mechanism: Any = None,
        data: Any = None,
        *,
        unit: str | None = None,
        rho: float | None = None,
    ) -> DP | ZCDP | None:
        """Refuse, at no cost, what `release` would not book.

        Parameters
        ----------
        mechanism, data, unit, rho
            As for `release`; without mechanism or data, as far as can be told.

        Returns
        -------
        DP or ZCDP
            What the mechanism costs; None without a mechanism.

        Raises
        ------
        ValueError
            If the budget cannot pay for it, or it is of another unit or relation, or the mechanism
            refuses data of this kind even where there is no record.
        """
        self._refuse_other_unit(unit, getattr(data, "bound", None))
        if mechanism is None:
            return None
        refuse_unpayable(mechanism, data, self.relation)
        cost: DP | ZCDP = mechanism.budget if rho is None else ZCDP(rho)
        if rho is None and in_rho_for_less(mechanism, self.budget):
            if data is None:
                return cost
            cost = rho_of_receipts(mechanism, data)
        payable = self.payable(cost) if rho is None else cost
        with self._file.transaction(write=False) as db:
            refuse_unpaid(payable, self._remaining(db), self.budget)
        return cost

    def payable(self, cost: Any, beside: Iterable[DP | ZCDP] = ()) -> Any:
        """Return the cost, or the rest of the budget where the cost exceeds it by rounding alone.

        Ten times 0.1 is a budget of 1 on paper, but ten times the float 0.1 is more than 1. Therefore
        decimals decide whether the rest suffices, each float read as the shortest decimal that gives
        it, which is what a person typed. Floats decide what is drawn. The ledger adds the exact values of
        the floats for which noise is drawn, and the last of ten answers is drawn for what nine leave,
        0.09999999999999995. So the exact sum of all losses never exceeds the float of the budget.

        Parameters
        ----------
        cost : DP or ZCDP
            What a person asks for. A cost of another kind than the budget is returned as it is.
        beside : of DP or ZCDP
            What else is booked with it.

        Returns
        -------
        DP or ZCDP
            What to draw for and to book. `book` refuses it if it is still more than the rest.
        """
        if not isinstance(cost, type(self.budget)):
            return cost
        with self._file.transaction(write=False) as db:
            exact, on_paper = self._remaining(db), self._remaining(db, _decimal)
        others = [exact_price(other, self.budget)[0] for other in beside]
        exact = (exact[0] - sum(others), exact[1])
        on_paper = (on_paper[0] - sum(_decimal(float(other)) for other in others), on_paper[1])
        names = (self._price, "delta")
        payable: Any = {
            name: _payable(getattr(cost, name), *left)
            for name, *left in zip(names, exact, on_paper, strict=True)
        }
        return replace(cost, **payable)

    def book(
        self,
        cost: DP | ZCDP,
        what: str,
        *,
        also: Iterable[tuple[DP | ZCDP, str]] = (),
        relation: str | None = None,
        unit: str | None = None,
        out: str | Path | None = None,
    ) -> Booking:
        """Spend, before anything is drawn; what was booked is never given back.

        Parameters
        ----------
        cost : DP or ZCDP
            A proven upper bound of what will be drawn. Of a budget of zCDP an ε takes the ρ that it
            implies, ε·tanh(ε/2); whoever knows the ρ of what will be drawn books that.
        what : str
            What it is for, as the ledger keeps it.
        also : of (DP or ZCDP, str)
            What else is drawn for the same release, in rows of their own: all are booked, or none.
        relation, unit : str, optional
            What the cost is about; another one than the budget's is refused.
        out : path, optional
            The file that will be released; the ledger names it.

        Returns
        -------
        Booking
            `check` holds the receipts against it; `confirm` says that the release is there.

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one: then nothing is spent.
        """
        if relation not in (None, self.relation):
            raise ValueError(
                f"{what} is about {relation}, this budget about {self.relation}: they do not add up"
            )
        self._refuse_other_unit(unit)
        lines = [(cost, what), *also]
        file = None if out is None else str(Path(out).resolve())
        with self._file.spending(stays_spent((x for x, _ in lines), self.budget)) as db:
            questions = []
            at_first = left = self._remaining(db)
            for asked, text in lines:
                price, delta = refuse_unpaid(asked, left, self.budget)
                left = (left[0] - price, left[1] - delta)
                row: dict[str, Any] = {self._price: float(price), "delta": float(delta)}
                row |= {"time": now(), "asked": text, "file": file}
                questions.append(session_file.spend(db, **row))
        return Booking(
            self, tuple(questions), at_first[0] - left[0], at_first[1] - left[1], self.relation
        )

    def _confirm(self, questions: tuple[int, ...]) -> None:
        try:
            with self._file.transaction() as db:
                for question in questions:
                    session_file.seal(db, question)
        except (OSError, ValueError) as e:
            warnings.warn(f"released and paid for; the ledger does not know: {e}", stacklevel=3)

    def _refuse_other_unit(self, unit: str | None, bound: Any = None) -> None:
        """A ValueError if the caller or the data's bound names another unit than the budget's.

        What a bound calls a user is whomever its column names, which the caller may say. A session
        that declares no unit protects that of its own table.
        """
        own = self.unit is None and self._table is not None and bound is self._table.bound
        of_bound = "" if own else getattr(bound, "unit", "")
        enforced = getattr(bound, "status", "") == ENFORCED
        if enforced and self.unit and not same_unit(of_bound, self.unit):
            of_bound = without_column(of_bound)
        names = [unit] if unit is not None and enforced else [unit, of_bound]
        for name in names:
            if name and not (self.unit and same_unit(name, self.unit)):
                declared = f"protects {self.unit!r}" if self.unit else "declares no unit"
                raise ValueError(
                    f"{self.path} {declared}, not {name!r}: what is spent on one unit says nothing of "
                    "another"
                )

    @property
    def remaining(self) -> float:
        """The largest ε that can still be asked for; the largest ρ of a budget of zCDP."""
        return self._rounded_remaining()[0]

    @property
    def remaining_delta(self) -> float:
        """The largest δ that can still be asked for."""
        return self._rounded_remaining()[1]

    @property
    def ledger(self) -> pd.DataFrame:
        """One row a question or release: when, what, how many queries, the largest standard deviation
        of their noise, in counts (of a weighted sum over its largest weight), whether it was `answered`,
        or released, ε (or `rho`, of a budget of zCDP) and δ, and the file that was released. An answer
        can be lost, its price cannot.
        """
        names = ["question", "time", "asked", "queries", "deviation", "answered"]
        names += [self._price, "delta", "file"]
        select = f"SELECT {', '.join(names)} FROM ({session_file.ANSWERED}) ORDER BY question"
        with self._file.transaction(write=False) as db:
            rows = db.execute(select).fetchall()
            return pd.DataFrame(rows, columns=names).set_index("question")

    def _rounded_remaining(self) -> tuple[float, float]:
        with self._file.transaction(write=False) as db:
            price, delta = self._remaining(db)
        return round_down(price), round_down(delta)

    def _remaining(
        self, db: sqlite3.Connection, number: Callable[[float], Fraction] = Fraction
    ) -> tuple[Fraction, Fraction]:
        """The rest of ε or ρ, and of δ, with each float read as `number` says."""
        price = number(getattr(self.budget, self._price))
        delta = number(self.budget.delta)
        for spent_price, spent_delta in db.execute(f"SELECT {self._price}, delta FROM ledger"):
            price -= number(spent_price)
            delta -= number(spent_delta)
        return price, delta

    @property
    def _price(self) -> str:
        """What the budget counts, as the ledger names it."""
        return session_file.price_of(session_file.budget_record(self.budget))


def _payable(asked: float, exact: Fraction, on_paper: Fraction) -> float:
    """What is asked, or the exact rest if decimals, or the rest as it is printed, suffice."""
    left = round_down(max(exact, Fraction(0)))
    if not 0 < left < asked < inf:
        return asked
    return left if _decimal(asked) <= on_paper or asked <= float(stated(left)) else asked


def _decimal(x: float) -> Fraction:
    """The shortest decimal that gives a float."""
    return Fraction(repr(float(x)))


def now() -> str:
    """The time of a spend, as the ledger writes it."""
    return datetime.now(UTC).isoformat("T", "seconds")
