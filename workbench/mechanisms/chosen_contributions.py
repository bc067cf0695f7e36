"""How many records of each user to count, chosen from stated candidates by the data, privately.

Guarantee  ε-DP per user: `epsilon` for the choice, and the mechanism's own budget for the release with what
           was chosen, whichever it was.
Assumes    nothing of the users; the candidates are stated without looking at the data.
Source     McSherry & Talwar, FOCS 2007, section 3, for the exponential mechanism; the score is ours, after
           the model of Fan & Jin, WWW 2015, section 4.1.
Differs    the candidates are scored by the error that the data have, not by that of a model.
Cost       a pass over the number of records of each user, and the mechanism's own.

The score of l estimates the error of all item counts together, Σ|c̃ᵢ − cᵢ|, of which it is an upper bound
in expectation but for what no candidate changes. Let user u have n_u records, L be the largest candidate
and K the number of items:

    score(l) = −[ Σ_u (min(n_u, L) − min(n_u, l)) + K·E|X_l| ],

where X_l is the noise on an item if l records of each user are counted. The sum is how many records l drops
that L does not: each lowers one item's count by one, and the records beyond L, which every candidate drops,
are left out, since they add the same to all scores.

Sensitivity. Add a user with n records of any kind, to any data. Only that user's term of the sum is new:
l's score falls by min(n, L) − min(n, l), which lies between 0 and L − l. K·E|X_l| is public, and is rounded
to a whole number, so that scores are whole and exact. With l₀ the smallest candidate, all scores move in
one direction, by at most L − l₀, however many records the user has: the exponential mechanism with weights
exp(ε·score/(L − l₀)) is ε-DP (`noise.exponential_mechanism`, monotone). What is chosen is public then, and
the release is an ε'-DP mechanism for each candidate: adaptive composition gives ε + ε'.
"""

from dataclasses import replace
from fractions import Fraction
from math import exp, expm1
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.arrays import Int
from workbench.enclosures import round_up
from workbench.interactions import Interactions
from workbench.mechanism import Mechanism, Release, parameter, value
from workbench.mechanisms._contributions import item_edge_budgets
from workbench.mechanisms.hpa import HPA
from workbench.mechanisms.lpa import LPA
from workbench.mechanisms.sra import SRA
from workbench.privacy import DP, ZCDP

_CHOSEN_FIELD: dict[type, str] = {SRA: "l", HPA: "l", LPA: "bound"}


def _check_mechanism(mechanism: Any) -> str | None:
    if type(mechanism) not in _CHOSEN_FIELD:
        return "need SRA, HPA or LPA, whose l or bound is chosen"
    if isinstance(mechanism.budget, ZCDP):
        return "need one of an epsilon, whose geometric noise the choice weighs"
    return None


def _check_candidates(candidates: Any) -> str | None:
    good = isinstance(candidates, tuple) and 1 < len(set(candidates)) == len(candidates)
    good = good and all(type(l) is int and 1 <= l <= 2**53 for l in candidates)  # noqa: E741
    return None if good else "need a tuple of two or more different whole numbers >= 1"


@value
class ChosenContributions(Mechanism):
    """Choose l (of SRA and HPA) or the bound (of LPA) among `candidates`, then release with it.

    `mechanism` says all else, its own budget too; its l or bound is not used.
    """

    mechanism: Any = parameter(check=_check_mechanism, doc="what is released")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidates, unit="records", doc="of each user"
    )
    epsilon: float = parameter(low=0, strict=True, doc="of the choice")
    takes = Interactions
    cite = "mcsherry2007"
    title = "chosen contributions"
    converges = False  # what lies beyond the chosen number is dropped

    def __post_init__(self) -> None:
        for count in self.candidates:
            self.with_count(count)

    @property
    def budget(self) -> DP:
        """Of the choice and the release together; not less than their exact sum."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    @property
    def chosen_field(self) -> str:
        """What is chosen: a field of the mechanism."""
        return _CHOSEN_FIELD[type(self.mechanism)]

    @property
    def score_sensitivity(self) -> int:
        """How far one user moves any score, and all in one direction."""
        return max(self.candidates) - min(self.candidates)

    def with_count(self, count: int) -> Mechanism:
        """The mechanism with so many records of each user."""
        return replace(self.mechanism, **{self.chosen_field: count})

    def noise_error(self, count: int, items: int) -> float:
        """K·E|X|: the noise on all item counts together, where so many records of a user are counted.

        E|X| = 2α/(1 − α²), α = exp(−ε/l), for two-sided geometric noise.
        """
        mechanism = self.mechanism
        is_picking = isinstance(mechanism, HPA)
        counts_epsilon = mechanism.budgets()[1] if is_picking else mechanism.budget.epsilon
        item_epsilon, _ = item_edge_budgets(counts_epsilon, mechanism.split)
        decay = item_epsilon / count
        return items * 2 * exp(-decay) / -expm1(-2 * decay)

    def scores(self, data: Interactions) -> Int[np.ndarray, " candidates"]:
        """The score of each candidate: less the records that it drops, and its noise."""
        records = np.minimum(data.records_per_user(), max(self.candidates))
        items = data.domain.shape[0]
        return np.array(
            [
                int(np.minimum(records, count).sum())
                - int(records.sum())
                - min(round(self.noise_error(count, items)), 2**60)
                for count in self.candidates
            ]
        )

    def __call__(self, data: Interactions, rng: np.random.Generator | None = None) -> Release:
        """Choose, and release."""
        chosen, receipt = noise.exponential_mechanism(
            self.scores(data)[None],
            sensitivity=self.score_sensitivity,
            epsilon=self.epsilon,
            monotone=True,
            rng=rng,
        )
        mechanism = self.with_count(self.candidates[int(chosen[0])])
        release = mechanism(data, rng)
        return replace(release, ledger=(receipt, *release.ledger))

    @classmethod
    def example(cls, budget: DP) -> Self:
        """SRA with one record of each user, or three; half of ε for the choice."""
        half = budget.epsilon / 2
        return cls(SRA(DP(half), 1), (1, 3), half)
