"""Stories: one page a paper that computes in the browser, without a kernel or a network."""

from __future__ import annotations

import json
from functools import cache
from math import ceil, exp, log
from pathlib import Path
from typing import Any

import numpy as np

from workbench.value import Int

FOLDER = Path(__file__).parent / "stories"
EPSILONS = (
    "0.05 0.06 0.08 0.1 0.13 0.16 0.2 0.25 0.32 0.4 0.5 0.63 0.8 1 1.3 1.6 2 2.5 3.2 4 5"
).split()  # the stops of a slider, ten a decade
STORIES = {"cormode2012": "sparse", "fan2015": "contributions"}  # by paper
TITLES = {
    "sparse": "A table that is mostly empty",
    "contributions": "How many records of each person to use",
}


def thresholds(epsilon: float, sensitivity: int = 1, bits: int = 31) -> list[int]:
    """How a page draws two-sided geometric noise: |z| is the number of thresholds at or below some bits.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0.
    sensitivity : int
        Counts that one person moves.
    bits : int
        Of the number that is compared: the law is exact to 2⁻ᵇⁱᵗˢ, which is enough to simulate.

    Returns
    -------
    list of int
        ⌊2ᵇⁱᵗˢ · Pr[|z| <= k]⌋ for k = 0, 1, …, as long as it is below 2ᵇⁱᵗˢ.
    """
    ratio = exp(-epsilon / sensitivity)
    most = ceil(bits * log(2) * sensitivity / epsilon)
    beyond = 2 * ratio ** np.arange(1, most + 2) / (1 + ratio)
    bounds = np.floor(2**bits * (1 - beyond)).astype(int)
    return bounds[bounds < 2**bits].tolist()


def story(name: str) -> str:
    """A story's page: one file without links to others.

    Parameters
    ----------
    name : str
        One of `TITLES`.

    Returns
    -------
    str
        HTML.
    """
    data = _DATA[name]()
    page = (FOLDER / f"{name}.html").read_text(encoding="utf-8")
    for key, shown in data.pop("shown").items():
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
        "data": json.dumps(data, separators=(",", ":")),
        "script": script,
    }
    for key, text in content.items():
        frame = frame.replace(f"{{{{ {key} }}}}", text)
    return frame


def write_stories(folder: Path) -> list[Path]:
    """Writes every story into a folder, and says where."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.html" for name in TITLES]
    for path in paths:
        path.write_text(story(path.stem), encoding="utf-8")
    return paths


# A made-up table of homes and workplaces

_SIDE = 96
_PEOPLE = 60_000
_HUBS = np.array([(20, 24, 3.0), (48, 40, 4.0), (70, 72, 3.0), (34, 74, 2.4), (80, 20, 2.0)])


@cache
def sparse_table() -> Int[np.ndarray, " cells"]:
    """Invented people: most live near a hub, and most of these work there."""
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
    cells = np.flatnonzero(table)
    runs = np.stack([np.diff(cells, prepend=-1), table[cells]], axis=1)
    return {
        "side": _SIDE,
        "occupied": len(cells),
        "runs": runs.ravel().tolist(),
        "epsilons": [float(x) for x in EPSILONS],
        "thresholds": [thresholds(float(x)) for x in EPSILONS],
        "shown": {"cells": f"{table.size:,}", "occupied": f"{len(cells):,}"},
    }


# Made-up visits

_ITEMS = 24
_USERS = 1_000
_LIMITS = (1, 2, 3, 4, 5, 7, 10, 14, 20)  # records of a person that may be used
_BUDGETS = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)
_BITS = 20


@cache
def visits() -> list[list[int]]:
    """The places that each invented person visited, of many places some popular."""
    rng = np.random.default_rng(5)
    numbers = np.minimum(rng.geometric(0.72, _USERS) * rng.geometric(0.5, _USERS), _LIMITS[-1])
    popular = 1 / np.arange(3, _ITEMS + 3)
    popular /= popular.sum()
    return [rng.choice(_ITEMS, n, p=popular).tolist() for n in np.sort(numbers)[::-1]]


def mean_noise(epsilon: float, sensitivity: int = 1) -> float:
    """E|z| of two-sided geometric noise."""
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


_DATA = {"sparse": _sparse, "contributions": _contributions}
