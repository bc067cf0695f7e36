"""A table's attributes, one after another."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from workbench.arrays import Int, Num, UInt8
from workbench.domain import Domain
from workbench.hierarchy.digits import Digits
from workbench.hierarchy.keys import Keys
from workbench.hierarchy.protocol import Hierarchy, refuse_release_columns
from workbench.libraries import pd
from workbench.value import value


@value
class Attributes(Hierarchy):
    """A table's attributes, one after another in the order of its domain: a level each.

    Keys are those of the domain. Where a mechanism chooses which attribute to refine next, the order
    does not matter.

    Parameters
    ----------
    domain : Domain
        Whose attributes they are.

    Raises
    ------
    ValueError
        If an attribute has the name of a column of releases, such as "level".

    Examples
    --------
    >>> Attributes(Domain(("age", "sex"), (100, 2))).digits.radices
    (100, 2)
    """

    domain: Domain
    reasons: ClassVar[tuple[str, ...]] = ("not in the domain",)

    def __post_init__(self) -> None:
        refuse_release_columns(self)

    @cached_property
    def digits(self) -> Digits:
        """The codes."""
        return Digits(self.domain.shape)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the domain."""
        return self.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The same, an attribute."""
        return self.domain.shape

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """Each attribute that has several values can be split once, into all of them."""
        return tuple((n,) if n > 1 else () for n in self.domain.shape)

    @property
    def branching(self) -> int:
        """How many children a node may have that can be split further."""
        return max(self.domain.shape[:-1], default=0)

    def children(self, level: int, nodes: Keys) -> Int[np.ndarray, " n"]:
        """As many as the attribute has values."""
        return np.full(nodes.shape[1], (*self.domain.shape, 0)[level])

    def encode(self, frame: pd.DataFrame) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """The keys of rows that lie in the domain; a column an attribute."""
        if self.domain.preparation is not None:
            raise ValueError(
                "the domain says how its labels follow from columns: need SparseTable.from_frame, then "
                "Records.from_table"
            )
        missing = [a for a in self.attributes if a not in frame]
        if missing:
            raise ValueError(f"columns {missing} are missing: need {list(self.attributes)}")
        codes = np.stack([self.domain.encode(a, frame[a]) for a in self.attributes], axis=1)
        inside = (codes >= 0).all(axis=1)
        keys = self.domain.keys(codes[inside]).astype(np.uint64)
        return keys[None], np.asarray(~inside, np.uint8)

    def corners(self, nodes: Keys) -> Int[np.ndarray, "attributes n"]:
        """The codes of keys."""
        return self.domain.codes(nodes[0].astype(np.int64)).T

    def boxes(
        self,
        levels: Int[np.ndarray, " n"],
        nodes: Keys,
        values: Num[np.ndarray, " n"],
        lo: Int[np.ndarray, "boxes attributes"],
        hi: Int[np.ndarray, "boxes attributes"],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ of the values in boxes of cells, by volume where a box cuts a node; and if it cuts."""
        low, high = self._node_boxes(levels, nodes)
        sums = np.zeros(len(lo))
        cut = np.zeros(len(lo), bool)
        for i, (a, b) in enumerate(zip(lo, hi, strict=True)):
            overlap = np.minimum(high, b[:, None]) - np.maximum(low, a[:, None])
            fraction = (overlap.clip(0) / (high - low)).prod(axis=0)
            sums[i] = fraction @ values
            cut[i] = ((fraction > 0) & (fraction < 1)).any()
        return sums, cut

    def _node_boxes(
        self, levels: Int[np.ndarray, " n"], nodes: Keys
    ) -> tuple[np.ndarray, np.ndarray]:
        """The box of cells of each node: first and last + 1 code (attributes, nodes)."""
        low = self.corners(nodes)
        free = np.asarray(levels)[None] <= np.arange(len(self.shape))[:, None]
        return low, np.where(free, np.array(self.shape)[:, None], low + 1)

    def frame(self, levels: Int[np.ndarray, " n"], nodes: Keys) -> pd.DataFrame:
        """The labels, and "*" for what is not refined."""
        low, high = self._node_boxes(levels, nodes)
        return self.boxes_to_frame(low.T, high.T)

    def boxes_to_frame(
        self, lo: Int[np.ndarray, "boxes attributes"], hi: Int[np.ndarray, "boxes attributes"]
    ) -> pd.DataFrame:
        """One row a box: a label of each attribute, or "*" for all of it."""
        frame = self.domain.frame(self.domain.keys(lo)).astype(object)
        wide = (hi - lo > 1) & (np.array(self.shape) > 1)
        mixed = {
            name: str
            for name, any_wide in zip(frame, wide.any(axis=0), strict=True)
            if any_wide
        }
        return frame.astype(mixed).mask(wide, "*")  # files have columns of one type
