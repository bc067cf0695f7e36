"""A compact summary in another basis: some nodes of a noisy dyadic tree, or Haar coefficients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Float, Int
from workbench.estimates.bars import Bars
from workbench.estimates.estimate import Stored
from workbench.estimates.law import Law
from workbench.estimates.schema import refuse_unless
from workbench.estimates.summary import Summary
from workbench.libraries import pd
from workbench.transform import TRANSFORMS_BY_NAME, Dyadic, Haar, TransformBasis
from workbench.workload import Recipe, Workload


def _transform_to_dict(transform: Dyadic | Haar) -> dict[str, Any]:
    return {"name": type(transform).__name__, **asdict(transform)}


def _transform_from_dict(fields: dict[str, Any]) -> Dyadic | Haar:
    arguments = {name: x for name, x in fields.items() if name != "name"}
    return TRANSFORMS_BY_NAME[fields["name"]](**arguments)


@dataclass(frozen=True, eq=False, repr=False)
class TransformedSummary(Summary):
    """Released nodes: `keys` are their numbers in the basis of `transform` on the domain (sorted).

    `law` is that of the whole release, of which each part of the basis has its share. In a
    `consistent` tree nodes below absent ones are absent.
    """

    law: Law
    transform: Dyadic | Haar = Dyadic()
    consistent: bool = False
    kind: ClassVar[str] = "tree"
    contents: ClassVar[str] = "nodes"
    stored: ClassVar = (
        *Summary.stored,
        Stored("transform", write=_transform_to_dict, read=_transform_from_dict),
        Stored("consistent", optional=True),
    )

    @cached_property
    def basis(self) -> TransformBasis:
        """The transform on the domain."""
        return self.transform.on(self.domain)

    def __repr__(self) -> str:
        nodes = sum(part.size for part in self.basis.noise_blocks)
        return (
            f"<TransformedSummary of {self._attribute_names} by {self.transform!r}: "
            f"{len(self):,} of {nodes:,} nodes>"
        )

    def answer(  # type: ignore[override]  # it has no cells that may be absent
        self, workload: Recipe, weights: str = "unbiased", error: bool = False
    ) -> Any:
        """Estimated counts of ranges, and of what is made of ranges: subsets, boxes.

        Nodes that were not released count for nothing. The standard error is that of `Summary.answer`,
        over the nodes that the query needs; NaN where there is no closed form, and for wavelet queries
        of several ranges.

        Parameters
        ----------
        workload : Workload
            Queries over the domain that are made of ranges.
        weights : "unbiased" or "raw"
            See `weights`.
        error : bool
            Whether standard errors are wanted too.

        Returns
        -------
        float64[queries], or a pair of them
            Answers in counts; with `error` also the standard error of each.

        Raises
        ------
        ValueError
            For other weights, or a workload that is not made of ranges.
        """
        queries: Workload = workload.on(self.domain)
        which, pieces = self.basis.pieces(queries)
        weight = self.weights(weights)
        answers: Any = np.zeros(len(pieces))
        variance: Any = np.zeros(len(pieces))
        if error:
            sampling = np.maximum(self.tau - np.abs(self.values), 0) * self.tau
        for term in self.basis.terms(pieces):
            places, released = self._find(term.nodes)
            at = places[released]
            factor = np.broadcast_to(term.factor, released.shape)
            answers[term.pieces[released]] += factor[released] * weight[at]
            if error:
                variance[term.pieces] += factor**2 * self._noise[self._part(term.nodes)]
                variance[term.pieces[released]] += factor[released] ** 2 * sampling[at]
        answers = np.bincount(which, answers, len(queries))
        if not error:
            return answers
        variance = np.bincount(which, variance, len(queries))
        closed_form = self.theta <= 1 and self.sides == 2 and not self.consistent
        if not closed_form or (weights == "raw" and self.tau > 1):
            variance[:] = np.nan
        if isinstance(self.transform, Haar):  # pieces share coefficients
            variance[np.bincount(which, minlength=len(queries)) > 1] = np.nan
        return answers, np.sqrt(variance)

    def bars(  # type: ignore[override]  # as above
        self, workload: Recipe, weights: str = "unbiased"
    ) -> Bars:
        """How far answers may be off, in two parts, over the nodes that they need.

        As for `Summary.bars`; each part of the basis has its own noise. NaN where a query is made of
        several ranges of wavelets.

        Parameters
        ----------
        workload : Workload
            Queries over the domain that are made of ranges.
        weights : "unbiased" or "raw"
            See `weights`.

        Returns
        -------
        Bars
            Of each query; absent are nodes.
        """
        queries: Workload = workload.on(self.domain)
        errors = self.answer(queries, weights, error=True)[1]
        which, pieces = self.basis.pieces(queries)
        cut = self.cut
        empty = [law.empty_cell(self.theta, self.sides) for law in self._laws]
        most = np.array([law.absent_at_most(cut, self.sides) for law in self._laws])
        mean = np.array([moments.mean for moments in empty])
        spread = np.array([moments.square - moments.mean**2 for moments in empty])
        if self.tau:  # those that passed and were not drawn are among the absent ones
            spread = self._noise
        sampling = np.maximum(self.tau - np.abs(self.values), 0) * self.tau
        of_pieces: Any = np.zeros((4, len(pieces)))
        absent_nodes, absent, shift, variance = of_pieces
        for term in self.basis.terms(pieces):
            places, released = self._find(term.nodes)
            part = self._part(term.nodes)
            factor = np.broadcast_to(term.factor, released.shape)
            missing = ~released & (factor != 0)
            absent_nodes[term.pieces] += missing
            absent[term.pieces] += np.abs(factor) * missing * most[part]
            shift[term.pieces] += factor * mean[part]
            variance[term.pieces] += factor**2 * np.where(
                released, self._noise[part], spread[part]
            )
            variance[term.pieces[released]] += (
                factor[released] ** 2 * sampling[places[released]]
            )
        absent_nodes, absent, shift, variance = (
            np.bincount(which, x, len(queries)) for x in of_pieces
        )
        noise = np.sqrt(variance + shift**2)
        several = np.bincount(which, minlength=len(queries)) > 1
        if isinstance(self.transform, Haar):
            noise[several] = np.nan
        if weights == "raw" and self.tau > 1:
            noise[:] = np.nan
        return Bars(np.where(np.isnan(errors), noise, errors), absent_nodes, absent)

    def deviations(self, filled_law: Law | None = None) -> Float[np.ndarray, " nodes"]:
        """The standard deviation of each released weight, in counts."""
        sampling = self.tau * np.maximum(self.tau - np.abs(self.values), 0)
        return np.sqrt(self._noise[self._part(self.keys)] + sampling)

    @property
    def absent_cells(self) -> int:
        """How many nodes were not released."""
        return sum(part.size for part in self.basis.noise_blocks) - len(self)

    def absent_at_most(self, filled_law: Law | None = None) -> float:
        """What each absent node holds at most, in counts, where noise is widest."""
        return max(law.absent_at_most(self.cut, self.sides) for law in self._laws)

    def _find(self, nodes: Int[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
        """Where nodes stand among the released ones, and whether they were released."""
        if not len(self):
            return np.zeros(len(nodes), np.int64), np.zeros(len(nodes), bool)
        at = np.searchsorted(self.keys, nodes)
        np.minimum(at, len(self) - 1, out=at)
        return at, self.keys[at] == nodes

    @cached_property
    def _laws(self) -> list[Law]:
        """Of the noise on a node of each part."""
        return [self.law.of_nodes(part) for part in self.basis.noise_blocks]

    @cached_property
    def _noise(self) -> Float[np.ndarray, " parts"]:
        """The variance of the noise on a node of each part."""
        return np.array([law.variance for law in self._laws])

    def _part(self, nodes: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        ends = np.cumsum([part.size for part in self.basis.noise_blocks])
        return np.searchsorted(ends, nodes, side="right")

    def to_frame(self) -> pd.DataFrame:
        """The released nodes as a table.

        Returns
        -------
        pandas.DataFrame
            One row a node: level, first and last + 1 key, `count` (weight) and `noisy`.
        """
        places = self.basis.places(self.keys)
        return pd.DataFrame(places | {"count": self.weights(), "noisy": self.values})

    def _columns(self) -> dict[str, Any]:
        """The same table, with the nodes' numbers."""
        columns = self.basis.places(self.keys) | {"node": self.keys}
        return columns | {"count": self.weights(), "noisy": self.values}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return {"keys": table["node"].to_numpy(), "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        super()._check_rows()
        nodes = sum(part.size for part in self.basis.noise_blocks)
        inside = not len(self) or 0 <= self.keys[0] <= self.keys[-1] < nodes
        refuse_unless(inside, "nodes", f"numbers from 0 to {nodes - 1}")
