"""Adaptive histograms end to end: from points and strings to a release, time and memory a record.

10⁷ points in four dimensions at depth 12, 10⁷ strings of up to 12 characters (one word a key) and of
up to 20 (two words); an improved histogram with a threshold of 100 at ε = 1. Beside it, in the same
run: value counts of pandas level by level, the literal recursion on a hundredth of the records, and
numpy's sort of the strings as bytes, or of two-word keys.
"""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pandas as pd

from experiments.benchmarks import _timing as timing
from workbench import DP, Bound
from workbench.hierarchy import SYMBOLS, Prefixes, Quadtree
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.records import Records

N, NANOSECONDS, COPIES, TIMES = 10**7, 30, 3, 3
HISTOGRAM = ImprovedAdaptiveHistogram(DP(1.0), 100)


def main():
    """Processor time and memory."""
    rows, four, twelve, twenty = [], Quadtree(4, 12), Prefixes(depth=12), Prefixes(depth=20)
    places = points(N)
    each, peer = timing.median_seconds(
        partial(released, four, places), partial(by_level, four, places), repeat=3
    )
    slow = literal(four, places[:: N // 10**4])
    rows += [time("4-D points, depth 12", each, f"≤ {NANOSECONDS} ns", each <= NANOSECONDS * N / 1e9,
                  f"pandas by level {peer / N * 1e9:.3g} ns", peer / each),
             time("4-D points, depth 12", each, "", None,
                  f"literal recursion {slow * 1e9:.3g} ns", slow * N / each),
             memory("4-D points, depth 12", four, places)]  # fmt: skip
    del places
    short = strings(N, 12)
    each, peer = timing.median_seconds(
        partial(released, twelve, short), partial(np.sort, short), repeat=3
    )
    rows += [time("strings of up to 12", each, f"≤ {NANOSECONDS} ns", each <= NANOSECONDS * N / 1e9,
                  f"np.sort of bytes {peer / N * 1e9:.3g} ns", peer / each),
             memory("strings of up to 12", twelve, short)]  # fmt: skip
    del short
    long = strings(N, 20)
    keys = twenty.encode(long)[0]
    each, peer = timing.median_seconds(
        partial(released, twenty, long), partial(pairs, keys), repeat=3
    )
    rows += [time("strings of up to 20", each, f"≤ {TIMES}× the sort", each <= TIMES * peer,
                  f"np.lexsort of two-word keys {peer / N * 1e9:.3g} ns", peer / each)]  # fmt: skip
    del keys
    return timing.to_frame([*rows, memory("strings of up to 20", twenty, long)])


def released(tree, values):
    """What is measured: encoding, sorting, the structure, the counts."""
    return HISTOGRAM(Records.from_values(tree, values, Bound()))


def points(n: int) -> np.ndarray:
    """Clustered points in the unit cube, float32."""
    rng = np.random.default_rng(0)
    centres = rng.random((2000, 4))[rng.integers(0, 2000, n)]
    return (centres + rng.normal(0, 0.01, (n, 4))).clip(0, 1).astype(np.float32)


def strings(n: int, longest: int) -> np.ndarray:
    """Strings of at least 3 characters with Zipf frequencies, bytes."""
    rng = np.random.default_rng(0)
    symbols = np.frombuffer(SYMBOLS.encode(), np.uint8)
    words = symbols[np.minimum(rng.zipf(1.5, (500_000, longest)), len(symbols)) - 1]
    words[np.arange(longest) >= rng.integers(3, longest + 1, (len(words), 1))] = 0
    return words[rng.zipf(1.3, n) % len(words)].view(f"S{longest}").ravel()


def by_level(tree, values) -> None:
    """What one would write with pandas: value counts of the keys' prefixes, level by level."""
    keys = pd.Series(tree.encode(values)[0][0])
    for level in range(tree.depth):
        (keys // np.uint64(tree.digits.radices[0] ** (tree.depth - level))).value_counts()


def literal(tree, values) -> float:
    """Seconds a record of the recursion as printed, without the noise."""
    keys = tree.encode(values)[0][0].tolist()
    (spent,) = timing.median_seconds(partial(_recursion, keys, 16, tree.depth), repeat=1)
    return spent / len(keys)


def _recursion(keys: list, k: int, levels: int) -> int:
    if len(keys) < 10 or levels == 0:  # a threshold of 100 on all records
        return 1
    parts: list[list] = [[] for _ in range(k)]
    for key in keys:
        parts[key // k ** (levels - 1) % k].append(key)
    return sum(_recursion(part, k, levels - 1) for part in parts)


def pairs(keys: np.ndarray) -> np.ndarray:
    """A sort of two-word keys with numpy."""
    return keys[:, np.lexsort((keys[1], keys[0]))]


def time(
    what: str, spent: float, limit: str, met: bool | None, peer: str, ratio: float
) -> dict:
    """A row about time."""
    told = {"what": f"{what}: time a record", "ours": f"{spent / N * 1e9:.3g} ns"}
    return told | {"peer": peer, "ratio": ratio, "limit": limit or None, "met": met}


def memory(what: str, tree, values) -> dict:
    """A row about the most that is held at once, beyond the values, in copies of the keys."""
    tracemalloc.start()
    released(tree, values)
    copies = tracemalloc.get_traced_memory()[1] / (8 * tree.digits.word_count * len(values))
    tracemalloc.stop()
    return {
        "what": f"{what}: peak memory",
        "ours": f"{copies:.2g} copies of the keys",
        "limit": f"≤ {COPIES}",
        "met": copies <= COPIES,
    }


if __name__ == "__main__":
    timing.print_results(main)
