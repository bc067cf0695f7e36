"""What remains of a budget, and what is booked before anything is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from workbench.compiled import pd
from workbench.data import ENFORCED, Interactions, Records, SparseTable, without_column
from workbench.estimates.release import Release
from workbench.inference import KernelPCA
from workbench.mechanisms.protocol import refuse_other_data, sensitivity
from workbench.noise.source import Source
from workbench.owner import ledger
from workbench.owner.ledger import SessionFile, same_unit
from workbench.privacy import (
    ADD_REMOVE,
    DP,
    RELATIONS,
    ZCDP,
    Receipt,
    compose,
    exact_cost,
    exact_rho,
    rho_above,
)
from workbench.privacy.enclosures import round_down, round_up
from workbench.value import stated

if TYPE_CHECKING:
    import sqlite3


# Stated


def checked_total(total: Any) -> float | None:
    """How many tuples there are, as a caller or a file says; its square has to be a float, too."""
    if total is None:
        return None
    number = cast(float, KernelPCA(1.0, total=total).total)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(
            f"total = {total!r} is not allowed: need a number from 1e-100 to 1e100"
        )
    return number


def stated_data(table: Any, budget: Any, total: Any, dataset: Any) -> dict[str, Any]:
    """What the caller says that the session belongs to, as the file holds it."""
    stated: dict[str, Any] = {}
    if dataset is not None or table is not None:
        stated["dataset"] = dataset
    if dataset is not None and not isinstance(dataset, str):
        raise ValueError(f"dataset = {dataset!r} is not allowed: need text, name and version")
    if total is not None:
        stated["total"] = checked_total(total)
    if budget is not None:
        is_finite = isinstance(budget, DP) and 0 < budget.epsilon < inf and budget.delta < 1
        if not is_finite and not isinstance(budget, ZCDP):
            raise ValueError(
                f"budget = {budget!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), or "
                "ZCDP(rho)"
            )
        stated["budget"] = ledger.budget_record(budget)
    if table is not None:
        if not isinstance(table, SparseTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        bound: Any = table.bound
        stated["bound"] = [int(bound.l0), float(bound.linf), l1]
        stated["domain"] = table.domain.to_dict()
    return stated


def stated_people(people: str | None, unit: str | None, relation: str | None) -> dict[str, Any]:
    """Whom the caller takes the file to be about, as the file holds it."""
    stated = {}
    for name, text in {"people": people, "unit": unit}.items():
        if text is not None:
            if not isinstance(text, str) or not text.strip() or not text.isprintable():
                raise ValueError(f"{name} = {text!r} is not allowed: need a name in words")
            stated[name] = " ".join(text.split())
    if relation is not None:
        if relation not in RELATIONS:
            raise ValueError(
                f"relation = {relation!r} is not allowed: need one of {', '.join(RELATIONS)}"
            )
        stated["relation"] = relation
    return stated


def of_the_bank(stated: dict[str, Any]) -> dict[str, Any]:
    """Of what was stated, what belongs to the answers and not to the budget."""
    return {name: x for name, x in stated.items() if name in ledger.OF_THE_BANK}


def resolved(path: str | Path) -> Path:
    """The file that is meant, wherever the process goes from here."""
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
    session : whose budget was spent from.
    questions : the numbers of its rows in the ledger.
    spent, delta : what they cost together, exactly: ε, or ρ where the budget is one of zCDP; and δ.
    relation : which neighbours that is about.
    """

    session: Spending
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
        """Why it costs more than was booked; "" if it does not."""
        in_rho = isinstance(self.session.budget, ZCDP)
        if not in_rho and any(isinstance(r.cost, ZCDP) for r in receipts):
            return f"its receipts say {compose(receipts)}, of which a budget of ε pays nothing"
        spent, delta = exact_rho(receipts) if in_rho else exact_cost(receipts)
        if spent <= self.spent and delta <= self.delta:
            return ""
        cost = type(self.session.budget)(float(spent), min(1.0, float(delta)))
        return f"its receipts say {cost}, and {self.booked} was booked"

    @property
    def booked(self) -> DP | ZCDP:
        """The whole spend, rounded down."""
        kind = type(self.session.budget)
        return kind(round_down(self.spent), min(1.0, round_down(self.delta)))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Say in an error of the disk what was spent on the release that could not be saved."""
        try:
            yield
        except OSError as e:
            text = stays_spent([self.booked], self.session.budget)
            raise OSError(f"{e}. {text}") from None

    def confirm(self) -> None:
        """Write down that what was paid for is there; until then the ledger takes it for lost."""
        self.session._confirm(self.questions)


def stays_spent(costs: Iterable[DP | ZCDP], budget: DP | ZCDP) -> str:
    """What to say where nothing came of a spend."""
    return (
        f"{' and '.join(map(str, costs))} of the budget of {budget} was spent and stays spent"
    )


def refuse_unpayable(mechanism: Any, data: Any, relation: str) -> None:
    """A ValueError for what no budget of this relation pays for, at no cost: no private data is used.

    If data are given, the mechanism is run, up to its first draw, on others of the same kind, domain
    and bound without a record: what it refuses by then is refused before anything is booked. Where the
    number of units is public, as between neighbours that replace one, there are no such data.
    """
    name = type(mechanism).__name__
    budget = getattr(mechanism, "budget", None)
    if not isinstance(budget, DP | ZCDP):
        raise ValueError(f"{name} has no budget: need a mechanism that states what it may cost")
    about = getattr(mechanism, "relation", ADD_REMOVE)
    if about != relation:
        raise ValueError(
            f"{name} promises something about neighbours of another relation, {about}; this budget is "
            f"about {relation}, and the two do not add up"
        )
    if getattr(mechanism, "idealised", False):
        raise ValueError(f"{name} is drawn with floating point: idealised, and never released")
    if getattr(mechanism, "withdrawn", False):
        raise ValueError(
            f"{name} promises nothing as it is printed: its guarantee is withdrawn"
        )
    if data is None:
        return
    refuse_other_data(mechanism, data)
    if about == ADD_REMOVE and isinstance(data, SparseTable | Records | Interactions):
        with suppress(_FirstDraw):
            mechanism(_without_records(data), _Undrawn())


def in_rho_for_less(mechanism: Any, budget: DP | ZCDP) -> bool:
    """Whether a budget of zCDP may pay less for it than the ρ that its ε implies."""
    is_fixed = getattr(mechanism, "fixed_price", False)
    return is_fixed and isinstance(budget, ZCDP) and isinstance(mechanism.budget, DP)


def rho_of_receipts(mechanism: Any, data: Any) -> ZCDP:
    """What its receipts say of any data of this domain and bound: those without a record are released.

    From a seed, and thrown away.
    """
    rho, delta = exact_rho(mechanism(_without_records(data), np.random.default_rng(0)).ledger)
    return ZCDP(round_up(rho), round_up(delta))


class _FirstDraw(Exception):
    """Somebody wants a random bit."""


class _Undrawn(Source):
    """A source that stops whoever draws from it."""

    def __init__(self) -> None:
        super().__init__(None)

    def measurement(self) -> Source:
        """Itself."""
        return self

    @property
    def words(self) -> Any:
        """Stops."""
        raise _FirstDraw

    @property
    def floats(self) -> Any:
        """Stops."""
        raise _FirstDraw

    def __getattr__(self, name: str) -> Any:
        raise _FirstDraw


def _without_records(data: Any) -> Any:
    """The same with no record: each array, whose last axis is over records or cells, is empty."""
    arrays = {
        f.name: x[..., :0]
        for f in fields(data)
        if isinstance(x := getattr(data, f.name), np.ndarray)
    }
    return replace(data, **arrays)


def _unfit(receipts: tuple[Receipt, ...], relation: str) -> str:
    """Why what cost this must not leave; "" if it may."""
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
    """What a cost takes from a budget, and δ: of one of zCDP an ε takes the ρ that it implies.

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


def refuse_unpaid(
    asked: DP | ZCDP, left: tuple[Fraction, Fraction], budget: DP | ZCDP
) -> tuple[Fraction, Fraction]:
    """What is asked takes from the budget, exactly; a ValueError if what is left does not pay for it."""
    price = exact_price(asked, budget)
    names = ("rho" if isinstance(budget, ZCDP) else "epsilon", "delta")
    for name, wanted, remaining in zip(names, price, left, strict=True):
        if wanted > remaining:
            rounded = round_down(remaining)
            words: Callable[[float], str] = stated
            if float(stated(rounded)) >= float(stated(float(wanted))):
                words = repr  # all digits: the usual ones would say that it is enough
            raise ValueError(
                f"{name} = {words(float(wanted))} is more than the {words(rounded)} that remain of "
                f"{budget}: nothing was spent"
            )
    return price


def description(mechanism: Any, spent_from: DP | ZCDP) -> str:
    """A mechanism as the ledger names it: its own budget is left out if columns hold the same."""
    if not isinstance(mechanism.budget, type(spent_from)):
        return repr(mechanism)
    budget = f"budget={mechanism.budget!r}"
    return repr(mechanism).replace(f"{budget}, ", "").replace(budget, "")


# Spending


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
        self.budget = ledger.budget_of(metadata["budget"])
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
                questions.append(ledger.spend(db, **row))
        return Booking(
            self, tuple(questions), at_first[0] - left[0], at_first[1] - left[1], self.relation
        )

    def _confirm(self, questions: tuple[int, ...]) -> None:
        try:
            with self._file.transaction() as db:
                for question in questions:
                    ledger.seal(db, question)
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
        select = f"SELECT {', '.join(names)} FROM ({ledger.ANSWERED}) ORDER BY question"
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
        return ledger.price_of(ledger.budget_record(self.budget))


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
