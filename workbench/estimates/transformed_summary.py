"""A compact summary in another basis: some nodes of a noisy dyadic tree, or Haar coefficients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int

from workbench.domain import Domain
from workbench.estimates.summary import Summary, geometric_variance
from workbench.transform import TRANSFORMS_BY_NAME, Basis, Dyadic, Haar
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False, repr=False)
class TransformedSummary(Summary):
    """Released nodes: `keys` are their numbers in the basis of `transform` on the domain (sorted).

    `decay` is ε/l1 of the whole release; each part of the basis has its share of it. In a `consistent`
    tree nodes below absent ones are absent.
    """

    transform: Dyadic | Haar = Dyadic()
    consistent: bool = False
    kind: ClassVar[str] = "tree"
    contents: ClassVar[str] = "nodes"

    @cached_property
    def basis(self) -> Basis:
        """The transform on the domain."""
        return self.transform.on(self.domain)

    def __repr__(self) -> str:
        names, nodes = (
            " × ".join(self.domain.attributes),
            sum(p.size for p in self.basis.noise_blocks),
        )
        return f"<Tree of {names} by {self.transform!r}: {len(self):,} of {nodes:,} nodes>"

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts, float64[queries]; with `error` also the standard error of each.

        Ranges, and what is made of ranges: subsets, boxes. Nodes that were not released count for
        nothing. The standard error is that of `Summary.answer`, over the nodes that the query needs;
        NaN where there is no closed form, and for wavelet queries of several ranges.
        """
        workload = workload.on(self.domain)
        which, pieces = self.basis.pieces(workload)
        weight, (answers, variance) = self.weights(weights), np.zeros((2, len(pieces)))
        lost = np.maximum(self.tau - np.abs(self.values), 0) * self.tau if error else None
        for term in self.basis.terms(pieces):
            at, held = self._find(term.nodes)
            factor = np.broadcast_to(term.factor, held.shape)
            answers[term.pieces[held]] += factor[held] * weight[at[held]]
            if error:
                variance[term.pieces] += factor**2 * self._noise[self._part(term.nodes)]
                variance[term.pieces[held]] += factor[held] ** 2 * lost[at[held]]
        answers = np.bincount(which, answers, len(workload))
        if not error:
            return answers
        variance = np.bincount(which, variance, len(workload))
        closed = self.theta <= 1 and self.sides == 2 and not self.consistent
        if not closed or (weights == "raw" and self.tau > 1):
            variance[:] = np.nan
        if isinstance(self.transform, Haar):  # pieces share coefficients
            variance[np.bincount(which, minlength=len(workload)) > 1] = np.nan
        return answers, np.sqrt(variance)

    def _find(self, nodes: Int[np.ndarray, " k"]):
        """Where the nodes stand among the released ones, and whether they do."""
        if not len(self):
            return np.zeros(len(nodes), np.int64), np.zeros(len(nodes), bool)
        at = np.searchsorted(self.keys, nodes)
        np.minimum(at, len(self) - 1, out=at)
        return at, self.keys[at] == nodes

    @cached_property
    def _noise(self) -> Float[np.ndarray, " parts"]:
        """The variance of the noise on a node of each part."""
        decays = (
            self.decay * float(p.share) / p.nodes_per_count for p in self.basis.noise_blocks
        )
        return np.array([*map(geometric_variance, decays)])

    def _part(self, nodes: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        ends = np.cumsum([p.size for p in self.basis.noise_blocks])
        return np.searchsorted(ends, nodes, side="right")

    def to_frame(self) -> pd.DataFrame:
        """One row a released node: level, first and last + 1 key, `count` (weight) and `noisy`."""
        import pandas as pd

        places = self.basis.places(self.keys)
        return pd.DataFrame(places | {"count": self.weights(), "noisy": self.values})

    def to_arrow(self) -> pyarrow.Table:
        """The same table for a Parquet file, with the nodes' numbers."""
        import pyarrow as pa

        columns = self.basis.places(self.keys) | {"node": self.keys}
        return pa.table(columns | {"count": self.weights(), "noisy": self.values})

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        transform = {"name": type(self.transform).__name__, **asdict(self.transform)}
        return super().metadata() | {"transform": transform, "consistent": self.consistent}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A tree from its file's table and record."""
        told = about.pop("transform")
        transform = TRANSFORMS_BY_NAME[told.pop("name")](**told)
        domain = Domain.from_dict(about.pop("domain"))
        keys, values = table["node"].to_numpy(), table["noisy"].to_numpy()
        return cls(domain, keys, values, **about, transform=transform)
