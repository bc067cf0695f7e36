"""Tree of boxes in the space of points. Each level of the tree halves a box along every dimension."""

from __future__ import annotations

from functools import cache, cached_property
from typing import ClassVar

import numpy as np

from workbench.compiled import njit, pd
from workbench.spaces.hierarchies import WORD, Boxed, Digits, Keys
from workbench.value import Float, Int, UInt8, UInt64, parameter, sealed, value

_MIN_SIDE = 1e-200  # smallest side of a box
_BITS = 12  # bits of a coordinate that are interleaved at a time


@value
class Quadtree(Boxed):
    """Tree of boxes that divides a space of points. Each level halves every box along every dimension. So a
    box in two dimensions is divided into four boxes.

    The whole space is the box from `low` to `high`, which must be public knowledge. The workbench leaves out
    points outside the box, and points with a missing coordinate (NaN). Points on the upper edge of the box
    count as inside.

    Parameters
    ----------
    dims : int
        Number of dimensions, at most 16.
    depth : int
        Number of times that the box is halved along each dimension, at most 52.
    low, high : tuple of float, optional
        Lower and upper corner of the box, with one coordinate per dimension. By default, each dimension runs
        from 0 to 1.
    attributes : tuple of str, optional
        Names of the columns with the coordinates, one per dimension. By default, the names are x1, x2, and so
        on.

    Raises
    ------
    ValueError
        If the number of coordinates or names is wrong, if a name occurs twice, or if `low` is not below
        `high`. The error is also raised if the number of boxes on the lowest level is too large for keys of
        128 bits.

    Examples
    --------
    >>> Quadtree(2, 3).encode(np.array([[0.99, 0.0], [2.0, 0.0]]))
    (array([[42]], dtype=uint64), array([0, 1], dtype=uint8))
    """

    reasons: ClassVar[tuple[str, ...]] = ("outside the box",)

    dims: int = parameter(low=1, high=16, integer=True)
    depth: int = parameter(low=1, high=52, integer=True)
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    attributes: tuple[str, ...] = None  # type: ignore[assignment]  # filled below

    def __post_init__(self) -> None:
        names = tuple(f"x{i + 1}" for i in range(self.dims))
        object.__setattr__(self, "attributes", self.attributes or names)
        for name in ("low", "high", "attributes"):
            if (entries := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(entries))
                if len(entries) != self.dims:
                    need = f"must have {self.dims} entries"
                    raise ValueError(f"Quadtree.{name} = {entries!r} {need}")
        if not all(_MIN_SIDE < b - a < 1 / _MIN_SIDE for a, b in zip(*self.box, strict=True)):
            raise ValueError(
                f"Quadtree.low = {self.low!r} must lie below high = {self.high!r}, by {_MIN_SIDE} to "
                f"{1 / _MIN_SIDE}"
            )
        if len(set(self.attributes)) < self.dims:
            raise ValueError(f"Quadtree.attributes = {self.attributes!r} must differ")
        super().__post_init__()

    @cached_property
    def digits(self) -> Digits:
        """Number system in which keys are written. A key is the number of a box on the lowest level of the
        tree.

        A key has one digit per level, and a digit has one bit per dimension. Along each dimension, a level
        divides a box into a lower half and an upper half. The bit of the dimension is 0 for the lower half, and
        1 for the upper half. The first dimension has the highest bit.
        """
        return Digits((2**self.dims,) * self.depth)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of boxes along each dimension on the lowest level of the tree."""
        return (2**self.depth,) * self.dims

    @property
    def box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Lower corner and upper corner of the whole space."""
        return self.low or (0.0,) * self.dims, self.high or (1.0,) * self.dims

    @property
    def branching(self) -> int:
        """Number of boxes into which one level divides a box: 2 to the power of `dims`."""
        return 2**self.dims

    def encode(
        self, points: Float[np.ndarray, "n dims"]
    ) -> tuple[Keys, UInt8[np.ndarray, " n"]]:
        """Return the key of each point. The key is the number of the box on the lowest level of the tree that
        contains the point. Points outside the space have no key and are left out.

        The method also returns an array with one number per point: 0 if the point has a key, and 1 if it is
        outside the space.
        """
        points = np.asarray(points)
        if points.ndim != 2 or points.shape[1] != self.dims or points.dtype.kind not in "fiu":
            raise ValueError(
                f"points of shape {points.shape} and type {points.dtype} do not fit: need numbers, "
                f"{self.dims} a point"
            )
        points = np.ascontiguousarray(points, float)
        keys = np.empty((self.digits.word_count, len(points)), np.uint64)
        low, high = (np.array(x, float) for x in self.box)
        spread = _spread(self.dims)
        why = np.zeros(len(points), np.uint8)
        split = self.digits.first_word_levels
        inside = _morton(points, low, high, self.depth, split, spread, keys, why)
        return keys[:, :inside], why

    def corners(self, nodes: Keys) -> Int[np.ndarray, "dims n"]:
        """Return the lower corner of the box of each node. The unit of a coordinate is the width of a box on
        the lowest level of the tree, and the lower corner of the whole space has the coordinates 0.
        """
        corners = np.zeros((self.dims, nodes.shape[1]), np.uint64)
        places = np.arange(self.dims, dtype=np.uint64)[::-1, None]  # bit of each dimension
        for level, width in enumerate(self.digits.widths):
            word = nodes[self.digits.word_of_level(level)]
            corners <<= np.uint64(1)
            corners |= word >> places + np.uint64(width.bit_length() - 1) & np.uint64(1)
        return corners.view(np.int64)

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """One tuple per dimension, with one entry per level of the tree. The entry is the number of parts into
        which the level divides a box along this dimension. Every entry is 2.
        """
        return ((2,) * self.depth,) * self.dims

    def node_boxes(
        self, levels: Int[np.ndarray, " n"], nodes: Keys
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper corner of the box of each node. The unit of a coordinate is the width
        of a box on the lowest level of the tree, and the lower corner of the whole space has the coordinates 0.
        For example, a box on the lowest level has the corners (2, 3) and (3, 4).
        """
        low = self.corners(nodes)
        return low, low + 2 ** (self.depth - levels.astype(np.int64))

    def boxes_to_frame(
        self, lo: Int[np.ndarray, "n dims"], hi: Int[np.ndarray, "n dims"]
    ) -> pd.DataFrame:
        """Return a data frame with one row per box, in the units of the data. For an attribute x1, the
        columns `x1_from` and `x1_to` contain the two ends of the box.
        """
        columns = {}
        for i, (name, a, b) in enumerate(zip(self.attributes, *self.box, strict=True)):
            columns[f"{name}_from"] = a + (b - a) * (lo[:, i] / 2**self.depth)
            columns[f"{name}_to"] = a + (b - a) * (hi[:, i] / 2**self.depth)
        return pd.DataFrame(columns)

    def points(
        self, levels: Int[np.ndarray, " n"], nodes: Keys, rng: np.random.Generator
    ) -> Float[np.ndarray, "n dims"]:
        """Draw one uniformly random point in the box of each node. The coordinates are floats in the units of
        the data.
        """
        low, high = (np.array(x) for x in self.box)
        sides = 2.0 ** -levels.astype(float)
        corners = self.corners(nodes).T / 2.0**self.depth
        unit = corners + rng.random((len(levels), self.dims)) * (sides[:, None])
        return low + (high - low) * unit


@cache
def _spread(dims: int) -> UInt64[np.ndarray, " 4096"]:
    """Return a table for interleaving coordinates. Entry x contains the twelve bits of x at positions 0,
    `dims`, 2·`dims`, and so on.
    """
    spread = np.empty(2**_BITS, np.uint64)
    for x in range(2**_BITS):
        spread[x] = sum((x >> i & 1) << i * dims for i in range(_BITS)) % WORD
    return sealed(spread)


@njit(cache=True, nogil=True)
def _morton(points, low, high, depth, split, apart, keys, why):
    n, dims = points.shape
    scale = 2.0**depth / (high - low)
    late = np.uint64(depth - split)
    rest = (np.uint64(1) << late) - np.uint64(1)
    last = 2**depth - 1
    inside = 0
    for i in range(n):
        first = np.uint64(0)
        second = np.uint64(0)
        outside = False
        for j in range(dims):
            x = points[i, j]
            outside |= not (x >= low[j] and x <= high[j])
            cell = np.int64((x - low[j]) * scale[j])  # signed converts faster
            at = np.uint64(max(min(cell, last), 0))
            shift = np.uint64(dims - 1 - j)
            first |= _apart(at >> late, dims, apart) << shift
            if late:
                second |= _apart(at & rest, dims, apart) << shift
        why[i] = outside
        if not outside:
            keys[0, inside] = first
            if keys.shape[0] == 2:
                keys[1, inside] = second
            inside += 1
    return inside


@njit(cache=True, inline="always")
def _apart(bits, dims, apart):
    mask = np.uint64(2**_BITS - 1)
    spread = apart[bits & mask]
    shift = np.uint64(0)
    while bits > mask:
        bits = bits >> np.uint64(_BITS)
        shift += np.uint64(_BITS * dims)
        spread |= apart[bits & mask] << shift
    return spread
