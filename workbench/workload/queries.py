"""What is asked: sets of counting queries over a domain, concrete or as recipes.

A concrete workload sums any sparse vector over each of its queries, so that truth and estimates are
asked in the same way. A recipe is a small hashable value whose `on(domain)` draws the same concrete
workload everywhere; it is what metrics and trials carry. Workloads are public.
"""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float, Int, Num

from workbench.domain import Domain
from workbench.value import parameter, value

if TYPE_CHECKING:
    from workbench.hierarchy import Hierarchy, Keys, Prefixes


class Workload(Protocol):
    """Queries that know how to sum a sparse vector."""

    def on(self, domain: Domain) -> Workload:
        """The concrete queries on `domain`; a ValueError if they do not fit it."""

    def __len__(self) -> int:
        """How many queries."""

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """How many cells of the domain each query covers."""

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Σ of `values` over the `keys` (sorted) that each query covers."""

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
        """Disjoint ranges that make up the queries, and which query each belongs to."""


def _told(workload, *arrays: np.ndarray) -> str:
    """The text of a concrete workload: a digest, since numpy abbreviates long arrays."""
    digest = hashlib.sha256(b"|".join(a.tobytes() for a in arrays)).hexdigest()[:32]
    return f"<{type(workload).__name__} of {len(workload)} queries, sha256 {digest}>"


@dataclass(frozen=True, eq=False, repr=False)
class Ranges:
    """Half-open intervals of keys [lo, hi), in the domain's own order.

    >>> Ranges([0, 2], [2, 2]).sums(Domain(("x",), (9,)), np.array([1, 5]), np.array([3, 4]))
    array([3., 0.])
    """

    lo: Int[np.ndarray, " queries"]
    hi: Int[np.ndarray, " queries"]

    def __post_init__(self):
        for name in ("lo", "hi"):
            object.__setattr__(
                self, name, np.atleast_1d(np.asarray(getattr(self, name), np.int64))
            )
        if self.lo.shape != self.hi.shape or self.lo.ndim != 1:
            raise ValueError(f"Ranges.lo {self.lo.shape} and hi {self.hi.shape} must be alike")
        if (bad := (self.lo < 0) | (self.hi < self.lo)).any():
            i = int(bad.argmax())
            raise ValueError(f"range {i} is [{self.lo[i]}, {self.hi[i]}): need 0 <= lo <= hi")

    def on(self, domain: Domain) -> Ranges:
        """Itself, if every range lies in the domain."""
        if len(self) and self.hi.max() > domain.size:
            i = int(self.hi.argmax())
            raise ValueError(
                f"range {i} is [{self.lo[i]}, {self.hi[i]}): outside a domain of {domain.size} cells"
            )
        return self

    def __len__(self) -> int:
        return len(self.lo)

    def __repr__(self) -> str:
        return _told(self, self.lo, self.hi)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Lengths of the ranges."""
        return (self.hi - self.lo).astype(float)

    def sums(self, domain, keys, values) -> Float[np.ndarray, " queries"]:
        """One prefix sum and one sorted search for all queries."""
        return self._between(keys, _prefix(values))

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " queries"], Ranges]:
        """Themselves."""
        return np.arange(len(self)), self

    def boxes(self, domain: Domain) -> tuple[Int[np.ndarray, " boxes"], Boxes]:
        """Over two attributes: part of a row, whole rows, part of a row; and whose they are."""
        width = domain.shape[1]
        first, last = -(-self.lo // width), self.hi // width  # the whole rows
        within, zero = first > last, np.zeros(len(self), np.int64)
        row = np.where(within, last, first - 1)
        head = [
            row,
            self.lo - row * width,
            row + 1,
            np.where(within, self.hi - row * width, width),
        ]
        body = [first, zero, np.maximum(first, last), zero + width]
        tail = [last, zero, last + 1, np.where(within, 0, self.hi - last * width)]
        ends = np.concatenate([np.stack(part, axis=1) for part in (head, body, tail)])
        some = np.flatnonzero((ends[:, 0] < ends[:, 2]) & (ends[:, 1] < ends[:, 3]))
        return some % max(len(self), 1), Boxes(ends[some, :2], ends[some, 2:])

    def _between(self, keys, prefix) -> Float[np.ndarray, " queries"]:
        if keys is None:  # every cell has its value
            return (prefix[self.hi] - prefix[self.lo]).astype(float)
        ends = np.concatenate([self.lo, self.hi])
        order = np.argsort(ends)  # a sorted search is an order of magnitude faster
        at = np.empty(len(ends), np.int64)
        at[order] = np.searchsorted(keys, ends[order])
        return (prefix[at[len(self) :]] - prefix[at[: len(self)]]).astype(float)


def _prefix(values: Num[np.ndarray, " n"]) -> Num[np.ndarray, " n+1"]:
    kind = np.int64 if values.dtype.kind in "iub" else np.float64
    prefix = np.zeros(len(values) + 1, kind)
    np.cumsum(values, dtype=kind, out=prefix[1:])
    return prefix


@dataclass(frozen=True, eq=False, repr=False)
class Subsets:
    """Arbitrary sets of cells: query i covers members[offsets[i]:offsets[i+1]], sorted and distinct.

    >>> Subsets.of([[5, 1], []]).sums(Domain(("x",), (9,)), np.array([1, 5]), np.array([3, 4]))
    array([7., 0.])
    """

    offsets: Int[np.ndarray, " queries+1"]
    members: Int[np.ndarray, " cells"]

    @classmethod
    def of(cls, sets) -> Subsets:
        """From an iterable of iterables of keys; a key named twice in a set counts once."""
        sets = [np.unique(np.asarray(list(s), np.int64)) for s in sets]
        offsets = np.cumsum([0, *map(len, sets)])
        return cls(offsets, np.concatenate([*sets, np.empty(0, np.int64)]).astype(np.int64))

    def on(self, domain: Domain) -> Subsets:
        """Itself, if every member lies in the domain."""
        if (
            len(self.members)
            and not 0 <= self.members.min() <= self.members.max() < domain.size
        ):
            raise ValueError(f"a subset names a cell outside a domain of {domain.size} cells")
        return self

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return _told(self, self.offsets, self.members)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Sizes of the subsets."""
        return np.diff(self.offsets).astype(float)

    def sums(self, domain, keys, values) -> Float[np.ndarray, " queries"]:
        """A sorted search of all members among the keys."""
        if not len(keys):
            return np.zeros(len(self))
        order = np.argsort(self.members)  # a sorted search is an order of magnitude faster
        at = np.empty(len(order), np.int64)
        at[order] = np.minimum(np.searchsorted(keys, self.members[order]), len(keys) - 1)
        found = np.where(keys[at] == self.members, values[at], 0).astype(float)
        prefix = np.concatenate([[0.0], np.cumsum(found)])
        return prefix[self.offsets[1:]] - prefix[self.offsets[:-1]]

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " runs"], Ranges]:
        """Runs of neighbouring cells."""
        which = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        new = (np.diff(self.members, prepend=-2) != 1) | (np.diff(which, prepend=-1) != 0)
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(which))[: len(starts)] - 1
        return which[starts], Ranges(self.members[starts], self.members[ends] + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """Products of half-open intervals of codes, one interval [lo, hi) per attribute, none empty."""

    lo: Int[np.ndarray, "queries attributes"]
    hi: Int[np.ndarray, "queries attributes"]

    def __post_init__(self):
        for name in ("lo", "hi"):
            object.__setattr__(
                self, name, np.atleast_2d(np.asarray(getattr(self, name), np.int64))
            )
        if self.lo.shape != self.hi.shape:
            raise ValueError(f"Boxes.lo {self.lo.shape} and hi {self.hi.shape} must be alike")
        wrong = (self.lo < 0) | (self.hi <= self.lo)
        if wrong.any():
            i, axis = np.argwhere(wrong)[0]
            raise ValueError(
                f"box {i} is {self.lo[i]}..{self.hi[i]}: need 0 <= lo < hi, and attribute {axis} has "
                f"[{self.lo[i, axis]}, {self.hi[i, axis]}); hi is not part of the box"
            )

    def on(self, domain: Domain) -> Boxes:
        """Itself, if every box lies in the domain."""
        if self.lo.shape[1] != len(domain.shape) or (self.hi > np.array(domain.shape)).any():
            raise ValueError(f"boxes do not fit a domain of shape {domain.shape}")
        return self

    def __len__(self) -> int:
        return len(self.lo)

    def __repr__(self) -> str:
        return _told(self, self.lo, self.hi)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Volumes of the boxes, in cells."""
        return (self.hi - self.lo).astype(float).prod(axis=1)

    def sums(self, domain, keys, values) -> Float[np.ndarray, " queries"]:
        """A slice of keys along the first attribute, then a mask along the others."""
        stride = domain.strides[0]
        start = np.searchsorted(keys, self.lo[:, 0] * stride)
        stop = np.searchsorted(keys, self.hi[:, 0] * stride - 1, side="right")
        columns = [domain.column(keys, a) for a in domain.attributes[1:]]
        out = np.zeros(len(self))
        for i, (a, b) in enumerate(zip(start, stop, strict=True)):
            inside = np.ones(max(0, b - a), bool)
            for j, column in enumerate(columns, 1):
                inside &= (column[a:b] >= self.lo[i, j]) & (column[a:b] < self.hi[i, j])
            out[i] = values[a:b][inside].sum()
        return out

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " rows"], Ranges]:
        """A range for each combination of codes of all attributes but the last, or the last few."""
        shape, last = np.array(domain.shape), len(domain.shape) - 1
        while last and ((self.lo[:, last] == 0) & (self.hi[:, last] == shape[last])).all():
            last -= 1  # attributes that every box covers in full make longer ranges
        outer = self.hi[:, :last] - self.lo[:, :last]
        if (total := outer.astype(float).prod(axis=1).sum()) > _ROWS:
            raise ValueError(
                f"these boxes make {total:.3g} ranges of keys: need at most {_ROWS}; Dyadic(dims=2) "
                "answers boxes over two attributes as they are"
            )
        rows = outer.prod(axis=1)
        which = np.repeat(np.arange(len(self)), rows)
        rest = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows)
        start = np.zeros(len(which), np.int64)
        for axis in range(last - 1, -1, -1):
            n = outer[which, axis]
            start += (self.lo[which, axis] + rest % n) * domain.strides[axis]
            rest //= n
        lo, hi = (ends[which, last] * domain.strides[last] for ends in (self.lo, self.hi))
        return which, Ranges(start + lo, start + hi)


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """How many records lie below each of some nodes of a hierarchy, told by level and lowest key.

    >>> from workbench.hierarchy import Prefixes
    >>> len(Nodes.of(Prefixes("ab", 3), ["a", "ab", ""]))
    3
    """

    levels: Int[np.ndarray, " queries"]
    keys: Keys

    @classmethod
    def of(cls, tree: Prefixes, texts) -> Nodes:
        """The strings that begin with each of some texts; what is not in the space is a ValueError."""
        keys, why = tree.encode(texts)
        if why.any():
            i = int((why > 0).argmax())
            raise ValueError(f"{texts[i]!r} is not in {tree!r}: {tree.reasons[why[i] - 1]}")
        return cls(np.array([len(text) for text in texts], np.int64), keys)

    def on(self, domain: Hierarchy) -> Nodes:
        """Itself, if these are nodes of the hierarchy."""
        digits = getattr(domain, "digits", None)
        if (
            digits is None
            or len(self.keys) != digits.word_count
            or not ((0 <= self.levels) & (self.levels <= digits.depth)).all()
            or not digits.contains(self.keys)
            or (digits.ancestors(self.levels, self.keys) != self.keys).any()
        ):
            raise ValueError(f"these nodes are not of {domain!r}")
        return self

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return _told(self, self.levels, self.keys)

    def cells(self, domain: Hierarchy) -> Float[np.ndarray, " queries"]:
        """How many keys lie below each."""
        radices = domain.digits.radices
        return np.array([1.0 * prod(radices[i:]) for i in range(len(radices) + 1)])[self.levels]


@value
class Level:
    """All nodes of a level of a hierarchy, in the order of keys; of at most 2²² nodes."""

    level: int = parameter(low=0, high=128, integer=True, doc="0 is the root")

    def on(self, domain: Hierarchy) -> Nodes:
        """The nodes of the level."""
        from workbench.hierarchy import child_digits  # which compiles loops: not at start-up

        nodes = domain.digits.root()
        if self.level > domain.digits.depth:
            raise ValueError(f"{self!r} is not a level of {domain!r}")
        for level in range(self.level):
            many = domain.children(level, nodes)
            if many.sum() > 2**22:
                raise ValueError(f"{domain!r} has more than {2**22} nodes at {self!r}")
            nodes = np.repeat(nodes, many, axis=1)
            nodes = domain.digits.child(level, nodes, child_digits(many))
        return Nodes(np.full(nodes.shape[1], self.level), nodes)


def queries_on_hierarchy(workload: Workload, tree: Hierarchy) -> Workload:
    """The concrete queries over a hierarchy; a ValueError where it has no boxes."""
    if isinstance(workload, Boxes | RandomBoxes) and not hasattr(tree, "boxes"):
        raise ValueError(f"{workload!r} cannot be asked over {tree!r}: ask Nodes")
    return workload.on(tree)


def key_runs(
    workload: Workload, tree: Hierarchy
) -> tuple[Int[np.ndarray, " pieces"], Keys, Keys]:
    """Runs of keys that make up concrete queries, lowest and highest, and whose they are."""
    if isinstance(workload, Nodes):
        return (
            np.arange(len(workload)),
            workload.keys,
            tree.digits.ends(workload.levels, workload.keys),
        )
    if tree.size >= 2**63 or isinstance(workload, Boxes):
        raise ValueError(f"{workload!r} cannot be asked over {tree!r}: ask Nodes")
    which, ranges = workload.intervals(tree)
    some = ranges.hi > ranges.lo
    ends = (x[some].astype(np.uint64)[None] for x in (ranges.lo, ranges.hi - 1))
    return which[some], *ends


_ROWS = 2**26  # ranges that boxes may make: some 2 GiB
_BLOCK = 2**15  # keys that are shuffled at a time


@value
class Shuffle:
    """A public pseudo-random order of the keys 0 … size − 1, computed key by key.

    A bijection on the next power of two (odd multiplications and xor-shifts, after the finaliser of
    MurmurHash3), walked until it lands inside: a permutation of the domain that is never stored.
    """

    size: int
    seed: int

    def __call__(self, keys: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The places of `keys` in the shuffled order."""
        keys = np.asarray(keys)
        place = np.empty(len(keys), np.int64)
        for i in range(0, len(keys), _BLOCK):  # what stays in the cache is several times faster
            place[i : i + _BLOCK] = self._places(keys[i : i + _BLOCK])
        return place

    def _places(self, keys: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        bits = max(2, (self.size - 1).bit_length())
        mask = np.uint64(2**bits - 1)
        shift = np.uint64((bits + 1) // 2)
        odd = np.random.default_rng(self.seed).integers(0, 2**63, 4, dtype=np.uint64) * 2 + 1

        def mix(x):
            for constant in odd.astype(np.uint64):
                x *= constant
                x += constant
                x &= mask
                x ^= x >> shift
            return x

        place = mix(keys.astype(np.uint64))
        outside = np.flatnonzero(place >= np.uint64(self.size))
        while outside.size:
            place[outside] = mix(place[outside])
            outside = outside[place[outside] >= np.uint64(self.size)]
        return place.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Windows:
    """Random subsets as windows [lo, hi) of a shuffled order: any size costs the same."""

    shuffle: Shuffle
    ranges: Ranges

    def on(self, domain: Domain) -> Windows:
        """Itself, if it was drawn for a domain of this size."""
        if domain.size != self.shuffle.size:
            raise ValueError(f"subsets of {self.shuffle.size} cells do not fit {domain.size}")
        return self

    def __len__(self) -> int:
        return len(self.ranges)

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Sizes of the subsets."""
        return self.ranges.cells(domain)

    def sums(self, domain, keys, values) -> Float[np.ndarray, " queries"]:
        """Ranges over the shuffled keys, which are sorted once for all sizes that are asked."""
        return self.ranges._between(*_shuffled(self.shuffle, keys, values))

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
        """Refused: the cells of a random subset are scattered."""
        raise ValueError(
            "random subsets are scattered over the domain and make no ranges: a tree answers Ranges, "
            "Boxes and Subsets"
        )


_KEPT = 16  # shuffled orders at a time: each is as large as its table
_known: dict[tuple, tuple] = {}  # what `_shuffled` found, while the arrays it is about live


def _shuffled(shuffle: Shuffle, keys: np.ndarray, values: np.ndarray) -> tuple:
    """The keys' places in a shuffled order, sorted, and the prefix sums of `values` along it.

    Where keys are many the values are put in their places instead, and None stands for all places.
    """
    name = (shuffle, id(keys), id(values))
    if name not in _known:
        places = shuffle(keys)
        if 8 * len(keys) > shuffle.size:
            dense = np.zeros(shuffle.size, values.dtype)
            dense[places] = values
            found = None, _prefix(dense)
        else:
            order = np.argsort(places)
            found = places[order], _prefix(values[order])
        if keys.flags.writeable or values.flags.writeable:
            return found  # they may change and keep their ids
        for array in (keys, values):  # an id is free again when its array is gone
            weakref.finalize(array, _known.pop, name, None).atexit = False
        _known[name] = found
        if len(_known) > _KEPT:
            del _known[next(iter(_known))]  # the oldest
    return _known[name]


def _random_intervals(
    domain: Domain, size: int, count: int, rng: np.random.Generator
) -> Ranges:
    if size > domain.size:
        raise ValueError(f"queries of {size} cells do not fit a domain of {domain.size}")
    lo = rng.integers(0, domain.size - size, count, endpoint=True)
    return Ranges(lo, lo + size)


@value
class RandomRanges:
    """`count` ranges of `size` consecutive keys, placed uniformly.

    >>> len(RandomRanges(10, 5, seed=0).on(Domain(("x",), (100,))))
    5
    """

    size: int = parameter(low=1, integer=True, unit="cells", doc="cells a query covers")
    count: int = parameter(200, 1, integer=True, unit="queries")
    seed: int = parameter(0, 0, integer=True)

    def on(self, domain: Domain) -> Ranges:
        """The ranges on `domain`."""
        return _random_intervals(
            domain, self.size, self.count, np.random.default_rng(self.seed)
        )


@value
class RandomSubsets:
    """`count` subsets of `size` cells, each uniform among all subsets of its size."""

    size: int = parameter(low=1, integer=True, unit="cells", doc="cells a query covers")
    count: int = parameter(200, 1, integer=True, unit="queries")
    seed: int = parameter(0, 0, integer=True)

    def on(self, domain: Domain) -> Windows:
        """The subsets on `domain`, as windows of one shuffled order."""
        shuffle, rng = np.random.SeedSequence(self.seed).spawn(2)
        return Windows(
            Shuffle(domain.size, int(shuffle.generate_state(1)[0])),
            _random_intervals(domain, self.size, self.count, np.random.default_rng(rng)),
        )


@value
class RandomBoxes:
    """`count` boxes of `shape` cells, one number an attribute, placed uniformly.

    >>> RandomBoxes((2, 3), 5, seed=0).on(Domain(("x", "y"), (9, 9))).cells(None)[:2]
    array([6., 6.])
    """

    shape: tuple = parameter(
        check=lambda x: (
            None
            if isinstance(x, tuple) and x and all(type(n) is int and n > 0 for n in x)
            else "need a tuple of whole numbers > 0, one an attribute"
        ),
        unit="cells",
        doc="codes a query covers along each attribute",
    )
    count: int = parameter(200, 1, integer=True, unit="queries")
    seed: int = parameter(0, 0, integer=True)

    def on(self, domain: Domain) -> Boxes:
        """The boxes on `domain`."""
        if len(self.shape) != len(domain.shape) or any(
            n > m for n, m in zip(self.shape, domain.shape, strict=True)
        ):
            raise ValueError(
                f"boxes of {self.shape} codes do not fit a domain of {domain.shape}"
            )
        rng = np.random.default_rng(self.seed)
        room = np.array(domain.shape) - self.shape
        lo = rng.integers(0, room, (self.count, len(room)), endpoint=True)
        return Boxes(lo, lo + self.shape)
