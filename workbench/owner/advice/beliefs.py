"""Simulated data from beliefs, which are an owner's descriptions of private data. The simulated data are
tables, people with many records, points or strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import inf, isfinite, log, prod, sqrt
from typing import Any, ClassVar

import numpy as np

from workbench.data import UNBOUNDED, Bound, Interactions, Records, SparseTable
from workbench.spaces import Domain, Prefixes, Quadtree
from workbench.value import Int, parameter, value

_CELLS = 50_000  # non-empty ones that are simulated
_DENSE = 2**20  # cells of a domain from which it is simulated in part
_RECORDS = 100_000
MARGINALS = 2**12  # cells of marginals that are simulated one by one
_WORDS = 2000
_CENTRES = 20
STAYS = 0.7  # probability that a record has the person's usual label


def _is_space(x: Any) -> str | None:
    good = isinstance(x, Domain | Quadtree | Prefixes)
    return None if good else "need a Domain, a Quadtree or Prefixes"


def _is_bound(x: Any) -> str | None:
    return None if isinstance(x, Bound) else "need a Bound"


@value
class Beliefs:
    """Description of private data from public knowledge, for example the approximate number of records. The
    method `load` generates simulated data that agree with the description.

    The numbers must not come from the private table, because the advice would then reveal something about that
    table. For a table in which each person has one record, give `records` and `cells`. If people have many
    records, give `records` and `users`. For points and strings, give only `records`.

    Examples
    --------
    >>> jobs = Beliefs(Domain(("home", "work"), (100, 100)), records=2_000, cells=1_000)
    >>> table = jobs.load()
    >>> len(table), jobs.mean
    (1000, 2.0)
    """

    domain: Any = parameter(check=_is_space, doc="all possible cells, points or strings")
    records: float = parameter(low=1, high=2**50, doc="approximate number of records")
    cells: int | None = parameter(
        None, 1, 2**40, integer=True, doc="approximate number of non-empty cells"
    )
    spread: float | None = parameter(
        None, 0, 2**40, unit="counts", doc="standard deviation of counts (None: their mean)"
    )
    popularity: float = parameter(
        1.0, 0, 100, doc="inequality of the labels' frequencies (0: all equal)"
    )
    users: int | None = parameter(None, 1, 2**40, integer=True, doc="rough number of people")
    bound: Any = parameter(Bound(), check=_is_bound, doc="largest change by one unit")

    truth_public: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise a ValueError if fields contradict each other, for example if there are fewer records than
        non-empty cells.
        """
        if isinstance(self.domain, Domain):
            self.domain.refuse_wide()
        cells = self.cells
        if cells is None:
            if self.users is not None and self.users > self.records:
                raise ValueError(
                    f"{self.users:,} people cannot have {self.records:,.0f} records: need at least one record "
                    "per person"
                )
            return
        if cells > self.domain.size:
            raise ValueError(
                f"{cells:,} non-empty cells contradict a domain of {self.domain.size:,} cells: need at most "
                "this number"
            )
        if self.records < cells:
            raise ValueError(
                f"{self.records:,.0f} records contradict {cells:,} non-empty cells: each has at least one "
                "record, so need at least as many records as cells"
            )
        if self.records == cells and self.spread:
            raise ValueError(
                f"spread = {self.spread:g} contradicts a mean count of 1: counts of at least 1 with that mean "
                "are all equal, so need a spread of 0 or a larger mean"
            )

    @classmethod
    def of_counts(
        cls, domain: Domain, density: float, mean: float, spread: float, **others: Any
    ) -> Beliefs:
        """Describe a table of counts by the share of non-empty cells, and by the mean and standard deviation
        of their counts.

        Parameters
        ----------
        domain : Domain
            All possible cells.
        density : float
            Number of non-empty cells divided by the number of all cells, between 0 and 1.
        mean, spread : float
            Mean and standard deviation of the counts of non-empty cells.
        **others : any
            Values of other fields of `Beliefs`, for example `bound` and `popularity`.

        Returns
        -------
        Beliefs
        """
        if not 0 < density <= 1:
            raise ValueError(f"density = {density} is not allowed: need a share in (0, 1]")
        if not (isfinite(mean) and mean >= 1):
            raise ValueError(
                f"mean = {mean} is not allowed: a non-empty cell has at least one record, so need >= 1"
            )
        cells = max(1, round(density * domain.size))
        return cls(domain, float(mean) * cells, cells, float(spread), **others)

    @property
    def mean(self) -> float:
        """Mean count of the non-empty cells. If you gave `users` and not `cells`, the property is the mean
        number of records per person instead.
        """
        return self.records / (self.cells or self.users or self.records)

    @property
    def _spread(self) -> float:
        return self.mean if self.spread is None else self.spread

    def simulated(self, order: int = 0, records: float = inf) -> tuple[Beliefs, float]:
        """Return a description of a smaller part of the data. A simulation of this part is faster than a
        simulation of all data.

        Parameters
        ----------
        order : int
            Number of attributes of the marginals (tables of counts by some attributes) that you will simulate.
            The method then chooses a part in which these marginals have few enough cells. Default 0, for no
            marginals.
        records : float
            Largest number of records in the part. Default: no limit.

        Returns
        -------
        Beliefs
            Description of the smaller part.
        float
            Share of all data that is in this part, between 0 and 1.
        """
        if self.cells is None:
            part = max(1.0, self.records / _RECORDS)
            users = self.users and max(1, round(self.users / part))
            return replace(self, records=self.records / part, users=users), 1 / part
        shape = list(self.domain.shape)
        part = 1.0
        while (
            self.cells * part > _CELLS
            or self.records * part > records
            or (prod(shape) > _DENSE and self.cells * part > 5000)
            or (order and marginal_cells(shape, order) > MARGINALS)
        ):
            widest = int(np.argmax(shape))
            if shape[widest] == 1:
                break
            part *= (shape[widest] // 2) / shape[widest]
            shape[widest] //= 2
        cells = max(1, min(round(self.cells * part), prod(shape)))
        domain = Domain(self.domain.attributes, tuple(shape))
        records = max(self.mean * cells, cells)
        return replace(self, domain=domain, cells=cells, records=records), part

    def load(self) -> Any:
        """Generate simulated data that agree with this description. Equal descriptions give equal data.

        Returns
        -------
        SparseTable, Interactions or Records
        """
        return _loaded(self)

    def _load(self) -> Any:
        rng = np.random.default_rng(0)  # of beliefs: nothing private is drawn
        if isinstance(self.domain, Quadtree):
            return self._records(_points(self.domain, round(self.records), rng))
        if isinstance(self.domain, Prefixes):
            return self._records(_strings(self.domain, round(self.records), rng))
        if self.cells is None:
            return self._interactions(rng)
        keys = self._places(rng)
        counts = np.sort(self._counts(len(keys), rng))
        table = SparseTable.from_keys(self.domain, keys, counts, self.bound, truth_public=True)
        return table

    def _records(self, values: Any) -> Records:
        return Records.from_values(self.domain, values, self.bound, truth_public=True)

    def _counts(self, n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        """Draw counts of at least 1 with the mean and standard deviation of the description. If the standard
        deviation is large, a few counts are very large.
        """
        more = self.mean - 1
        spread = self._spread
        if more <= 0 or spread == 0:
            return np.full(n, max(1, round(self.mean)))
        extra = spread**2 - more  # beyond Poisson's
        if extra <= 0:
            return np.maximum(1, np.rint(rng.normal(self.mean, spread, n))).astype(np.int64)
        return 1 + rng.poisson(lognormal(more, sqrt(extra), n, rng))

    def _places(self, rng: np.random.Generator) -> Int[np.ndarray, " cells"]:
        """Draw distinct cells, and return them with the least probable cell first. The frequencies of labels
        follow Zipf's distribution.
        """
        n = self.cells or 1
        shape = self.domain.shape
        orders = [rng.permutation(size) if size <= _DENSE else None for size in shape]
        found, times = np.empty(0, np.int64), np.empty(0, np.int64)
        for _ in range(4):
            drawn = [zipf_labels(size, 2 * n, self.popularity, rng) for size in shape]
            codes = [x if o is None else o[x] for x, o in zip(drawn, orders, strict=True)]
            keys = np.concatenate(
                [np.repeat(found, times), self.domain.keys(np.stack(codes, 1))]
            )
            found, times = np.unique(keys, return_counts=True)
            if len(found) >= n:
                break
        if len(found) < n:
            free = _others(self.domain.size, found, n - len(found), rng)
            return np.concatenate([free, found[np.argsort(times, kind="stable")]])
        kept = rng.choice(len(found), n, replace=False)
        return found[kept[np.argsort(times[kept] + rng.random(n))]]

    def _interactions(self, rng: np.random.Generator) -> Interactions:
        """Simulate people with several records each. Most records of a person are about the same item, the
        usual item of this person.
        """
        domain = self.domain
        if len(domain.shape) == 1:
            domain = Domain((*domain.attributes, "context"), (*domain.shape, 1))
        numbers = np.maximum(
            1, np.rint(lognormal(self.mean, self._spread, self.users or 1, rng))
        ).astype(np.int64)
        owner = np.repeat(np.arange(len(numbers)), numbers)
        sizes = domain.shape[0], prod(domain.shape[1:])
        items, contexts = (
            labels_of_people(size, self.popularity, len(numbers), owner, rng) for size in sizes
        )
        domain = Domain((domain.attributes[0], "context"), sizes)
        return Interactions.from_codes(
            domain, owner, items, contexts, UNBOUNDED, truth_public=True
        )


def marginal_cells(shape: Sequence[int], order: int) -> int:
    """Return the number of cells of all marginals with the given number of attributes."""
    return sum(prod(sizes) for sizes in combinations(shape, order))


@lru_cache(4)
def _loaded(beliefs: Beliefs) -> Any:
    """Return the simulated data, and keep these data in memory, because all trials (runs of mechanisms) use
    the same data.
    """
    return beliefs._load()


def lognormal(mean: float, spread: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw lognormal numbers with a given mean and standard deviation."""
    width = log(1 + (spread / mean) ** 2)
    return rng.lognormal(log(mean) - width / 2, sqrt(width), n)


def zipf_labels(
    size: int, n: int, popularity: float | np.ndarray, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Draw n random labels, as codes. If `popularity` is an array, it contains the probabilities of the
    labels. Otherwise `popularity` is the exponent of Zipf's distribution, in which code 0 is the most
    frequent.
    """
    if isinstance(popularity, np.ndarray):
        return rng.choice(size, n, p=popularity)
    if size > _DENSE:  # by the inverse of a continuous distribution
        u, p = rng.random(n), 1 - popularity
        x = (size + 1.0) ** u if p == 0 else (1 + u * ((size + 1.0) ** p - 1)) ** (1 / p)
        return np.minimum(x.astype(np.int64) - 1, size - 1)
    shares = np.cumsum(1 / np.arange(1, size + 1) ** popularity)
    return np.searchsorted(shares / shares[-1], rng.random(n)).clip(max=size - 1)


def labels_of_people(
    size: int,
    popularity: float | np.ndarray,
    people: int,
    owner: Int[np.ndarray, " records"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " records"]:
    """Draw the label of each record. Each person has a usual label, which most of the person's records have.
    The labels of the other records follow Zipf's distribution.
    """
    usual = zipf_labels(size, people, popularity, rng)
    other = zipf_labels(size, len(owner), popularity, rng)
    return np.where(rng.random(len(owner)) < STAYS, usual[owner], other)


def _others(
    size: int, taken: np.ndarray, n: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Return n different random cells that are not among `taken`."""
    if size <= 2**22:
        return rng.choice(np.setdiff1d(np.arange(size), taken), n, replace=False)
    found = np.empty(0, np.int64)
    while len(found) < n:
        found = np.union1d(found, np.setdiff1d(rng.integers(0, size, 2 * n), taken))
    return rng.choice(found, n, replace=False)


def _points(tree: Quadtree, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw random points. Two thirds of the points are near one of a few centres, and the other points are
    uniform.
    """
    low, high = (np.array(corner, float) for corner in tree.box)
    centres = rng.random((_CENTRES, tree.dims))
    unit = centres[rng.integers(0, _CENTRES, n)]
    unit = unit + rng.normal(0, 0.02, unit.shape)
    anywhere = rng.random(n) < 1 / 3
    unit[anywhere] = rng.random((int(anywhere.sum()), tree.dims))
    return low + (high - low) * unit.clip(0, 1)


def _strings(tree: Prefixes, n: int, rng: np.random.Generator) -> list[str]:
    """Draw random strings from 2,000 different ones. Their frequencies follow Zipf's distribution."""
    words = strings_of(tree)
    return [words[i] for i in zipf_labels(_WORDS, n, 1.0, rng)]


def strings_of(tree: Prefixes) -> list[str]:
    """Return the different strings that can be drawn, from the most to the least frequent. The strings have at
    least three symbols, if the hierarchy of prefixes is deep enough.
    """
    rng = np.random.default_rng(1)
    symbols = np.array(list(tree.alphabet))
    lengths = np.minimum(rng.integers(3, 9, _WORDS), tree.depth)
    return ["".join(symbols[rng.integers(0, len(symbols), k)]) for k in lengths]
