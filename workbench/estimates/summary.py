"""Compact summaries: some cells of a noisy table, some coefficients of its transform, or hashed counts.

Hashed counts are sketches (sums in buckets) or projections (unary counts in a bit array).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Answers, Estimate, check_weights
from workbench.estimates.stored import read_keys, refuse_unless
from workbench.noise import hashes
from workbench.noise.law import Law
from workbench.queries import Dyadic, Haar, Recipe, TransformBasis, Workload
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, UInt64, read_only

# Summary


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Estimate):
    """Cells that a mechanism released. The fields are their sorted keys (the numbers of the cells), their noisy
    values, and the thresholds that selected them.

    `tau` is the threshold τ of threshold sampling, or τ_s of a priority sample. It is 0 if cells were not
    sampled. `theta` is the threshold of the filter. `sides` is 1 if only positive values were kept, and 2
    otherwise. `law` is the distribution of the noise on every cell. If cells have different distributions,
    it is None, and there are no standard errors. All weights are multiplied by `scale`, which differs from
    1 only for uniform and synthetic samples.
    """

    domain: Domain
    keys: Int[np.ndarray, " cells"]
    values: Int[np.ndarray, " cells"]
    law: Law | None
    theta: float = 0.0
    tau: float = 0.0
    sides: int = 2
    scale: float = 1.0
    kind: ClassVar[str] = "summary"
    contents: ClassVar[str] = "cells"

    def where(self, mask: Bool[np.ndarray, " cells"], **changes: Any) -> Self:
        """Return a smaller summary. A Boolean mask says which of the released cells remain.

        Parameters
        ----------
        mask : bool[cells]
            Mask of the released cells that remain.
        **changes
            New values of other fields, for example `theta`.

        Returns
        -------
        Summary
            Summary of the same class.
        """
        return replace(self, keys=self.keys[mask], values=self.values[mask], **changes)

    def weights(self, kind: str = "unbiased") -> Float[np.ndarray, " cells"]:
        """Return the number that each released cell adds to the answer of a query that covers it.

        Parameters
        ----------
        kind : "unbiased" or "raw"
            "unbiased" is the Horvitz–Thompson weight sign(v)·max(|v|, τ), with which answers are unbiased
            for the filtered noisy table. "raw" is the noisy value v, which is biased but closer to the
            truth for single cells.

        Returns
        -------
        float64[cells]
            Weights in counts.

        Raises
        ------
        ValueError
            If `kind` has another value.
        """
        check_weights(kind)
        return self.values if kind == "raw" else self._unbiased

    @cached_property
    def _unbiased(self) -> Float[np.ndarray, " cells"]:
        if not self.tau:
            return self.values if self.scale == 1 else read_only(self.values * self.scale)
        return read_only(np.copysign(np.maximum(np.abs(self.values), self.tau), self.values))

    def answer(
        self,
        workload: Recipe,
        weights: str = "unbiased",
        error: bool = False,
        absent: float = 0.0,
        filled_law: Law | None = None,
    ) -> Any:
        """Return estimated counts for queries. With `error`, also return their standard errors.

        The standard error, relative to the true counts, is sqrt(cells · σ² + Σ τ·(τ − |v|)⁺), where the sum
        is over released values v. The first term is for noise of variance σ² on every cell of the query.
        The second is an unbiased estimate of the variance from sampling. In other cases there is no such
        formula, and the standard error is NaN. These are filters (θ > 1 or one side), uniform samples, raw
        weights of sampled cells, and `absent`.

        If there is a standard error, `noise` is equal to it. Otherwise `noise` is the square root of r·σ² +
        (n − r)·s² + (n·μ)² + Σ τ·(τ − |v|)⁺. Here n is the number of cells of the query, and r the number
        of these that passed the filter. (For a sample, r is an unbiased estimate.) An empty cell adds noise
        with mean μ and variance s².

        Parameters
        ----------
        workload : Workload
            Queries over the domain.
        weights : "unbiased" or "raw"
            See `weights`.
        error : bool
            Whether to return errors as well.
        absent : float
            Count of every cell that was not released. The paper's heuristic for filtered cells is half of
            θ.
        filled_law : Law, optional
            Distribution of the noise if only non-empty cells got noise, which the summary itself does not
            record.

        Returns
        -------
        float64[queries], or Answers
            Answers in counts. With `error` also the errors of each.

        Raises
        ------
        ValueError
            If `weights` has another value, or the workload does not fit the domain.
        """
        queries: Workload = workload.on(self.domain)
        answers = queries.sums(self.domain, self.keys, self.weights(weights))
        if not (absent or error):
            return answers
        cells = queries.cells(self.domain)
        released = queries.sums(self.domain, self.keys, np.ones(len(self), np.int64))
        absent_cells = cells - released
        if absent:
            answers += absent * absent_cells
        if not error:
            return answers
        law = filled_law or self.law
        if law is None:
            most: Any = np.where(absent_cells > 0, np.nan, 0.0)
            return Answers(answers, np.nan, np.full(len(queries), np.nan), absent_cells, most)
        noise = np.sqrt(released * law.variance)
        if self.scale != 1:  # each cell stands for others, of which nothing is known
            return Answers(answers, np.nan, self.scale * noise, absent_cells, np.nan)
        each = law.absent_at_most(self.cut, self.sides)
        most = max(each - absent, absent) * absent_cells
        if filled_law is not None:
            return Answers(answers, np.nan, noise, absent_cells, most)
        if weights == "raw" and self.tau > 1:
            return Answers(answers, np.nan, None, absent_cells, most)
        if self.theta > 1 or self.sides == 1:
            noise = self._noise_after_filter(law, queries, cells)
            return Answers(answers, np.nan, noise, absent_cells, most)
        variance = cells * law.variance
        if self.tau:
            variance += queries.sums(self.domain, self.keys, self._sampling)
        noise = np.sqrt(variance)
        return Answers(answers, np.nan if absent else noise, noise, absent_cells, most)

    def _noise_after_filter(
        self, law: Law, workload: Workload, cells: Float[np.ndarray, " queries"]
    ) -> Float[np.ndarray, " queries"]:
        passed = (
            np.maximum(self.tau / np.abs(self.values), 1) if self.tau else np.ones(len(self))
        )
        released = workload.sums(self.domain, self.keys, passed)
        sampling = workload.sums(self.domain, self.keys, self._sampling)
        others = np.maximum(cells - released, 0)
        mean, square = law.empty_cell(self.theta, self.sides)
        noise = released * law.variance + others * (square - mean**2)
        return np.sqrt(noise + (cells * mean) ** 2 + sampling)

    @cached_property
    def _sampling(self) -> Float[np.ndarray, " cells"]:
        """Return the estimated variance of the weight of each released cell that is due to sampling."""
        return self.tau * np.maximum(self.tau - np.abs(self.values), 0)

    @property
    def releases_all(self) -> bool:
        """Whether the mechanism released every cell, whatever its noisy value."""
        return self.theta == 0 and self.tau == 0 and self.sides == 2

    @property
    def cut(self) -> float:
        """Noisy value, in counts, above which a cell is always released."""
        return max(self.theta, self.tau)

    def deviations(self, filled_law: Law | None = None) -> Float[np.ndarray, " cells"]:
        """Return the standard deviation of the noise on the weight of each released cell, in counts. The weight
        is the number that the cell adds to answers.
        """
        law = filled_law or self.law
        if law is None:
            return np.full(len(self), np.nan)
        if self.scale != 1:
            return np.full(len(self), self.scale * np.sqrt(law.variance))
        return np.sqrt(law.variance + self._sampling)

    @property
    def why_unknown(self) -> str:
        """Return why the errors are unknown. A uniform sample of cells leaves out most cells, whatever their
        counts.
        """
        if self.scale == 1:
            return ""
        return (
            f"each released cell stands for {self.scale:.3g} cells, drawn without looking at what they "
            "hold: what the others hold is not bounded"
        )

    @property
    def absent_cells(self) -> int:
        """Number of cells (or nodes of a tree) that the mechanism did not release."""
        return self.domain.size - len(self)

    def absent_at_most(self, filled_law: Law | None = None) -> float:
        """Return the largest plausible count of a cell that was not released. It is the threshold plus three
        standard deviations of noise.
        """
        law = filled_law or self.law
        if law is None or self.scale != 1:
            return np.nan
        return law.absent_at_most(self.cut, self.sides)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the released cells.

        Returns
        -------
        pandas.DataFrame
            One row per cell: labels, `count` (unbiased weight) and `noisy` (noisy value).
        """
        return self.domain.frame(self.keys).assign(count=self.weights(), noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """Return the same table with labels as dictionary columns."""
        columns: dict[str, Any] = {}
        for i, name in enumerate(self.domain.attributes):
            codes = self.domain.column(self.keys, name)
            labels = self.domain.labels and self.domain.labels[i]
            if isinstance(labels, tuple):
                columns[name] = pa.DictionaryArray.from_arrays(
                    codes.astype(np.int32), list(labels)
                )
            else:
                columns[name] = self.domain.decode(name, codes)
        if {"count", "noisy"} & set(columns):
            raise ValueError(
                "attributes of a release file may not be called 'count' or 'noisy'. Rename them"
            )
        return columns | {"count": self.weights(), "noisy": self.values}

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        return {"keys": read_keys(fields["domain"], table), "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        refuse_unless((np.diff(self.keys) > 0).all(), "keys", "sorted ones, each once")
        sampled = not self.tau or self.values.all()
        refuse_unless(sampled, "values", "none that are 0, which no sample keeps")


# Transformed summary


@dataclass(frozen=True, eq=False, repr=False)
class TransformedSummary(Summary):
    """Nodes of a transform (for example wavelet coefficients) that a mechanism released. `keys` has their
    numbers in ascending order.

    `law` is the distribution for the whole release, from which `Law.of_nodes` gives the distribution for
    each block of nodes. In a `consistent` tree, all nodes below an absent node are absent.
    """

    law: Law
    transform: Dyadic | Haar = Dyadic()
    consistent: bool = False
    kind: ClassVar[str] = "tree"
    contents: ClassVar[str] = "nodes"

    @cached_property
    def basis(self) -> TransformBasis:
        """Basis of the transform on the domain."""
        return self.transform.on(self.domain)

    def __repr__(self) -> str:
        return (
            f"<TransformedSummary of {self._attribute_names} by {self.transform!r}: "
            f"{len(self):,} of {self._nodes:,} nodes>"
        )

    def answer(  # type: ignore[override]  # it has no cells that may be absent
        self, workload: Recipe, weights: str = "unbiased", error: bool = False
    ) -> Any:
        """Return estimated counts for ranges of cells. Other queries must consist of ranges, for example
        subsets and boxes.

        Nodes that were not released count as 0. Errors are computed as in `Summary.answer`, from the nodes
        that the query needs and from the noise of each block of nodes. If there is no formula, a standard
        error is NaN. For wavelets, all errors of queries with several ranges are NaN.

        Parameters
        ----------
        workload : Workload
            Queries over the domain that consist of ranges.
        weights : "unbiased" or "raw"
            See `weights`.
        error : bool
            Whether to return errors as well.

        Returns
        -------
        float64[queries], or Answers
            Answers in counts. With `error` also the errors of each. Absent cells are absent nodes here.

        Raises
        ------
        ValueError
            If `weights` has another value, or the workload does not consist of ranges.
        """
        queries: Workload = workload.on(self.domain)
        which, pieces = self.basis.pieces(queries)
        weight = self.weights(weights)
        answers: Any = np.zeros(len(pieces))
        parts: Any = np.zeros((5, len(pieces)))
        for term in self.basis.terms(pieces):
            places, released = self._find(term.nodes)
            factor = np.broadcast_to(term.factor, released.shape)
            answers[term.pieces[released]] += factor[released] * weight[places[released]]
            if error:
                self._add_errors(term, factor, places, released, parts)
        answers = np.bincount(which, answers, len(queries))
        if not error:
            return answers
        closed, filtered, shift, absent_nodes, absent = (
            np.bincount(which, x, len(queries)) for x in parts
        )
        errors = np.sqrt(closed)
        noise = np.sqrt(filtered + shift**2)
        if isinstance(self.transform, Haar):  # pieces share coefficients
            several = np.bincount(which, minlength=len(queries)) > 1
            errors[several] = noise[several] = np.nan
        if weights == "raw" and self.tau > 1:
            errors[:] = noise[:] = np.nan
        if self.theta > 1 or self.sides == 1 or self.consistent:
            errors[:] = np.nan
        else:
            noise = errors
        return Answers(answers, errors, noise, absent_nodes, absent)

    def _add_errors(
        self,
        term: Any,
        factor: np.ndarray,
        places: np.ndarray,
        released: np.ndarray,
        parts: Any,
    ) -> None:
        """Add the variances of a term in closed form and after a filter, and the possible sum of its
        absent nodes.
        """
        closed, filtered, shift, absent_nodes, absent = parts
        part = self._part(term.nodes)
        missing = ~released & (factor != 0)
        sampling = factor[released] ** 2 * self._sampling[places[released]]
        most, mean, spread = self._of_empty[:, part]
        for variance, noise in (
            (closed, self._noise[part]),
            (filtered, np.where(released, self._noise[part], spread)),
        ):
            variance[term.pieces] += factor**2 * noise
            variance[term.pieces[released]] += sampling
        shift[term.pieces] += factor * mean
        absent_nodes[term.pieces] += missing
        absent[term.pieces] += np.abs(factor) * missing * most

    @cached_property
    def _of_empty(self) -> Float[np.ndarray, "3 parts"]:
        """Return, for each part, the largest value of an absent node, and the mean and variance of the
        amount that an empty node adds.
        """
        most = [law.absent_at_most(self.cut, self.sides) for law in self._laws]
        moments = [law.empty_cell(self.theta, self.sides) for law in self._laws]
        spread = [moment.square - moment.mean**2 for moment in moments]
        if self.tau:  # those that passed and were not drawn are among the absent ones
            spread = [*self._noise]
        return np.array([most, [moment.mean for moment in moments], spread])

    def deviations(self, filled_law: Law | None = None) -> Float[np.ndarray, " nodes"]:
        """Return the standard deviation of the noise on the weight of each released node, in counts. The weight
        is the value that answers use.
        """
        return np.sqrt(self._noise[self._part(self.keys)] + self._sampling)

    @property
    def absent_cells(self) -> int:
        """Number of nodes that the mechanism did not release."""
        return self._nodes - len(self)

    def absent_at_most(self, filled_law: Law | None = None) -> float:
        """Return the largest plausible value of a node that was not released. If the noise differs between
        nodes, the result is for the nodes with the widest noise.
        """
        return max(law.absent_at_most(self.cut, self.sides) for law in self._laws)

    def _find(self, nodes: Int[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of nodes among the released ones, and a mask of those that were released."""
        if not len(self):
            return np.zeros(len(nodes), np.int64), np.zeros(len(nodes), bool)
        at = np.searchsorted(self.keys, nodes)
        np.minimum(at, len(self) - 1, out=at)
        return at, self.keys[at] == nodes

    @cached_property
    def _laws(self) -> list[Law]:
        """Noise distribution of a node, for each part."""
        return [self.law.of_nodes(part) for part in self.basis.noise_blocks]

    @cached_property
    def _noise(self) -> Float[np.ndarray, " parts"]:
        """Return the variance of the noise on a node of each part."""
        return np.array([law.variance for law in self._laws])

    @property
    def _nodes(self) -> int:
        """Number of nodes, released or not."""
        return sum(part.size for part in self.basis.noise_blocks)

    def _part(self, nodes: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        ends = np.cumsum([part.size for part in self.basis.noise_blocks])
        return np.searchsorted(ends, nodes, side="right")

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the released nodes.

        Returns
        -------
        pandas.DataFrame
            One row per node: level, first key, last key + 1, `count` (weight) and `noisy`.
        """
        places = self.basis.places(self.keys)
        return pd.DataFrame(places | {"count": self.weights(), "noisy": self.values})

    def _columns(self) -> dict[str, Any]:
        """Return the same table, with the nodes' numbers."""
        return {**self.to_frame(), "node": self.keys}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return {"keys": table["node"].to_numpy(), "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        super()._check_rows()
        inside = not len(self) or 0 <= self.keys[0] <= self.keys[-1] < self._nodes
        refuse_unless(inside, "nodes", f"numbers from 0 to {self._nodes - 1}")


# Sketch


@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Estimate):
    """Noisy sketch of a table, which has several rows of buckets. In each row, every cell adds its count to one
    bucket, with a random sign.

    `hash_parameters` has the parameters of the hash functions, which give the bucket and the sign of a cell
    in each row. `law` is the distribution of the noise on every bucket. `estimate` says how rows are
    combined, by their "mean" or by their "median". The sketch can answer Ranges and Subsets, and looks up
    every cell of a query.

    Consider a query over r cells with the total S. If rows are combined by their mean, its standard error
    is at most sqrt((r·F₂/width + S²/width + r·σ²)/depth). The first two terms are due to cells that share a
    bucket, and the third to noise. The sum of all squared counts, F₂, is estimated from the buckets,
    because Σ bucket² over a row has the expectation F₂ + width·σ². S is estimated by the answer. For a
    single cell the term S²/width is omitted, and the formula is exact. For medians, standard errors are
    NaN.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "depth 8"]
    values: Int[np.ndarray, "depth width"]
    law: Law
    estimate: str = "mean"
    kind: ClassVar[str] = "sketch"
    contents: ClassVar[str] = "buckets"
    rows_are_counts: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.values.size

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        depth, width = self.values.shape
        visited = hashes.visited_ranges(queries, self.domain, depth)
        rows = [
            visited.sums(hashes.sum_buckets, function, hashes.compact(buckets, visited.cells))
            for function, buckets in zip(self.hash_parameters, self.values, strict=True)
        ]
        if self.estimate != "mean":
            return np.median(rows, axis=0)
        answers = rows[0] if depth == 1 else np.mean(rows, axis=0)
        if not error:
            return answers
        noise = self.law.variance
        squares = np.square(self.values, dtype=float).sum() / depth - width * noise
        cells = queries.cells(self.domain)
        per_cell = cells * (max(squares, 0) / width + noise) / depth
        together = np.maximum(answers**2 - per_cell, 0) * (cells > 1) / width / depth
        return answers, np.sqrt(per_cell + together)

    def deviations(self) -> float:
        """Return the standard deviation of the noise on each bucket."""
        return float(np.sqrt(self.law.variance))

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the noisy buckets.

        Returns
        -------
        pandas.DataFrame
            One row per bucket: its row and place, and its `noisy` value.
        """
        row, bucket = np.indices(self.values.shape, np.int32).reshape(2, -1)
        return pd.DataFrame({"row": row, "bucket": bucket, "noisy": self.values.ravel()})

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        depth = len(fields["hash_parameters"])
        if not len(table):
            raise ValueError("a sketch needs at least one bucket in each row")
        return {"values": table["noisy"].to_numpy().reshape(depth, -1)}


# Projection


@dataclass(frozen=True, eq=False, repr=False)
class Projection(Estimate):
    """Array of noisy bits from which the count of any cell can be estimated. It also has the hash functions,
    which say which bits belong to a cell. The number of bits is a power of two.

    One level stands for `step` counts. If a cell has a count of y levels, the bits of its first y levels
    were set before the noise flipped some bits. The projection can answer Ranges and Subsets, and looks up
    every cell of a query. To estimate a count, a walk goes along the bits of the cell: one step up for each
    bit that is set, and one step down for each other bit. The estimate is the mean position at which the
    walk is highest, times `step`. There are no standard errors.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "levels 3"]
    bits: UInt64[np.ndarray, " bits/64"]
    step: float
    kind: ClassVar[str] = "projection"
    contents: ClassVar[str] = "words of 64 bits"
    rows_are_counts: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.bits)

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        levels = len(self.hash_parameters)
        visited = hashes.visited_ranges(queries, self.domain, levels)
        answers = visited.sums(hashes.sum_levels, self.hash_parameters, self.bits) * self.step
        return answers

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the noisy bits.

        Returns
        -------
        pandas.DataFrame
            One row per 64 bits, which are those of `noisy`, lowest first.
        """
        return pd.DataFrame({"word": np.arange(len(self)), "noisy": self.bits})

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = len(table)
        if words.bit_count() != 1:  # the compiled loops look up whatever a hash function says
            raise ValueError(f"{words:,} words of bits are not allowed: need a power of two")
        return {"bits": table["noisy"].to_numpy()}
