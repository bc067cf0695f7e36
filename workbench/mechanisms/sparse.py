"""Mechanisms that release mostly non-empty cells: the item blanket, Gaussian sparse histograms, and the
Misra–Gries sketch.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import Bound, SparseTable
from workbench.estimates import Summary
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    budget_field,
    private_bound,
    split_epsilon,
)
from workbench.privacy import DP
from workbench.value import not_allowed, parameter, value

# Item blanket


def nonempty_field() -> Any:
    """Return the field `nonempty`. The guarantee holds only for tables with at most this number of non-empty
    cells.
    """
    doc = "public upper bound on the number of non-empty cells (an error is raised if there are more)"
    return parameter(low=1, high=2**53, integer=True, unit="cells", doc=doc)


def refuse_more_cells(mechanism: Any, table: SparseTable) -> None:
    """Raise a ValueError if the table has more than `mechanism.nonempty` non-empty cells. The message does
    not reveal their number.
    """
    if len(table) > mechanism.nonempty:
        why = "the table has more non-empty cells. Need a larger bound, from public knowledge"
        raise not_allowed(mechanism, "nonempty", why)


@value
class ItemBlanket(Mechanism):
    """Release non-empty cells mixed with random cells.

    The mechanism chooses the non-empty cells whose noisy count reaches a threshold. Then it adds random other
    cells until there are `size` cells, so that nobody can see which cells are not empty. Finally, it adds new
    noise to the counts of all these cells.

    Guarantee  The release is ε-DP for each unit, for tables with at most `nonempty` non-empty cells. The share
               `choice_share` of ε pays for the choice of cells. The rest of ε pays for the noise on the counts.
               If one unit is replaced by another, the guarantee is 2ε-DP.
    Assumes    No protected unit changes the counts by more than the table's bound allows. It is public
               knowledge that the table cannot have more than `nonempty` non-empty cells. If the table has more,
               the mechanism raises an error. Because others can notice this error, do not compute `nonempty`
               from the table.
    Source     This is our own mechanism, modelled on the private item blanket of Kerschbaum, Lee & Wu, 2025.
    Differs    Kerschbaum, Lee & Wu have other rules for the number of cells, the threshold, the division of ε
               and the draw of cells. We proved the guarantee of our version (see docs/proofs.toml). We also
               checked the guarantee on small tables by enumerating all outcomes.
    Cost       Time and memory are O(non-empty cells + released cells). Neither time nor memory depends on the
               number of possible cells.
    """

    budget: DP = budget_field(
        refused="the random cells hide a cell by a ratio of probabilities"
    )
    nonempty: int = nonempty_field()
    size: int = parameter(
        low=1,
        high=noise.MAX_RELEASED_CELLS,
        integer=True,
        unit="cells",
        doc="number of released cells, at least `nonempty` (more cells allow a lower threshold)",
    )
    choice_share: float = parameter(
        0.5, 0.01, 0.99, doc="share of ε for the choice of cells (the rest pays for counts)"
    )
    cite = "kerschbaum2025"
    title = "item blanket"
    audited = audited_at(0, nonempty=2, size=2)
    series = "item blanket"
    fixed_price = True
    converges = False  # a cell of one count is never sure to be released, at any ε

    def __post_init__(self) -> None:
        if self.size < self.nonempty:
            need = f"need at least nonempty = {self.nonempty}, so that all of them fit"
            raise not_allowed(self, "size", need)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release `size` cells with noisy counts. If the domain has fewer cells, release all cells."""
        bound = private_bound(table)
        refuse_more_cells(self, table)
        cells = table.domain.size
        share = Fraction(self.choice_share)
        choice, rest = split_epsilon(self.budget.epsilon, [share, 1 - share])
        keys, chosen = noise.item_blanket(
            table.keys,
            table.counts,
            cells,
            nonempty=min(self.nonempty, cells),
            size=min(self.size, cells),
            l1=bound.l1,
            epsilon=choice,
            rng=rng,
        )
        counts = np.zeros(len(keys), np.int64)
        _, where, among = np.intersect1d(
            keys, table.keys, assume_unique=True, return_indices=True
        )
        counts[where] = table.counts[among]
        noisy, measured = noise.geometric(
            counts, l1=bound.l1, linf=bound.linf, epsilon=rest, rng=rng
        )
        # without a law: an absent cell had no noise, and is absent by the threshold or by chance
        summary = Summary(table.domain, keys, noisy, None)
        return Release(summary, (chosen, measured), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It releases two thousand cells. The table may have at
        most a thousand non-empty cells.
        """
        return cls(budget, nonempty=1000, size=2000)


# Gaussian sparse histogram


@value
class GaussianSparseHistogram(Mechanism):
    """Release large counts with Gaussian noise.

    Guarantee  The release is (ε, δ)-DP for each unit. The mechanism never releases an empty cell. It releases a
               non-empty cell only if the noisy count of the cell reaches a threshold. If one unit is replaced
               by another, the guarantee is (2ε, (1 + e^ε)·δ)-DP.
    Assumes    One protected unit changes at most l0 counts, and each of these counts by at most linf. The
               table's bound states l0 and linf.
    Source     Wilkins, Kifer, Zhang & Karrer, 2024, who compute the privacy loss of the Gaussian sparse
               histogram exactly.
    Differs    Our noise is discrete, and we computed δ for this noise (the proof is in
               `noise.gaussian_sparse`). We choose the noise before the threshold. For the choice of the noise,
               we assume that the same cells are released with and without one unit. We take the smallest noise
               that satisfies (ε, δ)-DP under this assumption. Then we take the smallest threshold with which
               the mechanism satisfies (ε, δ)-DP without the assumption. The bound's l1 is the largest total
               change of the counts. We use l1 only to limit how many counts a unit changes. δ must be above
               10⁻²⁰⁰.
    Cost       Time and memory are O(non-empty cells), plus O(l0) to choose the noise. Neither time nor memory
               depends on the number of possible cells.
    """

    budget: DP = budget_field(
        delta="some", refused="its δ is computed for an ε, so use StabilityHistogram for a rho"
    )
    cite = "wilkins2024"
    title = "Gaussian sparse histogram"
    audited = audited_at(2, 0)
    series = "Gaussian sparse histogram"
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> int:
        """Return the threshold T, as a number of records, for tables with the given bound. The mechanism
        releases a non-empty cell if its noisy count is at least T.
        """
        return self._noise(bound).threshold

    def deviation(self, bound: Bound) -> float:
        """Return the standard deviation σ of the noise, as a number of records, for tables with the given
        bound.
        """
        return self._noise(bound).deviation

    def _noise(self, bound: Bound) -> noise.SparseNoise:
        return noise.sparse_noise(bound, float(self.budget.epsilon), float(self.budget.delta))

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the non-empty cells whose noisy count reaches the threshold."""
        bound = private_bound(table)
        keys, noisy, threshold, receipt = noise.gaussian_sparse_histogram(
            table.keys,
            table.counts,
            bound,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rng=rng,
        )
        # without a law: what holds for noise on every cell does not hold here
        summary = Summary(table.domain, keys, noisy, None, threshold, sides=1)
        return Release(summary, (receipt,), self, bound)


# Misra–Gries


@value
class MisraGries(Mechanism):
    """Release noisy counters of a Misra–Gries sketch.

    A sketch is a small summary of many records. This sketch reads the records one by one, and keeps only `size`
    counters, which count the most frequent cells. If there are n records in total, the counter of a cell is at
    most n/(size + 1) below the cell's true count. The mechanism adds noise to the counters, and releases the
    counters that reach a threshold.

    Guarantee  The release is (ε, δ)-DP for each unit. The noise does not grow with `size`. If one unit is
               replaced by another, the guarantee is (2ε, (1 + e^ε)·δ)-DP.
    Assumes    No protected unit changes the counts by more than the table's bound allows. The proof needs a
               fixed order of the records, so the sketch reads the records in the order of their cells. If one
               record is removed from the table, the sketch then reads the same sequence without this record.
    Source     Lebeda & Tětek, PODS 2023, with the threshold 1 + 2·ln(3/δ)/ε from their paper.
    Differs    Our noise is geometric, and we computed δ for this noise (see `noise.misra_gries`). We round the
               threshold up to an integer. With `rule` = "derived", the threshold is the smallest integer for
               which we could prove the guarantee at the given δ. If a unit has l1 records, our proof removes
               these records one by one. If fewer than `size` cells have a counter, the unused counters get keys
               outside the domain.
    Cost       Time is O(non-empty cells · log(size)), and memory is O(size) in addition to the table.
               Neither time nor memory depends on the number of possible cells.
    """

    budget: DP = budget_field(delta="some", refused="one draw is shared by all counters")
    size: int = parameter(
        low=1, high=2**24, integer=True, unit="counters", doc="number of counters of the sketch"
    )
    rule: str = parameter(
        "published",
        choices=("published", "derived"),
        doc="threshold: that of the paper (published), or a smaller one of ours (derived)",
    )
    cite = "lebeda2023"
    title = "private Misra–Gries"
    audited = audited_at(0, size=2, rule="derived")
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures, for example "Misra–Gries"."""
        derived = ", derived threshold" if self.rule == "derived" else ""
        return f"Misra–Gries{derived}"

    def threshold(self, bound: Bound) -> int:
        """Return the threshold τ, as a number of records, for tables with the given bound. The mechanism
        releases a cell if its noisy counter is at least τ.
        """
        budget = self.budget
        return noise.misra_gries_threshold(
            bound.l1, float(budget.epsilon), float(budget.delta), self.rule
        )[0]

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells whose noisy counter reaches the threshold."""
        bound = private_bound(table)
        keys, noisy, threshold, receipt = noise.misra_gries(
            table.keys,
            table.counts,
            self.size,
            l1=bound.l1,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rule=self.rule,
            rng=rng,
        )
        # without a law: a counter is below its cell by an amount that is not released
        summary = Summary(table.domain, keys, noisy, None, threshold, sides=1)
        return Release(summary, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It has a hundred counters."""
        return cls(budget, size=100)


# Correlated Gaussian sparse histogram


@value
class CorrelatedGaussianSparseHistogram(Mechanism):
    """Release large counts with correlated noise.

    The noise of a cell is a sum of two Gaussian numbers. The first number is the same for all cells. The second
    number is drawn for this cell alone. Correlated noise is useful if one unit may change every non-empty cell.
    Independent noise would then need about twice the standard deviation.

    Guarantee  The release is (ε, δ)-DP for each unit, for tables with at most `nonempty` non-empty cells. If
               one unit is replaced by another, the guarantee is (2ε, (1 + e^ε)·δ)-DP.
    Assumes    One protected unit changes each count by at most linf. The table's bound states linf. It is
               public knowledge that the table cannot have more than `nonempty` non-empty cells. If the table
               has more, the mechanism raises an error.
    Source     Lebeda & Retschmeier, FORC 2025, adapted to a public bound on the number of non-empty cells.
    Differs    We proved the guarantee ourselves (see `noise.correlated`). Half of δ pays for the noise. The
               other half covers the risk that the release contains a cell in which only one unit has records.
               We draw the noise with floating-point numbers, which the proof does not cover exactly. For this
               reason, releases are marked as idealised and cannot be saved. We round noisy counts to integers.
    Cost       Time and memory are O(non-empty cells). Neither time nor memory depends on the number of possible
               cells.
    """

    budget: DP = budget_field(delta="some", refused="half of its delta pays for the noise")
    nonempty: int = nonempty_field()
    cite = "lebeda2025"
    title = "correlated Gaussian sparse histogram"
    audited = audited_at(0, 2, nonempty=2)
    series = "correlated Gaussian sparse histogram"
    fixed_price = True
    idealised = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> float:
        """Return the threshold τ, as a number of records, for tables with the given bound. The mechanism
        releases a non-empty cell if its noisy count is at least τ.
        """
        budget = self.budget
        return noise.correlated_noise(
            self.nonempty, float(bound.linf), float(budget.epsilon), float(budget.delta)
        ).threshold

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the non-empty cells whose noisy count reaches the threshold."""
        bound = private_bound(table)
        refuse_more_cells(self, table)
        keys, noisy, threshold, receipt = noise.correlated_gaussian(
            table.keys,
            table.counts,
            bound,
            nonempty=self.nonempty,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rng=rng,
        )
        # without a law: the errors of cells are not independent
        summary = Summary(table.domain, keys, noisy, None, threshold, sides=1)
        return Release(summary, (receipt,), self, bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It accepts tables with at most a thousand non-empty
        cells.
        """
        return cls(budget, nonempty=1000)
