"""What a mechanism gives back: a public estimate with the receipts that paid for it, and its file."""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from workbench import estimates, provenance
from workbench.libraries import pa, parquet, pd
from workbench.privacy import ADD_REMOVE, DP, WITHDRAWN, Receipt, compose
from workbench.table import STATED, Bound
from workbench.workload import Workload


@dataclass(frozen=True, eq=False)
class Release:
    """A public estimate, the receipts that paid for it, and the mechanism that made it.

    Parameters
    ----------
    estimate : what is public; it answers workloads.
    ledger : a receipt for each measurement.
    mechanism : the mechanism; its text in a release that was loaded from a file.
    bound : how far one unit was said to move the data: the guarantee is as true as it is.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: object
    bound: Bound | None = None

    @property
    def privacy(self) -> DP:
        """What the release cost, computed from the receipts and never merely stated."""
        return compose(self.ledger)

    @property
    def relation(self) -> str:
        """Which neighbours the guarantee is about."""
        return self.ledger[0].relation if self.ledger else ADD_REMOVE

    @property
    def by_theorem(self) -> str:
        """Which of its prices a theorem sets below the sum of their draws; "" if none."""
        return "; ".join(r.description for r in self.ledger if r.theorem)

    @property
    def simulated(self) -> bool:
        """Whether anyone with the seed can replay the noise."""
        return any(r.simulated for r in self.ledger)

    @property
    def idealised(self) -> bool:
        """Whether a law was drawn with floating point."""
        return any(r.idealised for r in self.ledger)

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<Release {self.privacy}{simulated}: {self.estimate!r} by {self.mechanism}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the guarantee, and every measurement that was paid for."""
        if self.simulated:
            noise = "simulated: replayable, not to be published"
        elif self.idealised:
            noise = "drawn with floating point: idealised, not to be published"
        else:
            noise = "system randomness"
        caption = (
            f"{escape(str(self.privacy))} · {noise}<br>{escape(repr(self.estimate))}"
            f"<br><code>{escape(str(self.mechanism))}</code>"
        )
        if self.bound:
            caption += f"<br>{escape(repr(self.bound))}, {self.bound.status}"
            if self.bound.unit:
                caption += f": {escape(self.bound.unit)}"
        rows = "".join(
            f"<tr><td>{escape(r.description)}</td><td>{escape(str(r.cost))}</td>"
            f"<td>{escape(r.relation)}</td></tr>"
            for r in self.ledger
        )
        return (
            f"<table><caption>{caption}</caption><thead><tr>"
            '<th scope="col">measurement</th><th scope="col">cost</th>'
            '<th scope="col">neighbours</th></tr>'
            f"</thead><tbody>{rows}</tbody></table>"
        )

    def answer(self, workload: Workload, **options: Any) -> Any:
        """The estimate's answers.

        Parameters
        ----------
        workload : the queries.
        options : those of the estimate, as `error=True` for standard errors.

        Returns
        -------
        float64[queries]
            An answer for each query, in counts; with `error=True` also their standard errors.

        Raises
        ------
        ValueError
            If the estimate cannot answer the workload.
        """
        return self.estimate.answer(workload, **options)

    def to_frame(self) -> pd.DataFrame:
        """The estimate as a table with labels.

        Returns
        -------
        DataFrame
            A row for each released cell, node or report.
        """
        return self.estimate.to_frame()

    def save(self, path: str | Path, *, simulated: bool = False, force: bool = False) -> Path:
        """Write one Parquet file that any reader opens as a plain table; it carries the guarantee.

        The file appears whole or not at all.

        Parameters
        ----------
        path : where; its folder must exist.
        simulated : says by name that a release from seeded noise is meant, which the file then carries.
        force : overwrite an existing file.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the release is not fit to be saved, or the file exists.
        FileNotFoundError
            If the folder does not exist.
        OSError
            If the file cannot be written.
        """
        path = Path(path)
        self._refuse_unfit(simulated)
        refuse_existing(path, force)
        table = self.estimate.to_arrow()
        metadata = dict(table.schema.metadata or {})
        metadata[b"workbench"] = json.dumps(self._record()).encode()
        _write(table.replace_schema_metadata(metadata), path, force)
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

    def _record(self) -> dict:
        from importlib.metadata import version

        versions = {name: version(name) for name in ("dp-workbench", "numpy", "pyarrow")}
        return {
            "format": 1,
            "kind": self.estimate.kind,
            "estimate": self.estimate.metadata(),
            "guarantee": str(self.privacy),
            "ledger": [_receipt_record(r) for r in self.ledger],
            "bound": self.bound and _bound_record(self.bound),
            "simulated": self.simulated,
            "mechanism": str(self.mechanism),
            "commit": provenance.commit(),
            "versions": versions | {"python": platform.python_version()},
        }

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote; its mechanism stays text and is never evaluated.

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
            If there is no such file.
        ValueError
            If it is not a whole release of this workbench.
        """
        table, record = read_release(path)
        try:
            estimate = next(k for k in estimates.ALL if k.kind == record["kind"])
            ledger = tuple(_receipt(path, **r) for r in record["ledger"])
            if not ledger:
                raise ValueError(f"{path}: no receipt says what this release cost")
            bound = record["bound"] and Bound(**record["bound"])
            return cls(
                estimate.from_arrow(table, record["estimate"]),
                ledger,
                record["mechanism"],
                bound,
            )
        except (KeyError, TypeError, StopIteration) as e:
            raise ValueError(
                f"{path}: written by another version of the workbench ({e})"
            ) from None


def read_release(path: str | Path) -> tuple[pa.Table, dict]:
    """What a release file holds, before any of it is believed.

    Parameters
    ----------
    path : the file.

    Returns
    -------
    pyarrow.Table
        The estimate's rows.
    dict
        The release's record; whatever is shown of it is printable.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a whole release of this workbench.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such release file")
    try:
        table = parquet.read_table(path)
    except (pa.ArrowException, OSError) as e:
        raise ValueError(f"{path}: not a complete Parquet file ({str(e)[:80]})") from None
    text = (table.schema.metadata or {}).get(b"workbench", b"{}")
    record = json.loads(text)
    if record.get("format") != 1:
        raise ValueError(f"{path}: a Parquet file, but not a release of this workbench")
    for shown in {"guarantee", "ledger", "mechanism", "versions"} & record.keys():
        record[shown] = _printable(record[shown])
    return table, record


def refuse_existing(path: Path, force: bool) -> None:
    """A ValueError if `path` may not be written: it exists, or its folder does not."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another name, or force to overwrite")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.absolute().parent}: no such folder")


def _write(table: pa.Table, path: Path, force: bool) -> None:
    """The table as a file that appears whole or not at all, and never in place of another."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        parquet.write_table(table, part, compression="zstd")
        with open(part, "rb") as f:
            os.fsync(f.fileno())
        if force:
            os.replace(part, path)
        else:
            try:
                os.link(part, path)  # fails where replace would silently overwrite
            except FileExistsError:
                refuse_existing(path, force)
            except OSError:  # no hard links on this file system
                open(path, "xb").close()
                os.replace(part, path)
    except OSError as e:
        raise OSError(f"{path} was not written: {e.strerror or e}") from None
    finally:
        part.unlink(missing_ok=True)


def _printable(x: Any) -> Any:
    """The same, where text shows its control characters: a terminal would obey them."""
    if isinstance(x, dict):
        return {_printable(key): _printable(item) for key, item in x.items()}
    if isinstance(x, list):
        return [_printable(item) for item in x]
    if not isinstance(x, str):
        return x
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in x)


def _bound_record(bound: Bound) -> dict:
    """What a file keeps of a bound: nothing of whom it is about, where nothing was said."""
    return {name: x for name, x in asdict(bound).items() if x not in ("", STATED)}


def _receipt_record(receipt: Receipt) -> dict:
    """What a file keeps of a receipt: its description is all that is said of its price."""
    return {
        "name": receipt.description,
        "cost": {"epsilon": str(receipt.cost.epsilon), "delta": receipt.cost.delta},  # may be ∞
        "relation": receipt.relation,
        "simulated": receipt.simulated,
        "idealised": receipt.idealised,
        "part": receipt.part,
    }


def _receipt(
    path: Any, name: str, cost: dict, part: Iterable | None = None, **rest: Any
) -> Receipt:
    """The receipt of a file's record; a name holds what `Receipt.description` adds to it."""
    own, by_theorem, theorem = name.partition(" (by theorem: ")
    if by_theorem and theorem.endswith(")"):
        rest |= dict(name=own, theorem=theorem[:-1])
    elif name.endswith(f" {WITHDRAWN}"):
        rest |= dict(name=name.removesuffix(f" {WITHDRAWN}"), withdrawn=True)
    else:
        rest |= dict(name=name)
    try:
        paid = DP(float(cost["epsilon"]), cost["delta"])
        return Receipt(cost=paid, part=part and tuple(part), **rest)
    except ValueError as e:
        raise ValueError(f"{path}: not a receipt that this workbench writes ({e})") from None
