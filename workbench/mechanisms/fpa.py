"""Fourier perturbation: the first coefficients of the counts with noise, the others zero.

Guarantee  ε-DP per user; `split` divides ε between items and edges. With k=None half of a table's part
           chooses k, by the exponential mechanism, and the other half pays for the coefficients.
Assumes    `bound`, stated without looking at the data and enforced: of each user at most so many
           records, at random. A unit then moves the counts by Δ₁ = M in all and Δ₂ = M in the l2 norm;
           Δ₂ = √M where no user has an item twice, by the data's own bound or by `once`.
Source     Rastogi & Nath, SIGMOD 2010 (FPA); Acs, Castelluccia & Chen, ICDM 2012 (k=None: EFPA).
Differs    an orthonormal real basis: noise on real and imaginary parts, none on phases alone (the
           published code of EFPA leaks them); the smaller of two sensitivities; noise exactly on a
           public grid; what the transform rounds is counted.
Cost       time O(edges · log edges) and memory O(edges), edges = items · contexts of the domain.
"""

from math import ceil, floor, log2, sqrt
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float, Int
from scipy import fft

from workbench import noise
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.interactions import Interactions
from workbench.mechanism import (
    Release,
    parameter,
    pure_budget,
    refuse_dense,
    sensitivity,
)
from workbench.mechanisms.sra import (
    bound_field,
    item_edge_budgets,
    refuse_unbounded,
    split_field,
)
from workbench.privacy import DP, Receipt
from workbench.table import Bound
from workbench.value import sealed, value

_REAL = np.longdouble  # 64 bits of mantissa where the machine has them
_UP = 1 + 2.0**-40  # above what a few roundings of a sensitivity can lose


def _odd(k) -> str | None:
    whole = isinstance(k, int) and not isinstance(k, bool)
    good = whole and k >= 1 and k % 2 == 1
    return None if good else "need an odd number >= 1: a mean, and whole frequencies"


@value
class FPA:
    """Release items and edges by their k lowest Fourier coefficients, in the order of their keys.

    A table of fewer than k counts keeps all of its coefficients.
    """

    budget: DP = pure_budget()
    bound: int | None = bound_field()
    k: int | None = parameter(
        None, check=_odd, unit="coefficients", doc="None: chosen privately"
    )
    split: tuple[float, float] = split_field()
    once: bool = parameter(False, choices=(False, True), doc="one record of a user and item")
    largest: int = parameter(
        2**24,
        1,
        2**32,
        integer=True,
        unit="records",
        doc="cuts a count, so that rounding is bounded",
    )
    memory: int = parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")
    takes: ClassVar[type] = Interactions
    cite: ClassVar[str] = "rastogi2010"
    converges: ClassVar[bool] = False  # what lies beyond the bound, and beyond k, is gone

    def __post_init__(self):
        refuse_unbounded(self)

    def l1(self, k: int, n: int, bound: Bound) -> float:
        """How far a unit moves the first k of n coefficients: min(√k·Δ₂, k·Δ₁/√n).

        An orthonormal transform keeps the l2 norm, and k numbers have an l1 norm of at most √k times
        theirs. And a record adds 1/√n to the mean and at most √(2/n)·(|cos| + |sin|) <= 2/√n to a
        frequency, so that k coefficients, whole frequencies, move by k/√n.
        """
        return np.minimum(np.sqrt(k) * bound.l2, k * (bound.l1 / sqrt(n))) * _UP

    def rounded(self, n: int, units: float = 0) -> float:
        """How far the computed coefficients of n counts may lie from the exact ones, in the l2 norm.

        A fast transform is right to a small multiple of log₂ n units in the last place of its input's
        l2 norm (Higham 2002, section 24.1), here at most largest·√n; 64 leaves room for sizes that are
        no powers of two, and for scaling. More `units` are for what is computed from coefficients.
        """
        units = 64 * (log2(n) + 1) + units
        return float(units * np.finfo(_REAL).eps * self.largest * sqrt(n)) * _UP

    def ks(self, n: int) -> Int[np.ndarray, " choices"]:
        """What k=None chooses from: 1, 3, 5, … and n."""
        return np.unique(np.append(np.arange(1, n + 1, 2), n))

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """What is counted, as private as the data; with the same seed, that of the release."""
        once = self.once or (isinstance(data.bound, Bound) and data.bound.linf == 1)
        kept = (data.one_per_item(rng) if once else data).bounded(self.bound, rng)
        sensitivity(kept)
        return kept

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a count for every item and every edge."""
        refuse_dense(self, data.domain.size, 150)
        kept, tables, ledger = self.bounded_data(data, rng), [], []
        counted = kept.item_counts(), kept.edge_counts().ravel()
        domains = data.domain.project(data.domain.attributes[:1]), data.domain
        paid = item_edge_budgets(self.budget.epsilon, self.split)
        for domain, counts, epsilon in zip(domains, counted, paid, strict=True):
            values, receipts = self._smooth(counts, kept.bound, epsilon, rng)
            tables.append(Histogram(domain, sealed(values)))
            ledger += receipts
        return Release(ItemEdgeCounts(*tables, sampled=True), tuple(ledger), self, kept.bound)

    def _smooth(
        self, counts: Int[np.ndarray, " n"], bound: Bound, epsilon: float, rng
    ) -> tuple[Float[np.ndarray, " n"], list[Receipt]]:
        n, receipts = len(counts), []
        exact = coefficients(np.minimum(counts, self.largest).astype(_REAL))
        k = self.k and min(self.k, n)
        if k is None:
            half, epsilon = item_edge_budgets(epsilon, (0.5, 0.5))
            k, receipt = self._chosen(exact, bound, half, epsilon, rng)
            receipts.append(receipt)
        l1 = (self.l1(k, n, bound) + 2 * sqrt(k) * self.rounded(n)) * _UP
        noisy = np.zeros(n)
        noisy[:k], receipt = noise.laplace(
            exact[:k], l1=l1, epsilon=epsilon, grid=self._grid(l1, k, n, epsilon), l0=k, rng=rng
        )
        return inverse(noisy), [*receipts, receipt]

    def _chosen(self, exact, bound: Bound, epsilon: float, rest: float, rng):
        """k with probability ∝ exp(−ε·U(k) / (2·Δ₂)), U(k) = ‖what lies beyond k‖₂ + √(2k)·λ(k).

        The first term is the root of the squared error of cutting, which a unit moves by Δ₂ at most
        (triangle inequality); the second, the root of that of the noise, looks at no data.
        """
        n, ks = len(exact), self.ks(len(exact))
        beyond = np.append(np.cumsum(exact[::-1] ** 2)[::-1], 0)[ks]
        known = np.sqrt(2 * _REAL(1) * ks) * self.l1(ks, n, bound) / rest
        scores = -(np.sqrt(beyond) + known)
        last = float(known[-1] * np.finfo(_REAL).eps)  # what adding them rounds
        summed = self.rounded(n, units=n)  # a sum of n squares is right to n units
        moved = (bound.l2 + 2 * summed + 2 * last) * _UP
        chosen, receipt = noise.exponential_mechanism(
            scores[None], sensitivity=moved, epsilon=epsilon, rng=rng
        )
        return int(ks[chosen[0]]), receipt

    def _grid(self, l1: float, k: int, n: int, epsilon: float) -> float:
        """A power of two so small that nobody feels it, and that 2^52 steps take anywhere."""
        scale = l1 / epsilon
        fine = floor(log2(min(l1 / (1024 * k), scale / 16)))
        return 2.0 ** max(fine, ceil(log2(self.largest * n)) - 52, ceil(log2(scale)) - 30)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A user has at most three records."""
        return cls(budget, bound=3)


def coefficients(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Coordinates in the orthonormal basis 1/√n, √(2/n)·cos(2πft/n), √(2/n)·sin(2πft/n) for f = 1, 2, …

    in this order; last cos(πt)/√n if n is even.

    >>> coefficients(np.array([3.0, 1.0])).round(3)
    array([2.828, 1.414])
    """
    n, frequencies = len(x), fft.rfft(x, norm="ortho")
    out = np.empty(n, x.dtype)
    out[0] = frequencies[0].real
    middle = frequencies[1 : (n + 1) // 2] * np.sqrt(x.dtype.type(2))
    out[1 : 2 * len(middle) : 2], out[2 : 2 * len(middle) + 1 : 2] = middle.real, -middle.imag
    if n % 2 == 0:
        out[-1] = frequencies[-1].real
    return out


def inverse(coordinates: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The values that have these coordinates."""
    n = len(coordinates)
    frequencies = np.zeros(n // 2 + 1, complex)
    frequencies[0] = coordinates[0]
    middle = (n - 1) // 2
    frequencies[1 : middle + 1] = coordinates[1 : 2 * middle : 2] / sqrt(2)
    frequencies[1 : middle + 1] -= 1j * coordinates[2 : 2 * middle + 1 : 2] / sqrt(2)
    if n % 2 == 0:
        frequencies[-1] = coordinates[-1]
    return fft.irfft(frequencies, n, norm="ortho")
