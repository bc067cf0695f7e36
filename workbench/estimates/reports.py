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
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.domain import Domain
from workbench.estimates.estimate import (
    DOMAIN,
    Estimate,
    Stored,
    check_weights,
    without_errors,
)
from workbench.estimates.joints import ClippedJoints, clip_to_total, squared_queries
from workbench.estimates.schema import check_fields, refuse_unless
from workbench.libraries import pa, pd
from workbench.value import sealed
from workbench.workload import (
    Products,
    Recipe,
    TableQueries,
    Together,
    linear_queries,
)
from workbench.workload.linear import Linear

_MAX_JOINT_CELLS = 2**22
_MOST_REPORTS = 2**26  # of a file, which holds each of them in memory


class RandomisedReports(Estimate):
    """What both kinds of reports have in common."""

    contents: ClassVar[str] = "reports"
    domain: Domain

    @property
    def total(self) -> int:
        """How many reports there are."""
        raise NotImplementedError

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        """Sums over reports of powers of what each says of a query."""
        raise NotImplementedError

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        """The estimated table over ascending axes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._attribute_names}: {self.total:,} reports>"

    def answer(
        self,
        workload: Recipe,
        weights: str = "unbiased",
        error: bool = False,
        clipped: bool = False,
    ) -> Any:
        """Estimated counts of any linear queries, unbiased and perhaps negative.

        Parameters
        ----------
        workload : Workload
            Linear queries over the domain.
        weights : "unbiased" or "raw"
            Both mean the same, as nothing is sampled.
        error : bool
            Whether standard errors are wanted too.
        clipped : bool
            Answer from joints whose negative cells are 0, each joint scaled to the number of reports:
            biased, closer, not consistent with each other, and of unknown error.

        Returns
        -------
        float64[queries], or a pair of them
            Answers in tuples; with `error` also the standard error of each, NaN for queries of several
            products, and if `clipped`.

        Raises
        ------
        ValueError
            For other weights, or queries that are not linear.
        """
        check_weights(weights)
        queries = linear_queries(workload, self.domain)
        if clipped:
            return without_errors(queries.sums_of_margins(ClippedJoints(self)), error)
        answers = self._sums(queries)
        if not error:
            return answers
        single, squares = squared_queries(queries)
        variance = self._sums(queries, 2) - self._sums(squares)
        return answers, np.where(single, np.sqrt(np.maximum(variance, 0)), np.nan)

    def joint(
        self, attributes: Sequence[str], clipped: bool = False
    ) -> Float[np.ndarray, "..."]:
        """The estimated counts of all combinations of a few attributes.

        Parameters
        ----------
        attributes : sequence of str
            Different ones; an axis of the result each.
        clipped : bool
            Whether negative cells become 0, and the rest is scaled to the number of reports.

        Returns
        -------
        float64[...]
            In tuples.

        Raises
        ------
        ValueError
            For attributes that are repeated or not of the domain, or more than 2²² cells.
        """
        axes = tuple(self.domain.axis(name) for name in attributes)
        cells = prod(self.domain.shape[k] for k in axes)
        if not axes or len(set(axes)) < len(axes):
            raise ValueError(
                f"attributes = {attributes!r} are not allowed: need different ones"
            )
        if cells > _MAX_JOINT_CELLS:
            raise ValueError(
                f"a joint of {cells} cells is too large: at most {_MAX_JOINT_CELLS}"
            )
        ascending = sorted(axes)
        joint = self._joint(tuple(ascending)).transpose([ascending.index(k) for k in axes])
        return clip_to_total(joint, self.total) if clipped else joint


@dataclass(frozen=True)
class _CellCounts:
    keys: Int[np.ndarray, " cells"]
    counts: Int[np.ndarray, " cells"]


@dataclass(frozen=True, eq=False, repr=False)
class Reports(RandomisedReports):
    """Tuples some of whose values were replaced: keys (sorted, perhaps repeated) of the reports.

    `retention` is the chance p of each attribute to be kept; otherwise it was drawn uniformly from its
    n codes. The channel p·I + (1 − p)/n·11ᵀ has the inverse (I − (1 − p)/n·11ᵀ)/p.
    """

    domain: Domain
    keys: Int[np.ndarray, " reports"]
    retention: tuple[float, ...]
    kind: ClassVar[str] = "reports"
    arrays: ClassVar = ("keys",)
    stored: ClassVar = (DOMAIN, Stored("retention", "kept", write=list))

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "retention", tuple(map(float, self.retention)))

    @property
    def total(self) -> int:
        """How many reports there are, as many as tuples."""
        return len(self.keys)

    @cached_property
    def _cells(self) -> _CellCounts:
        first = np.flatnonzero(np.diff(self.keys, prepend=-1))
        return _CellCounts(self.keys[first], np.diff(first, append=len(self.keys)))

    def __len__(self) -> int:
        return len(self._cells.keys)

    def _invert(
        self, values: Float[np.ndarray, "..."], attribute: int, axis: int = -1
    ) -> Float[np.ndarray, "..."]:
        """The inverse channel of an attribute along an axis; it is symmetric."""
        p = self.retention[attribute]
        n = self.domain.shape[attribute]
        return (values - (1 - p) / n * values.sum(axis=axis, keepdims=True)) / p

    def _sums(self, queries: Linear, power: int = 1) -> Float[np.ndarray, " queries"]:
        if isinstance(queries, Together):
            return np.concatenate([self._sums(part, power) for part in queries.parts])
        return self._of_reports(queries, power).sums(
            self.domain, self._cells.keys, self._cells.counts
        )

    def _of_reports(self, queries: Linear, power: int) -> Products | TableQueries:
        """The queries that ask of the reports what `queries` ask of the tuples."""
        if isinstance(queries, TableQueries):
            groups = []
            for names, tables in queries.groups:
                for i, name in enumerate(names):
                    tables = self._invert(tables, self.domain.axis(name), i + 1)
                groups.append((names, sealed(tables**power)))
            return TableQueries(tuple(groups), queries.order)
        assert isinstance(queries, Products)
        factors = []
        for k, factor in enumerate(queries.factors):
            inverted = self._invert(factor, k) ** power
            inverted[0] = 1  # but for rounding
            factors.append(sealed(inverted))
        return Products(
            queries.attributes,
            tuple(factors),
            queries.which,
            queries.times**power,
            queries.offsets,
        )

    def _joint(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."]:
        shape = [self.domain.shape[k] for k in axes]
        place = np.zeros(len(self), np.int64)
        for k, n in zip(axes, shape, strict=True):
            place *= n
            place += self.domain.column(self._cells.keys, self.domain.attributes[k])
        joint = np.bincount(place, self._cells.counts, prod(shape)).reshape(shape)
        for i, k in enumerate(axes):
            joint = self._invert(joint, k, i)
        return joint

    def to_frame(self) -> pd.DataFrame:
        """The reported cells as a table.

        Returns
        -------
        pandas.DataFrame
            One row a reported cell: labels, and how many reports (`noisy`).
        """
        return self.domain.frame(self._cells.keys).assign(noisy=self._cells.counts)

    def _columns(self) -> dict[str, Any]:
        columns = {}
        for name in self.domain.attributes:
            codes = self.domain.column(self._cells.keys, name)
            columns[name] = pa.array(self.domain.decode(name, codes).tolist())
        return {**columns, "noisy": self._cells.counts}

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        domain = fields["domain"]
        codes = [domain.encode(name, table[name].to_pylist()) for name in domain.attributes]
        cells = domain.keys(np.stack(codes, axis=1))
        counts = table["noisy"].to_numpy()
        check_fields(_CellCounts, {"keys": cells, "counts": counts})
        refuse_unless((np.diff(cells) > 0).all(), "cells", "sorted ones, each once")
        few = (counts > 0).all() and counts.sum(dtype=float) <= _MOST_REPORTS
        refuse_unless(few, "counts", f"numbers above 0, together at most {_MOST_REPORTS:,}")
        kept = fields["retention"]
        are_chances = len(kept) == len(domain.shape) and all(0 < p <= 1 for p in kept)
        refuse_unless(are_chances, "kept", "a chance above 0 of each attribute")
        return {"keys": np.repeat(cells, counts)}
