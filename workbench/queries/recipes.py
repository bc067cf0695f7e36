"""Short descriptions (recipes) of workloads: random queries, and queries for all cells of marginals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from workbench.queries.conversion import MAX_TERMS
from workbench.queries.linear import MAX_DENSE_CELLS
from workbench.queries.products import Products
from workbench.queries.ranges import Boxes, Ranges, Shuffle, Windows
from workbench.queries.tables import TableQueries
from workbench.spaces import Domain
from workbench.value import Int, not_allowed, parameter, sealed, value

# Random


@value
class RandomRanges:
    """Recipe for random range queries, which the method `on` draws for a domain. Each of the `count` queries
    counts the records in `size` consecutive cells, which begin at a random cell. All possible first cells are
    equally likely.

    >>> len(RandomRanges(10, 5, seed=0).on(Domain(("x",), (100,))))
    5
    """

    size: int = parameter(
        low=1, integer=True, unit="cells", doc="number of cells in each query"
    )
    count: int = parameter(200, 1, integer=True, unit="queries", doc="number of queries")
    seed: int = parameter(0, 0, integer=True, doc="seed of the random queries")

    def on(self, domain: Domain) -> Ranges:
        """Draw the range queries for a domain. Every call returns the same queries.

        Parameters
        ----------
        domain : Domain
            Domain of the table, with at least `size` cells.

        Returns
        -------
        Ranges
            Range queries.

        Raises
        ------
        ValueError
            If the domain has fewer than `size` cells.
        """
        return _uniform_ranges(domain, self.size, self.count, np.random.default_rng(self.seed))


@value
class RandomSubsets:
    """Recipe for queries on random subsets of cells, which the method `on` draws for a domain. Each of the
    `count` queries counts the records in `size` random cells. To draw the subsets, `on` puts all cells into
    one random order. Each subset then consists of `size` consecutive cells in this order.
    """

    size: int = parameter(
        low=1, integer=True, unit="cells", doc="number of cells in each query"
    )
    count: int = parameter(200, 1, integer=True, unit="queries", doc="number of queries")
    seed: int = parameter(0, 0, integer=True, doc="seed of the random queries")

    def on(self, domain: Domain) -> Windows:
        """Draw the queries for a domain. Every call returns the same queries.

        Parameters
        ----------
        domain : Domain
            Domain of the table, with at least `size` cells. The domain must have at most 2⁶³ − 1 cells.

        Returns
        -------
        Windows
            Queries on random subsets of the cells.

        Raises
        ------
        ValueError
            If the domain has more than 2⁶³ − 1 cells, or fewer than `size` cells.
        """
        if isinstance(domain, Domain):
            domain.refuse_wide()
        of_shuffle, of_windows = np.random.SeedSequence(self.seed).spawn(2)
        shuffle = Shuffle(domain.size, int(of_shuffle.generate_state(1)[0]))
        rng = np.random.default_rng(of_windows)
        return Windows(shuffle, _uniform_ranges(domain, self.size, self.count, rng))


def _uniform_ranges(domain: Domain, size: int, count: int, rng: np.random.Generator) -> Ranges:
    """Draw `count` ranges of `size` consecutive cells, at uniformly random places."""
    if isinstance(domain, Domain):  # a hierarchy cannot be wide
        domain.refuse_wide()
    if size > domain.size:
        raise ValueError(f"queries of {size} cells do not fit a domain of {domain.size}")
    lo = rng.integers(0, domain.size - size, count, endpoint=True)
    return Ranges(lo, lo + size)


def _wrong_box_shape(x: Any) -> str | None:
    good = isinstance(x, tuple) and x and all(type(n) is int and n > 0 for n in x)
    return None if good else "need a tuple of integers > 0, one an attribute"


@value
class RandomBoxes:
    """Recipe for queries on random boxes, which the method `on` draws for a domain. A box has an interval of
    values for each attribute, and its query counts the records with values in these intervals. `shape`
    contains the number of values in each interval. All positions of a box in the domain are equally likely.
    There are `count` queries.

    >>> RandomBoxes((2, 3), 5, seed=0).on(Domain(("x", "y"), (9, 9))).cells(None)[:2]
    array([6., 6.])
    """

    shape: tuple[int, ...] = parameter(
        check=_wrong_box_shape,
        unit="cells",
        doc="number of values in each query, for each attribute",
    )
    count: int = parameter(200, 1, integer=True, unit="queries", doc="number of queries")
    seed: int = parameter(0, 0, integer=True, doc="seed of the random queries")

    def on(self, domain: Domain) -> Boxes:
        """Draw the boxes for a domain. Every call returns the same queries.

        Parameters
        ----------
        domain : Domain
            Domain of the table. The domain must have one attribute for each number in `shape`. The attribute
            must have at least this number of values.

        Returns
        -------
        Boxes
            Queries that count the records in the boxes.

        Raises
        ------
        ValueError
            If the domain has more or fewer attributes than `shape` has numbers, or if an attribute has too
            few values.
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
    """Draw `count` random sets of k attributes. All sets of k attributes are equally likely."""
    if k > len(domain.shape):
        raise ValueError(f"queries on {k} attributes do not fit {domain.attributes}")
    return np.sort(rng.random((count, len(domain.shape))).argsort(axis=1)[:, :k], axis=1)


@value
class RandomMarginalRanges:
    """Recipe for random queries on a few attributes, which the method `on` draws for a domain. For each of
    the `count` queries, the method chooses `dims` attributes at random, and for each of these attributes a
    random interval of values. The query counts the records whose values are in these intervals.

    All non-empty intervals of values of an attribute are equally likely.

    >>> len(RandomMarginalRanges(5).on(Domain(("a", "b", "c"), (20, 3, 40))))
    5
    """

    count: int = parameter(5000, 1, integer=True, unit="queries", doc="number of queries")
    dims: int = parameter(
        2, 1, integer=True, unit="attributes", doc="number of attributes in each query"
    )
    seed: int = parameter(0, 0, integer=True, doc="seed of the random queries")

    def on(self, domain: Domain) -> Products:
        """Draw the queries for a domain. Every call returns the same queries.

        Parameters
        ----------
        domain : Domain
            Domain of the table, with at least `dims` attributes.

        Returns
        -------
        Products
            Queries that count the records whose values are in the intervals.

        Raises
        ------
        ValueError
            If the domain has fewer than `dims` attributes.
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
    """Recipe for random queries on `k` attributes, which the method `on` draws for a domain. For each of the
    `count` queries, the method chooses `k` attributes at random. It then selects each combination of values
    of these attributes with probability ½. The query counts the records with a selected combination.
    """

    count: int = parameter(5000, 1, integer=True, unit="queries", doc="number of queries")
    k: int = parameter(
        2, 1, integer=True, unit="attributes", doc="number of attributes in each query"
    )
    seed: int = parameter(0, 0, integer=True, doc="seed of the random queries")

    def on(self, domain: Domain) -> TableQueries:
        """Draw the queries for a domain. Every call returns the same queries.

        Parameters
        ----------
        domain : Domain
            Domain of the table, with at least `k` attributes.

        Returns
        -------
        TableQueries
            Queries, each given by a table of zeros and ones. The entry is 1 for a combination of values that
            the query counts.

        Raises
        ------
        ValueError
            If the domain has fewer than `k` attributes, or if the tables are too large.
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


# Marginals

_MOST_CODES = 2**14  # values of an attribute in a marginal: a matrix of 2 GiB


@value
class Marginals:
    """Recipe for queries that ask for the marginal on each set of `k` attributes. A marginal is a table of
    counts on some of the attributes. There is one query for each combination of values of a marginal's
    attributes.

    The marginals are in the order in which `itertools.combinations` lists the sets of `k` attributes.

    >>> len(Marginals(2).on(Domain(("a", "b", "c"), (2, 3, 4))))
    26
    """

    k: int = parameter(
        low=0, integer=True, unit="attributes", doc="number of attributes in each marginal"
    )

    def on(self, domain: Domain) -> Products:
        """Return one query for each cell of each marginal.

        Parameters
        ----------
        domain : Domain
            Domain of the table, with at least `k` attributes.

        Returns
        -------
        Products
            Queries, one marginal after the other. Within a marginal, the values of the last attribute change
            fastest from query to query.

        Raises
        ------
        ValueError
            If the domain has fewer than `k` attributes, or if the marginals have more than 2²² cells
            together.
        """
        if self.k > len(domain.shape):
            raise not_allowed(self, "k", f"the domain has {len(domain.shape)} attributes")
        return _all_cells(self, domain, list(combinations(range(len(domain.shape)), self.k)))


def _check_sets(sets: Any) -> str | None:
    good = isinstance(sets, tuple) and len(sets) > 0
    good = good and all(isinstance(names, tuple) and len(names) > 0 for names in sets)
    good = good and all(isinstance(name, str) for names in sets for name in names)
    good = good and all(len(set(names)) == len(names) for names in sets)
    good = good and len({frozenset(names) for names in sets}) == len(sets)
    return None if good else "need a tuple of different tuples of different attributes"


@value
class NamedMarginals:
    """Recipe for queries that ask for the marginals that you list. A marginal is a table of counts on some of
    the attributes. There is one query for each combination of values of a marginal's attributes.

    >>> len(NamedMarginals((("a",), ("b", "c"))).on(Domain(("a", "b", "c"), (2, 3, 4))))
    14
    """

    sets: tuple[tuple[str, ...], ...] = parameter(
        check=_check_sets, doc="attributes of each marginal"
    )

    def on(self, domain: Domain) -> Products:
        """Return one query for each cell of each marginal.

        Parameters
        ----------
        domain : Domain
            Domain of the table, which must contain all of the attributes.

        Returns
        -------
        Products
            Queries, one marginal after the other. Within a marginal, the values of the attribute that you
            list last change fastest from query to query.

        Raises
        ------
        ValueError
            If an attribute is not in the domain, or if the marginals have more than 2²² cells together.
        """
        return _all_cells(
            self, domain, [[domain.axis(a) for a in names] for names in self.sets]
        )


def _all_cells(recipe: Any, domain: Domain, sets: Sequence[Sequence[int]]) -> Products:
    """Create one query for each cell of the marginals. `sets` contains, for each marginal, the positions of
    its attributes.
    """
    sizes = [prod(domain.shape[k] for k in axes) for axes in sets]
    if sum(sizes) > MAX_TERMS:
        raise ValueError(f"{recipe!r} has {sum(sizes)} cells: need at most {MAX_TERMS} cells")
    used = {k for axes in sets for k in axes}
    for k in used:
        if domain.shape[k] > _MOST_CODES:
            raise ValueError(
                f"{recipe!r} asks for every code of {domain.attributes[k]!r}, which has "
                f"{domain.shape[k]}: need at most {_MOST_CODES}, or ranges"
            )
    which = np.zeros((sum(sizes), len(domain.shape)), np.int64)
    start = 0
    for axes, size in zip(sets, sizes, strict=True):
        shape = [domain.shape[k] for k in axes]
        codes = np.unravel_index(np.arange(size), shape) if axes else ()
        for k, code in zip(axes, codes, strict=True):
            if domain.shape[k] > 1:  # a single value is no condition
                which[start : start + size, k] = code + 1
        start += size
    codes_of = [n if k in used or n <= _MOST_CODES else 0 for k, n in enumerate(domain.shape)]
    factors = tuple(
        sealed(np.concatenate([np.ones((1, n)), np.eye(rows, n)]))
        for n, rows in zip(domain.shape, codes_of, strict=True)
    )
    times = np.ones(len(which))
    return Products(domain.attributes, factors, which, times, np.arange(len(which) + 1))
