"""Chen et al. 2012, Figure 5: running time of inference from past answers.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 5; costs in sections 3 and 4.
Read    from the text; the plot is not in our copy, and no number is printed. "O(n²r)", with n the
        tuples, should be O(m²r), with m the queries.
Open    Ranges on pairs of attributes of the twin, noise at ε = 1. Number of queries: doubled from 125
        (quick) or 250 (paper). Universe: the twin's 2, 3, 4, 6 and 9 largest attributes, up to all
        1.3·10¹¹ cells. Database: 5000 to 500,000 people (paper: 2 million). A last panel was added
        after the first run, and is not judged: always nine attributes, whose codes are merged.
        What is timed is inference and the improved answers to all past queries: for kernel PCA inner
        products, one eigendecomposition and one α. Maximum entropy takes a fixed number of steps, as in
        the paper, 200 (quick: 20) of 2048 chains; it is not run to convergence, which may take more
        of them for more queries. "Buying" is the release itself, the only thing that looks at the data.
        Processor time, one thread, the best of several; slow ways without a warm-up.
Words   grows with the number of queries = from the smallest to the largest m the time rises by more
        than 1.25×, both methods; not with database or universe = the largest time is within 1.25× of
        the smallest, both methods. Inapplicable for very many queries = from the last doubling of m the
        time of kernel PCA rises at least 4×, as m²; maximum entropy is not = it rises at most 2.5×.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.benchmarks._timing import seconds_in_turns
from experiments.chen2012_data import BUDGET, noisy_answers, random_queries
from workbench import Domain, SparseTable
from workbench.claims import ALIKE, Claim, Finding, all_of, format_number
from workbench.cli.bench import machine
from workbench.datasets import IPUMSTwin
from workbench.inference import KernelPCA, MaximumEntropy
from workbench.mechanisms import LaplaceQueries
from workbench.plots import Panel

TITLE = "Running time of inference from past answers"
PAGE = "Chen et al., EDBT 2012, section 5.1, Figure 5"
PAPER: dict = {}  # no number is printed
QUERIES = {"quick": (125, 250, 500, 1000), "paper": (250, 500, 1000, 2000, 4000)}
ATTRIBUTES = {"quick": (2, 4, 9), "paper": (2, 3, 4, 6, 9)}
TUPLES = {"quick": (5000, 50_000, 500_000), "paper": (5000, 50_000, 500_000, 2_000_000)}
FIXED = {"quick": 250, "paper": 1000}  # queries, where something else varies
REPEAT, SLOWLY = {"quick": 4, "paper": 9}, 2
SLOW = 1000  # queries; above, kernel PCA is slow
ALPHA = {"kernel": 3000.0, "entropy": 1e-3}
STEPS, CHAINS = {"quick": 20, "paper": 200}, 2048
MERGED = {"quick": (8, 1), "paper": (8, 4, 2, 1)}  # codes
KERNEL, ENTROPY, BUYING = "kernel PCA", "maximum entropy", "buying the answers"
OVER = {
    "queries": "number of queries",
    "universe": "universe: more attributes",
    "tuples": "database",
    "merged": "universe: more codes",
}


def rows(profile: str, store) -> pd.DataFrame:
    """A row a method and point; never taken from the store, since machines differ.

    In a process of its own, whose linear algebra has one thread: two would wait for each other, and
    count it as work.
    """
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    with tempfile.TemporaryDirectory() as where:
        told = Path(where) / "rows.csv"
        command = [sys.executable, "-m", "experiments.chen2012_fig5", profile, str(told)]
        top = Path(__file__).resolve().parents[1]
        subprocess.run(command, cwd=top, env=os.environ | one, check=True)
        return pd.read_csv(told)


def measured(profile: str) -> pd.DataFrame:
    """The rows, timed here and now."""
    found, table, fixed = [], IPUMSTwin().load(), FIXED[profile]
    for m in QUERIES[profile]:
        found += timing_rows(table, m, "queries", m, profile)
    for d in ATTRIBUTES[profile]:
        part = fewer_attributes(table, d)
        found += timing_rows(part, fixed, "universe", float(part.domain.size), profile)
    for codes in MERGED[profile]:
        part = fewer_codes(table, codes)
        found += timing_rows(part, fixed, "merged", float(part.domain.size), profile)
    for n in TUPLES[profile]:
        found += timing_rows(IPUMSTwin(n).load(), fixed, "tuples", n, profile)
    return pd.DataFrame(found)


def fewer_attributes(table: SparseTable, d: int) -> SparseTable:
    """The same people by their d largest attributes."""
    domain = table.domain
    axes = sorted(np.argsort([-n for n in domain.shape], kind="stable")[:d].tolist())
    names = tuple(domain.attributes[k] for k in axes)
    kept = Domain(names, tuple(domain.shape[k] for k in axes))
    codes = np.stack([domain.column(table.keys, name) for name in names], axis=1)
    return SparseTable.from_keys(
        kept, kept.keys(codes), table.counts, table.bound, truth_public=table.truth_public
    )


def fewer_codes(table: SparseTable, codes: int) -> SparseTable:
    """The same people with so many codes of each attribute made one, but two left at least."""
    domain = table.domain
    wide = [min(codes, n // 2) for n in domain.shape]
    shape = tuple(-(-n // w) for n, w in zip(domain.shape, wide, strict=True))
    kept = Domain(domain.attributes, shape)
    keys = kept.keys(domain.codes(table.keys) // wide)
    return SparseTable.from_keys(
        kept, keys, table.counts, table.bound, truth_public=table.truth_public
    )


def timing_rows(table: SparseTable, m: int, panel: str, x: float, profile: str) -> list[dict]:
    """Seconds of each method for m ranges over one table."""
    workload = random_queries("ranges", m, 0)
    history, total = noisy_answers(table, workload, 5, m), float(table.counts.sum())
    settings = dict(limit=0, chains=CHAINS, steps=STEPS[profile], tolerance=0.0)
    kernel = partial(improved_answers, KernelPCA(ALPHA["kernel"], total), history)
    entropy = partial(
        improved_answers, MaximumEntropy(ALPHA["entropy"], total, **settings), history
    )
    buying = partial(LaplaceQueries(BUDGET, workload), table)
    slow = [kernel] if m > SLOW else []
    others = seconds_in_turns(entropy, buying, repeat=SLOWLY, cold=[entropy, buying])
    spent = dict(zip((ENTROPY, BUYING), others, strict=True))
    repeat = SLOWLY if slow else REPEAT[profile]
    (spent[KERNEL],) = seconds_in_turns(kernel, repeat=repeat, cold=slow)
    about = {
        "panel": panel,
        "dataset": "IPUMSTwin",
        "truth_public": True,
        "epsilon": BUDGET.epsilon,
        "metric": "ProcessorTime",
        "m": m,
        _along(panel): x,
        "machine": machine(),
    }
    return [
        about | {"series": name, "value": min(spent[name]), "repeated": len(spent[name])}
        for name in (KERNEL, ENTROPY, BUYING)
    ]


def improved_answers(method, history) -> np.ndarray:
    """Improved answers to all past queries."""
    return method(history).answer(history.workload)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Time over each of the four."""
    return [Panel(words, {"panel": panel}, _along(panel)) for panel, words in OVER.items()]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds: a line a point, a column a method."""
    told = []
    for panel, words in OVER.items():
        for x, times in _times(rows, panel).iterrows():
            line = {"over": words, "": f"{x:,.0f}" if x < 1e7 else f"{x:.1e}"}
            told.append(line | {name: f"{seconds:.3g} s" for name, seconds in times.items()})
    return pd.DataFrame(told).set_index(["over", ""])


def _along(panel: str) -> str:
    return "universe" if panel == "merged" else panel


def _times(rows, panel: str) -> pd.DataFrame:
    some = rows[rows.panel == panel]
    return some.pivot_table("value", _along(panel), "series", sort=True)[
        [KERNEL, ENTROPY, BUYING]
    ]


def _running_time(rows) -> Finding:
    by = _times(rows, "queries")
    parts = {}
    for name in (KERNEL, ENTROPY):
        rise = by[name].iloc[-1] / by[name].iloc[0]
        words = f"{format_number(rise)}× for {format_number(by.index[-1] / by.index[0])}× the queries"
        parts[f"{name} grows with the queries"] = Finding(bool(rise > ALIKE), words)
        for panel in ("universe", "tuples"):
            times = _times(rows, panel)[name]
            spread = times.max() / times.min()
            ends = times.index[-1] / times.index[0]
            words = f"{format_number(spread)}× between sizes {format_number(ends)}× apart"
            parts[f"{name} not with the {OVER[panel]}"] = Finding(bool(spread <= ALIKE), words)
    rise = by.iloc[-1] / by.iloc[-2]
    parts["kernel PCA inapplicable for very many"] = Finding(
        bool(rise[KERNEL] >= 4), f"{format_number(rise[KERNEL])}× at the last doubling"
    )
    parts["maximum entropy is not"] = Finding(
        bool(rise[ENTROPY] <= 2.5), f"{format_number(rise[ENTROPY])}× at the last doubling"
    )
    return all_of(parts)


CLAIMS = (
    Claim(
        "n-5",
        "Running time grows with the number of queries, not with the size of database or universe; for "
        "very many queries kernel PCA becomes inapplicable, and maximum entropy does not.",
        _running_time,
        "All but one part holds: a sweep of our maximum entropy draws one attribute after the other "
        "from all its codes, so that seven more attributes, 3·10⁷ times the cells, cost 1.7×.",
    ),
)


if __name__ == "__main__":
    measured(sys.argv[1]).to_csv(sys.argv[2], index=False)
