"""A compact summary of a noisy table: some of its cells, with what makes their answers unbiased."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, expm1
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.domain import Domain
from workbench.value import read_only
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


def check_weights(weights: str) -> None:
    """A ValueError unless these are weights that every estimate knows; they differ in samples alone."""
    if weights not in ("unbiased", "raw"):
        raise ValueError(f"weights = {weights!r} is not allowed: need 'unbiased' or 'raw'")


def geometric_variance(decay: float) -> float:
    """2α/(1−α)² with α = exp(−decay): the variance of two-sided geometric noise."""
    return 2 * exp(-decay) / expm1(-decay) ** 2  # 1 − α would cancel


@dataclass(frozen=True, eq=False)
class Summary:
    """Released cells: keys (sorted), noisy values, and the thresholds that selected them.

    `tau` is the threshold of threshold sampling, or τ_s of a priority sample; 0 where cells were not
    sampled. `theta` is the filter's cut and `sides` which side of zero was kept. `decay` is ε/Δ of the
    geometric noise on every cell, or None where the law is another (then without standard errors).
    `scale` multiplies all weights (1 but for uniform and synthetic samples).
    """

    domain: Domain
    keys: Int[np.ndarray, " cells"]
    values: Int[np.ndarray, " cells"]
    decay: float | None
    theta: float = 0.0
    tau: float = 0.0
    sides: int = 2
    scale: float = 1.0
    kind: ClassVar[str] = "summary"
    contents: ClassVar[str] = "cells"

    def __post_init__(self):
        for name in ("keys", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Summary of {names}: {len(self):,} of {self.domain.size:,} cells>"

    def where(self, kept: Bool[np.ndarray, " cells"], **told: Any) -> Self:
        """Those of its cells that are `kept`, with what is `told` anew."""
        return replace(self, keys=self.keys[kept], values=self.values[kept], **told)

    def weights(self, kind: str = "unbiased") -> Float[np.ndarray, " cells"]:
        """What each released cell counts for.

        "unbiased": sign(v)·max(|v|, τ), the Horvitz–Thompson weight: answers are unbiased for the
        noisy table after its filter. "raw": the noisy values, biased but closer for single cells.
        """
        check_weights(kind)
        if kind == "raw":
            return self.values
        return self._unbiased

    @cached_property
    def _unbiased(self) -> Float[np.ndarray, " cells"]:
        if not self.tau:
            return self.values if self.scale == 1 else read_only(self.values * self.scale)
        return read_only(np.copysign(np.maximum(np.abs(self.values), self.tau), self.values))

    def answer(
        self,
        workload: Workload,
        weights: str = "unbiased",
        error: bool = False,
        absent: float = 0.0,
    ) -> Any:
        """Estimated counts, float64[queries]; with `error` also the standard error of each.

        `absent` is what every cell that was not released counts for; half of θ is the paper's
        heuristic for filtered cells. The standard error, of the answer against the true counts, is
        sqrt(cells · 2α/(1−α)² + Σ τ·(τ − |v|)⁺ over released v): noise on every cell of the query, and
        an unbiased estimate of the sampling variance. It is NaN where the release alone gives no
        closed form: after a filter (θ > 1 or one side), for uniform samples, for raw weights of
        sampled cells, and with `absent`.
        """
        workload = workload.on(self.domain)
        answers = workload.sums(self.domain, self.keys, self.weights(weights))
        if absent:
            held = workload.sums(self.domain, self.keys, np.ones(len(self), np.int64))
            answers += absent * (workload.cells(self.domain) - held)
        if not error:
            return answers
        closed = self.theta <= 1 and self.sides == 2 and self.scale == 1 and not absent
        if self.decay is None or not closed or (weights == "raw" and self.tau > 1):
            return answers, np.full(len(workload), np.nan)
        variance = workload.cells(self.domain) * geometric_variance(self.decay)
        if self.tau:
            lost = self.tau * np.maximum(self.tau - np.abs(self.values), 0)
            variance += workload.sums(self.domain, self.keys, lost)
        return answers, np.sqrt(variance)

    def to_frame(self) -> pd.DataFrame:
        """One row a released cell: labels, `count` (unbiased weight) and `noisy` (noisy value)."""
        return self.domain.frame(self.keys).assign(count=self.weights(), noisy=self.values)

    def to_arrow(self) -> pyarrow.Table:
        """The same table for a Parquet file, labels as dictionaries."""
        import pyarrow as pa

        columns: dict = {}
        for i, name in enumerate(self.domain.attributes):
            codes = self.domain.column(self.keys, name)
            words = self.domain.labels and self.domain.labels[i]
            if isinstance(words, tuple):
                columns[name] = pa.DictionaryArray.from_arrays(
                    codes.astype(np.int32), list(words)
                )
            else:
                columns[name] = self.domain.decode(name, codes)
        weights, noisy = ("count", "noisy")
        if {weights, noisy} & set(columns):
            raise ValueError(
                "attributes may not be called 'count' or 'noisy' in a release file"
            )
        return pa.table({**columns, weights: self.weights(), noisy: self.values})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        told = {k: getattr(self, k) for k in ("decay", "theta", "tau", "sides", "scale")}
        return told | {"domain": self.domain.to_dict()}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A summary from its file's table and record."""
        domain = Domain.from_dict(about.pop("domain"))
        codes = []
        for name in domain.attributes:
            column = table[name].combine_chunks()
            if hasattr(column, "dictionary"):
                known = domain.encode(name, column.dictionary.to_pylist())
                codes.append(known[column.indices.to_numpy(zero_copy_only=False)])
            else:
                codes.append(domain.encode(name, column.to_numpy(zero_copy_only=False)))
        keys = domain.keys(np.stack(codes, axis=1))
        return cls(domain, keys, table["noisy"].to_numpy(), **about)
