"""Noisy sketches: count sketch, and approximate Laplace projection (ALP)."""

from fractions import Fraction
from math import ceil
from typing import NoReturn, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import Projection, Sketch
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    add_noise,
    budget_field,
    gaussian_law,
    private_bound,
)
from workbench.noise import hashes
from workbench.noise.law import Law
from workbench.privacy import DP, ZCDP
from workbench.value import parameter, value

# Count sketch


@value
class CountSketch(Mechanism):
    """Release rows of noisy hash buckets.

    The sketch has `depth` rows of `width` buckets. Each cell is hashed to one bucket per row, and its count
    is estimated from these buckets.

    Guarantee  ε-DP per unit, or ρ-zCDP. A unit changes each of the `depth` rows by at most l1, in both
               norms, so every row gets ε/depth, or ρ/depth.
    Assumes    the table's bound. The hash functions are public and drawn without looking at the data.
    Source     Charikar, Chen & Farach-Colton, ICALP 2002; Cormode, Procopiuc, Srivastava & Tran, ICDT 2012,
               appendix C.6.
    Differs    The sensitivity is depth·l1, because the paper's 2·depth is for replacing a unit.
               Noise is geometric instead of Laplace. We replace the variance of Lemma 5 by one with ‖M‖₂²
               and the noise of all rows. By this formula, one row is always best for a sketch of a given
               size, so the default of `depth` is 1. With a budget in ρ, the noise variance of a mean is
               l1²/(2ρ) at any depth.
    Cost       time O(non-empty cells · depth + buckets), memory O(buckets), for a domain of any size. An
               answer takes time O(cells that the query covers).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    width: int = parameter(
        low=1, high=2**28, integer=True, unit="buckets", doc="buckets per row"
    )
    depth: int = parameter(
        1, 1, 2**10, integer=True, unit="rows", doc="number of hash functions"
    )
    estimate: str = parameter(
        "mean", choices=("mean", "median"), doc="way to combine rows (the mean is unbiased)"
    )
    cite = "cormode2012"
    title = "count sketch"
    audited = audited_at(0, depth=1, width=16)
    series = "count sketch"
    fixed_price = True
    converges = False  # what shares a bucket is never told apart, at any ε

    def __post_init__(self) -> None:
        if self.width * self.depth > noise.MAX_RELEASED_CELLS:
            raise ValueError(
                f"CountSketch.width = {self.width} times depth = {self.depth} is too large: need at "
                f"most {noise.MAX_RELEASED_CELLS} buckets"
            )

    def variance(self, others: float, l1: float) -> float:
        """Return the variance of the estimated count of one cell. `others` is the sum of the squared counts of
        all other cells.

        The variance is (others/width + σ²)/depth, where σ² = 2α/(1−α)² with α = exp(−ε/(depth·l1)), or σ² =
        depth·l1²/(2ρ). In each row, every other cell falls into the same bucket with probability 1/width.
        Then it adds its count with a random sign.
        """
        return (others / self.width + self._law(self.depth * l1).variance) / self.depth

    def _law(self, moved: float) -> Law:
        """Return the noise distribution for a bucket, if a unit changes all rows together by at most
        `moved`.
        """
        if isinstance(self.budget, ZCDP):
            return gaussian_law(Fraction(moved) ** 2 / self.depth, self.budget)
        return Law("geometric", self.budget.epsilon / moved)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the noisy buckets."""
        bound = private_bound(table)
        l1 = self.depth * Fraction(bound.l1)  # exact: a float product may round down
        functions = noise.random_words(8 * self.depth, rng=rng).reshape(self.depth, 8)
        rows = np.zeros((self.depth, self.width), np.int64)
        for row, function in zip(rows, functions, strict=True):
            hashes.add_counts(table.keys, table.counts, function, row)
        noisy, _, receipt = add_noise(
            rows.ravel(),
            self.budget,
            l1=l1,
            linf=bound.l1,
            l2_squared=l1**2 / self.depth,
            rng=rng,
        )
        buckets = noisy.reshape(rows.shape)
        law = self._law(float(l1))
        sketch = Sketch(table.domain, functions, buckets, law, self.estimate)
        return Release(sketch, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism, with three rows of a hundred buckets."""
        return cls(budget, width=100, depth=3)


# Alp

_MAX_LEVELS = 2**16  # 3 MB of hash functions
_MAX_BITS = 2**33  # 1 GiB, and the hash's independent bits


@value
class ALP(Mechanism):
    """Release noisy bits that answer for any cell.

    Guarantee  ε-DP per unit. All of ε pays for the bits (`noise.alp_projection` has the proof, which holds
               for every ε and α). The hash functions are public and drawn without looking at the data.
    Assumes    the table's bound. `largest` and `total` are stated without looking at the data. If they are
               wrong, the error is larger, but the guarantee still holds.
    Source     Aumüller, Lebeda & Pagh, CCS 2021, Algorithm 4 and its estimator.
    Differs    It takes any sensitivity (the paper assumes 1). Rounding and flips have exactly the stated
               probabilities. The hash functions are only pairwise independent.
    Cost       time O(levels of all non-empty cells + flipped bits), memory O(bits), for a domain of any
               size. An answer takes time O(cells that the query covers · levels).
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    largest: int = parameter(
        low=1, high=2**53, integer=True, unit="counts", doc="β, largest count of a cell"
    )
    total: int = parameter(
        low=1,
        high=2**53,
        integer=True,
        unit="counts",
        doc="public bound on the sum of all counts",
    )
    alpha: float = parameter(
        3.0, 0, 2**20, strict=True, doc="α (a bit is flipped with probability 1/(α+2))"
    )
    size_factor: float = parameter(
        50, 0, 2**20, strict=True, unit="bits", doc="bits per level and count"
    )
    cite = "aumuller2021"
    title = "approximate Laplace projection"
    audited = audited_at(0, largest=1, total=4, alpha=lambda budget: budget.epsilon / 4)
    converges = False  # at any ε large counts are cut and bits collide

    def levels(self, l1: float) -> int:
        """Number of bits per cell, ⌈largest·ε/(α·l1)⌉. `largest` is the largest count that a cell can have, and
        a bit is flipped with probability 1/(α+2). A unit changes the counts by at most `l1` in total.
        """
        return ceil(self.largest * self._levels_per_count(l1))

    def bits(self, l1: float) -> int:
        """Total number of released bits, size_factor·total·ε/(α·l1), rounded up to a power of two >= 64.
        `total` is a public bound on the sum of all counts, and a unit changes the counts by at most `l1` in
        total. A bit is flipped with probability 1/(α+2).
        """
        least = ceil(Fraction(self.size_factor) * self.total * self._levels_per_count(l1))
        return max(64, 1 << (least - 1).bit_length())

    def _levels_per_count(self, l1: float) -> Fraction:
        """Levels per count, ε/(α·l1)."""
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
            f"{self!r} needs {need} if one unit changes {l1} counts, and at most {limit} are allowed: "
            f"lower {cause} or epsilon, or raise alpha"
        )

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism, for a total of a hundred, with counts of at most fifty."""
        return cls(budget, largest=50, total=100)
