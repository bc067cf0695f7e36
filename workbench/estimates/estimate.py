"""What all estimates share: arrays, error bars, and fields that come from a file.

The noise of a released cell has its law's standard deviation. A cell that was not released is *absent*: its
noisy value lay below the cut, so that its count is at most the cut and three standard deviations more,
but for one such cell in some hundred. What an empty cell adds when its noise lets it pass is noise too: by
its variance, and where only positive values pass by its mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from math import ceil, isnan
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.noise.law import law_from_json, law_to_json
from workbench.queries import Recipe
from workbench.spaces import Domain, from_dict, to_dict
from workbench.value import Float, format_number, number, plain, read_only, shown

# Schema

_ARRAY = re.compile(r"(Int|UInt64|Float|Num)\[np\.ndarray, ['\"](.*)['\"]\]$")
_KINDS = {"Int": "iu", "UInt64": "u", "Float": "iuf", "Num": "iuf"}  # whole numbers are numbers
_MOST_WHOLE = 2**62  # the sum of two is still a number of 64 bits
_MOST = 1e100  # its square is still a float
_FINITE = "finite numbers up to 10^100"
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("step", "scale"), (lambda x: x > 0, "above 0")),
    "variance": (lambda x: x >= 0, "at least 0"),
    **dict.fromkeys(
        ("theta", "tau", "total"), (lambda x: 0 <= x <= _MOST_WHOLE, "from 0 to 2^62")
    ),
    "sides": (lambda x: x in (1, 2), "1 or 2"),
    "branching": (lambda x: x >= 2, "at least 2"),
    "flip_probability": (lambda x: 0 < x < 1, "between 0 and 1"),
    "estimate": (lambda x: x in ("mean", "median"), "'mean' or 'median'"),
    "sweeps": (lambda x: 0 <= x <= 10**6, "from 0 to a million"),
    "steps": (lambda x: 0 <= x <= 10**9, "from 0 to a billion"),
    "variances": (lambda x: bool((x >= 0).all()), "at least 0"),
    "retention": (lambda x: all(0 <= p <= 1 for p in x), "between 0 and 1"),
}


def check_fields(cls: type, given: dict[str, Any]) -> None:
    """Refuse what is not of a field's type, shape or range.

    Parameters
    ----------
    cls : type
        A dataclass, whose annotations say what fields are.
    given : dict
        Its fields from a file.

    Raises
    ------
    ValueError
        The field, what it holds, and what it needs.
    """
    sizes: dict[str, int] = {}
    for field in fields(cls):
        if field.name in given:
            x = given[field.name]
            need = _array_need(field.type, x, sizes) or _scalar_need(field, x)
            if not need and field.name in _RANGES and x is not None:
                good, allowed = _RANGES[field.name]
                need = "" if good(x) else allowed
            if need:
                raise ValueError(f"{field.name} = {shown(x)} is not allowed: need {need}")


def refuse_unless(holds: Any, name: str, need: str) -> None:
    """A ValueError if a field of a file is not as all of its kind are."""
    if not holds:
        raise ValueError(f"{name} are not allowed: need {need}")


def refuse_unless_finite(x: np.ndarray, name: str) -> None:
    """A ValueError if numbers of a file are too large, or none."""
    refuse_unless(_is_finite(x), name, _FINITE)


def _is_finite(x: np.ndarray) -> bool:
    return bool((np.abs(x) <= _MOST).all())


def _array_need(kind: Any, x: Any, sizes: dict[str, int]) -> str:
    """What an array of a file would have to be, "" if it is; arrays of one dimension name are as long."""
    match = _ARRAY.match("UInt64[np.ndarray, 'words n']" if kind == "Keys" else str(kind))
    if not match:
        return ""
    wanted, names = match[1], match[2].split()
    kinds = _KINDS[wanted]
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


def _scalar_need(field: Any, x: Any) -> str:
    """What a number, truth value or text would have to be, "" if it is."""
    kind = str(field.type).removesuffix(" | None")
    if x is None and kind != field.type:
        return ""
    match kind:
        case "float":
            number = isinstance(x, int | float) and not isinstance(x, bool)
            may_be_nan = field.default != field.default  # not known
            if number and x != x:
                return "" if may_be_nan else "a finite number"
            most = _MOST_WHOLE if isinstance(x, int) else _MOST
            return "" if number and abs(x) <= most else "a finite number up to 10^100"
        case "int":
            good = isinstance(x, int) and not isinstance(x, bool) and abs(x) < 2**63
            return "" if good else "a whole number"
        case "bool":
            return "" if isinstance(x, bool) else "true or false"
        case "str":
            return "" if isinstance(x, str) else "text"
        case "Law":
            return "" if x is not None else "a law of noise"
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
    become read-only, and `stored` those that stand in a file's metadata; the others are columns. Rows of
    `to_frame` have errors of their own where `rows_are_counts`.
    """

    kind: ClassVar[str]
    contents: ClassVar[str]
    rows_are_counts: ClassVar[bool] = True
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
