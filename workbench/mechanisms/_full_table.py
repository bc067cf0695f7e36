"""What histograms of every cell share: noise on all nodes of a basis."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.estimates import summary_in_basis
from workbench.mechanism import (
    Mechanism,
    Release,
    blocks_within,
    law_within,
    private_bound,
)
from workbench.table import Bound, SparseTable
from workbench.transform import basis_of
from workbench.value import sealed

BYTES_PER_CELL = 24  # a key, a count and its noisy value


class FullTable(Mechanism):
    """A release of every node; a subclass says what noise goes on a block of them."""

    fixed_price = True
    transform: Any
    memory: int

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """Noise and no threshold, from which `advice` computes errors."""
        return {}

    def _noisy(self, values: np.ndarray, block: Any, rng: np.random.Generator | None) -> Any:
        raise NotImplementedError

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release every cell of the domain, or every node over it."""
        bound = private_bound(table)
        basis = basis_of(self.transform, table.domain)
        blocks = blocks_within(basis, bound, self.budget)
        size = sum(block.size for block in blocks)
        if size * BYTES_PER_CELL > self.memory:
            raise ValueError(
                f"{type(self).__name__}.memory = {self.memory} is too little: every one of {size} "
                f"cells needs {BYTES_PER_CELL} bytes; a filter or a sample costs only what it releases"
            )
        nodes, counts = basis.forward(table.keys, table.counts)
        exact = np.zeros(size, np.int64)
        exact[nodes] = counts
        noisy = []
        ledger = []
        start = 0
        for block in blocks:
            values, receipt = self._noisy(exact[start : start + block.size], block, rng)
            noisy.append(values)
            ledger.append(receipt)
            start += block.size
        values = noisy[0] if len(noisy) == 1 else sealed(np.concatenate(noisy))
        law = law_within(basis, bound, self.budget)
        full = summary_in_basis(basis, sealed(np.arange(size)), values, law)
        return Release(full, tuple(ledger), self, bound)
