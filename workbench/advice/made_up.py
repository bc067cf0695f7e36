"""Made-up data to rehearse on, where no formula says how far off a release is; nobody's."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.hierarchy import Hierarchy, Prefixes, Quadtree
from workbench.records import Records
from workbench.table import Bound, SparseTable
from workbench.workload import Boxes, Nodes, RandomBoxes, Workload

MOST_RECORDS = 100_000
_WORDS = 2000
_CENTRES = 20


def zipf_table(domain: Domain, total: int, bound: Bound) -> SparseTable:
    """About `total` counts in all cells, the i-th of them in proportion to 1/i."""
    shares = 1 / np.arange(1.0, domain.size + 1)
    counts = np.rint(total * shares / shares.sum()).astype(np.int64)
    keys = np.arange(domain.size)
    return SparseTable.from_keys(domain, keys, counts, bound, truth_public=True)


def records(tree: Quadtree | Prefixes, count: int, bound: Bound) -> Records:
    """Points around a few centres, a third of them anywhere; or words by Zipf's law."""
    rng = np.random.default_rng(0)
    if isinstance(tree, Quadtree):
        low, high = (np.array(corner, float) for corner in tree.box)
        centres = rng.random((_CENTRES, tree.dims))
        unit = centres[rng.integers(0, _CENTRES, count)]
        unit = unit + rng.normal(0, 0.02, unit.shape)
        anywhere = rng.random(count) < 1 / 3
        unit[anywhere] = rng.random((int(anywhere.sum()), tree.dims))
        values = low + (high - low) * unit.clip(0, 1)
    else:
        words = _words(tree)
        values = [words[i] for i in _zipf_places(count, rng)]
    return Records.from_values(tree, values, bound, truth_public=True)


def _words(tree: Prefixes) -> list[str]:
    """Different words of three symbols and more, where there are so many."""
    rng = np.random.default_rng(1)
    symbols = np.array(list(tree.alphabet))
    lengths = np.minimum(rng.integers(3, 9, _WORDS), tree.depth)
    return ["".join(symbols[rng.integers(0, len(symbols), n)]) for n in lengths]


def _zipf_places(count: int, rng: np.random.Generator) -> np.ndarray:
    shares = 1 / np.arange(1.0, _WORDS + 1)
    return rng.choice(_WORDS, count, p=shares / shares.sum())


def regions(tree: Quadtree | Prefixes) -> Workload | Nodes:
    """Boxes of a quarter of each side; or the beginnings of the most frequent words."""
    if isinstance(tree, Quadtree):
        side = max(1, tree.shape[0] // 4)
        space: Any = tree  # its sides are asked for, as a domain's
        boxes: Boxes = RandomBoxes((side,) * tree.dims, 50).on(space)
        return boxes
    beginnings = {word[:n] for word in _words(tree)[:50] for n in (1, 2)}
    return Nodes.of(tree, sorted(beginnings))


def region_words(tree: Hierarchy) -> str:
    """What `regions` asks."""
    if isinstance(tree, Quadtree):
        return "a box of a quarter of each side"
    return "strings that begin with one or two given symbols"


def record_words(tree: Hierarchy) -> str:
    """What `records` makes up."""
    if isinstance(tree, Quadtree):
        return f"points, a third anywhere, the others around {_CENTRES} centres"
    return f"strings out of {_WORDS:,}, by Zipf's law"
