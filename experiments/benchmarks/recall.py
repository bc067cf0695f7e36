"""Benchmark of the answers that an answer bank computes for questions that nobody paid for, on four public
tables.

The tables are Adult with seven attributes, Adult with sixteen yes-or-no attributes, simulated people with
ranges, and Census Income. Errors are root mean squares over two banks. The limit is 1.1 times the errors of
an earlier version (`BEFORE`, with the same seeds), which chose among kernel PCA, trees, least squares and
maximum entropy. Coverage is the share of true answers within ±2 error bars. `coverage(200)` measures it for
200 banks with new noise and other purchases. If the files of a table are missing (`WORKBENCH_DATA`), the
table is left out, and its row says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, islice

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
from workbench import DP, Domain, Marginals, RandomMarginalRanges, SparseTable
from workbench.compiled import pd
from workbench.datasets import Adult, CensusIncome, IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference import product_prior
from workbench.inference.answer_bank import AnswerBank
from workbench.inference.eigenqueries import Eigenqueries
from workbench.inference.kernel_pca import Posterior
from workbench.mechanisms import LaplaceQueries
from workbench.queries import NamedMarginals, Workload, linear_queries
from workbench.trials import first_available

Recipe = Callable[[Domain, int], tuple[list[tuple[Workload, float]], dict[str, Workload]]]

SEEDS = 2
LIMIT = 1.1
PAID = 5000
RECALLED = 10**5
SCALE = 500.0
VALUES = 200  # sorts
ERRORS = 1800
FIT = 1.5  # times one eigh
MEMORY = 1.0  # GB
BEFORE = {
    "Adult, 7 attributes": (23.14, 314.7, 69.90),
    "Adult, 16 yes-or-no": (62.56, 1358.7, 1189.8),
    "simulated people": (80.64, 240.3, 67.07),
    "Census Income": (32.2, 816.0, 426.0),
}
TWIN = IPUMSTwin(20_000)
TEN = (
    "Age", "Workclass", "Education", "MaritalStatus", "Occupation", "Relationship", "Race", "Sex",
    "HoursPerWeek", "Income",
)  # fmt: skip


def main() -> list[dict]:
    """Return the rows of the table: errors, and then times and memory."""
    return [*errors(), *times()]


def errors() -> list[dict]:
    """Return one row per table and kind of question."""
    rows: list[dict] = []
    for name, table, recipe in tables():
        left_out = [row(f"{name}: left out, its files are missing")]
        rows += left_out if table is None else rows_of(name, table, recipe)
    return rows


def yes_or_no(table: SparseTable) -> SparseTable:
    """Return a table with yes-or-no attributes. Each says whether an original attribute is above its median.
    For each of the first six, another one says whether its value is in the middle half.
    """
    columns = []
    codes = table.domain.codes(table.keys)
    for k, n in enumerate(table.domain.shape):
        shares = np.cumsum(np.bincount(codes[:, k], table.counts, n)) / table.counts.sum()
        columns.append(codes[:, k] > np.searchsorted(shares, 0.5))
        if k < 6:
            quarters = np.searchsorted(shares, [0.25, 0.75])
            columns.append((codes[:, k] > quarters[0]) & (codes[:, k] <= quarters[1]))
    bits = np.stack(columns[:16], axis=1).astype(int)
    domain = Domain(tuple(f"b{k}" for k in range(bits.shape[1])), (2,) * bits.shape[1])
    keys = domain.keys(bits)
    return SparseTable.from_keys(domain, keys, table.counts, table.bound, truth_public=True)


def pairs(
    domain: Domain, seed: int
) -> tuple[list[tuple[Workload, float]], dict[str, Workload]]:
    """Return purchases and questions. All single attributes, and half of the pairs (at most forty), are
    bought. The questions are the bought pairs again, other pairs, and triples.
    """
    rng = np.random.default_rng(seed)
    every = [tuple(map(str, pair)) for pair in combinations(domain.attributes, 2)]
    small = [p for p in every if domain.project(p).size <= 2000]
    order = [small[i] for i in rng.permutation(len(small))]
    count = min(40, len(order) // 2)
    bought = NamedMarginals(tuple(order[:count]))
    triples = list(combinations(domain.attributes, 3))
    triples = [t for t in triples if domain.project(t).size <= 3000]
    chosen = [triples[i] for i in rng.permutation(len(triples))[:20]]
    asked = {
        "asked again": bought,
        "new pairs": NamedMarginals(tuple(order[count:])),
        "triples": NamedMarginals(tuple(chosen)),
    }
    return [(Marginals(1), 0.1), (bought, 0.5)], asked


def ranges(
    domain: Domain, seed: int
) -> tuple[list[tuple[Workload, float]], dict[str, Workload]]:
    """Return purchases and questions. All single attributes, and ranges over one or two attributes, are
    bought. The questions are the bought ranges again, new ranges, and pairs with few cells.
    """
    bought = RandomMarginalRanges(400, seed=seed)
    every = [p for p in combinations(domain.attributes, 2) if domain.project(p).size <= 200]
    asked = {
        "asked again": bought,
        "new ranges": RandomMarginalRanges(400, seed=seed + 100),
        "pairs": NamedMarginals(tuple(every)),
    }
    return [(Marginals(1), 0.2), (bought, 2.0)], asked


TABLES = (
    ("Adult, 7 attributes", Adult(), None, pairs),
    ("Adult, 16 yes-or-no", Adult(TEN), yes_or_no, pairs),
    ("simulated people", TWIN, None, ranges),
    ("Census Income", CensusIncome(), None, pairs),
)


def tables() -> Iterator[tuple[str, SparseTable | None, Recipe]]:
    """Yield the four tables. A table is None if its files are missing."""
    for name, dataset, change, recipe in TABLES:
        table = None if first_available(dataset) is None else dataset.load()
        yield name, change(table) if change and table is not None else table, recipe


def recalled(
    table: SparseTable, recipe: Recipe, seeds: Iterable[int], declared: bool = True
) -> pd.DataFrame:
    """Return one row per bank (with new noise) and kind of question: the squared error, the share of true
    answers within ±2 error bars, and the method.
    """
    rows = []
    for seed in seeds:
        purchases, questions = recipe(table.domain, seed)
        rng = np.random.default_rng(seed)
        answers = [LaplaceQueries(DP(e), w)(table, rng).estimate for w, e in purchases]
        history = NoisyAnswers.history(answers)
        bank = AnswerBank(history, float(table.total) if declared else None)
        for kind, workload in (questions | {"single": Marginals(1)}).items():
            given = bank.recall(workload)
            off = np.abs(given.values - table.answer(workload))
            held = np.mean(off <= 2 * given.errors)
            own = {"kind": kind, "square": np.mean(off**2), "held": held, "by": given.by}
            rows.append(own)
    return pd.DataFrame(rows)


def rows_of(name: str, table: SparseTable, recipe: Recipe) -> Iterator[dict]:
    """Yield rows that compare the errors of the bank with those of the earlier version."""
    kinds = recalled(table, recipe, range(SEEDS)).groupby("kind", sort=False)
    for (kind, own), before in zip(kinds, BEFORE[name], strict=False):  # without "single"
        error = own.square.mean() ** 0.5
        said = f"±{error:.4g} by {own.by.iloc[-1]}, bars hold {own.held.mean():.0%}"
        ratio = error / before
        yield row(f"{name}: {kind}", said, f"±{before:.4g}", ratio, **at_most(ratio, LIMIT))


def coverage(banks: int) -> pd.DataFrame:
    """Return the share of true answers within ±2 error bars, by table, kind of question, and whether the
    total is stated.
    """
    frames = [
        recalled(table, recipe, range(100, 100 + banks), declared)
        .groupby("kind", sort=False, as_index=False)
        .held.mean()
        .assign(table=name, declared=declared)
        for name, table, recipe in islice(tables(), 3)
        for declared in (True, False)
    ]
    return pd.concat(frames)


def times() -> list[dict]:
    """Time 10⁵ answers from a bank of 5000 paid answers, and the fit of this bank, compared with one
    eigendecomposition.
    """
    table = IPUMSTwin(100_000).load()
    rng = np.random.default_rng(0)
    bought = linear_queries(RandomMarginalRanges(PAID), table.domain)
    values = table.answer(bought) + rng.laplace(0, SCALE, PAID)
    history = NoisyAnswers(table.domain, bought, values, np.full(PAID, 2 * SCALE**2))
    prior = product_prior(LaplaceQueries(DP(0.1), Marginals(1))(table, rng).estimate)
    total = float(table.total)
    Eigenqueries.of(history[np.arange(9)], total, prior)  # compiles

    bank = AnswerBank(history, total, prior)
    fit, eigen = once(lambda: bank.cautious_alpha and bank.eigen)  # with the scale of bars
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
    limit = dict(ratio=fit / alone, **at_most(fit / alone, FIT, "× eigh"))
    bars = at_most_sorts(with_errors, ERRORS)
    size = at_most(peak, MEMORY, " GB")
    return [
        row(what, format_seconds(plain), **at_most_sorts(plain, VALUES)),
        row(f"{what}, with errors", format_seconds(with_errors), **bars),
        compared("a fit at 5,000, with 16 α and five folds", fit, alone, "one eigh", **limit),
        row("memory with errors, the fit included", f"{peak:.2g} GB", **size),
    ]
