"""Fourier perturbation (FPA), and grouping and smoothing (GS)."""

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
    """Return the coordinates of values in the orthonormal basis of 1/√n, √(2/n)·cos(2πft/n) and
    √(2/n)·sin(2πft/n) for f = 1, 2, … …

    The coordinates are in this order. If n is even, the last one belongs to cos(πt)/√n.

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
    """Return the values with these coordinates."""
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
    """Release counts by `k` noisy Fourier coefficients.

    FPA is the Fourier perturbation algorithm. It transforms the counts, in the order of their keys, and
    keeps the k coefficients with the lowest frequencies. A table with fewer than k counts keeps all of its
    coefficients.

    Guarantee  ε-DP per user, or ρ-zCDP. `split` divides the budget between the table of items and the table
               of edges. With k=None, the exponential mechanism chooses k. Half of each table's share pays
               for this choice, and the other half for the coefficients.
    Assumes    a `bound` M that is stated without looking at the data. The mechanism enforces it by keeping
               at most M random records of each user. One user then changes the counts by at most Δ₁ = M in
               the l1 norm, and by at most Δ₂ in the l2 norm. In general Δ₂ is M. It is √M if no user has an
               item twice, because of the data's bound or because of `once`. With a budget in ρ, the noise
               on k of n coefficients is for an l2 sensitivity of min(Δ₂, Δ₁·√(k/n)).
    Source     Rastogi & Nath, SIGMOD 2010 (FPA); Acs, Castelluccia & Chen, ICDM 2012 (k=None: EFPA).
    Differs    The basis is real and orthonormal, so noise protects both real and imaginary parts (the
               published code of EFPA leaks the phases). There are two bounds on the sensitivity, and we use
               the smaller. Noise is exact, on a public grid, and the sensitivity includes the rounding
               error of the transform.
    Cost       time O(edges · log edges) and memory O(edges), with edges = items · contexts of the domain.
    """

    budget: DP | ZCDP = budget_field(zcdp=True)
    bound: int = contributions.bound_field()
    k: int | None = parameter(
        None,
        check=_check_odd,
        unit="coefficients",
        doc="number k of Fourier coefficients to keep (by default chosen privately)",
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
        doc="largest count, so that rounding errors are bounded",
    )
    memory: int = memory_field()
    cite = "rastogi2010"
    title = "Fourier perturbation"
    audited = audited_at(0, k=1)
    series = "DFT"
    converges = False  # what lies beyond the bound, and beyond k, is gone

    def coefficient_sensitivity(self, k: Any, n: int, bound: Bound) -> Any:
        """Return the l1 sensitivity of the first k of n Fourier coefficients, min(√k·Δ₂, k·Δ₁/√n). Here Δ₁ and
        Δ₂ are the largest changes of the counts by one unit, in the l1 and l2 norms.

        The first bound holds because an orthonormal transform preserves the l2 norm, and the l1 norm of k
        numbers is at most √k times their l2 norm. The second bound holds because a record adds 1/√n to the
        mean, and at most √(2/n)·(|cos| + |sin|) <= 2/√n to the two coefficients of a frequency. So k
        coefficients of whole frequencies change by at most k/√n.
        """
        return np.minimum(np.sqrt(k) * bound.l2, k * (bound.l1 / sqrt(n))) * _UP

    def coefficient_l2(self, k: Any, n: int, bound: Bound) -> Any:
        """Return the l2 sensitivity of the first k of n Fourier coefficients, min(Δ₂, Δ₁·√(k/n)). Here Δ₁ and
        Δ₂ are the largest changes of the counts by one unit, in the l1 and l2 norms.

        A record adds 1/√n to the mean and √(2/n)·(cos, sin) to each frequency. The squares of these changes
        are 1/n and 2/n, so k coefficients of whole frequencies change by √(k/n) in the l2 norm. Several
        records change them by at most the sum.
        """
        return np.minimum(bound.l2, bound.l1 * np.sqrt(k / n)) * _UP

    def rounding_error(self, n: int, units: float = 0) -> float:
        """Return an upper bound on the rounding error of the Fourier coefficients of n counts, in the l2 norm.

        The error of a fast transform is a small multiple of log₂ n units in the last place of the l2 norm
        of its input (Higham 2002, section 24.1). This norm is at most largest·√n. The factor 64 leaves a
        margin for scaling and for sizes that are not powers of two. Pass a larger `units` for numbers that
        are computed from the coefficients.
        """
        units = 64 * (log2(n) + 1) + units
        return float(units * np.finfo(_REAL).eps * self.largest * sqrt(n)) * _UP

    def candidates(self, n: int) -> Int[np.ndarray, " candidates"]:
        """Return the numbers of coefficients among which the mechanism chooses if `k` is None. They are 1, 3,
        5, … and n.
        """
        return np.unique(np.append(np.arange(1, n + 1, 2), n))

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """Return the records that the mechanism keeps, which are private. A release with the same seed
        keeps the same records.
        """
        once = self.once or (isinstance(data.bound, Bound) and data.bound.linf == 1)
        bounded = (data.one_per_item(rng) if once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release every item and every edge, both from the same truncated records."""
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
        """Return coefficients with noise, the variance of the noise, and its receipt."""
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
        """Choose k with probability ∝ exp(−ε·U(k)/(2·Δ₂)), U(k) = ‖coefficients beyond k‖₂ +
        √(2k)·λ(k).

        The first term of U is the error from dropping coefficients. A unit changes it by at most Δ₂
        (triangle inequality). The second term is the error from noise, which does not depend on the
        data. With a budget in ρ it is √k·σ, and a choice with ε costs at most ε²/8.
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
        """Return a power of two that is too small to matter, and for which 2^52 steps reach any value."""
        fine = floor(log2(min(moved / (1024 * k), scale / 16)))
        return 2.0 ** max(fine, ceil(log2(self.largest * n)) - 52, ceil(log2(scale)) - 30)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism in which a user has at most three records."""
        return cls(budget, bound=3)


# Gs

_TOTAL_SHARE = Fraction(0.1)  # of the order's ε: what the scale of a sample of one each costs


class _Sample(NamedTuple):
    """Noisy counts of a sample. Each record of the sample stands for `factor` records."""

    counts: Int[np.ndarray, " n"]
    variance: float
    factor: float
    receipts: list[Receipt]


@value
class GS(contributions.Contributions):
    """Release items and edges as noisy means of groups.

    GS is grouping and smoothing. A group has about `width` counts. The mechanism first takes a sample of
    the records, and sorts all items or edges by their noisy counts in this sample. Neighbours in this order
    form a group. `grouping` selects the sample:

    `onesample`  one random record of each user, which moves them by 1
    `rowsample`  all records of a random part `beta` of the users, which makes ε worth more
    `noisysort`  all records
    `random`     no sample: a random order

    Guarantee  ε-DP per user. `split` divides ε between the table of items and the table of edges. Half of
               each table's share pays for the order, unless the order is random. The rest pays for the sums
               of the groups.
    Assumes    a `bound` M that is stated without looking at the data. The mechanism enforces it by
               keeping at most M random records of each user. `width` and `beta` are public.
    Source     Kellaris & Papadopoulos, PVLDB 6(5) 2013. We renamed its variants.
    Differs    Noise is geometric and is added to group sums. One user changes all sums together by at most
               M, however large the groups are. So the noise in the mean of a group G has the scale
               M/(|G|·ε). If noise were added to the means, their sensitivity would be M/w, provided that no
               group is smaller than w.
    Cost       time O(edges · log edges) and memory O(edges), with edges = items · contexts of the domain.
    """

    budget: DP = budget_field()
    bound: int = contributions.bound_field()
    width: int | None = parameter(
        None,
        1,
        integer=True,
        unit="counts",
        doc="counts per group (by default chosen from the noisy sample)",
    )
    grouping: str = parameter(
        "onesample",
        choices=("onesample", "rowsample", "noisysort", "random"),
        doc="order in which counts are grouped",
    )
    beta: float = parameter(
        0.5, 2.0**-30, 1, doc="probability with which rowsample draws a user"
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
        """Return the records that the mechanism keeps, which are private. A release with the same seed
        keeps the same records.
        """
        bounded = (data.one_per_item(rng) if self.once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def amplified_epsilon(self, epsilon: float) -> float:
        """Return the ε' that a measurement of a random sample may have if it shall cost only ε. If each user is
        in the sample with probability β, it is ε' = ln(1 + (e^ε − 1)/β), rounded down.
        """
        if epsilon > 500:  # the logarithm of β is all that is lost
            return epsilon
        return max(epsilon, log1p(expm1(epsilon) / self.beta) * (1 - 2.0**-48))

    def group_starts(self, n: int, width: int) -> Int[np.ndarray, " groups"]:
        """Return the position at which each group of counts starts. Each group has `width` of the n counts, and
        the last group also has those that remain.
        """
        return np.arange(max(1, n // width)) * min(width, n)

    def candidate_widths(self, n: int) -> list[int]:
        """Return the group sizes among which the mechanism chooses if `width` is None. They are 1, 2, 4, … and
        n.
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
        """Return the group size for which the estimated error per count is smallest. The estimate uses public
        numbers only.

        The estimate has two parts. The first is the error from grouping. Let s_j be the sorted noisy counts
        of the sample, and let `factor` scale the sample up to all records. The squared differences from the
        group means give factor²·Σ_G Σ (s_j − mean)²/n. From this, variance·(1 − 1/|G|) per count is
        subtracted for the noise in s_j, and a negative result becomes 0. The second part is the error from
        noise on the sums, 2·(l1/(w·ε))². Because sorting puts counts with similar noise into one group, too
        much is subtracted. Wide groups therefore look better than they are, especially if there are few
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
        """Release every item and every edge."""
        self.refuse_dense(data.domain.size, 100)
        return self._smoothed(data, rng)

    def _smooth(
        self,
        data: Interactions,
        counts: Int[np.ndarray, " n"],
        epsilon: float,
        rng: np.random.Generator | None,
    ) -> tuple[Float[np.ndarray, " n"], GroupNoise, list[Receipt]]:
        """Smooth one table: choose an order, then add noise to the sum of every group.

        The order is public once it is paid for, so groups are fixed sets of counts. A record is in one
        group. A user with t_G records in group G therefore changes the sums by Σ t_G <= M in total,
        whatever the sizes of the groups. So geometric noise with decay ε/M on the sums is ε-DP.
        Dividing by the public size |G| is post-processing. The noise on a mean has the scale M/(|G|·ε).
        This is the paper's M/(w·ε) if |G| = w, and less if the last group is larger (w to 2w−1). A user
        with M records in one group attains the bound.
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
        """Return noisy counts of the sample that `grouping` asks for."""
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
        """Return noisy counts of one random record per user, so a user changes one count by 1.

        If the width is to be suggested, `factor` is a noisy total of all records divided by that of the
        sample, limited to [1, M].
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
        """Return noisy counts of all records of a random sample of users. Each is in it with
        probability at most β.

        An ε'-DP measurement of such a sample costs at most ε, for adding or removing a user (Li,
        Qardaji & Su, ASIACCS 2012, Theorem 1).
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
        """Return an example of the mechanism for at most three records per user, with groups of four counts."""
        return cls(budget, bound=3, width=4)


def _counts(data: Interactions, n: int) -> Int[np.ndarray, " n"]:
    """Return the counts of items or edges, whichever has length n. With one context they are the same."""
    counts = data.edge_counts()
    return counts.ravel() if counts.size == n else counts.sum(axis=1)
