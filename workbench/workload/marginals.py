"""All cells of marginals: of every set of k attributes, or of sets by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.value import not_allowed, parameter, sealed, value
from workbench.workload.conversion import MAX_TERMS
from workbench.workload.products import Products

_MOST_CODES = 2**14  # of an attribute all of whose codes are asked for: a matrix of 2 GiB


@value
class Marginals:
    """All cells of all marginals on k attributes, in the order of `itertools.combinations`.

    >>> len(Marginals(2).on(Domain(("a", "b", "c"), (2, 3, 4))))
    26
    """

    k: int = parameter(low=0, integer=True, unit="attributes", doc="of each marginal")

    def on(self, domain: Domain) -> Products:
        """The cells on a domain.

        Parameters
        ----------
        domain : Domain
            Of at least k attributes.

        Returns
        -------
        Products
            One query a cell, marginal by marginal, each in the order of its keys.

        Raises
        ------
        ValueError
            If the domain has too few attributes, or the marginals more than 2²² cells.
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
    """All cells of stated marginals, one after another.

    >>> len(NamedMarginals((("a",), ("b", "c"))).on(Domain(("a", "b", "c"), (2, 3, 4))))
    14
    """

    sets: tuple[tuple[str, ...], ...] = parameter(
        check=_check_sets, doc="the attributes of each marginal"
    )

    def on(self, domain: Domain) -> Products:
        """The cells on a domain.

        Parameters
        ----------
        domain : Domain
            With all of these attributes.

        Returns
        -------
        Products
            One query a cell, marginal by marginal, each in the order of its attributes as named.

        Raises
        ------
        ValueError
            If the domain has not all attributes, or the marginals more than 2²² cells.
        """
        return _all_cells(
            self, domain, [[domain.axis(a) for a in names] for names in self.sets]
        )


def _all_cells(recipe: Any, domain: Domain, sets: Sequence[Sequence[int]]) -> Products:
    """A query for each cell of the marginals on some sets of axes."""
    sizes = [prod(domain.shape[k] for k in axes) for axes in sets]
    if sum(sizes) > MAX_TERMS:
        raise ValueError(f"{recipe!r} has {sum(sizes)} cells: need at most {MAX_TERMS}")
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
            if domain.shape[k] > 1:  # the one code of an attribute is every tuple's
                which[start : start + size, k] = code + 1
        start += size
    codes_of = [n if k in used or n <= _MOST_CODES else 0 for k, n in enumerate(domain.shape)]
    factors = tuple(
        sealed(np.concatenate([np.ones((1, n)), np.eye(rows, n)]))
        for n, rows in zip(domain.shape, codes_of, strict=True)
    )
    times = np.ones(len(which))
    return Products(domain.attributes, factors, which, times, np.arange(len(which) + 1))
