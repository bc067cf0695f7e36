"""Random subsets of any size, as windows of one shuffled order of the keys."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float, Int, Num, UInt64
from workbench.domain import Domain
from workbench.value import value
from workbench.workload.queries import Ranges, prefix_sums

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

    def sums(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ) -> Float[np.ndarray, " queries"]:
        """Ranges over the shuffled keys, which are sorted once for all sizes that are asked."""
        return self.ranges.sums_of_prefix(*_shuffled(self.shuffle, keys, values))

    def intervals(self, domain: Domain) -> tuple[Int[np.ndarray, " pieces"], Ranges]:
        """Refused: the cells of a random subset are scattered."""
        raise ValueError(
            "random subsets are scattered over the domain and make no ranges: a tree answers Ranges, "
            "Boxes and Subsets"
        )


class _ShuffledSums(NamedTuple):
    places: Int[np.ndarray, " n"] | None  # sorted; None where every cell has its value
    prefix: Any


_MAX_CACHED = 16  # shuffled orders at a time: each is as large as its table
_cache: dict[
    tuple[Shuffle, int, int], _ShuffledSums
] = {}  # by shuffle and arrays, while the arrays live


def _shuffled(shuffle: Shuffle, keys: np.ndarray, values: np.ndarray) -> _ShuffledSums:
    """The keys' places in a shuffled order, sorted, and the prefix sums of `values` along it.

    Where keys are many the values are put in their places instead, and None stands for all places.
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
