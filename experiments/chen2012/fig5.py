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
from experiments.chen2012.data import BUDGET, noisy_answers, random_queries
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
REPEAT = {"quick": 4, "paper": 9}
REPEAT_SLOW = 2
SLOW = 1000  # queries; above, kernel PCA is slow
ALPHA = {"kernel": 3000.0, "entropy": 1e-3}
STEPS = {"quick": 20, "paper": 200}
CHAINS = 2048
MERGED = {"quick": (8, 1), "paper": (8, 4, 2, 1)}  # codes
KERNEL = "kernel PCA"
ENTROPY = "maximum entropy"
BUYING = "buying the answers"
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
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    top = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        command = [sys.executable, "-m", "experiments.chen2012.fig5", profile, str(path)]
        subprocess.run(command, cwd=top, env=os.environ | one_thread, check=True)
        return pd.read_csv(path)


def measured(profile: str) -> pd.DataFrame:
    """The rows, timed here and now."""
    table = IPUMSTwin().load()
    fixed = FIXED[profile]
    times = []
    for m in QUERIES[profile]:
        times += timing_rows(table, m, "queries", m, profile)
    for d in ATTRIBUTES[profile]:
        part = fewer_attributes(table, d)
        times += timing_rows(part, fixed, "universe", float(part.domain.size), profile)
    for codes in MERGED[profile]:
        part = fewer_codes(table, codes)
        times += timing_rows(part, fixed, "merged", float(part.domain.size), profile)
    for n in TUPLES[profile]:
        times += timing_rows(IPUMSTwin(n).load(), fixed, "tuples", n, profile)
    return pd.DataFrame(times)


def fewer_attributes(table: SparseTable, d: int) -> SparseTable:
    """The same people by their d largest attributes."""
    shape = table.domain.shape
    axes = sorted(np.argsort([-n for n in shape], kind="stable")[:d].tolist())
    names = tuple(table.domain.attributes[axis] for axis in axes)
    domain = Domain(names, tuple(shape[axis] for axis in axes))
    codes = np.stack([table.domain.column(table.keys, name) for name in names], axis=1)
    return _recoded(table, domain, codes)


def fewer_codes(table: SparseTable, codes: int) -> SparseTable:
    """The same people with so many codes of each attribute made one, but two left at least."""
    widths = [min(codes, n // 2) for n in table.domain.shape]
    shape = tuple(-(-n // w) for n, w in zip(table.domain.shape, widths, strict=True))
    domain = Domain(table.domain.attributes, shape)
    return _recoded(table, domain, table.domain.codes(table.keys) // widths)


def _recoded(table: SparseTable, domain: Domain, codes: np.ndarray) -> SparseTable:
    keys = domain.keys(codes)
    public = table.truth_public
    return SparseTable.from_keys(domain, keys, table.counts, table.bound, truth_public=public)


def timing_rows(table: SparseTable, m: int, panel: str, x: float, profile: str) -> list[dict]:
    """Seconds of each method for m ranges over one table."""
    workload = random_queries("ranges", m, 0)
    history = noisy_answers(table, workload, 5, m)
    total = float(table.counts.sum())
    settings = dict(limit=0, chains=CHAINS, steps=STEPS[profile], tolerance=0.0)
    entropy_method = MaximumEntropy(ALPHA["entropy"], total, **settings)
    kernel = partial(improved_answers, KernelPCA(ALPHA["kernel"], total), history)
    entropy = partial(improved_answers, entropy_method, history)
    buying = partial(LaplaceQueries(BUDGET, workload), table)
    slow = (entropy, buying)
    slow_seconds = seconds_in_turns(*slow, repeat=REPEAT_SLOW, cold=slow)
    if m > SLOW:
        kernel_seconds = seconds_in_turns(kernel, repeat=REPEAT_SLOW, cold=[kernel])
    else:
        kernel_seconds = seconds_in_turns(kernel, repeat=REPEAT[profile])
    columns = {
        "panel": panel,
        "dataset": "IPUMSTwin",
        "truth_public": True,
        "epsilon": BUDGET.epsilon,
        "metric": "ProcessorTime",
        "m": m,
        _along(panel): x,
        "machine": machine(),
    }
    names = (KERNEL, ENTROPY, BUYING)
    return [
        columns | {"series": name, "value": min(seconds), "repeated": len(seconds)}
        for name, seconds in zip(names, kernel_seconds + slow_seconds, strict=True)
    ]


def improved_answers(method, history) -> np.ndarray:
    """Improved answers to all past queries."""
    return method(history).answer(history.workload)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Time over each of the four."""
    return [Panel(label, {"panel": panel}, _along(panel)) for panel, label in OVER.items()]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds: a line a point, a column a method."""
    lines = []
    for panel, label in OVER.items():
        for x, times in _times(rows, panel).iterrows():
            line = {"over": label, "": f"{x:,.0f}" if x < 1e7 else f"{x:.1e}"}
            lines.append(line | {name: f"{seconds:.3g} s" for name, seconds in times.items()})
    return pd.DataFrame(lines).set_index(["over", ""])


def _along(panel: str) -> str:
    return "universe" if panel == "merged" else panel


def _times(rows, panel: str) -> pd.DataFrame:
    times = rows[rows.panel == panel].pivot_table("value", _along(panel), "series", sort=True)
    return times[[KERNEL, ENTROPY, BUYING]]


def _running_time(rows) -> Finding:
    by_queries = _times(rows, "queries")
    queries = by_queries.index
    parts = {}
    for name in (KERNEL, ENTROPY):
        rise = by_queries[name].iloc[-1] / by_queries[name].iloc[0]
        times = (
            f"{format_number(rise)}× for {format_number(queries[-1] / queries[0])}× the queries"
        )
        parts[f"{name} grows with the queries"] = Finding(bool(rise > ALIKE), times)
        for panel in ("universe", "tuples"):
            seconds = _times(rows, panel)[name]
            spread = seconds.max() / seconds.min()
            sizes = seconds.index[-1] / seconds.index[0]
            times = f"{format_number(spread)}× between sizes {format_number(sizes)}× apart"
            parts[f"{name} not with the {OVER[panel]}"] = Finding(bool(spread <= ALIKE), times)
    rise = by_queries.iloc[-1] / by_queries.iloc[-2]
    times = rise.map(lambda x: f"{format_number(x)}× at the last doubling")
    inapplicable = Finding(bool(rise[KERNEL] >= 4), times[KERNEL])
    parts["kernel PCA inapplicable for very many"] = inapplicable
    parts["maximum entropy is not"] = Finding(bool(rise[ENTROPY] <= 2.5), times[ENTROPY])
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
