"""Grouping and smoothing: counts alike share one noisy mean, which needs less noise than each alone.

Guarantee  ε-DP per user; `split` divides ε between items and edges. Half of a table's part buys the
           order in which counts are grouped (none of it if that is random), the rest the group sums.
Assumes    `bound`, stated without looking at the data and enforced: of each user at most so many
           records, at random; `width` and `beta` are public.
Source     Kellaris & Papadopoulos, PVLDB 6(5) 2013; its variants are named by what they do.
Differs    noise is geometric and on group sums: one user moves all sums together by M at most, however
           large the groups are, so that a sum over |G| counts has noise M/(|G|·ε) on its mean. With
           noise on the means M/w would be needed, and only if no group is smaller than w.
Cost       time O(edges · log edges) and memory O(edges), edges = items · contexts of the domain.
"""

from fractions import Fraction
from math import expm1, log1p
from typing import NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.arrays import Float, Int
from workbench.estimates.linear_noise import GroupNoise
from workbench.interactions import Interactions
from workbench.mechanism import Release, memory_field, pure_budget, sensitivity, split_epsilon
from workbench.mechanisms import _contributions as shared
from workbench.privacy import DP, Receipt
from workbench.value import not_allowed, parameter, sealed, value

_TOTAL_SHARE = Fraction(0.1)  # of the order's ε: what the scale of a sample of one each costs


class _Sample(NamedTuple):
    """Noisy counts of a sample; `factor` is how many records each record of it stands for."""

    counts: Int[np.ndarray, " n"]
    variance: float
    factor: float
    receipts: list[Receipt]


@value
class GS(shared.Contributions):
    """Release items and edges as the noisy means of groups of about `width` counts.

    Groups are runs of counts in ascending order of noisy counts of a sample. `grouping` says which:

    `onesample`  one random record of each user, which moves them by 1
    `rowsample`  all records of a random part `beta` of the users, which makes ε worth more
    `noisysort`  all records
    `random`     none: a random order
    """

    budget: DP = pure_budget()
    bound: int = shared.bound_field()
    width: int | None = parameter(
        None, 1, integer=True, unit="counts", doc="None: from the noisy sample"
    )
    grouping: str = parameter(
        "onesample", choices=("onesample", "rowsample", "noisysort", "random"), doc="the order"
    )
    beta: float = parameter(0.5, 2.0**-30, 1, doc="a user's chance in rowsample")
    split: tuple[float, float] = shared.split_field()
    once: bool = parameter(False, choices=(False, True), doc="one record of a user and item")
    memory: int = memory_field()
    cite = "kellaris2013"
    title = "GS"
    converges = False  # counts of a group become the same

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is None and self.grouping == "random":
            why = "need a whole number >= 1, since no noisy counts are there to choose it from"
            raise not_allowed(self, "width", why, " with grouping = 'random'")

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """What is counted, as private as the data; with the same seed, that of the release."""
        bounded = (data.one_per_item(rng) if self.once else data).bounded(self.bound, rng)
        sensitivity(bounded)
        return bounded

    def amplified_epsilon(self, epsilon: float) -> float:
        """ε' = ln(1 + (e^ε − 1)/β): ε'-DP on a sample of rate β costs ε. Rounded down."""
        if epsilon > 500:  # the logarithm of β is all that is lost
            return epsilon
        return max(epsilon, log1p(expm1(epsilon) / self.beta) * (1 - 2.0**-48))

    def group_starts(self, n: int, width: int) -> Int[np.ndarray, " groups"]:
        """Where the groups of n counts start: runs of `width`, the last one with what remains."""
        return np.arange(max(1, n // width)) * min(width, n)

    def candidate_widths(self, n: int) -> list[int]:
        """What width=None chooses from: 1, 2, 4, … and n."""
        return [1 << i for i in range((n - 1).bit_length())] + [n]

    def suggested_width(
        self,
        noisy: Float[np.ndarray, " n"],
        variance: float,
        factor: float,
        l1: float,
        epsilon: float,
    ) -> int:
        """The width of least estimated error a count, out of public numbers: noisy counts of a sample.

        The error is what grouping loses, factor²·Σ_G Σ (s_j − mean)²/n over runs of sorted counts less
        the noise's own part, variance·(1 − 1/|G|) a count, but not below 0; and 2·(l1/(w·ε))² of noise.
        `factor` scales the sample up to all records. Sorting brings like noise together, so that too
        much is taken off and wide groups look too good: the more so the fewer records there are.
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
        """One table's values: an order, then a noisy sum for every group of it.

        The order is public once it is paid for, so that groups are fixed sets of counts. A record lies
        in one group, hence a user with t_G records in group G moves the sums by Σ t_G <= M in all,
        whatever the sizes: geometric noise at ε/M on whole sums is ε-DP, and exact. Dividing by the
        public |G| is post-processing. On a mean that is noise of scale M/(|G|·ε): the paper's M/(w·ε)
        where |G| = w, and less where the last group is larger (w … 2w−1). M is attained, by a user
        with M records in one group.
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
        """Noisy counts of the sample that `grouping` asks for."""
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
        """One record, drawn for each user on their own: a user moves one count by 1.

        Where the width is to be suggested, a record stands for as many as a noisy total is times the
        noisy sample's, in [1, M], as the users' records are.
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
        """All records of users who are in with a chance of at most β each, independently.

        ε'-DP on such a sample costs no more than ε (Li, Qardaji & Su, ASIACCS 2012, Theorem 1; for
        adding or removing a user).
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
        chosen = noise.random_words(len(records), rng=rng) <= np.uint64(last)
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
        """A user has at most three records; groups of four."""
        return cls(budget, bound=3, width=4)


def _counts(data: Interactions, n: int) -> Int[np.ndarray, " n"]:
    """Of items or of edges, whichever are n; the same where there is one context."""
    counts = data.edge_counts()
    return counts.ravel() if counts.size == n else counts.sum(axis=1)
