"""Dirichlet synthesis of each work place's homes, as OnTheMap itself was made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.domain import Domain
from workbench.estimates import Summary
from workbench.mechanism import Mechanism, Release, approximate_budget, value
from workbench.mechanisms import DirichletSynthesis
from workbench.privacy import DP, REPLACE
from workbench.table import Bound, SparseTable


@value
class SynthesisByWorkPlace(Mechanism):
    """One synthesis a work place, with its number of jobs public; together they are one release.

    A job that moves its home stays in one table, so that together they promise what each does; the
    ledger, which knows no such relation, adds them up.
    """

    budget: DP = approximate_budget()
    series = "Dirichlet synthesis, by work place"
    idealised = True
    relation = REPLACE

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Release synthetic counts of all work places."""
        keys = []
        counts = []
        ledger = []
        for start, jobs in work_places(table):
            release = DirichletSynthesis(self.budget, jobs.total, jobs.total)(jobs, rng)
            keys.append(start + release.estimate.keys)
            counts.append(release.estimate.values)
            ledger += release.ledger
        estimate = Summary(table.domain, np.concatenate(keys), np.concatenate(counts), None)
        return Release(estimate, tuple(ledger), self, table.bound)


def work_places(table: SparseTable) -> Iterator[tuple[int, SparseTable]]:
    """Each row of a table of two attributes that holds anything, and its first key."""
    width = table.domain.shape[1]
    homes = Domain(table.domain.attributes[1:], (width,))
    for start in range(0, table.domain.size, width):
        place = slice(*np.searchsorted(table.keys, [start, start + width]))
        keys = table.keys[place] - start
        if len(keys):
            counts = table.counts[place]
            yield start, SparseTable(homes, keys, counts, Bound(1, 1), table.truth_public)
