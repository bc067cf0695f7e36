"""Noisy sketches: counts hashed into buckets, or in unary into a bit array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.estimates.estimate import Estimate
from workbench.noise import hashes
from workbench.noise.law import Law
from workbench.queries import Recipe, Workload
from workbench.spaces import Domain
from workbench.value import Int, UInt64

# Sketch


@dataclass(frozen=True, eq=False)
class Sketch(Estimate):
    """Rows of noisy buckets; a cell adds its count, with its sign, to one bucket a row.

    `hash_parameters` are those of the rows' hash functions, for buckets and for signs, `law` is that of
    the noise on every bucket, and `estimate` says whether rows are joined by their mean or
    their median. Ranges and Subsets are answered, of which every cell is visited.

    The standard error of a mean over r cells that hold S in all is at most
    sqrt((r·F₂/width + S²/width + r·σ²)/depth): what shares a bucket, and the noise. F₂, the sum
    of all squared counts, is estimated from the buckets: Σ bucket² over a row has expectation
    F₂ + width·σ²; S is the answer. For a single cell S²/width is left out, which is then exact.
    It is NaN for medians.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "depth 8"]
    values: Int[np.ndarray, "depth width"]
    law: Law
    estimate: str = "mean"
    kind: ClassVar[str] = "sketch"
    contents: ClassVar[str] = "buckets"
    rows_are_counts: ClassVar[bool] = False
    arrays: ClassVar = ("hash_parameters", "values")

    def __len__(self) -> int:
        return self.values.size

    def __repr__(self) -> str:
        depth, width = self.values.shape
        return (
            f"<Sketch of {self._attribute_names}: {depth} × {width:,} buckets, {self.estimate}>"
        )

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
        """The standard deviation of the noise on each bucket."""
        return float(np.sqrt(self.law.variance))

    def _columns(self) -> dict[str, Any]:
        """One row a bucket: its row and place, and its noisy value."""
        row, bucket = np.indices(self.values.shape, np.int32)
        return {"row": row.ravel(), "bucket": bucket.ravel(), "noisy": self.values.ravel()}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        depth = len(fields["hash_parameters"])
        if not len(table):
            raise ValueError("no buckets are not allowed: need one at least in each row")
        return {"values": table["noisy"].to_numpy().reshape(depth, -1)}


# Projection


@dataclass(frozen=True, eq=False)
class Projection(Estimate):
    """Noisy bits, 64 a word (a power of two in all), and the parameters of a hash function a level.

    A cell whose count is worth y levels of `step` counts each had its bits of the first y levels set.
    Ranges and Subsets are answered, of which every cell is visited: the bits of a cell make a walk, +1
    for a set one and −1 for another; the mean place of the walk's maxima, in steps, is the cell's count.
    Standard errors have no closed form.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "levels 3"]
    bits: UInt64[np.ndarray, " bits/64"]
    step: float
    kind: ClassVar[str] = "projection"
    contents: ClassVar[str] = "words of 64 bits"
    rows_are_counts: ClassVar[bool] = False
    arrays: ClassVar = ("hash_parameters", "bits")

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        levels = len(self.hash_parameters)
        return f"<Projection of {self._attribute_names}: {64 * len(self):,} bits, {levels:,} levels>"

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        levels = len(self.hash_parameters)
        visited = hashes.visited_ranges(queries, self.domain, levels)
        answers = visited.sums(hashes.sum_levels, self.hash_parameters, self.bits) * self.step
        return answers

    def _columns(self) -> dict[str, Any]:
        """One row for 64 bits, which are those of `noisy`, lowest first."""
        return {"word": np.arange(len(self)), "noisy": self.bits}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = len(table)
        if words.bit_count() != 1:  # the compiled loops look up whatever a hash function says
            raise ValueError(f"{words:,} words of bits are not allowed: need 1, 2, 4, 8, …")
        return {"bits": table["noisy"].to_numpy()}
