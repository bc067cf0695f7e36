"""What all estimates share: arrays, error bars, and fields that come from a file.

The noise of a released cell has its law's standard deviation. A cell that was not released is *absent*: its
noisy value lay below the cut, so that its count is at most the cut and three standard deviations more,
but for one such cell in some hundred. What an empty cell adds when its noise lets it pass is noise too: by
its variance, and where only positive values pass by its mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from math import ceil, isnan, nan
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta

from workbench.compiled import pa, pd
from workbench.estimates.linear_noise import noise_from_json, noise_to_json
from workbench.noise.law import law_from_json, law_to_json
from workbench.queries import Recipe
from workbench.spaces import Domain, from_dict, to_dict
from workbench.spaces.statements import field_in_words
from workbench.value import Float, format_number, number, plain, read_only, shown

# Schema

_MOST_WHOLE = 2**62  # the sum of two is still a number of 64 bits
_MOST = 1e100  # its square is still a float
_FINITE = "finite numbers up to 10^100"
_ARRAY = re.compile(r"(Int|UInt64|Float|Num)\[np\.ndarray, ['\"](.*)['\"]\]$")
_KINDS = {"Int": "iu", "UInt64": "u", "Float": "iuf", "Num": "iuf"}  # whole numbers are numbers

# a number in a file stays whole if it is, because counts of it are
Number = (
    Annotated[int, Meta(ge=-_MOST_WHOLE, le=_MOST_WHOLE)]
    | Annotated[float, Meta(ge=-_MOST, le=_MOST)]
)
Positive = Annotated[int, Meta(gt=0, le=_MOST_WHOLE)] | Annotated[float, Meta(gt=0, le=_MOST)]
Variance = Annotated[int, Meta(ge=0, le=_MOST_WHOLE)] | Annotated[float, Meta(ge=0, le=_MOST)]
Amount = (
    Annotated[int, Meta(ge=0, le=_MOST_WHOLE)] | Annotated[float, Meta(ge=0, le=_MOST_WHOLE)]
)
StoredLaw = float | dict[str, Any]  # ε/Δ, or kind and rate


class Stored(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the file of a release says of its estimate beside the rows; a subclass for each kind."""


class StoredDomain(Stored, kw_only=True):
    """Of an estimate over the cells of a domain."""

    domain: dict[str, Any]


class StoredHierarchy(Stored, kw_only=True):
    """Of an estimate over the nodes of a hierarchy."""

    hierarchy: dict[str, Any]


class Codec(NamedTuple):
    """How a field stands in JSON, where that is not what it is."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_UNKNOWN = Codec(lambda x: None if isnan(x) else x, lambda x: nan if x is None else x)
_CODECS = {
    "domain": Codec(Domain.to_dict, partial(Domain.from_dict, folder=None)),
    "hierarchy": Codec(to_dict, from_dict),
    "law": Codec(law_to_json, law_from_json),
    "noise": Codec(noise_to_json, noise_from_json),
    "gap": _UNKNOWN,
    "lacks": _UNKNOWN,
}


def check_arrays(cls: type, given: dict[str, Any]) -> None:
    """A ValueError for an array of a file that is not of the type and shape that its field says."""
    sizes: dict[str, int] = {}
    for field in fields(cls):
        if field.name in given and (match := _ARRAY.match(_array_type(field.type))):
            x = given[field.name]
            if need := _array_need(match[1], match[2].split(), x, sizes):
                raise ValueError(f"{field.name} = {shown(x)} is not allowed: need {need}")


def _array_type(kind: Any) -> str:
    return "UInt64[np.ndarray, 'words n']" if kind == "Keys" else str(kind)


def refuse_unless(holds: Any, name: str, need: str) -> None:
    """A ValueError if a field of a file is not as all of its kind are."""
    if not holds:
        raise ValueError(f"{name} are not allowed: need {need}")


def refuse_unless_finite(x: np.ndarray, name: str) -> None:
    """A ValueError if numbers of a file are too large, or none."""
    refuse_unless(_is_finite(x), name, _FINITE)


def _is_finite(x: np.ndarray) -> bool:
    return bool((np.abs(x) <= _MOST).all())


def _array_need(kind: str, names: list[str], x: Any, sizes: dict[str, int]) -> str:
    """What an array would have to be, "" if it is; arrays of one dimension name are as long."""
    kinds = _KINDS[kind]
    if not isinstance(x, np.ndarray) or x.dtype.kind not in kinds:
        return "numbers" if "f" in kinds else "whole numbers"
    if "i" in kinds and x.dtype == np.uint64:
        return "numbers that may be below 0"
    if x.ndim != len(names):
        return f"{len(names)} dimensions"
    for name, size in zip(names, x.shape, strict=True):
        if sizes.setdefault(name, size) != size:
            return f"{sizes[name]} numbers, as others have"
    if x.dtype.kind == "f":
        return "" if _is_finite(x) else _FINITE
    if "i" in kinds and x.size and not -_MOST_WHOLE <= x.min() <= x.max() <= _MOST_WHOLE:
        return "whole numbers up to 2^62"
    return ""


# Bars

_SHOWN = 10
BELIEFS = {"empty": "if absent cells are empty (believed)"}


class Bars(NamedTuple):
    """What may be wrong with each answer, in counts; NaN where the release alone cannot tell.

    `noise` is a standard deviation. `absent_cells` says how many cells of the query (nodes, of a
    tree) were not released, and `absent` how much all of them hold together at most.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]


class Answers(tuple[Any, ...]):
    """Answers and their standard errors, a pair; and beside it both parts of what may be wrong.

    Attributes
    ----------
    values, errors : float64[queries]
        The pair: answers in counts, and standard errors; NaN where there is no closed form.
    noise : float64[queries]
        The standard deviation of the noise, in counts: two of them cover it some 19 times in 20.
    absent_cells : float64[queries]
        How many cells of each query were not released.
    absent : float64[queries]
        How much these hold together at most, in counts: the truth may be higher by it.
    belief : str
        What is assumed beyond the guarantee; "" if nothing.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]
    belief: str

    def __new__(
        cls, values: Any, errors: Any, bars: Bars, belief: str | None = None
    ) -> Answers:
        """The pair, with bars that a belief may narrow."""
        if belief is not None and belief not in BELIEFS:
            raise ValueError(f"belief = {belief!r} is not allowed: need one of {[*BELIEFS]}")
        pair = super().__new__(cls, (values, errors))
        pair.noise = bars.noise
        pair.absent_cells = bars.absent_cells
        pair.absent = np.zeros_like(bars.absent) if belief else bars.absent
        pair.belief = BELIEFS[belief] if belief else ""
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


class Estimate:
    """What a release holds; a subclass is a frozen dataclass and says what its file holds.

    `kind` names the class in files, `contents` says what `len` counts, `arrays` lists the fields that
    become read-only. `stored` is the schema of the fields that stand in a file's metadata, with `codecs`
    of its own; the others are columns. Rows of `to_frame` have errors of their own where
    `rows_are_counts`.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    rows_are_counts: ClassVar[bool] = True
    arrays: ClassVar[tuple[str, ...]] = ()
    stored: ClassVar[type[Stored]] = StoredDomain
    codecs: ClassVar[dict[str, Codec]] = {}

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

    @classmethod
    def _stored_fields(cls) -> Iterator[tuple[str, str, Codec | None]]:
        """Each field of the metadata, its name there, and how it is written."""
        names = cls.stored.__struct_fields__, cls.stored.__struct_encode_fields__
        for field, name in zip(*names, strict=True):
            yield field, name, cls.codecs.get(field) or _CODECS.get(field)

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
        return {
            name: codec.write(getattr(self, field)) if codec else getattr(self, field)
            for field, name, codec in self._stored_fields()
        }

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
        ValueError
            If a field or column is missing, unknown, or not of its type, shape or range.
        """
        try:
            stored = msgspec.convert(metadata, cls.stored)
        except msgspec.ValidationError as e:
            raise ValueError(f"$.estimate{field_in_words(e)}") from None
        fields = {}
        for field, name, codec in cls._stored_fields():
            x = getattr(stored, field)
            try:
                fields[field] = codec.read(x) if codec else x
            except (ValueError, TypeError, LookupError) as e:
                raise ValueError(f"$.estimate.{name}: {e}") from None
        fields |= cls._from_columns(table, fields)
        check_arrays(cls, fields)
        estimate = cls(**fields)
        estimate._check_rows()
        return estimate


def check_weights(weights: str) -> None:
    """A ValueError unless these are weights that every estimate knows; they differ in samples alone."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")


def without_errors(answers: Float[np.ndarray, " queries"], error: bool) -> Any:
    """Answers that have no standard error in closed form: NaN for each, if they are asked for."""
    return (answers, np.full(len(answers), np.nan)) if error else answers
