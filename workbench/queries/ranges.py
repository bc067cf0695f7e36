"""Queries that count the records in sets of cells: ranges, boxes, and subsets that you list or that are drawn
at random.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.compiled import in_slices
from workbench.spaces import Domain
from workbench.value import Float, Int, Num, UInt64, value

# Queries

_MAX_RANGES = 2**26  # limit for the ranges of boxes: about 2 GiB


class Workload(Protocol):
    """Interface of lists of queries on a table of counts. Each query adds up the counts of some cells. A cell
    is a combination of values, one per attribute. The cells of a domain are numbered.
    """

    def on(self, domain: Domain) -> Workload:
        """Return the queries for the given domain. If the queries are random, they are drawn when you call
        this method. Raise a ValueError if the queries do not fit the domain.
        """

    def __len__(self) -> int:
        """Return the number of queries."""

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return, for each query, the number of cells whose counts the query adds up."""

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of its cells. The value of the cell with
        the key (identifier) keys[j] is values[j]. The keys are in ascending order. All other cells have the
        value 0.
        """

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
        """Return ranges of cells that together make up the queries. The ranges of a query do not overlap.
        Also return, for each range, the position of its query in the list of queries.
        """


class Recipe(Protocol):
    """Interface of recipes, which describe queries, for example 200 random ranges. The method `on` creates
    the queries for a domain. A list of existing queries is also a recipe. Its method `on` returns the list
    itself.
    """

    def on(self, domain: Any) -> Any:
        """Return the queries for the given domain or tree. Raise a ValueError if the queries do not fit the
        domain or tree.
        """


def digest_text(workload: Sized, *arrays: np.ndarray) -> str:
    """Return a text that identifies a list of queries. The text contains a hash of the arrays, because the
    `repr` of a long numpy array is abbreviated.
    """
    digest = hashlib.sha256(b"|".join(a.tobytes() for a in arrays)).hexdigest()[:32]
    return f"<{type(workload).__name__} of {len(workload)} queries, sha256 {digest}>"


def sorted_search(
    keys: Int[np.ndarray, " n"], wanted: Int[np.ndarray, " k"]
) -> Int[np.ndarray, " k"]:
    """Return the position at which each `wanted` key would be inserted into the sorted `keys`, as
    `np.searchsorted` does. This function is about ten times faster for many keys, because it first sorts the
    wanted keys.
    """
    places = np.empty(len(wanted), np.int64)

    def search(part: slice) -> None:
        own = wanted[part]
        order = np.argsort(own)
        places[part][order] = np.searchsorted(keys, own[order])

    in_slices(search, len(wanted))
    return places


def prefix_sums(values: Num[np.ndarray, " n"]) -> Num[np.ndarray, " n+1"]:
    """Return the running sums of the values, beginning with 0. If the values are integers, the sums are also
    integers.
    """
    kind = np.int64 if values.dtype.kind in "iub" else np.float64
    prefix = np.zeros(len(values) + 1, kind)
    np.cumsum(values, dtype=kind, out=prefix[1:])
    return prefix


@dataclass(frozen=True, eq=False, repr=False)
class Ranges:
    """Queries that count the records in ranges of cells. A cell is a combination of values, one per
    attribute. The key of a cell is its position (0, 1, 2, …) in the list of all cells. A range contains the
    cells with the keys from `lo` to `hi` − 1.

    Parameters
    ----------
    lo, hi : int64[queries]
        Key of the first cell of each range, and key of its last cell plus 1, with 0 <= lo <= hi.

    Raises
    ------
    ValueError
        If `lo` and `hi` have different shapes, or if a range does not satisfy 0 <= lo <= hi.

    Examples
    --------
    >>> Ranges([0, 2], [2, 2]).sums(Domain(("x",), (9,)), np.array([1, 5]), np.array([3, 4]))
    array([3., 0.])
    """

    lo: Int[np.ndarray, " queries"]
    hi: Int[np.ndarray, " queries"]

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            ends = np.atleast_1d(np.asarray(getattr(self, name), np.int64))
            object.__setattr__(self, name, ends)
        if self.lo.shape != self.hi.shape or self.lo.ndim != 1:
            raise ValueError(
                f"Ranges.lo {self.lo.shape} and hi {self.hi.shape} must have one shape"
            )
        wrong = (self.lo < 0) | (self.hi < self.lo)
        if wrong.any():
            i = int(wrong.argmax())
            raise ValueError(f"range {i} is [{self.lo[i]}, {self.hi[i]}): need 0 <= lo <= hi")

    def on(self, domain: Domain) -> Ranges:
        """Return the queries unchanged. Raise a ValueError if a range ends beyond the last cell of the
        domain.
        """
        if len(self) and self.hi.max() > domain.size:
            i = int(self.hi.argmax())
            raise ValueError(
                f"range {i} is [{self.lo[i]}, {self.hi[i]}): outside a domain of {domain.size} cells"
            )
        return self

    def __len__(self) -> int:
        return len(self.lo)

    def __repr__(self) -> str:
        return digest_text(self, self.lo, self.hi)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return the number of cells in each range."""
        return (self.hi - self.lo).astype(float)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of the cells in its range. The value of
        the cell with the key (identifier) keys[j] is values[j]. The keys are in ascending order.
        """
        return self.sums_of_prefix(keys, prefix_sums(values))

    def sums_of_prefix(
        self, keys: Int[np.ndarray, " n"] | None, prefix: Num[np.ndarray, " n+1"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query, computed from running sums of the cells' values. The entry
        prefix[j] is the sum of the values of the first j cells in `keys`, or of the first j cells of the
        domain if `keys` is None.
        """
        if keys is None:
            return (prefix[self.hi] - prefix[self.lo]).astype(float)
        first, last = np.split(sorted_search(keys, np.concatenate([self.lo, self.hi])), 2)
        return (prefix[last] - prefix[first]).astype(float)

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " queries"], Ranges]:
        """Return the queries themselves, because they are already ranges. Also return the positions 0, 1, 2,
        … of the queries in the list.
        """
        return np.arange(len(self)), self

    def boxes(self, domain: Domain) -> tuple[Int[np.ndarray, " boxes"], Boxes]:
        """Return boxes that together make up the ranges. Also return, for each box, the position of its range
        in the list of ranges.

        A box has one interval of codes per attribute. The codes 0, 1, 2, … stand for the values of an
        attribute. On a domain with d attributes, a range consists of at most 2d − 1 boxes.

        For example, with the attributes day and hour, a range may begin at hour 20 of day 1 and end with hour
        5 of day 4. Then one box contains hours 20 to 23 of day 1, a second contains all hours of days 2 and
        3, and a third contains hours 0 to 5 of day 4.
        """
        boxes = []
        owners = []
        queries = np.flatnonzero(self.hi > self.lo)
        lo = self.lo[queries]
        hi = self.hi[queries]
        for axis in range(len(domain.shape) - 1, -1, -1):
            n = domain.shape[axis]
            up = -(-lo // n) * n  # whole blocks lie between up and down
            down = hi // n * n
            within = (up > down) | (axis == 0)
            head = ~within & (lo < up)
            tail = ~within & (down < hi)
            for part, first, last in ((within, lo, hi), (head, lo, up), (tail, down, hi)):
                boxes.append(_boxes_of_block(domain.shape, axis, first[part], last[part]))
                owners.append(queries[part])
            rest = ~within & (up < down)
            queries = queries[rest]
            lo = up[rest] // n
            hi = down[rest] // n
        corners = (np.concatenate(ends) for ends in zip(*boxes, strict=True))
        return np.concatenate(owners), Boxes(*corners)


def _boxes_of_block(
    shape: tuple[int, ...], axis: int, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two corners of boxes. A box has an interval of codes on `axis`, one fixed code on each
    attribute before it, and all codes on each attribute after it.

    The interval is given by `first` and `last`. These numbers count the combinations of codes of `axis` and
    of all attributes before it.
    """
    lo = np.zeros((len(first), len(shape)), np.int64)
    hi = np.tile(shape, (len(first), 1))
    outer = first // shape[axis]
    lo[:, axis] = first - outer * shape[axis]
    hi[:, axis] = last - outer * shape[axis]
    for k in range(axis - 1, -1, -1):
        lo[:, k] = outer % shape[k]
        hi[:, k] = lo[:, k] + 1
        outer = outer // shape[k]
    return lo, hi


@dataclass(frozen=True, eq=False, repr=False)
class Subsets:
    """Queries that count the records in arbitrary sets of cells. A cell is a combination of values, one per
    attribute. The key of a cell is its position (0, 1, 2, …) in the list of all cells. Create the queries
    with `Subsets.of`, which takes sets of keys.

    Parameters
    ----------
    offsets : int64[queries + 1]
        Positions in `members` at which the queries start, and the length of `members`. Query i counts the
        records in the cells with the keys members[offsets[i]:offsets[i + 1]].
    members : int64[cells]
        Keys of the cells in query 0, then of those in query 1, and so on. The keys of a query are in
        ascending order, and no key occurs twice in a query.

    Examples
    --------
    >>> Subsets.of([[5, 1], []]).sums(Domain(("x",), (9,)), np.array([1, 5]), np.array([3, 4]))
    array([7., 0.])
    """

    offsets: Int[np.ndarray, " queries+1"]
    members: Int[np.ndarray, " cells"]

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]]) -> Subsets:
        """Create one query per set of keys (identifiers of cells). A key that occurs twice in a set counts
        once.
        """
        members = [np.unique(np.asarray(list(s), np.int64)) for s in sets]
        offsets = np.cumsum([0, *map(len, members)])
        return cls(offsets, np.concatenate([*members, np.empty(0, np.int64)]).astype(np.int64))

    def on(self, domain: Domain) -> Subsets:
        """Return the queries unchanged. Raise a ValueError if a cell is not in the domain."""
        members = self.members
        if len(members) and not 0 <= members.min() <= members.max() < domain.size:
            raise ValueError(f"a subset names a cell outside a domain of {domain.size} cells")
        return self

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return digest_text(self, self.offsets, self.members)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return the number of cells in each subset."""
        return np.diff(self.offsets).astype(float)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of the cells in its subset. The value of
        the cell with the key (identifier) keys[j] is values[j]. The keys are in ascending order.
        """
        if not len(keys):
            return np.zeros(len(self))
        places = np.minimum(sorted_search(keys, self.members), len(keys) - 1)
        counted = np.where(keys[places] == self.members, values[places], 0).astype(float)
        prefix = np.concatenate([[0.0], np.cumsum(counted)])
        return prefix[self.offsets[1:]] - prefix[self.offsets[:-1]]

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " runs"], Ranges]:
        """Return the subsets as ranges of consecutive cells. Also return, for each range, the position of its
        query in the list of queries.
        """
        query = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        new = (np.diff(self.members, prepend=-2) != 1) | (np.diff(query, prepend=-1) != 0)
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(query))[: len(starts)] - 1
        return query[starts], Ranges(self.members[starts], self.members[ends] + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """Queries that count the records in boxes. A box has one interval of values per attribute. The codes 0,
    1, 2, … stand for the values of an attribute. An interval contains the codes from `lo` to `hi` − 1.

    Parameters
    ----------
    lo, hi : int64[queries, attributes]
        First code of each interval, and its last code plus 1, with 0 <= lo < hi.

    Raises
    ------
    ValueError
        If `lo` and `hi` have different shapes, or if an interval does not satisfy 0 <= lo < hi.
    """

    lo: Int[np.ndarray, "queries attributes"]
    hi: Int[np.ndarray, "queries attributes"]

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            ends = np.atleast_2d(np.asarray(getattr(self, name), np.int64))
            object.__setattr__(self, name, ends)
        if self.lo.shape != self.hi.shape:
            raise ValueError(
                f"Boxes.lo {self.lo.shape} and hi {self.hi.shape} must have one shape"
            )
        wrong = (self.lo < 0) | (self.hi <= self.lo)
        if wrong.any():
            i, axis = np.argwhere(wrong)[0]
            raise ValueError(
                f"box {i} is {self.lo[i]}..{self.hi[i]}: need 0 <= lo < hi, and attribute {axis} has "
                f"[{self.lo[i, axis]}, {self.hi[i, axis]}); hi is not part of the box"
            )

    def on(self, domain: Domain) -> Boxes:
        """Return the queries unchanged. Raise a ValueError if a box is not in the domain."""
        if self.lo.shape[1] != len(domain.shape) or (self.hi > np.array(domain.shape)).any():
            raise ValueError(f"boxes do not fit a domain of shape {domain.shape}")
        return self

    def __len__(self) -> int:
        return len(self.lo)

    def __repr__(self) -> str:
        return digest_text(self, self.lo, self.hi)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return the number of cells in each box."""
        return (self.hi - self.lo).astype(float).prod(axis=1)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of the cells in its box. The value of the
        cell with the key (identifier) keys[j] is values[j]. The keys are in ascending order.
        """
        stride = domain.strides[0]
        start = np.searchsorted(keys, self.lo[:, 0] * stride)
        stop = np.searchsorted(keys, self.hi[:, 0] * stride - 1, side="right")
        columns = [domain.column(keys, a) for a in domain.attributes[1:]]
        sums = np.zeros(len(self))
        for i, (a, b) in enumerate(zip(start, stop, strict=True)):
            inside = np.ones(max(0, b - a), bool)
            for j, column in enumerate(columns, 1):
                inside &= (column[a:b] >= self.lo[i, j]) & (column[a:b] < self.hi[i, j])
            sums[i] = values[a:b][inside].sum()
        return sums

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " rows"], Ranges]:
        """Return ranges of consecutive cells that together make up the boxes. Also return, for each range,
        the position of its box in the list of boxes.

        A box gives one range for each combination of its codes of all attributes except the last. The range
        contains the cells with these codes and the box's interval of codes of the last attribute. If all
        boxes contain all codes of the last attribute, the method joins adjacent ranges to longer ranges.
        """
        shape = np.array(domain.shape)
        last = len(shape) - 1
        while last and ((self.lo[:, last] == 0) & (self.hi[:, last] == shape[last])).all():
            last -= 1  # attributes that every box covers in full make longer ranges
        outer = self.hi[:, :last] - self.lo[:, :last]
        total = outer.astype(float).prod(axis=1).sum()
        if total > _MAX_RANGES:
            raise ValueError(
                f"these boxes make {total:.3g} ranges of keys: need at most {_MAX_RANGES}; "
                "Dyadic(dims=2) answers boxes over two attributes as they are"
            )
        sizes = outer.prod(axis=1)
        query = np.repeat(np.arange(len(self)), sizes)
        rest = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        start = np.zeros(len(query), np.int64)
        for axis in range(last - 1, -1, -1):
            n = outer[query, axis]
            start += (self.lo[query, axis] + rest % n) * domain.strides[axis]
            rest //= n
        lo = start + self.lo[query, last] * domain.strides[last]
        hi = start + self.hi[query, last] * domain.strides[last]
        return query, Ranges(lo, hi)


# Shuffle

_BLOCK = 2**15  # keys that are shuffled at a time


@value
class Shuffle:
    """Pseudo-random order of the integers from 0 to `size` − 1. The order takes no memory, because the object
    computes the position of an integer from a seed when you ask for this position. The order is public.

    To find a position, the object applies a permutation to the integer, again and again until the result is
    below `size`. The permutation acts on the integers below the next power of two. Its steps are
    multiplications by odd numbers and xor-shifts, as at the end of the hash function MurmurHash3.
    """

    size: int
    seed: int

    def __call__(self, keys: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Return the position of each of the numbers `keys` in the random order."""
        keys = np.asarray(keys)
        places = np.empty(len(keys), np.int64)
        for i in range(0, len(keys), _BLOCK):  # what stays in the cache is several times faster
            places[i : i + _BLOCK] = self._places(keys[i : i + _BLOCK])
        return places

    def _places(self, keys: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        bits = max(2, (self.size - 1).bit_length())
        mask = np.uint64(2**bits - 1)
        shift = np.uint64((bits + 1) // 2)
        odd = np.random.default_rng(self.seed).integers(0, 2**63, 4, dtype=np.uint64) * 2 + 1

        def mix(x: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
            for constant in odd.astype(np.uint64):
                x *= constant
                x += constant
                x &= mask
                x ^= x >> shift
            return x

        places = mix(keys.astype(np.uint64))
        outside = np.flatnonzero(places >= np.uint64(self.size))
        while outside.size:
            places[outside] = mix(places[outside])
            outside = outside[places[outside] >= np.uint64(self.size)]
        return places.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Windows:
    """Queries that count the records in random subsets of the cells. All cells are put into one random order,
    and a subset is a range of positions in this order. So the time for a query does not depend on the size of
    the subset.
    """

    shuffle: Shuffle
    ranges: Ranges

    def on(self, domain: Domain) -> Windows:
        """Return the queries unchanged. Raise a ValueError if the queries were drawn for a domain with
        another number of cells.
        """
        if domain.size != self.shuffle.size:
            raise ValueError(f"subsets of {self.shuffle.size} cells do not fit {domain.size}")
        return self

    def __len__(self) -> int:
        return len(self.ranges)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Return the number of cells in each subset."""
        return self.ranges.cells(domain)

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Return the answer to each query: the sum of the `values` of the cells in its subset. The value of
        the cell with the key (identifier) keys[j] is values[j]. The positions of the keys in the random order
        are kept in memory for later calls.
        """
        return self.ranges.sums_of_prefix(*_shuffled(self.shuffle, keys, values))

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
        """Raise a ValueError, because the cells of a random subset are scattered and do not form ranges."""
        raise ValueError(
            "random subsets are scattered over the domain, so a tree cannot answer them. Ask "
            "Ranges, Boxes or Subsets"
        )


class _ShuffledSums(NamedTuple):
    places: Int[np.ndarray, " n"] | None  # sorted; None where every cell has its value
    prefix: Any


_MAX_CACHED = 16  # shuffled orders at a time: each is as large as its table
_cache: dict[
    tuple[Shuffle, int, int], _ShuffledSums
] = {}  # key: shuffle and ids of two arrays, while these exist


def _shuffled(shuffle: Shuffle, keys: np.ndarray, values: np.ndarray) -> _ShuffledSums:
    """Return the positions of the keys in a random order, sorted, and the running sums of `values` in this
    order.

    If more than one cell in eight has a value, the running sums cover all positions. Then None is returned in
    place of the positions.
    """
    name = (shuffle, id(keys), id(values))
    if name in _cache:
        return _cache[name]
    places = shuffle(keys)
    if 8 * len(keys) > shuffle.size:
        dense = np.zeros(shuffle.size, values.dtype)
        dense[places] = values
        sums = _ShuffledSums(None, prefix_sums(dense))
    else:
        order = np.argsort(places)
        sums = _ShuffledSums(places[order], prefix_sums(values[order]))
    if keys.flags.writeable or values.flags.writeable:
        return sums  # they may change and keep their ids
    for array in (keys, values):  # an id is free again when its array is gone
        weakref.finalize(array, _cache.pop, name, None).atexit = False
    _cache[name] = sums
    if len(_cache) > _MAX_CACHED:
        del _cache[next(iter(_cache))]  # the oldest
    return sums
