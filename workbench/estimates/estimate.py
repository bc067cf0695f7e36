"""What all estimates share: read-only arrays, checks, and one way to a Parquet file and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.domain import Domain
from workbench.hierarchy import from_dict, to_dict
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow
    from jaxtyping import Float


def _unchanged(x: Any) -> Any:
    return x


class MetadataField(NamedTuple):
    """A field that a file's metadata holds under `key`, and how its value is written and read.

    Of files without an `optional` one the field has its default.
    """

    field: str
    key: str
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    optional: bool


def in_metadata(
    field: str,
    key: str | None = None,
    write: Callable[[Any], Any] = _unchanged,
    read: Callable[[Any], Any] = _unchanged,
    optional: bool = False,
) -> MetadataField:
    """A field of plain values under its own name, unless more is said."""
    return MetadataField(field, key or field, write, read, optional)


DOMAIN = in_metadata("domain", write=Domain.to_dict, read=Domain.from_dict)
HIERARCHY = in_metadata("hierarchy", write=to_dict, read=from_dict)


class Estimate:
    """What a release holds; a subclass is a frozen dataclass and says what its file holds.

    `kind` names the class in files, `contents` says what `len` counts, `arrays` lists the fields that
    become read-only, and `stored` those that stand in a file's metadata; the others are columns.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]] = ()
    stored: ClassVar[tuple[MetadataField, ...]] = (DOMAIN,)

    def __len__(self) -> int:
        return len(self.values)

    def __post_init__(self):
        for name in self.arrays:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def _attribute_names(self) -> str:
        return " × ".join(self.domain.attributes)

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
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

    def _answer(self, workload: Workload, error: bool) -> Any:
        raise NotImplementedError

    def _columns(self) -> dict[str, Any]:
        """The columns of the file."""
        raise NotImplementedError

    @classmethod
    def _from_columns(cls, table: pyarrow.Table, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields that are columns, given those of the metadata."""
        return {"values": table["noisy"].to_numpy()}

    def to_frame(self) -> pd.DataFrame:
        """The released values as a table.

        Returns
        -------
        pandas.DataFrame
            One row a value, as in the release file.
        """
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """The released values for a Parquet file.

        Returns
        -------
        pyarrow.Table
            Any reader of Parquet can open it; `metadata` holds the rest.
        """
        import pyarrow as pa

        return pa.table(self._columns())

    def metadata(self) -> dict[str, Any]:
        """What `from_arrow` needs beside the table.

        Returns
        -------
        dict
            Of values that JSON can hold.
        """
        return {entry.key: entry.write(getattr(self, entry.field)) for entry in self.stored}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, metadata: dict[str, Any]) -> Self:
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
        """
        entries = {entry.key: entry for entry in cls.stored}
        required = {entry.key for entry in cls.stored if not entry.optional}
        if other := (required - set(metadata)) | (set(metadata) - set(entries)):
            raise KeyError(*sorted(other))
        fields = {entries[key].field: entries[key].read(x) for key, x in metadata.items()}
        return cls(**fields, **cls._from_columns(table, fields))


def check_weights(weights: str) -> None:
    """A ValueError unless these are weights that every estimate knows; they differ in samples alone."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")


def without_errors(answers: Float[np.ndarray, " queries"], error: bool) -> Any:
    """Answers that have no standard error in closed form: NaN for each, if they are asked for."""
    return (answers, np.full(len(answers), np.nan)) if error else answers
