"""How far a release is from the truth: values that take (truth, estimate) and give a number.

Both sides answer the same workload. An error against the truth is an exact function of private data,
so metrics refuse unless the table is public or says `truth_public`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from workbench.compiled import njit
from workbench.estimates import Leaves, Summary
from workbench.hierarchy import Keys, Prefixes, Quadtree, places
from workbench.interactions import Interactions
from workbench.records import Records
from workbench.table import PUBLIC, SparseTable
from workbench.value import parameter, value
from workbench.workload import Ranges, Workload

if TYPE_CHECKING:
    import pandas as pd


def _refuse_private(truth: SparseTable | Interactions | Records) -> None:
    if truth.bound is not PUBLIC and not truth.truth_public:
        raise ValueError(
            "this table does not say truth_public: an error against it is an exact function of private "
            "data and would leak it; `advise` works from public quantities"
        )


def _answers(truth: SparseTable, estimate: Any, workload: Workload, options: dict):
    _refuse_private(truth)
    if getattr(estimate, "domain", truth.domain) != truth.domain:
        names = (" × ".join(x.domain.attributes) for x in (estimate, truth))
        raise ValueError(
            "an estimate over {} has no error against a truth over {}".format(*names)
        )
    workload = workload.on(truth.domain)
    return truth.answer(workload), estimate.answer(workload, **options)


@value
class MeanAbsoluteError:
    """Mean over queries of |estimate − truth|, in counts."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float(np.abs(answers - exact).mean())


@value
class MedianRelativeError:
    """Median over queries of |estimate − truth| / truth; queries whose truth is 0 are left out."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error as a fraction; NaN if every query is empty."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        some = exact > 0
        relative = np.abs(answers[some] - exact[some]) / exact[some]
        return float(np.median(relative)) if some.any() else float("nan")


@value
class MeanSignedError:
    """Mean over queries of estimate − truth, in counts: what is left is bias."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The mean deviation, in counts."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float((answers - exact).mean())


@value
class MeanSquaredError:
    """Mean over queries of (estimate − truth)², in counts²."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts²."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float(((answers - exact) ** 2).mean())


@value
class SquaredError:
    """Sum over all cells of (estimate − truth)², in counts²: the error of a whole histogram."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts²; an estimate over another domain is a ValueError."""
        cells = np.arange(truth.domain.size)
        exact, answers = _answers(truth, estimate, Ranges(cells, cells + 1), {})
        return float(((answers - exact) ** 2).sum())


@value
class HeldCells:
    """The fraction of the truth's non-empty cells that the release names."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN for an empty table."""
        _refuse_private(truth)
        if type(estimate) is not Summary:
            raise ValueError(f"{estimate!r} names no cells: HeldCells needs a Summary")
        held = np.isin(truth.keys, estimate.keys, assume_unique=True)
        return float(held.mean()) if len(held) else float("nan")


def _of() -> Any:
    """The field of a metric that is about one of two tables."""
    return parameter("items", choices=("items", "edges"), doc="which counts are compared")


def _counts(truth: Interactions, estimate: Any, of: str) -> tuple[np.ndarray, np.ndarray]:
    """Exact and estimated counts, of (items,) or of (items, contexts)."""
    _refuse_private(truth)
    if estimate.domain != truth.domain:
        names = (" × ".join(x.domain.attributes) for x in (estimate, truth))
        raise ValueError(
            "an estimate over {} has no error against a truth over {}".format(*names)
        )
    shape = truth.domain.shape if of == "edges" else truth.domain.shape[:1]
    sides = []
    for x in (truth, estimate):
        if isinstance(x, Interactions):
            counts = x.edge_counts() if of == "edges" else x.item_counts()
        else:
            counts = getattr(x, of).values
        sides.append(np.asarray(counts, float).reshape(shape))
    return sides[0], sides[1]


@value
class MeanSquaredCountError:
    """Mean over items, or over edges, of (estimate − truth)², in records².

    As in every metric of interactions, the estimate is what was released, `Tables`, or the records that
    a mechanism kept, `Interactions`: then the error is that of the sampling alone.
    """

    of: str = _of()

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """The error, in records²."""
        exact, counts = _counts(truth, estimate, self.of)
        return float(((counts - exact) ** 2).mean())


@value
class KLDivergence:
    """Σ p·ln(p/q) between the released and the original distribution of records, in nats.

    p is the released one and q the original, or the other way round. Counts <= 0 become `floor`, on
    both sides, before they are divided by their sum; counts between 0 and `floor` stay.
    """

    of: str = _of()
    direction: str = parameter(
        "released_given_original",
        choices=("released_given_original", "original_given_released"),
        doc="which of the two is p, and which is given",
    )
    floor: float = parameter(0.01, 0, strict=True, unit="records", doc="of counts <= 0")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """The divergence, in nats."""
        q, p = (np.where(x > 0, x, self.floor) for x in _counts(truth, estimate, self.of))
        p, q = p / p.sum(), q / q.sum()
        if self.direction == "original_given_released":
            p, q = q, p
        return float((p * np.log(p / q)).sum())


@value
class TopPrecision:
    """The fraction of the k highest released counts that are among the k highest true ones.

    Edges: of the items in each context, averaged over contexts. Where counts tie at the k-th place, on
    either side, the metric is its mean if they were put in random order, independently on both sides.
    """

    k: int = parameter(low=1, integer=True, doc="at most all items")
    of: str = _of()

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """A fraction in [0, 1]."""
        exact, counts = _counts(truth, estimate, self.of)
        k, items = min(self.k, len(exact)), len(exact)
        both = _in_top(exact.reshape(items, -1), k) * _in_top(counts.reshape(items, -1), k)
        return float(both.sum(axis=0).mean() / k)


def _in_top(
    counts: Float[np.ndarray, "items lists"], k: int
) -> Float[np.ndarray, "items lists"]:
    """The chance that an item is among the k highest of its list, ties being in random order."""
    last = np.partition(counts, -k, axis=0)[-k]
    above, level = counts > last, counts == last
    return above + level * ((k - above.sum(axis=0)) / level.sum(axis=0))


@value
class ContextShare:
    """The fraction of records that the estimate puts in one context; edges below 0 count as 0.

    Of the truth itself, given as the estimate, it is the true fraction.
    """

    context: int = parameter(low=0, integer=True, doc="the context's code")

    def __call__(self, truth: Interactions, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN where nothing is above 0."""
        if self.context >= (contexts := truth.domain.shape[1]):
            raise ValueError(
                f"ContextShare.context = {self.context} is not allowed: need a code below {contexts}"
            )
        _, counts = _counts(truth, estimate, "edges")
        held = np.maximum(counts, 0).sum(axis=0)
        return float(held[self.context] / held.sum()) if held.any() else float("nan")


@value
class SampledSize:
    """The fraction of the records that are kept; the estimate is what a mechanism's `kept` returns."""

    def __call__(self, truth: Interactions, estimate: Interactions) -> float:
        """A fraction in [0, 1]; NaN where there are no records."""
        _refuse_private(truth)
        if not isinstance(estimate, Interactions):
            raise ValueError(
                f"{estimate!r} does not tell how many records it stands for: SampledSize needs the "
                "Interactions that the mechanism's `kept` returns"
            )
        return len(estimate) / len(truth) if len(truth) else float("nan")


def breakdown(data: Interactions, mechanism: Any, seeds: Iterable[int]) -> pd.DataFrame:
    """Where a release's squared error comes from: a row a seed, table and tenth of the items.

    What was dropped is no part of a release, so that each one is replayed: `mechanism.kept(data, rng)`
    gives the records that `mechanism(data, rng)` counts, if both start from the same seed. Columns:

    `of`, `decile`   items or edges; tenths of the items by true count, 10 the most popular
    `cells`          how many counts that is
    `dropped`        Σ (kept − truth)²
    `noise`          Σ (released − kept)², with what smoothing does where there is any
    `interaction`    2·Σ (released − kept)·(kept − truth), 0 on average where the noise is unbiased
    `clipping`       what putting counts below 0 to 0 changes: never above 0
    `total`          their sum: Σ (max(released, 0) − truth)², in records²
    """
    import pandas as pd

    _refuse_private(data)
    if not hasattr(mechanism, "kept"):
        raise ValueError(f"{mechanism!r} does not say which records it keeps: need `kept`")
    n, rows = data.domain.shape[0], []
    rank = np.empty(n, np.int64)
    rank[np.argsort(data.item_counts(), kind="stable")] = np.arange(n)
    decile = 10 * rank // n
    for seed in seeds:
        kept = mechanism.kept(data, np.random.default_rng(seed))
        released = mechanism(data, np.random.default_rng(seed)).estimate
        for of in ("items", "edges"):
            exact, before = _counts(data, kept, of)
            _, after = _counts(data, released, of)
            parts = {
                "dropped": (before - exact) ** 2,
                "noise": (after - before) ** 2,
                "interaction": 2 * (after - before) * (before - exact),
                "clipping": (np.maximum(after, 0) - exact) ** 2 - (after - exact) ** 2,
                "total": (np.maximum(after, 0) - exact) ** 2,
            }
            cells = exact.size // n
            sums = {
                name: np.bincount(decile, x.reshape(n, cells).sum(axis=1), 10)
                for name, x in parts.items()
            }
            held = cells * np.bincount(decile, minlength=10)
            for i in np.flatnonzero(held):
                told = {"seed": seed, "of": of, "decile": i + 1, "cells": held[i]}
                rows.append(told | {name: x[i] for name, x in sums.items()})
    return pd.DataFrame(rows)


def found_strings(
    truth: Records, estimate: Leaves | Records, prefixes: bool = False
) -> tuple[Keys, Int[np.ndarray, " strings"], Int[np.ndarray, " strings"]]:
    """The different synthetic strings: their keys, how often each appears, and in the corpus.

    A leaf whose string has not ended stands for a beginning, of which nobody knows how it goes on. It
    is no string, unless `prefixes` takes it as it stands; the corpus may have such a string or not.
    """
    _refuse_private(truth)
    tree = truth.hierarchy
    if not isinstance(tree, Prefixes) or estimate.domain != tree:
        raise ValueError(
            f"strings of {estimate.domain!r} cannot be found in a corpus of {tree!r}: need the same "
            "Prefixes"
        )
    if isinstance(estimate, Leaves):
        keys, counts = estimate.keys, estimate.counts()
        known = np.ones(len(estimate), bool) if prefixes else _ended(tree, estimate)
        some = known & (counts > 0)
        keys, counts = keys[:, some], counts[some]
    else:
        keys, counts = estimate.level(tree.depth)
    corpus, exact = truth.level(tree.depth)
    at = places(corpus, keys)
    there = at < len(exact)
    there[there] = (corpus[:, at[there]] == keys[:, there]).all(axis=0)
    held = np.zeros(len(counts), np.int64)
    held[there] = exact[at[there]]
    return keys, counts, held


def _ended(tree: Prefixes, leaves: Leaves) -> np.ndarray:
    """Which leaves are whole strings: those that cannot be split."""
    ended = np.zeros(len(leaves), bool)
    for level in np.unique(leaves.levels):
        here = leaves.levels == level
        ended[here] = tree.children(int(level), leaves.keys[:, here]) == 0
    return ended


@value
class RecoveredFraction:
    """The fraction of a corpus of strings that is found in synthetic ones, each copy once.

    It is of those strings that the corpus has `low` to `high` times. `prefixes`: see `found_strings`.
    """

    low: int = parameter(1, 1, integer=True, unit="times")
    high: int | None = parameter(None, 1, integer=True, unit="times")
    prefixes: bool = parameter(False, choices=(False, True), doc="count beginnings as strings")

    def __post_init__(self):
        if self.high is not None and self.high < self.low:
            raise ValueError(f"{self!r} is not allowed: need high >= low")

    def __call__(self, truth: Records, estimate: Leaves | Records) -> float:
        """A fraction in [0, 1]; NaN where the corpus has no such string."""
        _, counts, held = found_strings(truth, estimate, self.prefixes)
        exact = truth.level(truth.hierarchy.depth)[1]
        total = exact[self._asked(exact)].sum()
        found = np.minimum(counts, held)[self._asked(held)].sum()
        return float(found / total) if total else float("nan")

    def _asked(self, counts: Int[np.ndarray, " n"]) -> np.ndarray:
        high = np.iinfo(np.int64).max if self.high is None else self.high
        return (counts >= self.low) & (counts <= high)


def recovered_by_frequency(
    truth: Records,
    estimate: Leaves | Records,
    descending: bool = False,
    prefixes: bool = False,
) -> pd.DataFrame:
    """How much of a corpus of strings is found, cumulated by frequency: a row a frequency f.

    `data` is the part of the corpus that is of strings it has at most f times, `recovered` what is
    found of that, each copy once, as a part of the whole corpus; with `descending`, of strings it has
    at least f times. `prefixes`: see `found_strings`.
    """
    import pandas as pd

    _, counts, held = found_strings(truth, estimate, prefixes)
    exact = truth.level(truth.hierarchy.depth)[1]
    frequency, many = np.unique(exact, return_counts=True)
    there = held > 0
    at = np.searchsorted(frequency, held[there])
    found = np.bincount(at, np.minimum(counts, held)[there], len(frequency))
    if descending:
        frequency, many, found = frequency[::-1], many[::-1], found[::-1]
    total = max(1, exact.sum())
    return pd.DataFrame(
        {
            "frequency": frequency,
            "data": np.cumsum(frequency * many) / total,
            "recovered": np.cumsum(found) / total,
        }
    )


@value
class EarthMover:
    """Indyk's bound on the earth mover's distance, from counts of cells at all levels.

    Σ over levels 0 … `depth`, and over the cells of each, of a cell's diameter × how many records one
    side has there more than the other. The box that is halved counts as a unit cube, so that the
    result is in records × its side. For two sets of n records it is, with n × the diameter of the last
    level, at least the sum of the distances that records must move. `seed` places points in leaves.
    """

    depth: int = parameter(low=0, high=52, integer=True, unit="levels", doc="the finest cells")
    seed: int = parameter(0, 0, integer=True, doc="of the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """The sum over all levels, in records × side."""
        return float(self.levels(truth, estimate).sum())

    def levels(self, truth: Records, estimate: Any) -> Float[np.ndarray, " levels"]:
        """The part of each level, the root's first, in records × side.

        Either side may be records that are public, or an estimate that has `synthetic` ones.
        """
        tree, ours, theirs = truth.hierarchy, _public(truth), _public(estimate, self.seed)
        if not isinstance(tree, Quadtree) or theirs.hierarchy != tree:
            raise ValueError(
                f"EarthMover compares points in one Quadtree, not {tree!r} and {theirs.hierarchy!r}"
            )
        if self.depth > tree.depth:
            raise ValueError(
                f"EarthMover.depth = {self.depth!r} is not allowed: {tree!r} is no deeper"
            )
        digits, apart = tree.digits, np.zeros(self.depth + 1, np.int64)
        word = np.array([0, *map(digits.word, range(self.depth))])
        width = np.array([0, *(n.bit_length() - 1 for n in digits.widths[: self.depth])])
        sides = [
            (x.keys, np.empty(0, np.int64) if x.counts is None else x.counts)
            for x in (ours, theirs)
        ]
        _apart(*sides[0], *sides[1], word, width.astype(np.uint64), apart)
        return apart * np.sqrt(tree.dims) / 2.0 ** np.arange(self.depth + 1)


@njit(cache=True, nogil=True)
def _apart(a, many, b, others, word, width, apart):
    """One pass over both sides, in the order of keys, with a running sum for the node at each level."""
    i, j, depth = 0, 0, apart.size - 1
    sums, high, low = np.zeros(depth + 1, np.int64), np.uint64(0), np.uint64(0)
    while i < a.shape[1] or j < b.shape[1]:
        ours = j == b.shape[1]
        if not ours and i < a.shape[1]:
            ours = a[0, i] < b[0, j] or (a[0, i] == b[0, j] and a[-1, i] <= b[-1, j])
        if ours:
            h, l, n = a[0, i], a[-1, i], many[i] if many.size else 1  # noqa: E741
            i += 1
        else:
            h, l, n = b[0, j], b[-1, j], -others[j] if others.size else -1  # noqa: E741
            j += 1
        level = depth
        while level > 0:
            shift = width[level]
            if word[level] == 0:
                same = h >> shift == high >> shift
            else:
                same = h == high and l >> shift == low >> shift
            if same:
                break
            apart[level] += abs(sums[level])
            sums[level - 1] += sums[level]
            sums[level] = 0
            level -= 1
        high, low = h, l
        sums[depth] += n
    for level in range(depth, -1, -1):
        apart[level] += abs(sums[level])
        if level:
            sums[level - 1] += sums[level]


def _public(data: Any, seed: int = 0) -> Records:
    """Records that may be compared: the synthetic ones of an estimate, or those that are public."""
    records = data if isinstance(data, Records) else data.synthetic(seed)
    _refuse_private(records)
    return records


EARTH = 6371.0088  # mean radius, km


def great_circle(lat1, lon1, lat2, lon2) -> Float[np.ndarray, " n"]:
    """Distances on the globe in km (haversine), of latitudes and longitudes in degrees."""
    lat1, lon1, lat2, lon2 = map(np.radians, (lat1, lon1, lat2, lon2))
    half = np.sin((lat2 - lat1) / 2) ** 2
    half += np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1)))


@value
class CommuteDistances:
    """Kolmogorov's distance of commutes from a place: the largest gap of two distribution functions.

    Of records (home latitude, home longitude, work latitude, work longitude, in degrees) those with a
    home within `radius` of the place, and how far away they work, on the globe. `seed` places synthetic
    points in their leaves; records stand in the middle of their finest cells.
    """

    latitude: float = parameter(low=-90, high=90, unit="degrees")
    longitude: float = parameter(low=-180, high=180, unit="degrees")
    radius: float = parameter(low=0, high=20_100, strict=True, unit="km")
    seed: int = parameter(0, 0, integer=True, doc="of the points")

    def __call__(self, truth: Records, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN if nobody lives there."""
        sides = [self._distances(x) for x in (truth, estimate)]
        if not all(len(counts) for _, counts in sides):
            return float("nan")
        at = np.concatenate([distances for distances, _ in sides])
        first, second = (_share(*side, at) for side in sides)
        return float(np.abs(first - second).max())

    def cdf(self, data: Any, at: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The fraction of those who live there that works at most `at` km away; NaN if nobody does."""
        return _share(*self._distances(data), np.asarray(at, float))

    def commutes(self, data: Any) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
        """Those who live there, of records or an estimate: points in degrees, and how many of each."""
        points, counts = _commutes(data, self.seed)
        there = np.flatnonzero(
            np.abs(points[:, 0] - self.latitude) <= 1.001 * self.radius / 111
        )
        home = points[there, :2].T
        there = there[great_circle(*home, self.latitude, self.longitude) <= self.radius]
        return points[there], counts[there]

    def _distances(self, data: Any) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """Distances in km, ascending, and how many have each."""
        points, counts = self.commutes(data)
        distances = great_circle(*points.T)
        by = np.argsort(distances, kind="stable")
        return distances[by], counts[by]


_KNOWN: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # asked about many places


def _commutes(data: Any, seed: int) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
    tree = data.hierarchy
    if not isinstance(tree, Quadtree) or tree.dims != 4:
        raise ValueError(
            f"commutes are points of a Quadtree of 4 dimensions, home and work, not of {tree!r}"
        )
    if isinstance(data, Records):
        _refuse_private(data)
    if data not in _KNOWN or _KNOWN[data][0] != seed:
        _KNOWN[data] = seed, *_points(data, tree, seed)
    return _KNOWN[data][1:]


def _points(
    data: Any, tree: Quadtree, seed: int
) -> tuple[Float[np.ndarray, "n 4"], Int[np.ndarray, " n"]]:
    if not isinstance(data, Records):
        points = data.points(seed)
        return points, np.ones(len(points), np.int64)
    low, high = (np.array(x) for x in tree.box)
    points = low + (high - low) * (tree.corners(data.keys).T + 0.5) / 2**tree.depth
    return points, np.ones(len(data), np.int64) if data.counts is None else data.counts


def _share(distances, counts, at) -> Float[np.ndarray, " at"]:
    """The fraction of `counts` whose distances, ascending, are at most `at`."""
    if not len(counts):
        return np.full(at.shape, np.nan)
    ends = np.append(0, np.cumsum(counts))
    return ends[np.searchsorted(distances, at, "right")] / ends[-1]
