"""What randomised response publishes: a report for each tuple, and how to see through the noise.

A channel M acts on each attribute by itself, so that its inverse on a table of several attributes is
the product of theirs. A query f has the unbiased answer Σ over reports of (M⁻¹ᵀ f)(report); its
variance, the data fixed, is estimated without bias as well: Σ (M⁻¹ᵀ f)² − (the answer to f²).
Source: Agrawal, Srikant & Thomas, SIGMOD 2005; Mishra & Sandler, PODS 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int, UInt64

from workbench.compiled import njit
from workbench.domain import Domain
from workbench.estimates.summary import check_weights
from workbench.value import read_only, sealed
from workbench.workload import Products, TableQueries, Together, Workload, linear_queries

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

_DENSE = 2**22  # cells of a joint that are laid out
_ROWS = 2**13  # bit reports at a time


def bit_offsets(domain: Domain) -> tuple[Int[np.ndarray, " attributes"], int]:
    """Where each attribute's bits start, −1 for those of one code, which have none; and words a row."""
    wide = [n if n > 1 else 0 for n in domain.shape]
    if sum(wide) > 2**16:
        raise ValueError(
            f"a domain of {domain.shape} codes is not allowed: one bit a code makes {sum(wide)}, at "
            f"most {2**16} are possible"
        )
    starts = np.cumsum([0, *wide])[:-1]
    return np.where(np.array(wide) > 0, starts, -1), -(-sum(wide) // 64)


class _Reports:
    """What both kinds of reports have in common."""

    domain: Domain
    contents: ClassVar[str] = "reports"

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<{type(self).__name__} of {names}: {self.total:,} reports>"

    def answer(
        self,
        workload: Workload,
        weights: str = "unbiased",
        error: bool = False,
        clipped: bool = False,
    ) -> Any:
        """Estimated counts, float64[queries], of any linear queries; with `error` standard errors too.

        Unbiased, and perhaps negative. `clipped` answers from joints whose negative cells are 0, each
        joint scaled to the number of reports: biased, closer, not consistent with each other, and of
        unknown error. Standard errors are NaN also for queries of several products.
        """
        check_weights(weights)
        queries = linear_queries(workload, self.domain)
        if clipped:
            answers = queries.sums_of_margins(_Clipped(self))
            return (answers, np.full(len(answers), np.nan)) if error else answers
        answers = self._sums(queries)
        if not error:
            return answers
        simple, squares = _squared(queries)
        spread = self._sums(queries, 2) - self._sums(squares)
        return answers, np.where(simple, np.sqrt(np.maximum(spread, 0)), np.nan)

    def joint(
        self, attributes: Sequence[str], clipped: bool = False
    ) -> Float[np.ndarray, "..."]:
        """The estimated counts of all combinations of some attributes, an axis each."""
        axes = tuple(self.domain.axis(a) for a in attributes)
        shape = [self.domain.shape[k] for k in axes]
        if not axes or len(set(axes)) < len(axes):
            raise ValueError(
                f"attributes = {attributes!r} are not allowed: need different ones"
            )
        if prod(shape) > _DENSE:
            raise ValueError(f"a joint of {prod(shape)} cells is too large: at most {_DENSE}")
        by = sorted(axes)
        found = self._joint(tuple(by)).transpose([by.index(k) for k in axes])
        return clip_to_total(found, self.total) if clipped else found


@dataclass(frozen=True, eq=False, repr=False)
class Reports(_Reports):
    """Tuples some of whose values were replaced: keys (sorted, perhaps repeated) of the reports.

    `kept` is the chance p of each attribute to be kept; otherwise it was drawn uniformly from its n
    codes. The channel p·I + (1 − p)/n·11ᵀ has the inverse (I − (1 − p)/n·11ᵀ)/p.
    """

    domain: Domain
    keys: Int[np.ndarray, " reports"]
    kept: tuple[float, ...]
    kind: ClassVar[str] = "reports"

    def __post_init__(self):
        object.__setattr__(self, "keys", read_only(self.keys))
        object.__setattr__(self, "kept", tuple(map(float, self.kept)))

    @property
    def total(self) -> int:
        """How many reports there are, as many as tuples."""
        return len(self.keys)

    @cached_property
    def _cells(self) -> tuple[np.ndarray, np.ndarray]:
        first = np.flatnonzero(np.diff(self.keys, prepend=-1))
        return self.keys[first], np.diff(first, append=len(self.keys))

    def __len__(self) -> int:
        return len(self._cells[0])

    def _back(self, values, axis: int, at: int = -1) -> Float[np.ndarray, "..."]:
        """The inverse channel of an attribute along an axis; it is symmetric."""
        p, n = self.kept[axis], self.domain.shape[axis]
        return (values - (1 - p) / n * values.sum(axis=at, keepdims=True)) / p

    def _sums(self, queries, power: int = 1) -> Float[np.ndarray, " queries"]:
        if isinstance(queries, Together):
            return np.concatenate([self._sums(part, power) for part in queries.parts])
        return self._seen(queries, power).sums(self.domain, *self._cells)

    def _seen(self, queries, power: int) -> Products | TableQueries:
        """The queries that ask of the reports what `queries` ask of the tuples."""
        if isinstance(queries, TableQueries):
            groups = []
            for names, tables in queries.groups:
                for i, name in enumerate(names):
                    tables = self._back(tables, self.domain.axis(name), i + 1)
                groups.append((names, sealed(tables**power)))
            return TableQueries(tuple(groups), queries.order)
        factors = []
        for k, factor in enumerate(queries.factors):
            turned = self._back(factor, k) ** power
            turned[0] = 1  # but for rounding
            factors.append(sealed(turned))
        told = queries.which, queries.times**power, queries.offsets
        return Products(queries.attributes, tuple(factors), *told)

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        shape = [self.domain.shape[k] for k in axes]
        place = np.zeros(len(self), np.int64)
        for k, n in zip(axes, shape, strict=True):
            place *= n
            place += self.domain.column(self._cells[0], self.domain.attributes[k])
        found = np.bincount(place, self._cells[1], prod(shape)).reshape(shape)
        for i, k in enumerate(axes):
            found = self._back(found, k, i)
        return found

    def to_frame(self) -> pd.DataFrame:
        """One row a reported cell: labels, and how many reports (`noisy`)."""
        return self.domain.frame(self._cells[0]).assign(noisy=self._cells[1])

    def to_arrow(self) -> pyarrow.Table:
        """The same for a Parquet file."""
        import pyarrow as pa

        columns = {}
        for name in self.domain.attributes:
            codes = self.domain.column(self._cells[0], name)
            columns[name] = pa.array(self.domain.decode(name, codes).tolist())
        return pa.table({**columns, "noisy": self._cells[1]})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"domain": self.domain.to_dict(), "kept": list(self.kept)}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Reports from their file's table and record."""
        domain = Domain.from_dict(about["domain"])
        codes = [domain.encode(a, table[a].to_pylist()) for a in domain.attributes]
        keys = np.repeat(domain.keys(np.stack(codes, axis=1)), table["noisy"].to_numpy())
        return cls(domain, keys, about["kept"])


@dataclass(frozen=True, eq=False, repr=False)
class BitReports(_Reports):
    """Tuples as a bit for each code of each attribute, flipped with probability f = `flipped`.

    Rows of 64-bit words, the first attribute's first code in the lowest bit. A code's bit b says
    (b − f)/(1 − 2f) of it: for cells of several attributes that is the inverse of 2 × 2 channels.
    """

    domain: Domain
    bits: UInt64[np.ndarray, "reports words"]
    flipped: float
    kind: ClassVar[str] = "bit-reports"

    def __post_init__(self):
        object.__setattr__(self, "bits", read_only(self.bits))
        _, width = bit_offsets(self.domain)
        if self.bits.dtype != np.uint64 or self.bits.shape[1:] != (width,):
            raise ValueError(
                f"BitReports.bits {self.bits.shape} do not fit {width} words a row"
            )

    @property
    def total(self) -> int:
        """How many reports there are, as many as tuples."""
        return len(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def _columns(self) -> UInt64[np.ndarray, "codes words"]:
        """A row of bits for each code, and a last one of all reports."""
        codes = sum(n for n in self.domain.shape if n > 1)
        out = np.zeros((codes + 1, -(-self.total // 64)), np.uint64)
        _turn(self.bits, out)
        return out

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        starts, _ = bit_offsets(self.domain)
        own = [k for k in axes if starts[k] >= 0]  # a code that all have is no condition
        sizes = np.array([self.domain.shape[k] for k in own], np.int64)
        both = np.zeros(tuple(sizes + 1), np.int64)  # the last of each axis: any code
        if own:
            _count(self._columns, starts[own], sizes, both.reshape(-1))
        else:
            both[...] = self.total
        f, found = self.flipped, both.astype(float)
        for i in range(len(own)):
            every, found = np.split(found, [-1], axis=i)[::-1]
            found = (found - f * every) / (1 - 2 * f)
        return found.reshape([self.domain.shape[k] for k in axes])

    def _sums(self, queries, power: int = 1) -> Float[np.ndarray, " queries"]:
        if isinstance(queries, Together):
            return np.concatenate([self._sums(part, power) for part in queries.parts])
        if isinstance(queries, TableQueries):
            if power == 1:
                return queries.sums_of_margins(_Joints(self))
            return self._tables(queries, power)
        sets = queries.sets
        if power == 1 and all(self._fits(axes) for axes, _ in sets):
            return queries.sums_of_margins(_Joints(self))
        out = np.zeros(len(queries.times))
        for a in range(0, self.total, _ROWS):
            said = self._said(slice(a, a + _ROWS))
            worth = [f @ s.T for s, f in zip(said, queries.factors, strict=True)]
            for axes, terms in sets:
                for start in range(0, len(terms), 512):
                    some = terms[start : start + 512]
                    own = np.ones((len(some), len(said[0])))
                    for k in axes:
                        own *= worth[k][queries.which[some, k]]
                    out[some] += (own * own if power == 2 else own).sum(axis=1)
        return np.bincount(queries.query, out * queries.times**power, len(queries))

    def _tables(self, queries: TableQueries, power: int) -> Float[np.ndarray, " queries"]:
        """Sums over reports of powers of what each says of a table."""
        out = np.zeros(len(queries))
        for a in range(0, self.total, 256):
            said = self._said(slice(a, a + 256))
            for names, tables, own in queries.numbered_groups():
                cells = np.ones((len(said[0]), 1))
                for name in names:
                    part = said[self.domain.axis(name)]
                    cells = (cells[:, :, None] * part[:, None, :]).reshape(len(part), -1)
                out[own] += ((cells @ tables.reshape(len(tables), -1).T) ** power).sum(axis=0)
        return out

    def _fits(self, axes: tuple[int, ...]) -> bool:
        return len(axes) <= 2 or prod(self.domain.shape[k] + 1 for k in axes) <= 2**15

    def _said(self, rows: slice) -> list[Float[np.ndarray, "reports codes"]]:
        """(b − f)/(1 − 2f) of each code of each attribute."""
        starts, _ = bit_offsets(self.domain)
        bits = np.unpackbits(
            np.ascontiguousarray(self.bits[rows]).view(np.uint8), axis=1, bitorder="little"
        )
        out = []
        for start, n in zip(starts, self.domain.shape, strict=True):
            own = bits[:, start : start + n] if start >= 0 else None
            one = np.ones((len(bits), n)) if own is None else own - self.flipped
            out.append(one if own is None else one / (1 - 2 * self.flipped))
        return out

    def to_frame(self) -> pd.DataFrame:
        """One row a report: each attribute's bits, first code first, and `noisy`, 1."""
        import pandas as pd

        starts, _ = bit_offsets(self.domain)
        bits = np.unpackbits(self.bits.view(np.uint8), axis=1, bitorder="little") + ord("0")
        columns: dict = {}
        for name, start, n in zip(
            self.domain.attributes, starts, self.domain.shape, strict=True
        ):
            if start < 0:
                columns[name] = "1"
            else:
                text = np.ascontiguousarray(bits[:, start : start + n]).view(f"S{n}")
                columns[name] = text.ravel().astype(str)
        return pd.DataFrame(columns, index=range(len(self))).assign(noisy=1)

    def to_arrow(self) -> pyarrow.Table:
        """A column for each word of 64 bits, for a Parquet file."""
        import pyarrow as pa

        columns = {f"word {i}": column for i, column in enumerate(self.bits.T)}
        return pa.table({**columns, "noisy": np.ones(len(self), np.int64)})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"domain": self.domain.to_dict(), "flipped": self.flipped}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Reports from their file's table and record."""
        domain = Domain.from_dict(about["domain"])
        words = [table[f"word {i}"].to_numpy() for i in range(bit_offsets(domain)[1])]
        bits = np.stack(words, axis=1) if words else np.zeros((len(table), 0), np.uint64)
        return cls(domain, np.ascontiguousarray(bits), about["flipped"])


class _Joints:
    """Estimated joints, where workloads look for the sums of a table."""

    def __init__(self, reports: _Reports):
        self.reports, self.domain = reports, reports.domain
        self._known: dict = {}

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        if axes not in self._known:
            self._known[axes] = self._made(axes)
        return self._known[axes]

    def _made(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        if not axes:
            return np.asarray(float(self.reports.total))
        return self.reports.joint([self.domain.attributes[k] for k in axes])


class _Clipped(_Joints):
    """The same, without negative cells."""

    def _made(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        return clip_to_total(super()._made(axes), self.reports.total)


def clip_to_total(joint: Float[np.ndarray, "..."], total: float) -> Float[np.ndarray, "..."]:
    """Negative cells as 0, all scaled to `total`; a table without positive cells says nothing: flat."""
    joint = np.maximum(joint, 0)
    whole = joint.sum()
    return joint * (total / whole) if whole > 0 else np.full(joint.shape, total / joint.size)


def _squared(queries) -> tuple[np.ndarray, Products | TableQueries | Together]:
    """Which queries are a single product or table, and their squares; other squares are wrong."""
    if isinstance(queries, Together):
        simple, squares = zip(*map(_squared, queries.parts), strict=True)
        return np.concatenate(simple), Together(squares)
    if isinstance(queries, TableQueries):
        groups = tuple((names, sealed(tables**2)) for names, tables in queries.groups)
        return np.ones(len(queries), bool), TableQueries(groups, queries.order)
    factors = tuple(sealed(f**2) for f in queries.factors)
    told = queries.which, queries.times**2, queries.offsets
    return np.diff(queries.offsets) <= 1, Products(queries.attributes, factors, *told)


@njit(cache=True, nogil=True)
def _turn(rows, columns):
    """Bits of rows to rows of bits; the last of these gets all."""
    one, low = np.uint64(1), np.uint64(63)
    for i in range(rows.shape[0]):
        word, bit = i >> 6, one << (np.uint64(i) & low)
        for j in range(columns.shape[0] - 1):
            if (rows[i, j >> 6] >> (np.uint64(j) & low)) & one:
                columns[j, word] |= bit
        columns[columns.shape[0] - 1, word] |= bit


@njit(cache=True, nogil=True)
def _ones(words):
    """How many bits are set."""
    a, b, c = (
        np.uint64(0x5555555555555555),
        np.uint64(0x3333333333333333),
        np.uint64(0x0F0F0F0F0F0F0F0F),
    )
    total = np.uint64(0)
    for x in words:
        x = x - ((x >> np.uint64(1)) & a)
        x = (x & b) + ((x >> np.uint64(2)) & b)
        x = (x + (x >> np.uint64(4))) & c
        total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.int64(total)


@njit(cache=True, nogil=True)
def _count(columns, starts, sizes, out):
    """Reports with all of some bits set, one of each attribute or none (its last place)."""
    k, last = sizes.size, columns.shape[0] - 1
    held = np.empty((k, columns.shape[1]), np.uint64)
    at = np.zeros(k, np.int64)
    for j in range(k):
        held[j] = columns[starts[j]] if j == 0 else held[j - 1] & columns[starts[j]]
    for cell in range(out.size):
        out[cell] = _ones(held[k - 1])
        j = k - 1
        while j >= 0 and at[j] == sizes[j]:
            at[j] = 0
            j -= 1
        if j < 0:
            break
        at[j] += 1
        for i in range(j, k):
            own = columns[last if at[i] == sizes[i] else starts[i] + at[i]]
            if i == 0:
                held[i] = own
            else:
                held[i] = held[i - 1] & own
