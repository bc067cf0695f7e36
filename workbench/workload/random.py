"""Recipes: small values that draw the same random queries wherever they are asked."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from workbench.arrays import Int
from workbench.domain import Domain
from workbench.value import parameter, sealed, value
from workbench.workload.linear import MAX_DENSE_CELLS
from workbench.workload.products import Products
from workbench.workload.queries import Boxes, Ranges
from workbench.workload.shuffle import Shuffle, Windows
from workbench.workload.tables import TableQueries


@value
class RandomRanges:
    """`count` ranges of `size` consecutive keys, placed uniformly.

    >>> len(RandomRanges(10, 5, seed=0).on(Domain(("x",), (100,))))
    5
    """

    size: int = parameter(low=1, integer=True, unit="cells", doc="cells a query covers")
    count: int = parameter(200, 1, integer=True, unit="queries", doc="how many are asked")
    seed: int = parameter(0, 0, integer=True, doc="of the draw")

    def on(self, domain: Domain) -> Ranges:
        """The ranges on a domain.

        Parameters
        ----------
        domain : Domain
            Of at least `size` cells.

        Returns
        -------
        Ranges
            The same ones every time.

        Raises
        ------
        ValueError
            If the domain has fewer cells.
        """
        return _uniform_ranges(domain, self.size, self.count, np.random.default_rng(self.seed))


@value
class RandomSubsets:
    """`count` subsets of `size` cells, each uniform among all subsets of its size."""

    size: int = parameter(low=1, integer=True, unit="cells", doc="cells a query covers")
    count: int = parameter(200, 1, integer=True, unit="queries", doc="how many are asked")
    seed: int = parameter(0, 0, integer=True, doc="of the draw")

    def on(self, domain: Domain) -> Windows:
        """The subsets on a domain.

        Parameters
        ----------
        domain : Domain
            Of at least `size` cells.

        Returns
        -------
        Windows
            Subsets as windows of one shuffled order, the same ones every time.

        Raises
        ------
        ValueError
            If the domain has fewer cells.
        """
        of_shuffle, of_windows = np.random.SeedSequence(self.seed).spawn(2)
        shuffle = Shuffle(domain.size, int(of_shuffle.generate_state(1)[0]))
        rng = np.random.default_rng(of_windows)
        return Windows(shuffle, _uniform_ranges(domain, self.size, self.count, rng))


def _uniform_ranges(domain: Domain, size: int, count: int, rng: np.random.Generator) -> Ranges:
    """`count` ranges of `size` keys."""
    if size > domain.size:
        raise ValueError(f"queries of {size} cells do not fit a domain of {domain.size}")
    lo = rng.integers(0, domain.size - size, count, endpoint=True)
    return Ranges(lo, lo + size)


def _wrong_box_shape(x: Any) -> str | None:
    good = isinstance(x, tuple) and x and all(type(n) is int and n > 0 for n in x)
    return None if good else "need a tuple of whole numbers > 0, one an attribute"


@value
class RandomBoxes:
    """`count` boxes of `shape` cells, one number an attribute, placed uniformly.

    >>> RandomBoxes((2, 3), 5, seed=0).on(Domain(("x", "y"), (9, 9))).cells(None)[:2]
    array([6., 6.])
    """

    shape: tuple[int, ...] = parameter(
        check=_wrong_box_shape,
        unit="cells",
        doc="codes a query covers along each attribute",
    )
    count: int = parameter(200, 1, integer=True, unit="queries", doc="how many are asked")
    seed: int = parameter(0, 0, integer=True, doc="of the draw")

    def on(self, domain: Domain) -> Boxes:
        """The boxes on a domain.

        Parameters
        ----------
        domain : Domain
            Of as many attributes as `shape` has numbers, none with fewer codes.

        Returns
        -------
        Boxes
            The same ones every time.

        Raises
        ------
        ValueError
            If the boxes do not fit the domain.
        """
        fits = len(self.shape) == len(domain.shape)
        if not fits or any(n > m for n, m in zip(self.shape, domain.shape, strict=True)):
            raise ValueError(
                f"boxes of {self.shape} codes do not fit a domain of {domain.shape}"
            )
        rng = np.random.default_rng(self.seed)
        room = np.subtract(domain.shape, self.shape)
        lo = rng.integers(0, room, (self.count, len(room)), endpoint=True)
        return Boxes(lo, lo + self.shape)


def _random_axes(
    domain: Domain, k: int, count: int, rng: np.random.Generator
) -> Int[np.ndarray, "count k"]:
    """`count` sets of k attributes, each uniform."""
    if k > len(domain.shape):
        raise ValueError(f"queries on {k} attributes do not fit {domain.attributes}")
    return np.sort(rng.random((count, len(domain.shape))).argsort(axis=1)[:, :k], axis=1)


@value
class RandomMarginalRanges:
    """`count` ranges over `dims` attributes: a uniform set of attributes, and on each an interval.

    The intervals are uniform among all that are not empty: the paper says only "random".

    >>> len(RandomMarginalRanges(5).on(Domain(("a", "b", "c"), (20, 3, 40))))
    5
    """

    count: int = parameter(5000, 1, integer=True, unit="queries", doc="how many are asked")
    dims: int = parameter(2, 1, integer=True, unit="attributes", doc="of each range")
    seed: int = parameter(0, 0, integer=True, doc="of the draw")

    def on(self, domain: Domain) -> Products:
        """The ranges on a domain.

        Parameters
        ----------
        domain : Domain
            Of at least `dims` attributes.

        Returns
        -------
        Products
            The same ones every time.

        Raises
        ------
        ValueError
            If the domain has fewer attributes.
        """
        rng = np.random.default_rng(self.seed)
        axes = _random_axes(domain, self.dims, self.count, rng)
        sizes = np.array(domain.shape)
        n = sizes[axes]
        # two different ends among n + 1: uniform among the intervals that are not empty
        one = rng.integers(0, n + 1)
        two = rng.integers(0, n)
        two += two >= one
        rows = np.arange(self.count)[:, None]
        lo = np.zeros((self.count, len(sizes)), np.int64)
        hi = np.tile(sizes, (self.count, 1))
        lo[rows, axes] = np.minimum(one, two)
        hi[rows, axes] = np.maximum(one, two)
        return Products.boxes(domain, lo, hi)


@value
class RandomTables:
    """`count` arbitrary queries on k attributes: a uniform set of them, a fair coin for every cell."""

    count: int = parameter(5000, 1, integer=True, unit="queries", doc="how many are asked")
    k: int = parameter(2, 1, integer=True, unit="attributes", doc="of each table")
    seed: int = parameter(0, 0, integer=True, doc="of the draw")

    def on(self, domain: Domain) -> TableQueries:
        """The tables on a domain.

        Parameters
        ----------
        domain : Domain
            Of at least k attributes.

        Returns
        -------
        TableQueries
            The same ones every time.

        Raises
        ------
        ValueError
            If the domain has fewer attributes, or the tables are too large.
        """
        rng = np.random.default_rng(self.seed)
        axes = _random_axes(domain, self.k, self.count, rng)
        sets, group = np.unique(axes, axis=0, return_inverse=True)
        group = group.ravel()
        groups = []
        for set_axes, size in zip(sets, np.bincount(group), strict=True):
            shape = [domain.shape[k] for k in set_axes]
            if size * prod(shape) > 8 * MAX_DENSE_CELLS:
                raise ValueError(f"{size} tables of {shape} codes are too large: need fewer")
            tables = rng.integers(0, 2, (size, *shape), dtype=np.int8).astype(float)
            groups.append((tuple(domain.attributes[k] for k in set_axes), sealed(tables)))
        return TableQueries(tuple(groups), np.argsort(group, kind="stable"))
