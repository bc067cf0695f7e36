"""Functions that a test audits from the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass

from workbench.mechanisms import GeometricHistogram
from workbench.privacy import DP


def coin(table) -> int:
    """Nothing of the table."""
    return os.urandom(1)[0] & 1


def cells(table) -> int:
    """How many cells are occupied."""
    return len(table)


def refuses(table) -> int:
    """Raises whatever it is given."""
    raise ValueError("not this table")


def raises_for_one(table) -> int:
    """Raises where a second cell is occupied."""
    if len(table) > 1:
        raise KeyError("a second cell")
    return os.urandom(1)[0] & 1


@dataclass(frozen=True)
class LeaksAboveTen:
    """Sound by its defaults."""

    budget: DP
    k: int = 1

    def __call__(self, table, rng=None):
        spent = self.budget.epsilon * (1 if self.k <= 10 else 2)
        return GeometricHistogram(DP(spent))(table, rng).estimate


few = LeaksAboveTen(DP(2.0))
many = LeaksAboveTen(DP(2.0), k=12)
