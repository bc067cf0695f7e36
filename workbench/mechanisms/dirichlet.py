"""Dirichlet synthesis: synthetic records from a Dirichlet-multinomial model of the table."""

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
    """Return lower and upper bounds, up to rounding, on Pr[z > cut] for z ~ BetaBinomial(m, a, b).

    The function adds up the first terms of the tail. After these, the ratio of consecutive terms,
    (m−z)(a+z) / ((z+1)(b+m−z−1)), stays below r = max(1, (a+z)/(z+1)) · (m−z)/(b+m−z−1) if b >= 1. The
    remaining terms therefore add up to at most r/(1−r) times the last term. The upper bound is 1 if b < 1,
    or if r >= 1. The latter happens if the cut is below the mode.
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
    """Return ln Pr[z] of BetaBinomial(m, a, b). The usual formula has nine values of ln Γ of up to 1e16,
    whose rounding errors would be too large. This function avoids them.

    It uses ln Γ(x) = x·ln x − x + s(x). The large parts x·ln(x/e) belong to the entries, the margins and
    the sum of the table ((a, z), (b, m−z)). Together they are minus the G statistic of independence of this
    table, which can be computed accurately.
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
    """Return s(x) = ln Γ(x) − x·ln x + x, or the same with ln x! in place of ln Γ(x) if `factorial` is
    set. The relative error is below 1e-13.
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

    The mechanism draws p ~ Dirichlet(α + counts), and then `records` synthetic records from p.

    Guarantee  (ε, δ)-probabilistic DP, hence (ε, δ)-DP, under replacing one record of a table of exactly
               `total` records. If α >= records/(e^ε − 1), the guarantee is ε-DP without a δ. For δ = 0, the
               mechanism chooses such an α.
    Assumes    one record per unit (a bound of l1 = 1), and a public `total`. A table with another total
               raises an error, because this α may protect a smaller table less.
    Source     Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008. Cormode, Procopiuc, Srivastava &
               Tran compare with it (ICDT 2012, section 4.5).
    Differs    All cells have the same α. We choose the smallest that a numeric bound on the exact
               tails allows, where the paper has a formula that needs ε > ln 2. Draws use floats, so
               releases are marked as idealised. The paper bounds δ by a sum over the failures of all cells.
               With `notion` = "approximate", the mechanism guarantees only (ε, δ)-DP, and a smaller α
               suffices.
    Cost       O(non-empty cells + records) time and memory, and about 0.1 s to choose α. The sizes of the
               domain and of the total do not matter.
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
        doc="prior weight α of a cell (by default the smallest that the guarantee allows)",
    )
    notion: str = parameter(
        "probabilistic",
        choices=("probabilistic", "approximate"),
        doc="definition of δ: probabilistic or approximate",
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
        """Smallest prior weight α for which no release has a privacy loss above ε. It is records/(e^ε − 1).

        Suppose that a record moves from cell j to cell i, and that z_i synthetic records are drawn in cell
        i. The move multiplies the probability of this sample by (1 + z_i/(α+x_i)) / (1 + z_j/(α+x_j−1)),
        which lies within e^±ε for all z up to `records`.
        """
        return self.records / _excess(self.budget.epsilon)

    def prior(self, k: int) -> float:
        """Return the prior weight α of each cell, for a domain of k cells. It is the given α or, if there is
        none, the smallest that is proven to suffice. Only public numbers are used.
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
        """Return δ: an upper bound on the probability that the privacy loss of a release exceeds ε, for any
        neighbour.

        Suppose that a cell has the count x and z synthetic records, and let c = e^ε − 1. By the argument in
        `pure_alpha`, such a release has a cell with z > c·(α + max(x−1, 0)). The number z has a
        beta-binomial distribution. Let T(x) be the probability of such a large z. Because the counts x_i
        add up to n, the probability for all k cells together is at most Σ T(x_i) <= k·T(0) + n·max_{x>=1}
        (T(x) − T(0))⁺/x. For (ε, δ)-DP a comparison with one neighbour suffices. Then only the cell that
        the record leaves can raise the loss above ε. This cell has x >= 1, so the bound is max_{x>=1} T(x).
        """
        if (
            alpha >= self.pure_alpha or k == 1 or self.total == 0
        ):  # the latter two have no neighbours
            return 0.0
        bounds = _failure_bounds(self.budget.epsilon, k, self.total, self.records, alpha)
        return getattr(bounds, self.notion)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release synthetic counts, scaled to the table's total."""
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table with the bound {table.bound!r} is not allowed: DirichletSynthesis hides the cell "
                "of one record, so need one record per unit, l1 = 1"
            )
        alpha = self.prior(table.domain.size)
        if table.total != self.total:
            why = "need the table's own total, which must be public; the guarantee is about "
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
        """Return an example of the mechanism with as many synthetic records as true ones."""
        return cls(budget, records=100, total=100)


def _excess(epsilon: float) -> float:
    """Return c = e^ε − 1, with a smaller ε where floats would overflow."""
    return expm1(min(epsilon, 600))


@lru_cache(1024)  # a table a work place, many times over
def _smallest_alpha(mechanism: DirichletSynthesis, k: int) -> float:
    """Return the smallest α for which `failure` stays within δ, or else the pure one."""
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
    """Bounds on three probabilities: of the tail of any cell, of all cells together, and of the cell
    that a record leaves.
    """

    probabilistic: float
    approximate: float


def _failure_bounds(epsilon: float, k: int, n: int, m: int, alpha: float) -> _FailureBounds:
    """Return the bounds of `failure`, in a few thousand blocks of counts instead of all x up to n."""
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
