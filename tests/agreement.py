"""Do samples follow a law, or two samples the same one? What the statistical tests share.

False alarms: a test on the system's randomness fails by chance at most once in 10⁹ runs, as its p-values
are compared with `RARE`, or with its share of it. A test on a seed draws the same in every run, so that
chance never fails it: its limits, a p-value of 1e-4 or five standard errors, say how small a fault it sees.

Smallest faults: of n draws,

* `fits`, `fits_chances`: an outcome of chance q that is off by 6·√(q/n) at 1e-4, by 8·√(q/n) at `RARE`;
* `same_law`: distribution functions that are √(ln(2/p)/n) apart at a p-value of p, which is 3.1/√n at 1e-4
  and 4.6/√n at `RARE`, n draws on both sides;
* `same_counts`: a bin of chance q that is off by 8·√(q/n) at 1e-4;
* a mean or a frequency within five standard errors: a bias of as much.

A test of many releases takes its number `n` from `runs`: a third of the draws in `make test-all`, where it
sees faults 1.7 times as large as with all of them in `make test-long`.
"""

import numpy as np
import pytest
from scipy import stats

from workbench.noise.source import Source

RARE = 1e-9  # the false-alarm rate of a test on the system's randomness


def seeded(seed=0):
    return np.random.default_rng(seed)


def runs(few, all_of_them):
    """Parametrizes `n`, the draws of a statistical test: few are slow, all take long."""
    return pytest.mark.parametrize(
        "n",
        [
            pytest.param(few, marks=pytest.mark.slow, id=f"{few} draws"),
            pytest.param(all_of_them, marks=pytest.mark.long, id=f"{all_of_them} draws"),
        ],
    )


def fits_chances(seen, chances, least=5) -> float:
    """Chi-square p-value of how often each outcome was seen, rare outcomes pooled."""
    seen = np.asarray(seen, float)
    expected = seen.sum() * np.asarray(chances, float)
    if seen[expected == 0].any():
        return 0.0
    order = np.argsort(-expected)
    common = (expected >= least).sum()
    if expected[order[common:]].sum() < least:
        common -= 1  # the rest joins the rarest of them
    group = np.minimum(np.arange(len(order)), max(common, 0))
    observed = np.bincount(group, seen[order])
    expected = np.bincount(group, expected[order])
    if len(observed) < 2:
        return 1.0
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def fits(sample, pmf, least=20) -> float:
    """Chi-square p-value of an integer sample against `pmf(x)`."""
    sample = np.asarray(sample)
    support = range(sample.min(), sample.max() + 1)
    chances = np.array([pmf(x) for x in support])
    seen = np.bincount(sample - support[0])
    elsewhere = max(0.0, 1 - chances.sum())
    return fits_chances(np.append(seen, 0), np.append(chances, elsewhere), least)


def same_law(a, b) -> float:
    """Two-sample Kolmogorov–Smirnov p-value (conservative for integers)."""
    return stats.ks_2samp(a, b).pvalue


def same_counts(a, b, bins=12) -> float:
    """Chi-square p-value that two samples fill common bins alike; sees what K–S smooths over."""
    edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, bins + 1)[1:-1]))
    table = np.array(
        [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)]
    )
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


def same_runs(ours, other, limit=1e-5):
    """Asserts that runs, each a tuple of numbers and of arrays, have the same laws, arrays pooled."""
    for column, (a, b) in enumerate(zip(zip(*ours), zip(*other), strict=True)):  # noqa: B905
        if np.ndim(a[0]):
            a = np.concatenate(a)
            b = np.concatenate(b)
            assert same_counts(a, b) > limit, column
        assert same_law(a, b) > limit, column


class Scripted(Source):
    """A source of given words."""

    def __init__(self, words):
        super().__init__(None)
        self.words = words
