"""Maximum entropy on all 29,570 cells of the 36 bivariate marginals of nine attributes.

Exact answers, ours beside the paper's own setting; then noisy ones at ε = 1, of which a synthetic
database of as many tuples is compared with both randomised responses at γ = e an attribute. The error
is the mean total variation of the 36 pair tables.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_most, at_most_sorts, format_seconds, row
from workbench import DP, Domain, Marginals, SparseTable
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import MaximumEntropy, MaximumEntropyAsPrinted
from workbench.mechanisms import Flipping, LaplaceQueries, RetentionReplacement

PAIRS = Marginals(2)
SORTS = 60
ERROR = 0.02
EXACT = dict(alpha=1.0, chains=4096, steps=150, tolerance=0.0)
SMALLEST = 5  # attributes, which private-PGM can fit too
WIDEST = 30.0  # nats: the box of their weights, so wide that the fit is to the tables alone
ITERATIONS = 1000
SAME = 0.01
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
    seconds, theirs = timing.median_seconds(ours, printed, repeat=3, cold=(printed,))
    our_error = error(ours().answer(PAIRS))
    their_error = error(printed().answer(PAIRS))
    rng = np.random.default_rng(0)
    noisy = LaplaceQueries(DP(1.0), PAIRS)(table, rng).estimate
    noisy_error = error(np.maximum(noisy.values, 0))
    fitted = MaximumEntropy(total=total, **NOISY)(noisy)
    synthetic = error(fitted.synthetic(total).answer(PAIRS))
    rows = [
        row(
            f"fit to {len(truth):,} exact cells of 36 pair tables",
            format_seconds(seconds),
            f"as printed {format_seconds(theirs)}",
            theirs / seconds,
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
    return timing.to_frame([*rows, *mbi(table)])


def variation(domain: Domain, truth, total: float, answers) -> float:
    """Half the distance of shares, averaged over the pair tables."""
    sizes = [n * m for i, n in enumerate(domain.shape) for m in domain.shape[i + 1 :]]
    tables = np.split(np.abs(answers - truth), np.cumsum(sizes)[:-1])
    return float(np.mean([table.sum() for table in tables]) / (2 * total))


def mbi(table: SparseTable) -> list[dict]:
    """Private-PGM, the closest peer: all pairs of all nine attributes are one clique of 1.3·10¹¹ cells, too
    many for it; all pairs of the five smallest make one of thousands.
    """
    try:
        from mbi import Domain as TheirDomain
        from mbi.estimation import MirrorDescent
        from mbi.marginal_loss import LinearMeasurement
    except ImportError:
        return []
    smallest = np.sort(np.argsort(table.domain.shape)[:SMALLEST])
    names = [table.domain.attributes[k] for k in smallest]
    small = table.project(names)
    total = small.total + small.domain.size  # one more in each cell: none is impossible
    pairs = [*combinations(range(SMALLEST), 2)]
    counts = (small.dense() + 1.0).reshape(small.domain.shape)
    tables = [counts.sum(axis=tuple(set(range(SMALLEST)) - {*pair})) for pair in pairs]
    values = np.concatenate([pair_table.ravel() for pair_table in tables])
    told = NoisyAnswers(small.domain, PAIRS, values, 2.0)
    fit = MaximumEntropy(WIDEST / total, total)
    domain = TheirDomain(names, small.domain.shape)
    measurements = [
        LinearMeasurement(pair_table.ravel(), (names[i], names[j]))
        for (i, j), pair_table in zip(pairs, tables, strict=True)
    ]

    def theirs() -> np.ndarray:
        fitted = MirrorDescent().estimate(domain, measurements, total, iters=ITERATIONS)
        triples = combinations(names, 3)
        return np.concatenate([np.asarray(fitted.project(t).datavector()) for t in triples])

    def ours() -> np.ndarray:
        return fit(told).answer(Marginals(3))

    seconds, their_seconds = timing.median_seconds(ours, theirs, repeat=3)
    triples = SMALLEST * (SMALLEST - 1) * (SMALLEST - 2) / 6
    apart = float(np.abs(ours() - theirs()).sum() / (2 * total * triples))
    what = f"all pairs of {SMALLEST} attributes, {small.domain.size:,} cells"
    return [
        row(
            what,
            format_seconds(seconds),
            f"mbi {format_seconds(their_seconds)}",
            their_seconds / seconds,
        ),
        row(
            "… mean total variation of the triples between both, which nobody asked",
            f"{apart:.2g}; gap {fit(told).gap:.2g} nats",
            **at_most(apart, SAME),
        ),
    ]


if __name__ == "__main__":
    timing.print_results(main)
