"""Adaptive histograms end to end: from points and strings to a release, time and memory a record.

10⁷ points in four dimensions at depth 12, 10⁷ strings of up to 12 characters (one word a key) and of
up to 20 (two words); an improved histogram with a threshold of 100 at ε = 1. Beside it, in the same
run: value counts of pandas level by level, the literal recursion on a hundredth of the records, and
numpy's sort of the strings as bytes, or of two-word keys.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.benchmarks import _timing as timing
from experiments.benchmarks._timing import at_most, at_most_sorts, format_seconds, row
from workbench import DP, Bound
from workbench.compiled import pd
from workbench.data import Records
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.spaces import SYMBOLS, Prefixes, Quadtree

N = 10**7
SORTS = 0.6  # for 10⁶ records
COPIES = 3
TIMES = 3
HISTOGRAM = ImprovedAdaptiveHistogram(DP(1.0), 100)


def main():
    """Processor time and memory."""
    return timing.to_frame([*of_points(), *of_short_strings(), *of_long_strings()])


def of_points() -> list[dict]:
    """Points in four dimensions."""
    tree = Quadtree(4, 12)
    places = points(N)
    ours, pandas = timing.median_seconds(
        partial(released, tree, places), partial(by_level, tree, places), repeat=3
    )
    recursion = literal(tree, places[:: N // 10**4])
    what = "4-D points, depth 12"
    each = f"{what}: time a record"
    by_pandas = f"pandas by level {format_seconds(pandas, N)}"
    by_recursion = f"literal recursion {format_seconds(recursion)}"
    limit = at_most_sorts(ours / N * 1e6, SORTS)
    return [
        row(each, format_seconds(ours, N), by_pandas, pandas / ours, **limit),
        row(each, format_seconds(ours, N), by_recursion, recursion * N / ours),
        memory(what, tree, places),
    ]


def of_short_strings() -> list[dict]:
    """Strings whose keys are one word."""
    tree = Prefixes(depth=12)
    values = strings(N, 12)
    ours, sort = timing.median_seconds(
        partial(released, tree, values), partial(np.sort, values), repeat=3
    )
    what = "strings of up to 12"
    peer = f"np.sort of bytes {format_seconds(sort, N)}"
    limit = at_most_sorts(ours / N * 1e6, SORTS)
    return [
        row(f"{what}: time a record", format_seconds(ours, N), peer, sort / ours, **limit),
        memory(what, tree, values),
    ]


def of_long_strings() -> list[dict]:
    """Strings whose keys are two words."""
    tree = Prefixes(depth=20)
    values = strings(N, 20)
    keys = tree.encode(values)[0]
    ours, sort = timing.median_seconds(
        partial(released, tree, values), partial(sort_pairs, keys), repeat=3
    )
    what = "strings of up to 20"
    peer = f"np.lexsort of two-word keys {format_seconds(sort, N)}"
    limit = at_most(ours / sort, TIMES, "× the sort")
    return [
        row(f"{what}: time a record", format_seconds(ours, N), peer, sort / ours, **limit),
        memory(what, tree, values),
    ]


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
    (seconds,) = timing.median_seconds(partial(_recursion, keys, 16, tree.depth), repeat=1)
    return seconds / len(keys)


def _recursion(keys: list, k: int, levels: int) -> int:
    if len(keys) < 10 or levels == 0:  # a threshold of 100 on all records
        return 1
    parts: list[list] = [[] for _ in range(k)]
    for key in keys:
        parts[key // k ** (levels - 1) % k].append(key)
    return sum(_recursion(part, k, levels - 1) for part in parts)


def sort_pairs(keys: np.ndarray) -> np.ndarray:
    """A sort of two-word keys with numpy."""
    return keys[:, np.lexsort((keys[1], keys[0]))]


def memory(what: str, tree, values) -> dict:
    """A row about the most that is held at once, beyond the values, in copies of the keys."""
    peak, _ = timing.peak_bytes(partial(released, tree, values))
    copies = peak / (8 * tree.digits.word_count * len(values))
    ours = f"{copies:.2g} copies of the keys"
    return row(f"{what}: peak memory", ours, **at_most(copies, COPIES))


if __name__ == "__main__":
    timing.print_results(main)
