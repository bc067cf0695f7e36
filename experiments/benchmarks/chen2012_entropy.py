"""Maximum entropy on all 29,570 cells of the 36 bivariate marginals of nine attributes.

Exact answers, ours beside the paper's own setting; then noisy ones at ε = 1, of which a synthetic
database of as many tuples is compared with both randomised responses at γ = e an attribute. The error
is the mean total variation of the 36 pair tables.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.benchmarks._timing import at_most, at_most_sorts, compared, median_seconds, row
from workbench import DP, Domain, Marginals
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, MaximumEntropyAsPrinted
from workbench.mechanisms import Flipping, LaplaceQueries, RetentionReplacement

PAIRS = Marginals(2)
SORTS = 60
ERROR = 0.02
EXACT = dict(alpha=1.0, chains=4096, steps=150, tolerance=0.0)
NOISY = dict(alpha=1e-4, chains=4096, steps=350, tolerance=0.0)


def main():
    """Time and errors."""
    table = IPUMSTwin().load()
    total = table.total
    truth = table.answer(PAIRS)
    error = partial(variation, table.domain, truth, total)
    exact = NoisyAnswers(table.domain, PAIRS, truth, 1e-6)
    ours = partial(MaximumEntropy(total=total, **EXACT), exact)
    printed = partial(MaximumEntropyAsPrinted(1.0, total), exact)
    seconds, theirs = median_seconds(ours, printed, repeat=3, cold=(printed,))
    our_error = error(ours().answer(PAIRS))
    their_error = error(printed().answer(PAIRS))
    rng = np.random.default_rng(0)
    noisy = LaplaceQueries(DP(1.0), PAIRS)(table, rng).estimate
    noisy_error = error(np.maximum(noisy.values, 0))
    fitted = MaximumEntropy(total=total, **NOISY)(noisy)
    synthetic = error(fitted.synthetic(total).answer(PAIRS))
    rows = [
        compared(
            f"fit to {len(truth):,} exact cells of 36 pair tables",
            *(seconds, theirs, "as printed"),
            **at_most_sorts(seconds, SORTS),
        ),
        row(
            "… mean total variation of the pair tables",
            f"{our_error:.3g}",
            f"as printed {their_error:.3g}",
            their_error / our_error,
            **at_most(our_error, ERROR),
        ),
        row(
            f"synthetic database of {total:,} tuples, ε = 1, mean total variation",
            f"{synthetic:.3g}",
            f"the noisy tables {noisy_error:.3g}, negative cells 0",
        ),
    ]
    for mechanism in (RetentionReplacement(DP(9.0)), Flipping(DP(9.0))):
        response = error(mechanism(table, rng).answer(PAIRS, clipped=True))
        what = f"… beside {type(mechanism).__name__}, γ = e an attribute"
        ratio = response / synthetic
        rows.append(row(what, f"{synthetic:.3g}", f"{response:.3g}", ratio, "> 1×", ratio > 1))
    return rows


def variation(domain: Domain, truth, total: float, answers) -> float:
    """Half the distance of shares, averaged over the pair tables."""
    sizes = [n * m for i, n in enumerate(domain.shape) for m in domain.shape[i + 1 :]]
    tables = np.split(np.abs(answers - truth), np.cumsum(sizes)[:-1])
    return float(np.mean([table.sum() for table in tables]) / (2 * total))
