"""A noisy bit array in which every cell's count is written in unary, at hashed places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import UInt64

from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.estimates.summary import check_weights
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Projection:
    """Noisy bits, 64 a word (a power of two in all); `words` are the hash functions, one a level.

    A cell whose count is worth y levels of `step` counts each had its bits of the first y levels set.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "levels 3"]
    bits: UInt64[np.ndarray, " bits/64"]
    step: float
    kind: ClassVar[str] = "projection"
    contents: ClassVar[str] = "words of 64 bits"

    def __post_init__(self):
        for name in ("words", "bits"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Projection of {names}: {64 * len(self):,} bits, {len(self.hash_parameters):,} levels>"

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts of Ranges or Subsets, float64[queries].

        Every cell of a query is visited: its bits are walked along, +1 for a set one and −1 for
        another, and the mean place of the walk's maxima, in steps, is its count. With `error` also
        NaN for each, as this estimate has no standard error in closed form.
        """
        check_weights(weights)
        workload = workload.on(self.domain)
        which, ranges = hashes.visited_ranges(workload, self.domain, len(self.hash_parameters))
        answers = np.zeros(len(workload))
        hashes.sum_levels(which, ranges.lo, ranges.hi, self.hash_parameters, self.bits, answers)
        answers *= self.step
        return (answers, np.full(len(answers), np.nan)) if error else answers

    def to_frame(self) -> pd.DataFrame:
        """One row for 64 bits, which are the `noisy` word's, lowest first."""
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """The same table for a Parquet file."""
        import pyarrow as pa

        return pa.table({"word": np.arange(len(self)), "noisy": self.bits})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        told = {"step": self.step, "words": hashes.to_hex(self.hash_parameters)}
        return told | {"domain": self.domain.to_dict()}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A projection from its file's table and record."""
        words, domain = hashes.from_hex(about["words"], 3), Domain.from_dict(about["domain"])
        return cls(domain, words, table["noisy"].to_numpy(), about["step"])
