"""A count for every key of a domain: dense histograms, consistent leaves, sorted sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float, Int, Num
from workbench.domain import Domain
from workbench.estimates.estimate import DOMAIN, Estimate, Stored
from workbench.estimates.linear_noise import (
    LinearNoise,
    cell_deviations,
    noise_from_json,
    noise_to_json,
    query_variances,
)
from workbench.libraries import pd
from workbench.workload import Recipe, Workload


@dataclass(frozen=True, eq=False)
class Histogram(Estimate):
    """Values of all keys, in their order; `variance` is that of independent noise on each, or None.

    Any workload is answered; ranges cost O(1) each after one prefix sum. The standard error is
    sqrt(cells · variance). Where the noise of cells is not independent, `noise` says how it came to be,
    and the standard error of ranges follows; it is NaN where neither is known.
    """

    domain: Domain
    values: Num[np.ndarray, " cells"]
    variance: float | None = None
    noise: LinearNoise | None = None
    kind: ClassVar[str] = "sequence"
    contents: ClassVar[str] = "cells"
    arrays: ClassVar = ("values",)
    stored: ClassVar = (
        DOMAIN,
        Stored("variance"),
        Stored("noise", write=noise_to_json, read=noise_from_json, optional=True),
    )

    def __post_init__(self) -> None:
        if self.values.shape != (self.domain.size,):
            raise ValueError(f"{self.values.shape} values do not fit {self.domain.size} cells")
        super().__post_init__()

    def __repr__(self) -> str:
        return f"<Histogram of {self._attribute_names}: {len(self):,} cells>"

    @cached_property
    def _keys(self) -> Int[np.ndarray, " cells"]:
        return np.arange(len(self))

    @cached_property
    def _prefix_sums(self) -> Float[np.ndarray, " cells+1"]:
        return np.concatenate([[0.0], np.cumsum(self.values, dtype=float)])

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        if hasattr(queries, "sums_of_prefix"):
            answers = queries.sums_of_prefix(None, self._prefix_sums)
        else:
            answers = queries.sums(self.domain, self._keys, self.values)
        if not error:
            return answers
        if self.noise is not None:
            return answers, np.sqrt(query_variances(self.noise, self.domain, queries))
        variance = np.nan if self.variance is None else self.variance
        return answers, np.sqrt(queries.cells(self.domain) * variance)

    def deviations(self) -> Float[np.ndarray, " cells"] | float:
        """The standard deviation of the noise on each value; NaN where it is not known."""
        if self.noise is not None:
            return cell_deviations(self.noise, self.domain)
        return np.nan if self.variance is None else float(np.sqrt(self.variance))

    @property
    def why_unknown(self) -> str:
        """Noise that was there before the counts were changed says little."""
        known = self.variance is not None or self.noise is not None
        return (
            ""
            if known
            else "after noise was added, counts were changed by what they were with it"
        )

    def to_frame(self) -> pd.DataFrame:
        """All values as a table.

        Returns
        -------
        pandas.DataFrame
            One row a cell: labels and its `noisy` value.
        """
        return self.domain.frame(self._keys).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """The values; the key is the row."""
        return {"noisy": self.values}
