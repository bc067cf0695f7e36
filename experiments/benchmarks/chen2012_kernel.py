"""Kernel PCA of 5,000 range queries over nine attributes, against the LAPACK that it rests on."""

from __future__ import annotations

import resource
from functools import partial
from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, eigh

from experiments.benchmarks import _timing as timing
from workbench import DP, Domain, Marginals, RandomMarginalRanges, RandomTables
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, product_prior, select_alpha
from workbench.mechanisms import LaplaceQueries
from workbench.workload.inner import inner_products

QUERIES, TOTAL, SCALE = 5000, 500_000, 5000.0
KERNEL, SWEEP, MEMORY = 0.2, 60.0, 2.5
WIDE = Domain(tuple("abcdefghi"), (127,) * 9)


def main():
    """Wall-clock seconds on all cores, best of several where it is short; memory at the peak."""
    table = IPUMSTwin().load()
    asked = RandomMarginalRanges(QUERIES).on(table.domain)
    wide = RandomMarginalRanges(QUERIES).on(WIDE)
    rng = np.random.default_rng(0)
    values = table.answer(asked) + rng.laplace(0, SCALE, QUERIES)
    history = NoisyAnswers(table.domain, asked, values, np.full(QUERIES, 2 * SCALE**2))
    noisy = LaplaceQueries(DP(0.02), Marginals(1))(table, rng).estimate
    prior = product_prior(noisy)
    kernel = best(partial(inner_products, asked, asked, table.domain, prior))
    flat = best(partial(inner_products, wide, wide, WIDE))
    answers = best(partial(table.answer, asked))
    tables = RandomTables(QUERIES).on(table.domain)
    others = best(partial(inner_products, tables, tables, table.domain, prior), 2)
    sweep, chosen = once(partial(select_alpha, history, total=TOTAL, prior=prior))
    fit, _ = once(partial(KernelPCA(chosen.alpha, TOTAL, prior), history))
    past = chosen.posterior.eigen.project(RandomMarginalRanges(1000, seed=1))
    each = best(partial(past.values, chosen.alpha), 5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
    gram = inner_products(asked, asked, table.domain, prior)
    gram[np.diag_indices(QUERIES)] += 1
    cholesky = best(partial(cho_factor, gram, check_finite=False), 2)
    spectral, _ = once(partial(eigh, gram, driver="evd", overwrite_a=True, check_finite=False))
    rows = [
        {
            "what": "inner products of 5,000 2-D ranges, 1.3·10¹¹ cells",
            "ours": timing.format_seconds(kernel),
            "limit": f"≤ {KERNEL:g} s",
            "met": kernel <= KERNEL,
        },
        {"what": "… over 8.6·10¹⁸ cells", "ours": timing.format_seconds(flat)},
        {"what": "… of 5,000 arbitrary 2-D tables", "ours": timing.format_seconds(others)},
        {
            "what": "answers of 5,000 ranges, 500,000 people",
            "ours": timing.format_seconds(answers),
        },
        {
            "what": f"α by 5-fold cross-validation, {len(chosen.alphas)} values tried, and the fit",
            "ours": timing.format_seconds(sweep),
            "peer": f"one eigh {timing.seconds(spectral)}",
            "ratio": sweep / spectral,
            "limit": f"≤ {SWEEP:g} s",
            "met": sweep <= SWEEP,
        },
        {
            "what": "… the fit alone",
            "ours": timing.format_seconds(fit),
            "peer": f"one eigh {timing.seconds(spectral)}, one Cholesky {timing.seconds(cholesky)}",
            "ratio": fit / spectral,
        },
        {"what": "1,000 further answers at another α", "ours": timing.format_seconds(each)},
        {
            "what": "… memory at the peak, of all this",
            "ours": f"{peak:.3g} GB",
            "limit": f"≤ {MEMORY} GB",
            "met": peak <= MEMORY,
        },
    ]
    return timing.to_frame(rows)


def once(way):
    """Seconds on the clock, and what came out."""
    start = perf_counter()
    found = way()
    return perf_counter() - start, found


def best(way, repeat: int = 3) -> float:
    """The least seconds on the clock of several runs, the first of which warms up."""
    way()
    return min(once(way)[0] for _ in range(repeat))


if __name__ == "__main__":
    timing.print_results(main)
