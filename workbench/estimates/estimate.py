"""What all estimates share: read-only arrays, checks, and one way to a Parquet file and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.arrays import Float
from workbench.domain import Domain
from workbench.estimates.bars import Bars
from workbench.estimates.law import law_from_json, law_to_json
from workbench.estimates.schema import check_fields
from workbench.hierarchy import from_dict, to_dict
from workbench.libraries import pa, pd
from workbench.value import plain, read_only
from workbench.workload import Recipe


def _unchanged(x: Any) -> Any:
    return x


class Stored(NamedTuple):
    """A field in a file's metadata, under its own name unless a `key` is given.

    Its value is written and read as it is, unless more is said. Of files without an `optional` one
    the field has its default.
    """

    field: str
    key: str | None = None
    write: Callable[[Any], Any] = _unchanged
    read: Callable[[Any], Any] = _unchanged
    optional: bool = False

    @property
    def name(self) -> str:
        """In the metadata."""
        return self.key or self.field


LAW = Stored("law", "decay", law_to_json, law_from_json)  # "decay" since it was a number
DOMAIN = Stored("domain", write=Domain.to_dict, read=partial(Domain.from_dict, folder=None))
HIERARCHY = Stored("hierarchy", write=to_dict, read=from_dict)


class Estimate:
    """What a release holds; a subclass is a frozen dataclass and says what its file holds.

    `kind` names the class in files, `contents` says what `len` counts, `arrays` lists the fields that
    become read-only, and `stored` those that stand in a file's metadata; the others are columns.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]] = ()
    stored: ClassVar[tuple[Stored, ...]] = (DOMAIN,)

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def domain(self) -> Any:
            """Where it lies."""

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
        return plain(" × ".join(self.domain.attributes))

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
        float64[queries], or a pair of them
            Answers in counts; with `error` also the standard error of each, NaN where it has no closed
            form.

        Raises
        ------
        ValueError
            For other weights, or queries that the estimate cannot answer.
        """
        check_weights(weights)
        return self._answer(workload, error)

    def _answer(self, workload: Recipe, error: bool) -> Any:
        raise NotImplementedError

    def bars(self, workload: Recipe, **options: Any) -> Bars:
        """How far answers may be off, in two parts: here no cell is absent.

        Parameters
        ----------
        workload : Workload
            Queries that the class says it answers.
        options : those of `answer`.

        Returns
        -------
        Bars
            Standard errors as `answer` gives them.
        """
        noise = self.answer(workload, error=True, **options)[1]
        return Bars(noise, np.zeros(len(noise)), np.zeros(len(noise)))

    def deviations(self) -> Any:
        """The standard deviation of the noise on each row of `to_frame`, NaN where it is not known."""
        return np.nan

    @property
    def why_unknown(self) -> str:
        """Why it is not known how far answers may be off, in words; "" where it is."""
        return ""

    def _columns(self) -> dict[str, Any]:
        """The columns of the file."""
        raise NotImplementedError

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields that are columns, given those of the metadata."""
        return {"values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        """A ValueError if rows of a file are not where, or in the order in which, they are released."""

    def to_frame(self) -> pd.DataFrame:
        """The released values as a table.

        Returns
        -------
        pandas.DataFrame
            One row a value, as in the release file.
        """
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pa.Table:
        """The released values for a Parquet file.

        Returns
        -------
        pyarrow.Table
            Any reader of Parquet can open it; `metadata` holds the rest.
        """
        return pa.table(self._columns())

    def metadata(self) -> dict[str, Any]:
        """What `from_arrow` needs beside the table.

        Returns
        -------
        dict
            Of values that JSON can hold.
        """
        return {entry.name: entry.write(getattr(self, entry.field)) for entry in self.stored}

    @classmethod
    def from_arrow(cls, table: pa.Table, metadata: dict[str, Any]) -> Self:
        """The estimate that `to_arrow` and `metadata` described.

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
        KeyError
            If the metadata or the columns are those of another version.
        ValueError
            If a field is not of its type, shape or range.
        """
        entries = {entry.name: entry for entry in cls.stored}
        required = {entry.name for entry in cls.stored if not entry.optional}
        if other := (required - set(metadata)) | (set(metadata) - set(entries)):
            raise KeyError(*sorted(other))
        fields = {entries[key].field: entries[key].read(x) for key, x in metadata.items()}
        check_fields(cls, fields)
        columns = cls._from_columns(table, fields)
        check_fields(cls, fields | columns)
        estimate = cls(**fields, **columns)
        estimate._check_rows()
        return estimate


def check_weights(weights: str) -> None:
    """A ValueError unless these are weights that every estimate knows; they differ in samples alone."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")


def without_errors(answers: Float[np.ndarray, " queries"], error: bool) -> Any:
    """Answers that have no standard error in closed form: NaN for each, if they are asked for."""
    return (answers, np.full(len(answers), np.nan)) if error else answers
