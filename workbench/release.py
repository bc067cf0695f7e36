"""What a mechanism gives back: a public estimate with the receipts that paid for it, and its file."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from html import escape
from itertools import chain
from math import erfc, exp, sqrt
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from workbench import estimates, noise, provenance
from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates.bars import Answers
from workbench.estimates.law import DEVIATIONS, GAUSSIAN, GEOMETRIC, Law
from workbench.libraries import pa, pd
from workbench.privacy import (
    ADD_REMOVE,
    DP,
    LOCAL,
    WITHDRAWN,
    ZCDP,
    Receipt,
    compose,
    guarantee,
)
from workbench.release_files import (
    read_release,
    read_release_in_ranges,
    refuse_place,
    write_release,
    write_release_in_ranges,
)
from workbench.table import PUBLIC, STATED, Bound
from workbench.transform import basis_of
from workbench.wording import cell, format_number, number
from workbench.workload import Workload, labelled_queries, marginal_queries

USERS_CUT = "users who lost anything to the bound"  # its receipt


def knows_users_cut(data: Any) -> bool:
    """Whether it can be said of private data how many users lost anything to the bound of a release."""
    are_records_of_users = hasattr(data, "users_beyond") and data.bound is not PUBLIC
    return are_records_of_users or getattr(data, "users_cut", None) is not None


class Largest(NamedTuple):
    """The largest released cells: their labels, counts, and the deviations of the noise on them."""

    labels: pd.DataFrame
    counts: Float[np.ndarray, " cells"]
    noise: Float[np.ndarray, " cells"]


_NOT_OURS = (  # what reading a file raises that was not written here
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,  # Arrow's, of columns of other types
    RecursionError,
    StopIteration,
)
_DENSE = (estimates.Histogram, estimates.HierarchicalSums, estimates.ItemEdgeCounts)


@dataclass(frozen=True, eq=False)
class Release:
    """A public estimate, the receipts that paid for it, and the mechanism that made it.

    Parameters
    ----------
    estimate : what is public; it answers workloads.
    ledger : a receipt for each measurement.
    mechanism : the mechanism; its text in a release that was loaded from a file.
    bound : how far one unit was said to move the data: the guarantee is as true as it is.
    users_cut : how many users lost anything to the bound, with noise; None where it was not asked.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: object
    bound: Bound | None = None
    users_cut: int | None = None

    @property
    def privacy(self) -> DP | ZCDP:
        """What the release cost, computed from the receipts and never merely stated."""
        return compose(self.ledger)

    def at(self, delta: float) -> DP:
        """What the release cost as (ε, δ)-differential privacy, at a δ that the reader names.

        Parameters
        ----------
        delta : float
            As for `privacy.guarantee`.

        Returns
        -------
        DP
            The smallest ε that is proven, rounded up.

        Raises
        ------
        ValueError
            If δ is no probability, or too little for what was measured.
        """
        return guarantee(self.ledger, delta)

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

    @property
    def cells_from_nothing(self) -> float | None:
        """How many cells (or nodes) of a table that holds nothing the same thresholds would release.

        On average, from the file alone. Of the cells that are empty no more are expected to be among the
        released ones, since no table has more empty cells. Where everything is released, or a number that
        was stated, as many are of any table. None where the file does not tell.
        """
        estimate = self.estimate
        if isinstance(estimate, _DENSE):
            return float(len(estimate))
        if not isinstance(estimate, estimates.Summary):
            return None
        if self._law_of_noise:
            return 0.0  # an empty cell is never visited
        if estimate.law is None:
            return None
        if estimate.scale != 1 or estimate.releases_all:
            return float(len(estimate))
        expected = 0.0  # with `consistent` no more: it takes nodes away
        for block in basis_of(
            getattr(estimate, "transform", None), estimate.domain
        ).noise_blocks:
            law = Law(estimate.law.kind, Fraction(estimate.law.rate)).of_nodes(block)
            cell = noise.empty_cell(law, estimate.theta, estimate.sides, estimate.tau)
            expected += block.size * cell.chance
        return expected

    @property
    def mostly_noise(self) -> bool:
        """Whether half of the released cells, or more, may be there by noise alone.

        That is, at most 2n + 3√n were released, n being `cells_from_nothing`: noise gives n of them on
        average, and hardly ever three deviations more. Where cells are released whatever they hold, those
        beyond three deviations of the noise are counted in their place. False where the file does not tell.
        """
        estimate = self.estimate
        expected = self.cells_from_nothing
        if expected is None or not len(estimate):
            return False
        released = len(estimate)
        if expected == released:
            values = getattr(estimate, "edges", estimate).values
            deviations = self.deviations()
            if isinstance(estimate, estimates.Summary) and estimate.scale != 1:
                deviations = sqrt(cast(Law, estimate.law).variance)
            if np.isnan(deviations).any():
                return False
            released = int(np.count_nonzero(np.abs(values) >= DEVIATIONS * deviations))
            is_gaussian = any(isinstance(receipt.cost, ZCDP) for receipt in self.ledger)
            beyond = erfc(DEVIATIONS / sqrt(2)) if is_gaussian else exp(-sqrt(2) * DEVIATIONS)
            expected *= beyond  # of Laplace noise, and about of geometric; of Gaussian
        return bool(released <= 2 * expected + 3 * sqrt(expected))

    def __repr__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        return f"<Release {self.privacy}{simulated}: {self.estimate!r} by {self.mechanism}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the guarantee, and every measurement that was paid for."""
        if self.simulated:
            drawn = "simulated: replayable, not to be published"
        elif self.idealised:
            drawn = "drawn with floating point: idealised, not to be published"
        else:
            drawn = "system randomness"
        caption = (
            f"{escape(str(self.privacy))} · {drawn}<br>{escape(repr(self.estimate))}"
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
            f"</thead><tbody>{rows}</tbody></table>{self._largest_as_html()}"
        )

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

    def answer(
        self,
        queries: Workload | Mapping[str, Any] | str | Sequence[Any],
        *,
        error: Any = False,
        belief: str | None = None,
        **options: Any,
    ) -> Any:
        """The estimate's answers; they cost nothing.

        Parameters
        ----------
        queries : a workload, or queries by label.
            {"origin": "Bern", "hour": (7, 9)} counts what has all of these: a label, a pair (first, last)
            of which both belong to it, or a list or set of these; as text: `'origin=Bern hour=7..9'`. A
            list of such asks several; {} counts everything.
        error : whether it is wanted how far answers may be off.
        belief : "empty" takes absent cells for empty, which narrows the second part and is said.
        options : those of the estimate, as `weights="raw"`.

        Returns
        -------
        float64[queries], or estimates.bars.Answers
            An answer for each query, in counts. With `error=True` a pair: answers and standard errors; its
            `noise`, `absent_cells` and `absent` say in two parts what may be wrong.

        Raises
        ------
        ValueError
            If the estimate cannot answer the queries, an attribute or a label is not in the domain, a
            query selects nothing, or a belief is none.
        """
        if not hasattr(queries, "on"):
            queries = labelled_queries(self._labelled_domain(**options), queries)
        if error is not True:
            if belief is not None:
                raise ValueError("a belief narrows error bars: need error=True with it")
            return self.estimate.answer(queries, error=error, **options)
        answers, errors = self.estimate.answer(queries, error=True, **options)
        bars = self.estimate.bars(queries, **self._law_of_noise, **options)
        return Answers(answers, errors, bars, belief)

    def marginal(
        self,
        *attributes: str | Sequence[str],
        error: bool = False,
        belief: str | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """All counts of one attribute, or of several together, with their labels.

        Parameters
        ----------
        attributes : their names.
        error : whether it is wanted how far counts may be off.
        belief, options : as in `answer`.

        Returns
        -------
        DataFrame
            A row for each combination of labels, and its `count`; with `error` also the standard deviation
            of its `noise`, how many `absent_cells` it has, and how much these hold at most, `absent`.

        Raises
        ------
        ValueError
            If an attribute is not in the domain or stands twice, there are more than 2²² rows, or the
            estimate cannot answer.
        """
        names: list[Any] = []
        for given in attributes:
            names += given if isinstance(given, list | tuple) else [given]
        domain = self._labelled_domain(**options)
        workload = marginal_queries(domain, names)
        frame = domain.project(names).frame(np.arange(len(workload)))
        answers = self.answer(workload, error=error, belief=belief, **options)
        if not error:
            return frame.assign(count=answers)
        columns = {name: getattr(answers, name) for name in ("noise", "absent_cells", "absent")}
        _refuse_columns(frame, columns)
        frame = frame.assign(count=answers.values, **columns)
        if belief is not None:
            frame.attrs["belief"] = answers.belief
        return frame

    def _labelled_domain(self, of: str = "edges", **_: Any) -> Domain:
        """The domain whose labels queries name."""
        domain = self.estimate.domain
        if isinstance(self.estimate, estimates.ItemEdgeCounts) and of == "items":
            domain = self.estimate.items.domain
        domain = getattr(domain, "domain", domain)  # of `Attributes`
        if not isinstance(domain, Domain):
            raise ValueError(
                f"{self.estimate!r} has no attributes with labels: ask a workload, such as Nodes"
            )
        return domain

    def deviations(self) -> Float[np.ndarray, " released"] | float:
        """The standard deviation of the noise on what was released.

        Returns
        -------
        float64[released] or float
            In counts, for each row of `to_frame` or for all; NaN where it is not known.
        """
        return self.estimate.deviations(**self._law_of_noise)

    @property
    def absent_at_most(self) -> float:
        """What each cell (or node) that was not released holds at most, in counts; NaN if unknown."""
        if not isinstance(self.estimate, estimates.Summary):
            return float("nan")
        return self.estimate.absent_at_most(**self._law_of_noise)

    def largest(self, top: int = 10) -> Largest:
        """The largest of what was released.

        Parameters
        ----------
        top : how many.

        Returns
        -------
        Largest
            Labels, counts and the standard deviation of the noise on each, largest first.

        Raises
        ------
        ValueError
            If the release holds neither cells nor nodes, or `top` is no whole number from 0 on.
        """
        if not isinstance(top, int | np.integer) or top < 0:
            raise ValueError(f"top = {top!r} is not allowed: need a whole number >= 0")
        estimate = self.estimate
        if isinstance(estimate, estimates.ItemEdgeCounts):
            estimate = estimate.edges
        if isinstance(estimate, estimates.Summary):
            counts = estimate.weights()
        elif isinstance(estimate, estimates.Histogram):
            counts = estimate.values
        else:
            raise ValueError(f"{estimate!r} holds no cells of which some are the largest")
        rows = np.argsort(-counts, kind="stable")[:top]
        if isinstance(estimate, estimates.Summary):
            labels = estimate.where(rows).to_frame().drop(columns=["count", "noisy"])
        else:
            labels = estimate.domain.frame(rows)
        deviations = np.broadcast_to(self.deviations(), counts.shape)
        return Largest(labels, counts[rows], deviations[rows])

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

    @property
    def _law_of_noise(self) -> dict[str, Law]:
        """What the receipts tell of the noise, and the estimate does not."""
        receipts = [receipt for receipt in self.ledger if receipt.name != USERS_CUT]
        names = [receipt.name for receipt in receipts]
        is_summary = isinstance(self.estimate, estimates.Summary)
        if names != ["stability"] or not is_summary or self.bound is None:
            return {}
        cost = receipts[0].cost
        if isinstance(cost, ZCDP):
            return {
                "filled_law": Law(GAUSSIAN, float(Fraction(cost.rho) / self.bound.l2_squared))
            }
        return {"filled_law": Law(GEOMETRIC, cost.epsilon / self.bound.l1)}

    def to_frame(self, error: bool = False) -> pd.DataFrame:
        """The estimate as a table with labels.

        Parameters
        ----------
        error : whether the standard deviation of the `noise` on each row is wanted.

        Returns
        -------
        DataFrame
            A row for each released cell, node or report. With `error` the column `noise`, NaN where it is
            not known, and in `attrs` the other part: how many cells are `absent_cells`, and what each of
            them holds at most, `absent_at_most`.

        Raises
        ------
        ValueError
            If an attribute has the name of such a column.
        """
        frame = self.estimate.to_frame()
        if not error:
            return frame
        _refuse_columns(frame, ["noise"])
        frame = frame.assign(noise=self.deviations())
        if isinstance(self.estimate, estimates.Summary):
            frame.attrs["absent_cells"] = self.estimate.absent_cells
            frame.attrs["absent_at_most"] = self.absent_at_most
        return frame

    def save(self, path: str | Path, *, simulated: bool = False, force: bool = False) -> Path:
        """Write a file that any reader opens as a plain table, with its guarantee.

        A Parquet file carries it; beside a CSV file stands `x.csv.json`. The file appears whole or not at
        all.

        Parameters
        ----------
        path : where, `x.parquet` or `x.csv`; its folder must exist.
        simulated : says by name that a release from seeded noise is meant, which the file then carries.
        force : overwrite an existing file.

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
        write_release(self.estimate.to_arrow(), self._record(), path, force)
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
            "ledger": [_receipt_record(r) for r in self.ledger],
            "bound": self.bound and _bound_record(self.bound),
            **({} if self.users_cut is None else {"users_cut": self.users_cut}),
            "simulated": self.simulated,
            "mechanism": str(self.mechanism),
            "commit": provenance.commit(),
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
    def load_in_ranges(cls, path: str | Path) -> Iterator[Release]:
        """Read a Parquet file some released rows at a time: what is larger than memory.

        Each has the whole release's guarantee and some of its rows, in their order; answers, without
        their errors, add up.

        Parameters
        ----------
        path : the file.

        Yields
        ------
        Release

        Raises
        ------
        FileNotFoundError, ValueError
            As `load`, or a CSV file.
        """
        for table, record in read_release_in_ranges(path):
            yield cls._of_file(path, table, record)

    def save_in_ranges(
        self,
        pieces: Iterable[Any],
        path: str | Path,
        *,
        simulated: bool = False,
        force: bool = False,
    ) -> Path:
        """Write a Parquet file as `save` does, of estimates that follow each other.

        Parameters
        ----------
        pieces : estimates as this release's, of which each has some of the rows.
        path, simulated, force : as for `save`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError, FileNotFoundError, OSError
            As `save`, or a CSV file.
        """
        path = Path(path)
        self._refuse_unfit(simulated)
        if path.suffix != ".parquet":
            raise ValueError(f"{path}: what is written in ranges is Parquet")
        refuse_place(path, force)
        tables = (piece.to_arrow() for piece in chain([self.estimate], pieces))
        write_release_in_ranges(tables, self._record(), path, force)
        return path

    @classmethod
    def _of_file(cls, path: str | Path, table: pa.Table, record: dict[str, Any]) -> Release:
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
                _users_cut(path, record),
            )
        except _NOT_OURS as e:
            raise ValueError(
                f"{path}: not a release that this version of the workbench reads "
                f"({type(e).__name__}: {str(e)[:80]})"
            ) from None


def _refuse_columns(frame: pd.DataFrame, names: Iterable[str]) -> None:
    taken = sorted(set(names) & set(frame.columns))
    if taken:
        raise ValueError(
            f"attributes called {taken} leave no name for error bars: leave error out"
        )


def _users_cut(path: Any, record: dict[str, Any]) -> int | None:
    """How many users were cut, as a file says it."""
    number = record.get("users_cut")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise ValueError(f"{path}: users_cut = {str(number)[:40]!r} is no whole number")
    return number


def _bound_record(bound: Bound) -> dict[str, Any]:
    """What a file keeps of a bound: nothing of whom it is about, where nothing was said."""
    return {name: x for name, x in asdict(bound).items() if x not in ("", STATED)}


def _receipt_record(receipt: Receipt) -> dict[str, Any]:
    """What a file keeps of a receipt: its description is all that is said of its price."""
    return {
        "name": receipt.description,
        "cost": _cost_record(receipt.cost),
        "relation": receipt.relation,
        "simulated": receipt.simulated,
        "idealised": receipt.idealised,
        "part": receipt.part,
        **({} if receipt.rho is None else {"rho": receipt.rho}),
    }


def _cost_record(cost: DP | ZCDP) -> dict[str, Any]:
    if isinstance(cost, ZCDP):
        return {"rho": cost.rho, "delta": cost.delta}
    return {"epsilon": str(cost.epsilon), "delta": cost.delta}  # may be ∞


def _receipt(
    path: Any, name: str, cost: dict[str, Any], part: Any = None, **rest: Any
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
        paid: DP | ZCDP
        if "rho" in cost:
            paid = ZCDP(cost["rho"], cost["delta"])
        else:
            paid = DP(float(cost["epsilon"]), cost["delta"])
        return Receipt(cost=paid, part=part and tuple(part), **rest)
    except ValueError as e:
        raise ValueError(f"{path}: not a receipt that this workbench writes ({e})") from None
