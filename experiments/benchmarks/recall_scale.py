"""A hundred thousand recalled answers over five thousand paid ones; and a fit, against one `eigh`."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import eigh

from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    compared,
    format_seconds,
    once,
    peak_bytes,
    row,
)
from workbench import DP, Marginals, RandomMarginalRanges
from workbench.datasets import IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import product_prior
from workbench.inference.answer_bank import AnswerBank
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.kernel_pca import Posterior
from workbench.mechanisms import LaplaceQueries
from workbench.queries import linear_queries

PAID = 5000
RECALLED = 10**5
SCALE = 500.0
VALUES = 200  # sorts
ERRORS = 1800
FIT = 1.5  # times one eigh
MEMORY = 1.0  # GB


def main():
    """Time and memory."""
    table = IPUMSTwin(100_000).load()
    rng = np.random.default_rng(0)
    bought = linear_queries(RandomMarginalRanges(PAID), table.domain)
    values = table.answer(bought) + rng.laplace(0, SCALE, PAID)
    history = NoisyAnswers(table.domain, bought, values, np.full(PAID, 2 * SCALE**2))
    prior = product_prior(LaplaceQueries(DP(0.1), Marginals(1))(table, rng).estimate)
    total = float(table.total)
    Eigenqueries.of(history[np.arange(9)], total, prior)  # compiles

    bank = AnswerBank(history, total, prior)
    fit, eigen = once(
        lambda: bank.cautious_alpha and bank.eigen
    )  # with α and the scale of bars
    matrix = np.random.default_rng(0).standard_normal((PAID, PAID))
    matrix += matrix.T
    alone, _ = once(partial(eigh, matrix, driver="evd", overwrite_a=True, check_finite=False))
    asked = linear_queries(RandomMarginalRanges(RECALLED, seed=7), table.domain)
    posterior = Posterior(eigen, 1000.0)
    plain, _ = once(partial(posterior.answer, asked))
    with_errors, _ = once(partial(posterior.errors_in_parts, asked))
    peak, _ = peak_bytes(partial(posterior.errors_in_parts, asked))
    peak = (peak + eigen.basis.nbytes) / 2**30
    what = "10⁵ answers over 5,000 paid ones"
    errors = at_most_sorts(with_errors, ERRORS)
    limit = dict(ratio=fit / alone, **at_most(fit / alone, FIT, "× eigh"))
    size = at_most(peak, MEMORY, " GB")
    return [
        row(what, format_seconds(plain), **at_most_sorts(plain, VALUES)),
        row(f"{what}, with errors", format_seconds(with_errors), **errors),
        compared("a fit at 5,000, with 16 α and five folds", fit, alone, "one eigh", **limit),
        row("memory with errors, the fit included", f"{peak:.2g} GB", **size),
    ]
