"""Mechanisms that smooth counts to reduce the noise: the Fourier perturbation algorithm (FPA), and grouping
and smoothing (GS).
"""

from fractions import Fraction
from math import ceil, expm1, floor, log1p, log2, sqrt
from typing import Any, NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.data import Bound, Interactions
from workbench.estimates.linear_noise import FourierNoise, GroupNoise
from workbench.estimates.release import Release
from workbench.mechanisms import contributions
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    budget_field,
    memory_field,
    private_bound,
    sensitivity,
    split_epsilon,
)
from workbench.noise.law import geometric_variance
from workbench.privacy import DP, ZCDP, Receipt
from workbench.value import Float, Int, not_allowed, parameter, sealed, value

# Fourier


def coefficients(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the n Fourier coefficients of n values x(t), in a real and orthonormal basis. The basis consists
    of 1/√n, and of √(2/n)·cos(2πft/n) and √(2/n)·sin(2πft/n) for the frequencies f = 1, 2, …

    The coefficients are in the order of these functions of t = 0, …, n − 1. If n is even, the last
    coefficient belongs to cos(πt)/√n.

    >>> coefficients(np.array([3.0, 1.0])).round(3)
    array([2.828, 1.414])
    """
    from scipy import fft

    n = len(x)
    frequencies = fft.rfft(x, norm="ortho")
    out = np.empty(n, x.dtype)
    out[0] = frequencies[0].real
    middle = frequencies[1 : (n + 1) // 2] * np.sqrt(x.dtype.type(2))
    out[1 : 2 * len(middle) : 2] = middle.real
    out[2 : 2 * len(middle) + 1 : 2] = -middle.imag
    if n % 2 == 0:
        out[-1] = frequencies[-1].real
    return out


def inverse(coordinates: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the n values that have the given n Fourier coefficients (see `coefficients`)."""
    from scipy import fft

    n = len(coordinates)
    frequencies = np.zeros(n // 2 + 1, complex)
    frequencies[0] = coordinates[0]
    middle = (n - 1) // 2
    frequencies[1 : middle + 1] = coordinates[1 : 2 * middle : 2] / sqrt(2)
    frequencies[1 : middle + 1] -= 1j * coordinates[2 : 2 * middle + 1 : 2] / sqrt(2)
    if n % 2 == 0:
        frequencies[-1] = coordinates[-1]
    return fft.irfft(frequencies, n, norm="ortho")


# Fpa

_REAL = np.longdouble  # 64 bits of mantissa where the machine has them
_UP = 1 + 2.0**-40  # above what a few roundings of a sensitivity can lose


def _check_odd(k: Any) -> str | None:
    whole = isinstance(k, int) and not isinstance(k, bool)
    good = whole and k >= 1 and k % 2 == 1
    return None if good else "need an odd number >= 1: a mean, and whole frequencies"


@value
class FPA(contributions.Contributions):
    """Release counts from `k` noisy Fourier coefficients.

    FPA is the Fourier perturbation algorithm. The mechanism computes the Fourier coefficients of the sequence
    of counts, in the order of the cells. It adds noise to the `k` coefficients with the lowest frequencies, and
    sets the other coefficients to zero. Then it transforms the result back to counts. If there are fewer than
    `k` counts, all coefficients get noise.

    Guarantee  The release is ε-DP for each user, or ρ-zCDP if the budget is a ρ. `split` divides the budget
               between two tables: the counts of items, and the counts of edges (pairs of an item and a
               context). If you do not give `k`, the exponential mechanism draws k at random for each table.
               Values of k with a small error have a high probability. Half of each table's share then pays for
               this choice. The other half pays for the noise on the coefficients.
    Assumes    You choose `bound`, the largest number M of records per user, without looking at the data. The
               mechanism keeps at most M random records of each user. One user then changes the counts by at
               most Δ₁ = M in the l1 norm, and by at most Δ₂ in the l2 norm. In general, Δ₂ is M. If no user has
               the same item twice, Δ₂ is √M. The mechanism uses √M if `once` is True. It also uses √M if the
               data's bound implies that no user has the same item twice. With a budget in ρ, one user changes k
               of n coefficients by at most min(Δ₂, Δ₁·√(k/n)) in the l2 norm (the l2 sensitivity).
    Source     Rastogi & Nath, SIGMOD 2010. The private choice of k comes from EFPA, the algorithm of Acs,
               Castelluccia & Chen, ICDM 2012.
    Differs    Our Fourier basis is real and orthonormal, so both the real and the imaginary parts get noise. In
               contrast, the published code of EFPA reveals the phases of the coefficients. The sensitivity is
               the largest change of the coefficients that one user can cause. We computed two upper bounds on
               the sensitivity, and use the smaller bound. The noise is a multiple of a small public number, and
               has exactly the stated probabilities. The sensitivity includes the rounding error of the
               transform.
    Cost       Time is O(edges · log edges), and memory is O(edges), where edges = items · contexts of the
               domain.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    bound: int = contributions.bound_field()
    k: int | None = parameter(
        None,
        check=_check_odd,
        unit="coefficients",
        doc="number k of Fourier coefficients to keep (by default chosen from the data at a cost)",
    )
    split: tuple[float, float] = contributions.split_field()
    once: bool = parameter(
        False, choices=(False, True), doc="count at most one record per user and item"
    )
    largest: int = parameter(
        2**24,
        1,
        2**32,
        integer=True,
        unit="records",
        doc="largest count (larger counts are lowered to this number)",
    )
    memory: int = memory_field()
    cite = "rastogi2010"
    title = "Fourier perturbation"
    audited = audited_at(0, k=1)
    series = "DFT"
    converges = False  # what lies beyond the bound, and beyond k, is gone

    def coefficient_sensitivity(self, k: Any, n: int, bound: Bound) -> Any:
        """Return the l1 sensitivity of the first k of n Fourier coefficients. This sensitivity is the largest
        l1 norm of a change that one user can cause in the k coefficients. The formula is min(√k·Δ₂, k·Δ₁/√n).
        Here Δ₁ and Δ₂ are the largest changes of the counts that one user can cause, in the l1 and the l2 norm
        (see `bound`).

        The first number, √k·Δ₂, is an upper bound for two reasons. An orthonormal transform does not change the
        l2 norm. The l1 norm of k numbers is at most √k times their l2 norm. The second number, k·Δ₁/√n, is an
        upper bound for the following reason. A record changes the first coefficient, which is proportional to
        the mean, by 1/√n. The record changes the two coefficients of a frequency by √(2/n)·(|cos φ| + |sin φ|)
        in total, where the angle φ depends on the cell. This change is at most 2/√n. If the k coefficients
        contain both coefficients of each frequency, one record changes the k coefficients by at most k/√n in
        total.
        """
        return np.minimum(np.sqrt(k) * bound.l2, k * (bound.l1 / sqrt(n))) * _UP

    def coefficient_l2(self, k: Any, n: int, bound: Bound) -> Any:
        """Return the l2 sensitivity of the first k of n Fourier coefficients. This sensitivity is the largest
        l2 norm of a change that one user can cause in the k coefficients. The formula is min(Δ₂, Δ₁·√(k/n)).
        Here Δ₁ and Δ₂ are the largest changes of the counts that one user can cause, in the l1 and the l2 norm
        (see `bound`).

        The second number, Δ₁·√(k/n), is an upper bound for the following reason. A record changes the first
        coefficient, which is proportional to the mean, by 1/√n. The record changes the two coefficients of a
        frequency by √(2/n)·(cos φ, sin φ), where the angle φ depends on the cell. So the squared change of the
        first coefficient is 1/n, and the squared change for each frequency is 2/n. If the k coefficients
        contain both coefficients of each frequency, one record changes the k coefficients by √(k/n) in the l2
        norm. The change by several records is at most the sum of the changes by single records.
        """
        return np.minimum(bound.l2, bound.l1 * np.sqrt(k / n)) * _UP

    def rounding_error(self, n: int, units: float = 0) -> float:
        """Return an upper bound on the l2 norm of the rounding errors of all Fourier coefficients of n
        counts.

        The l2 norm of the input is at most largest·√n, where `largest` is the largest count. Let u be this norm
        times the machine epsilon, the relative spacing of floating-point numbers. The error of a fast Fourier
        transform is a small multiple of u·log₂ n (Higham 2002, section 24.1). We use 64·u·(1 + log₂ n). This
        bound leaves a margin for scaling, and for sizes that are not powers of two. If you compute further
        numbers from the coefficients, these numbers have an additional error. Pass this additional error as
        `units`, as a multiple of u.
        """
        units = 64 * (log2(n) + 1) + units
        return float(units * np.finfo(_REAL).eps * self.largest * sqrt(n)) * _UP

    def candidates(self, n: int) -> Int[np.ndarray, " candidates"]:
        """Return the candidates for the number k of coefficients. If you do not give `k`, the mechanism chooses
        one of these candidates. For n counts, the candidates are 1, 3, 5, … and n.
        """
        return np.unique(np.append(np.arange(1, n + 1, 2), n))

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism counts, at most `bound` random records per user. The result is
        private, like the input. If you pass a seeded `rng`, a release with the same seed counts the same
        records.
        """
        once = self.once or (isinstance(data.bound, Bound) and data.bound.linf == 1)
        bounded = (data.one_per_item(rng) if once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every item and every edge (pair of an item and a context). The mechanism
        computes both kinds of counts from the same records, at most `bound` per user.
        """
        self.refuse_dense(data.domain.size, 150)
        return self._smoothed(data, rng)

    def _smooth(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        share: float,
        rng: np.random.Generator | None,
    ) -> tuple[Float[np.ndarray, " n"], FourierNoise, list[Receipt]]:
        n = len(counts)
        bound = private_bound(data)
        exact = coefficients(np.minimum(counts, self.largest).astype(_REAL))
        receipts = []
        if self.k is None:
            choice, share = split_epsilon(share, [Fraction(1, 2), Fraction(1, 2)])
            k, receipt = self._choose(exact, bound, choice, share, rng)
            receipts.append(receipt)
        else:
            k = min(self.k, n)
        noisy = np.zeros(n)
        noisy[:k], variance, receipt = self._noisy(exact[:k], n, bound, share, rng)
        return inverse(noisy), FourierNoise(k, variance), [*receipts, receipt]

    def _noisy(
        self,
        exact: Float[np.ndarray, " k"],
        n: int,
        bound: Bound,
        share: float,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, float, Receipt]:
        """Return the coefficients with noise, the variance of the noise, and the receipt that records the
        privacy cost.
        """
        k = len(exact)
        rounded = 2 * self.rounding_error(n)
        if isinstance(self.budget, ZCDP):
            l2 = (self.coefficient_l2(k, n, bound) + rounded) * _UP
            grid = self._grid(l2, k, n, l2 / sqrt(2 * share))
            noisy, receipt = noise.gaussian_on_grid(
                exact, l2_squared=Fraction(l2) ** 2, rho=share, grid=grid, rng=rng
            )
            return noisy, l2**2 / (2 * share), receipt
        l1 = (self.coefficient_sensitivity(k, n, bound) + sqrt(k) * rounded) * _UP
        grid = self._grid(l1, k, n, l1 / share)
        noisy, receipt = noise.laplace(exact, l1=l1, epsilon=share, grid=grid, l0=k, rng=rng)
        steps = noise.decay(Fraction(l1) / Fraction(grid), share)
        return noisy, grid**2 * geometric_variance(float(steps)), receipt

    def _choose(
        self,
        exact: Float[np.ndarray, " n"],
        bound: Bound,
        share: float,
        rest: float,
        rng: np.random.Generator | None,
    ) -> tuple[int, Receipt]:
        """Choose k with a probability proportional to exp(−ε·U(k)/(2·Δ₂)), where U(k) = ‖coefficients beyond
        k‖₂ + √(2k)·λ(k) estimates the error. Here λ(k) is the scale of the noise on k coefficients.

        The first term of U is the error from dropping coefficients. By the triangle inequality, a unit
        changes this term by at most Δ₂. The second term is the error from noise, and does not depend on the
        data. With a budget in ρ the second term is √k·σ, where σ is the standard deviation of the noise. The
        choice then costs at most ε²/8.
        """
        n = len(exact)
        candidates = self.candidates(n)
        squares_beyond = np.append(np.cumsum(exact[::-1] ** 2)[::-1], 0)[candidates]
        if isinstance(self.budget, ZCDP):
            epsilon = sqrt(8 * share) / _UP
            moved = self.coefficient_l2(candidates, n, bound)
            noise_error = np.sqrt(_REAL(1) * candidates / (2 * rest)) * moved
        else:
            epsilon = share
            moved = self.coefficient_sensitivity(candidates, n, bound)
            noise_error = np.sqrt(2 * _REAL(1) * candidates) * moved / rest
        scores = -(np.sqrt(squares_beyond) + noise_error)
        addition_rounding = float(noise_error[-1] * np.finfo(_REAL).eps)
        sum_rounding = self.rounding_error(n, units=n)  # a sum of n squares is right to n units
        score_sensitivity = (bound.l2 + 2 * sum_rounding + 2 * addition_rounding) * _UP
        chosen, receipt = noise.exponential_mechanism(
            scores[None], sensitivity=score_sensitivity, epsilon=epsilon, rng=rng
        )
        return int(candidates[chosen[0]]), receipt

    def _grid(self, moved: float, k: int, n: int, scale: float) -> float:
        """Return the step of the grid of numbers on which noise is drawn. The step is a power of two, small
        compared with the noise, and so large that 2^52 steps reach any value.
        """
        fine = floor(log2(min(moved / (1024 * k), scale / 16)))
        return 2.0 ** max(fine, ceil(log2(self.largest * n)) - 52, ceil(log2(scale)) - 30)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It counts at most three records per user."""
        return cls(budget, bound=3)


# Gs

_TOTAL_SHARE = Fraction(0.1)  # of the order's ε: what the scale of a sample of one each costs


class _Sample(NamedTuple):
    """Noisy counts of a sample of the records, with the variance of their noise. Each record of the sample
    represents `factor` records of the data.
    """

    counts: Int[np.ndarray, " n"]
    variance: float
    factor: float
    receipts: list[Receipt]


@value
class GS(contributions.Contributions):
    """Release noisy means of groups of similar counts.

    GS is grouping and smoothing. The mechanism puts similar counts into groups of `width` counts. For each
    group, it releases one noisy mean as the value of all counts in the group. To find similar counts, the
    mechanism first draws a sample of the records, and measures noisy counts of this sample. For the table of
    items, it sorts the items by these noisy counts. For the table of edges (pairs of an item and a context), it
    sorts the edges. Each group consists of counts that follow each other in this order. `grouping` determines
    the sample:

    `onesample`  one random record of each user, so a user changes the counts by 1
    `rowsample`  all records of a random share `beta` of the users (needs less noise at the same ε)
    `noisysort`  all records of all users
    `random`     no sample: the order is random

    Guarantee  The release is ε-DP for each user. `split` divides ε between two tables, the counts of items and
               the counts of edges. Half of each table's share pays for the order. The other half pays for the
               noise on the sums of the groups. With `grouping` = "random", the order is free, so the whole
               share pays for the sums.
    Assumes    You choose `bound`, the largest number M of records per user, without looking at the data. The
               mechanism keeps at most M random records of each user. You also choose `width` and `beta`
               without looking at the data.
    Source     Kellaris & Papadopoulos, PVLDB 6(5) 2013. The names of the variants in `grouping` are our own.
    Differs    We add geometric noise to the sums of the groups. Kellaris & Papadopoulos add noise to the means
               of the groups. One user changes all sums together by at most M, however large the groups are. So
               the noise in the mean of a group with |G| counts has the scale M/(|G|·ε). Noise on the means
               needs an additional condition: no group may be smaller than the width w. Only then does one user
               change all means together by at most M/w.
    Cost       Time is O(edges · log edges), and memory is O(edges), where edges = items · contexts of the
               domain.
    """

    budget: DP = budget_field()
    bound: int = contributions.bound_field()
    width: int | None = parameter(
        None,
        1,
        integer=True,
        unit="counts",
        doc="number of counts per group (by default chosen from the noisy counts of the sample)",
    )
    grouping: str = parameter(
        "onesample",
        choices=("onesample", "rowsample", "noisysort", "random"),
        doc="sample of records whose noisy counts give the order of the counts",
    )
    beta: float = parameter(
        0.5, 2.0**-30, 1, doc="probability that a user is in the sample of rowsample"
    )
    split: tuple[float, float] = contributions.split_field()
    once: bool = parameter(
        False, choices=(False, True), doc="count at most one record per user and item"
    )
    memory: int = memory_field()
    cite = "kellaris2013"
    title = "GS"
    audited = audited_at(0, grouping="random")
    converges = False  # counts of a group become the same

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is None and self.grouping == "random":
            why = "need an integer >= 1, since no noisy counts are there to choose it from"
            raise not_allowed(self, "width", why, " with grouping = 'random'")

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism counts, at most `bound` random records per user. The result is
        private, like the input. If you pass a seeded `rng`, a release with the same seed counts the same
        records.
        """
        bounded = (data.one_per_item(rng) if self.once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def amplified_epsilon(self, epsilon: float) -> float:
        """Return the ε' with which a random sample of users may be measured, so that the measurement costs only
        ε. This ε' is at least ε, because the sample may leave out a user (amplification by sampling). If each
        user is in the sample with probability β, the formula is ε' = ln(1 + (e^ε − 1)/β), rounded down.
        """
        if epsilon > 500:  # the logarithm of β is all that is lost
            return epsilon
        return max(epsilon, log1p(expm1(epsilon) / self.beta) * (1 - 2.0**-48))

    def group_starts(self, n: int, width: int) -> Int[np.ndarray, " groups"]:
        """Return the positions at which the groups start in a sorted list of n counts. Each group has `width`
        counts. The last group also contains the counts that remain.
        """
        return np.arange(max(1, n // width)) * min(width, n)

    def candidate_widths(self, n: int) -> list[int]:
        """Return the candidates for the group size. If you do not give `width`, the mechanism chooses one of
        these candidates. For n counts, the candidates are 1, 2, 4, … and n.
        """
        return [1 << i for i in range((n - 1).bit_length())] + [n]

    def suggested_width(
        self,
        noisy: Float[np.ndarray, " n"],
        variance: float,
        factor: float,
        l1: float,
        epsilon: float,
    ) -> int:
        """Return the group size w for which the estimated squared error per count is smallest. The estimate
        uses only public numbers: the noisy counts of the sample, and `variance`, the variance of their noise.

        The estimate has two parts. The first part is the error from grouping. Let s_j be the sorted noisy
        counts of the sample, and `factor` the number of records that a sampled record represents. The squared
        differences from the means of the groups G give factor²·Σ_G Σ (s_j − mean)²/n. Part of this number is
        due to the noise in s_j, so the function subtracts variance·(1 − 1/|G|) per count. A negative result
        becomes 0. The second part is the error from the noise on the sums, 2·(l1/(w·ε))². Here `l1` is the
        largest total change of the counts that one protected unit can cause.

        The estimate has a weakness. Sorting puts counts with similar noise into one group, so the function
        subtracts too much. Large groups therefore look better than they are, especially if there are few
        records.
        """
        n = len(noisy)
        ordered = np.sort(noisy)

        def error(width: int) -> float:
            starts = self.group_starts(n, width)
            sizes = np.diff(starts, append=n)
            means = np.add.reduceat(ordered, starts) / sizes
            squares = ((ordered - np.repeat(means, sizes)) ** 2).sum()
            lost = factor**2 * max(0.0, squares - variance * (n - len(starts))) / n
            return lost + 2 * (l1 / (width * epsilon)) ** 2

        return min(self.candidate_widths(n), key=error)

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a noisy count for every item and every edge (pair of an item and a context)."""
        self.refuse_dense(data.domain.size, 100)
        return self._smoothed(data, rng)

    def _smooth(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        epsilon: float,
        rng: np.random.Generator | None,
    ) -> tuple[Float[np.ndarray, " n"], GroupNoise, list[Receipt]]:
        """Smooth the counts of one table: sort the counts, form groups, and add noise to the sum of every
        group.

        The result is ε-DP for the following reason. The order of the counts depends only on noisy counts, for
        which the budget pays. So the groups are public. Each record is in one group. A user with t_G records in
        group G changes the sums by Σ t_G <= M in total, whatever the sizes of the groups. So geometric noise
        with decay ε/M on the sums is ε-DP. The division by the public size |G| of a group costs no budget. The
        noise on a mean has the scale M/(|G|·ε). If |G| = w, this scale is the paper's M/(w·ε). In the last
        group, which can have w to 2w−1 counts, the noise is smaller. The sensitivity M is exact, because a user
        can have M records in one group.
        """
        n = len(counts)
        l1 = sensitivity(data)
        receipts = []
        width = self.width
        if self.grouping == "random":
            assert width is not None  # as there are no noisy counts to choose it from
            order = np.argsort(noise.random_words(n, rng=rng))
        else:
            order_epsilon, epsilon = split_epsilon(epsilon, [Fraction(1, 2), Fraction(1, 2)])
            sample = self._noisy_sample(data, counts, order_epsilon, rng)
            receipts = sample.receipts
            order = np.argsort(sample.counts, kind="stable")
            width = width or self.suggested_width(
                sample.counts, sample.variance, sample.factor, l1, epsilon
            )
        starts = self.group_starts(n, width)
        sums = np.add.reduceat(counts[order], starts)
        noisy_sums, receipt = noise.geometric(sums, l1=l1, epsilon=epsilon, rng=rng)
        sizes = np.diff(starts, append=n)
        values = np.empty(n)
        values[order] = np.repeat(noisy_sums / sizes, sizes)
        law = GroupNoise(int(sizes.min()), noise.variance(l1, epsilon, "geometric"))
        return values, law, [*receipts, receipt]

    def _noisy_sample(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        epsilon: float,
        rng: np.random.Generator | None,
    ) -> _Sample:
        """Draw the sample that `grouping` determines, and return its noisy counts."""
        n = len(counts)
        if self.grouping == "onesample":
            return self._one_each(data, counts, epsilon, rng)
        if self.grouping == "rowsample":
            return self._some_users(data, n, epsilon, rng)
        l1 = sensitivity(data)
        noisy, receipt = noise.geometric(counts, l1=l1, epsilon=epsilon, rng=rng)
        variance = noise.variance(l1, epsilon, "geometric")
        return _Sample(noisy.astype(float), variance, 1.0, [receipt])

    def _one_each(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        epsilon: float,
        rng: np.random.Generator | None,
    ) -> _Sample:
        """Return noisy counts of a sample with one random record per user. Each user contributes 1 to one of
        these counts.

        If the mechanism chooses the group size, `factor` is a noisy number of all records, divided by a noisy
        number of sampled records. This ratio is limited to the interval from 1 to M, the largest number of
        records per user.
        """
        n = len(counts)
        bound = sensitivity(data)
        sample = _counts(data.bounded(1, rng), n)
        receipts = []
        if self.width is None:
            shares = [_TOTAL_SHARE, 1 - _TOTAL_SHARE]
            total_epsilon, epsilon = split_epsilon(epsilon, shares)
            total, receipt = noise.geometric(
                counts.sum(keepdims=True), l1=bound, epsilon=total_epsilon, rng=rng
            )
            receipts.append(receipt)
        noisy, receipt = noise.geometric(sample, l1=1, epsilon=epsilon, rng=rng)
        receipts.append(receipt)
        factor = 1.0
        if self.width is None:
            factor = float(np.clip(total[0] / max(1, noisy.sum()), 1, bound))
        variance = noise.variance(1, epsilon, "geometric")
        return _Sample(noisy.astype(float), variance, factor, receipts)

    def _some_users(
        self, data: Interactions, n: int, epsilon: float, rng: np.random.Generator | None
    ) -> _Sample:
        """Return noisy counts of all records of a random sample of users. Each user is in the sample with
        probability at most β.

        By Theorem 1 of Li, Qardaji & Su (ASIACCS 2012), measuring such a sample with ε' (see
        `amplified_epsilon`) costs at most ε.
        """
        l1 = sensitivity(data)
        sample = _counts(self._sampled_users(data, rng), n)
        amplified = self.amplified_epsilon(epsilon)
        noisy, drawn = noise.geometric(sample, l1=l1, epsilon=amplified, rng=rng)
        theorem = "Li, Qardaji & Su, ASIACCS 2012, Theorem 1"
        receipt = noise.by_theorem(
            "geometric on a sample", DP(epsilon), theorem, replaces=[drawn]
        )
        variance = noise.variance(l1, amplified, "geometric")
        return _Sample(noisy.astype(float), variance, 1 / self.beta, [receipt])

    def _sampled_users(
        self, data: Interactions, rng: np.random.Generator | None
    ) -> Interactions:
        records = data.records_per_user()
        last = int(Fraction(self.beta) * 2**64) - 1
        words = noise.random_words(len(records), rng=rng, names=data.ids_per_user().T)
        chosen = words <= np.uint64(last)
        rows = np.repeat(chosen, records)
        return Interactions(
            data.domain,
            sealed(data.users[rows]),
            sealed(data.items[rows]),
            sealed(data.contexts[rows]),
            data.bound,
            data.truth_public,
            data.distinct,
        )

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It counts at most three records per user, and its
        groups have four counts.
        """
        return cls(budget, bound=3, width=4)


def _counts(data: Interactions, n: int) -> Int[np.ndarray, " n"]:
    """Return the counts of the items if there are n items, and otherwise the counts of the edges. If there is
    only one context, the two are equal.
    """
    counts = data.edge_counts()
    return counts.ravel() if counts.size == n else counts.sum(axis=1)
