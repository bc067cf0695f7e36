"""Compact summaries of a table. A summary contains some noisy cells of the table, some noisy coefficients of a
transform of the table, or hashed counts.

There are two kinds of hashed counts: sketches (noisy sums in buckets) and projections (counts in unary
notation in an array of noisy bits).
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
    """Cells that a mechanism released. `keys` contains the numbers that identify these cells, in ascending
    order. `values` contains the noisy counts of the cells. Most of the other fields describe how the cells were
    selected.

    `tau` is the sampling threshold τ. Cells with a noisy value of at least τ were always kept, and the other
    cells were sampled. If cells were not sampled, `tau` is 0. `theta` is the threshold θ of the filter, and
    cells with a noisy value below θ were dropped. `sides` is 1 if only positive noisy values were kept. If
    `sides` is 2, the absolute noisy value was compared with both thresholds. `law` is the distribution of the
    noise on every cell. If the noise differs between cells, `law` is None and there are no standard errors.
    In answers, every released count is multiplied by the factor `scale`. The factor differs from 1 only for
    uniform samples of cells and for samples of synthetic records.
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
        """Return a summary that contains only some of the released cells.

        Parameters
        ----------
        mask : bool[cells]
            True for each released cell that remains.
        **changes : any
            New values of other fields, for example `theta`.

        Returns
        -------
        Summary
            Summary of the same class.
        """
        return replace(self, keys=self.keys[mask], values=self.values[mask], **changes)

    def weights(self, kind: str = "unbiased") -> Float[np.ndarray, " cells"]:
        """Return one weight per released cell. The weight is the number that the cell adds to the answer of a
        query that counts the cell.

        Parameters
        ----------
        kind : "unbiased" or "raw"
            "unbiased" gives the Horvitz–Thompson weight sign(v)·max(|v|, τ), where v is the noisy value and τ
            the sampling threshold. With these weights, an answer has the same expectation as the sum of all
            noisy values that passed the filter. "raw" gives the noisy value v. Sums of raw weights are too
            small on average. For a single cell, however, the raw weight is usually closer to the true count
            than the unbiased weight. For example, suppose that τ = 500 and v = 80. The unbiased weight is then
            500, and the raw weight is 80.

        Returns
        -------
        float64[cells]
            Weights, as counts of records.

        Raises
        ------
        ValueError
            If `kind` is neither "unbiased" nor "raw".
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
        """Return the estimated count for each query. If `error` is True, also return the errors.

        The standard error describes the difference between the answer and the true count. The standard error is
        the square root of the sum of two variances. The first variance comes from the noise. It is the number
        of cells in the query times the variance σ² of the noise on each cell. The second variance comes from
        the sampling, and is estimated by Σ τ·(τ − |v|)⁺ without bias, where τ is the sampling threshold. The
        sum Σ is over the released noisy values v in the query, and (…)⁺ replaces negative numbers by 0. The
        standard error is NaN if cells were filtered, either by a threshold θ > 1 or because only positive
        values were kept. The standard error is also NaN in four other cases: for uniform samples of cells, for
        raw weights of sampled cells, if you pass `filled_law`, and if `absent` is not 0.

        The attribute `noise` of the result is equal to the standard error, if there is one. If cells were
        filtered, `noise` is computed as follows. Let n be the number of cells in the query, and r the number of
        these cells that passed the filter. If the cells were also sampled, r is an unbiased estimate of this
        number. Let μ and s² be the mean and the variance of the noise that an empty cell adds to the answer.
        Then `noise` is the square root of r·σ² + (n − r)·s² + (n·μ)² + Σ τ·(τ − |v|)⁺.

        Parameters
        ----------
        workload : Workload
            Queries over the domain of the summary.
        weights : "unbiased" or "raw"
            Weights of released numbers in answers, as explained in the method `weights`.
        error : bool
            Whether to return also the errors of the answers.
        absent : float
            Count that is assumed for every cell that was not released. If cells below a threshold θ were
            filtered out, θ/2 is a possible choice, which Cormode et al. (2012) mention. Default 0.
        filled_law : Law, optional
            Distribution of the noise, for mechanisms that add noise only to non-empty cells. The summary
            itself does not contain this distribution.

        Returns
        -------
        answers : float64[queries], or Answers
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers
            and standard errors.

        Raises
        ------
        ValueError
            If `weights` is neither "unbiased" nor "raw", or if the workload does not fit the domain.
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
        """Estimated variance that the random sampling of cells adds to the weight of each released cell."""
        return self.tau * np.maximum(self.tau - np.abs(self.values), 0)

    @property
    def releases_all(self) -> bool:
        """Whether the mechanism released every cell, regardless of the cell's noisy value."""
        return self.theta == 0 and self.tau == 0 and self.sides == 2

    @property
    def cut(self) -> float:
        """Smallest noisy count with which a cell is released for certain. This count is the larger of two
        thresholds: the threshold θ of the filter, and the sampling threshold τ.
        """
        return max(self.theta, self.tau)

    def deviations(self, filled_law: Law | None = None) -> Float[np.ndarray, " cells"]:
        """Return the standard deviation of the noise on the weight of each released cell. The weight is the
        number that the cell adds to the answers of queries.
        """
        law = filled_law or self.law
        if law is None:
            return np.full(len(self), np.nan)
        if self.scale != 1:
            return np.full(len(self), self.scale * np.sqrt(law.variance))
        return np.sqrt(law.variance + self._sampling)

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors are unknown if the released cells are a uniform sample. For other
        summaries, the text is empty.
        """
        if self.scale == 1:
            return ""
        return (
            f"each released cell stands for {self.scale:.3g} cells, from which it was chosen at random, and "
            "nothing is known about the counts of the others"
        )

    @property
    def absent_cells(self) -> int:
        """Number of cells (or nodes of a tree) that the mechanism did not release."""
        return self.domain.size - len(self)

    def absent_at_most(self, filled_law: Law | None = None) -> float:
        """Return the largest plausible true count of a cell that was not released. Cells with a noisy count of
        at least `cut` are always released. So the result is the sum of `cut` and three standard deviations of
        the noise. There are two exceptions. If only cells with the noisy count 0 are not released, the result
        is 0. For uniform samples of cells, the result is NaN.
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
            One row per released cell, with the labels of the cell. The column `count` contains the unbiased
            weight of the cell (see the method `weights`), and the column `noisy` contains the noisy count.
        """
        return self.domain.frame(self.keys).assign(count=self.weights(), noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of `to_frame`, with the labels in dictionary columns of Arrow."""
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
    """Released numbers from a transform of a table, for example wavelet coefficients or sums of cells. The
    transformed numbers are called nodes. `keys` contains the numbers of the released nodes in ascending order,
    and `values` contains the noisy values of these nodes.

    Nodes are divided into blocks, and the noise on all nodes of a block has the same distribution. The method
    `Law.of_nodes` computes this distribution for each block from the field `law`. The nodes form a tree. If
    the field `consistent` is True, a node was released only if all nodes above it in the tree were released.
    """

    law: Law
    transform: Dyadic | Haar = Dyadic()
    consistent: bool = False
    kind: ClassVar[str] = "tree"
    contents: ClassVar[str] = "nodes"

    @cached_property
    def basis(self) -> TransformBasis:
        """Transform on the domain of this summary. The transform computes nodes (transformed counts) from
        counts of cells, and counts of cells from nodes.
        """
        return self.transform.on(self.domain)

    def __repr__(self) -> str:
        return (
            f"<TransformedSummary of {self._attribute_names} by {self.transform!r}: "
            f"{len(self):,} of {self._nodes:,} nodes>"
        )

    def answer(  # type: ignore[override]  # it has no cells that may be absent
        self, workload: Recipe, weights: str = "unbiased", error: bool = False
    ) -> Any:
        """Return the estimated count for each range of cells. The method can also answer other queries that
        consist of ranges, for example subsets and boxes.

        For nodes (transformed counts) that were not released, the method uses the value 0. The errors have the
        same formulas as in `Summary.answer`. But instead of the cells that a query counts, the formulas use the
        nodes from which the answer is computed. If there is no formula, the standard error is NaN. For
        wavelets, all errors of queries with several ranges are NaN.

        Parameters
        ----------
        workload : Workload
            Queries over the domain. Each query must consist of ranges.
        weights : "unbiased" or "raw"
            Weights of released numbers in answers, as explained in the method `weights`.
        error : bool
            Whether to return also the errors of the answers.

        Returns
        -------
        answers : float64[queries], or Answers
            One answer per query, as a count of records. If `error` is True, the result is a pair of answers
            and standard errors. The attribute `absent_cells` of the pair then counts nodes that were not
            released.

        Raises
        ------
        ValueError
            If `weights` is neither "unbiased" nor "raw", or if the queries do not consist of ranges.
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
        """Add the contribution of one term of the queries to the five sums in `parts`. They are the variance
        by the formula, the variance after a filter, the mean noise of empty nodes, the number of absent
        nodes, and the largest plausible sum of the absent nodes.
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
        """Three numbers for each block of nodes: the largest plausible value of an absent node, and the mean
        and the variance of the number that an empty node adds to answers.
        """
        most = [law.absent_at_most(self.cut, self.sides) for law in self._laws]
        moments = [law.empty_cell(self.theta, self.sides) for law in self._laws]
        spread = [moment.square - moment.mean**2 for moment in moments]
        if self.tau:  # those that passed and were not drawn are among the absent ones
            spread = [*self._noise]
        return np.array([most, [moment.mean for moment in moments], spread])

    def deviations(self, filled_law: Law | None = None) -> Float[np.ndarray, " nodes"]:
        """Return the standard deviation of the noise on the weight of each released node (transformed count).
        The weight is the value from which answers are computed.
        """
        return np.sqrt(self._noise[self._part(self.keys)] + self._sampling)

    @property
    def absent_cells(self) -> int:
        """Number of nodes that the mechanism did not release."""
        return self._nodes - len(self)

    def absent_at_most(self, filled_law: Law | None = None) -> float:
        """Return the largest plausible true value of a node that was not released. If the noise differs
        between nodes, the result is for the nodes with the largest noise.
        """
        return max(law.absent_at_most(self.cut, self.sides) for law in self._laws)

    def _find(self, nodes: Int[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of each node among the released nodes, and a mask that is True for the nodes
        that were released.
        """
        if not len(self):
            return np.zeros(len(nodes), np.int64), np.zeros(len(nodes), bool)
        at = np.searchsorted(self.keys, nodes)
        np.minimum(at, len(self) - 1, out=at)
        return at, self.keys[at] == nodes

    @cached_property
    def _laws(self) -> list[Law]:
        """Distributions of the noise on a node, one for each block of nodes (transformed counts)."""
        return [self.law.of_nodes(part) for part in self.basis.noise_blocks]

    @cached_property
    def _noise(self) -> Float[np.ndarray, " parts"]:
        """Variances of the noise on a node, one for each block of nodes (transformed counts)."""
        return np.array([law.variance for law in self._laws])

    @property
    def _nodes(self) -> int:
        """Number of all nodes of the transform, including those that were not released."""
        return sum(part.size for part in self.basis.noise_blocks)

    def _part(self, nodes: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        ends = np.cumsum([part.size for part in self.basis.noise_blocks])
        return np.searchsorted(ends, nodes, side="right")

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the released nodes.

        Returns
        -------
        pandas.DataFrame
            One row per node, with the level of the node, the key of its first cell, and the key of its last
            cell plus 1. The column `count` contains the weight of the node, from which answers are computed.
            The column `noisy` contains the noisy value of the node.
        """
        places = self.basis.places(self.keys)
        return pd.DataFrame(places | {"count": self.weights(), "noisy": self.values})

    def _columns(self) -> dict[str, Any]:
        """Return the columns of `to_frame`, and the numbers of the nodes."""
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
    """Noisy sketch of a table. A sketch is a small summary that consists of rows of numbers, which are called
    buckets. In each row, hash functions assign one bucket and one random sign to every cell of the table. The
    count of the cell was added to this bucket with this sign.

    `hash_parameters` contains the parameters of the hash functions. `law` is the distribution of the noise on
    every bucket. The sketch can answer queries of the types `Ranges` and `Subsets`. In each row, the sketch
    adds up the estimated counts of all cells of the query. The answer is the mean or the median of these sums.
    The field `estimate` says which of the two is used: "mean" or "median".

    Suppose that a query selects r cells, and that S is the sum of the counts of these cells. Let F₂ be the sum
    of the squared counts of all cells, and σ² the variance of the noise on a bucket. The sketch has `depth`
    rows of `width` buckets. With "mean", the standard error of the answer is at most sqrt((r·F₂/width +
    S²/width + r·σ²)/depth). The first two terms are the error from cells that share a bucket, and the third
    term is the error from noise. The sketch estimates F₂ from the buckets, because the sum of bucket² over a
    row has the expectation F₂ + width·σ². The sketch uses the answer as the estimate of S. For queries that
    select a single cell, the formula is exact without the term S²/width, so the sketch leaves out this term.
    With "median", standard errors are NaN.
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
        """Return the standard deviation of the noise on a bucket, which is the same for all buckets."""
        return float(np.sqrt(self.law.variance))

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the noisy buckets.

        Returns
        -------
        pandas.DataFrame
            One row per bucket. The columns contain the row of the sketch, the position of the bucket in this
            row, and the noisy value of the bucket (`noisy`).
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
    """Array of noisy bits, from which the count of any cell of a table can be estimated. Public hash
    functions determine which bits of the array belong to a cell. The number of bits is a power of two.

    Counts are measured in levels, where a level is `step` records. The hash functions assign one bit of the
    array to each level of each cell. If the count of a cell is y levels, the bits of the cell's first y levels
    were set to 1. Then noise flipped some of the bits. The projection can answer queries of the types `Ranges`
    and `Subsets`. An answer is the sum of the estimated counts of all cells of the query. To estimate the count
    of a cell, the projection reads the bits of the cell's levels in order. A score starts at 0, grows by 1 for
    each bit 1, and falls by 1 for each bit 0. The estimate is `step` times the number of levels after which the
    score is highest. If the score is highest several times, the projection uses the mean of these numbers of
    levels. There are no standard errors.
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
            One row per 64 bits. The column `noisy` contains these bits as an integer, with the first bit as
            the lowest.
        """
        return pd.DataFrame({"word": np.arange(len(self)), "noisy": self.bits})

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = len(table)
        if words.bit_count() != 1:  # the compiled loops look up whatever a hash function says
            raise ValueError(f"{words:,} words of bits are not allowed: need a power of two")
        return {"bits": table["noisy"].to_numpy()}
