"""Mechanisms that spend part of their budget to choose a parameter from the data. The chosen parameter is
either the largest number of records per user that is counted, or the threshold of a filter.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, expm1
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import Interactions, SparseTable
from workbench.estimates.release import Release
from workbench.mechanisms.contributions import HPA, LPA, SRA, item_edge_budgets
from workbench.mechanisms.protocol import Mechanism, sensitivity
from workbench.mechanisms.summaries import HighPassFilter
from workbench.noise.law import Law
from workbench.privacy import DP, ZCDP
from workbench.privacy.enclosures import round_up
from workbench.value import Int, parameter, value

# Chosen contributions

_CHOSEN_FIELD: dict[type, str] = {SRA: "l", HPA: "l", LPA: "bound"}


def _check_sampling(mechanism: Any) -> str | None:
    if type(mechanism) not in _CHOSEN_FIELD:
        return "need SRA, HPA or LPA, whose l or bound is chosen"
    if isinstance(mechanism.budget, ZCDP):
        return "need one of an epsilon, whose geometric noise the choice weighs"
    return None


def _check_candidate_l(candidates: Any) -> str | None:
    good = isinstance(candidates, tuple) and 1 < len(set(candidates)) == len(candidates)
    good = good and all(type(l) is int and 1 <= l <= 2**53 for l in candidates)  # noqa: E741
    return None if good else "need a tuple of two or more different integers >= 1"


def rank_scores(
    records: Int[np.ndarray, " users"], candidates: Sequence[int], noise_per_record: float
) -> Int[np.ndarray, " candidates"]:
    """Return a score for each candidate, a possible limit on the number of records per user. The score is the
    negative of a number of users. At least this many users would have to change their records before the
    candidate is the best limit.

    Suppose that a user has m records, and at most T records are counted. The user then loses (m − T)⁺ records.
    The noise on all counts adds up to T·`noise_per_record`. The best T is the one for which the lost records of
    all users and the noise have the smallest sum. Let #(m > T) be the number of users with m > T. For the best
    T, #(m > T) <= noise_per_record <= #(m >= T). The score of a candidate T is the negative of the distance
    between `noise_per_record` and this interval. So one user changes the score of a candidate by at most one.

    Parameters
    ----------
    records : int[users]
        Number of records of each user.
    candidates : sequence of int
        Numbers of records per user to choose from. You list these numbers without looking at the data.
    noise_per_record : float
        Sum of the errors that the noise causes in all counts if one record per user is counted. You compute
        this number from public facts. The function rounds it to an integer.

    Returns
    -------
    int64[candidates]
    """
    target = round(min(noise_per_record, 2.0**60))
    scores = []
    for count in candidates:
        beyond = int(np.count_nonzero(records > count))
        reaching = int(np.count_nonzero(records >= count))
        scores.append(-max(beyond - target, target - reaching, 0))
    return np.array(scores, np.int64)


@value
class ChosenContributions(Mechanism):
    """Choose how many records per user to count.

    The parameter `mechanism` is another mechanism, here called the inner mechanism. The inner mechanism counts
    at most a certain number of records per user. From the data, this class chooses one of the `candidates` for
    this number. Then the class runs the inner mechanism with the chosen number. The chosen number replaces the
    field `l` of an `SRA` or `HPA`, or the field `bound` of an `LPA`. All other parameters of the inner
    mechanism stay the same, including the budget.

    Guarantee  The release is ε-DP for each user. ε is the sum of two parts. The parameter `epsilon` pays for
               the choice, and the budget of `mechanism` pays for the release with the chosen number.
    Assumes    Users may have any number of records. You choose the candidates without looking at the data.
    Source     The exponential mechanism is due to McSherry & Talwar, FOCS 2007, section 3. We defined the score
               ourselves, following an idea of Fan & Jin, WWW 2015, section 4.1.
    Differs    To score a candidate, we estimate the error that a release with this candidate would have on the
               data. The score is the negative of this estimate. Fan & Jin compute the error from a model of the
               users, without the data.
    Cost       Time is that of one pass over the numbers of records per user, plus the time that `mechanism`
               takes.

    Let cᵢ be the true count of item i, and c̃ᵢ the noisy count. The total error of the item counts is Σ|c̃ᵢ −
    cᵢ|. The score of a candidate l is the negative of an estimate of this error. On average, the error is at
    most this estimate plus a number that is the same for all candidates. Let n_u be the number of records of
    user u, L the largest candidate, and K the number of items. Then

        score(l) = −[ Σ_u (min(n_u, L) − min(n_u, l)) + K·E|X_l| ],

    where X_l is the noise on an item's count if at most l records per user are counted. The sum over the users
    is the number of records that are counted with the limit L, but dropped with the limit l. Each dropped
    record lowers one item's count by one. The sum leaves out the records of a user beyond L, because every
    candidate drops these records.

    The choice is private for the following reason. Suppose that a user with n records is added to the data. The
    sum gets one new term, so the score of l falls by min(n, L) − min(n, l). This number is between 0 and L − l.
    So no score rises, and no score falls by more than L − l₀, where l₀ is the smallest candidate. Both limits
    hold for any number of records per user. The other part of the score, K·E|X_l|, is computed from public
    numbers. This part is rounded to an integer, so all scores are integers. The exponential mechanism chooses a
    candidate with probability proportional to exp(ε·score/(L − l₀)). Because all scores change in the same
    direction, this choice is ε-DP (see `noise.exponential_mechanism` with `monotone`). The release with the
    chosen l is ε'-DP, where ε' is the budget of `mechanism`. Because the release also shows the chosen l, the
    two costs add up to ε + ε'.

    With `rule` = "rank", the function `rank_scores` computes the scores. We defined these scores ourselves,
    following an idea of Liu, Suresh, Zhu, Kairouz & Gruteser (2022). We have not seen their algorithm, so it
    may differ from ours. One user changes a rank score by at most one, up or down. The exponential mechanism
    therefore uses weights exp(ε·score/2). If the candidates are large and there are many users, "rank" is
    better than "error".
    """

    mechanism: Any = parameter(check=_check_sampling, doc="mechanism run after the choice")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidate_l, unit="records", doc="numbers of records to choose from"
    )
    epsilon: float = parameter(low=0, strict=True, doc="part of ε that pays for the choice")
    rule: str = parameter(
        "error", choices=("error", "rank"), doc="score: from the estimated error, or from ranks"
    )
    takes = Interactions
    cite = "mcsherry2007"
    title = "chosen contributions"
    converges = False  # what lies beyond the chosen number is dropped

    def __post_init__(self) -> None:
        for count in self.candidates:
            self.with_count(count)

    @property
    def budget(self) -> DP:
        """Total budget of the mechanism, in ε. This total is the exact sum of `epsilon` and the budget of
        the inner mechanism, rounded up.
        """
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    @property
    def chosen_field(self) -> str:
        """Name of the inner mechanism's field that is chosen from the data: "l" for `SRA` and `HPA`, and
        "bound" for `LPA`.
        """
        return _CHOSEN_FIELD[type(self.mechanism)]

    @property
    def score_sensitivity(self) -> int:
        """Largest change of a candidate's score that one user can cause. With `rule` = "error", adding a user
        never raises a score.
        """
        if self.rule == "rank":
            return 1
        return max(self.candidates) - min(self.candidates)

    def with_count(self, count: int) -> Mechanism:
        """Return a copy of the inner mechanism that counts at most `count` records per user."""
        return replace(self.mechanism, **{self.chosen_field: count})

    def noise_error(self, count: int, items: int) -> float:
        """Return the expected sum of the absolute errors that the noise causes in the counts of items. `items`
        is the number K of items. `count` is the largest number of records per user that is counted.

        Let X be the noise on the count of one item. The result is K·E|X|. For two-sided geometric noise, E|X|
        is 2α/(1 − α²) with α = exp(−ε/count), where ε is `item_epsilon`.
        """
        decay = self.item_epsilon / count
        return items * 2 * exp(-decay) / -expm1(-2 * decay)

    @property
    def item_epsilon(self) -> float:
        """Part of the inner mechanism's ε that pays for the noise on the counts of items."""
        mechanism = self.mechanism
        is_picking = isinstance(mechanism, HPA)
        counts_epsilon = mechanism.budgets()[1] if is_picking else mechanism.budget.epsilon
        return item_edge_budgets(counts_epsilon, mechanism.split)[0]

    def scores(self, data: Interactions) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate, in the order of `candidates`. With `rule` = "error", the score is
        the negative of the estimated error. With `rule` = "rank", the function `rank_scores` computes the
        score.
        """
        items = data.domain.shape[0]
        records = data.records_per_user()
        if self.rule == "rank":
            return rank_scores(records, self.candidates, items / self.item_epsilon)
        records = np.minimum(records, max(self.candidates))
        return np.array(
            [
                int(np.minimum(records, count).sum())
                - int(records.sum())
                - min(round(self.noise_error(count, items)), 2**60)
                for count in self.candidates
            ]
        )

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Choose the largest number of records per user, and make a release with this number."""
        chosen, receipt = noise.exponential_mechanism(
            self.scores(data)[None],
            sensitivity=self.score_sensitivity,
            epsilon=self.epsilon,
            monotone=self.rule == "error",
            rng=rng,
        )
        mechanism = self.with_count(self.candidates[int(chosen[0])])
        release = mechanism(data, rng)
        return replace(release, ledger=(receipt, *release.ledger))

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It chooses to count at most one or at most three
        records per user with `SRA`, the simple random algorithm. Half of ε pays for the choice.
        """
        half = budget.epsilon / 2
        return cls(SRA(DP(half), 1), (1, 3), half)


# Chosen threshold

_LARGEST = 2**50


def _check_filter(mechanism: Any) -> str | None:
    good = isinstance(mechanism, HighPassFilter) and mechanism.theta is not None
    good = good and mechanism.transform is None and isinstance(mechanism.budget, DP)
    return (
        None if good else "need a HighPassFilter with theta and an epsilon, without a transform"
    )


def _check_candidate_theta(candidates: Any) -> str | None:
    good = isinstance(candidates, tuple) and 1 < len(set(candidates)) == len(candidates)
    good = good and all(type(theta) is int and 1 <= theta <= _LARGEST for theta in candidates)
    return None if good else "need a tuple of two or more different integers >= 1"


@value
class ChosenThreshold(Mechanism):
    """Choose the threshold θ of a filter from the data.

    The parameter `mechanism` is a filter, which releases only cells whose noisy count is at least θ. From the
    data, this class first chooses one of the `candidates` for θ. Then the class runs the filter with the
    chosen θ. All other parameters of the filter stay the same, including the budget.

    Guarantee  The release is ε-DP for each unit. ε is the sum of two parts. The parameter `epsilon` pays for
               the choice, and the budget of `mechanism` pays for the release with the chosen θ.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose the
               candidates without looking at the data.
    Source     The exponential mechanism is due to McSherry & Talwar, FOCS 2007, section 3. We defined the
               score.
    Differs    nothing.
    Cost       Time is that of one pass over the counts for each candidate, plus the time that `mechanism`
               takes.

    Let cᵢ be the true count of cell i. The total error of all cells is Σ|released count − cᵢ|. The score of a
    candidate θ is the negative of an estimate of this error:

        score(θ) = −[ Σᵢ t(cᵢ) + m·E(|X|; |X| >= θ) ],   t(c) = max(0, min(c, 2θ − c)),

    The sum is over the non-empty cells. The second term is the expected sum of the noise that passes the
    filter, in absolute value, if all m cells of the domain are empty. X is the noise on one cell. E(|X|; |X| >=
    θ) is the mean of |X|, where values below θ count as 0. The function t(c) describes the error of a cell with
    count c. If c is below θ, the filter drops the cell, so t(c) = c. If c is above θ, the filter may still drop
    the cell because of noise. A drop is less likely for larger counts, so t(c) falls to 0 at c = 2θ.

    The choice is private for the following reason. Let l1 be the largest total change of the counts that one
    protected unit can cause. If c changes by 1, t(c) changes by at most 1, and t(0) = 0. Therefore, a unit
    changes Σ t(cᵢ) by at most l1, up or down, even if the unit adds records to empty cells. The second term is
    computed from public numbers and rounded to an integer, so all scores are integers. The exponential
    mechanism chooses a candidate with probability proportional to exp(ε·score/(2·l1)), and is therefore ε-DP.
    Because the release also shows the chosen θ, the budget of `mechanism` is added to this ε.
    """

    mechanism: Any = parameter(check=_check_filter, doc="inner mechanism, run after the choice")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidate_theta, unit="counts", doc="thresholds θ to choose from"
    )
    epsilon: float = parameter(low=0, strict=True, doc="part of ε that pays for the choice")
    takes = SparseTable
    cite = "mcsherry2007"
    title = "chosen threshold"
    chosen_field = "theta"

    @property
    def budget(self) -> DP:
        """Total budget of the mechanism, in ε. This total is the exact sum of `epsilon` and the budget of
        the inner mechanism, rounded up.
        """
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    def noise_that_passes(self, theta: int, cells: int, l1: float) -> int:
        """Return the expected sum of the absolute values of all noisy counts that pass the filter, if the table
        is empty. `theta` is the threshold θ, and `cells` the number m of cells. `l1` is the largest total
        change of the counts that one protected unit can cause.

        The formula is m·E(|X|; |X| >= θ), rounded to an integer, where X is the noise on a cell. In this mean,
        |X| counts as 0 if |X| is below θ. With `sides` = 1, X counts as 0 if X is below θ.
        """
        law = Law("geometric", self.mechanism.budget.epsilon / l1)
        one_side = law.empty_cell(theta, sides=1).mean
        return min(round(self.mechanism.sides * cells * one_side), 2**60)

    def scores(self, table: SparseTable) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate threshold, in the order of `candidates`. The score is the negative
        of the sum of two errors. The first error is an estimate of the sum of the true counts that the filter
        drops. The second error is the expected sum of the noise that passes the filter in an empty table. The
        method `noise_that_passes` computes this sum.
        """
        l1 = sensitivity(table)
        return np.array(
            [
                -int(np.maximum(0, np.minimum(table.counts, 2 * theta - table.counts)).sum())
                - self.noise_that_passes(theta, table.domain.size, l1)
                for theta in self.candidates
            ]
        )

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Choose the threshold θ, and make a release with this threshold."""
        chosen, receipt = noise.exponential_mechanism(
            self.scores(table)[None],
            sensitivity=sensitivity(table),
            epsilon=self.epsilon,
            rng=rng,
        )
        mechanism = replace(self.mechanism, theta=self.candidates[int(chosen[0])])
        release = mechanism(table, rng)
        return replace(release, ledger=(receipt, *release.ledger))

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It chooses between two thresholds: two times and
        eight times the scale of the noise. Half of ε pays for the choice.
        """
        half = budget.epsilon / 2
        scale = max(1, round(1 / half))
        return cls(HighPassFilter(DP(half), scale), (2 * scale, 8 * scale), half)
