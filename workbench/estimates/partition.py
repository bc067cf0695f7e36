"""Boxes of a space over several attributes, each with a count: generalised records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Int
from workbench.estimates.estimate import HIERARCHY, Estimate, without_errors
from workbench.estimates.schema import refuse_unless
from workbench.hierarchy import Hierarchy, OverHierarchy
from workbench.libraries import pd
from workbench.workload import Boxes, Recipe, Selections, queries_on_hierarchy


@dataclass(frozen=True, eq=False)
class Partition(OverHierarchy, Estimate):
    """Disjoint boxes [lo, hi) of the finest cells of a hierarchy over attributes, and their counts.

    `Boxes` are answered: a count is spread evenly over its box. Centred noise has no standard error in
    closed form.
    """

    hierarchy: Hierarchy
    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    values: Int[np.ndarray, " boxes"]
    kind: ClassVar[str] = "partition"
    contents: ClassVar[str] = "boxes"
    arrays: ClassVar = ("lo", "hi", "values")
    stored: ClassVar = (HIERARCHY,)

    def __repr__(self) -> str:
        return f"<Partition of {self.hierarchy!r}: {len(self):,} boxes>"

    def _answer(self, workload: Recipe, error: bool) -> Any:
        if isinstance(workload, Selections):
            return workload.summed(self._answer(workload.boxes[1], error), error)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if not isinstance(workload, Boxes):
            raise ValueError(f"{workload!r} cannot be asked of a partition: ask Boxes")
        answers = np.empty(len(workload))
        volume = (self.hi - self.lo).astype(float).prod(axis=1)
        for i, (lo, hi) in enumerate(zip(workload.lo, workload.hi, strict=True)):
            shared = (np.minimum(self.hi, hi) - np.maximum(self.lo, lo)).clip(0)
            answers[i] = (shared.astype(float).prod(axis=1) / volume) @ self.values
        return without_errors(answers, error)

    def to_frame(self) -> pd.DataFrame:
        """The released boxes as a table.

        Returns
        -------
        pandas.DataFrame
            One row a box: what it is of each attribute, in words, and its count, `noisy`.
        """
        return self.hierarchy.boxes_to_frame(self.lo, self.hi).assign(noisy=self.values)

    def _columns(self) -> dict[str, Any]:
        """The boxes, in words and as cells."""
        lo = {f"lo{i}": cells for i, cells in enumerate(self.lo.T)}
        hi = {f"hi{i}": cells for i, cells in enumerate(self.hi.T)}
        return {**self.to_frame(), **lo, **hi}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        axes = range(len(fields["hierarchy"].shape))
        lo = np.stack([table[f"lo{i}"].to_numpy() for i in axes], axis=1)
        hi = np.stack([table[f"hi{i}"].to_numpy() for i in axes], axis=1)
        return {"lo": lo, "hi": hi, "values": table["noisy"].to_numpy()}

    def _check_rows(self) -> None:
        shape = np.array(self.hierarchy.shape)
        inside = (self.lo >= 0) & (self.lo < self.hi) & (self.hi <= shape)
        refuse_unless(inside.all(), "lo and hi", "boxes of at least one cell of the space")
