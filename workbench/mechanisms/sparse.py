"""Alternatives to sparse summaries: item blanket, Gaussian sparse histograms and Misra–Gries sketch."""

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
    """Return the field `nonempty`, the largest number of non-empty cells for which the guarantee holds."""
    doc = (
        "public bound on the number of non-empty cells, for every table that the data could be"
    )
    return parameter(low=1, high=2**53, integer=True, unit="cells", doc=doc)


def refuse_more_cells(mechanism: Any, table: SparseTable) -> None:
    """Raise a ValueError for a table with more non-empty cells than the bound. The message does not reveal
    how many.
    """
    if len(table) > mechanism.nonempty:
        why = (
            "the table has more non-empty cells; need a bound that holds, from public knowledge"
        )
        raise not_allowed(mechanism, "nonempty", why)


@value
class ItemBlanket(Mechanism):
    """Release non-empty cells, hidden among random ones.

    The mechanism chooses non-empty cells whose noisy count reaches a threshold. It adds random cells until
    there are `size` cells. Then it adds new noise to the counts of all of them.

    Guarantee  ε-DP per unit, for tables with at most `nonempty` non-empty cells. One share of ε pays for
               the choice of cells, the rest for their counts. If a unit is replaced, the guarantee is
               2ε-DP.
    Assumes    the table's bound, and that no possible table has more than `nonempty` non-empty cells. A
               table that has more raises an error, which anyone can notice, so the bound must come from
               public knowledge.
    Source     Our own mechanism, after the private item blanket of Kerschbaum, Lee & Wu, 2025.
    Differs    We do not use their target length, threshold, budget split or sampler. We proved the
               guarantee of our version (see docs/proofs.toml) and checked it by enumeration.
    Cost       time and memory O(non-empty cells + released cells), for a domain of any size.
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
        doc="number of cells to release, at least `nonempty` (more cells allow a lower threshold)",
    )
    choice_share: float = parameter(
        0.5, 0.01, 0.99, doc="share of ε for the choice of cells (the rest is for their counts)"
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
        """Release `size` cells, or the whole domain if it is smaller."""
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
        """Return an example of the mechanism that releases two thousand cells. At most a thousand cells may be
        non-empty.
        """
        return cls(budget, nonempty=1000, size=2000)


# Gaussian sparse histogram


@value
class GaussianSparseHistogram(Mechanism):
    """Release large non-empty cells with Gaussian noise.

    Guarantee  (ε, δ)-DP per unit. An empty cell is never released. If a unit is replaced, the guarantee is
               (2ε, (1 + e^ε)·δ)-DP.
    Assumes    the table's bound. A unit changes at most l0 counts, each by at most linf.
    Source     Wilkins, Kifer, Zhang & Karrer, 2024, the exact privacy analysis of the Gaussian sparse
               histogram mechanism.
    Differs    Noise is discrete, and δ is recomputed for it (`noise.gaussian_sparse` has the proof). We
               choose the noise first. It is the smallest for which δ would suffice if cells could not
               appear or disappear. Then we choose the smallest threshold. The l1 of the bound only limits
               how many counts a unit changes. δ must be above 10⁻²⁰⁰.
    Cost       time and memory O(non-empty cells), for a domain of any size, and O(l0) to choose the noise.
    """

    budget: DP = budget_field(
        delta="some", refused="its exact δ is about one ε (for a rho take StabilityHistogram)"
    )
    cite = "wilkins2024"
    title = "Gaussian sparse histogram"
    audited = audited_at(2, 0)
    series = "Gaussian sparse histogram"
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    def threshold(self, bound: Bound) -> int:
        """Return T, the smallest noisy count that is released."""
        return self._noise(bound).threshold

    def deviation(self, bound: Bound) -> float:
        """Return σ, the standard deviation of the noise in counts."""
        return self._noise(bound).deviation

    def _noise(self, bound: Bound) -> noise.SparseNoise:
        return noise.sparse_noise(bound, float(self.budget.epsilon), float(self.budget.delta))

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that reach the threshold."""
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

    The sketch has `size` counters. For n records in total, it undercounts a cell by at most n/(size + 1).

    Guarantee  (ε, δ)-DP per unit. The noise does not grow with `size`. If a unit is replaced, the guarantee
               is (2ε, (1 + e^ε)·δ)-DP.
    Assumes    the table's bound. The sketch reads the records in the order of their cells. This order
               depends on the table alone. If a table has one record less, the sketch reads the same stream
               without one element.
    Source     Lebeda & Tětek, PODS 2023, with their threshold 1 + 2·ln(3/δ)/ε.
    Differs    Noise is geometric, and δ is recomputed for it (`noise.misra_gries`). The threshold is
               rounded up. `rule` = "derived" uses the smallest threshold that our own derivation allows for
               δ. If a unit has l1 records, the proof removes them one by one. Placeholder keys are outside
               the domain.
    Cost       time O(non-empty cells · log(size)), for a domain of any size, and memory O(size) in
               addition to the table.
    """

    budget: DP = budget_field(delta="some", refused="one draw is shared by all counters")
    size: int = parameter(
        low=1, high=2**24, integer=True, unit="counters", doc="number of counters of the sketch"
    )
    rule: str = parameter(
        "published",
        choices=("published", "derived"),
        doc="threshold of the paper, or the smaller one that we derived",
    )
    cite = "lebeda2023"
    title = "private Misra–Gries"
    audited = audited_at(0, size=2, rule="derived")
    fixed_price = True
    converges = False  # a cell that one unit could fill stays out, at any ε

    @property
    def series(self) -> str:
        """Name of the mechanism in the legends of figures."""
        derived = ", derived threshold" if self.rule == "derived" else ""
        return f"Misra–Gries{derived}"

    def threshold(self, bound: Bound) -> int:
        """Return τ, the smallest noisy counter that is released."""
        budget = self.budget
        return noise.misra_gries_threshold(
            bound.l1, float(budget.epsilon), float(budget.delta), self.rule
        )[0]

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the counters that reach the threshold."""
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
        """Return an example of the mechanism with a hundred counters."""
        return cls(budget, size=100)


# Correlated Gaussian sparse histogram


@value
class CorrelatedGaussianSparseHistogram(Mechanism):
    """Release non-empty cells with large counts, with Gaussian noise that has a shared part.

    One unit may change every non-empty cell. Independent noise would then need about twice the standard
    deviation.

    Guarantee  (ε, δ)-DP per unit, for tables with at most `nonempty` non-empty cells. If a unit is
               replaced, the guarantee is (2ε, (1 + e^ε)·δ)-DP.
    Assumes    the linf of the table's bound, and that no possible table has more than `nonempty` non-empty
               cells. A table that has more raises an error.
    Source     Lebeda & Retschmeier, FORC 2025, adapted to a public bound on the number of non-empty cells.
    Differs    Half of δ pays for the noise, and half for cells that only one unit fills, by our own proof
               (`noise.correlated`). Noise is drawn in floats, so releases are marked as idealised and
               cannot be saved. Values are rounded to integers.
    Cost       time and memory O(non-empty cells), for a domain of any size.
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
        """Return τ, the smallest noisy count that is released."""
        budget = self.budget
        return noise.correlated_noise(
            self.nonempty, float(bound.linf), float(budget.epsilon), float(budget.delta)
        ).threshold

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the cells that reach the threshold."""
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
        """Return an example of the mechanism with at most a thousand non-empty cells."""
        return cls(budget, nonempty=1000)
