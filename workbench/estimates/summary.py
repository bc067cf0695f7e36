"""A compact summary of a noisy table: some of its cells, with what makes their answers unbiased."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, expm1
from typing import Any, ClassVar, Self

import numpy as np

from workbench.arrays import Bool, Float, Int
from workbench.domain import Domain
from workbench.estimates.estimate import DOMAIN, Estimate, Stored, check_weights
from workbench.libraries import pa, pd
from workbench.value import read_only
from workbench.workload import Workload


def geometric_variance(decay: float) -> float:
    """2α/(1−α)² with α = exp(−decay): the variance of two-sided geometric noise."""
    return 2 * exp(-decay) / expm1(-decay) ** 2  # 1 − α would cancel


@dataclass(frozen=True, eq=False)
class Summary(Estimate):
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
    arrays: ClassVar = ("keys", "values")
    stored: ClassVar = (
        Stored("decay"),
        *(Stored(name, optional=True) for name in ("theta", "tau", "sides", "scale")),
        DOMAIN,
    )

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return (
            f"<Summary of {self._attribute_names}: {len(self):,} of {self.domain.size:,} cells>"
        )

    def where(self, mask: Bool[np.ndarray, " cells"], **changes: Any) -> Self:
        """The released cells that a mask selects.

        Parameters
        ----------
        mask : bool[cells]
            Which of the released cells remain.
        **changes
            Fields that are not as before, such as `theta`.

        Returns
        -------
        Summary
            A smaller one, of the same class.
        """
        return replace(self, keys=self.keys[mask], values=self.values[mask], **changes)

    def weights(self, kind: str = "unbiased") -> Float[np.ndarray, " cells"]:
        """What each released cell counts for.

        Parameters
        ----------
        kind : "unbiased" or "raw"
            "unbiased": sign(v)·max(|v|, τ), the Horvitz–Thompson weight: answers are unbiased for the
            noisy table after its filter. "raw": the noisy values, biased but closer for single cells.

        Returns
        -------
        float64[cells]
            In counts.

        Raises
        ------
        ValueError
            For another kind.
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
        workload: Workload,
        weights: str = "unbiased",
        error: bool = False,
        absent: float = 0.0,
    ) -> Any:
        """Estimated counts, and how far they may be off.

        The standard error, of the answer against the true counts, is
        sqrt(cells · 2α/(1−α)² + Σ τ·(τ − |v|)⁺ over released v): noise on every cell of the query, and
        an unbiased estimate of the sampling variance. It is NaN where the release alone gives no
        closed form: after a filter (θ > 1 or one side), for uniform samples, for raw weights of
        sampled cells, and with `absent`.

        Parameters
        ----------
        workload : Workload
            Queries over the domain.
        weights : "unbiased" or "raw"
            See `weights`.
        error : bool
            Whether standard errors are wanted too.
        absent : float
            What every cell that was not released counts for; half of θ is the paper's heuristic for
            filtered cells.

        Returns
        -------
        float64[queries], or a pair of them
            Answers in counts; with `error` also the standard error of each.

        Raises
        ------
        ValueError
            For other weights, or a workload that does not fit the domain.
        """
        workload = workload.on(self.domain)
        answers = workload.sums(self.domain, self.keys, self.weights(weights))
        if absent:
            released = workload.sums(self.domain, self.keys, np.ones(len(self), np.int64))
            answers += absent * (workload.cells(self.domain) - released)
        if not error:
            return answers
        closed_form = self.theta <= 1 and self.sides == 2 and self.scale == 1 and not absent
        if self.decay is None or not closed_form or (weights == "raw" and self.tau > 1):
            return answers, np.full(len(workload), np.nan)
        variance = workload.cells(self.domain) * geometric_variance(self.decay)
        if self.tau:
            sampling = self.tau * np.maximum(self.tau - np.abs(self.values), 0)
            variance += workload.sums(self.domain, self.keys, sampling)
        return answers, np.sqrt(variance)

    def to_frame(self) -> pd.DataFrame:
        """The released cells as a table.

        Returns
        -------
        pandas.DataFrame
            One row a cell: labels, `count` (unbiased weight) and `noisy` (noisy value).
        """
        return self.domain.frame(self.keys).assign(count=self.weights(), noisy=self.values)

    def _columns(self) -> dict:
        """The same table; labels become dictionaries."""
        columns: dict = {}
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
                "attributes may not be called 'count' or 'noisy' in a release file"
            )
        return columns | {"count": self.weights(), "noisy": self.values}

    @classmethod
    def _from_columns(cls, table, fields: dict) -> dict:
        domain = fields["domain"]
        codes = []
        for name in domain.attributes:
            column = table[name].combine_chunks()
            if hasattr(column, "dictionary"):
                code_of_entry = domain.encode(name, column.dictionary.to_pylist())
                entries = column.indices.to_numpy(zero_copy_only=False)
                codes.append(code_of_entry[entries])
            else:
                codes.append(domain.encode(name, column.to_numpy(zero_copy_only=False)))
        keys = domain.keys(np.stack(codes, axis=1))
        return {"keys": keys, "values": table["noisy"].to_numpy()}
