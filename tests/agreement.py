"""Do samples follow a law, or two samples the same one? p-values, and a floor for false alarms."""

import numpy as np
from scipy import stats

RARE = 1e-9  # the false-alarm rate of a test on the system's randomness


def fits(sample, pmf, least=20) -> float:
    """Chi-square p-value of an integer sample against `pmf(x)`, rare outcomes pooled."""
    sample = np.asarray(sample)
    support = np.arange(sample.min(), sample.max() + 1)
    expected = np.array([pmf(int(x)) for x in support]) * len(sample)
    observed = np.bincount(sample - support[0], minlength=len(support)).astype(float)
    common = expected >= least
    rest = len(sample) - expected[common].sum()
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], rest)
    if expected[-1] < least:
        observed[-2:], expected[-2:] = observed[-2:].sum() / 2, expected[-2:].sum() / 2
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def same_law(a, b) -> float:
    """Two-sample Kolmogorov–Smirnov p-value (conservative for whole numbers)."""
    return stats.ks_2samp(a, b).pvalue


def same_counts(a, b, bins=12) -> float:
    """Chi-square p-value that two samples fill common bins alike; sees what K–S smooths over."""
    edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, bins + 1)[1:-1]))
    table = np.array(
        [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)]
    )
    table = table[:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
