"""What a mechanism is, and, under one import, all that its author needs.

`mechanisms/laplace_histogram.py` is the shortest to copy.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from workbench import noise
from workbench.estimates.histogram import Histogram
from workbench.estimates.summary import Summary
from workbench.privacy import ADD_REMOVE, DP
from workbench.release import Release, read_release, refuse_existing
from workbench.shares import (
    approximate_budget,
    consistent_field,
    dense_counts,
    memory_field,
    noise_blocks,
    noise_law_field,
    pure_budget,
    refuse_dense,
    refuse_inconsistent,
    refuse_several_tuples_per_unit,
    refuse_size_above,
    sensitivity,
    split_epsilon,
    transform_field,
)
from workbench.table import Bound, SparseTable
from workbench.value import parameter, sealed, value

__all__ = [
    "DP",
    "Bound",
    "Histogram",
    "Mechanism",
    "Release",
    "SparseTable",
    "Summary",
    "approximate_budget",
    "consistent_field",
    "dense_counts",
    "memory_field",
    "noise",
    "noise_blocks",
    "noise_law_field",
    "parameter",
    "pure_budget",
    "read_release",
    "refuse_dense",
    "refuse_existing",
    "refuse_inconsistent",
    "refuse_several_tuples_per_unit",
    "refuse_size_above",
    "sealed",
    "sensitivity",
    "split_epsilon",
    "transform_field",
    "value",
]


class Mechanism(Protocol):
    """A frozen value: fields are the paper's parameters, calling it spends the budget.

    House rules, held by tests/laws/test_laws.py for every class in `workbench.mechanisms`: the ledger stays
    within the budget; all randomness comes from `rng`, or from the operating system when it is None;
    the estimate is public and on the domain it declares; the error vanishes as ε grows, unless the
    class says `converges = False` and why.
    """

    budget: DP
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str]
    converges: ClassVar[bool] = True
    spends_delta: ClassVar[bool] = False
    relation: ClassVar[str] = ADD_REMOVE
    idealised: ClassVar[bool] = False

    def __call__(self, data: Any, rng: np.random.Generator | None = None) -> Release:
        """Release a private estimate.

        Parameters
        ----------
        data : private data of the class `takes`, with a bound.
        rng : a seeded generator for a release that can be replayed, or None to publish.

        Returns
        -------
        Release
            The estimate, with receipts that cost no more than the budget.
        """

    @classmethod
    def example(cls, budget: DP) -> Self:
        """One sensible instance, for laws, audits and widgets; unless said otherwise its defaults."""
        return cls(budget)
