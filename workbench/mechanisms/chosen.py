"""Parameters that are chosen privately from the data: the number of records per user, and the threshold."""

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
    """Minus how many users must change before a candidate is the best bound on the records of each.

    A bound T drops Σ (m − T)⁺ records of users with m each, and its noise adds up to T·`noise_per_record`.
    Their sum is least at T where #(m > T) <= noise_per_record <= #(m >= T). The score is minus the distance
    from that interval, so that one user more or less moves it by at most one.

    Parameters
    ----------
    records : int[users]
        Number of records of each user.
    candidates : sequence of int
        Stated without looking at the data.
    noise_per_record : float
        Public, rounded to an integer.

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
    """Choose l, or the bound of LPA, from the data.

    It chooses l (of SRA and HPA) or the bound (of LPA) among `candidates`. `mechanism` gives everything else,
    including the budget of the release. Its own l or bound is not used.

    Guarantee  ε-DP per user: `epsilon` for the choice, and the mechanism's own budget for the release with what
               was chosen, whichever it was.
    Assumes    nothing of the users; the candidates are stated without looking at the data.
    Source     McSherry & Talwar, FOCS 2007, section 3, for the exponential mechanism; the score is ours, after
               the model of Fan & Jin, WWW 2015, section 4.1.
    Differs    candidates are scored by an estimate of their error on the data. Fan & Jin compute it from a
    model. Cost       a pass over the number of records of each user, and the mechanism's own.

    The score of l estimates the error of all item counts together, Σ|c̃ᵢ − cᵢ|, of which it is an upper bound
    in expectation but for what no candidate changes. Let user u have n_u records, L be the largest candidate
    and K the number of items:

        score(l) = −[ Σ_u (min(n_u, L) − min(n_u, l)) + K·E|X_l| ],

    where X_l is the noise on an item if l records of each user are counted. The sum is how many records l drops
    that L does not: each lowers one item's count by one, and the records beyond L, which every candidate drops,
    are left out, since they add the same to all scores.

    Sensitivity. Add a user with n records of any kind, to any data. Only that user's term of the sum is new:
    l's score falls by min(n, L) − min(n, l), which lies between 0 and L − l. K·E|X_l| is public, and is rounded
    to an integer, so that scores are whole and exact. With l₀ the smallest candidate, all scores move in
    one direction, by at most L − l₀, however many records the user has: the exponential mechanism with weights
    exp(ε·score/(L − l₀)) is ε-DP (`noise.exponential_mechanism`, monotone). What is chosen is public then, and
    the release is an ε'-DP mechanism for each candidate: adaptive composition gives ε + ε'.

    With `rule` "rank" the scores are those of `rank_scores`, ours after Liu, Suresh, Zhu, Kairouz & Gruteser
    (2022), whose algorithm we have not seen. A user moves them by at most one, up or down, whatever the
    candidates are, and the weights are exp(ε·score/2). It is better with large candidates and many users.
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
        """Budget of the choice and the release together, at least their exact sum."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    @property
    def chosen_field(self) -> str:
        """Field of the mechanism that is chosen."""
        return _CHOSEN_FIELD[type(self.mechanism)]

    @property
    def score_sensitivity(self) -> int:
        """Largest change of any score by one user, of the rule "error" in one direction for all."""
        if self.rule == "rank":
            return 1
        return max(self.candidates) - min(self.candidates)

    def with_count(self, count: int) -> Mechanism:
        """Return the mechanism with so many records per user."""
        return replace(self.mechanism, **{self.chosen_field: count})

    def noise_error(self, count: int, items: int) -> float:
        """Return K·E|X|, the error of the noise on all item counts if so many records per user are counted.

        E|X| = 2α/(1 − α²), α = exp(−ε/l), for two-sided geometric noise.
        """
        decay = self.item_epsilon / count
        return items * 2 * exp(-decay) / -expm1(-2 * decay)

    @property
    def item_epsilon(self) -> float:
        """ε that pays for the noise on items."""
        mechanism = self.mechanism
        is_picking = isinstance(mechanism, HPA)
        counts_epsilon = mechanism.budgets()[1] if is_picking else mechanism.budget.epsilon
        return item_edge_budgets(counts_epsilon, mechanism.split)[0]

    def scores(self, data: Interactions) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate: minus dropped records and noise, or by rank."""
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
        """Choose the number of records, and release with it."""
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
        """Make SRA with one or three records per user. Half of ε pays for the choice."""
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
    """Choose θ of a filter from the data.

    It chooses among `candidates`. `mechanism` gives everything else, including the budget of the release.
    Its own θ is not used.

    Guarantee  ε-DP per unit; `epsilon` for the choice, and the mechanism's own budget for the release with what
               was chosen, whichever it was.
    Assumes    the table's bound; the candidates are stated without looking at the data.
    Source     McSherry & Talwar, FOCS 2007, section 3, for the exponential mechanism; the score is ours.
    Differs    nothing.
    Cost       a pass over the counts a candidate, and the mechanism's own.

    The score of θ estimates the error of all cells together, Σ|released − cᵢ|:

        score(θ) = −[ Σᵢ t(cᵢ) + m·E(|X|; |X| >= θ) ],   t(c) = max(0, min(c, 2θ − c)),

    over the cells that are not empty, and the noise that lets the m cells of the domain pass though they were
    empty. A count below θ is lost; one above it is lost with some chance, which t lets fall to 0 at 2θ.

    Sensitivity. t(0) = 0, and t rises or falls by at most 1 where c does by 1. A unit moves the counts by at
    most l1 in all, hence Σ t(cᵢ), over empty cells too, by at most l1, up or down. What noise lets pass is
    public, and is rounded to an integer; candidates are whole, so that scores are whole and exact. The
    exponential mechanism with weights exp(ε·score/(2·l1)) is ε-DP, and what it chooses is public: adaptive
    composition adds the mechanism's own ε.
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
        """Budget of the choice and the release together, at least their exact sum."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    def noise_that_passes(self, theta: int, cells: int, l1: float) -> int:
        """Return m·E(|X|; |X| >= θ), the counts that an empty table would release."""
        law = Law("geometric", self.mechanism.budget.epsilon / l1)
        one_side = law.empty_cell(theta, sides=1).mean
        return min(round(self.mechanism.sides * cells * one_side), 2**60)

    def scores(self, table: SparseTable) -> Int[np.ndarray, " candidates"]:
        """Return the score of each candidate: minus what it loses, and minus the noise that passes."""
        l1 = sensitivity(table)
        return np.array(
            [
                -int(np.maximum(0, np.minimum(table.counts, 2 * theta - table.counts)).sum())
                - self.noise_that_passes(theta, table.domain.size, l1)
                for theta in self.candidates
            ]
        )

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Choose the threshold, and release with it."""
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
        """Make a filter at two or eight noise scales. Half of ε pays for the choice."""
        half = budget.epsilon / 2
        scale = max(1, round(1 / half))
        return cls(HighPassFilter(DP(half), scale), (2 * scale, 8 * scale), half)
