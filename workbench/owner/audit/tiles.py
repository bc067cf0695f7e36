"""Tiles: large inputs that contain many copies of one pair of neighbours.

A release of many tiles is equivalent to many runs if the release is a product. This means that every cell has
independent noise, and that its release depends only on this cell and on public numbers. The release is not a
product if a transform or a tree combines cells, if a threshold or a sample depends on all cells, or if reports
are mixed. Parts of a release other than cells are common to all tiles, so only separate runs can audit them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from workbench.data import Interactions, SparseTable
from workbench.mechanisms.neighbours import Pair
from workbench.owner.audit.outputs import Output
from workbench.spaces import Domain

COPIES = 1000
_PRODUCTS = (
    "GeometricHistogram HighPassFilter HPA Laborious LaplaceHistogram LPA SRA StabilityHistogram "
    "ThresholdSampling"
).split()
_JOINING = ("transform", "consistent", "size", "total")  # fields that must be off


def is_product(mechanism: Any) -> bool:
    """Return whether a release of tiles is equivalent to independent releases of each tile.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the workbench. For others the result is always False.

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
    cls = type(mechanism)
    inner = getattr(mechanism, "mechanism", mechanism)
    joins = any(getattr(inner, name, None) for name in _JOINING)
    return is_ours(cls) and cls.__name__ in _PRODUCTS and not joins


def is_ours(cls: type) -> bool:
    """Return whether a mechanism is part of the workbench, so that its laws are tested here. For others,
    audits also search for draws that bypass `rng`.
    """
    return cls.__module__.startswith("workbench.")


def tiles(
    mechanism: Any, pair: Pair, rng: np.random.Generator | None = None
) -> list[Callable[[], list[Output]]]:
    """Return one function per input that releases tiles of it, and returns the output of each tile.

    Parameters
    ----------
    mechanism : Mechanism
        for which `is_product` is true.
    pair : Pair of tables or interactions.
    rng : The same as for a release.

    Returns
    -------
    list of callables
    """
    tiled = [_tiled(data) for data in (pair.one, pair.other)]
    return [partial(_release_tiles, mechanism, data, rng) for data in tiled]


def _tiled(data: SparseTable | Interactions) -> Any:
    """Return an input with many copies of the data. Copy i is shifted by i times the size of the domain."""
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


def _release_tiles(mechanism: Any, data: Any, rng: Any) -> list[Output]:
    """Return the output for each tile from one release of all tiles."""
    estimate = mechanism(data, rng).estimate
    parts = {"cell": estimate}
    if hasattr(estimate, "edges"):
        parts = {"item": estimate.items, "edge": estimate.edges}
    numbers: list[dict[str, float]] = [{} for _ in range(COPIES)]
    for name, part in parts.items():
        cells = part.domain.size // COPIES
        keys = getattr(part, "keys", np.arange(part.domain.size))
        values = part.values.astype(float).ravel()
        for key, noisy in zip(keys.tolist(), values.tolist(), strict=True):
            numbers[key // cells][f"{name} {key % cells}"] = noisy
    return [Output(shown, (), hash(tuple(shown.items()))) for shown in numbers]
