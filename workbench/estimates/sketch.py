"""A noisy count sketch: rows of buckets, into which public hash functions threw all cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Int, UInt64

from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.estimates.summary import check_weights, geometric_variance
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Sketch:
    """Rows of noisy buckets; a cell adds its count, with its sign, to one bucket a row.

    `words` are the rows' hash functions, for buckets and for signs, `decay` is ε/Δ of the geometric
    noise on every bucket, and `estimate` says whether rows are joined by their mean or their median.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "depth 8"]
    values: Int[np.ndarray, "depth width"]
    decay: float
    estimate: str = "mean"
    kind: ClassVar[str] = "sketch"
    contents: ClassVar[str] = "buckets"

    def __post_init__(self):
        for name in ("words", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return self.values.size

    def __repr__(self) -> str:
        (depth, width), names = self.values.shape, " × ".join(self.domain.attributes)
        return f"<Sketch of {names}: {depth} × {width:,} buckets, {self.estimate}>"

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts of Ranges or Subsets, float64[queries]; with `error` standard errors too.

        Every cell of a query is visited. The standard error of a mean over r cells that hold S in all
        is at most sqrt((r·F₂/width + S²/width + r·2α/(1−α)²)/depth): what shares a bucket, and the
        noise. F₂, the sum of all squared counts, is estimated from the buckets: Σ bucket² over a row
        has expectation F₂ + width·2α/(1−α)²; S is the answer. For a single cell S²/width is left out,
        which is then exact. It is NaN for medians.
        """
        check_weights(weights)
        workload = workload.on(self.domain)
        which, ranges = hashes.visited_ranges(workload, self.domain, len(self.values))
        rows = np.zeros((len(self.values), len(workload)))
        for row, words, values in zip(rows, self.hash_parameters, self.values, strict=True):
            hashes.sum_buckets(which, ranges.lo, ranges.hi, words, values, row)
        answers = (np.mean if self.estimate == "mean" else np.median)(rows, axis=0)
        if not error:
            return answers
        if self.estimate != "mean":
            return answers, np.full(len(answers), np.nan)
        (depth, width), noise = self.values.shape, geometric_variance(self.decay)
        squares = np.square(self.values, dtype=float).sum() / depth - width * noise
        cells = workload.cells(self.domain)
        each = cells * (max(squares, 0) / width + noise) / depth
        whole = np.maximum(answers**2 - each, 0) * (cells > 1) / width / depth
        return answers, np.sqrt(each + whole)

    def to_frame(self) -> pd.DataFrame:
        """One row a bucket: its row and place, and its `noisy` value."""
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """The same table for a Parquet file."""
        import pyarrow as pa

        row, bucket = np.indices(self.values.shape, np.int32)
        return pa.table(
            {"row": row.ravel(), "bucket": bucket.ravel(), "noisy": self.values.ravel()}
        )

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        told = {"decay": self.decay, "estimate": self.estimate}
        return told | {
            "domain": self.domain.to_dict(),
            "words": hashes.to_hex(self.hash_parameters),
        }

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A sketch from its file's table and record."""
        words = hashes.from_hex(about["words"], 8)
        values = table["noisy"].to_numpy().reshape(len(words), -1)
        domain = Domain.from_dict(about["domain"])
        return cls(domain, words, values, about["decay"], about["estimate"])
