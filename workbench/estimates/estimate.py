"""Base class of all estimates, and answers with their error bars.

The error of an answer has several parts. Each *released* cell adds the noise on its count. A cell that was not
released is *absent*. The noisy value of an absent cell was below the threshold. So in more than 99 of 100
absent cells, the true count is at most the threshold plus three standard deviations of the noise. An empty cell
can be released because of its noise. Such a cell adds the variance of the noise to the error. If only positive
values are released, the noise of such a cell also has a positive mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from math import ceil, isnan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates import stored
from workbench.queries import Recipe
from workbench.value import Float, format_number, number, plain, read_only

# Answers

_SHOWN = 10
BELIEFS = {"empty": "if absent cells are empty (believed)"}


class Answers(tuple[Any, ...]):
    """Answers to queries with their standard errors. You can unpack the object as a pair: `values, errors =
    …`. The attributes of the object also describe two parts of the error: the noise, and the cells that were
    not released.

    All numbers are counts of records. A number is NaN if it cannot be computed from the release alone.

    Attributes
    ----------
    values, errors : float64[queries]
        The two arrays of the pair: one answer per query, and the standard error of each answer. A standard
        error is NaN if there is no formula for it.
    noise : float64[queries]
        Standard deviation of the noise in each answer. About 19 times in 20, the noise is at most twice as
        large as this number.
    absent_cells : float64[queries]
        For each query, the number of cells in the query that were not released. If the release is a tree, nodes
        are counted instead of cells.
    absent : float64[queries]
        For each query, an upper limit on the sum of the true counts of the cells that were not released. The
        true answer may be higher than `values` by this amount.
    belief : str
        Assumption that you made about cells that were not released, in words. The text is empty if you made
        no assumption.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]
    belief: str = ""

    def __new__(
        cls,
        values: Any,
        errors: Any,
        noise: Any = None,
        absent_cells: Any = 0.0,
        absent: Any = 0.0,
    ) -> Answers:
        """Make answers from values and errors. By default, noise is the only source of error, and no cells
        are absent.
        """
        errors = np.full(len(values), errors) if np.isscalar(errors) else errors
        pair = super().__new__(cls, (values, errors))
        pair.noise = errors if noise is None else noise
        pair.absent_cells = np.full(len(values), absent_cells)
        pair.absent = np.full(len(values), absent)
        return pair

    def believing(self, belief: str | None) -> Answers:
        """Return the same answers under an assumption about the cells that were not released. With "empty", you
        assume that these cells are empty, so `absent` becomes 0. With None, nothing changes.
        """
        if belief is None:
            return self
        if belief not in BELIEFS:
            raise ValueError(f"belief = {belief!r} is not allowed: need one of {[*BELIEFS]}")
        pair = Answers(self.values, self.errors, self.noise, self.absent_cells)
        pair.belief = BELIEFS[belief]
        return pair

    def __repr__(self) -> str:
        rows = [
            f"{count} {noise} (noise), {cells} absent cells hold {most}"
            for count, noise, cells, most in self.in_words(_SHOWN)
        ]
        more = [f"and {len(self.values) - _SHOWN:,} more"] if len(self.values) > _SHOWN else []
        return f"<Answers: {'; '.join([*rows, *more])}>"

    def in_words(self, most: int | None = None) -> list[tuple[str, str, str, str]]:
        """Return four texts for each of the first `most` answers. The first two are the answer and the standard
        deviation of its noise. The third is the number of cells that were not released. The fourth is an upper
        limit on the sum of the counts of these cells.
        """
        parts = (self.values, self.noise, self.absent_cells, self.absent)
        rows = []
        for count, noise, cells, absent in zip(*(x[:most] for x in parts), strict=True):
            hold = "unknown" if isnan(absent) else f"at most {number(ceil(absent))}"
            rows.append(
                (
                    number(count),
                    "unknown" if isnan(noise) else f"± {format_number(noise)}",
                    "unknown" if isnan(cells) else number(cells),
                    hold if absent else "0",
                )
            )
        return rows

    @property
    def values(self) -> Float[np.ndarray, " queries"]:
        """Answers, as counts of records, in the order of the queries."""
        return self[0]

    @property
    def errors(self) -> Float[np.ndarray, " queries"]:
        """Standard errors of the answers, as counts of records. An unknown error is NaN."""
        return self[1]


# Estimate


_NAMES = 8  # of attributes that a text lists
_LONGEST = 60  # characters of a marginal's name, which are at most 240 bytes


class Estimate:
    """Base class of estimates, which are the contents of a release. A subclass is a frozen dataclass. Its
    fields determine what a release file contains.

    `kind` is the name of the class in files. `contents` is a plural noun for the things that `len` counts, for
    example "cells". Arrays in fields become read-only. A file contains some fields as columns of a table, and
    the others as metadata in the format of the module `stored`. If `rows_are_counts` is True, each row of
    `to_frame` is a count that has its own error.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    rows_are_counts: ClassVar[bool] = True
    unreleased: ClassVar[tuple[float, float]] = (
        0.0,
        0.0,
    )  # cells of a query, and what they hold

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def domain(self) -> Any:
            """Domain of the estimate, which lists all possible cells."""

        @property
        def values(self) -> Any:
            """Released numbers."""

    def __len__(self) -> int:
        return len(self.values)

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # of a subclass
            if isinstance(x := getattr(self, field.name), np.ndarray):
                object.__setattr__(self, field.name, read_only(x))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._attribute_names}: {self.held}>"

    @property
    def held(self) -> str:
        """Text that says how many cells (or other things) the estimate contains, for example "10 of 1,024
        cells".
        """
        possible = f" of {self.domain.size:,}" if self.contents == "cells" else ""
        return f"{len(self):,}{possible} {self.contents}"

    @property
    def _attribute_names(self) -> str:
        names = self.domain.attributes
        if len(names) > _NAMES:
            return f"{len(names)} attributes"
        return plain(" × ".join(names))

    def answer(self, workload: Recipe, weights: str = "unbiased", error: bool = False) -> Any:
        """Return estimated answers to queries. If `error` is True, also return the errors of the answers.

        Parameters
        ----------
        workload : Workload
            List of queries. The class of the estimate must be able to answer queries of this kind.
        weights : "unbiased" or "raw"
            Weights of sampled cells (see `Summary.weights`). If the cells were not sampled, the two
            settings give the same answers. Default "unbiased".
        error : bool
            Whether to return also the standard errors of the answers. Default False.

        Returns
        -------
        answers : float64[queries], or Answers
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers
            and standard errors. A standard error is NaN if there is no formula for it.

        Raises
        ------
        ValueError
            If `weights` is neither "unbiased" nor "raw", or the estimate cannot answer the queries.
        """
        check_weights(weights)
        answers = self._answer(workload, error)
        values, errors = answers if isinstance(answers, tuple) else (answers, np.nan)
        return Answers(values, errors, None, *self.unreleased) if error else values

    def _answer(self, workload: Recipe, error: bool) -> Any:
        """Return answers, or a pair of answers and errors. A pair is returned if `error` is True, or if the
        errors take almost no time to compute.
        """
        raise NotImplementedError

    def deviations(self) -> Any:
        """Return the standard deviation of the noise in each row of `to_frame`. The result is NaN if the
        standard deviation is unknown.
        """
        variance = getattr(self, "variance", None)
        return np.nan if variance is None else float(np.sqrt(variance))

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why the errors of answers are unknown. The text is empty if the errors are
        known.
        """
        return ""

    def _columns(self) -> dict[str, Any]:
        """Return the columns that the release file contains, by name."""
        columns = dict(self.to_frame())
        for name, x in columns.items():
            if x.dtype == object and x.empty:  # whose values do not say that they are text
                columns[name] = pa.array([], pa.large_string())
        return columns

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of the estimate that a release file stores as columns. `fields` contains the
        fields that the file stores as metadata.
        """
        return {"values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        """Raise a ValueError if no release can have the rows of a file, for example because they are not
        sorted.
        """

    def to_frame(self) -> pd.DataFrame:
        """Return the released values as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row per value. The first columns identify the value, for example by labels. The last column,
            `noisy`, contains the value.
        """
        raise NotImplementedError

    def marginals(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Divide the rows of a table into one table per marginal (the counts for one set of attributes).

        Parameters
        ----------
        frame : pandas.DataFrame
            Table with one row for each row of `to_frame`, in the same order.

        Returns
        -------
        dict of str to pandas.DataFrame
            Tables by name, for example "age_sex". The dictionary is empty if all rows belong to one table.
        """
        return {}

    def to_arrow(self) -> pa.Table:
        """Return the released values as an Arrow table, which can be written to a Parquet file.

        Returns
        -------
        pyarrow.Table
            Table of the fields that are stored as columns. The method `metadata` returns all other fields.
        """
        return pa.table(self._columns())

    def metadata(self) -> dict[str, Any]:
        """Return the fields of the estimate that are not columns of the table. The method `from_arrow` needs
        these fields in addition to the table.

        Returns
        -------
        dict
            Names and values of the fields, in a form that can be written as JSON.
        """
        return stored.encode(self)

    @classmethod
    def from_arrow(cls, table: pa.Table, metadata: dict[str, Any]) -> Self:
        """Make an estimate from the table that `to_arrow` returned and the dictionary that `metadata`
        returned.

        Parameters
        ----------
        table : pyarrow.Table
            Columns that were read from a release file.
        metadata : dict
            Metadata that were read from the same file.

        Returns
        -------
        Estimate
            Estimate with the stored values.

        Raises
        ------
        ValueError
            If a field or a column is missing or unknown, or if its values have a wrong type, shape or range.
        """
        fields = stored.decode(cls.kind, metadata)
        fields |= cls._from_columns(table, fields)
        stored.check_arrays(cls, fields)
        estimate = cls(**fields)
        estimate._check_rows()
        return estimate


def by_name(
    marginals: Iterable[tuple[Iterable[str], pd.DataFrame]],
) -> dict[str, pd.DataFrame]:
    """Return the tables of marginals by name, for example "age_sex", or "total" for a marginal without
    attributes. All names are different, and can be names of files.
    """
    tables: dict[str, pd.DataFrame] = {}
    for attributes, table in marginals:
        name = "_".join(re.sub(r"\W+", "-", x) for x in attributes)[:_LONGEST] or "total"
        name = f"{name}_{len(tables)}" if name in tables else name
        tables[name] = table.reset_index(drop=True)
    return tables


def check_weights(weights: str) -> None:
    """Raise a ValueError if `weights` is neither "unbiased" nor "raw"."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")
