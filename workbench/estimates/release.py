"""Releases: a public estimate with the receipts that paid for it, and its file."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from workbench import estimates, noise
from workbench.compiled import pa
from workbench.data import PUBLIC, Bound
from workbench.estimates import files
from workbench.estimates.answering import USERS_CUT, Answering
from workbench.estimates.describing import described
from workbench.estimates.release_files import (
    Record,
    bound_record,
    for_readers,
    promise_of_file,
    read_release,
    receipt_record,
    refuse_place,
    write_release,
)
from workbench.privacy import DP, LOCAL, Receipt, warn_if_large
from workbench.value import cell, format_number, number, shown

# what reading a file raises that was not written here; a RuntimeError of Arrow or of recursion
_NOT_OURS = (
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    StopIteration,
)


def knows_users_cut(data: Any) -> bool:
    """Whether it can be said of private data how many users lost anything to the bound of a release."""
    are_records_of_users = hasattr(data, "users_beyond") and data.bound is not PUBLIC
    return are_records_of_users or getattr(data, "users_cut", None) is not None


def refuse_report_cut(epsilon: float) -> None:
    """A ValueError for an ε at which no number of users is told, before anything is read or booked."""
    if not 0 < DP(epsilon).epsilon < inf:
        raise ValueError(f"report_cut = {epsilon!r} is not allowed: need a finite epsilon > 0")
    noise.geometric(np.zeros(0, np.int64), l1=1, epsilon=epsilon)


class _Ledger(tuple[Receipt, ...]):
    """Receipts, and the estimate for which they paid."""

    estimate: Any


@dataclass(frozen=True, eq=False)
class Release(Answering):
    """A public estimate, the receipts that paid for it, and the mechanism that made it.

    Parameters
    ----------
    estimate : what is public; it answers workloads.
    ledger : a receipt for each measurement. They belong to the estimate: with another estimate in its
        place the release has none, and is never saved. A mechanism that computes its estimate from another
        release passes `tuple(release.ledger)`.
    mechanism : the mechanism; its text in a release that was loaded from a file.
    bound : how far one unit was said to move the data: the guarantee is as true as it is.
    users_cut : how many users lost anything to the bound, with noise; None where it was not asked.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: object
    bound: Bound | None = None
    users_cut: int | None = None

    def __post_init__(self) -> None:
        """Tie the receipts to the estimate, and warn of a large ε where a release is made, not loaded.

        `dataclasses.replace` moves receipts to no other estimate.
        """
        paid_for = getattr(self.ledger, "estimate", self.estimate)
        ledger = _Ledger(self.ledger if paid_for is self.estimate else ())
        ledger.estimate = self.estimate
        object.__setattr__(self, "ledger", ledger)
        if ledger and not (self.simulated or isinstance(self.mechanism, str)):
            warn_if_large(self.privacy)

    def __repr__(self) -> str:
        marks = ", simulated" if self.simulated else ""
        if self.mostly_noise:
            marks += ", most of it may be noise"
        return f"<Release {self.privacy}{marks}: {self.estimate!r} by {self.mechanism}>"

    def describe(self, delta: float | None = None) -> list[tuple[str, str]]:
        """What was released and what it promises, in words, from the release alone.

        Parameters
        ----------
        delta : a δ at which a price in ρ is said as an ε too.

        Returns
        -------
        list of (name, text)
            What was released and how it was drawn; the mechanism; the guarantee; who is protected, and how
            the bound on them is enforced or assumed; what truncation left out; cautions; what each
            measurement cost; the noise; what was sampled or left out; and how much is there by chance.
        """
        return described(self, delta)

    def _repr_html_(self) -> str:
        """The same rows, and the largest cells, for notebooks."""
        texts = [(name, escape(text)) for name, text in self.describe()]
        rows = "".join(
            f'<tr><th scope="row" style="text-align: left">{name}</th><td style="text-align: left">'
            f"{f'<strong>{text}</strong>' if name == 'Caution' else text}</td></tr>"
            for name, text in texts
        )
        caption = f"Release: {escape(str(self.privacy))}"
        return f"<table><caption>{caption}</caption><tbody>{rows}</tbody></table>{self._largest_as_html()}"

    def _largest_as_html(self) -> str:
        """The five largest cells with one standard deviation of their noise."""
        try:
            labels, counts, deviations = self.largest(5)
        except ValueError:  # nothing like cells
            return ""
        heads = [*labels.columns, "count", "noise"]
        rows = [
            (*map(cell, row), number(count), f"± {format_number(deviation)}")
            for row, count, deviation in zip(
                labels.itertuples(index=False), counts, deviations, strict=True
            )
        ]
        head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in heads)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows
        )
        caption = f"the largest {escape(self.estimate.contents)}"
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            "</table>"
        )

    def with_users_cut(
        self, data: Any, epsilon: float, rng: np.random.Generator | None = None
    ) -> Release:
        """The same release, which also says how many users lost anything to the bound.

        One user more or less moves that number by one at most, as whether somebody loses anything depends
        on their own records alone: geometric noise of sensitivity 1 hides it, for a receipt of its own. How
        many rows were cut one user could move far, and is never said.

        Parameters
        ----------
        data : what was released, whose users were cut to its bound, or by the mechanism.
        epsilon : what the number costs, beside the rest.
        rng : a seeded generator for noise that can be replayed, or None to publish.

        Returns
        -------
        Release
            With a receipt more.

        Raises
        ------
        ValueError
            If nobody was cut to the data's bound, or the guarantee is about what each sends alone.
        """
        if not knows_users_cut(data):
            raise ValueError(
                "how many users were cut cannot be said: name the column of users when the data is read, "
                "and they are cut to the bound"
            )
        if self.relation == LOCAL:
            raise ValueError(
                "how many users were cut is not said of what each of them sends alone"
            )
        users_cut = getattr(data, "users_cut", None)
        if users_cut is None:  # the mechanism cut them, to the release's bound
            users_cut = data.users_beyond(self.bound)
        noisy, receipt = noise.geometric(np.array([users_cut]), l1=1, epsilon=epsilon, rng=rng)
        receipt = replace(receipt, name=USERS_CUT, relation=self.relation)
        return replace(self, ledger=(*self.ledger, receipt), users_cut=int(noisy[0]))

    def save(
        self,
        path: str | Path,
        *,
        simulated: bool = False,
        force: bool = False,
        command: str = "",
    ) -> Path:
        """Write a file that any reader opens as a plain table, with its guarantee.

        A Parquet file carries it; beside a CSV file stands `x.csv.json`. The file appears whole or not at
        all.

        Parameters
        ----------
        path : where, `x.parquet` or `x.csv`; its folder must exist.
        simulated : says by name that a release from seeded noise is meant, which the file then carries.
        force : overwrite an existing file.
        command : what makes a simulated release once more; its file carries it.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the release is not fit to be saved, the file exists, or its ending is another.
        FileNotFoundError
            If the folder does not exist.
        OSError
            If the file cannot be written.
        """
        path = Path(path)
        self._refuse_unfit(simulated)
        refuse_place(path, force)
        record = self._record() | ({"command": command} if command and self.simulated else {})
        table = self.estimate.to_arrow()
        if path.suffix == ".csv":
            table = for_readers(self.to_frame(), table)
        write_release(table, record, path, force)
        return path

    def _refuse_unfit(self, simulated: bool) -> None:
        if not self.ledger:
            raise ValueError("this release has no receipt for what it cost, and is never saved")
        if self.simulated and not simulated:
            raise ValueError(
                "this release was made with a seeded rng, so its noise can be replayed: release with "
                "rng=None to publish, or save with simulated=True"
            )
        if self.idealised:
            raise ValueError(
                "this release was drawn with floating point: idealised, never saved"
            )
        for receipt in self.ledger:
            if receipt.withdrawn:
                raise ValueError(
                    f"this release promises nothing, and is never saved: {receipt.description}"
                )

    def _record(self) -> dict[str, Any]:
        from importlib.metadata import version

        versions = {name: version(name) for name in ("dp-workbench", "numpy", "pyarrow")}
        return {
            "format": 1,
            "kind": self.estimate.kind,
            "estimate": self.estimate.metadata(),
            "guarantee": str(self.privacy),
            "ledger": [receipt_record(r) for r in self.ledger],
            "bound": self.bound and bound_record(self.bound),
            **({"counts": self.counts_what} if self.counts_what else {}),
            **({} if self.users_cut is None else {"users_cut": self.users_cut}),
            "simulated": self.simulated,
            "mechanism": str(self.mechanism),
            "commit": files.commit(),
            "versions": versions | {"python": platform.python_version()},
        }

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote, Parquet or CSV; its mechanism stays text and is never evaluated.

        Parameters
        ----------
        path : the file.

        Returns
        -------
        Release
            As it was saved.

        Raises
        ------
        FileNotFoundError
            If there is no such file, or nothing beside a CSV file that says what it promises.
        ValueError
            If it is not a whole release of this workbench, or a CSV file was changed.
        """
        return cls._of_file(path, *read_release(path))

    @classmethod
    def _of_file(cls, path: str | Path, table: pa.Table, record: Record) -> Release:
        try:
            estimate = _class_of(record.kind).from_arrow(table, record.estimate)
            ledger, bound = promise_of_file(record)
            return cls(estimate, ledger, record.mechanism, bound, record.users_cut)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None
        except _NOT_OURS as e:
            raise ValueError(
                f"{path}: not a release that this version of the workbench reads "
                f"({type(e).__name__}: {str(e)[:80]})"
            ) from None


def _class_of(kind: str) -> Any:
    """The class of an estimate; that of a model stands in a package above, and is loaded by name."""
    if kind == "model":
        return import_module("workbench.inference.model").Model
    classes = {cls.kind: cls for cls in estimates.ALL}
    if kind not in classes:
        raise ValueError(
            f"$.kind: need one of {', '.join([*classes, 'model'])}; got {shown(kind)}"
        )
    return classes[kind]
