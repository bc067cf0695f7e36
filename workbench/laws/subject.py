"""A mechanism's class with small data of the kind that it takes: what the laws look at."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.hierarchy import Quadtree
from workbench.interactions import Interactions
from workbench.mechanism import Mechanism
from workbench.privacy import ADD_REMOVE, DP, REPLACE, ZCDP
from workbench.records import Records
from workbench.release import Release
from workbench.table import Bound, Public, SparseTable
from workbench.workload import Ranges

DOMAIN = Domain(("home", "work"), (6, 8), (tuple("abcdef"), range(2000, 2008)))
CELLS = Ranges(np.arange(48), np.arange(1, 49))


class Broken(AssertionError):
    """A law that does not hold, in words."""


def demand(holds: Any, says: str) -> None:
    """Broken, unless it holds."""
    if not holds:
        raise Broken(says)


def seeded(seed: int = 0) -> np.random.Generator:
    """Noise that can be replayed."""
    return np.random.default_rng(seed)


class Subject:
    """A class of mechanisms: its example at some ε, on tables turned into what it takes.

    Parameters
    ----------
    cls : type
        The class, or whatever has its `example`.
    zcdp : bool
        Under a ρ; always, where the class takes no ε.
    """

    def __init__(self, cls: Any, zcdp: bool = False):
        self.cls = cls
        self.zcdp = zcdp or not getattr(cls, "accepts_dp", True)
        self.relation = getattr(cls, "relation", ADD_REMOVE)

    def budget(self, epsilon: float = 1.0) -> DP | ZCDP:
        """With a δ where the class spends one; of a ρ, ε²/8."""
        delta = 1e-6 if getattr(self.cls, "spends_delta", False) else 0.0
        return ZCDP(epsilon**2 / 8, delta) if self.zcdp else DP(epsilon, delta)

    def table(self, counts: Any, bound: Bound | Public | None = None) -> SparseTable:
        """A table of every fifth cell."""
        keys = np.arange(0, 5 * len(counts), 5)
        return SparseTable.from_keys(DOMAIN, keys, counts, bound or Bound())

    def given(self, table: SparseTable) -> Any:
        """The table as what the mechanism takes."""
        if self.cls.takes is Records:
            keys = table.keys.astype(np.uint64)
            return Records(Quadtree(2, 3), keys, table.counts, table.bound)
        if self.cls.takes is Interactions:
            # a user each; the last two cells are one user's, if there may be
            places = np.repeat(table.keys, table.counts)
            users = np.arange(len(places))
            bound = table.bound
            users[-1:] -= isinstance(bound, Bound) and bound.l0 == 2 and len(table) == 3
            items, contexts = table.domain.codes(places).T
            return Interactions.from_codes(table.domain, users, items, contexts, bound)
        return table

    def truth(self, table: SparseTable) -> Any:
        """What its answers are near."""
        return table.ranked() if getattr(self.cls, "ranked", False) else self.given(table)

    def example(self, table: SparseTable, epsilon: float = 1.0) -> Mechanism:
        """The example, for as many units as the table has, where that is public."""
        example = self.cls.example(self.budget(epsilon))
        if self.relation == REPLACE:
            example = replace(example, total=table.total)
        return example

    def release(
        self,
        table: SparseTable,
        rng: np.random.Generator | None = None,
        epsilon: float = 1.0,
    ) -> Release:
        """The example's release of the table."""
        return self.example(table, epsilon)(self.given(table), rng)

    def rebuilt(self, **changed: Any) -> Any:
        """The example with some fields replaced; of what it wraps, where it wraps another."""
        example = self.cls.example(self.budget())
        if "budget" not in {f.name for f in fields(self.cls)}:
            return self.cls(replace(example.mechanism, **changed))
        return replace(example, **changed)


def answers(release: Release) -> np.ndarray:
    """The answers of every cell, and the items' counts where they are released beside them."""
    items = getattr(release.estimate, "items", None)
    return np.append(release.answer(CELLS), [] if items is None else items.values)
