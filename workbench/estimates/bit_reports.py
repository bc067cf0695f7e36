"""Reports of randomised response that are bits: one for each code of each attribute.

The joints of a few attributes come from counts of reports with given bits set; the answers to other
queries, and their variances, from what each report says of each code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float, UInt64, outer_rows
from workbench.domain import Domain
from workbench.estimates import bit_counts
from workbench.estimates.bit_counts import bit_layout
from workbench.estimates.estimate import DOMAIN, Stored
from workbench.estimates.joints import Joints
from workbench.estimates.reports import RandomisedReports
from workbench.libraries import pd
from workbench.value import read_only
from workbench.workload import Products, TableQueries, Together
from workbench.workload.linear import Linear

_REPORTS_OF_PRODUCTS = 2**13  # that are laid out at a time
_REPORTS_OF_TABLES = 256
_TERMS = 512
_MAX_COUNTED_CELLS = 2**15  # of a joint of more than two attributes


@dataclass(frozen=True, eq=False, repr=False)
class BitReports(RandomisedReports):
    """Tuples as a bit for each code of each attribute, flipped with probability f.

    Rows of 64-bit words, the first attribute's first code in the lowest bit. A code's bit b says
    (b − f)/(1 − 2f) of it: for cells of several attributes that is the inverse of 2 × 2 channels.
    """

    domain: Domain
    bits: UInt64[np.ndarray, "reports words"]
    flip_probability: float
    kind: ClassVar[str] = "bit-reports"
    stored: ClassVar = (DOMAIN, Stored("flip_probability", "flipped"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", read_only(self.bits))
        words = bit_layout(self.domain).words
        if self.bits.dtype != np.uint64 or self.bits.shape[1:] != (words,):
            raise ValueError(
                f"BitReports.bits {self.bits.shape} do not fit {words} words a row"
            )

    @property
    def total(self) -> int:
        """How many reports there are, as many as tuples."""
        return len(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def _columns_of_bits(self) -> UInt64[np.ndarray, "codes words"]:
        """A row of bits for each code, and a last one of all reports."""
        codes = sum(n for n in self.domain.shape if n > 1)
        columns = np.zeros((codes + 1, -(-self.total // 64)), np.uint64)
        bit_counts.transpose(self.bits, columns)
        return columns

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        starts = bit_layout(self.domain).starts
        conditions = [k for k in axes if starts[k] >= 0]  # a code that all have is none
        sizes = np.array([self.domain.shape[k] for k in conditions], np.int64)
        counts = np.zeros(tuple(sizes + 1), np.int64)  # the last of each axis: any code
        if conditions:
            bit_counts.count_cells(
                self._columns_of_bits, starts[conditions], sizes, counts.reshape(-1)
            )
        else:
            counts[...] = self.total
        f = self.flip_probability
        joint = counts.astype(float)
        for i in range(len(conditions)):
            with_bit, all_reports = np.split(joint, [-1], axis=i)
            joint = (with_bit - f * all_reports) / (1 - 2 * f)
        return joint.reshape([self.domain.shape[k] for k in axes])

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        """Sums over reports of powers of what each says of a query."""
        if isinstance(queries, Together):
            return np.concatenate([self._sums(part, power) for part in queries.parts])
        if isinstance(queries, TableQueries):
            if power == 1:
                return queries.sums_of_margins(Joints(self))
            return self._sums_of_tables(queries, power)
        assert isinstance(queries, Products)
        if power == 1 and all(self._countable(axes) for axes, _ in queries.sets):
            return queries.sums_of_margins(Joints(self))
        return self._sums_of_products(queries, power)

    def _countable(self, axes: tuple[int, ...]) -> bool:
        """Whether few enough cells are counted for a joint."""
        cells = prod(self.domain.shape[k] + 1 for k in axes)
        return len(axes) <= 2 or cells <= _MAX_COUNTED_CELLS

    def _sums_of_products(self, queries: Products, power: int) -> Float[np.ndarray, " queries"]:
        sums = np.zeros(len(queries.times))
        for evidence in self._evidence(_REPORTS_OF_PRODUCTS):
            values = [
                factor @ codes.T
                for codes, factor in zip(evidence, queries.factors, strict=True)
            ]
            for axes, terms in queries.sets:
                for start in range(0, len(terms), _TERMS):
                    block = terms[start : start + _TERMS]
                    products = np.ones((len(block), len(evidence[0])))
                    for k in axes:
                        products *= values[k][queries.which[block, k]]
                    powers = products * products if power == 2 else products
                    sums[block] += powers.sum(axis=1)
        return np.bincount(queries.query, sums * queries.times**power, len(queries))

    def _sums_of_tables(
        self, queries: TableQueries, power: int
    ) -> Float[np.ndarray, " queries"]:
        sums = np.zeros(len(queries))
        for evidence in self._evidence(_REPORTS_OF_TABLES):
            reports = len(evidence[0])
            for names, tables, rows in queries.numbered_groups():
                cells = np.ones((reports, 1))
                for name in names:
                    codes = evidence[self.domain.axis(name)]
                    cells = outer_rows(cells, codes)
                values = cells @ tables.reshape(len(tables), -1).T
                sums[rows] += (values**power).sum(axis=0)
        return sums

    def _evidence(self, at_once: int) -> Iterator[list[Float[np.ndarray, "reports codes"]]]:
        """(b − f)/(1 − 2f) of each code of each attribute, for so many reports at a time."""
        starts = bit_layout(self.domain).starts
        for first in range(0, self.total, at_once):
            rows = np.ascontiguousarray(self.bits[first : first + at_once])
            bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
            evidence: list[np.ndarray] = []
            for start, n in zip(starts, self.domain.shape, strict=True):
                if start < 0:
                    evidence.append(np.ones((len(bits), n)))
                else:
                    centred = bits[:, start : start + n] - self.flip_probability
                    evidence.append(centred / (1 - 2 * self.flip_probability))
            yield evidence

    def to_frame(self) -> pd.DataFrame:
        """All reports as a table.

        Returns
        -------
        pandas.DataFrame
            One row a report: each attribute's bits, first code first, and `noisy`, 1.
        """
        starts = bit_layout(self.domain).starts
        digits = np.unpackbits(self.bits.view(np.uint8), axis=1, bitorder="little") + ord("0")
        columns: dict[str, Any] = {}
        for name, start, n in zip(
            self.domain.attributes, starts, self.domain.shape, strict=True
        ):
            if start < 0:
                columns[name] = "1"
            else:
                text = np.ascontiguousarray(digits[:, start : start + n]).view(f"S{n}")
                columns[name] = text.ravel().astype(str)
        return pd.DataFrame(columns, index=range(len(self))).assign(noisy=1)

    def _columns(self) -> dict[str, Any]:
        """A column for each word of 64 bits."""
        words = {f"word {i}": column for i, column in enumerate(self.bits.T)}
        return {**words, "noisy": np.ones(len(self), np.int64)}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = range(bit_layout(fields["domain"]).words)
        columns = [table[f"word {i}"].to_numpy() for i in words]
        bits = np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.uint64)
        return {"bits": np.ascontiguousarray(bits)}
