"""Maximum entropy on all 29,570 cells of the 36 bivariate marginals of nine attributes.

Exact answers, ours beside the paper's own setting; then noisy ones at ε = 1, of which a synthetic
database of as many tuples is compared with both randomised responses at γ = e an attribute. The error
is the mean total variation of the 36 pair tables.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.benchmarks import _timing as timing
from workbench import DP, Domain, Marginals
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, MaximumEntropyAsPrinted
from workbench.mechanisms import Flipping, LaplaceQueries, RetentionReplacement

PAIRS, SECONDS, ERROR = Marginals(2), 3, 0.02
EXACT = dict(alpha=1.0, chains=4096, steps=150)
NOISY = dict(alpha=1e-4, chains=4096, steps=350, tolerance=0.0)


def main():
    """Processor time, of all threads."""
    table = IPUMSTwin().load()
    total, truth = table.total, table.answer(PAIRS)
    error = partial(variation, table.domain, truth, total)
    exact = NoisyAnswers(table.domain, PAIRS, truth, 1e-6)
    ours = partial(MaximumEntropy(total=total, **EXACT), exact)
    printed = partial(MaximumEntropyAsPrinted(1.0, total), exact)
    spent, theirs = timing.median_seconds(ours, printed, repeat=3, cold=(printed,))
    off, far = error(ours().answer(PAIRS)), error(printed().answer(PAIRS))
    rows = [
        {
            "what": f"fit to {len(truth):,} exact cells of 36 pair tables",
            "ours": timing.format_seconds(spent),
            "peer": f"as printed {timing.seconds(theirs)}",
            "ratio": theirs / spent,
            "limit": f"≤ {SECONDS} s",
            "met": spent <= SECONDS,
        },
        {
            "what": "… mean total variation of the pair tables",
            "ours": f"{off:.3g}",
            "peer": f"as printed {far:.3g}",
            "ratio": far / off,
            "limit": f"≤ {ERROR}",
            "met": off <= ERROR,
        },
    ]
    rng = np.random.default_rng(0)
    noisy = LaplaceQueries(DP(1.0), PAIRS)(table, rng).estimate
    fitted = MaximumEntropy(total=total, **NOISY)(noisy)
    synthetic = error(fitted.synthetic(total).answer(PAIRS))
    rows.append(
        {
            "what": f"synthetic database of {total:,} tuples, ε = 1, mean total variation",
            "ours": f"{synthetic:.3g}",
            "peer": f"the noisy tables {error(np.maximum(noisy.values, 0)):.3g}, negative cells 0",
        }
    )
    for mechanism in (RetentionReplacement(DP(9.0)), Flipping(DP(9.0))):
        reports = mechanism(table, rng)
        response = error(reports.answer(PAIRS, clipped=True))
        rows.append(
            {
                "what": f"… beside {type(mechanism).__name__}, γ = e an attribute",
                "ours": f"{synthetic:.3g}",
                "peer": f"{response:.3g}",
                "ratio": response / synthetic,
                "limit": "> 1×",
                "met": response > synthetic,
            }
        )
    return timing.to_frame([*rows, mbi()])


def variation(domain: Domain, truth, total: float, found) -> float:
    """Half the distance of shares, averaged over the pair tables."""
    shape = domain.shape
    sizes = [n * m for i, n in enumerate(shape) for m in shape[i + 1 :]]
    parts = np.split(np.abs(found - truth), np.cumsum(sizes)[:-1])
    return float(np.mean([part.sum() for part in parts]) / (2 * total))


def mbi() -> dict:
    """Why private-PGM, the closest peer, has no time here."""
    return {
        "what": "fit beside mbi",
        "peer": "skipped: it is on no package index; and all pairs make one clique of 1.3·10¹¹ cells",
    }


if __name__ == "__main__":
    timing.print_results(main)
