"""Budgets, which limit the total privacy cost of releases. A budget is stored in a file. Each cost is
recorded in the file before any noise is drawn.
"""

from __future__ import annotations

import os
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
from workbench.data import ENFORCED, Bound, Interactions, without_column
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
    """Check the texts that describe a budget: the people, the protected unit and the relation (the way in
    which neighbouring tables differ). Return these texts as a dictionary, which the budget's file stores.
    """
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
    """Check the limit of a budget, and return a dictionary with the limit, which the budget's file stores."""
    is_finite = isinstance(limit, DP) and 0 < limit.epsilon < inf and limit.delta < 1
    if not is_finite and not isinstance(limit, ZCDP):
        raise ValueError(
            f"budget = {limit!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), or "
            "ZCDP(rho)"
        )
    return {"budget": ledger.budget_record(limit)}


def _resolved(path: str | Path) -> Path:
    """Return the absolute path of a file, which stays valid if the process changes its current folder."""
    path = Path(path).resolve()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: need the path of a file")
    return path


# Booking


@dataclass(frozen=True)
class Booking:
    """Proof that the cost of one release was recorded in a budget. The method `check` compares the release
    with the recorded cost.

    Parameters
    ----------
    budget : Budget
        Budget that pays for the release.
    questions : tuple of int
        Numbers of the rows that record this cost in the budget's ledger (the list of all costs).
    spent, delta : Fraction
        Exact total cost. `spent` is an ε, or a ρ if the budget is in zCDP. `delta` is the δ.
    relation : str
        Way in which two neighbouring tables differ, for example "add-remove-one-unit".
    """

    budget: Budget
    questions: tuple[int, ...]
    spent: Fraction
    delta: Fraction
    relation: str
    _unused: list[bool] = field(
        default_factory=lambda: [True], repr=False, compare=False
    )  # which `dataclasses.replace` passes on
    _process: int = field(default_factory=os.getpid, repr=False, compare=False)

    def __reduce__(self) -> Any:
        """Refuse copies, of which each would pay for a release."""
        raise TypeError(
            "a booking cannot be copied or pickled, because it pays for one release. Book again for each "
            "release"
        )

    def check(self, release: Release | Iterable[Receipt]) -> None:
        """Raise a ValueError if a release costs more than was booked (recorded as spent) for it, or if its
        guarantee does not fit the budget.

        A booking pays for one release only. Once one release has passed this check, the check raises an error
        for every other release. Other processes, for example forked children, cannot use the booking.

        Parameters
        ----------
        release : Release or iterable of Receipt
            The release, or its receipts. A receipt records the cost of one noisy query on the private data.

        Raises
        ------
        ValueError
            If the release costs more than was booked, or has no receipt. The error is also raised if the cost
            of the release is a ρ and the budget is in ε. The relation of the release (the way in which
            neighbouring tables differ) must be the same as the budget's. The noise must be neither simulated
            nor idealised, and the ε of the guarantee must be finite. After an error, the booked cost stays
            spent.
        """
        receipts = release.ledger if isinstance(release, Release) else tuple(release)
        wrong = _unfit(receipts, self.relation)
        if not wrong:
            wrong = self._too_dear(receipts)
        if os.getpid() != self._process:
            wrong = "another process booked its cost, and only that process can save a release"
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
        """Return an explanation if the receipts (records of privacy costs) add up to more than was booked.
        Otherwise return an empty text.
        """
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
        """Total cost that was booked (recorded as spent), as floats. The floats are the exact cost rounded
        down.
        """
        kind = type(self.budget.limit)
        return kind(round_down(self.spent), min(1.0, round_down(self.delta)))

    @contextmanager
    def saving(self, release: Release) -> Iterator[None]:
        """Check that a release costs no more than was booked (recorded as spent). Then run the `with` block,
        which saves the release, and record in the ledger (the list of all costs) that the release exists. If
        the release cannot be saved, the error message also says which cost stays spent.
        """
        self.check(release)
        try:
            yield
        except OSError as e:
            text = stays_spent([self.booked], self.budget.limit)
            raise OSError(f"{e}. {text}") from None
        self.confirm()

    def confirm(self) -> None:
        """Record in the ledger (the list of all costs) that the release was saved. Without this record, the
        ledger shows the cost as spent, but without a release.
        """
        try:
            with self.budget.file.transaction() as db:
                for question in self.questions:
                    ledger.seal(db, question)
        except (OSError, ValueError) as e:
            warnings.warn(f"released and paid for, but not in the ledger: {e}", stacklevel=2)


def stays_spent(costs: Iterable[DP | ZCDP], budget: DP | ZCDP) -> str:
    """Return a sentence for error messages, which says that these costs stay spent although there is no
    release.
    """
    return (
        f"{' and '.join(map(str, costs))} of the budget of {budget} was spent and stays spent"
    )


def _unfit(receipts: tuple[Receipt, ...], relation: str) -> str:
    """Return an explanation if a release with these receipts must be withheld, for example because its noise
    is simulated. Otherwise return an empty text.
    """
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
    """Return the ε (or ρ) and the δ that a cost takes from a budget, as exact fractions. If the budget is in
    ρ and the cost is an ε, return the ρ that follows from this ε.

    Raise a ValueError if the cost is infinite, or if the cost is a ρ and the budget is in ε.
    """
    if isinstance(cost, ZCDP) and isinstance(budget, ZCDP):
        return Fraction(cost.rho), Fraction(cost.delta)
    if isinstance(cost, ZCDP):
        raise ValueError(
            f"{budget} is a budget in epsilon and cannot pay {cost}, which implies no epsilon. Create a "
            "budget in rho, or use a mechanism whose cost is an epsilon"
        )
    if not isinstance(cost, DP) or not 0 < cost.epsilon < inf or cost.delta >= 1:
        raise ValueError(
            f"cost = {cost!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), because a "
            "cost that promises nothing is never booked"
        )
    price = rho_above(cost.epsilon) if isinstance(budget, ZCDP) else cost.epsilon
    return Fraction(price), Fraction(cost.delta)


def refuse_unpaid(
    asked: DP | ZCDP, left: tuple[Fraction, Fraction], budget: DP | ZCDP
) -> tuple[Fraction, Fraction]:
    """Return the ε (or ρ) and the δ that a cost takes from the budget, as exact fractions. Raise a ValueError
    if less than this remains.
    """
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


# Budget


class Budget:
    """Limit on the total privacy cost of all releases about the same people. The limit and the costs so far
    are stored in one file.

    Each cost is written to disk before any noise is drawn, and is never refunded. To begin a budget for all
    tables about the same people, use `Budget.create`. To begin a budget for a single table, use
    `Session.open`. To continue an existing budget, pass its path to `Budget`.

    Parameters
    ----------
    path : path
        Path of the budget's file.
    limit : DP or ZCDP, optional
        Limit that you expect the budget to have. If the file has another limit, a ValueError is raised.
        Default: the limit in the file.
    begin : bool
        Whether to create the file if it does not exist. A budget that is created in this way is for a single
        table, and you must pass its `limit`. Default False.
    data : path, optional
        Path of the table's file. Next to the table's file, the workbench writes a small file `<data>.session`,
        which records the id of the budget. If you later open another budget for the same table, an error is
        raised.
    lost : bool
        Set this to True to confirm that a file is lost. The lost file is either the file of the budget that
        `<data>.session` names, or the counter file, which contains the number of spends. Without this file, the
        workbench cannot know all earlier spends. So make sure yourself that all costs together are not too
        large.

    Attributes
    ----------
    limit : DP or ZCDP
        Largest total cost of all releases.
    people, unit : str or None
        Description of the people that the budget is about, and of the protected unit. Both are None if the
        budget belongs to one table.
    relation : str
        Way in which two neighbouring tables differ, one of the texts in `privacy.RELATIONS`, for example
        "add-remove-one-unit".

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file contains no budget or another limit, if it is damaged, or if it is an older copy.
    TimeoutError
        If another process keeps the file locked for too long.
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
                self.limit = ledger.budget_of(about["budget"])
            self.people = about["people"]
            self.unit = about["unit"]
            self.relation = about["relation"]
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
        """Create a budget for all releases about the same people, also if the releases are made from
        different tables.

        The workbench also writes a small counter file, which contains the number of spends. If somebody later
        restores an older copy of the budget, this copy records fewer spends than the counter, and opening the
        budget raises an error. The counter does not help if somebody restores older copies of both files, or
        creates a second budget for the same people.

        Parameters
        ----------
        path : path
            Path of the new file. No file with this path may exist.
        limit : DP or ZCDP
            Limit on the total cost for a unit: a finite ε > 0 or ρ > 0, and δ < 1.
        people : str
            Description of the people, for example "customers of shop X". The budget belongs to these people
            and not to one file of data. So if you publish next month's data about the same people, use the
            same budget.
        unit : str
            Unit that is protected, for example "a user" or "a trip".
        relation : str
            Way in which two neighbouring tables differ, one of the texts in `privacy.RELATIONS`, for example
            "add-remove-one-unit".
        counter : path, optional
            Path of the counter file. Default `<path>.count`. If one backup contains both files, restoring this
            backup resets both files. So choose a folder outside the budget's backup.

        Returns
        -------
        Budget

        Raises
        ------
        ValueError
            If the file exists, the counter file belongs to another budget, or the limit is infinite.
        """
        path = _resolved(path)
        declared = declared_limit(limit) | declared_people(people, unit, relation)
        warn_if_large(limit)
        counter = path.with_name(f"{path.name}.count") if counter is None else Path(counter)
        counter = counter.resolve()
        exists = f"{path} exists. Continue this budget, or choose another name"
        if path.exists() and path.stat().st_size:
            raise ValueError(exists)
        for folder in (path.parent, counter.parent):
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder}: no such folder")
        beside = counter.parent == path.parent
        declared["counter"] = counter.name if beside else str(counter)  # both may move together
        file = SessionFile(path)
        with file.transaction(new=True) as db:
            if ledger.is_begun(db):
                raise ValueError(exists)
            file.settle(db, declared)
            ledger.new_counter(counter, path, file.id)
        return cls(path)

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
    ) -> Release:
        """Run a mechanism on private data, and spend the cost of the release from this budget.

        First, the workbench tries the mechanism on data that have the same domain and bound but no records. If
        this trial raises an error, nothing is spent. Then the workbench writes the cost to disk. After that,
        the mechanism draws its noise. The cost is never refunded.

        Parameters
        ----------
        mechanism : Mechanism
            Mechanism to run. The field `budget` of the mechanism states the cost of the release. If the
            mechanism states an ε and this budget is in ρ, the workbench spends ε·tanh(ε/2), which is the ρ that
            follows from the ε. For some mechanisms, a smaller ρ is proven, which is the same for all data. The
            workbench then spends this smaller ρ.
        data : SparseTable, Records or Interactions
            Private data about the people of this budget. The mechanism must accept this type of data.
        unit : str, optional
            Protected unit of the data in words, for example "a user". This unit must be the budget's unit.
            Default: the unit that the bound of the data names. If the bound names no unit, the workbench
            assumes the budget's unit, and the release says that this unit is an assumption.
        report_cut : float, optional
            If you pass an ε here, the release also contains a noisy number of users whose rows were truncated
            to the bound. This ε is spent in addition.
        out : path, optional
            Path of the file to which the release is saved. The ledger (the list of all costs) records this
            name.
        force : bool
            Whether to overwrite an existing file. Default False.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If the cost exceeds the rest of the budget, or if the relation or the unit differs from the
            budget's. Then nothing is spent. The error is also raised if the finished release costs more than
            was booked. You then do not get the release, but the booked cost stays spent.
        """
        if out is not None:
            refuse_place(Path(out), force)
        if report_cut is not None:
            if self.relation == LOCAL or not knows_users_cut(data):
                raise ValueError("report_cut: need data whose users were truncated")
            refuse_report_cut(report_cut)
        if "budget" in getattr(mechanism, "__dataclass_fields__", {}):
            beside = [] if report_cut is None else [DP(report_cut)]
            cost = self.payable(mechanism.budget, beside)
            mechanism = replace(mechanism, budget=cost)
        with self.paying(mechanism, data, unit=unit, report_cut=report_cut, out=out) as booking:
            release = self._of_unit(mechanism(data), unit)
            if report_cut is not None:
                release = release.with_users_cut(data, report_cut)
        with booking.saving(release):
            if out is not None:
                release.save(out, force=force)
        return release

    @contextmanager
    def paying(
        self,
        mechanism: Any,
        data: Any,
        *,
        unit: str | None = None,
        report_cut: float | None = None,
        out: str | Path | None = None,
    ) -> Iterator[Booking]:
        """Book the cost of a mechanism, which means to record the cost as spent. In the `with` block, the
        caller draws the noise, and saves the release with `Booking.saving`. Before the cost is booked, this
        method calls `check`, and reserves disk space for the file.

        The arguments are those of `release`. You may pass data without records, because the method uses only
        the type, domain and bound of the data.
        """
        cost: Any = self.check(mechanism, data, unit=unit)
        what = description(mechanism, self.limit)
        also = [] if report_cut is None else [(DP(report_cut), USERS_CUT)]
        with nullcontext() if out is None else closing(reserve(Path(out), data)):
            yield self.book(cost, what, also=also, out=out)

    def _of_unit(self, release: Release, unit: str | None) -> Release:
        """Return the release. If the bound of its data names no unit, return a copy whose bound names the
        unit of the caller or of the budget.
        """
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
    ) -> DP | ZCDP | None:
        """Check whether the method `release` would accept a mechanism, without spending anything. If
        `release` would not accept the mechanism, raise the error that `release` would raise.

        Parameters
        ----------
        mechanism, data, unit : optional
            Mechanism, private data and unit, as you would pass them to `release`. If you leave out the
            mechanism or the data, conditions that depend on the missing argument are not checked.

        Returns
        -------
        DP or ZCDP
            Cost that `release` would record in the budget. None if you pass no mechanism.

        Raises
        ------
        ValueError
            If the budget cannot pay for the mechanism, or the unit or relation differs from the budget's. The
            error is also raised if the mechanism fails on data with the same domain and bound but no records.
        """
        bound = getattr(data, "bound", None)
        if isinstance(data, Interactions) and without_column(self.unit or "") != "a user":
            bound = Bound().enforced("a user")  # whose records the mechanism limits
        self.refuse_other_unit(unit, bound)
        if mechanism is None:
            return None
        refuse_unpayable(mechanism, data, self.relation)
        cost: DP | ZCDP = mechanism.budget
        if in_rho_for_less(mechanism, self.limit):
            if data is None:
                return cost
            cost = rho_of_receipts(mechanism, data)
        payable = self.payable(cost)
        with self.file.transaction(write=False) as db:
            refuse_unpaid(payable, self._remaining(db), self.limit)
        return cost

    def payable(self, cost: Any, beside: Iterable[DP | ZCDP] = ()) -> Any:
        """Return the cost that can be booked (recorded as spent) for a requested cost. Usually, this is the
        requested cost itself. If the requested cost exceeds the rest of the budget only because of rounding,
        return the rest.

        For example, ten answers at ε = 0.1 should fit into a budget of 1. Ten times the float 0.1, however, is
        a little more than 1. The workbench therefore checks costs as decimals. For this check, the workbench
        replaces a float by the shortest decimal that gives the same float, because a person probably typed this
        decimal. The noise of the tenth answer is then drawn for the ε that nine answers leave, which is
        0.09999999999999995. The ledger adds up the exact values of the floats with which noise is drawn. So the
        exact sum never exceeds the budget.

        Parameters
        ----------
        cost : DP or ZCDP
            Requested cost. If the budget is in ρ and the cost is an ε, or the other way round, the cost is
            returned unchanged.
        beside : iterable of DP or ZCDP
            Other costs that will be booked together with this cost.

        Returns
        -------
        DP or ZCDP
            Cost to pass to `book`, and to use for the noise. If the cost exceeds the rest by more than
            rounding, it is returned unchanged, and `book` raises an error.
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
        """Record a cost as spent. Call this method before you draw any noise. A booked cost is never
        refunded.

        Parameters
        ----------
        cost : DP or ZCDP
            Privacy cost of the noise that you will draw, or a proven upper bound on this cost. If the cost is
            an ε and the budget is in ρ, the amount ε·tanh(ε/2) is spent, which is the ρ that follows from ε.
            If you can prove a smaller ρ, pass this ρ as a ZCDP.
        what : str
            Description of the release. The ledger (the list of all costs) shows this text.
        also : iterable of (DP or ZCDP, str)
            Further costs of the same release, each with a description. Each cost gets a separate row in the
            ledger. Either all costs are booked, or none.
        relation, unit : str, optional
            Relation (the way in which neighbouring tables differ) and protected unit of the release's
            guarantee. If you pass them, both must be the same as those of the budget.
        out : path, optional
            Path of the file that will contain the release. The ledger records this name.

        Returns
        -------
        Booking
            Proof that the cost was recorded. When the release is made, call `check` on this object to make
            sure that the release costs no more than was booked. When the release is saved, call `confirm` to
            record this in the ledger.

        Raises
        ------
        ValueError
            If the cost exceeds the rest of the budget, or if the relation or the unit differs from the
            budget's. Nothing is spent if this error is raised.
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
        """Open a database transaction that spends costs. Each cost gets a row in the ledger (the list of all
        costs). `columns` has values for the other columns of these rows, for example the number of queries.

        The caller may write more in the same transaction, for example empty rows for answers. The database then
        writes everything to disk together with the costs.
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

    def refuse_other_unit(self, unit: str | None, bound: Any = None) -> None:
        """Raise a ValueError if the caller or the bound of the data names a unit that differs from the
        budget's unit.

        If the data have a column of users, their bound names only "a user" as the unit. For such data, the
        caller may state a more precise unit.
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
        """The unspent ε, or the unspent ρ if the budget is in zCDP."""
        return self._rounded_remaining()[0]

    @property
    def remaining_delta(self) -> float:
        """The δ that is still unspent."""
        return self._rounded_remaining()[1]

    @property
    def ledger(self) -> pd.DataFrame:
        """List of all costs, as a data frame with one row per question or release. The first columns are the
        time, a description, the number of queries, and the standard deviation of the noise. The column
        `answered` shows whether the question was answered, or the release was made. The last columns are the ε
        (or `rho` for a budget in zCDP), the δ, and the name of the released file. The standard deviation is a
        number of records. If a query counts records with weights, the standard deviation of the answer is
        divided by the largest weight of this query. If a question has several queries, the ledger shows the
        largest of these standard deviations. If a process was killed, an answer may be missing, but the ledger
        always lists the cost of the answer.
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
        """Return the unspent ε (or ρ) and the unspent δ. The function `number` converts each stored float to
        a fraction before the costs are added up.
        """
        price = number(getattr(self.limit, self.price))
        delta = number(self.limit.delta)
        for spent_price, spent_delta in db.execute(f"SELECT {self.price}, delta FROM ledger"):
            price -= number(spent_price)
            delta -= number(spent_delta)
        return price, delta

    @property
    def price(self) -> str:
        """Name of the ledger's column that contains the costs, either "epsilon" or "rho"."""
        return ledger.price_of(ledger.budget_record(self.limit))


def _payable(asked: float, exact: Fraction, on_paper: Fraction) -> float:
    """Return the requested ε, ρ or δ. If it exceeds the rest of the budget only because of rounding, return
    the rest instead.
    """
    left = round_down(max(exact, Fraction(0)))
    if not 0 < left < asked < inf:
        return asked
    return left if _decimal(asked) <= on_paper or asked <= float(stated(left)) else asked


def _decimal(x: float) -> Fraction:
    """Return the shortest decimal number that Python reads as this float. It is probably the number that a
    person typed.
    """
    return Fraction(repr(float(x)))


def _now() -> str:
    """Return the current time in the format of the ledger."""
    return datetime.now(UTC).isoformat("T", "seconds")
