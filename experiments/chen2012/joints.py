"""Chen et al. 2012, Figure 6: errors of joints, and what sampling or no data at all would have."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from experiments.chen2012._published import SHORT, joint_shares
from experiments.chen2012.shared import convergence
from workbench import Domain, SparseTable
from workbench.compiled import pd
from workbench.trials.metrics.answers import refuse_private
from workbench.value import value

MANY = 50  # values of an attribute


def sampling_error(shares: np.ndarray, people: int) -> float:
    """The expected Σ|p − p̃| of so many people drawn anew: de Moivre's, of each cell."""
    from scipy.special import gammaln, xlog1py, xlogy

    p = shares[(shares > 0) & (shares < 1)]
    k = np.floor(people * p) + 1
    log_choose = gammaln(people + 1) - gammaln(k + 1) - gammaln(people - k + 1)
    logs = log_choose + xlogy(k, p) + xlog1py(people - k + 1, -p)
    return float((2 * k * np.exp(logs)).sum() / people)


@value
class JointErrors:
    """Σ|p − p̃| of every pair of attributes, and of triples; what sampling and no data would have."""

    triples: int

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """A row a joint that the estimate has."""
        refuse_private(truth)
        domain = truth.domain
        exact = joint_shares(truth)
        ours = joint_shares(estimate)
        rows = []
        for axes in [*combinations(range(len(domain.shape)), 2), *self.drawn(domain)]:
            shares = ours(axes)
            if shares is not None:
                names = [SHORT.get(domain.attributes[a], domain.attributes[a]) for a in axes]
                true = exact(axes)
                cells = prod(domain.shape[a] for a in axes)
                row = {"k": len(axes), "joint": ", ".join(names), "cells": cells}
                row["wide"] = sum(domain.shape[a] >= MANY for a in axes)
                row["sampling"] = sampling_error(true, int(truth.total))
                row["no_data"] = float(np.abs(true - 1 / cells).sum())
                rows.append(row | {"value": float(np.abs(shares - true).sum())})
        return pd.DataFrame(rows).assign(**convergence(estimate))

    def drawn(self, domain: Domain) -> list[tuple[int, ...]]:
        """The triples: all, or so many by lot."""
        candidates = [*combinations(range(len(domain.shape)), 3)]
        if self.triples >= len(candidates):
            return candidates
        lots = np.random.default_rng(3).choice(len(candidates), self.triples, replace=False)
        return [candidates[lot] for lot in sorted(lots)]


def couples(pairs: pd.DataFrame) -> pd.DataFrame:
    """All couples of joints of unlike size: the values of the one of fewer cells, and of more."""
    both = pairs.merge(pairs, on="seed", suffixes=("", "_of_more"))
    both = both[both.cells < both.cells_of_more]
    both = both.assign(couple=both.joint + " | " + both.joint_of_more)
    fewer = both[["couple", "seed", "value"]].assign(series="fewer")
    more = both[["couple", "seed"]].assign(value=both.value_of_more, series="more")
    return pd.concat([fewer, more])
