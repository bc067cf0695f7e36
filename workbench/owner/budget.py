"""Budgets: limits on the privacy cost of releases, in a file that records each cost before any noise is
drawn.
"""

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
    """Return the protected people and the unit, as the file stores them."""
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
    """Return the limit of a budget, as the file stores it."""
    is_finite = isinstance(limit, DP) and 0 < limit.epsilon < inf and limit.delta < 1
    if not is_finite and not isinstance(limit, ZCDP):
        raise ValueError(
            f"budget = {limit!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), or "
            "ZCDP(rho)"
        )
    return {"budget": ledger.budget_record(limit)}


def _resolved(path: str | Path) -> Path:
    """Return the absolute path of the file, so that a later change of the current folder does not
    matter.
    """
    path = Path(path).resolve()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: need the path of a file")
    return path


# Booking


@dataclass(frozen=True)
class Booking:
    """Record in the ledger that part of a budget was spent on one release.

    Parameters
    ----------
    budget : Budget that pays.
    questions : Numbers of its rows in the ledger.
    spent, delta : Exact total cost: ε, or ρ if the budget is in zCDP, and δ.
    relation : Neighbouring relation of the cost.
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
        """Raise a ValueError if a release costs more than was booked for it, or if it has another kind of
        guarantee.

        A booking pays for one release. After one release has passed, every other one raises an error.

        Parameters
        ----------
        release : Release, or its receipts.

        Raises
        ------
        ValueError
            If the release must be withheld. The booked cost remains spent.
        """
        receipts = release.ledger if isinstance(release, Release) else tuple(release)
        wrong = _unfit(receipts, self.relation)
        if not wrong:
            wrong = self._too_dear(receipts)
        if wrong:
            raise ValueError(
                f"the release is withheld, and its booked cost stays spent: {wrong}"
            )
        try:
            self._unused.pop()  # atomic, so that only one of several threads passes
        except IndexError:
            raise ValueError(
                "the release is withheld: this booking has already paid for another release. Book again "
                "for each release"
            ) from None

    def _too_dear(self, receipts: tuple[Receipt, ...]) -> str:
        """Return the reason if the receipts cost more than was booked, and otherwise ""."""
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
        """Total cost that was booked, rounded down."""
        kind = type(self.budget.limit)
        return kind(round_down(self.spent), min(1.0, round_down(self.delta)))

    @contextmanager
    def saving(self, release: Release) -> Iterator[None]:
        """Check a release. After the `with` block, record in the ledger that it exists. Errors of the disk
        name the cost of the release that could not be saved.
        """
        self.check(release)
        try:
            yield
        except OSError as e:
            text = stays_spent([self.booked], self.budget.limit)
            raise OSError(f"{e}. {text}") from None
        self.confirm()

    def confirm(self) -> None:
        """Record in the ledger that the release was saved. Until then, the ledger shows it as lost."""
        self.budget._confirm(self.questions)


def stays_spent(costs: Iterable[DP | ZCDP], budget: DP | ZCDP) -> str:
    """Return the sentence of an error after a spend that gave no result."""
    return (
        f"{' and '.join(map(str, costs))} of the budget of {budget} was spent and stays spent"
    )


def _unfit(receipts: tuple[Receipt, ...], relation: str) -> str:
    """Return the reason why a release with these receipts must be withheld, or ""."""
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
    """Return the exact amount, and the δ, that a cost takes from a budget. If the budget is in ρ, a cost in
    ε takes the ρ that it implies.

    Raise a ValueError for a cost that promises nothing, and for a cost in ρ if the budget is in ε.
    """
    if isinstance(cost, ZCDP) and isinstance(budget, ZCDP):
        return Fraction(cost.rho), Fraction(cost.delta)
    if isinstance(cost, ZCDP):
        raise ValueError(
            f"{cost} implies no epsilon without a delta, and {budget} is a budget in epsilon. Begin a "
            "budget in rho, or use noise that is priced in epsilon"
        )
    if not isinstance(cost, DP) or not 0 < cost.epsilon < inf or cost.delta >= 1:
        raise ValueError(
            f"cost = {cost!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), because a "
            "cost that promises nothing is never booked"
        )
    price = rho_above(cost.epsilon) if isinstance(budget, ZCDP) else cost.epsilon
    return Fraction(price), Fraction(cost.delta)


class Unpaid(ValueError):
    """Error of a cost that exceeds the rest of a budget."""


def refuse_unpaid(
    asked: DP | ZCDP, left: tuple[Fraction, Fraction], budget: DP | ZCDP
) -> tuple[Fraction, Fraction]:
    """Return the exact amount that a cost takes from the budget. Raise `Unpaid` if less remains."""
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
    """Limit on the total privacy cost of all releases about some people, stored in one file.

    Each spend is written to disk before any noise is drawn, and is never refunded. Use `Budget.create` to
    begin a budget for people. `Session.open` can begin a budget for a single table.

    Parameters
    ----------
    path : path
        Path of the budget's file.
    limit : DP or ZCDP, optional
        Limit on the total cost. A file with another limit raises an error.
    begin : bool
        Whether to create the file, for a single table, if it does not exist.
    data : path, optional
        File of the table. A small file `<data>.session` next to it records this budget, so that using
        another budget for the table raises an error.
    lost : bool
        Whether you confirm that the budget named in `<data>.session`, or the counter, is lost. You are then
        responsible for earlier spends.

    Attributes
    ----------
    limit : DP or ZCDP
        Limit on the total cost.
    people, unit : str or None
        People that the budget is about, and the protected unit. None if the budget belongs to one table.
    relation : str
        Neighbouring relation, one of `privacy.RELATIONS`.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file contains no budget, is damaged or is an older copy.
    TimeoutError
        If another process has locked the file for too long.
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
        """Create a budget for all releases about some people, from whatever data they are made.

        A small counter file next to it, or at the path `counter`, counts the spends. If somebody restores
        an older copy of the budget, the counter shows this, and the budget raises an error. This does not
        help if somebody restores both files, or begins a second budget.

        Parameters
        ----------
        path : path
            Path of the file, which must not exist.
        limit : DP or ZCDP
            Limit on the total cost for a unit: a finite ε > 0 or ρ > 0, and δ < 1.
        people : str
            Name of the people, for example "customers of shop X". Because the budget belongs to the people
            and not to one file of data, next month's export about the same people spends from it as well.
        unit : str
            Protected unit, for example "a user" or "a trip".
        relation : str
            Neighbouring relation, one of `privacy.RELATIONS`.
        counter : path, optional
            Path of the counter file. Default `<path>.count`. Choose a place that a backup of the budget
            does not include.

        Returns
        -------
        Budget

        Raises
        ------
        ValueError
            If the file exists, the counter belongs to another budget, or the limit promises nothing.
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
        """Take over the facts that the file states."""
        self.limit = ledger.budget_of(about["budget"])
        self.people = about["people"]
        self.unit = about["unit"]
        self.relation = about["relation"]

    @property
    def path(self) -> Path:
        """Path of the budget's file."""
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
        """Run a mechanism on a table, records or interactions, and spend the cost of the release from this
        budget.

        The spend is written to disk before the first draw, and is never refunded. Before that, the
        mechanism is tried on data without records, with the same domain and bound. If this raises an error,
        nothing is spent.

        Parameters
        ----------
        mechanism : Mechanism
            Mechanism whose `budget` is booked.
        data : SparseTable, Records or Interactions
            Private data about this budget's people, in the form that the mechanism takes.
        unit : str, optional
            Unit of the data's bound, in words. It must be the budget's unit. Default: the unit that the
            bound names. If the bound names none, it is assumed to be about the budget's unit, and the
            release records that this was assumed and not enforced.
        report_cut : float, optional
            ε for the number of users truncated by the bound. The number is then released as well, and this
            ε is booked in addition.
        out : path, optional
            File to which the release is saved. The ledger records its name.
        force : bool
            Overwrite an existing file.
        rho : float, optional
            ρ to book, for a mechanism with a budget in ε and a budget file in ρ. Give it if you know that
            the receipts cost less than the default. The default is the ρ of the receipts if they are the
            same for all data (`fixed_price`), and otherwise ε·tanh(ε/2).

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If less remains, or the relation or unit differs (nothing is spent), or if the receipts cost
            more than was booked (the release is withheld).
        """
        cost: Any = self.check(mechanism, data, unit=unit, rho=rho)
        if out is not None:
            refuse_place(Path(out), force)
        also = []
        if report_cut is not None:
            if self.relation == LOCAL or not knows_users_cut(data):
                raise ValueError("report_cut: need data whose users were truncated")
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
        with booking.saving(release):
            if out is not None:
                release.save(out, force=force)
        return release

    def _of_unit(self, release: Release, unit: str | None) -> Release:
        """Return the release with a bound that names the budget's unit, if the data's bound names none."""
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
        """Check, at no cost, whether `release` would accept this mechanism. If not, raise the error that
        `release` would raise.

        Parameters
        ----------
        mechanism, data, unit, rho
            The same as for `release`. You may leave out the mechanism or the data. The check then covers
            only the conditions that do not need them.

        Returns
        -------
        DP or ZCDP
            Cost of the mechanism, or None without a mechanism.

        Raises
        ------
        ValueError
            If the budget cannot pay for the mechanism, the unit or relation differs, or the mechanism
            raises an error for data of this kind without records.
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
        """Return the cost. If it exceeds the rest of the budget only because of rounding, return the rest.

        For example, ten answers at ε = 0.1 should fit into a budget of 1. Ten times the float 0.1, however,
        is a little more than 1. The check therefore uses decimals. It reads each float as the shortest
        decimal that gives this float, which is what a person typed. The tenth answer is then drawn with the
        ε that nine answers leave, 0.09999999999999995. The ledger adds up the exact values of the floats
        with which noise is drawn. So the exact sum never exceeds the budget.

        Parameters
        ----------
        cost : DP or ZCDP
            Requested cost. If it is not of the same kind as the budget, it is returned unchanged.
        beside : of DP or ZCDP
            Other costs that are booked together with it.

        Returns
        -------
        DP or ZCDP
            Cost to book and to draw noise for. `book` raises an error if it still exceeds the rest.
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
        """Spend a cost before any noise is drawn. A booked cost is never refunded.

        Parameters
        ----------
        cost : DP or ZCDP
            Proven upper bound on the cost of the draws. From a budget in ρ, an ε takes the ρ that it
            implies, ε·tanh(ε/2). If you know a smaller ρ for the draws, book that.
        what : str
            Description for the ledger.
        also : of (DP or ZCDP, str)
            Other costs of the same release with their descriptions, in separate rows. Either all are booked
            or none.
        relation, unit : str, optional
            Relation and unit of the cost. They must be those of the budget.
        out : path, optional
            File that will be released. The ledger records its name.

        Returns
        -------
        Booking
            Booking. Use its `check` to compare the receipts with it, and its `confirm` to record that the
            release exists.

        Raises
        ------
        ValueError
            If less remains, or the relation or unit differs. Nothing is spent then.
        """
        if relation not in (None, self.relation):
            raise ValueError(
                f"{what} is for {relation}, but this budget is for {self.relation}: they do not add up"
            )
        self.refuse_other_unit(unit)
        file = None if out is None else str(Path(out).resolve())
        with self.spending([(cost, what), *also], file=file) as (_, booking):
            return booking

    @contextmanager
    def spending(
        self, costs: Sequence[tuple[DP | ZCDP, str]], **columns: Any
    ) -> Iterator[tuple[sqlite3.Connection, Booking]]:
        """Open a transaction that spends costs. Each cost gets a row in the ledger (the list of all costs), in
        which the given columns are set.

        Other writes in this transaction reach the disk together with the spend.
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
        """Raise a ValueError if the caller, or the bound of the data, names another unit than the budget.

        A bound from a user column names its unit only as "a user". In this case the caller may state the
        unit.
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
                    f"{self.path} {declared}, not {name!r}: costs for different units do not add up"
                )

    @property
    def remaining(self) -> float:
        """Remaining ε, or remaining ρ if the budget is in zCDP."""
        return self._rounded_remaining()[0]

    @property
    def remaining_delta(self) -> float:
        """Remaining δ."""
        return self._rounded_remaining()[1]

    @property
    def ledger(self) -> pd.DataFrame:
        """Table with one row per question or release. Its columns are the time, a description, the number
        of queries, the largest standard deviation of their noise in counts (for weighted sums divided by
        the largest weight), whether it was `answered` or released, ε (or `rho` for a budget in zCDP), δ,
        and the released file. If a process was killed, an answer may be missing, but its cost is always
        recorded.
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
        """Return the remaining ε or ρ, and the remaining δ. `number` converts each stored float."""
        price = number(getattr(self.limit, self.price))
        delta = number(self.limit.delta)
        for spent_price, spent_delta in db.execute(f"SELECT {self.price}, delta FROM ledger"):
            price -= number(spent_price)
            delta -= number(spent_delta)
        return price, delta

    @property
    def price(self) -> str:
        """Name of the cost column in the ledger, "epsilon" or "rho"."""
        return ledger.price_of(ledger.budget_record(self.limit))


def _payable(asked: float, exact: Fraction, on_paper: Fraction) -> float:
    """Return the requested cost. If only rounding makes it exceed the rest, return the exact rest."""
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
