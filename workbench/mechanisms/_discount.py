"""Which records an improved adaptive histogram discards at every split: five strategies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench import noise
from workbench.arrays import Int, Num
from workbench.records import Frontier, Records
from workbench.records.value import Children
from workbench.value import sealed

STRATEGIES = "skip", "uniform", "proportional", "fractional", "progressive"


class Discount:
    """Takes t records off every node that is split, so that each child has at least t fewer.

    What it takes depends on the records alone, in a way that is stable: of two sets of records that
    differ by one, what is left differs by one at most (but for "progressive").
    """

    def __init__(self, strategy: str, t: int):
        self.strategy = strategy
        self.t = t
        self.arrival = np.zeros(0, np.int64)

    def root(self, records: Records, rng: np.random.Generator | None) -> Frontier:
        """Everything in one node; in proportional discounting every record arrives at random, once."""
        if self.strategy == "proportional":
            try:
                if records.counts is not None:
                    keys = np.repeat(records.keys, records.counts, axis=1)
                    records = replace(records, keys=sealed(keys), counts=None)
                words = noise.random_words(len(records), rng=rng)  # sorted once for all splits
                self.arrival = np.empty(len(records), np.int64)
                self.arrival[np.argsort(words, kind="stable")] = np.arange(len(records))
            except MemoryError:  # whose own words would tell how many records there are
                raise MemoryError("strategy = 'proportional' needs memory a record") from None
        frontier = Frontier.root(records)
        if self.strategy == "fractional":
            return replace(frontier, share_left=np.ones(1))
        return frontier

    def counts(self, frontier: Frontier) -> Num[np.ndarray, " n"]:
        """What nodes hold, in records; a floating-point number where these are diminished."""
        if frontier.share_left is None:
            return frontier.counts
        return frontier.counts * frontier.share_left

    def __call__(self, frontier: Frontier) -> tuple[Frontier, Children]:
        """Nodes that are split, with what is left to them, and their occupied children."""
        if self.strategy == "skip":
            frontier = replace(frontier, start=frontier.start + self.t)
        if self.strategy == "proportional":
            frontier = self._without_first_arrived(frontier)
        if self.strategy == "fractional":
            lost = self.t / np.maximum(self.counts(frontier), self.t)
            frontier = replace(frontier, share_left=frontier.share_left * (1 - lost))
        children = frontier.children()
        if self.strategy == "uniform":
            children = children._replace(start=children.start + self.t)
        if self.strategy == "progressive":
            lost = level_losses(children.parents, children.stop - children.start, self.t)
            children = children._replace(start=children.start + lost)
        return frontier, children

    def _without_first_arrived(self, frontier: Frontier) -> Frontier:
        """The records of the nodes, but for the first t of each that arrived."""
        counts = frontier.counts
        first = np.cumsum(counts) - counts
        node = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(counts.sum()) + (frontier.start - first)[node]
        arrival = self.arrival[rows]
        rank = np.empty(len(rows), np.int64)
        after_all = arrival.max(initial=0) + 1
        rank[np.argsort(node * after_all + arrival)] = np.arange(len(rows)) - first[node]
        stays = rank >= self.t
        self.arrival = arrival[stays]
        left = np.maximum(counts - self.t, 0)
        stop = np.cumsum(left)
        keys = sealed(frontier.records.keys[:, rows[stays]])
        records = replace(frontier.records, keys=keys)
        return replace(frontier, records=records, start=stop - left, stop=stop)


def level_losses(
    parents: Int[np.ndarray, " k"], counts: Int[np.ndarray, " k"], t: int
) -> Int[np.ndarray, " k"]:
    """How much each child loses when its siblings lose t in all, one at a time from the largest."""
    if not len(parents):
        return np.zeros(0, np.int64)
    new = np.diff(parents, prepend=-1) != 0
    first = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    totals = np.add.reduceat(counts, first)
    cap = _smallest_caps(counts, t, first, group)[group]
    lost = np.maximum(counts - cap, 0)
    rest = t - np.add.reduceat(lost, first)
    tied = counts >= cap
    before = np.cumsum(tied) - tied
    lost += tied & (before - before[first][group] < rest[group])  # ties in the order of keys
    return np.where(totals[group] <= t, counts, lost)


def _smallest_caps(
    counts: Int[np.ndarray, " k"],
    t: int,
    first: Int[np.ndarray, " g"],
    group: Int[np.ndarray, " k"],
) -> Int[np.ndarray, " g"]:
    """For each group of siblings the smallest number above which there are no more than t records."""
    low = np.ones(len(first), np.int64)
    high = np.maximum.reduceat(counts, first).astype(np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        above = np.add.reduceat(np.maximum(counts - middle[group], 0), first)
        high = np.where(above <= t, middle, high)
        low = np.where(above <= t, low, np.minimum(middle + 1, high))
    return high
