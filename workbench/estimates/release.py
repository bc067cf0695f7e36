"""Releases: a public estimate with its receipts, the queries that it answers, and its file."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from importlib import import_module
from math import erfc, exp, inf, sqrt
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from workbench import estimates, noise
from workbench.compiled import pa, pd
from workbench.data import PUBLIC, Bound
from workbench.estimates import files
from workbench.estimates.describing import USERS_CUT, described
from workbench.estimates.estimate import Answers
from workbench.estimates.release_files import (
    Record,
    bound_record,
    for_readers,
    promise_of_file,
    read_release,
    receipt_record,
    write_release,
)
from workbench.noise.gaussian_sparse import moves
from workbench.noise.law import DEVIATIONS, GAUSSIAN, GEOMETRIC, Law
from workbench.privacy import (
    ADD_REMOVE,
    DP,
    LOCAL,
    ZCDP,
    Receipt,
    compose,
    guarantee,
    warn_if_large,
)
from workbench.queries import Recipe, basis_of, labelled_queries, marginal_queries
from workbench.spaces import Domain
from workbench.value import Float, cell, format_number, number, shown

# what reading a file raises that was not written here; a RuntimeError of Arrow or of recursion
_NOT_OURS = (
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    StopIteration,
)


_DENSE = (estimates.Histogram, estimates.HierarchicalSums, estimates.ItemEdgeCounts)


class Largest(NamedTuple):
    """Largest released cells, with their labels, counts, and the standard deviations of their noise."""

    labels: pd.DataFrame
    counts: Float[np.ndarray, " cells"]
    noise: Float[np.ndarray, " cells"]


def knows_users_cut(data: Any) -> bool:
    """Return whether a mechanism can release how many users were truncated to the bound, for the given
    private data.
    """
    are_records_of_users = hasattr(data, "users_beyond") and data.bound is not PUBLIC
    return are_records_of_users or getattr(data, "users_cut", None) is not None


def refuse_report_cut(epsilon: float) -> None:
    """Check the ε that pays for the number of truncated users. Raise a ValueError before anything is read
    or spent.
    """
    if not (isinstance(epsilon, int | float) and 0 < epsilon < inf):
        raise ValueError(f"report_cut = {epsilon!r} is not allowed: need a finite ε > 0")
    noise.geometric(np.zeros(0, np.int64), l1=1, epsilon=epsilon)


class _Ledger(tuple[Receipt, ...]):
    """Receipts, and the estimate for which they paid."""

    estimate: Any


@dataclass(frozen=True, eq=False)
class Release:
    """Public result of a mechanism, with its estimate (noisy counts or synthetic records), its parameters, and
    its receipts. A receipt states the privacy cost of one measurement.

    Parameters
    ----------
    estimate : Estimate
        Public numbers, from which queries are answered.
    ledger : tuple of Receipt
        One receipt per measurement. Receipts belong to their estimate: if you replace the estimate, the
        release loses its receipts and cannot be saved. A mechanism that computes its estimate from another
        release passes `tuple(release.ledger)`.
    mechanism : Mechanism or str
        Mechanism that made the release, or its text if the release was loaded from a file.
    bound : Bound, optional
        Stated bound on the change of the data by one unit. The guarantee holds only if the bound does.
    users_cut : int, optional
        Noisy number of users truncated by the bound. None if it was not requested.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: object
    bound: Bound | None = None
    users_cut: int | None = None

    def __post_init__(self) -> None:
        """Bind the receipts to the estimate. Warn about a large ε if the release is new, and not loaded
        from a file.

        This prevents `dataclasses.replace` from moving receipts to another estimate.
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

    @property
    def privacy(self) -> DP | ZCDP:
        """Total privacy cost of the release, added up from its receipts."""
        return compose(self.ledger)

    def at(self, delta: float) -> DP:
        """Return the total cost as (ε, δ)-differential privacy, at a δ that you choose.

        Parameters
        ----------
        delta : float
            The same as for `privacy.guarantee`.

        Returns
        -------
        DP
            Guarantee with the smallest proven ε, rounded up.

        Raises
        ------
        ValueError
            If δ is not a probability, or too small for the measurements.
        """
        return guarantee(self.ledger, delta)

    @property
    def relation(self) -> str:
        """Neighbouring relation of the guarantee, for example that one unit is added or removed."""
        return self.ledger[0].relation if self.ledger else ADD_REMOVE

    @property
    def by_theorem(self) -> str:
        """Sentence for releases that cost less than the sum of their noisy measurements. It names the theorem
        that proves this. It is "" for all other releases.
        """
        return "; ".join(r.description for r in self.ledger if r.theorem)

    @property
    def simulated(self) -> bool:
        """Whether the noise came from a seed. Anyone with this seed can compute the noise again and subtract
        it.
        """
        return any(r.simulated for r in self.ledger)

    @property
    def idealised(self) -> bool:
        """Whether some noise was drawn in floating-point arithmetic, for which the exact guarantee is not
        proven.
        """
        return any(r.idealised for r in self.ledger)

    def answer(
        self,
        queries: Recipe | Mapping[str, Any] | str | Sequence[Any],
        *,
        error: bool = False,
        belief: str | None = None,
        **options: Any,
    ) -> Any:
        """Return estimated answers to queries. This has no privacy cost.

        Parameters
        ----------
        queries : workload, or queries by label
            {"origin": "Bern", "hour": (7, 9)} counts the records with all of these values. A value is a
            label, a pair (first, last) with both ends included, or a list or set of these. The same query
            as text is `'origin=Bern hour=7..9'`. A list asks several queries, and {} counts everything.
        error : bool
            Whether to return errors as well. Default False.
        belief : "empty", optional
            Assume that absent cells are empty, which makes the second part of the error smaller. The result
            records this assumption.
        options
            Options of the estimate, for example `weights="raw"`.

        Returns
        -------
        float64[queries], or estimates.estimate.Answers
            One answer per query, in counts. With `error=True` a pair of answers and standard errors,
            printed as on the command line. Its `noise`, `absent_cells` and `absent` are the two parts of
            the error. A standard error is NaN if cells below a threshold were left out, because this biases
            the answer by an unknown amount. If users were truncated, counts and errors are about the
            truncated table, for example about patients who are in at most 4 cells each (see `counts_what`).

        Raises
        ------
        ValueError
            If the estimate cannot answer the queries, an attribute or a label is not in the domain, a
            query selects nothing, or the belief is unknown.
        """
        if not hasattr(queries, "on"):
            queries = labelled_queries(self._labelled_domain(**options), queries)
        if error:
            options |= self._law_of_noise
            answers: Answers = self.estimate.answer(queries, error=True, **options)
            return answers.believing(belief)
        if belief is not None:
            raise ValueError("belief applies to error bars only: pass error=True as well")
        return self.estimate.answer(queries, **options)

    def marginal(
        self,
        *attributes: str | Sequence[str],
        error: bool = False,
        belief: str | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Return the estimated counts for each value of an attribute, or for each combination of values of
        several attributes. The result has their labels.

        Parameters
        ----------
        attributes : str
            Names of attributes.
        error : bool
            Whether to return errors as well. Default False.
        belief, options
            As in `answer`.

        Returns
        -------
        DataFrame
            One row per combination of labels, with its `count`. With `error` also the standard deviation of
            its `noise`, its number of `absent_cells`, and an upper limit on the sum of these cells,
            `absent`.

        Raises
        ------
        ValueError
            If an attribute is not in the domain or is named twice, there are more than 2²² rows, or the
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
        if taken := sorted({*columns} & {*frame.columns}):
            raise ValueError(
                f"attributes have the names of error columns, {taken}: leave out error=True"
            )
        frame = frame.assign(count=answers.values, **columns)
        if belief is not None:
            frame.attrs["belief"] = answers.belief
        return frame

    def _labelled_domain(self, of: str = "edges", **_: Any) -> Domain:
        """Return the domain whose labels queries name."""
        domain = self.estimate.domain
        if isinstance(self.estimate, estimates.ItemEdgeCounts) and of == "items":
            domain = self.estimate.items.domain
        domain = getattr(domain, "domain", domain)  # of `Attributes`
        if not isinstance(domain, Domain):
            raise ValueError(
                f"{self.estimate!r} has no attributes with labels. Ask a workload, for example Nodes"
            )
        return domain

    @property
    def counts_what(self) -> str:
        """Sentence for releases in which units were truncated. It explains that counts and error bars describe
        the truncated data. It is "" if no unit was truncated.
        """
        return self.bound.counts_what if self.bound else ""

    def deviations(self) -> Float[np.ndarray, " released"] | float:
        """Return the standard deviation of the noise on the released numbers.

        Returns
        -------
        float64[released] or float
            Standard deviation in counts, per row of `to_frame` or one for all rows. NaN if it is unknown.
        """
        return self.estimate.deviations(**self._law_of_noise)

    @property
    def absent_at_most(self) -> float:
        """Largest plausible true count of a cell (or node of a tree) that was not released. It is NaN if it is
        unknown.
        """
        if not isinstance(self.estimate, estimates.Summary):
            return float("nan")
        return self.estimate.absent_at_most(**self._law_of_noise)

    def largest(self, top: int = 10) -> Largest:
        """Return those released cells or nodes that have the largest noisy counts.

        Parameters
        ----------
        top : int
            Number of cells. Default 10.

        Returns
        -------
        Largest
            Labels, counts and the standard deviation of the noise on each, largest first.

        Raises
        ------
        ValueError
            If the release contains neither cells nor nodes, or `top` is not an integer >= 0.
        """
        if not isinstance(top, int | np.integer) or top < 0:
            raise ValueError(f"top = {top!r} is not allowed: need an integer >= 0")
        estimate = self.estimate
        if isinstance(estimate, estimates.ItemEdgeCounts):
            estimate = estimate.edges
        if isinstance(estimate, estimates.Summary):
            counts = estimate.weights()
        elif isinstance(estimate, estimates.Histogram) or getattr(
            estimate, "has_counts", False
        ):
            counts = estimate.values
        else:
            raise ValueError(f"{estimate!r} has no cells, so there are no largest ones")
        rows = np.argsort(-counts, kind="stable")[:top]
        if isinstance(estimate, estimates.Summary):
            labels = estimate.where(rows).to_frame().drop(columns=["count", "noisy"])
        else:
            labels = estimate.domain.frame(rows)
        deviations = np.broadcast_to(self.deviations(), counts.shape)
        return Largest(labels, counts[rows], deviations[rows])

    @property
    def _law_of_noise(self) -> dict[str, Law]:
        """Return the distribution of the noise by the receipts, if the estimate does not contain it."""
        receipts = [receipt for receipt in self.ledger if receipt.name != USERS_CUT]
        names = [receipt.name for receipt in receipts]
        is_summary = isinstance(self.estimate, estimates.Summary)
        if not is_summary or self.bound is None:
            return {}
        if names == ["gaussian sparse histogram"] and receipts[0].rho:
            cells, most = moves(self.bound)
            return {"filled_law": Law(GAUSSIAN, receipts[0].rho / (cells * most**2))}
        if names != ["stability"]:
            return {}
        cost = receipts[0].cost
        if isinstance(cost, ZCDP):
            return {
                "filled_law": Law(GAUSSIAN, float(Fraction(cost.rho) / self.bound.l2_squared))
            }
        return {"filled_law": Law(GEOMETRIC, cost.epsilon / self.bound.l1)}

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the released cells, their labels, noisy counts and standard errors.

        If cells were sampled, the table has two columns of counts. `noisy` is the count with its noise, and
        `count` is the weight that makes sums unbiased. For example, at τ = 500 a cell with the noisy value
        80 is kept with probability 80/500, and then has the `count` 500. Use `count` for sums, and `noisy`
        for single cells.

        If users were truncated to a bound, counts and errors are about the records that were kept. For
        example, each patient may count in at most 4 cells. `counts_what` explains this in a sentence.

        Returns
        -------
        DataFrame
            One row per released cell, node, query or report, with these columns: its labels, its `count`
            (unbiased unless the mechanism sorts or truncates counts), `sd` (the standard deviation of the
            noise), `low` and `high` (two standard deviations below and above, which contain the truth about
            19 times in 20), and `noisy` if it differs from `count`. Unknown errors are NaN. If an attribute
            has the same name as one of these columns, the column's name ends with an underscore. If cells
            were left out, `attrs` contains their number, `absent_cells`, and the largest likely count of
            each, `absent_at_most`. In a release of several marginals, an attribute that a row sums over has
            the label `*` (see `tables`). Synthetic records and sketches have no counts, and are returned
            without these columns.
        """
        return self._with_errors(self.estimate.to_frame())

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return a release of marginals as one table per marginal.

        Returns
        -------
        dict of str to DataFrame
            Tables with the columns of `to_frame`, but only their own attributes, by name. For example,
            `release.tables()["age_sex"]` has `age`, `sex`, `count`, `sd`, `low` and `high`. Empty if the
            release contains no marginals or only one.
        """
        return self.estimate.marginals(self.to_frame())

    def _with_errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows of labels and noisy counts with the unbiased counts and their error columns."""
        if "noisy" not in frame.columns or not self.estimate.rows_are_counts:
            return frame
        noisy = frame.pop("noisy")
        count = frame.pop("count") if "count" in frame.columns else noisy
        frame = _with_ends(frame, self.estimate.domain)
        sd = self.deviations()
        columns = {"count": count, "sd": sd, "low": count - 2 * sd, "high": count + 2 * sd}
        if not (count == noisy).all():
            columns["noisy"] = noisy
        for name, column in columns.items():
            frame[f"{name}_" if name in frame.columns else name] = column
        if isinstance(self.estimate, estimates.Summary):
            frame.attrs["absent_cells"] = self.estimate.absent_cells
            frame.attrs["absent_at_most"] = self.absent_at_most
        return frame

    @property
    def cells_from_nothing(self) -> float | None:
        """Number of cells (or nodes) that the mechanism would release on average if the table were empty. The
        thresholds stay the same.

        The number is computed from the file alone. On average, at most this number of the released cells
        are empty in the table, because no table has more empty cells than the empty table. If the mechanism
        always releases every cell, or a stated number of cells, the result is that number. It is None if
        the file does not contain enough information.
        """
        estimate = self.estimate
        if isinstance(estimate, _DENSE):
            return float(len(estimate))
        if isinstance(estimate, estimates.SelectedValues):
            return 0.0 if len(estimate) else None
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
        """Whether noise alone may explain half of the released cells or more.

        This is the case if at most 2n + 3√n cells were released, where n is `cells_from_nothing`. Noise
        alone gives n cells on average, and rarely more than three standard deviations above that. If the
        mechanism releases cells whatever their values, only those with values above three standard
        deviations of the noise are counted. The result is False if the file does not contain enough
        information.
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

    def describe(self, delta: float | None = None) -> list[tuple[str, str]]:
        """Describe the release and its guarantee in words. The text contains public information only.

        Parameters
        ----------
        delta : A δ at which a cost in ρ is also given as an ε.

        Returns
        -------
        list of (name, text)
            Rows on these topics: the contents and how they were drawn, the mechanism, the guarantee, who is
            protected and whether their bound is enforced or assumed, truncation, cautions, the cost of each
            measurement, the noise, sampling and thresholds, and the number of cells that noise alone would
            release.
        """
        return described(self, delta)

    def largest_in_words(self, top: int = 10) -> tuple[list[str], list[list[str]]]:
        """Return the cells or nodes with the largest noisy counts as formatted text.

        Parameters
        ----------
        top : int
            Number of cells. Default 10.

        Returns
        -------
        (columns, rows)
            Names of columns, and one row of texts per cell: its labels, its count and the standard
            deviation of its noise. There are no rows if the release has no cells or nodes.
        """
        try:
            labels, counts, deviations = self.largest(top)
        except ValueError:
            return [], []
        each = zip(labels.itertuples(index=False), counts, deviations, strict=True)
        rows = [
            [*map(cell, row), number(count), f"± {format_number(deviation)}"]
            for row, count, deviation in each
        ]
        return [*labels.columns, "count", "noise"], rows

    def _repr_html_(self) -> str:
        """Return the rows of `describe`, and the five largest cells, for notebooks."""
        facts = pd.DataFrame(self.describe()).set_index(0)
        shown = _html_table(f"Release: {self.privacy}", facts, header=False)
        columns, rows = self.largest_in_words(5)
        if not rows:
            return shown
        cells = pd.DataFrame(rows, columns=columns)
        return shown + _html_table(f"the largest {self.estimate.contents}", cells, header=True)

    def with_users_cut(
        self, data: Any, epsilon: float, rng: np.random.Generator | None = None
    ) -> Release:
        """Return the release with one more noisy number. It says how many users had more data than the bound
        allows, and were therefore truncated.

        Whether a user is truncated depends on that user's records alone. So adding or removing one user
        changes the number by at most one. Geometric noise of sensitivity 1 protects it, and has a separate
        receipt. The number of dropped rows is never released, because one user can change it a lot.

        Parameters
        ----------
        data : Data that were released. The data's bound or the mechanism must have truncated the users.
        epsilon : Cost of the number, in addition to the cost of the release.
        rng : Seeded generator for noise that can be replayed. None to publish.

        Returns
        -------
        Release
            Release with one more receipt.

        Raises
        ------
        ValueError
            If no user was truncated to the data's bound, or the guarantee is local (each user randomises
            their own data).
        """
        if not knows_users_cut(data):
            raise ValueError(
                "the number of users that were cut is unknown. Name the column of users when you "
                "read the data, so that the workbench truncates them to the bound"
            )
        if self.relation == LOCAL:
            raise ValueError("report_cut does not apply if each user randomises their own data")
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
        """Write the release and its guarantee to a table file (Parquet or CSV), which other programs can open.

        A Parquet file contains the guarantee in its metadata. For a CSV file `x.csv`, the guarantee is in a
        second file `x.csv.json`. The tables of a release of marginals are also written to files of their own,
        for example `x.csv.tables/age_sex.csv`. Files are written completely or not at all.

        Parameters
        ----------
        path : Name of the file, `x.parquet` or `x.csv`. Its folder must exist.
        simulated : Whether to save a release from seeded noise. The file is then marked as simulated.
        force : Whether to overwrite an existing file.
        command : Command that makes a simulated release again. It is stored in the file.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        ValueError
            If the release may not be saved, the file exists, or its ending is neither `.parquet` nor
            `.csv`.
        FileNotFoundError
            If the folder does not exist.
        OSError
            If the file cannot be written.
        """
        path = Path(path)
        self._refuse_unfit(simulated)
        record = self._record() | ({"command": command} if command and self.simulated else {})
        table = self.estimate.to_arrow()
        marginals = {}
        if path.suffix == ".csv":
            rows = getattr(self.estimate, "nodes", self.estimate.to_frame)
            frame = self._with_errors(rows())
            marginals = self.estimate.marginals(frame)
            table = for_readers(frame, table)
        write_release(table, record, path, force, marginals)
        return path

    def publish(self, folder: str | Path, about: Any, *, simulated: bool = False) -> Path:
        """Write a folder that you can publish. It has a table with errors, a data sheet, a statement of the
        guarantee, and metadata.

        Parameters
        ----------
        folder : New folder. A zip file of the same name is written next to it.
        about : Information from the publisher, as a mapping or a JSON file: title, publisher, contact, licence,
            and the other fields of `workbench.owner.publication.About`.
        simulated : Whether to publish a release from seeded noise. The data sheet then marks it as simulated.

        Returns
        -------
        Path
            Path of the folder.

        Raises
        ------
        FileExistsError
            If the folder or the zip file exists.
        ValueError
            If `about` lacks a field, or the release may not be published.
        """
        publication = import_module("workbench.owner.publication")  # a package above
        written: Path = publication.publish(self, folder, about, simulated=simulated)
        return written

    def _refuse_unfit(self, simulated: bool) -> None:
        if not self.ledger:
            raise ValueError("this release has no receipts, so it is never saved")
        if self.simulated and not simulated:
            raise ValueError(
                "this release was made with a seeded rng, so its noise can be replayed. Release with "
                "rng=None to publish, or save with simulated=True"
            )
        if self.idealised:
            raise ValueError(
                "this release is idealised (drawn with floating point), so it is never saved"
            )
        for receipt in self.ledger:
            if receipt.withdrawn:
                raise ValueError(
                    f"this release promises nothing, so it is never saved: {receipt.description}"
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
        """Read a release from a Parquet or CSV file that `save` wrote. The description of the mechanism is
        loaded as text, which is never run as code.

        Parameters
        ----------
        path : Path of the file.

        Returns
        -------
        Release
            The saved release.

        Raises
        ------
        FileNotFoundError
            If the file does not exist, or the `.csv.json` file of a CSV file does not exist.
        ValueError
            If the file is not a complete release of this workbench, or a CSV file was changed after it was
            saved.
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
                f"{path}: not a release that this version of the workbench can read "
                f"({type(e).__name__}: {str(e)[:80]})"
            ) from None


def _html_table(caption: str, frame: pd.DataFrame, header: bool) -> str:
    """Return a frame of texts as HTML. Without a header, the first column contains the names of the
    rows, and texts are aligned to the left.
    """
    with pd.option_context("display.max_colwidth", None):
        table = frame.to_html(index=not header, header=header, index_names=False)
    if not header:
        table = table.replace("<td>", '<td style="text-align: left">')
    return table.replace(">", f"><caption>{escape(caption)}</caption>", 1)


_MODELS = {"model": "Model", "tree-model": "TreeModel"}


def _class_of(kind: str) -> Any:
    """Return the class of an estimate. The class of a model is in a higher package, and is loaded by
    its name.
    """
    if kind in _MODELS:
        return getattr(import_module("workbench.inference.model"), _MODELS[kind])
    classes = {cls.kind: cls for cls in estimates.ALL}
    if kind not in classes:
        raise ValueError(
            f"$.kind: need one of {', '.join([*classes, *_MODELS])}; got {shown(kind)}"
        )
    return classes[kind]


def _with_ends(frame: pd.DataFrame, domain: Any) -> pd.DataFrame:
    """Return the labels of the first and the last cell of nodes, in place of their numbers."""
    for lo in [name for name in frame.columns if name == "lo" or name.endswith(" lo")]:
        before = lo.removesuffix("lo")
        ends = {"first": frame[lo], "last": frame.pop(f"{before}hi") - 1}
        place = frame.columns.get_loc(lo)
        frame = frame.drop(columns=lo)
        for step, (name, cells) in enumerate(ends.items()):
            if before:
                labels = domain.decode(before.strip(), cells.to_numpy())
            else:
                each = domain.frame(cells.to_numpy())
                labels = (
                    each.iloc[:, 0]
                    if each.shape[1] == 1
                    else each.astype(str).agg(", ".join, 1)
                )
            frame.insert(place + step, f"{before}{name}", labels)
    return frame
