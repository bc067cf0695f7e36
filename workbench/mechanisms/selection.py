"""Mechanisms that release values from an unknown set (partition selection): by optimal coins, or by noisy
weights.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from workbench.data import UnlistedValues
from workbench.estimates import SelectedValues
from workbench.estimates.release import Release
from workbench.mechanisms.protocol import (
    Mechanism,
    add_noise,
    amount,
    budget_field,
    part_of,
    private_bound,
    split_epsilon,
)
from workbench.noise.selection import heavy_values, select_values, weight_of
from workbench.privacy import DP, ZCDP, Receipt
from workbench.value import parameter, sealed, value


def counts_field() -> Any:
    """Return the field `counts`, the share of the budget that pays for noisy counts of the selected values."""

    def wrong(x: Any) -> str | None:
        good = isinstance(x, int | float) and 0 <= x < 1
        return None if good else "need a number >= 0 and < 1"

    return parameter(
        0.5,
        check=wrong,
        doc="share of the budget for noisy counts of the selected values (0 releases values without counts)",
    )


class ValueSelection(Mechanism):
    """Base of mechanisms that select values, and release them with noisy counts."""

    takes: type = UnlistedValues  # type: ignore[misc]
    fixed_price = True
    converges = False  # a value that one unit could have alone stays out, at any ε
    counts: float

    def __call__(self, data: UnlistedValues, rng: np.random.Generator | None = None) -> Release:
        """Select values, then add noise to the counts of those that were selected."""
        bound = private_bound(data)
        share = Fraction(self.counts)
        for_counts, rest = split_epsilon(amount(self.budget), [share, 1 - share])
        labels, receipt = self._select(data, rest, rng)
        ledger = [receipt]
        noisy, variance = np.zeros(0, np.int64), None
        if self.counts:
            places = np.searchsorted(data.labels, labels)
            noisy, variance, receipt = add_noise(
                data.counts[places],
                part_of(self.budget, for_counts),
                l1=bound.l1,
                linf=bound.linf,
                l2_squared=bound.l2_squared,
                rng=rng,
            )
            ledger.append(receipt)
        estimate = SelectedValues(data.attribute, tuple(labels), sealed(noisy), variance)
        return Release(estimate, tuple(ledger), self, bound)

    def _select(
        self, data: UnlistedValues, price: float, rng: np.random.Generator | None
    ) -> tuple[np.ndarray, Receipt]:
        """Return the selected labels, for that ε or ρ and the δ of the budget."""
        raise NotImplementedError


@value
class GeometricSelection(ValueSelection):
    """Release unlisted values that enough users have.

    The probability that a value is released depends on how many users have it. It is the largest
    probability that (ε, δ)-DP allows.

    Guarantee  (ε, δ)-DP per user. δ and ε·(1 − `counts`) pay for the choice of values, and ε·`counts` pays
               for the noise on their counts.
    Assumes    nothing about the users, because the reader of the table keeps at most `l1` random values of
               each. Without a user column, each row is a unit with one value.
    Source     Desfontaines, Voss, Gipson & Mandayam, PoPETs 2022, Theorem 1 (the optimal probability of each
               number of users).
    Differs    If a user may have m values, each value gets ε/m and δ/m. The coins are exact. The
               counts have a separate share of the budget.
    Cost       time and memory O(rows).

    Proof. With s = ε/m and D = δ/m, a value of n users is released with probability π(n), where π(0) = 0
    and π(n) = min{e^s·π(n−1) + D, 1 − e^−s·(1 − π(n−1) − D), 1}. The first term is the largest probability
    of release that (s, D)-DP allows after one more user. The second term follows in the same way from the
    probability that the value is not released. Because π is non-decreasing, both conditions also hold when
    a user is removed. Coins of different values are independent. A user changes the numbers of users of at
    most m values, by one each, and basic composition adds m times s and D. Given the released values, which
    are public, a user changes their counts by at most m in total.
    """

    budget: DP = budget_field(delta="some", refused="its coins are proven for an epsilon")
    counts: float = counts_field()
    cite = "desfontaines2022"
    title = "geometric selection"

    def _select(
        self, data: UnlistedValues, price: float, rng: np.random.Generator | None
    ) -> tuple[np.ndarray, Receipt]:
        return select_values(
            data.labels,
            data.counts,
            per_unit=data.values_per_user,
            epsilon=price,
            delta=self.budget.delta,
            rng=rng,
        )


@value
class WeightedSelection(ValueSelection):
    """Release unlisted values with large noisy weights.

    A user with t values adds 1/√t to the weight of each. If users have many values, this releases more
    values than `GeometricSelection`.

    Guarantee  (ε, δ)-DP per user, or δ-approximate ρ-zCDP. The share `counts` of the budget pays for the
               counts, and the rest for the choice of values. With a budget in ε, half of δ covers the
               Gaussian noise of the choice, and half covers values that only one user has.
    Assumes    nothing about the users, as in GeometricSelection. A user may have at most 2^20 values.
    Source     Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, ICML 2020, the weighted Gaussian algorithm.
    Differs    Noise is a discrete Gaussian on weights that are rounded down to multiples of 1/1024. Its ρ
               is chosen to imply (ε, δ/2)-DP. This σ is larger than the paper's, for example by 8 % at ε =
               1 and δ = 10⁻⁵. The counts have a separate share of the budget.
    Cost       time and memory O(rows + largest number of values per user).

    Proof. A user with t values changes t weights by w = ⌊1024/√t⌋ each, and t·w² <= 1024². Gaussian noise
    hides this change for values that other users have as well. At least one of the values that only this
    user has is released with probability at most 1 − (1 − Pr[w + X >= T])^t. The threshold T keeps this
    below δ for every t that the bound allows. If none of them is released, both releases select from the
    same values. Given the released values, a user changes their counts by at most m in total.
    """

    budget: DP | ZCDP = budget_field(delta="some", zcdp=True)
    counts: float = counts_field()
    cite = "gopi2020"
    title = "weighted selection"

    def _select(
        self, data: UnlistedValues, price: float, rng: np.random.Generator | None
    ) -> tuple[np.ndarray, Receipt]:
        most = data.values_per_user
        used = int(data.values_of_owner.max(initial=1))
        steps = np.array([0, *map(weight_of, range(1, used + 1))])
        weights = np.bincount(data.values, steps[data.values_of_owner], len(data))
        kind = "rho" if isinstance(self.budget, ZCDP) else "epsilon"
        return heavy_values(
            data.labels,
            weights.astype(np.int64),
            per_unit=most,
            **{kind: price},
            delta=self.budget.delta,
            rng=rng,
        )
