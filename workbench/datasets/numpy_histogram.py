"""NumpyHistogram: an array of counts in numpy's own format, as benchmarks of the field have them."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np

from workbench.data import Bound, Public, SparseTable
from workbench.datasets.compressed import opened
from workbench.datasets.own_file import OwnFile, bound_field
from workbench.spaces import Domain
from workbench.value import parameter, value

_MOST_CELLS = 2**27


@value
class NumpyHistogram(OwnFile):
    """The counts of a `.npy` file of your own, over a domain of the array's shape.

    A dense array holds its empty cells as well, so that its shape says nothing about the
    counts: whoever made it chose the domain, and it is taken as public. (An array cut to the
    values that occur does not have a public shape.) Attributes are `axis0`, `axis1`, …

    One unit is whoever `bound` speaks of; an array of totals cannot be bounded here, so that
    whoever made it must have, and you state how: Bound(5, 5, 5) where someone has up to 5 of the
    counts, Bound(1) where each count is a unit of its own, or PUBLIC. The truth is not public
    unless you say so.
    """

    path: str
    bound: Bound | Public = bound_field("array")
    truth_public: bool = parameter(False, choices=(False, True), doc="counts may be shown")

    @property
    def domain(self) -> Domain:
        """The array's shape; reads the file."""
        return _domain(self._array())

    def load(self) -> SparseTable:
        """The table; what is not an array of whole numbers >= 0 is a ValueError."""
        array = self._array()
        return SparseTable.from_dense(
            _domain(array), array, self.bound, truth_public=self.truth_public
        )

    def _array(self) -> np.ndarray:
        path = self._find()
        self._refuse_large(path)
        with opened(path) as (stream, _):
            try:
                array = np.lib.format.read_array(stream, allow_pickle=False)
            except (ValueError, EOFError, MemoryError) as e:
                raise ValueError(f"{path} is not a whole .npy array of numbers: {e}") from None
        if array.dtype.kind == "f":
            array = array.astype(float)  # half precision takes 2⁵³ for infinite
        bad = ~((array >= 0) & (array <= 2**53) & (array == np.floor(array)))  # NaN is bad
        if bad.any():
            cell = tuple(map(int, np.argwhere(bad)[0]))
            raise ValueError(
                f"{path}, cell {cell}: found {array[cell]}, need a whole number >= 0"
            )
        return array

    def _refuse_large(self, path: Path) -> None:
        """A ValueError, before there is memory for it, if the file says it holds no such array."""
        readers = {(1, 0): np.lib.format.read_array_header_1_0}
        readers[2, 0] = np.lib.format.read_array_header_2_0
        with opened(path) as (stream, _):
            try:
                version = np.lib.format.read_magic(stream)
                if version not in readers:
                    raise ValueError(f"version {version}")
                shape, _, dtype = readers[version](stream)
            except (ValueError, EOFError) as e:
                raise ValueError(f"{path} is not a whole .npy array of numbers: {e}") from None
        if dtype.kind not in "iuf" or not shape or 0 in shape:
            raise ValueError(
                f"{path} holds {dtype} of shape {shape}: need counts, at least one"
            )
        if prod(shape) > _MOST_CELLS:
            raise ValueError(f"{path} has {prod(shape):,} cells, need at most {_MOST_CELLS:,}")


def _domain(array: np.ndarray) -> Domain:
    return Domain(tuple(f"axis{i}" for i in range(array.ndim)), array.shape)
