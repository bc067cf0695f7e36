"""Stories: one page per paper that computes in the browser, without a kernel or a network."""

from __future__ import annotations

import json
from functools import cache
from math import ceil, exp, log
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data import Records
from workbench.datasets import Towns
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.privacy import DP
from workbench.value import Int

FOLDER = Path(__file__).parent / "stories"
EPSILONS = (
    "0.05 0.06 0.08 0.1 0.13 0.16 0.2 0.25 0.32 0.4 0.5 0.63 0.8 1 1.3 1.6 2 2.5 3.2 4 5"
).split()  # settings of a slider, ten per decade
STORIES = {
    "cormode2012": "sparse",
    "adaptive2009": "adaptive",
    "fan2015": "contributions",
}  # by paper
TITLES = {
    "sparse": "A table that is mostly empty",
    "adaptive": "A map that splits where people are",
    "contributions": "How many records of each person to use",
}


def thresholds(epsilon: float, sensitivity: int = 1, bits: int = 31) -> list[int]:
    """Integer thresholds from which a page draws two-sided geometric noise z.

    The size |z| is the number of thresholds at or below an integer of `bits` random bits.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0.
    sensitivity : int
        Sum of the changes that one person makes to the counts.
    bits : int
        Bits of the random integer. The distribution is exact to 2⁻ᵇⁱᵗˢ, which is enough for a simulation.

    Returns
    -------
    list of int
        ⌊2ᵇⁱᵗˢ · Pr[|z| <= k]⌋ for k = 0, 1, …, while it is below 2ᵇⁱᵗˢ.
    """
    ratio = exp(-epsilon / sensitivity)
    most = ceil(bits * log(2) * sensitivity / epsilon)
    beyond = 2 * ratio ** np.arange(1, most + 2) / (1 + ratio)
    bounds = np.floor(2**bits * (1 - beyond)).astype(int)
    return bounds[bounds < 2**bits].tolist()


def story(name: str, front: str | None = None) -> str:
    """A story's page: one file that needs no other.

    Parameters
    ----------
    name : str
        One of `TITLES`. The page links to the others in its folder.
    front : str, optional
        Address of the site's front page, for a link. Default: no link.

    Returns
    -------
    str
        HTML.
    """
    data = _DATA[name]()
    page = (FOLDER / f"{name}.html").read_text(encoding="utf-8")
    for key, shown in data.pop("shown", {}).items():
        page = page.replace(f"{{{{ {key} }}}}", shown)
    parts = {
        part: (FOLDER / part).read_text(encoding="utf-8") for part in ("story.css", "story.js")
    }
    script = parts["story.js"] + (FOLDER / f"{name}.js").read_text(encoding="utf-8")
    frame = (FOLDER / "frame.html").read_text(encoding="utf-8")
    content = {
        "title": TITLES[name],
        "style": parts["story.css"],
        "page": page,
        "links": _links(name, front),
        "data": json.dumps(data, separators=(",", ":")),
        "script": script,
    }
    for key, text in content.items():
        frame = frame.replace(f"{{{{ {key} }}}}", text)
    return frame


def _links(name: str, front: str | None) -> str:
    links = [
        f"<b>{title}</b>" if other == name else f'<a href="{other}.html">{title}</a>'
        for other, title in TITLES.items()
    ]
    if front:
        links.insert(0, f'<a href="{front}">Front page</a>')
    return " · ".join(links)


def write_stories(folder: Path, front: str | None = None) -> list[Path]:
    """Write every story into a folder, and return the paths.

    Parameters
    ----------
    folder : Path
        Created if it is missing.
    front : str, optional
        Address of the site's front page, seen from the folder. Default: no link.

    Returns
    -------
    list of Path
        One HTML file per story.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.html" for name in TITLES]
    for path in paths:
        path.write_text(story(path.stem, front), encoding="utf-8")
    return paths


# Homes and workplaces

_SIDE = 96
_PEOPLE = 60_000
_HUBS = np.array([(20, 24, 3.0), (48, 40, 4.0), (70, 72, 3.0), (34, 74, 2.4), (80, 20, 2.0)])


@cache
def sparse_table() -> Int[np.ndarray, " cells"]:
    """Simulated people, of whom most live near a hub and work there."""
    rng = np.random.default_rng(3)
    home = np.minimum(rng.geometric(0.45, _PEOPLE) - 1, len(_HUBS) - 1)
    work = np.where(rng.random(_PEOPLE) < 0.85, home, rng.integers(0, len(_HUBS), _PEOPLE))
    spread = rng.standard_normal((2, _PEOPLE))
    x = np.rint(_HUBS[home, 0] + spread[0] * _HUBS[home, 2]).astype(int)
    y = np.rint(_HUBS[work, 1] + spread[1] * _HUBS[work, 2]).astype(int)
    inside = (x >= 0) & (x < _SIDE) & (y >= 0) & (y < _SIDE)
    return np.bincount(y[inside] * _SIDE + x[inside], minlength=_SIDE**2)


def _sparse() -> dict[str, Any]:
    table = sparse_table()
    occupied = int(np.count_nonzero(table))
    return {
        "side": _SIDE,
        "occupied": occupied,
        "runs": _runs(table),
        "epsilons": [float(x) for x in EPSILONS],
        "thresholds": [thresholds(float(x)) for x in EPSILONS],
        "shown": {"cells": f"{table.size:,}", "occupied": f"{occupied:,}"},
    }


def _runs(table: Int[np.ndarray, " cells"]) -> list[int]:
    """The occupied cells, each by its distance from the one before and its count."""
    cells = np.flatnonzero(table)
    return np.stack([np.diff(cells, prepend=-1), table[cells]], axis=1).ravel().tolist()


# Homes on a map

_DEPTH = 6
_SPLITS = (3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000, 2000, 4000)
_TOTALS = (0.1, 0.14, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
_BITS = 20


@cache
def homes() -> Records:
    """Simulated people in a few towns and between them."""
    return Towns(20_000, towns=8, spread=2.5, depth=_DEPTH, seed=24).load()


def improved(epsilon: float, threshold: int) -> ImprovedAdaptiveHistogram | None:
    """The mechanism of a setting, or None where empty nodes would split without end."""
    mechanism = ImprovedAdaptiveHistogram(DP(epsilon), threshold)
    try:
        mechanism.empty_split_probability(homes().hierarchy, 1)
    except ValueError:
        return None
    return mechanism


def _adaptive() -> dict[str, Any]:
    side = 2**_DEPTH
    keys, counts = homes().level(_DEPTH)
    x, y = homes().hierarchy.corners(keys)
    table = np.zeros(side**2, int)
    table[y * side + x] = counts
    settings = [[improved(e, b) for b in _SPLITS] for e in _TOTALS]
    budgets = [ImprovedAdaptiveHistogram(DP(e), _SPLITS[-1]).budgets() for e in _TOTALS]
    noises = {
        "cells": _TOTALS,
        "comparisons": [b.structure / 2 for b in budgets],
        "leaves": [b.leaves for b in budgets],
    }
    return {
        "depth": _DEPTH,
        "town": _runs(table),
        "epsilons": _TOTALS,
        "splits": _SPLITS,
        "discounts": [[m and m.effective_discount() for m in row] for row in settings],
        "prices": noises,
        "bits": _BITS,
        "thresholds": {k: [thresholds(e, 1, _BITS) for e in v] for k, v in noises.items()},
    }


# Visits of people to places

_ITEMS = 24
_USERS = 1_000
_LIMITS = (1, 2, 3, 4, 5, 7, 10, 14, 20)  # records used per person
_BUDGETS = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)


@cache
def visits() -> list[list[int]]:
    """The places that each simulated person visited, some of them popular."""
    rng = np.random.default_rng(5)
    numbers = np.minimum(rng.geometric(0.72, _USERS) * rng.geometric(0.5, _USERS), _LIMITS[-1])
    popular = 1 / np.arange(3, _ITEMS + 3)
    popular /= popular.sum()
    return [rng.choice(_ITEMS, n, p=popular).tolist() for n in np.sort(numbers)[::-1]]


def mean_noise(epsilon: float, sensitivity: int = 1) -> float:
    """Mean size E|z| of two-sided geometric noise."""
    ratio = exp(-epsilon / sensitivity)
    return 2 * ratio / (1 - ratio**2)


def _contributions() -> dict[str, Any]:
    return {
        "items": _ITEMS,
        "visits": visits(),
        "limits": _LIMITS,
        "epsilons": _BUDGETS,
        "bits": _BITS,
        "thresholds": [[thresholds(e, n, _BITS) for n in _LIMITS] for e in _BUDGETS],
        "mean_noise": [[round(mean_noise(e, n), 4) for n in _LIMITS] for e in _BUDGETS],
        "shown": {
            "users": f"{_USERS:,}",
            "items": f"{_ITEMS}",
            "most": f"{_LIMITS[-1]}",
            "visits": f"{sum(map(len, visits())):,}",
        },
    }


_DATA = {"sparse": _sparse, "adaptive": _adaptive, "contributions": _contributions}
