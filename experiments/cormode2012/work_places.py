"""Dirichlet synthesis of each work place's homes, as OnTheMap itself was made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import expm1

import numpy as np

from workbench import noise
from workbench.data import Bound, SparseTable
from workbench.estimates import Summary
from workbench.estimates.release import Release
from workbench.mechanisms import DirichletSynthesis
from workbench.mechanisms.protocol import Mechanism, approximate_budget
from workbench.privacy import DP, REPLACE
from workbench.spaces import Domain
from workbench.value import value


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
        places = list(work_places(table))
        totals = frozenset(jobs.total for _, jobs in places)
        alphas = least_priors(self.budget, totals, table.domain.shape[1])
        keys = []
        counts = []
        ledger = []
        for start, jobs in places:
            drawn = noise.dirichlet_multinomial(
                jobs.keys,
                jobs.counts,
                jobs.domain.size,
                alpha=alphas[jobs.total],
                records=jobs.total,
                cost=self.budget,
                rng=rng,
            )
            keys.append(start + drawn.keys)
            counts.append(drawn.counts)
            ledger.append(drawn.receipt)
        estimate = Summary(table.domain, np.concatenate(keys), np.concatenate(counts), None)
        return Release(estimate, tuple(ledger), self, table.bound)


@cache
def least_priors(budget: DP, totals: frozenset[int], k: int) -> dict[int, float]:
    """The α that `DirichletSynthesis.prior` proves for tables of k cells, by their total.

    Only α = j/(e^ε − 1) are tried, as there; a total starts at the j of the one before, since theirs are
    seldom far apart.
    """
    least = {}
    j = 1

    def alpha(j: int) -> float:
        return j / expm1(budget.epsilon) * (1 + 1e-11)

    for total in sorted(totals):
        mechanism = DirichletSynthesis(budget, total, total)

        def suffices(j: int, mechanism=mechanism) -> bool:
            return mechanism.failure(k, alpha(j)) <= mechanism.budget.delta

        while j < total and not suffices(j):
            j += 1
        while j > 1 and suffices(j - 1):
            j -= 1
        least[total] = alpha(j) if j < total else mechanism.pure_alpha
    return least


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
