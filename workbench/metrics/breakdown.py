"""Where the squared error of a release of items and edges comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.arrays import Float, Int
from workbench.interactions import Interactions
from workbench.libraries import pd
from workbench.metrics.counts import count_pair
from workbench.metrics.refusal import refuse_private


def breakdown(data: Interactions, mechanism: Any, seeds: Iterable[int]) -> pd.DataFrame:
    """Where a release's squared error comes from, by tenths of the items.

    What was dropped is no part of a release, so that each one is replayed:
    `mechanism.bounded_data(data, rng)` gives the records that `mechanism(data, rng)` counts, if both
    start from the same seed.

    Parameters
    ----------
    data : Interactions
        Whose truth is public.
    mechanism : SRA, HPA, GS …
        Any with `bounded_data`.
    seeds : iterable of int
        A release each.

    Returns
    -------
    pandas.DataFrame
        A row a seed, table and tenth of the items, with the columns

        `of`, `decile`   items or edges; tenths of the items by true count, 10 the most popular
        `cells`          how many counts that is
        `dropped`        Σ (kept − truth)²
        `noise`          Σ (released − kept)², with what smoothing does where there is any
        `interaction`    2·Σ (released − kept)·(kept − truth), 0 on average where noise is unbiased
        `clipping`       what putting counts below 0 to 0 changes: never above 0
        `total`          their sum: Σ (max(released, 0) − truth)², in records²

    Raises
    ------
    ValueError
        If the truth is private, or the mechanism does not say which records it keeps.
    """
    refuse_private(data)
    if not hasattr(mechanism, "bounded_data"):
        raise ValueError(
            f"{mechanism!r} does not say which records it keeps: need `bounded_data`"
        )
    frames = []
    for seed in seeds:
        kept = mechanism.bounded_data(data, np.random.default_rng(seed))
        released = mechanism(data, np.random.default_rng(seed)).estimate
        frames.append(error_parts(data, kept, released).assign(seed=seed))
    return pd.concat(frames, ignore_index=True)


def error_parts(
    data: Interactions, kept_data: Interactions, released_data: Any
) -> pd.DataFrame:
    """Where the squared error of one release is from: the rows of `breakdown`, without a seed.

    Parameters
    ----------
    data : Interactions
        Whose truth is public.
    kept_data : Interactions
        The records that were counted.
    released_data : ItemEdgeCounts
        What was released of them.

    Returns
    -------
    pandas.DataFrame
        A row a table and tenth of the items.
    """
    import pandas as pd

    refuse_private(data)
    decile = _deciles(data)
    items = len(decile)
    rows = []
    for of in ("items", "edges"):
        exact, kept = count_pair(data, kept_data, of)
        released = count_pair(data, released_data, of).estimated
        cells = exact.size // items
        cells_of_decile = cells * np.bincount(decile, minlength=10)
        sums = {
            name: np.bincount(decile, errors.reshape(items, cells).sum(axis=1), 10)
            for name, errors in _squared_errors(exact, kept, released).items()
        }
        for i in np.flatnonzero(cells_of_decile):
            row = {"of": of, "decile": i + 1, "cells": cells_of_decile[i]}
            rows.append(row | {name: by_decile[i] for name, by_decile in sums.items()})
    return pd.DataFrame(rows)


def _deciles(data: Interactions) -> Int[np.ndarray, " items"]:
    """The tenth of each item by true count, 9 for the most popular."""
    items = data.domain.shape[0]
    rank = np.empty(items, np.int64)
    rank[np.argsort(data.item_counts(), kind="stable")] = np.arange(items)
    return 10 * rank // items


def _squared_errors(
    exact: np.ndarray, kept: np.ndarray, released: np.ndarray
) -> dict[str, Float[np.ndarray, "..."]]:
    """The parts of each count's squared error, and the whole of it."""
    clipped = np.maximum(released, 0)
    return {
        "dropped": (kept - exact) ** 2,
        "noise": (released - kept) ** 2,
        "interaction": 2 * (released - kept) * (kept - exact),
        "clipping": (clipped - exact) ** 2 - (released - exact) ** 2,
        "total": (clipped - exact) ** 2,
    }
