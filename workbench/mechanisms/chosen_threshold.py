"""The threshold of a filter, chosen from stated candidates by the data, privately.

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
public, and is rounded to a whole number; candidates are whole, so that scores are whole and exact. The
exponential mechanism with weights exp(ε·score/(2·l1)) is ε-DP, and what it chooses is public: adaptive
composition adds the mechanism's own ε.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.arrays import Int
from workbench.enclosures import round_up
from workbench.estimates import Law
from workbench.mechanism import Mechanism, Release, parameter, sensitivity, value
from workbench.mechanisms.high_pass_filter import HighPassFilter
from workbench.privacy import DP
from workbench.table import SparseTable

_LARGEST = 2**50


def _check_mechanism(mechanism: Any) -> str | None:
    good = isinstance(mechanism, HighPassFilter) and mechanism.theta is not None
    good = good and mechanism.transform is None and isinstance(mechanism.budget, DP)
    return (
        None if good else "need a HighPassFilter with theta and an epsilon, without a transform"
    )


def _check_candidates(candidates: Any) -> str | None:
    good = isinstance(candidates, tuple) and 1 < len(set(candidates)) == len(candidates)
    good = good and all(type(theta) is int and 1 <= theta <= _LARGEST for theta in candidates)
    return None if good else "need a tuple of two or more different whole numbers >= 1"


@value
class ChosenThreshold(Mechanism):
    """Choose θ of a filter among `candidates`, then release with it.

    `mechanism` says all else, its own budget too; its theta is not used.
    """

    mechanism: Any = parameter(check=_check_mechanism, doc="what is released")
    candidates: tuple[Any, ...] = parameter(
        check=_check_candidates, unit="counts", doc="cut-offs θ"
    )
    epsilon: float = parameter(low=0, strict=True, doc="of the choice")
    takes = SparseTable
    cite = "mcsherry2007"
    title = "chosen threshold"
    chosen_field = "theta"

    @property
    def budget(self) -> DP:
        """Of the choice and the release together; not less than their exact sum."""
        epsilon = round_up(Fraction(self.epsilon) + Fraction(self.mechanism.budget.epsilon))
        return DP(epsilon, self.mechanism.budget.delta)

    def noise_that_passes(self, theta: int, cells: int, l1: float) -> int:
        """m·E(|X|; |X| >= θ): what an empty table would release, in counts, on one side or two."""
        law = Law("geometric", self.mechanism.budget.epsilon / l1)
        one_side = law.empty_cell(theta, sides=1).mean
        return min(round(self.mechanism.sides * cells * one_side), 2**60)

    def scores(self, table: SparseTable) -> Int[np.ndarray, " candidates"]:
        """The score of each candidate: less what it loses, and less the noise that it lets pass."""
        l1 = sensitivity(table)
        return np.array(
            [
                -int(np.maximum(0, np.minimum(table.counts, 2 * theta - table.counts)).sum())
                - self.noise_that_passes(theta, table.domain.size, l1)
                for theta in self.candidates
            ]
        )

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Choose, and release."""
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
        """A cut of two noise scales, or eight; half of ε for the choice."""
        half = budget.epsilon / 2
        scale = max(1, round(1 / half))
        return cls(HighPassFilter(DP(half), scale), (2 * scale, 8 * scale), half)
