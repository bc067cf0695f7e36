"""Many copies of a tiny input beside each other in one large one: many runs for the price of one release.

That is the same as so many runs where the release is a product: every cell has noise of its own, and
whether it is released depends on that cell and on public numbers alone. It does not where a transform or a
tree joins cells, where a threshold or a sample is chosen from all of them, or where reports are mixed.
What is released beside the cells is one for all copies, and is left to plain runs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from workbench.audit.events import Evidence, strongest_evidence
from workbench.audit.outputs import Output
from workbench.audit.pairs import Pair
from workbench.domain import Domain
from workbench.estimates import Histogram, ItemEdgeCounts, Summary
from workbench.interactions import Interactions
from workbench.table import SparseTable

COPIES = 1000
_PRODUCTS = (
    "GeometricHistogram",
    "HighPassFilter",
    "HPA",
    "Laborious",
    "LaplaceHistogram",
    "LPA",
    "SRA",
    "StabilityHistogram",
    "ThresholdSampling",
)
_JOINING = ("transform", "consistent", "size", "total")  # fields that must be off


def is_product(mechanism: Any) -> bool:
    """Whether a release of tiles is as many independent releases.

    Parameters
    ----------
    mechanism : Mechanism
        Of ours; of no other it is known.

    Returns
    -------
    bool

    Examples
    --------
    >>> from workbench import DP, Dyadic
    >>> from workbench.mechanisms import HighPassFilter
    >>> is_product(HighPassFilter(DP(1.0), 4))
    True
    >>> is_product(HighPassFilter(DP(1.0), 4, transform=Dyadic()))
    False
    """
    if not type(mechanism).__module__.startswith("workbench."):
        return False
    if type(mechanism).__name__ not in _PRODUCTS:
        return False
    inner = getattr(mechanism, "mechanism", mechanism)
    return not any(getattr(inner, name, None) for name in _JOINING)


def evidence_of_tiles(
    mechanism: Any,
    pair: Pair,
    delta: float,
    level: float,
    runs: int,
    most_seconds: float,
    rng: np.random.Generator | None = None,
) -> tuple[Evidence, int]:
    """The largest lower bound on ε that tiles show, and how many there were of either input.

    Parameters
    ----------
    mechanism : one that `is_product`.
    pair : of tables or interactions.
    delta, level : as for `strongest_evidence`.
    runs : at least so many tiles of either input, unless time ends first.
    most_seconds : of processor time.
    rng : as for a release.

    Returns
    -------
    Evidence
    int
    """
    tiled = [_tiled(data) for data in (pair.one, pair.other)]
    drawn: tuple[list[Output], list[Output]] = ([], [])
    end = time.process_time() + most_seconds
    while len(drawn[0]) < runs and (not drawn[0] or time.process_time() < end):
        for data, outputs in zip(tiled, drawn, strict=True):
            outputs += _cut(mechanism(data, rng).estimate)
    return strongest_evidence(*drawn, delta, level), len(drawn[0])


def _tiled(data: SparseTable | Interactions) -> Any:
    """So many copies, that of tile i at the places from i times the domain's size on."""
    tiles = np.arange(COPIES)[:, None]
    if isinstance(data, SparseTable):
        domain = Domain(("tile", "cell"), (COPIES, data.domain.size))
        keys = (tiles * data.domain.size + data.keys).ravel()
        return SparseTable.from_keys(domain, keys, np.tile(data.counts, COPIES), data.bound)
    items, contexts = data.domain.shape
    domain = Domain(data.domain.attributes, (COPIES * items, contexts))
    people = int(data.users.max(initial=0)) + 1
    columns = (
        (tiles * people + data.users).ravel(),
        (tiles * items + data.items).ravel(),
        np.tile(data.contexts, COPIES),
    )
    return Interactions.from_codes(domain, *columns, data.bound)


def _cut(estimate: Any) -> list[Output]:
    """What each tile shows."""
    if isinstance(estimate, Summary):
        return _cut_summary(estimate)
    parts = (
        {"cell": estimate} if isinstance(estimate, Histogram) else _items_and_edges(estimate)
    )
    columns: dict[str, np.ndarray] = {}
    for name, histogram in parts.items():
        values = histogram.values.reshape(COPIES, -1)
        columns |= {f"{name} {i}": values[:, i] for i in range(values.shape[1])}
    rows = np.stack(list(columns.values()), axis=1).tolist()
    return [Output(dict(zip(columns, row, strict=True)), (), hash(tuple(row))) for row in rows]


def _items_and_edges(estimate: ItemEdgeCounts) -> dict[str, Histogram]:
    return {"item": estimate.items, "edge": estimate.edges}


def _cut_summary(summary: Summary) -> list[Output]:
    cells = summary.domain.shape[1]
    numbers: list[dict[str, float]] = [{} for _ in range(COPIES)]
    values = summary.values.astype(float).tolist()
    for key, noisy in zip(summary.keys.tolist(), values, strict=True):
        tile, cell = divmod(key, cells)
        numbers[tile][f"cell {cell}"] = noisy
    return [Output(shown, (), hash(tuple(shown.items()))) for shown in numbers]
