"""Leaves of strings: prefixes as wide as they have records, and the most frequent strings."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from workbench.datasets import QueryLogTwin
from workbench.estimates import Leaves
from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.metrics import RecoveredFraction, match_strings
from workbench.records import Records
from workbench.widgets.scenes import Picture, loaded
from workbench.widgets.scenes.leaf_maps import RELEASE, TRUTH

TOP = "top"
WIDE = 400  # prefixes of less than so many-th of all records are not drawn
LISTED = 40  # strings


def string_picture(
    dataset: QueryLogTwin, data: Records, release: Release, series: str
) -> Picture:
    """Prefixes of truth and release; how often the most frequent strings are released."""
    tree = data.hierarchy
    truth = _truth(dataset)
    prefixes, longest = _prefixes(release.estimate, RELEASE, series)
    keys, copies, true_counts = match_strings(data, release.estimate)
    frequent = true_counts >= min(truth.counts, default=1)
    texts = tree.texts(keys[:, frequent])
    released = dict(zip(texts, copies[frequent].tolist(), strict=True))
    ours = [released.get(text, np.nan) for text in truth.texts]  # NaN: it was not found
    place = np.arange(len(truth.texts)) + 1
    top = pd.DataFrame(dict(place=place, panel=TOP, metric="Count"))
    rows = [
        truth.prefixes,
        prefixes,
        top.assign(series="truth", value=truth.counts),
        top.assign(series=series, value=ours),
    ]
    first = zip(truth.texts[:3], np.nan_to_num(ours), truth.counts, strict=False)
    examples = [f"{text}: {count:,.0f} ({true:,})" for text, count, true in first]
    facts = [
        ("longest prefix", f"{longest} of {tree.depth} symbols"),
        ("recovered", f"{RecoveredFraction()(data, release.estimate):.1%} of all searches"),
        ("released (true)", ", ".join(examples)),
    ]
    return Picture(pd.concat(rows, ignore_index=True), facts)


class _Truth(NamedTuple):
    """The prefixes of a dataset; its most frequent strings, and how often they are there."""

    prefixes: pd.DataFrame
    texts: list[str]
    counts: list[int]


@lru_cache(8)
def _truth(dataset: QueryLogTwin) -> _Truth:
    data = loaded(dataset)
    tree = data.hierarchy
    keys, counts = data.level(tree.depth)
    leaves = Leaves(tree, np.full(len(counts), tree.depth), keys, counts)
    prefixes, _ = _prefixes(leaves, TRUTH, "truth")
    top = np.argsort(-counts, kind="stable")[:LISTED]
    return _Truth(prefixes, tree.texts(keys[:, top]), counts[top].tolist())


def _prefixes(leaves: Leaves, panel: str, series: str) -> tuple[pd.DataFrame, int]:
    """A box for each prefix with many records, as wide as these, on that of its beginning; the longest.

    Empty leaves have noise too, so that boxes may stand a little beside the one that they stand on.
    """
    tree = leaves.hierarchy
    width = max(1, leaves.values.sum())
    sheet = pd.DataFrame(dict(x0=[0], x1=[width], y0=0, y1=tree.depth, value=0.0))
    boxes = [sheet]
    longest = 0
    for level in range(1, tree.depth + 1):
        merged = leaves.coarsened(level)
        last_symbol = tree.digits.digit(level - 1, merged.keys)
        goes_on = (merged.levels == level) & (last_symbol > 0)
        if not goes_on.any():
            break
        longest = level
        ends = np.cumsum(merged.values)
        wide = goes_on & (merged.values * WIDE > max(0, ends[-1]))
        right = ends[wide]
        counts = merged.values[wide]
        boxes.append(
            pd.DataFrame(
                dict(x0=right - counts, x1=right, y0=level - 1, y1=level, value=counts)
            )
        )
    rows = pd.concat(boxes, ignore_index=True).assign(
        panel=panel,
        series=series,
        metric="Count",
        labels="records, in the order of their strings|symbols",
    )
    return rows, longest
