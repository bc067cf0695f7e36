"""Base of all estimates: arrays and error bars.

A *released* cell has noise with the standard deviation of its distribution. A cell that was not released is
*absent*. Its noisy value was below the threshold, so its count is at most the threshold plus three standard
deviations, except for fewer than one such cell in a hundred. An empty cell that is released because of its
noise also adds error: the variance of its noise, and a positive mean if only positive values are released.
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
    """Answers and their standard errors, which unpack as a pair. Attributes give the two parts of the
    error.

    All numbers are in counts. A number is NaN if it cannot be computed from the release alone.

    Attributes
    ----------
    values, errors : float64[queries]
        The pair: answers, and standard errors (NaN if there is no closed form).
    noise : float64[queries]
        Standard deviation of the noise. About 19 times in 20 the noise is within two of them.
    absent_cells : float64[queries]
        Number of cells of each query that were not released. For trees, the number of nodes.
    absent : float64[queries]
        Upper limit on the sum of the true counts of these cells. The true answer may be higher by this
        amount.
    belief : str
        Assumption that the user made about absent cells, or "" if there is none.
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
        """Make a pair. By default, noise is the only source of error."""
        errors = np.full(len(values), errors) if np.isscalar(errors) else errors
        pair = super().__new__(cls, (values, errors))
        pair.noise = errors if noise is None else noise
        pair.absent_cells = np.full(len(values), absent_cells)
        pair.absent = np.full(len(values), absent)
        return pair

    def believing(self, belief: str | None) -> Answers:
        """Return the same answers, but with another assumption about the cells that were not released."""
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
        """Return one line of text for each of the first `most` answers. It gives the count, the noise, how
        many cells were not released, and how large their counts may be.
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
        """Answers in counts."""
        return self[0]

    @property
    def errors(self) -> Float[np.ndarray, " queries"]:
        """Standard errors in counts."""
        return self[1]


# Estimate


_NAMES = 8  # of attributes that a text lists
_LONGEST = 60  # characters of a marginal's name, which are at most 240 bytes


class Estimate:
    """Base class for the contents of a release. A subclass is a frozen dataclass, and its fields determine
    what the release file contains.

    `kind` is the name of the class in files. `contents` names what `len` counts, for example cells. Arrays
    become read-only. A file holds some fields as columns and the others as metadata, in the format of the
    module `stored`. If `rows_are_counts`, each row of `to_frame` is a count with its own error.
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
            """Domain of the counts."""

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
        """Text with the number of released cells or other things."""
        possible = f" of {self.domain.size:,}" if self.contents == "cells" else ""
        return f"{len(self):,}{possible} {self.contents}"

    @property
    def _attribute_names(self) -> str:
        names = self.domain.attributes
        if len(names) > _NAMES:
            return f"{len(names)} attributes"
        return plain(" × ".join(names))

    def answer(self, workload: Recipe, weights: str = "unbiased", error: bool = False) -> Any:
        """Return estimated answers to queries. With `error`, return their errors as well.

        Parameters
        ----------
        workload : Workload
            Queries of a kind that the class can answer.
        weights : "unbiased" or "raw"
            They differ only for samples (see `Summary.weights`).
        error : bool
            Whether to return standard errors as well.

        Returns
        -------
        float64[queries], or Answers
            Answers in counts. With `error`, a pair of answers and standard errors, which are NaN if there
            is no closed form.

        Raises
        ------
        ValueError
            If `weights` has another value, or the estimate cannot answer the queries.
        """
        check_weights(weights)
        answers = self._answer(workload, error)
        values, errors = answers if isinstance(answers, tuple) else (answers, np.nan)
        return Answers(values, errors, None, *self.unreleased) if error else values

    def _answer(self, workload: Recipe, error: bool) -> Any:
        """Return answers, or a pair of answers and errors if errors are requested or cost almost
        nothing.
        """
        raise NotImplementedError

    def deviations(self) -> Any:
        """Return the standard deviation of the noise in each row of `to_frame`, or NaN if it is unknown."""
        return np.nan

    @property
    def why_unknown(self) -> str:
        """Return a sentence that explains why the errors of answers are unknown, or "" if they are known."""
        return ""

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the file."""
        columns = dict(self.to_frame())
        for name, x in columns.items():
            if x.dtype == object and x.empty:  # whose values do not say that they are text
                columns[name] = pa.array([], pa.large_string())
        return columns

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that are columns, given those of the metadata."""
        return {"values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        """Raise a ValueError if rows of a file have other positions or another order than a release has."""

    def to_frame(self) -> pd.DataFrame:
        """Return the released values as a table.

        Returns
        -------
        pandas.DataFrame
            One row per value, with its labels or place, and a last column `noisy`.
        """
        raise NotImplementedError

    def marginals(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Return the rows of `frame`, which are those of `to_frame`, as one table per marginal.

        Parameters
        ----------
        frame : pandas.DataFrame
            Table with a row for each row of `to_frame`.

        Returns
        -------
        dict of str to pandas.DataFrame
            Tables by name, for example `age_sex`. Empty if the rows belong in one table.
        """
        return {}

    def to_arrow(self) -> pa.Table:
        """Return the released values for a Parquet file.

        Returns
        -------
        pyarrow.Table
            Table that any reader of Parquet can open. `metadata` contains all other fields.
        """
        return pa.table(self._columns())

    def metadata(self) -> dict[str, Any]:
        """Return the fields that `from_arrow` needs in addition to the table.

        Returns
        -------
        dict
            Dictionary that can be written as JSON.
        """
        return stored.encode(self)

    @classmethod
    def from_arrow(cls, table: pa.Table, metadata: dict[str, Any]) -> Self:
        """Return the estimate that `to_arrow` and `metadata` stored.

        Parameters
        ----------
        table : pyarrow.Table
            Columns of a release file.
        metadata : dict
            Metadata of the file.

        Returns
        -------
        Estimate
            Estimate with the same values.

        Raises
        ------
        ValueError
            If a field or column is missing or unknown, or has a wrong type, shape or range.
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
    """Return marginals by different names that a file can have, for example `age_sex`, or `total`."""
    tables: dict[str, pd.DataFrame] = {}
    for attributes, table in marginals:
        name = "_".join(re.sub(r"\W+", "-", x) for x in attributes)[:_LONGEST] or "total"
        name = f"{name}_{len(tables)}" if name in tables else name
        tables[name] = table.reset_index(drop=True)
    return tables


def check_weights(weights: str) -> None:
    """Raise a ValueError unless `weights` is "unbiased" or "raw". The two differ only for samples."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")
