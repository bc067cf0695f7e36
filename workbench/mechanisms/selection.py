"""Mechanisms that release values which nobody has listed: optimal coins, and weights with noise."""

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
    approximate_budget,
    part_of,
    private_bound,
    split_epsilon,
)
from workbench.noise.selection import heavy_values, select_values, weight_of
from workbench.privacy import DP, ZCDP, Receipt
from workbench.value import parameter, sealed, value


def counts_field() -> Any:
    """Return the field with the share of the budget that buys noisy counts of the selected values."""

    def wrong(x: Any) -> str | None:
        good = isinstance(x, int | float) and 0 <= x < 1
        return None if good else "need a number >= 0 and < 1"

    return parameter(
        0.5,
        check=wrong,
        doc="share of the budget for noisy counts of the selected values; 0 releases values only",
    )


class ValueSelection(Mechanism):
    """Base of mechanisms that release values, and their counts with independent noise."""

    takes: type = UnlistedValues  # type: ignore[misc]
    spends_delta = True
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

    Each has the largest probability that privacy allows for its number of users.

    Guarantee  (ε, δ)-DP per user. δ and ε·(1 − `counts`) pay for the choice of values, ε·`counts` for noise on
               their counts.
    Assumes    nothing about the users: the reader truncates each to `l1` values at random. Without a column of
               users, each row is a unit with one value.
    Source     Desfontaines, Voss, Gipson & Mandayam, PoPETs 2022, Theorem 1 (the optimal probability of each
               number of users).
    Differs    A user of several values gets ε/m and δ/m for each of m, by basic composition. The coins are
               exact. Counts have a budget of their own.
    Cost       time and memory O(rows).

    Proof. With s = ε/m and D = δ/m, a value of n users is released with probability π(n), where π(0) = 0 and
    π(n) = min{e^s·π(n−1) + D, 1 − e^−s·(1 − π(n−1) − D), 1}. The first term is what (s, D)-DP allows *released*
    to gain from one user more, and the second what it allows *not released* to lose. π never falls, so both
    hold the other way, too. Coins of different values are independent. A user moves at most m of them by one
    user each, and basic composition adds m times s and D. Given the released values, which are public, a user
    moves their counts by at most m in all.
    """

    budget: DP = approximate_budget(refused="its coins are proven for an epsilon")
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
    """Release unlisted values of large noisy weight.

    A user of t values adds 1/√t to the weight of each. Where users have many values, this is better than
    `GeometricSelection`.

    Guarantee  (ε, δ)-DP per user, or δ-approximate ρ-zCDP. The budget is shared with the counts as `counts`
               says. Of ε, the choice has a half of δ for its noise, and a half for values of one user alone.
    Assumes    nothing about the users, as GeometricSelection. A user has at most 2^20 values.
    Source     Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, ICML 2020, the weighted Gaussian algorithm.
    Differs    Noise is a discrete Gaussian on weights that are rounded down to 1/1024. Its ρ is within the
               (ε, δ/2), which takes a σ that is larger than the paper's, by 8 % at ε = 1 and δ = 10⁻⁵. Counts
               have a budget of their own.
    Cost       time and memory O(rows), and the bound's values per user.

    Proof. A user of t values moves t weights by w = ⌊1024/√t⌋ each, and t·w² <= 1024². Gaussian noise hides
    that on the values that somebody else has as well. Values of this user alone are released with probability
    at most 1 − (1 − Pr[w + X >= T])^t, which T keeps below δ for every t that the bound allows. If none of
    them is, both releases are of the same values. Given the released values, a user moves their counts by at
    most m in all.
    """

    budget: DP | ZCDP = approximate_budget(zcdp=True)
    counts: float = counts_field()
    cite = "gopi2020"
    title = "weighted selection"
    accepts_zcdp = True

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
