"""Mechanisms that choose a parameter privately from the data: the number of records per user, or the
threshold.
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
    """Score each candidate for the bound on records per user. The score is minus the number of users that
    would have to change before this candidate is the best.

    Suppose that a user has m records. With a bound of T records, the user loses (m − T)⁺ of them. The noise
    adds up to T·`noise_per_record`. The lost records and the noise together are smallest at the T for which
    #(m > T) <= noise_per_record <= #(m >= T), where # counts users. The score is minus the distance of
    `noise_per_record` from this interval, so one user changes it by at most one.

    Parameters
    ----------
    records : int[users]
        Number of records of each user.
    candidates : sequence of int
        Bounds to choose from, stated without looking at the data.
    noise_per_record : float
        Public error of the noise per record. It is rounded to an integer.

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
    """Choose the number of records per user from the data.

    The mechanism chooses l (for `SRA` and `HPA`) or `bound` (for `LPA`) among `candidates`. Then it makes a
    release with this number. `mechanism` gives all other parameters, including the budget of the release.
    Its own l or bound is ignored.

    Guarantee  ε-DP per user, where ε is the sum of `epsilon`, for the choice, and the mechanism's own
               budget, for the release with the chosen parameter.
    Assumes    nothing about the users. The candidates are stated without looking at the data.
    Source     McSherry & Talwar, FOCS 2007, section 3, for the exponential mechanism. The score is our own,
               after the model of Fan & Jin, WWW 2015, section 4.1.
    Differs    We score candidates by an estimate of their error on the data. Fan & Jin compute the
               error from a model.
    Cost       one pass over the numbers of records per user, and the cost of the mechanism.

    The score of l estimates the total error of the item counts, Σ|c̃ᵢ − cᵢ|. On average it is at least this
    error, apart from a part that is the same for all candidates. Let user u have n_u records, L be the
    largest candidate and K the number of items:

        score(l) = −[ Σ_u (min(n_u, L) − min(n_u, l)) + K·E|X_l| ],

    where X_l is the noise on an item if l records per user are counted. The sum over u is the number of
    records that l drops and L keeps. Each dropped record lowers one item's count by one. Records beyond L
    are left out of the sum, because every candidate drops them.

    Sensitivity. If a user with n records is added to any data, only this user's term of the sum is new. The
    score of l falls by min(n, L) − min(n, l), which is between 0 and L − l. K·E|X_l| is public and is
    rounded to an integer, so scores are exact integers. Let l₀ be the smallest candidate. All scores change
    in one direction and by at most L − l₀, however many records the user has. The exponential mechanism
    with weights exp(ε·score/(L − l₀)) is therefore ε-DP (`noise.exponential_mechanism` with `monotone`).
    The chosen l is then public, and the release is ε'-DP for every candidate, so adaptive composition gives
    ε + ε'.

    With `rule` = "rank", the scores are those of `rank_scores`. They are our own, after Liu, Suresh, Zhu,
    Kairouz & Gruteser (2022), whose algorithm we have not seen. One user changes a rank score by at most
    one, up or down, so the weights are exp(ε·score/2). This rule is better for large candidates and many
    users.
    """

    mechanism: Any = parameter(check=_check_sampling, doc="mechanism whose field is chosen")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidate_l, unit="records", doc="candidate numbers of records per user"
    )
    epsilon: float = parameter(low=0, strict=True, doc="privacy loss ε of the choice")
    rule: str = parameter(
        "error", choices=("error", "rank"), doc="score: estimated error, or rank of the users"
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
        """Total budget of the choice and the release that follows. It is their exact sum, rounded up."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    @property
    def chosen_field(self) -> str:
        """Name of that parameter of the inner mechanism which is chosen from the data."""
        return _CHOSEN_FIELD[type(self.mechanism)]

    @property
    def score_sensitivity(self) -> int:
        """Largest change of any score by one user. With the rule "error", one user raises all scores or
        lowers all of them.
        """
        if self.rule == "rank":
            return 1
        return max(self.candidates) - min(self.candidates)

    def with_count(self, count: int) -> Mechanism:
        """Return the inner mechanism with the given number of records per user."""
        return replace(self.mechanism, **{self.chosen_field: count})

    def noise_error(self, count: int, items: int) -> float:
        """Return the error that noise on the K item counts causes on average, K·E|X|. X is the noise on one
        count, for the given number of records per user.

        For two-sided geometric noise E|X| = 2α/(1 − α²), with α = exp(−ε/l).
        """
        decay = self.item_epsilon / count
        return items * 2 * exp(-decay) / -expm1(-2 * decay)

    @property
    def item_epsilon(self) -> float:
        """Part of ε that pays for the noise on the counts of items."""
        mechanism = self.mechanism
        is_picking = isinstance(mechanism, HPA)
        counts_epsilon = mechanism.budgets()[1] if is_picking else mechanism.budget.epsilon
        return item_edge_budgets(counts_epsilon, mechanism.split)[0]

    def scores(self, data: Interactions) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate number of records per user. By the rule "error" it is minus the
        estimated error, and by the rule "rank" it is the rank score.
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
        """Choose the number of records per user, and make the release with it."""
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
        """Return an example of the mechanism that chooses between one and three records per user for SRA
        (simple random algorithm). Half of ε pays for the choice.
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

    The mechanism chooses θ among `candidates`, and then makes a release with it. `mechanism` gives all
    other parameters, including the budget of the release. Its own θ is ignored.

    Guarantee  ε-DP per unit, where ε is the sum of `epsilon`, for the choice, and the mechanism's own
               budget, for the release with the chosen θ.
    Assumes    the table's bound. The candidates are stated without looking at the data.
    Source     McSherry & Talwar, FOCS 2007, section 3, for the exponential mechanism. The score is our own.
    Differs    nothing.
    Cost       one pass over the counts per candidate, and the cost of the mechanism.

    The score of θ estimates the total error of all cells, Σ|released count − cᵢ|:

        score(θ) = −[ Σᵢ t(cᵢ) + m·E(|X|; |X| >= θ) ],   t(c) = max(0, min(c, 2θ − c)),

    The sum is over the non-empty cells. The second term is the expected noise that passes the filter if all
    m cells of the domain are empty. A count c below θ is lost. A count above θ may still be lost through
    noise. This is less likely for larger counts, so t(c) falls to 0 at c = 2θ.

    Sensitivity. t(0) = 0, and t changes by at most 1 if c changes by 1. A unit changes the counts by at
    most l1 in total. It therefore changes Σ t(cᵢ) by at most l1, up or down. This also holds if the unit
    fills empty cells. The noise term is public and is rounded to an integer, and candidates are integers,
    so scores are exact integers. The exponential mechanism with weights exp(ε·score/(2·l1)) is therefore
    ε-DP. The chosen θ is public, so adaptive composition adds the mechanism's own ε.
    """

    mechanism: Any = parameter(check=_check_filter, doc="mechanism whose field is chosen")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidate_theta, unit="counts", doc="candidate thresholds θ"
    )
    epsilon: float = parameter(low=0, strict=True, doc="privacy loss ε of the choice")
    takes = SparseTable
    cite = "mcsherry2007"
    title = "chosen threshold"
    chosen_field = "theta"

    @property
    def budget(self) -> DP:
        """Total budget of the choice and the release that follows. It is their exact sum, rounded up."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    def noise_that_passes(self, theta: int, cells: int, l1: float) -> int:
        """Return the total size of the noisy counts that an empty table would release on average. For m cells
        with noise X and the threshold θ it is m·E(|X|; |X| >= θ).
        """
        law = Law("geometric", self.mechanism.budget.epsilon / l1)
        one_side = law.empty_cell(theta, sides=1).mean
        return min(round(self.mechanism.sides * cells * one_side), 2**60)

    def scores(self, table: SparseTable) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate threshold. It is minus the sum of two errors, the counts that the
        threshold removes and the noise that passes it.
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
        """Choose the threshold, and make the release with it."""
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
        """Return an example of the mechanism that chooses between thresholds of two and eight noise scales.
        Half of ε pays for the choice.
        """
        half = budget.epsilon / 2
        scale = max(1, round(1 / half))
        return cls(HighPassFilter(DP(half), scale), (2 * scale, 8 * scale), half)
