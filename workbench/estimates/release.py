"""Releases: public estimates with receipts that record their privacy cost. A release can answer queries, and
can be saved to a file.
"""

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
from workbench.compiled import pd
from workbench.data import PUBLIC, Bound
from workbench.estimates import files
from workbench.estimates.describing import USERS_CUT, chosen_in_words, described
from workbench.estimates.estimate import Answers
from workbench.estimates.release_files import (
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
    """Released cells with the largest counts: their labels, their noisy counts, and the standard deviation of
    the noise on each count.
    """

    labels: pd.DataFrame
    counts: Float[np.ndarray, " cells"]
    noise: Float[np.ndarray, " cells"]


def knows_users_cut(data: Any) -> bool:
    """Return whether these private data show how many users exceed the bound. If so, the workbench can release
    this number with noise.
    """
    are_records_of_users = hasattr(data, "users_beyond") and data.bound is not PUBLIC
    return are_records_of_users or getattr(data, "users_cut", None) is not None


def refuse_report_cut(epsilon: float) -> None:
    """Raise a ValueError if `epsilon` is not an allowed cost for the noisy number of users who exceed the
    bound. The check reads no private data and spends no budget.
    """
    if not (isinstance(epsilon, int | float) and 0 < epsilon < inf):
        raise ValueError(f"report_cut = {epsilon!r} is not allowed: need a finite ε > 0")
    noise.geometric(np.zeros(0, np.int64), l1=1, epsilon=epsilon)


class _Ledger(tuple[Receipt, ...]):
    """Tuple of receipts that also contains the estimate for which they paid."""

    estimate: Any


@dataclass(frozen=True, eq=False)
class Release:
    """Public result of a mechanism. A release contains an estimate (noisy counts or synthetic records), the
    mechanism with its parameters, and receipts. A receipt records the privacy cost of one measurement, which is
    a noisy query on the private data.

    Parameters
    ----------
    estimate : Estimate
        Public numbers, for example noisy counts, from which the release computes answers to queries.
    ledger : tuple of Receipt
        One receipt per measurement. The receipts belong to this estimate. If you replace the estimate of a
        release by another estimate, the release loses its receipts and cannot be saved. If a mechanism computes
        its estimate from an earlier release, pass the receipts of the earlier release, `tuple(earlier.ledger)`.
    mechanism : Mechanism or str
        Mechanism that made the release. If the release was loaded from a file, the field contains a text that
        describes the mechanism.
    bound : Bound, optional
        Largest change of the data by one unit (for example a person), as the owner of the data stated it. The
        guarantee holds only if no unit changes the data by more than this bound.
    users_cut : int, optional
        Noisy number of users who had more data than the bound allows, so that some of their data were left out.
        None if you did not request this number.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: object
    bound: Bound | None = None
    users_cut: int | None = None

    def __post_init__(self) -> None:
        """Connect the receipts with the estimate. Warn about a large ε, except for releases that were loaded
        from a file.

        The connection prevents you from moving receipts to another estimate with `dataclasses.replace`.
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
        """Total privacy cost of the release: the sum of the costs in the receipts. A receipt records the cost
        of one measurement (noisy query on the private data). If measurements are about disjoint groups of
        people, only the cost of the most expensive group is included.
        """
        return compose(self.ledger)

    def at(self, delta: float) -> DP:
        """Return the total privacy cost as an (ε, δ)-guarantee, for a δ that you choose.

        Parameters
        ----------
        delta : float
            Small probability δ with which the factor e^ε may be exceeded, for example 1e-6. Choose δ before
            you see any answer.

        Returns
        -------
        DP
            Guarantee with the smallest ε that is proven for this δ. The ε is rounded up.

        Raises
        ------
        ValueError
            If δ is not a probability, or if δ is smaller than the sum of the δ in the receipts.
        """
        return guarantee(self.ledger, delta)

    @property
    def relation(self) -> str:
        """Text that names the change of the data that the guarantee covers. Usually, one unit (for example a
        person) is added or removed.
        """
        return self.ledger[0].relation if self.ledger else ADD_REMOVE

    @property
    def by_theorem(self) -> str:
        """Sentence that names a theorem, if this theorem proves that the release costs less than the sum of the
        costs in the receipts. For other releases, the text is empty.
        """
        return "; ".join(r.description for r in self.ledger if r.theorem)

    @property
    def simulated(self) -> bool:
        """Whether the noise was drawn from a seed. Anyone who knows this seed can compute the noise again and
        subtract it from the release.
        """
        return any(r.simulated for r in self.ledger)

    @property
    def idealised(self) -> bool:
        """Whether some of the noise was drawn in floating-point arithmetic. For such noise, the guarantee is
        not proven exactly.
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
        """Return estimated answers to queries. The answers are computed from public numbers, so they cost no
        privacy budget.

        Parameters
        ----------
        queries : workload, or queries by label
            Queries to answer. For example, {"origin": "Bern", "hour": (7, 9)} counts the records from Bern
            between hours 7 and 9. For each attribute, give a label, a pair (first, last) of labels, or a list
            or set of labels and pairs. A pair includes both of its ends. You can write the same query as a
            text, `'origin=Bern hour=7..9'`. Pass a list to ask several queries. The query {} counts all
            records.
        error : bool
            Whether to return also the errors of the answers. Default False.
        belief : "empty", optional
            Pass "empty" to assume that all cells that were not released are empty. The errors then describe
            only the noise. The result says that you made this assumption.
        options
            Further options, which depend on the class of the estimate, for example `weights="raw"`.

        Returns
        -------
        answers : float64[queries], or estimates.estimate.Answers
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers and
            standard errors. The attribute `noise` of this pair describes the error from noise. The attributes
            `absent_cells` and `absent` describe the cells that were not released. A standard error is NaN if
            cells below a threshold were left out, because the answer is then too low by an unknown amount. If
            the workbench left out data of users beyond the bound, counts and errors are about the remaining
            data. For example, the counts may describe a table in which each patient is counted in at most 4
            cells (see `counts_what`).

        Raises
        ------
        ValueError
            If the estimate cannot answer the queries, or if an attribute or a label is not in the domain. The
            error is also raised if a query selects no cell, or if `belief` has another value.
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
        """Return a table with the estimated count of each value of an attribute. If you name several
        attributes, the table has one count for each combination of their values.

        Parameters
        ----------
        attributes : str
            Names of the attributes. Without a name, the table has one row with the total.
        error : bool
            Whether to add columns that describe the error of each count. Default False.
        belief, options : optional
            Assumption about cells that were not released, and further options, as in `answer`.

        Returns
        -------
        DataFrame
            One row per combination of labels, with its estimated `count`. If `error` is True, there are three
            more columns. `noise` is the standard deviation of the noise in the count. `absent_cells` is the
            number of cells that have this combination of labels and were not released. `absent` is an upper
            limit on the sum of the true counts of these cells.

        Raises
        ------
        ValueError
            If an attribute is not in the domain or is named twice. The error is also raised if the table would
            have more than 2²² rows, or if the estimate cannot answer these queries.
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
        """Return the domain whose labels are used in queries. With `of` = "items", it is the domain of items
        instead of edges (pairs of an item and a context).
        """
        domain = self.estimate.domain
        if isinstance(self.estimate, estimates.ItemEdgeCounts) and of == "items":
            domain = self.estimate.items.domain
        domain = getattr(domain, "domain", domain)  # of `Attributes`
        if not isinstance(domain, Domain):
            contents = self.estimate.contents
            raise ValueError(
                f"a release of {contents} has no attributes with labels, so it answers no typed queries. Read "
                f"the {contents} in the release file, or draw them with workbench show FILE --picture "
                "NAME.png. In Python, you can also ask a workload, for example Nodes"
            )
        return domain

    @property
    def counts_what(self) -> str:
        """Sentence for releases from truncated data, in which data of units beyond the bound were left out. The
        sentence explains that counts and error bars describe the truncated data. For other releases, the text
        is empty.
        """
        return self.bound.counts_what if self.bound else ""

    def deviations(self) -> Float[np.ndarray, " released"] | float:
        """Return the standard deviation of the noise on each released number.

        Returns
        -------
        float64[released] or float
            One standard deviation per row of `to_frame`, or a single number that holds for all rows. A
            standard deviation is NaN if it is unknown.
        """
        return self.estimate.deviations(**self._law_of_noise)

    @property
    def absent_at_most(self) -> float:
        """Largest plausible true count of a cell (or of a node of a tree) that was not released. Among the
        cells that were not released, fewer than one in a hundred have a larger count. NaN if the number is
        unknown.
        """
        if not isinstance(self.estimate, estimates.Summary):
            return float("nan")
        return self.estimate.absent_at_most(**self._law_of_noise)

    def largest(self, top: int = 10) -> Largest:
        """Return the released cells (or nodes of a tree) with the largest noisy counts.

        Parameters
        ----------
        top : int
            Number of cells to return. Default 10.

        Returns
        -------
        Largest
            Labels, noisy counts, and the standard deviation of the noise on each count. The largest count
            comes first.

        Raises
        ------
        ValueError
            If the release contains neither cells nor nodes, or if `top` is not an integer >= 0.
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
            raise ValueError(
                f"a release of {estimate.contents} has no counts of cells, so there are no largest cells"
            )
        rows = np.argsort(-counts, kind="stable")[:top]
        if isinstance(estimate, estimates.Summary):
            labels = estimate.where(rows).to_frame().drop(columns=["count", "noisy"])
        else:
            labels = estimate.domain.frame(rows)
        deviations = np.broadcast_to(self.deviations(), counts.shape)
        return Largest(labels, counts[rows], deviations[rows])

    def chosen_by_counts(self, shown: int) -> str:
        """Return a phrase which says that the cells returned by `largest` were chosen by their noisy counts.

        Parameters
        ----------
        shown : int
            Number of cells that are shown, for example 14.

        Returns
        -------
        str
            Phrase, for example "14 largest of 720 cells, chosen by their noisy counts". It is empty if these
            are all cells of the domain.
        """
        estimate = self.estimate
        if isinstance(estimate, estimates.ItemEdgeCounts):
            estimate = estimate.edges
        is_summary = isinstance(estimate, estimates.Summary)
        by_count = is_summary and estimate.scale == 1  # otherwise a uniform sample of cells
        left_out = estimate.absent_cells if by_count else 0
        return chosen_in_words(shown, len(estimate), estimate.contents, left_out)

    @property
    def _law_of_noise(self) -> dict[str, Law]:
        """Distribution of the noise, as an argument for the methods of the estimate. It is computed from the
        receipts if the estimate does not contain the distribution. Otherwise, the dictionary is empty.
        """
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
        """Return a data frame with the released cells: their labels, their counts and the errors of the
        counts.

        If the cells are a random sample, the table has two columns of counts. The column `noisy` contains the
        noisy count of the cell. The column `count` contains a larger number for some cells, to make up for
        cells that were not kept. Therefore, sums of `count` over cells are unbiased. For example, suppose that
        the sampling threshold is 500 records. A cell with the noisy value 80 is kept with probability 80/500.
        If the cell is kept, its `count` is 500. Use `count` for sums, and `noisy` for single cells.

        If records of users beyond a bound were left out, counts and errors are about the records that were
        kept. For example, each patient may be counted in at most 4 cells. The property `counts_what` contains
        a sentence that explains the truncation.

        Returns
        -------
        DataFrame
            One row per released cell, node, query or report. The first columns contain the labels of the row.
            `count` is the estimated count, which is unbiased unless the mechanism sorts or truncates counts.
            `sd` is the standard deviation of the noise in the count. `low` and `high` are two standard
            deviations below and above the count. About 19 times in 20, the true count is between `low` and
            `high`. There is a column `noisy` only if its values differ from `count`. Unknown errors are NaN. If
            an attribute has the same name as one of these columns, the column's name ends with an underscore.
            If cells were not released, the `attrs` of the data frame contain the number of these cells
            (`absent_cells`) and the largest plausible true count of such a cell (`absent_at_most`). Some
            releases contain several marginals, which are tables on some of the attributes. If a row sums over
            all values of an attribute, the label of this attribute is `*` (see `tables`). Synthetic records and
            sketches (small summaries of a table) have no counts. Their data frames have no columns of counts
            and errors.
        """
        return self._with_errors(self.estimate.to_frame())

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return one table per marginal, if the release contains several marginals (counts for several sets
        of attributes).

        Returns
        -------
        dict of str to DataFrame
            Tables by name, with the columns of `to_frame`. Each table has only the attributes of its
            marginal. For example, `release.tables()["age_sex"]` has the columns `age`, `sex`, `count`, `sd`,
            `low` and `high`. The dictionary is empty if the release contains no marginals or only one.
        """
        return self.estimate.marginals(self.to_frame())

    def _with_errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the unbiased counts and the columns of errors to a frame of labels and noisy counts."""
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
        """Number of cells (or nodes of a tree) that the mechanism would release on average, with the same
        thresholds, if the table were empty.

        The number is computed from public information. For every other table, the number is an upper limit: on
        average, the mechanism releases at most this many cells that are empty in the true table. The reason is
        that no table has more empty cells than the empty table. If a mechanism always releases every cell, or a
        stated number of cells, the result is the number of released cells. The result is None if the release
        does not contain enough information.
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
        """Whether half of the released cells or more may be empty cells that appeared because of noise.

        Let n be the number of cells that are released from an empty table on average (`cells_from_nothing`).
        The actual number of such cells is rarely more than n + 3√n, because the standard deviation is about
        √n. The result is True if at most 2n + 3√n cells were released. Some mechanisms release cells whatever
        the values of the cells are. For these mechanisms, only cells with values above three standard
        deviations of the noise are counted. The result is False if the release does not contain enough
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
        """Describe the release and its guarantee in words. The text contains only public information.

        Parameters
        ----------
        delta : float, optional
            Probability δ with which the factor e^ε may be exceeded. If the privacy cost of the release is
            stated in ρ, the description also states the ε that follows for this δ.

        Returns
        -------
        list of (name, text)
            One row per topic. The first topics are the contents of the release, the origin of its noise, the
            mechanism, and the guarantee. The next topics are the protected unit, its bound (enforced or only
            assumed), truncation, and cautions. The last topics are the cost of each noisy query on the private
            data, the noise, sampling and thresholds, and the number of cells that would be released from an
            empty table.
        """
        return described(self, delta)

    def largest_in_words(self, top: int = 10) -> tuple[list[str], list[list[str]]]:
        """Return the cells (or nodes of a tree) with the largest noisy counts as formatted text.

        Parameters
        ----------
        top : int
            Number of cells to return. Default 10.

        Returns
        -------
        columns, rows : tuple and list
            The names of the columns, and one row of texts per cell. A row contains the labels, the count, and
            the standard deviation of the noise. If the release has neither cells nor nodes, there are no rows.
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
        """Return the rows of `describe` and the five largest cells as HTML, which notebooks show."""
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
        """Return the release with one more noisy number: the number of users who had more data than the bound
        allows. Some data of these users were left out.

        The records of one user alone determine whether this user has more data than the bound allows. So adding
        or removing one user changes the number by at most one. The workbench adds geometric noise of scale 1/ε
        to the number, where ε is the argument `epsilon`. The privacy cost of this noise is recorded in a
        separate receipt. The workbench never releases the number of rows that were left out, because one user
        can change that number a lot.

        Parameters
        ----------
        data : SparseTable, Interactions or other private data
            Private data from which the release was made. The data of users beyond the bound must have been
            left out, either when the data were read or by the mechanism.
        epsilon : float
            Privacy cost ε of the noisy number. This cost is added to the cost of the release.
        rng : numpy Generator, optional
            Seeded generator for noise that can be replayed. Pass None (the default) if you want to publish
            the release.

        Returns
        -------
        Release
            Release with the noisy number in the field `users_cut`, and with one more receipt, which records
            the cost of this number.

        Raises
        ------
        ValueError
            If data of users beyond a bound were never left out, or if the guarantee is local (each user
            randomises their own data).
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
        """Write the release and its guarantee to a Parquet or CSV file, which other programs can open as a
        table.

        A Parquet file contains the guarantee in its metadata. For a CSV file `x.csv`, the method writes the
        guarantee to a second file `x.csv.json`. If the release contains several marginals, each of them also
        gets its own CSV file, for example `x.csv.tables/age_sex.csv`. Files are written completely or not at
        all.

        Parameters
        ----------
        path : str or Path
            Path of the file, which must end in `.parquet` or `.csv`. The folder of the file must exist.
        simulated : bool
            Pass True to save a release whose noise came from a seed. The file is then marked as simulated.
            Default False.
        force : bool
            Whether to overwrite an existing file. Default False.
        command : str
            Command with which you can make a simulated release again. The file contains this command.
            Default empty.

        Returns
        -------
        Path
            Path of the written file.

        Raises
        ------
        ValueError
            If the release may not be saved, if the file exists, or if its name ends in neither `.parquet` nor
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
        """Write a folder that you can publish. The folder contains the released table with errors, a data
        sheet, a statement of the guarantee, and metadata.

        Parameters
        ----------
        folder : str or Path
            Path of the new folder. A zip file with the same name is written next to the folder.
        about : mapping or path
            Information about the publication, as a mapping or as the path of a JSON file. The information
            consists of the title, the publisher, a contact, the licence, and the other fields of
            `workbench.owner.publication.About`.
        simulated : bool
            Pass True to publish a release whose noise came from a seed. The data sheet then says that the
            release is simulated. Default False.

        Returns
        -------
        Path
            Path of the written folder.

        Raises
        ------
        FileExistsError
            If the folder or the zip file already exists.
        ValueError
            If a required field is missing in `about`, or if the release may not be published.
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
        """Read a release from a Parquet or CSV file that `save` wrote. The mechanism of a loaded release is
        only a text, so nothing in the file is run as code.

        Parameters
        ----------
        path : str or Path
            Path of the file, which ends in `.parquet` or `.csv`.

        Returns
        -------
        Release
            Release with the saved estimate and receipts.

        Raises
        ------
        FileNotFoundError
            If the file does not exist, or if the `.csv.json` file of a CSV file does not exist.
        ValueError
            If the file is not a complete release of this workbench, or if a CSV file was changed after it was
            saved.
        """
        table, record = read_release(path)
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
    """Return a frame of texts as an HTML table. If `header` is False, the names of the rows become the first
    column, and all texts are aligned to the left.
    """
    with pd.option_context("display.max_colwidth", None):
        table = frame.to_html(index=not header, header=header, index_names=False)
    if not header:
        table = table.replace("<td>", '<td style="text-align: left">')
    return table.replace(">", f"><caption>{escape(caption)}</caption>", 1)


_MODELS = {"model": "Model", "tree-model": "TreeModel"}


def _class_of(kind: str) -> Any:
    """Return the class of estimates whose name in files is `kind`. Classes of models are in another package,
    which is loaded only when it is needed.
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
    """Replace the cell numbers of nodes in a frame by two labels: the label of the first cell, and the label
    of the last cell.
    """
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
