"""Leaves of which one range of keys at a time is in memory: the lowest thresholds make very many."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from workbench import noise
from workbench.data import Records
from workbench.data.frontier import LevelKeys
from workbench.estimates import Leaves
from workbench.estimates.release import Release
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.mechanisms.adaptive import noisy_leaves
from workbench.mechanisms.protocol import private_bound
from workbench.spaces import Keys, argsort_keys, searchsorted_keys
from workbench.value import value


@dataclass(frozen=True, eq=False)
class LeavesInParts:
    """The leaves below each child of the root, counted anew, with the same noise, whenever they are read.

    `stopped` is where nodes stop, in the order of keys at each level.
    """

    records: Records
    stopped: list[LevelKeys]
    l1: float
    epsilon: float
    rng: np.random.Generator

    def __len__(self) -> int:
        return sum(keys.shape[1] for _, keys in self.stopped)

    def __iter__(self) -> Iterator[Leaves]:
        rng = deepcopy(self.rng)
        digits = self.records.hierarchy.digits
        children = np.arange(digits.radices[0])
        starts = digits.child(0, np.repeat(digits.root(), len(children), axis=1), children)
        of_nodes = [_parts(keys, starts) for _, keys in self.stopped]
        for i, own in enumerate(_parts(self.records.keys, starts)):
            counts = None if self.records.counts is None else self.records.counts[own]
            records = replace(self.records, keys=self.records.keys[:, own], counts=counts)
            nodes = [
                (level, keys[:, parts[i]])
                for (level, keys), parts in zip(self.stopped, of_nodes, strict=True)
            ]
            yield noisy_leaves(records, nodes, self.l1, self.epsilon, rng)[0]


@value
class InParts(ImprovedAdaptiveHistogram):
    """The same histogram, whose leaves are counted in parts."""

    def __call__(self, records: Records, rng: np.random.Generator) -> Release:
        """Release leaves that can be read in their order only, over and over."""
        bound = private_bound(records)
        l1, epsilon = bound.l1, self.budgets().leaves
        stopped, structure = self._structure(records, l1, rng)
        for i, (level, keys) in enumerate(stopped):
            stopped[i] = level, keys[:, argsort_keys(keys)]
        none = np.zeros(0, np.int64)
        receipt = noise.geometric(none, l1=l1, epsilon=epsilon, rng=rng)[1]
        leaves = LeavesInParts(records, stopped, l1, epsilon, rng)
        return Release(leaves, (structure, receipt), self, bound)


def in_parts(histogram: ImprovedAdaptiveHistogram) -> InParts:
    """The same, in parts."""
    return InParts(
        **{field.name: getattr(histogram, field.name) for field in fields(histogram)}
    )


def _parts(keys: Keys, starts: Keys) -> list[slice]:
    """Those from each start to the next."""
    ends = np.append(searchsorted_keys(keys, starts), keys.shape[1])
    return [slice(*part) for part in pairwise(ends)]
