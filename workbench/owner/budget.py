"""Budgets: what releases about some people may cost, in a file that books before anything is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.compiled import pd
from workbench.data import ENFORCED, Bound, without_column
from workbench.estimates.describing import USERS_CUT
from workbench.estimates.release import Release, knows_users_cut, refuse_report_cut
from workbench.estimates.release_files import refuse_place, reserve
from workbench.owner import ledger
from workbench.owner.costs import (
    description,
    in_rho_for_less,
    refuse_unpayable,
    rho_of_receipts,
)
from workbench.owner.ledger import SessionFile, same_unit
from workbench.privacy import (
    ADD_REMOVE,
    DP,
    LOCAL,
    RELATIONS,
    ZCDP,
    Receipt,
    compose,
    exact_cost,
    exact_rho,
    rho_above,
    warn_if_large,
)
from workbench.privacy.enclosures import round_down
from workbench.value import stated

if TYPE_CHECKING:
    import sqlite3


# Declared


def declared_people(people: Any, unit: Any, relation: str) -> dict[str, Any]:
    """Return whom a budget protects, as its file holds it."""
    declared = {"relation": relation}
    for name, text in {"people": people, "unit": unit}.items():
        if not isinstance(text, str) or not text.strip() or not text.isprintable():
            raise ValueError(f"{name} = {text!r} is not allowed: need a name in words")
        declared[name] = " ".join(text.split())
    if relation not in RELATIONS:
        raise ValueError(
            f"relation = {relation!r} is not allowed: need one of {', '.join(RELATIONS)}"
        )
    return declared


def declared_limit(limit: Any) -> dict[str, Any]:
    """Return what everything may cost, as the file of a budget holds it."""
    is_finite = isinstance(limit, DP) and 0 < limit.epsilon < inf and limit.delta < 1
    if not is_finite and not isinstance(limit, ZCDP):
        raise ValueError(
            f"budget = {limit!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), or "
            "ZCDP(rho)"
        )
    return {"budget": ledger.budget_record(limit)}


def _resolved(path: str | Path) -> Path:
    """Return the file that is meant, wherever the process goes from here."""
    path = Path(path).resolve()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: need the path of a file")
    return path


# Booking


@dataclass(frozen=True)
class Booking:
    """A spend that is on disk, and what may be drawn for it.

    Parameters
    ----------
    budget : what was spent from.
    questions : the numbers of its rows in the ledger.
    spent, delta : what they cost together, exactly: ε, or ρ where the budget is one of zCDP; and δ.
    relation : which neighbours that is about.
    """

    budget: Budget
    questions: tuple[int, ...]
    spent: Fraction
    delta: Fraction
    relation: str
    _unused: list[bool] = field(
        default_factory=lambda: [True], init=False, repr=False, compare=False
    )

    def check(self, release: Release | Iterable[Receipt]) -> None:
        """Refuse a release that cost more than was booked, or promises something else.

        A booking pays for one release. Once a release has passed, every other one is refused.

        Parameters
        ----------
        release : what was drawn, or its receipts.

        Raises
        ------
        ValueError
            If it must be withheld. What was booked stays spent.
        """
        receipts = release.ledger if isinstance(release, Release) else tuple(release)
        wrong = _unfit(receipts, self.relation)
        if not wrong:
            wrong = self._too_dear(receipts)
        if wrong:
            raise ValueError(
                f"the release is withheld, and what was booked stays spent: {wrong}"
            )
        try:
            self._unused.pop()  # atomic, so that only one of several threads passes
        except IndexError:
            raise ValueError(
                "the release is withheld: this booking has already paid for another release. Book again "
                "for each release"
            ) from None

    def _too_dear(self, receipts: tuple[Receipt, ...]) -> str:
        """Why it costs more than was booked, or "" if it does not."""
        in_rho = isinstance(self.budget.limit, ZCDP)
        if not in_rho and any(isinstance(r.cost, ZCDP) for r in receipts):
            return f"its receipts say {compose(receipts)}, of which a budget of ε pays nothing"
        spent, delta = exact_rho(receipts) if in_rho else exact_cost(receipts)
        if spent <= self.spent and delta <= self.delta:
            return ""
        cost = type(self.budget.limit)(float(spent), min(1.0, float(delta)))
        return f"its receipts say {cost}, and {self.booked} was booked"

    @property
    def booked(self) -> DP | ZCDP:
        """The whole spend, rounded down."""
        kind = type(self.budget.limit)
        return kind(round_down(self.spent), min(1.0, round_down(self.delta)))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Say in an error of the disk what was spent on the release that could not be saved."""
        try:
            yield
        except OSError as e:
            text = stays_spent([self.booked], self.budget.limit)
            raise OSError(f"{e}. {text}") from None

    def confirm(self) -> None:
        """Write down that what was paid for is there; until then the ledger takes it for lost."""
        self.budget._confirm(self.questions)


def stays_spent(costs: Iterable[DP | ZCDP], budget: DP | ZCDP) -> str:
    """Return what to say where nothing came of a spend."""
    return (
        f"{' and '.join(map(str, costs))} of the budget of {budget} was spent and stays spent"
    )


def _unfit(receipts: tuple[Receipt, ...], relation: str) -> str:
    """Why what cost this must not leave, or "" if it may."""
    if not receipts:
        return "it has no receipt"
    for receipt in receipts:
        if isinstance(receipt.cost, DP) and receipt.cost.epsilon == inf:
            return f"it promises nothing: {receipt.description}"
        if receipt.simulated or receipt.idealised:
            return f"its noise can be replayed, or is idealised: {receipt.description}"
        if receipt.relation != relation:
            return f"a receipt is about {receipt.relation}, and the budget about {relation}"
    return ""


def exact_price(cost: DP | ZCDP, budget: DP | ZCDP) -> tuple[Fraction, Fraction]:
    """Return what a cost takes from a budget, and δ: of one of zCDP an ε takes the ρ that it implies.

    A ValueError for what is never booked: what promises nothing, or zCDP from a budget of ε.
    """
    if isinstance(cost, ZCDP) and isinstance(budget, ZCDP):
        return Fraction(cost.rho), Fraction(cost.delta)
    if isinstance(cost, ZCDP):
        raise ValueError(
            f"{cost} promises no epsilon without a delta, and {budget} is a budget of epsilon: begin one "
            "of rho, or spend on noise that costs an epsilon"
        )
    if not isinstance(cost, DP) or not 0 < cost.epsilon < inf or cost.delta >= 1:
        raise ValueError(
            f"cost = {cost!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1); what promises "
            "nothing is never booked"
        )
    price = rho_above(cost.epsilon) if isinstance(budget, ZCDP) else cost.epsilon
    return Fraction(price), Fraction(cost.delta)


class Unpaid(ValueError):
    """Less is left of a budget than was asked for."""


def refuse_unpaid(
    asked: DP | ZCDP, left: tuple[Fraction, Fraction], budget: DP | ZCDP
) -> tuple[Fraction, Fraction]:
    """Return what is asked takes from the budget, exactly; `Unpaid` if less than that is left."""
    price = exact_price(asked, budget)
    names = ("rho" if isinstance(budget, ZCDP) else "epsilon", "delta")
    for name, wanted, remaining in zip(names, price, left, strict=True):
        if wanted > remaining:
            rounded = round_down(remaining)
            words: Callable[[float], str] = stated
            if float(stated(rounded)) >= float(stated(float(wanted))):
                words = repr  # all digits: the usual ones would say that it is enough
            raise Unpaid(
                f"{name} = {words(float(wanted))} is more than the {words(rounded)} that remain of "
                f"{budget}: nothing was spent"
            )
    return price


# Budget


class Budget:
    """Limit on what everything that is released about some people may cost one unit, in one file.

    A spend is on disk before any noise is drawn, and is never given back. `Budget.create` begins one for
    people. `Session.open` may begin one for a single table.

    Parameters
    ----------
    path : path
        The budget's file.
    limit : DP or ZCDP, optional
        What everything may cost. A file with another limit is refused.
    begin : bool
        Whether to create the file, for one table, if there is none.
    data : path, optional
        The file that the table came from: `<data>.session` next to it names this budget, and any other is
        refused.
    lost : bool
        Whether the budget that `<data>.session` names is gone, or the counter is, and the caller counts
        what was spent.

    Attributes
    ----------
    limit : DP or ZCDP
        What everything may cost.
    people, unit : str or None
        Whom it is about, and whom of them it protects. None if it belongs to one table.
    relation : str
        Which neighbours: one of `privacy.RELATIONS`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no budget, is damaged or is an older copy.
    TimeoutError
        If another process holds the file.
    """

    limit: DP | ZCDP
    people: str | None
    unit: str | None
    relation: str

    def __init__(
        self,
        path: str | Path,
        limit: DP | ZCDP | None = None,
        *,
        begin: bool = False,
        data: str | Path | None = None,
        lost: bool = False,
    ) -> None:
        path = _resolved(path)
        declared = {} if limit is None else declared_limit(limit)
        begin = begin and limit is not None
        if not path.exists():
            if not begin or not path.parent.is_dir():
                raise FileNotFoundError(
                    f"{path}: no such budget. Begin one with Budget.create, or with Session.open(path, "
                    "table, budget), in a folder that exists"
                )
            warn_if_large(ledger.budget_of(declared["budget"]))
        self.file = SessionFile(path)
        with self.file.transaction(new=begin, write=begin) as db:
            with ledger.refused_if_strange(path):
                about = self.file.settle(db, declared)
                self._belong_to(about)
            if about["counter"] is not None:
                counter = path.parent / about["counter"]
                self.file.watch(db, ledger.known_counter(counter, path, self.file.id, lost))
            if data is not None:
                file = Path(data).resolve()
                self.file.watch(db, ledger.data_counter(file, path, self.file.id, lost))

    @classmethod
    def create(
        cls,
        path: str | Path,
        limit: DP | ZCDP,
        *,
        people: str,
        unit: str,
        relation: str = ADD_REMOVE,
        counter: str | Path | None = None,
    ) -> Self:
        """Begin a budget for people: what all releases about them may cost, of whatever data.

        A small file next to it, or where `counter` says, counts the spends, so that an older copy is
        refused. Nothing helps if somebody puts both back, or begins a second budget.

        Parameters
        ----------
        path : path
            The file. None may exist.
        limit : DP or ZCDP
            What everything together may cost a unit: a finite ε > 0, or ρ, and δ < 1.
        people : str
            A declared name, for example "customers of shop X". Data are never hashed: next month's export
            about the same people spends from the same file.
        unit : str
            Whom the budget protects, for example "a user" or "a trip".
        relation : str
            Which neighbours: one of `privacy.RELATIONS`.
        counter : path, optional
            By default `<path>.count`. A place of which the file's own backup knows nothing is better.

        Returns
        -------
        Budget

        Raises
        ------
        ValueError
            If a file exists, the counter counts for another budget, or the budget promises nothing.
        """
        path = _resolved(path)
        declared = declared_limit(limit) | declared_people(people, unit, relation)
        warn_if_large(limit)
        counter = path.with_name(f"{path.name}.count") if counter is None else Path(counter)
        counter = counter.resolve()
        exists = f"{path} exists: a budget is begun once, and spent to its end"
        if path.exists() and path.stat().st_size:
            raise ValueError(exists)
        for folder in (path.parent, counter.parent):
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder}: no such folder")
        beside = counter.parent == path.parent
        declared["counter"] = counter.name if beside else str(counter)  # both may move together
        budget = cls.__new__(cls)
        budget.file = SessionFile(path)
        with budget.file.transaction(new=True) as db:
            if ledger.is_begun(db):
                raise ValueError(exists)
            budget._belong_to(budget.file.settle(db, declared))
            budget.file.watch(db, ledger.new_counter(counter, path, budget.file.id))
        return budget

    def _belong_to(self, about: dict[str, Any]) -> None:
        """Take over what the file says."""
        self.limit = ledger.budget_of(about["budget"])
        self.people = about["people"]
        self.unit = about["unit"]
        self.relation = about["relation"]

    @property
    def path(self) -> Path:
        """The budget's file."""
        return self.file.path

    def __repr__(self) -> str:
        try:
            return f"<Budget {self.path.name}: {stated(self.remaining)} of {self.limit} remain>"
        except (OSError, ValueError):
            return f"<Budget {self.path.name}: cannot be read>"

    def release(
        self,
        mechanism: Any,
        data: Any,
        *,
        unit: str | None = None,
        report_cut: float | None = None,
        out: str | Path | None = None,
        force: bool = False,
        rho: float | None = None,
    ) -> Release:
        """Spend a mechanism's budget and release: tables, marginals, records and interactions alike.

        The spend is on disk before the first draw, and is never given back. If the mechanism refuses
        data without a record, of the same domain and bound, nothing is spent.

        Parameters
        ----------
        mechanism : Mechanism
            Its `budget` is what is booked.
        data : SparseTable, Records or Interactions
            What the mechanism takes, about this budget's people.
        unit : str, optional
            Whom the data's bound is about, in words. Another unit than the budget's is refused. By
            default what the bound says. If the bound says nothing, it is believed to be about the
            budget's unit, and the release says so, because nobody has truncated anybody.
        report_cut : float, optional
            ε of how many users lost anything to the bound, which is then booked and released as well.
        out : path, optional
            Where the release is saved. The ledger names the file.
        force : bool
            Overwrite an existing file.
        rho : float, optional
            What to book from a budget of zCDP for a mechanism whose own budget is an ε, if its
            receipts are known to say less than what is booked by default: the ρ of its receipts, if
            they say the same for all data (`fixed_price`), else the ε·tanh(ε/2) that the ε implies.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one: then nothing is spent. If the
            receipts cost more than was booked: then the release is withheld.
        """
        cost: Any = self.check(mechanism, data, unit=unit, rho=rho)
        if out is not None:
            refuse_place(Path(out), force)
        also = []
        if report_cut is not None:
            if self.relation == LOCAL or not knows_users_cut(data):
                raise ValueError("report_cut: need data whose users were cut to their bound")
            refuse_report_cut(report_cut)
            also.append((DP(report_cut), USERS_CUT))
        own = getattr(mechanism, "__dataclass_fields__", {})
        if rho is None and "budget" in own and isinstance(cost, type(mechanism.budget)):
            cost = self.payable(cost, [price for price, _ in also])
            mechanism = replace(mechanism, budget=cost)
        what = description(mechanism, self.limit)
        with nullcontext() if out is None else closing(reserve(Path(out), data)):
            booking = self.book(cost, what, also=also, out=out)
            release = self._of_unit(mechanism(data), unit)
            if report_cut is not None:
                release = release.with_users_cut(data, report_cut)
        booking.check(release)
        if out is not None:
            with booking.saving():
                release.save(out, force=force)
        booking.confirm()
        return release

    def _of_unit(self, release: Release, unit: str | None) -> Release:
        """Return the release, whose bound says whom it is taken to be about."""
        bound = release.bound
        unit = unit or self.unit
        if not isinstance(bound, Bound) or bound.unit or unit is None:
            return release
        return replace(release, bound=bound.believed(unit))

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
            What the mechanism costs, or None without a mechanism.

        Raises
        ------
        ValueError
            If the budget cannot pay for it, or it is of another unit or relation, or the mechanism
            refuses data of this kind even where there is no record.
        """
        self.refuse_other_unit(unit, getattr(data, "bound", None))
        if mechanism is None:
            return None
        refuse_unpayable(mechanism, data, self.relation)
        cost: DP | ZCDP = mechanism.budget if rho is None else ZCDP(rho)
        if rho is None and in_rho_for_less(mechanism, self.limit):
            if data is None:
                return cost
            cost = rho_of_receipts(mechanism, data)
        payable = self.payable(cost) if rho is None else cost
        with self.file.transaction(write=False) as db:
            refuse_unpaid(payable, self._remaining(db), self.limit)
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
        if not isinstance(cost, type(self.limit)):
            return cost
        with self.file.transaction(write=False) as db:
            exact, on_paper = self._remaining(db), self._remaining(db, _decimal)
        others = [exact_price(other, self.limit)[0] for other in beside]
        exact = (exact[0] - sum(others), exact[1])
        on_paper = (on_paper[0] - sum(_decimal(float(other)) for other in others), on_paper[1])
        names = (self.price, "delta")
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
        """Spend, before anything is drawn. What was booked is never given back.

        Parameters
        ----------
        cost : DP or ZCDP
            A proven upper bound of what will be drawn. From a budget of zCDP an ε takes the ρ that it
            implies, ε·tanh(ε/2). If you know the ρ of what will be drawn, book that.
        what : str
            What it is for, as the ledger keeps it.
        also : of (DP or ZCDP, str)
            What else is drawn for the same release, in rows of their own: all are booked, or none.
        relation, unit : str, optional
            The unit of privacy of the cost. It must be the budget's unit.
        out : path, optional
            The file that will be released, which the ledger names.

        Returns
        -------
        Booking
            `check` compares the receipts with it, and `confirm` says that the release exists.

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one. Then nothing is spent.
        """
        if relation not in (None, self.relation):
            raise ValueError(
                f"{what} is about {relation}, this budget about {self.relation}: they do not add up"
            )
        self.refuse_other_unit(unit)
        file = None if out is None else str(Path(out).resolve())
        with self.spending([(cost, what), *also], file=file) as (_, booking):
            return booking

    @contextmanager
    def spending(
        self, costs: Sequence[tuple[DP | ZCDP, str]], **columns: Any
    ) -> Iterator[tuple[sqlite3.Connection, Booking]]:
        """Open a transaction that books costs, each in a row of the ledger with these extra columns.

        Other writes in this transaction are on disk together with the spend.
        """
        with self.file.spending(stays_spent((x for x, _ in costs), self.limit)) as db:
            questions = []
            at_first = left = self._remaining(db)
            for cost, text in costs:
                price, delta = refuse_unpaid(cost, left, self.limit)
                left = (left[0] - price, left[1] - delta)
                row: dict[str, Any] = {self.price: float(price), "delta": float(delta)}
                row |= {"time": _now(), "asked": text, **columns}
                questions.append(ledger.spend(db, **row))
            spent = (at_first[0] - left[0], at_first[1] - left[1])
            yield db, Booking(self, tuple(questions), *spent, self.relation)

    def _confirm(self, questions: tuple[int, ...]) -> None:
        try:
            with self.file.transaction() as db:
                for question in questions:
                    ledger.seal(db, question)
        except (OSError, ValueError) as e:
            warnings.warn(f"released and paid for; the ledger does not know: {e}", stacklevel=3)

    def refuse_other_unit(self, unit: str | None, bound: Any = None) -> None:
        """Raise a ValueError if the caller or the data's bound names another unit than the budget's.

        A bound may call the values of a column users, and the caller may say who they are.
        """
        of_bound = getattr(bound, "unit", "")
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
        names += [self.price, "delta", "file"]
        select = f"SELECT {', '.join(names)} FROM ({ledger.ANSWERED}) ORDER BY question"
        with self.file.transaction(write=False) as db:
            rows = db.execute(select).fetchall()
            return pd.DataFrame(rows, columns=names).set_index("question")

    def _rounded_remaining(self) -> tuple[float, float]:
        with self.file.transaction(write=False) as db:
            price, delta = self._remaining(db)
        return round_down(price), round_down(delta)

    def _remaining(
        self, db: sqlite3.Connection, number: Callable[[float], Fraction] = Fraction
    ) -> tuple[Fraction, Fraction]:
        """Return the rest of ε or ρ, and of δ, with each float read as `number` says."""
        price = number(getattr(self.limit, self.price))
        delta = number(self.limit.delta)
        for spent_price, spent_delta in db.execute(f"SELECT {self.price}, delta FROM ledger"):
            price -= number(spent_price)
            delta -= number(spent_delta)
        return price, delta

    @property
    def price(self) -> str:
        """Name of the currency in the ledger, "epsilon" or "rho"."""
        return ledger.price_of(ledger.budget_record(self.limit))


def _payable(asked: float, exact: Fraction, on_paper: Fraction) -> float:
    """Return what is asked, or the exact rest if decimals, or the rest as it is printed, suffice."""
    left = round_down(max(exact, Fraction(0)))
    if not 0 < left < asked < inf:
        return asked
    return left if _decimal(asked) <= on_paper or asked <= float(stated(left)) else asked


def _decimal(x: float) -> Fraction:
    """Return the shortest decimal that gives a float."""
    return Fraction(repr(float(x)))


def _now() -> str:
    """Return the time of a spend, as the ledger writes it."""
    return datetime.now(UTC).isoformat("T", "seconds")
