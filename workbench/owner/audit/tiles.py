"""Tiles: many copies of a small input, side by side in one large input. In an audit, one release of all
copies replaces many runs of a mechanism.

This replacement is valid only if the release of a cell depends on this cell, on independent noise and on public
numbers, and on nothing else. The replacement is not valid if a transform or a tree combines cells, or if a
threshold or a sample depends on all cells. It is also not valid if reports of people are mixed. Parts of a
release that are not about single cells, for example a total, exist only once for all tiles. So an audit can
test these parts only by separate runs.
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
    """Return whether one release of many tiles (copies of an input) is equivalent to independent releases of
    each copy.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to check. For mechanisms from other packages, the result is always False.

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
    """Return whether a mechanism is part of the workbench. For mechanisms from other packages, audits also
    search for random draws that do not come from `rng`.
    """
    return cls.__module__.startswith("workbench.")


def tiles(
    mechanism: Any, pair: Pair, rng: np.random.Generator | None = None
) -> list[Callable[[], list[Output]]]:
    """Return two functions, one for each input of the pair. A call of a function makes one release of many
    tiles (copies) of this input, and returns a list with the output for each tile.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism for which `is_product` is true.
    pair : Pair
        Two neighbouring inputs, which are tables or interactions.
    rng : numpy Generator, optional
        Seeded generator, if you want the same noise in every call.

    Returns
    -------
    list of callables
    """
    tiled = [_tiled(data) for data in (pair.one, pair.other)]
    return [partial(_release_tiles, mechanism, data, rng) for data in tiled]


def _tiled(data: SparseTable | Interactions) -> Any:
    """Return a large input that contains many copies of the data. The cells of copy i are shifted by i times
    the number of cells.
    """
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
    """Make one release of all tiles. Return one output per tile, which contains the noisy values of this
    tile.
    """
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
