"""Dirichlet synthesis, which draws synthetic records from a Dirichlet-multinomial model of the table."""

from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from math import ceil, expm1, log, log1p, pi
from typing import NamedTuple, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import Summary
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    budget_field,
    private_bound,
    sensitivity,
)
from workbench.privacy import DP, REPLACE
from workbench.value import Float, not_allowed, parameter, value

# Beta binomial

_TERMS = 32  # of a tail, before the rest is bounded by a geometric series


def tail_bounds(
    cut: Float[np.ndarray, " n"],
    m: int,
    a: Float[np.ndarray, " n"] | float,
    b: Float[np.ndarray, " n"] | float,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return a lower and an upper bound on the tail probability Pr[z > cut], where z has the distribution
    BetaBinomial(m, a, b). The bounds hold up to rounding errors.

    The lower bound is the sum of the first terms of the tail. For later terms, the ratio of consecutive terms
    is (m−z)(a+z) / ((z+1)(b+m−z−1)). If b >= 1, this ratio stays below r = max(1, (a+z)/(z+1)) ·
    (m−z)/(b+m−z−1). The remaining terms therefore add up to at most r/(1−r) times the last term. The sum of
    both parts is the upper bound. If b < 1 or r >= 1, the upper bound is 1. For example, r >= 1 if the cut is
    below the mode.
    """
    z = np.minimum(np.floor(cut) + 1, m)
    last = np.exp(log_mass(z, m, a, b))
    lower = last
    for _ in range(_TERMS):
        left = np.maximum(m - z, 0)
        last = last * left / np.maximum(b + left - 1, b) * (a + z) / (z + 1)
        lower = lower + last
        z = z + 1
    left = np.maximum(m - z, 0)
    r = np.maximum(1, (a + z) / (z + 1)) * left / np.maximum(b + left - 1, b)
    converges = (r < 1) & ((b >= 1) | (left == 0))
    upper = np.where(converges, lower + last * r / np.where(converges, 1 - r, 1), 1)
    possible = cut < m
    return (
        np.where(possible, np.minimum(lower, 1), 0),
        np.where(possible, np.minimum(upper, 1), 0),
    )


def log_mass(
    z: Float[np.ndarray, "..."],
    m: int,
    a: Float[np.ndarray, "..."] | float,
    b: Float[np.ndarray, "..."] | float,
) -> Float[np.ndarray, " n"]:
    """Return ln Pr[z] of the distribution BetaBinomial(m, a, b). The usual formula adds nine values of ln Γ.
    These values can be as large as 1e16, so their rounding errors would be too large. This function avoids
    the large values.

    The function uses ln Γ(x) = x·ln x − x + s(x), where s(x) is small. The large parts x·ln(x/e) belong to
    the entries, the margins and the sum of the two-by-two table ((a, z), (b, m−z)). Together they are minus
    the G statistic for independence in this table, which can be computed accurately.
    """
    from scipy.special import xlog1py, xlogy

    n = a + b + m
    up = a + z
    down = b + (m - z)
    d = (z * b - (m - z) * a) / n

    def g(
        observed: Float[np.ndarray, "..."] | float,
        difference: Float[np.ndarray, "..."],
        expected: Float[np.ndarray, "..."],
    ) -> Float[np.ndarray, "..."]:
        """Return observed·ln(observed/expected) − difference, where observed = expected + difference."""
        far = xlogy(observed, observed / expected)
        near = xlog1py(observed, difference / expected)
        return np.where(difference < -expected / 2, far, near) - difference

    large = g(z, d, up * m / n) + g(a, -d, up * (a + b) / n)
    large = large + g(b, d, down * (a + b) / n) + g(m - z, -d, down * m / n)
    return (
        (_stirling_rest(up) - _stirling_rest(a) - _stirling_rest(z, 1))
        + (_stirling_rest(down) - _stirling_rest(b) - _stirling_rest(m - z, 1))
        - (_stirling_rest(n) - _stirling_rest(a + b) - _stirling_rest(m, 1))
        - large
    )


def _stirling_rest(
    x: Float[np.ndarray, "..."] | float, factorial: int = 0
) -> Float[np.ndarray, " n"]:
    """Return s(x) = ln Γ(x) − x·ln x + x, the small remainder of Stirling's formula. If `factorial` is True,
    ln x! replaces ln Γ(x). The relative error is below 1e-13.
    """
    from scipy.special import gammaln

    x = np.asarray(x, float)
    low = np.clip(x, 1 if factorial else 0, 1e3)
    high = np.maximum(x, 1e3)
    near = gammaln(low) - low * np.log(low) + low
    far = np.log(2 * pi / high) / 2 + 1 / (12 * high) - 1 / (360 * high**3)
    s = np.where(x < 1e3, near, far)
    return np.where(x == 0, 0, s + np.log(np.maximum(x, 1))) if factorial else s


# Dirichlet synthesis

_BLOCK_WIDTH = 1 / 512  # of a block's counts; below its inverse each count is its own


@value
class DirichletSynthesis(Mechanism):
    """Draw synthetic records from a Dirichlet posterior.

    The mechanism adds a prior weight α to the count of every cell. These sums are the parameters of a Dirichlet
    distribution, from which the mechanism draws cell probabilities p. Then the mechanism draws `records`
    synthetic records from p. The random draws protect the units, so the mechanism adds no noise.

    Guarantee  The release is (ε, δ)-DP if one record is replaced by another, in a table of exactly `total`
               records. By default, the release satisfies an even stronger, probabilistic definition of privacy:
               with probability at least 1 − δ, the privacy loss is at most ε. Consider the probability of the
               release for each of the two tables. The privacy loss is the logarithm of the ratio of these
               probabilities. If α >= records/(e^ε − 1), the guarantee is ε-DP with δ = 0. If the budget has δ =
               0, the mechanism chooses such an α.
    Assumes    Each unit has one record (a bound of l1 = 1). The number of records in the table is public, and
               you give it as `total`. If the table has another total, the mechanism raises an error, because
               α may be too small for a smaller table.
    Source     Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008. Cormode, Procopiuc, Srivastava &
               Tran compare their mechanisms with this mechanism (ICDT 2012, section 4.5).
    Differs    All cells have the same α. We choose the smallest α for which a numerical computation proves that
               the privacy loss exceeds ε with probability at most δ. Machanavajjhala et al. instead use a
               formula, which holds only for ε > ln 2. The random draws use floating-point numbers, which the
               proof does not cover exactly. For this reason, releases are marked as idealised. A failure is a
               privacy loss above ε. As in the paper of Machanavajjhala et al., δ bounds the sum of the failure
               probabilities of all cells. With `notion` = "approximate", the mechanism guarantees (ε, δ)-DP,
               but not the probabilistic definition. A smaller α is then sufficient.
    Cost       Time and memory are O(non-empty cells + records), plus about 0.1 s to choose α. Neither time
               nor memory depends on the number of possible cells or on `total`.
    """

    budget: DP = budget_field(delta="any")
    records: int = parameter(
        low=1,
        high=2**28,
        integer=True,
        unit="records",
        doc="number of synthetic records to draw",
    )
    total: int = parameter(
        low=0,
        high=2**53,
        integer=True,
        unit="records",
        doc="public number of records in the table",
    )
    alpha: float | None = parameter(
        None,
        0,
        2**64,
        strict=True,
        unit="records",
        doc="prior weight α of a cell (by default the smallest value with a proven guarantee)",
    )
    notion: str = parameter(
        "probabilistic",
        choices=("probabilistic", "approximate"),
        doc="definition of privacy with a δ: probabilistic or approximate",
    )
    cite = "machanavajjhala2008"
    title = "Dirichlet synthesis"
    audited = audited_at(0, budget=lambda budget: DP(budget.epsilon), records=1, total=2)
    series = "Dirichlet synthesis"
    converges = False  # the error of sampling `records` records stays, at any ε
    idealised = True
    relation = REPLACE

    def __post_init__(self) -> None:
        if not self.pure_alpha <= 2**64:
            why = f"so small an epsilon needs a prior of {self.pure_alpha:.3g} records a cell; "
            raise not_allowed(self, "budget", f"{why}at most 2^64 are possible")

    @property
    def pure_alpha(self) -> float:
        """Smallest prior weight α for which no release has a privacy loss above ε. This weight is
        records/(e^ε − 1), where `records` is the number of synthetic records.

        This α is sufficient for the following reason. Suppose that a record moves from cell j to cell i. Let
        x_i and x_j be the counts of these cells before the move. Consider a release with z_i synthetic records
        in cell i and z_j in cell j. The move multiplies the probability of this release by (1 + z_i/(α+x_i)) /
        (1 + z_j/(α+x_j−1)). This factor is between e^−ε and e^ε, because z_i and z_j are at most `records`.
        """
        return self.records / _excess(self.budget.epsilon)

    def prior(self, k: int) -> float:
        """Return the prior weight α, which the mechanism adds to the count of each cell. `k` is the number of
        cells of the domain. If you gave `alpha`, α is this number. Otherwise, α is the smallest number for
        which the guarantee is proven. The computation uses only public numbers.
        """
        least = _smallest_alpha(replace(self, alpha=None), k)
        if self.alpha is None:
            return least
        risk = self.failure(k, self.alpha)
        if risk > self.budget.delta:
            why = f"on {k} cells more than ε could be lost with probability {risk:.3g}; "
            raise not_allowed(self, "alpha", f"{why}need at least {least!r}")
        return self.alpha

    def failure(self, k: int, alpha: float) -> float:
        """Return an upper bound on the probability that the privacy loss of a release exceeds ε. The bound
        holds for any two neighbouring tables with k cells, which differ in one replaced record. `alpha` is
        the prior weight of a cell. The guarantee needs a δ of at least this bound.

        Let x be the count of a cell, z the number of synthetic records in the cell, and c = e^ε − 1. By the
        argument in the documentation of `pure_alpha`, a loss above ε is possible only if some cell has z > c·(α
        + max(x−1, 0)). The number z has a beta-binomial distribution. Let T(x) be the probability of z > c·(α +
        max(x−1, 0)). The counts x_i of all k cells add up to n, the public `total`. So the probability that at
        least one cell has such a large z is at most Σ T(x_i) <= k·T(0) + n·max_{x>=1} (T(x) − T(0))⁺/x. Here
        (·)⁺ replaces a negative number by 0. The right-hand side is the bound for the probabilistic definition.

        For (ε, δ)-DP, it is enough to compare two given neighbours. These neighbours differ by a record that
        moves from one cell to another. The loss can be above ε only because of the cell that the record leaves.
        This cell has x >= 1, so the bound is max_{x>=1} T(x).
        """
        if (
            alpha >= self.pure_alpha or k == 1 or self.total == 0
        ):  # the latter two have no neighbours
            return 0.0
        bounds = _failure_bounds(self.budget.epsilon, k, self.total, self.records, alpha)
        return getattr(bounds, self.notion)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the counts of the synthetic records, multiplied by one factor so that they add up to the
        table's total.
        """
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table with the bound {table.bound!r} is not allowed: DirichletSynthesis hides the cell "
                "of one record, so need one record per unit, l1 = 1"
            )
        alpha = self.prior(table.domain.size)
        self.refuse_lost_records(table)
        if table.total != self.total:
            why = "need the table's own total, which must be public. The guarantee is about "
            raise not_allowed(self, "total", f"{why}tables of that total only")
        keys, counts, receipt = noise.dirichlet_multinomial(
            table.keys,
            table.counts,
            table.domain.size,
            alpha=alpha,
            records=self.records,
            cost=DP(self.budget.epsilon) if alpha >= self.pure_alpha else self.budget,
            rng=rng,
        )
        summary = Summary(table.domain, keys, counts, None, scale=self.total / self.records)
        return Release(summary, (receipt,), self, private_bound(table))

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It draws as many synthetic records as the table has
        true records.
        """
        return cls(budget, records=100, total=100)


def _excess(epsilon: float) -> float:
    """Return e^ε − 1. If ε is above 600, use 600 instead, so that the result does not overflow."""
    return expm1(min(epsilon, 600))


@lru_cache(1024)  # a table a work place, many times over
def _smallest_alpha(mechanism: DirichletSynthesis, k: int) -> float:
    """Return the smallest prior weight α for which the probability `failure` is at most δ. If there is none
    below `pure_alpha`, return `pure_alpha`.
    """
    c = _excess(mechanism.budget.epsilon)
    m = mechanism.records
    delta = mechanism.budget.delta

    def alpha(j: int) -> float:
        return j / c * (1 + 1e-11)  # no cut is rounded below j

    def suffices(j: int) -> bool:
        return mechanism.failure(k, alpha(j)) <= delta

    least = 1 + bisect_left(range(1, m), True, key=suffices) if delta else m
    return alpha(least) if least < m else mechanism.pure_alpha


class _FailureBounds(NamedTuple):
    """Two upper bounds on the probability of a privacy loss above ε. `probabilistic` considers all cells
    together, and `approximate` only the cell that a record leaves.
    """

    probabilistic: float
    approximate: float


def _failure_bounds(epsilon: float, k: int, n: int, m: int, alpha: float) -> _FailureBounds:
    """Return the two bounds that the docstring of `DirichletSynthesis.failure` explains. The function
    considers a few thousand blocks of counts, instead of every count up to n.
    """
    c = _excess(epsilon) * (1 - 1e-12)  # cuts are rounded down
    others = (k - 1) * alpha
    least, most = tail_bounds(np.array([c * alpha]), m, alpha, others + n)
    log_width = log1p(_BLOCK_WIDTH)
    powers = np.exp(np.arange(ceil(log(n) / log_width) + 1) * log_width)
    a = np.unique(np.floor(powers[powers <= n]))
    b = np.append(a[1:] - 1, n)
    _, tails = tail_bounds(c * (alpha + a - 1), m, alpha + b, others + (n - b))
    slope = (np.maximum(tails - least * (1 - 1e-6), 0) / a).max()
    return _FailureBounds(
        probabilistic=_round_up(float(k * most[0] + n * slope)),
        approximate=_round_up(float(tails.max())),
    )


def _round_up(probability: float) -> float:
    return min(1.0, probability * (1 + 1e-6) + 1e-280)
