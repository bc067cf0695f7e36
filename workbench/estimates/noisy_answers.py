"""Noisy answers to linear queries, as they were bought: what inference eats and a bank keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from workbench.domain import Domain
from workbench.estimates.summary import check_weights
from workbench.value import read_only, sealed
from workbench.workload import (
    Products,
    TableQueries,
    Together,
    Workload,
    linear_queries,
    serialise,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class NoisyAnswers:
    """Queries over a domain, their noisy answers, and the variance of the independent noise on each.

    A query may be there twice, with different noise: both answers are kept.
    """

    domain: Domain
    workload: Workload
    values: Float[np.ndarray, " queries"]
    variances: Float[np.ndarray, " queries"]
    kind: ClassVar[str] = "answers"
    contents: ClassVar[str] = "queries"

    def __post_init__(self):
        fix = object.__setattr__
        fix(self, "workload", linear_queries(self.workload, self.domain))
        fix(self, "values", read_only(_numbers("values", self.values)))
        variances = _numbers("variances", self.variances)
        fix(self, "variances", read_only(np.broadcast_to(variances, self.values.shape).copy()))
        if self.values.shape != (len(self.workload),):
            raise ValueError(
                f"NoisyAnswers.values of shape {self.values.shape} do not fit "
                f"{len(self.workload)} queries"
            )
        if (bad := ~(self.variances > 0)).any():
            i = int(bad.argmax())
            raise ValueError(
                f"NoisyAnswers.variances[{i}] = {self.variances[i]} is not allowed: need numbers > 0"
            )

    @classmethod
    def history(cls, answers: NoisyAnswers | Iterable[NoisyAnswers]) -> NoisyAnswers:
        """Several releases as one, in their order; over different domains, or none, is a ValueError."""
        answers = [answers] if isinstance(answers, NoisyAnswers) else list(answers)
        for other in answers:
            if not isinstance(other, NoisyAnswers):
                raise ValueError(f"{other!r} is not allowed in a history: need NoisyAnswers")
            if other.domain != answers[0].domain:
                names = (" × ".join(x.domain.attributes) for x in (answers[0], other))
                raise ValueError("a history over {} and over {} does not add up".format(*names))
        if not sum(map(len, answers)):
            raise ValueError("the history is empty: need at least one noisy answer")
        if len(answers) == 1:
            return answers[0]
        return cls(
            answers[0].domain,
            Together(tuple(a.workload for a in answers)),
            sealed(np.concatenate([a.values for a in answers])),
            sealed(np.concatenate([a.variances for a in answers])),
        )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<NoisyAnswers of {names}: {len(self):,} queries>"

    def __getitem__(self, rows: Int[np.ndarray, " k"] | Bool[np.ndarray, " queries"]) -> Self:
        """Some of the queries with their answers."""
        rows = np.arange(len(self))[rows]
        return type(self)(
            self.domain, self.workload[rows], self.values[rows], self.variances[rows]
        )

    @property
    def scales(self) -> Float[np.ndarray, " queries"]:
        """The scale b of Laplace noise of such variance, 2b²."""
        return np.sqrt(self.variances / 2)

    @cached_property
    def _held(self) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
        """Each different query once: its place by its text, the weighted mean, and its variance."""
        known: dict[str, int] = {}
        at = np.array(
            [known.setdefault(t, len(known)) for t in serialise.to_text(self.workload)], int
        )
        weight = np.bincount(at, 1 / self.variances, len(known))
        mean = np.bincount(at, self.values / self.variances, len(known)) / weight
        single = np.bincount(at, minlength=len(known))[at] == 1
        mean[at[single]] = self.values[single]  # as they are, without rounding
        return known, mean, 1 / weight

    @cached_property
    def _cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Keys of all cells of the domain with their answers and variances, if all are held."""
        if self.domain.size > len(self):
            return None
        codes = np.arange(self.domain.size)
        texts = serialise.to_text(Products.boxes(self.domain, *_corners(self.domain, codes)))
        known, mean, variance = self._held
        at = np.array([known.get(t, -1) for t in texts])
        return None if (at < 0).any() else (codes, mean[at], variance[at])

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """What was bought for these very queries, float64[queries]; with `error` standard errors too.

        Of a query that is held twice, the mean that weighs inversely to variances. Where every cell of
        the domain is held, sums of cells are answered as well. Any other query is a ValueError: it
        needs inference.
        """
        check_weights(weights)
        asked = workload.on(self.domain)
        if self._cells is not None and not isinstance(
            asked, Products | TableQueries | Together
        ):
            keys, means, variances = self._cells
            found = asked.sums(self.domain, keys, means)
            spread = asked.sums(self.domain, keys, variances) if error else None
        else:
            known, means, variances = self._held
            texts = serialise.to_text(linear_queries(asked, self.domain))
            at = np.array([known.get(t, -1) for t in texts], int)
            if (new := at < 0).any():
                raise ValueError(
                    f"{int(new.sum())} of {len(at)} queries were never asked, the first is query "
                    f"{int(new.argmax())}: inference answers them from this history (KernelPCA)"
                )
            found, spread = means[at], variances[at]
        return (found, np.sqrt(spread)) if error else found

    def to_frame(self) -> pd.DataFrame:
        """One row a query: its words, the standard deviation of its noise, and its `noisy` answer."""
        import pandas as pd

        texts = serialise.to_text(self.workload)
        told = dict(query=texts, deviation=np.sqrt(self.variances), noisy=self.values)
        return pd.DataFrame(told)

    def to_arrow(self) -> pyarrow.Table:
        """One row a query for a Parquet file: its words, variance and noisy answer."""
        import pyarrow as pa

        texts = pa.array(serialise.to_text(self.workload), pa.large_string())
        return pa.table({"query": texts, "variance": self.variances, "noisy": self.values})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"domain": self.domain.to_dict()}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """Answers from their file's table and record."""
        domain = Domain.from_dict(about["domain"])
        workload = serialise.from_text(domain, table["query"].to_pylist())
        return cls(domain, workload, table["noisy"].to_numpy(), table["variance"].to_numpy())


def _corners(domain: Domain, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes = domain.codes(keys)
    return codes, codes + 1


def _numbers(name: str, values: Any) -> Float[np.ndarray, "..."]:
    values = np.asarray(values, float)
    if (bad := ~np.isfinite(values)).any():
        i = int(np.flatnonzero(bad.ravel())[0])
        raise ValueError(
            f"NoisyAnswers.{name}[{i}] = {values.ravel()[i]} is not allowed: need finite numbers"
        )
    return values
