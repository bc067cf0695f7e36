"""Noisy sketches, which are small summaries of a table made by hash functions: count sketch, and approximate
Laplace projection (ALP).
"""

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
    """Release a noisy sketch made by hash functions.

    A sketch is a small table from which counts can be estimated. This sketch has `depth` rows of `width`
    buckets (numbers). In each row, a public hash function gives every cell a bucket and a random sign, + or −.
    The mechanism adds the cell's count, with this sign, to this bucket. Then the mechanism adds noise to all
    buckets. Later, an answer estimates the count of a cell from the buckets of this cell, one bucket per row.

    Guarantee  The release is ε-DP for each unit, or ρ-zCDP if the budget is a ρ. Let l1 be the largest total
               change of the counts that one protected unit can cause. A unit changes each of the `depth` rows
               by at most l1, both in the l1 norm and in the l2 norm. So every row gets ε/depth, or ρ/depth.
    Assumes    No protected unit changes the counts by more than the table's bound allows. The hash functions
               are public, and the mechanism draws them without looking at the data.
    Source     Charikar, Chen & Farach-Colton, ICALP 2002. Cormode, Procopiuc, Srivastava & Tran compare this
               sketch with their summaries (ICDT 2012, appendix C.6).
    Differs    The sensitivity is the largest total change of all buckets that one unit can cause. Our
               sensitivity is depth·l1. Cormode et al. use 2·depth, because they replace one record by another.
               Our noise is geometric. Their noise is Laplace noise. Our formula for the variance of an estimate
               differs from Lemma 5 of Cormode et al. Our formula contains the sum of the squared counts, ‖M‖₂²,
               and the noise of all rows. By our formula, one row is always best for a sketch of a given size,
               so the default of `depth` is 1. An estimate is the mean of a cell's buckets. With a budget in ρ,
               the noise in this mean has the variance l1²/(2ρ) for every `depth`.
    Cost       Time is O(non-empty cells · depth + buckets), and memory is O(buckets). Neither time nor memory
               depends on the number of possible cells. An answer takes time O(cells that the query covers).
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    width: int = parameter(
        low=1, high=2**28, integer=True, unit="buckets", doc="number of buckets per row"
    )
    depth: int = parameter(
        1, 1, 2**10, integer=True, unit="rows", doc="number of rows (hash functions)"
    )
    estimate: str = parameter(
        "mean", choices=("mean", "median"), doc="how rows are combined (mean is unbiased)"
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
        all other cells. `l1` is the largest total change of the counts that one protected unit can cause.

        The variance is (others/width + σ²)/depth, where σ² is the variance of the noise on a bucket. For a
        budget in ε, σ² = 2α/(1−α)² with α = exp(−ε/(depth·l1)). For a budget in ρ, σ² = depth·l1²/(2ρ). The
        part others/width is the effect of the other cells. In each row, another cell has the same bucket with
        probability 1/width. The bucket then also contains the count of this other cell, with a random sign.
        """
        return (others / self.width + self._law(self.depth * l1).variance) / self.depth

    def _law(self, moved: float) -> Law:
        """Return the distribution of the noise on a bucket, if one unit changes all buckets together by at
        most `moved` (in the l1 norm).
        """
        if isinstance(self.budget, ZCDP):
            return gaussian_law(Fraction(moved) ** 2 / self.depth, self.budget)
        return Law("geometric", self.budget.epsilon / moved)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the noisy buckets and the hash functions."""
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
        """Return an example of the mechanism for tests. It has three rows of a hundred buckets."""
        return cls(budget, width=100, depth=3)


# Alp

_MAX_LEVELS = 2**16  # 3 MB of hash functions
_MAX_BITS = 2**33  # 1 GiB, and the hash's independent bits


@value
class ALP(Mechanism):
    """Release noisy bits that encode all counts.

    ALP is the approximate Laplace projection. The mechanism encodes each count by several bits of one array of
    bits. The larger a count is, the more of its bits are 1. Public hash functions determine the places of the
    bits. Then the mechanism flips each bit of the array with probability 1/(α+2), where α is the parameter
    `alpha`.

    Guarantee  The release is ε-DP for each unit, for every value of ε and α. The whole ε pays for the random
               flips of the bits. The proof is in the documentation of `noise.alp_projection`. The hash
               functions are public, and the mechanism draws them without looking at the data.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose
               `largest` and `total` without looking at the data. If these two numbers are too small for the
               data, answers have a larger error, but the guarantee still holds.
    Source     Aumüller, Lebeda & Pagh, CCS 2021, Algorithm 4 and its estimator.
    Differs    The sensitivity is the largest total change of the counts that one protected unit can cause. The
               mechanism works with any sensitivity. The paper assumes a sensitivity of 1. Random rounding and
               random flips have exactly the stated probabilities. Our hash functions are only pairwise
               independent.
    Cost       The levels of a cell are the bits that encode its count. Time is O(levels of all non-empty cells
               + flipped bits), and memory is O(bits). Neither time nor memory depends on the number of possible
               cells. An answer takes time O(cells that the query covers · levels).
    """

    budget: DP = budget_field(
        refused="its proof needs Pr[x]/Pr[x + 1] bounded, which no Gaussian noise has"
    )
    largest: int = parameter(
        low=1, high=2**53, integer=True, unit="counts", doc="largest count β of a cell"
    )
    total: int = parameter(
        low=1,
        high=2**53,
        integer=True,
        unit="counts",
        doc="public upper bound on the sum of all counts",
    )
    alpha: float = parameter(
        3.0, 0, 2**20, strict=True, doc="number α (a bit is flipped with probability 1/(α+2))"
    )
    size_factor: float = parameter(
        50, 0, 2**20, strict=True, unit="bits", doc="released bits per level of a count"
    )
    cite = "aumuller2021"
    title = "approximate Laplace projection"
    audited = audited_at(0, largest=1, total=4, alpha=lambda budget: budget.epsilon / 4)
    converges = False  # at any ε large counts are cut and bits collide

    def levels(self, l1: float) -> int:
        """Return the number of bits that encode the count of one cell (the levels of the cell). `l1` is the
        largest total change of the counts that one protected unit can cause.

        The number of levels is ⌈largest·ε/(α·l1)⌉, where `largest` is the largest count that a cell can have.
        Each bit is flipped with probability 1/(α+2).
        """
        return ceil(self.largest * self._levels_per_count(l1))

    def bits(self, l1: float) -> int:
        """Return the total number of released bits. `l1` is the largest total change of the counts that one
        protected unit can cause.

        The number of bits is size_factor·total·ε/(α·l1), rounded up to a power of two, and at least 64. Here
        `total` is the public upper bound on the sum of all counts. Each bit is flipped with probability
        1/(α+2).
        """
        least = ceil(Fraction(self.size_factor) * self.total * self._levels_per_count(l1))
        return max(64, 1 << (least - 1).bit_length())

    def _levels_per_count(self, l1: float) -> Fraction:
        """Return ε/(α·l1), the number of levels (bits) by which a count of 1 is encoded on average."""
        return noise.decay(l1, self.budget.epsilon) / Fraction(self.alpha)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the noisy bits and the hash functions."""
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
        """Return an example of the mechanism for tests. It expects counts of at most fifty that add up to at
        most a hundred.
        """
        return cls(budget, largest=50, total=100)
