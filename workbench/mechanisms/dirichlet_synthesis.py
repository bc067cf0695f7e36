"""Dirichlet synthesis: synthetic records from a Dirichlet-multinomial model of the table.

Guarantee  (ε, δ)-probabilistic DP, hence (ε, δ)-DP, under replacing one record of a table of exactly
           `total` records; pure ε-DP where α >= records/(e^ε − 1), which is what δ = 0 chooses.
Assumes    one record a unit (a bound of l1 = 1), and that `total` is public: tables of another total
           are refused, since the same α may protect a smaller table badly.
Source     Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008; compared with by Cormode,
           Procopiuc, Srivastava & Tran, ICDT 2012, section 4.5.
Differs    one α for all cells, the smallest that a numeric bound on the exact tails allows, where the
           paper has a closed form that needs ε > ln 2; drawn with floats, so that it is idealised.
           The paper's notion of δ sums over cells; `notion` = "approximate" asks for (ε, δ)-DP and no
           more, which a smaller α gives.
Cost       O(non-empty cells + records) time and memory, and some 0.1 s to choose α, whatever the
           domain's size and the total.
"""

from dataclasses import replace
from functools import lru_cache
from math import ceil, expm1, log, log1p, pi
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, xlog1py, xlogy

from workbench import noise
from workbench.estimates import Summary
from workbench.mechanism import Release, approximate_budget, parameter, sensitivity
from workbench.privacy import DP, REPLACE
from workbench.table import SparseTable
from workbench.value import value

_FINE = 1 / 512  # how wide blocks of counts are; below its inverse each count is its own
_TERMS = 32  # of a tail, before the rest is bounded by a geometric series


@value
class DirichletSynthesis:
    """Synthetic records: p ~ Dirichlet(α + counts), then `records` records from p."""

    budget: DP = approximate_budget(pure=True)
    records: int = parameter(
        low=1, high=2**28, integer=True, unit="records", doc="synthetic records to draw"
    )
    total: int = parameter(
        low=0, high=2**53, integer=True, unit="records", doc="the table's public total"
    )
    alpha: float = parameter(
        None,
        0,
        2**64,
        strict=True,
        unit="records",
        doc="prior weight α of a cell; chosen if not given",
    )
    notion: str = parameter(
        "probabilistic", choices=("probabilistic", "approximate"), doc="what δ bounds"
    )
    takes: ClassVar[type] = SparseTable
    cite: ClassVar[str] = "machanavajjhala2008"
    converges: ClassVar[bool] = False  # the error of sampling `records` records stays, at any ε
    spends_delta: ClassVar[bool] = True
    idealised: ClassVar[bool] = True
    relation: ClassVar[str] = REPLACE

    def __post_init__(self):
        if not self.pure <= 2**64:
            raise ValueError(
                f"DirichletSynthesis.budget = {self.budget!r} is not allowed: so small an epsilon "
                f"needs a prior of {self.pure:.3g} records a cell; at most 2^64 are possible"
            )

    @property
    def pure(self) -> float:
        """The α from which on no release can tell more than ε: records/(e^ε − 1).

        Moving a record from cell j to cell i multiplies the probability of drawing z by
        (1 + z_i/(α+x_i)) / (1 + z_j/(α+x_j−1)), which lies within e^±ε for all z up to `records`.
        """
        return self.records / _excess(self.budget.epsilon)

    def prior(self, k: int) -> float:
        """α on a domain of k cells, from public numbers alone: as given, or the smallest proven."""
        least = _smallest(replace(self, alpha=None), k)
        if self.alpha is None:
            return least
        if (risk := self.failure(k, self.alpha)) > self.budget.delta:
            raise ValueError(
                f"DirichletSynthesis.alpha = {self.alpha!r} is not allowed: on {k} cells more than ε "
                f"could be lost with probability {risk:.3g}; need at least {least!r}"
            )
        return self.alpha

    def failure(self, k: int, alpha: float) -> float:
        """δ: at least the probability of a release that has a loss above ε against any neighbour.

        By `pure`, such a release has z > c·(α + max(x−1, 0)) in some cell, c = e^ε − 1. There z is beta
        binomial; with T(x) the probability of that tail, the k cells together have at most
        Σ T(x_i) <= k·T(0) + n·max_{x>=1} (T(x) − T(0))⁺/x, since the counts x_i sum to n. Against one
        neighbour, which is all that (ε, δ)-DP asks, the loss exceeds ε only by the cell x >= 1 that
        the record leaves: max_{x>=1} T(x).
        """
        if alpha >= self.pure or k == 1 or self.total == 0:  # the latter two have no neighbours
            return 0.0
        cells, record = _failures(self.budget.epsilon, k, self.total, self.records, alpha)
        return cells if self.notion == "probabilistic" else record

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release synthetic counts, scaled to the table's total."""
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table of bound {table.bound!r} is not allowed: DirichletSynthesis hides which cell "
                "one record lies in, so need one record a unit, l1 = 1"
            )
        alpha = self.prior(table.domain.size)
        if table.total != self.total:
            raise ValueError(
                f"DirichletSynthesis.total = {self.total} is not allowed: need the table's own total, "
                "which must be public; the guarantee is about tables of that total only"
            )
        keys, counts, receipt = noise.dirichlet_multinomial(
            table.keys,
            table.counts,
            table.domain.size,
            alpha=alpha,
            records=self.records,
            cost=DP(self.budget.epsilon) if alpha >= self.pure else self.budget,
            rng=rng,
        )
        summary = Summary(table.domain, keys, counts, None, scale=self.total / self.records)
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """As many synthetic records as true ones."""
        return cls(budget, records=100, total=100)


def _excess(epsilon: float) -> float:
    """c = e^ε − 1; that of a smaller ε where floats end."""
    return expm1(min(epsilon, 600))


@lru_cache(64)
def _smallest(mechanism: DirichletSynthesis, k: int) -> float:
    """The smallest α for which `failure` stays within δ, else the pure one.

    Only α = j/c are tried, j whole: the tails of x <= 1 grow in between, as their cut is then ⌊cα⌋.
    Bisection may miss a smaller α where `failure` is not monotone, but what it returns is proven.
    """
    c, m, delta = _excess(mechanism.budget.epsilon), mechanism.records, mechanism.budget.delta
    low, high = 0 if delta else m - 1, m

    def prior(j: int) -> float:
        return mechanism.pure if j == m else j / c * (1 + 1e-11)  # no cut is rounded below j

    while high - low > 1:
        j = (low + high) // 2
        good = mechanism.failure(k, prior(j)) <= delta
        low, high = (low, j) if good else (j, high)
    return prior(high)


def _failures(epsilon: float, k: int, n: int, m: int, alpha: float) -> tuple[float, float]:
    """The bounds of `failure`, in a few thousand blocks of counts instead of all x up to n.

    For a <= x <= b the tail T(x) is at most that of the count b above the cut of the count a: the cut
    rises with x, and so does z in law, as its p ~ Beta(α+x, (k−1)α + n−x) does. The last line covers
    rounding (relative errors of the tails are below 1e-7) and underflow.
    """
    c, rest = _excess(epsilon) * (1 - 1e-12), (k - 1) * alpha  # cuts are rounded down
    least, most = _tail(np.array([c * alpha]), m, alpha, rest + n)
    powers = np.exp(np.arange(ceil(log(n) / log1p(_FINE)) + 1) * log1p(_FINE))
    a = np.unique(np.floor(powers[powers <= n]))
    b = np.append(a[1:] - 1, n)
    _, tails = _tail(c * (alpha + a - 1), m, alpha + b, rest + (n - b))
    slope = (np.maximum(tails - least * (1 - 1e-6), 0) / a).max()
    bounds = float(k * most[0] + n * slope), float(tails.max())
    return tuple(min(1.0, x * (1 + 1e-6) + 1e-280) for x in bounds)


def _tail(
    cut: Float[np.ndarray, " n"], m: int, a: Float[np.ndarray, " n"] | float, b
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Bounds from below and above, but for rounding, on Pr[z > cut], z ~ BetaBinomial(m, a, b).

    The first terms are summed. Their ratios (m−z)(a+z) / ((z+1)(b+m−z−1)) stay from there on below
    r = max(1, (a+z)/(z+1)) · (m−z)/(b+m−z−1), as long as b >= 1, so that the rest is at most
    r/(1−r) times the last term. Where that does not hold, or r >= 1 (a cut below the mode): 1.
    """
    z = np.minimum(np.floor(cut) + 1, m)
    last = least = np.exp(_log_mass(z, m, a, b))
    for _ in range(_TERMS):
        left = np.maximum(m - z, 0)
        last = last * left / np.maximum(b + left - 1, b) * (a + z) / (z + 1)
        least, z = least + last, z + 1
    left = np.maximum(m - z, 0)
    r = np.maximum(1, (a + z) / (z + 1)) * left / np.maximum(b + left - 1, b)
    known = (r < 1) & ((b >= 1) | (left == 0))
    most = np.where(known, least + last * r / np.where(known, 1 - r, 1), 1)
    return tuple(np.where(cut < m, np.minimum(x, 1), 0) for x in (least, most))


def _log_mass(z, m: int, a, b) -> Float[np.ndarray, " n"]:
    """ln Pr[z] of BetaBinomial(m, a, b), without the cancellation of its nine ln Γ, each up to 1e16.

    With ln Γ(x) = x·ln x − x + s(x), the large parts are x·ln(x/e) over the table ((a, z), (b, m−z)),
    its margins and its sum: minus the G statistic of independence, in which nothing cancels.
    """
    n, up, down = a + b + m, a + z, b + (m - z)
    d = (z * b - (m - z) * a) / n

    def g(seen, off, expected):  # seen·ln(seen/expected) − off, where seen = expected + off
        far, near = xlogy(seen, seen / expected), xlog1py(seen, off / expected)
        return np.where(off < -expected / 2, far, near) - off

    large = g(z, d, up * m / n) + g(a, -d, up * (a + b) / n)
    large = large + g(b, d, down * (a + b) / n) + g(m - z, -d, down * m / n)
    return (
        (_small(up) - _small(a) - _small(z, 1))
        + (_small(down) - _small(b) - _small(m - z, 1))
        - (_small(n) - _small(a + b) - _small(m, 1))
        - large
    )


def _small(x, factorial: int = 0) -> Float[np.ndarray, " n"]:
    """s(x) = ln Γ(x) − x·ln x + x, of ln x! instead with `factorial`; relative error below 1e-13."""
    x = np.asarray(x, float)
    low, high = np.clip(x, 1 if factorial else 0, 1e3), np.maximum(x, 1e3)
    near = gammaln(low) - low * np.log(low) + low
    far = np.log(2 * pi / high) / 2 + 1 / (12 * high) - 1 / (360 * high**3)
    s = np.where(x < 1e3, near, far)
    return np.where(x == 0, 0, s + np.log(np.maximum(x, 1))) if factorial else s
