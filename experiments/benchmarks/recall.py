"""What a bank recalls against the best of its methods: four public tables, three kinds of question.

Adult with seven attributes and as sixteen yes-or-no ones, made-up people and ranges, and, opened after
the chooser was fixed, Census Income. Errors are root mean squares over two banks; the limit is 1.05 × the
best single method that the bank allows. Coverage is how often ±2 bars held the truth. A table whose files
are missing (`WORKBENCH_DATA`) is left out, and its row says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_most, row
from workbench import DP, Domain, Marginals, RandomMarginalRanges, SparseTable
from workbench.compiled import pd
from workbench.datasets import Adult, CensusIncome, IPUMSTwin
from workbench.estimates import NoisyAnswers
from workbench.inference.answer_bank import AnswerBank
from workbench.inference.bank_fits import KERNEL, SQUARES, TREE
from workbench.mechanisms import LaplaceQueries
from workbench.queries import NamedMarginals, Workload
from workbench.trials import first_available

SEEDS = 2
LIMIT = 1.05
TWIN = IPUMSTwin(20_000)
TEN = (
    "Age", "Workclass", "Education", "MaritalStatus", "Occupation", "Relationship", "Race", "Sex",
    "HoursPerWeek", "Income",
)  # fmt: skip


def main() -> pd.DataFrame:
    """A row a table and kind of question."""
    rows: list[dict] = []
    for name, dataset, change, recipe in (
        ("Adult, 7 attributes", Adult(), None, pairs),
        ("Adult, 16 yes-or-no", Adult(TEN), yes_or_no, pairs),
        ("simulated people", TWIN, None, ranges),
        ("Census Income", CensusIncome(), None, pairs),
    ):
        if first_available(dataset) is None:
            rows.append(row(f"{name}: left out, its files are missing"))
            continue
        table = dataset.load()
        rows += rows_of(name, change(table) if change else table, recipe)
    return timing.to_frame(rows)


def yes_or_no(table: SparseTable) -> SparseTable:
    """Each attribute above its median; and the first six in two halves of each side."""
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


def pairs(domain: Domain, seed: int) -> tuple[list[tuple[Workload, float]], dict]:
    """All single attributes, half of the pairs or forty; asked again, other pairs, and triples."""
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


def ranges(domain: Domain, seed: int) -> tuple[list[tuple[Workload, float]], dict]:
    """All single attributes, ranges over one or two; asked again, new ones, and pairs of few cells."""
    bought = RandomMarginalRanges(400, seed=seed)
    every = [p for p in combinations(domain.attributes, 2) if domain.project(p).size <= 200]
    asked = {
        "asked again": bought,
        "new ranges": RandomMarginalRanges(400, seed=seed + 100),
        "pairs": NamedMarginals(tuple(every)),
    }
    return [(Marginals(1), 0.2), (bought, 2.0)], asked


def rows_of(name: str, table: SparseTable, recipe) -> Iterator[dict]:
    """The errors of the bank's choice and of each method, averaged over banks."""
    squares: dict[str, dict[str, list[float]]] = {}
    covered: dict[str, list[float]] = {}
    chosen: dict[str, list[str]] = {}
    for seed in range(SEEDS):
        purchases, questions = recipe(table.domain, seed)
        rng = np.random.default_rng(seed)
        answers = [LaplaceQueries(DP(e), w)(table, rng).estimate for w, e in purchases]
        bank = AnswerBank(NoisyAnswers.history(answers), float(table.total))
        allowed = {candidate.by for candidate in bank.candidates}
        for kind, workload in questions.items():
            truth = table.answer(workload)
            recalled = bank.recall(workload)
            inside = np.abs(recalled.values - truth) <= 2 * recalled.errors
            covered.setdefault(kind, []).append(float(inside.mean()))
            chosen.setdefault(kind, []).append(recalled.by)
            for by in (None, *(m for m in (KERNEL, TREE, SQUARES) if m in allowed)):
                values = bank.recall(workload, by, error=False).values
                by_method = squares.setdefault(kind, {})
                by_method.setdefault(by or "", []).append(float(np.mean((values - truth) ** 2)))
    for kind, by_method in squares.items():
        errors = {by: float(np.mean(own)) ** 0.5 for by, own in by_method.items()}
        ours = errors.pop("")
        best = min(errors, key=errors.get)
        methods = "; ".join(sorted(set(chosen[kind])))
        bars = f"±{ours:.4g} by {methods}, bars hold {np.mean(covered[kind]):.0%}"
        others = ", ".join(f"{by} ±{error:.4g}" for by, error in errors.items())
        ratio = ours / errors[best]
        yield row(f"{name}: {kind}", bars, others, ratio, **at_most(ratio, LIMIT))


if __name__ == "__main__":
    timing.print_results(main)
