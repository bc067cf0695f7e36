"""Count sketch: every cell is hashed, with a sign, to a bucket a row; the buckets are released noisily.

Guarantee  ε-DP per unit, or ρ-zCDP; a unit moves each of `depth` rows by at most l1, so every row has
           ε/depth, or ρ/depth at an l2 norm of l1.
Assumes    the table's bound. The hash functions are public, and drawn without looking at the data.
Source     Charikar, Chen & Farach-Colton, ICALP 2002; Cormode, Procopiuc, Srivastava & Tran, ICDT 2012,
           appendix C.6.
Differs    sensitivity depth·l1 (the paper's 2·depth is for replacing a unit); geometric noise, not
           Laplace; the variance of Lemma 5 with ‖M‖₂² and the noise of all rows. One row is then always
           best at a given size, which is why `depth` is 1. Of ρ the noise of a mean is l1²/(2ρ) at any
           depth.
Cost       time O(non-empty cells · depth + buckets), memory O(buckets), whatever the domain's size; a
           query costs the cells that it covers.
"""

from fractions import Fraction
from typing import Self

import numpy as np

from workbench import noise
from workbench.domain import Domain
from workbench.estimates import Law, Sketch, hashes
from workbench.mechanism import (
    DP,
    ZCDP,
    Mechanism,
    Release,
    add_noise,
    gaussian_law,
    parameter,
    private_bound,
    pure_budget,
)
from workbench.table import Bound, SparseTable
from workbench.value import value


@value
class CountSketch(Mechanism):
    """Release `depth` rows of `width` noisy buckets; a cell's count is estimated from its buckets."""

    budget: DP | ZCDP = pure_budget(zcdp=True)
    width: int = parameter(low=1, high=2**28, integer=True, unit="buckets", doc="a row's size")
    depth: int = parameter(1, 1, 2**10, integer=True, unit="rows", doc="hash functions")
    estimate: str = parameter(
        "mean", choices=("mean", "median"), doc="joins the rows; the mean is unbiased"
    )
    cite = "cormode2012"
    title = "count sketch"
    series = "count sketch"
    accepts_zcdp = True
    fixed_price = True
    converges = False  # what shares a bucket is never told apart, at any ε

    def __post_init__(self) -> None:
        if self.width * self.depth > noise.MAX_RELEASED_CELLS:
            raise ValueError(
                f"CountSketch.width = {self.width} times depth = {self.depth} is too large: need at "
                f"most {noise.MAX_RELEASED_CELLS} buckets"
            )

    def variance(self, others: float, l1: float) -> float:
        """Of a single cell's mean; `others` is the sum of the other cells' squared counts.

        (others/width + σ²)/depth with σ² = 2α/(1−α)², α = exp(−ε/(depth·l1)), or σ² = depth·l1²/(2ρ):
        another cell shares the bucket of a row with probability 1/width, and its sign relative to ours
        is fair.
        """
        return (others / self.width + self._law(self.depth * l1).variance) / self.depth

    def _law(self, moved: float) -> Law:
        """Of the noise on a bucket, where a unit moves all rows by so much in all."""
        if isinstance(self.budget, ZCDP):
            return gaussian_law(Fraction(moved) ** 2 / self.depth, self.budget)
        return Law("geometric", self.budget.epsilon / moved)

    def release_rule(self, domain: Domain, bound: Bound) -> dict[str, float]:
        """Noise and no threshold, from which `advice` computes errors."""
        return {}

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
        """Three rows of a hundred buckets."""
        return cls(budget, width=100, depth=3)
