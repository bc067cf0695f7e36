"""A count for every key of a domain: dense histograms, consistent leaves, sorted sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from workbench.domain import Domain
from workbench.estimates.summary import check_weights
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Histogram:
    """Values of all keys, in their order; `variance` is that of independent noise on each, or None."""

    domain: Domain
    values: Float[np.ndarray, " cells"]
    variance: float | None = None
    kind: ClassVar[str] = "sequence"
    contents: ClassVar[str] = "cells"

    def __post_init__(self):
        if self.values.shape != (self.domain.size,):
            raise ValueError(f"{self.values.shape} values do not fit {self.domain.size} cells")
        object.__setattr__(self, "values", read_only(self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Sequence of {names}: {len(self):,} cells>"

    @cached_property
    def _keys(self):
        return np.arange(len(self))

    @cached_property
    def _prefix(self):
        return np.concatenate([[0.0], np.cumsum(self.values, dtype=float)])

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts, float64[queries]; with `error` also the standard error of each.

        Ranges cost O(1) each after one prefix sum. Nothing is sampled, so both kinds of `weights` mean
        the same. The standard error is sqrt(cells · variance); NaN where values are not independent.
        """
        check_weights(weights)
        workload = workload.on(self.domain)
        if hasattr(workload, "sums_of_prefix"):
            answers = workload.sums_of_prefix(None, self._prefix)
        else:
            answers = workload.sums(self.domain, self._keys, self.values)
        if not error:
            return answers
        known = np.nan if self.variance is None else self.variance
        return answers, np.sqrt(workload.cells(self.domain) * known)

    def to_frame(self) -> pd.DataFrame:
        """One row a cell: labels and its `noisy` value."""
        return self.domain.frame(self._keys).assign(noisy=self.values)

    def to_arrow(self) -> pyarrow.Table:
        """The values for a Parquet file: the key is the row."""
        import pyarrow as pa

        return pa.table({"noisy": self.values})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"domain": self.domain.to_dict(), "variance": self.variance}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A sequence from its file's table and record."""
        domain = Domain.from_dict(about["domain"])
        return cls(domain, table["noisy"].to_numpy(), about["variance"])
