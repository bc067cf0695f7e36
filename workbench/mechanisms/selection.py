"""Mechanisms that release values that nobody has listed in advance, for example search words (partition
selection). The first mechanism chooses the values by random draws. The second mechanism uses noisy weights.
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
    """Return the field `counts`, the share of the budget that pays for noisy counts of the selected values.
    With a share of 0, the values are released without counts.
    """

    def wrong(x: Any) -> str | None:
        good = isinstance(x, int | float) and 0 <= x < 1
        return None if good else "need a number >= 0 and < 1"

    return parameter(
        0.5,
        check=wrong,
        doc="share of the budget for noisy counts of the selected values (0 releases values without counts)",
    )


class ValueSelection(Mechanism):
    """Base of mechanisms that select some of the values in the data. The mechanisms release these values with
    noisy counts.
    """

    takes: type = UnlistedValues  # type: ignore[misc]
    fixed_price = True
    converges = False  # a value that one unit could have alone stays out, at any ε
    counts: float

    def __call__(self, data: UnlistedValues, rng: np.random.Generator | None = None) -> Release:
        """Select values, then release them with noisy counts. If `counts` is 0, release the values without
        counts.
        """
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
        """Return the selected values, and the receipt that records the cost of the choice. The choice costs
        `price`, an ε or a ρ, and the δ of the budget.
        """
        raise NotImplementedError


@value
class GeometricSelection(ValueSelection):
    """Release unlisted values that enough users have.

    The values, for example search words, need not be known in advance. If more users have a value, the
    mechanism releases the value with a larger probability. For each number of users, the mechanism uses the
    largest probability that (ε, δ)-DP allows.

    Guarantee  The release is (ε, δ)-DP for each user. The share `counts` of ε pays for the noise on the counts
               of the released values. The rest of ε, together with the whole δ, pays for the choice of the
               values.
    Assumes    Users may have any number of values. When the workbench reads the data, it keeps at most l1
               random values of each user. The bound states l1. If the data have no column of users, each row
               counts as one user with one value.
    Source     Desfontaines, Voss, Gipson & Mandayam, PoPETs 2022. Theorem 1 of their paper gives the largest
               probability with which a value may be released, for each number of users who have this value.
    Differs    Each user may have up to m values. The decision about each value therefore gets 1/m of the ε, and
               1/m of the δ, that pay for the choice of values. A random draw decides whether a value is
               released. The draw has exactly the stated probability. We also release counts, for which a
               separate share of the budget pays.
    Cost       Time and memory are O(rows).

    Proof. Let ε be the part that pays for the choice, and let s = ε/m and D = δ/m. A value that n users have is
    released with probability π(n). Here π(0) = 0 and π(n) = min{e^s·π(n−1) + D, 1 − e^−s·(1 − π(n−1) − D), 1}.
    (s, D)-DP sets two limits on how much π may grow if one more user has the value. The first term is the
    largest probability of release that (s, D)-DP allows. The second term follows in the same way from the limit
    for the probability 1 − π(n) that the value is not released. Because π is non-decreasing, both limits are
    also respected if a user is removed. The random draws for different values are independent. One user changes
    the number of users of at most m values, by one each. Each of these values costs (s, D), so the m values
    together cost (ε, δ) by basic composition. The released values are then public. One user changes the counts
    of these values by at most m in total.
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

    The values, for example search words, need not be known in advance. A user with t values adds 1/√t to the
    weight of each of these values. The mechanism adds noise to the weights, and releases the values whose noisy
    weight reaches a threshold. If users have many values, this mechanism releases more values than
    `GeometricSelection`.

    Guarantee  The release is (ε, δ)-DP for each user. With a budget in ρ and δ, the release is ρ-zCDP except
               with probability δ (δ-approximate ρ-zCDP). The share `counts` of ε or ρ pays for the noise on the
               counts of the released values. The rest pays for the choice of the values. With a budget in ε,
               one half of δ pays for the Gaussian noise on the weights. The other half covers the risk that the
               release contains a value that only one user has.
    Assumes    Users may have any number of values. When the workbench reads the data, it keeps at most l1
               random values of each user. The bound states l1, which is at most 2^20.
    Source     Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, ICML 2020, who call it the weighted
               Gaussian algorithm.
    Differs    We round weights down to multiples of 1/1024, and add discrete Gaussian noise. With a budget in
               ε, the noise on the weights gets the largest ρ that implies (ε, δ/2)-DP. Here ε is the part that
               pays for the choice. The paper computes its noise directly from ε and δ/2. The standard deviation
               of our noise is larger, for example by 8 % at ε = 1 and δ = 10⁻⁵. We also release counts, for
               which a separate share of the budget pays.
    Cost       Time and memory are O(rows + largest number of values per user).

    Proof. Count weights in steps of 1/1024. A user with t values changes t weights by w = ⌊1024/√t⌋ steps each.
    The squared l2 norm of this change is t·w² <= 1024². The Gaussian noise X hides the change for values that
    other users also have. Now consider the values that only this user has, and let T be the threshold. The
    probability that at least one of these values is released is at most 1 − (1 − Pr[w + X >= T])^t. One half of
    δ (with a budget in ρ, the whole δ) covers this risk. We choose T so large that the risk is covered for
    every t that the bound allows. If none of these values is released, the mechanism selects from the same
    values with and without the user. The released values are then public. Let m be the largest number of values
    per user. One user changes the counts of the released values by at most m in total.
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
