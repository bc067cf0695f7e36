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
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float, Int

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
from workbench.value import sealed, value

_TOTAL = 0.1  # of the order's ε: what the scale of a sample of one each costs


@value
class GS:
    """Release items and edges as the noisy means of groups of about `width` counts.

    Groups are runs of counts in ascending order of noisy counts of a sample. `grouping` says which:

    `onesample`  one random record of each user, which moves them by 1
    `rowsample`  all records of a random part `beta` of the users, which makes ε worth more
    `noisysort`  all records
    `random`     none: a random order
    """

    budget: DP = pure_budget()
    bound: int | None = bound_field()
    width: int | None = parameter(
        None, 1, integer=True, unit="counts", doc="None: from the noisy sample"
    )
    grouping: str = parameter(
        "onesample", choices=("onesample", "rowsample", "noisysort", "random"), doc="the order"
    )
    beta: float = parameter(0.5, 2.0**-30, 1, doc="a user's chance in rowsample")
    split: tuple[float, float] = split_field()
    once: bool = parameter(False, choices=(False, True), doc="one record of a user and item")
    memory: int = parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")
    takes: ClassVar[type] = Interactions
    cite: ClassVar[str] = "kellaris2013"
    converges: ClassVar[bool] = False  # counts of a group become the same

    def __post_init__(self):
        refuse_unbounded(self)
        if self.width is None and self.grouping == "random":
            raise ValueError(
                "GS.width = None is not allowed with grouping = 'random': need a whole number >= 1, "
                "since no noisy counts are there to choose it from"
            )

    def bounded_data(
        self, data: Interactions, rng: np.random.Generator | None = None
    ) -> Interactions:
        """What is counted, as private as the data; with the same seed, that of the release."""
        kept = (data.one_per_item(rng) if self.once else data).bounded(self.bound, rng)
        sensitivity(kept)
        return kept

    def amplified(self, epsilon: float) -> float:
        """ε' = ln(1 + (e^ε − 1)/β): ε'-DP on a sample of rate β costs ε. Rounded down."""
        if epsilon > 500:  # the logarithm of β is all that is lost
            return epsilon
        return max(epsilon, log1p(expm1(epsilon) / self.beta) * (1 - 2.0**-48))

    def starts(self, n: int, width: int) -> Int[np.ndarray, " groups"]:
        """Where the groups of n counts start: runs of `width`, the last one with what remains."""
        return np.arange(max(1, n // width)) * min(width, n)

    def widths(self, n: int) -> list[int]:
        """What width=None chooses from: 1, 2, 4, … and n."""
        return [1 << i for i in range((n - 1).bit_length())] + [n]

    def suggested(
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
        n, ordered, best = len(noisy), np.sort(noisy), None
        for width in self.widths(n):
            starts = self.starts(n, width)
            sizes = np.diff(starts, append=n)
            means = np.add.reduceat(ordered, starts) / sizes
            lost = ((ordered - np.repeat(means, sizes)) ** 2).sum()
            lost = factor**2 * max(0.0, lost - variance * (n - len(starts))) / n
            error = lost + 2 * (l1 / (width * epsilon)) ** 2
            if best is None or error < best[0]:
                best = error, width
        return best[1]

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Release a count for every item and every edge."""
        refuse_dense(self, data.domain.size, 100)
        kept, tables, ledger = self.bounded_data(data, rng), [], []
        domains = data.domain.project(data.domain.attributes[:1]), data.domain
        paid = item_edge_budgets(self.budget.epsilon, self.split)
        for domain, epsilon in zip(domains, paid, strict=True):
            values, receipts = self._smooth(kept, domain.size, epsilon, rng)
            tables.append(Histogram(domain, sealed(values)))
            ledger += receipts
        return Release(ItemEdgeCounts(*tables, sampled=True), tuple(ledger), self, kept.bound)

    def _smooth(
        self, kept: Interactions, n: int, epsilon: float, rng
    ) -> tuple[Float[np.ndarray, " n"], list[Receipt]]:
        """One table's values: an order, then a noisy sum for every group of it.

        The order is public once it is paid for, so that groups are fixed sets of counts. A record lies
        in one group, hence a user with t_G records in group G moves the sums by Σ t_G <= M in all,
        whatever the sizes: geometric noise at ε/M on whole sums is ε-DP, and exact. Dividing by the
        public |G| is post-processing. On a mean that is noise of scale M/(|G|·ε): the paper's M/(w·ε)
        where |G| = w, and less where the last group is larger (w … 2w−1). M is attained, by a user
        with M records in one group.
        """
        l1, counts, receipts = kept.bound.l1, _counts(kept, n), []
        if self.grouping == "random":
            order, width = np.argsort(noise.random_words(n, rng=rng)), self.width
        else:
            first, epsilon = item_edge_budgets(epsilon, (0.5, 0.5))
            noisy, variance, factor, receipts = self._sampled(kept, counts, first, rng)
            order = np.argsort(noisy, kind="stable")
            width = self.width or self.suggested(noisy, variance, factor, l1, epsilon)
        starts = self.starts(n, width)
        sums = np.add.reduceat(counts[order], starts)
        noisy_sums, receipt = noise.geometric(sums, l1=l1, epsilon=epsilon, rng=rng)
        sizes, values = np.diff(starts, append=n), np.empty(n)
        values[order] = np.repeat(noisy_sums / sizes, sizes)
        return values, [*receipts, receipt]

    def _sampled(self, kept: Interactions, counts, epsilon: float, rng):
        """Noisy counts of a sample, their noise's variance, how many records each stands for, receipts.

        onesample: one record, drawn for each user on their own, moves one count by 1. It stands for as
        many as a noisy total is times the noisy sample's, in [1, M], as the users' records are.
        rowsample: each user is in with a chance of at most β, and then ε' is worth no more than ε (Li,
        Qardaji & Su, ASIACCS 2012, Theorem 1; for adding or removing a user).
        """
        n, l1, factor, receipts = len(counts), kept.bound.l1, 1.0, []
        if self.grouping == "onesample":
            sample, l1 = _counts(kept.bounded(1, rng), n), 1
            if self.width is None:
                part, epsilon = item_edge_budgets(epsilon, (_TOTAL, 1 - _TOTAL))
                total, receipt = noise.geometric(
                    counts.sum(keepdims=True), l1=kept.bound.l1, epsilon=part, rng=rng
                )
                receipts.append(receipt)
        elif self.grouping == "rowsample":
            sample = _counts(self._some_users(kept, rng), n)
            factor = 1 / self.beta
        else:
            sample = counts
        worth = self.amplified(epsilon) if self.grouping == "rowsample" else epsilon
        noisy, receipt = noise.geometric(sample, l1=l1, epsilon=worth, rng=rng)
        if self.grouping == "rowsample":
            source = "Li, Qardaji & Su, ASIACCS 2012, Theorem 1"
            receipt = noise.by_theorem("geometric on a sample", DP(epsilon), source, rng=rng)
        if self.grouping == "onesample" and self.width is None:
            factor = float(np.clip(total[0] / max(1, noisy.sum()), 1, kept.bound.l1))
        variance = noise.variance(l1, worth, "geometric")
        return noisy.astype(float), variance, factor, [*receipts, receipt]

    def _some_users(self, kept: Interactions, rng) -> Interactions:
        records = kept.records_per_user()
        last = int(Fraction(self.beta) * 2**64) - 1
        chosen = noise.random_words(len(records), rng=rng) <= np.uint64(last)
        own = np.repeat(chosen, records)
        columns = (sealed(c[own]) for c in (kept.users, kept.items, kept.contexts))
        return Interactions(kept.domain, *columns, kept.bound, kept.truth_public, kept.distinct)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """A user has at most three records; groups of four."""
        return cls(budget, bound=3, width=4)


def _counts(data: Interactions, n: int) -> Int[np.ndarray, " n"]:
    """Of items or of edges, whichever are n; the same where there is one context."""
    counts = data.edge_counts()
    return counts.ravel() if counts.size == n else counts.sum(axis=1)
