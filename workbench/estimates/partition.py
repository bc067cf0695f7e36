"""Boxes of a space over several attributes, each with a count: generalised records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Int

from workbench.estimates.summary import check_weights
from workbench.hierarchy import Hierarchy, from_dict, to_dict
from workbench.value import read_only
from workbench.workload import Boxes, Workload, queries_on_hierarchy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Partition:
    """Disjoint boxes [lo, hi) of the finest cells of a hierarchy over attributes, and their counts."""

    hierarchy: Hierarchy
    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    values: Int[np.ndarray, " boxes"]
    kind: ClassVar[str] = "partition"
    contents: ClassVar[str] = "boxes"

    def __post_init__(self):
        for name in ("lo", "hi", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def domain(self) -> Hierarchy:
        """The hierarchy, which workloads are asked over."""
        return self.hierarchy

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Partition of {self.hierarchy!r}: {len(self):,} boxes>"

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Estimated counts of `Boxes`, float64[queries]: a count is spread evenly over its box.

        With `error` also standard errors: NaN, since centred noise has none in closed form.
        """
        check_weights(weights)
        workload = queries_on_hierarchy(workload, self.hierarchy)
        if not isinstance(workload, Boxes):
            raise ValueError(f"{workload!r} cannot be asked of a partition: ask Boxes")
        answers = np.empty(len(workload))
        volume = (self.hi - self.lo).astype(float).prod(axis=1)
        for i, (lo, hi) in enumerate(zip(workload.lo, workload.hi, strict=True)):
            shared = (np.minimum(self.hi, hi) - np.maximum(self.lo, lo)).clip(0)
            answers[i] = (shared.astype(float).prod(axis=1) / volume) @ self.values
        return (answers, np.full(len(answers), np.nan)) if error else answers

    def to_frame(self) -> pd.DataFrame:
        """One row a box: what it is of each attribute, in words, and its count, `noisy`."""
        return self.hierarchy.boxes_to_frame(self.lo, self.hi).assign(noisy=self.values)

    def to_arrow(self) -> pyarrow.Table:
        """The boxes for a Parquet file, in words and as cells."""
        import pyarrow as pa

        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        for side in ("lo", "hi"):
            for i, column in enumerate(getattr(self, side).T):
                table = table.append_column(f"{side}{i}", pa.array(column))
        return table.replace_schema_metadata(None)

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {"hierarchy": to_dict(self.hierarchy)}

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A partition from its file's table and record."""
        tree = from_dict(about["hierarchy"])
        lo, hi = (
            np.stack([table[f"{side}{i}"].to_numpy() for i in range(len(tree.shape))], axis=1)
            for side in ("lo", "hi")
        )
        return cls(tree, lo, hi, table["noisy"].to_numpy())
