"""What a mechanism is, and, under one import, all that its author needs.

`mechanisms/laplace_histogram.py` is the shortest to copy.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from workbench import noise as noise
from workbench.estimates.histogram import Histogram as Histogram
from workbench.estimates.summary import Summary as Summary
from workbench.privacy import ADD_REMOVE
from workbench.privacy import DP as DP
from workbench.release import Release as Release
from workbench.release import read_release as read_release
from workbench.release import refuse_existing as refuse_existing
from workbench.shares import approximate_budget as approximate_budget
from workbench.shares import consistent_field as consistent_field
from workbench.shares import dense_counts as dense_counts
from workbench.shares import memory_field as memory_field
from workbench.shares import noise_blocks as noise_blocks
from workbench.shares import noise_law_field as noise_law_field
from workbench.shares import pure_budget as pure_budget
from workbench.shares import refuse_dense as refuse_dense
from workbench.shares import refuse_inconsistent as refuse_inconsistent
from workbench.shares import refuse_several_tuples_per_unit as refuse_several_tuples_per_unit
from workbench.shares import refuse_size_above as refuse_size_above
from workbench.shares import sensitivity as sensitivity
from workbench.shares import split_epsilon as split_epsilon
from workbench.shares import transform_field as transform_field
from workbench.table import Bound as Bound
from workbench.table import SparseTable as SparseTable
from workbench.value import parameter as parameter
from workbench.value import sealed as sealed
from workbench.value import value as value


class Mechanism(Protocol):
    """A frozen value: fields are the paper's parameters, calling it spends the budget.

    House rules, held by tests/laws/test_laws.py for every class in `workbench.mechanisms`: the ledger stays
    within the budget; all randomness comes from `rng`, or from the operating system when it is None;
    the estimate is public and on the domain it declares; the error vanishes as ε grows, unless the
    class says `converges = False` and why.

    Figures, panels and advice call it by its `series`, a class variable or a property of the fields
    that its name depends on; by its class where it has none. One that puts geometric noise on the nodes of
    a basis and then a threshold may have `release_rule(domain, bound)`, from which its errors are foreseen.
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


def series_name(mechanism: Any) -> str:
    """What figures call a mechanism: its `series`, or its class; its transform, and "consistent" if it is.

    >>> from workbench.mechanisms import HighPassFilter
    >>> from workbench.transform import Dyadic
    >>> series_name(HighPassFilter(DP(1.0), theta=5, transform=Dyadic()))
    'filter, dyadic'
    """
    parts = [getattr(mechanism, "series", type(mechanism).__name__)]
    transform = getattr(mechanism, "transform", None)
    if transform is not None:
        parts.append(getattr(transform, "series", repr(transform)))
    if getattr(mechanism, "consistent", False):
        parts.append("consistent")
    return ", ".join(parts)
