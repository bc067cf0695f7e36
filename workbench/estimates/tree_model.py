"""A model of the tuples whose sums and tuples are exact, since its attributes hang together loosely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.arrays import Float
from workbench.estimates.junction_tree import CalibratedTree, JunctionTree
from workbench.estimates.microdata import Microdata
from workbench.estimates.model import Model, refuse_size


@dataclass(frozen=True, eq=False)
class TreeModel(Model):
    """A `Model` over a junction tree: every margin of few cells is exact, and tuples are independent."""

    @cached_property
    def tree(self) -> CalibratedTree:
        """Its cliques' margins."""
        tree = JunctionTree(self.domain.shape, self.prior, self.sets)
        return tree.calibrate(self.potentials)

    def margin(self, axes: Sequence[int]) -> Float[np.ndarray, "..."] | None:
        """What the model expects on some attributes, in shares; None if these have too many cells.

        Parameters
        ----------
        axes : sequence of int
            Attributes by number; an axis of the result each.

        Returns
        -------
        float64[...] or None
            Shares, which sum to 1.
        """
        return self.tree.margin(axes)

    def synthetic(self, size: int, seed: int = 0) -> Microdata:
        """Independent tuples of the model.

        Parameters
        ----------
        size : int
            How many tuples.
        seed : int
            Of the draw, which tells nothing.

        Returns
        -------
        Microdata
            The tuples, public.

        Raises
        ------
        ValueError
            If `size` is no whole number from 0 to 2^31.
        """
        refuse_size(size)
        codes = self.tree.draw(int(size), np.random.default_rng(seed))
        return Microdata(self.domain, np.sort(self.domain.keys(codes)), self.gap, self.lacks)
