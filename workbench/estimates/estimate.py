"""Base of all estimates: arrays and error bars.

The noise of a released cell has its law's standard deviation. A cell that was not released is *absent*: its
noisy value lay below the cut, so that its count is at most the cut and three standard deviations more,
except for fewer than one such cell in a hundred. An empty cell that is released because of its noise adds
error too: its variance, and also its mean where only positive values are released.
"""

from __future__ import annotations

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
    """Answers and their standard errors, a pair; and beside it both parts of what may be wrong.

    All are in counts, and NaN where the release alone cannot tell.

    Attributes
    ----------
    values, errors : float64[queries]
        The pair: answers, and standard errors, where there is a closed form.
    noise : float64[queries]
        Standard deviation of the noise. About 19 times in 20 the noise is within two of them.
    absent_cells : float64[queries]
        How many cells of each query (nodes, of a tree) were not released.
    absent : float64[queries]
        How much these hold together at most: the truth may be higher by it.
    belief : str
        What is assumed beyond the guarantee, or "" if nothing.
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
        """Return the pair, where the noise is all that may be wrong unless more is said."""
        errors = np.full(len(values), errors) if np.isscalar(errors) else errors
        pair = super().__new__(cls, (values, errors))
        pair.noise = errors if noise is None else noise
        pair.absent_cells = np.full(len(values), absent_cells)
        pair.absent = np.full(len(values), absent)
        return pair

    def believing(self, belief: str | None) -> Answers:
        """Return the same, with absent cells taken for what is believed."""
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
        """Count, noise, absent cells, and what these hold, of each of the first `most` answers."""
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
        """Standard errors of the pair."""
        return self[1]


# Estimate


_NAMES = 8  # of attributes that a text lists


class Estimate:
    """Contents of a release. A subclass is a frozen dataclass and says what its file holds.

    `kind` names the class in files, `contents` says what `len` counts, `arrays` lists the fields that
    become read-only. Fields that are no columns of a file stand in its metadata, as `stored` says for the
    kind. Rows of `to_frame` have errors of their own where `rows_are_counts`.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    rows_are_counts: ClassVar[bool] = True
    unreleased: ClassVar[tuple[float, float]] = (
        0.0,
        0.0,
    )  # cells of a query, and what they hold
    arrays: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def domain(self) -> Any:
            """Domain of the counts."""

        @property
        def values(self) -> Any:
            """The numbers."""

    def __len__(self) -> int:
        return len(self.values)

    def __post_init__(self) -> None:
        for name in self.arrays:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def _attribute_names(self) -> str:
        names = self.domain.attributes
        if len(names) > _NAMES:
            return f"{len(names)} attributes"
        return plain(" × ".join(names))

    def answer(self, workload: Recipe, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated answers to queries, and how far they may be off.

        Parameters
        ----------
        workload : Workload
            Queries that the class says it answers.
        weights : "unbiased" or "raw"
            They differ in samples alone: see `Summary.weights`.
        error : bool
            Whether standard errors are wanted too.

        Returns
        -------
        float64[queries], or Answers
            Answers in counts; with `error` a pair, also of the standard error of each, NaN where it has no
            closed form.

        Raises
        ------
        ValueError
            For other weights, or queries that the estimate cannot answer.
        """
        check_weights(weights)
        answers = self._answer(workload, error)
        values, errors = answers if isinstance(answers, tuple) else (answers, np.nan)
        return Answers(values, errors, None, *self.unreleased) if error else values

    def _answer(self, workload: Recipe, error: bool) -> Any:
        """Answers; a pair with their errors if these are wanted, or cost next to nothing."""
        raise NotImplementedError

    def deviations(self) -> Any:
        """Return the standard deviation of the noise on each row of `to_frame`, NaN where it is not known."""
        return np.nan

    @property
    def why_unknown(self) -> str:
        """Why it is not known how far answers may be off, in words, or "" where it is."""
        return ""

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the file."""
        raise NotImplementedError

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that are columns, given those of the metadata."""
        return {"values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        """Raise a ValueError if rows of a file are not where, or in the order in which, they are released."""

    def to_frame(self) -> pd.DataFrame:
        """Return the released values as a table.

        Returns
        -------
        pandas.DataFrame
            One row a value, as in the release file.
        """
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the released values for a Parquet file.

        Returns
        -------
        pyarrow.Table
            Any reader of Parquet can open it; `metadata` holds the rest.
        """
        return pa.table(self._columns())

    def metadata(self) -> dict[str, Any]:
        """Return what `from_arrow` needs beside the table.

        Returns
        -------
        dict
            Of values that JSON can hold.
        """
        return stored.encode(self)

    @classmethod
    def from_arrow(cls, table: pa.Table, metadata: dict[str, Any]) -> Self:
        """Return the estimate that `to_arrow` and `metadata` described.

        Parameters
        ----------
        table : pyarrow.Table
            The columns of a release file.
        metadata : dict
            What the file says beside them.

        Returns
        -------
        Estimate
            Of the same values.

        Raises
        ------
        ValueError
            If a field or column is missing, unknown, or not of its type, shape or range.
        """
        fields = stored.decode(cls.kind, metadata)
        fields |= cls._from_columns(table, fields)
        stored.check_arrays(cls, fields)
        estimate = cls(**fields)
        estimate._check_rows()
        return estimate


def check_weights(weights: str) -> None:
    """Raise a ValueError unless these are weights that every estimate knows; they differ in samples alone."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")
