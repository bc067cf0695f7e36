"""The session itself: questions asked for a price, and answers recalled for nothing."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from workbench import wording
from workbench.inference import KernelPCA
from workbench.mechanism import Release, refuse_place
from workbench.privacy import ADD_REMOVE, DP, LOCAL, ZCDP, warn_if_large
from workbench.release import USERS_CUT, knows_users_cut, refuse_report_cut
from workbench.release_files import reserve
from workbench.session import file as session_file
from workbench.session.asking import Asking
from workbench.session.booking import description
from workbench.session.counter import data_counter, known_counter, new_counter
from workbench.session.file import SessionFile
from workbench.session.stated import of_the_bank, resolved, stated_data, stated_people
from workbench.table import Bound, SparseTable


class Session(Asking):
    """One budget in one file: questions to a private table, and releases of any data of its people.

    Made by `Session.open`, for one table, or by `Session.create`, for people. The budget is one unit's
    over the life of the file. The bank of `ask` belongs to one domain, bound and dataset; what
    `release` makes does not enter it. Noise is the operating system's: there is no `rng`, so that
    nothing simulated is ever in a bank.
    """

    @classmethod
    def open(
        cls,
        path: str | Path,
        table: SparseTable | None = None,
        budget: DP | None = None,
        *,
        total: float | None = None,
        dataset: str | None = None,
        prior: Any = None,
        data: str | Path | None = None,
        lost: bool = False,
        people: str | None = None,
        unit: str | None = None,
        relation: str | None = None,
    ) -> Self:
        """Open a session's file, or begin one, which belongs to this budget, domain, bound and dataset.

        A file that `create` made belongs to people instead; its bank begins with the first question,
        and belongs to the table that is asked.

        Parameters
        ----------
        path : path
            The session's file. It is created where `table` and `budget` are given and no file is there.
        table : SparseTable, optional
            The private table. Without it the bank still answers.
        budget : DP or ZCDP, optional
            What all questions and releases together may cost a unit: a finite ε > 0, and δ < 1.
        total : float, optional
            The public number of tuples; it stays with the file.
        dataset : str, optional
            A declared name and version. The data are not hashed, since a hash tells.
        prior : optional
            What `recall` takes cells for beforehand, as `KernelPCA` takes it; it may change.
        data : path, optional
            The file that the table came from: `<data>.session` beside it names this session, and any
            other is refused.
        lost : bool
            The session that `<data>.session` names is gone, or the counter is: the caller knows, and
            counts what was spent.
        people, unit, relation : str, optional
            Whom the caller takes the file to be about; another one is refused.

        Returns
        -------
        Session

        Raises
        ------
        FileNotFoundError
            If there is no such session, and none can begin.
        ValueError
            If the file is none of a session, or belongs to something else than what is stated.
        TimeoutError
            If another process holds the file.
        """
        is_new = not Path(path).exists()
        path = resolved(path)
        stated = stated_data(table, budget, total, dataset)
        stated |= stated_people(people, unit, relation)
        session = cls(SessionFile(path), table, KernelPCA(1.0, prior=prior).prior)
        can_begin = table is not None and budget is not None
        if is_new and table is not None and budget is not None:
            warn_if_large(budget)
        if is_new and not (can_begin and path.parent.is_dir()):
            raise FileNotFoundError(
                f"{path}: no such session; one begins with table and budget, in a folder that exists, or "
                "for people by Session.create"
            )
        file = session._file
        with file.transaction(new=can_begin, write=can_begin) as db:
            with session_file.refused_if_strange(path):
                session._belong_to(file.settle(db, stated))
            session._stated_bank = of_the_bank(stated)
            if table is not None and session.unit is not None:
                session._refuse_other_unit(unit, table.bound)
            if session._counter is not None:
                file.watch(db, known_counter(session._counter, path, file.id, lost))
            if data is not None:
                file.watch(db, data_counter(Path(data).resolve(), path, file.id, lost))
        return session

    @classmethod
    def create(
        cls,
        path: str | Path,
        budget: DP | ZCDP,
        *,
        people: str,
        unit: str,
        relation: str = ADD_REMOVE,
        counter: str | Path | None = None,
    ) -> Self:
        """Begin a budget file: what all releases about these people may cost, of whatever data.

        Beside the file, or where `counter` says, a small file counts the spends, so that an older copy
        is refused. Nothing helps where both are put back together, nor against a second budget.

        Parameters
        ----------
        path : path
            The file; none may be there.
        budget : DP or ZCDP
            What everything together may cost a unit: a finite ε > 0, or ρ, and δ < 1.
        people : str
            A declared name, such as "customers of shop X". No data are hashed: next month's export of
            the same people spends from the same file.
        unit : str
            Whom the budget protects, such as "a user" or "a trip".
        relation : str
            Which neighbours: one of `privacy.RELATIONS`.
        counter : path, optional
            By default `<path>.count`. A place of which the file's own backup knows nothing is better.

        Returns
        -------
        Session

        Raises
        ------
        ValueError
            If a file is there, the counter counts for another budget, or the budget promises nothing.
        """
        path = resolved(path)
        stated = stated_data(None, budget, None, None)
        stated |= stated_people(people, unit, relation)
        if {"budget", "people", "unit", "relation"} - set(stated):
            raise ValueError("a budget file needs budget, people, unit and relation")
        warn_if_large(budget)
        counter = path.with_name(f"{path.name}.count") if counter is None else Path(counter)
        counter = counter.resolve()
        exists = f"{path} exists: a budget is begun once, and spent to its end"
        if path.exists() and path.stat().st_size:
            raise ValueError(exists)
        for folder in (path.parent, counter.parent):
            if not folder.is_dir():
                raise FileNotFoundError(f"{folder}: no such folder")
        beside = counter.parent == path.parent
        stated["counter"] = counter.name if beside else str(counter)  # both may move together
        session = cls(SessionFile(path), None, None)
        with session._file.transaction(new=True) as db:
            if session_file.is_begun(db):
                raise ValueError(exists)
            session._belong_to(session._file.settle(db, stated))
            session._file.watch(db, new_counter(counter, path, session._file.id))
        return session

    def _of_unit(self, release: Release, unit: str | None) -> Release:
        """The release, whose bound says whom it is taken to be about."""
        bound = release.bound
        unit = unit or self.unit
        if not isinstance(bound, Bound) or bound.unit or unit is None:
            return release
        return replace(release, bound=bound.believed(unit))

    def release(
        self,
        mechanism: Any,
        data: Any = None,
        *,
        unit: str | None = None,
        report_cut: float | None = None,
        out: str | Path | None = None,
        force: bool = False,
        rho: float | None = None,
    ) -> Release:
        """Spend a mechanism's budget and release: tables, marginals, records and interactions alike.

        The spend is on disk before the first draw, and stays whatever comes. What the mechanism
        refuses of data without a record, of the same domain and bound, costs nothing.

        Parameters
        ----------
        mechanism : Mechanism
            Its `budget` is what is booked.
        data : optional
            What the mechanism takes, of this budget's people; by default the session's table.
        unit : str, optional
            Whom the data's bound is about, in words; another unit than the budget's is refused. By
            default what the bound says; where it says nothing, it is taken to be about the budget's
            unit, and the release says so: nobody has cut anybody to it.
        report_cut : float, optional
            ε of how many users lost anything to the bound, which is then booked and released as well.
        out : path, optional
            Where the release is saved; the ledger names the file.
        force : bool
            Overwrite an existing file.
        rho : float, optional
            What to book from a budget of zCDP for a mechanism whose own budget is an ε, where its
            receipts are known to say less than what is booked without it: the ρ of its receipts, where
            they say the same of any data (`fixed_price`), else the ε·tanh(ε/2) that the ε implies.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If less remains, or the relation or unit is another one: then nothing is spent. If the
            receipts cost more than was booked: then the release is withheld.
        """
        data = self._table if data is None else data
        if data is None:
            raise ValueError("this session has no table: give the data to release")
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
        what = description(mechanism, self.budget)
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

    def close(self) -> None:
        """Let go of the table; the bank still answers."""
        self._table = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            return f"<Session {self.path.name}: {wording.stated(self.remaining)} of {self.budget} remain>"
        except (OSError, ValueError):
            return f"<Session {self.path.name}: cannot be read>"
