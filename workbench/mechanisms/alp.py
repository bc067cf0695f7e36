"""Approximate Laplace projection: counts in unary, hashed into one bit array, whose bits are flipped.

Guarantee  ε-DP per unit; all of ε pays for the bits (`noise.unary` has the proof, which holds for every
           ε and α). The hash functions are public, and drawn without looking at the data.
Assumes    the table's bound; `largest` and `total` are stated without looking at the data. Where they
           are wrong the error grows, and the guarantee stays.
Source     Aumüller, Lebeda & Pagh, CCS 2021, Algorithm 4 and its estimator.
Differs    any sensitivity; exact rounding and flips; hash functions that are independent for any two
           keys only.
Cost       time O(levels of all non-empty cells + flipped bits), memory O(bits), whatever the domain's
           size; a query costs the cells that it covers, times the levels.
"""

from fractions import Fraction
from math import ceil
from typing import NoReturn, Self

import numpy as np

from workbench import noise
from workbench.estimates import Projection
from workbench.mechanism import (
    DP,
    Mechanism,
    Release,
    parameter,
    private_bound,
    pure_budget,
)
from workbench.table import SparseTable
from workbench.value import value

_MAX_LEVELS = 2**16  # 3 MB of hash functions
_MAX_BITS = 2**33  # 1 GiB, and the hash's independent bits


@value
class ALP(Mechanism):
    """Release a noisy bit array that is small, and from which any cell is read in no time."""

    budget: DP = pure_budget(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    largest: int = parameter(
        low=1, high=2**53, integer=True, unit="counts", doc="β: caps a cell"
    )
    total: int = parameter(
        low=1, high=2**53, integer=True, unit="counts", doc="public bound on all counts"
    )
    alpha: float = parameter(3.0, 0, 2**20, strict=True, doc="flips a bit with chance 1/(α+2)")
    size_factor: float = parameter(
        50, 0, 2**20, strict=True, unit="bits", doc="bits a level of all counts"
    )
    cite = "aumuller2021"
    title = "approximate Laplace projection"
    converges = False  # at any ε large counts are cut and bits collide

    def levels(self, l1: float) -> int:
        """m = ⌈largest·ε/(α·l1)⌉, the bits of one cell."""
        return ceil(self.largest * self._levels_per_count(l1))

    def bits(self, l1: float) -> int:
        """The array's size: size_factor·total·ε/(α·l1), rounded up to a power of two >= 64."""
        least = ceil(Fraction(self.size_factor) * self.total * self._levels_per_count(l1))
        return max(64, 1 << (least - 1).bit_length())

    def _levels_per_count(self, l1: float) -> Fraction:
        """ε/(α·l1)."""
        return noise.decay(l1, self.budget.epsilon) / Fraction(self.alpha)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the bits."""
        bound = private_bound(table)
        l1 = bound.l1
        levels = self.levels(l1)
        bits = self.bits(l1)
        if levels > _MAX_LEVELS:
            self._refuse(f"{levels} levels", l1, _MAX_LEVELS, "largest")
        if bits > _MAX_BITS:
            self._refuse(f"{bits} bits", l1, _MAX_BITS, "total or size_factor")
        hashes = noise.random_words(3 * levels, rng=rng).reshape(levels, 3)
        noisy, receipt = noise.alp_projection(
            table.keys,
            table.counts,
            hashes,
            bits,
            l1=l1,
            epsilon=self.budget.epsilon,
            alpha=self.alpha,
            rng=rng,
        )
        counts_per_level = float(1 / self._levels_per_count(l1))
        projection = Projection(table.domain, hashes, noisy, counts_per_level)
        return Release(projection, (receipt,), self, bound)

    def _refuse(self, need: str, l1: float, limit: int, cause: str) -> NoReturn:
        raise ValueError(
            f"{self!r} needs {need} where one unit moves {l1} counts, and at most {limit} "
            f"are allowed: lower {cause} or epsilon, or raise alpha"
        )

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A hundred units, no more than fifty a cell."""
        return cls(budget, largest=50, total=100)
