"""Stories, which are interactive web pages, one per paper. A story computes in the browser, without a kernel
or a network.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import ceil, exp, log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Template

from workbench.compiled import template_folder
from workbench.data import Records
from workbench.datasets import Towns
from workbench.figures.figure import paper_of
from workbench.mechanisms import ImprovedAdaptiveHistogram
from workbench.privacy import DP
from workbench.value import Int

FOLDER = Path(__file__).parent / "stories"
THUMBNAILS = "docs/figures"  # committed pictures of the paper profile
_WIDTH = 480  # pixels of a small picture, at most
_COLOURS = 64
EPSILONS = (
    "0.05 0.06 0.08 0.1 0.13 0.16 0.2 0.25 0.32 0.4 0.5 0.63 0.8 1 1.3 1.6 2 2.5 3.2 4 5"
).split()  # settings of a slider, ten per decade


class Story(NamedTuple):
    """Interactive web page about a paper. It has a title and a function that returns the data of the page.
    `figure` is the id of the figure that is shown if there is no JavaScript.
    """

    title: str
    figure: str
    data: Callable[[], dict[str, Any]]


def thresholds(epsilon: float, sensitivity: int = 1, bits: int = 31) -> list[int]:
    """Return the integer thresholds with which a page draws two-sided geometric noise z.

    To draw the absolute value |z|, the page draws an integer of `bits` random bits. Then |z| is the number of
    thresholds that do not exceed this integer.

    Parameters
    ----------
    epsilon : float
        Privacy loss ε > 0.
    sensitivity : int
        Largest sum of changes of the counts that one person can cause.
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
    """Return the HTML text of a story (an interactive web page about a paper). The page needs no other files.

    Parameters
    ----------
    name : str
        One of `STORIES`. The page links to the others in its folder.
    front : str, optional
        Address of the site's front page, for a link. Default: no link.

    Returns
    -------
    str
        HTML.
    """
    title, figure, make = STORIES[name]
    data = make()
    shown = data.pop("shown", {})
    picture = thumbnail(figure)
    return Template(_read("frame.html"), keep_trailing_newline=True).render(
        title=title,
        style=_read("story.css"),
        page=Template(_read(f"{name}.html"), keep_trailing_newline=True).render(shown),
        name=name,
        front=front,
        stories=STORIES,
        data=json.dumps(data, separators=(",", ":")),
        script=_read("story.js") + _read(f"{name}.js"),
        figure=figure,
        picture=b64encode(picture.read_bytes()).decode() if picture else "",
    )


def thumbnail(id: str) -> Path | None:
    """Return the path of the small picture of a figure that is committed. Return None if there is none."""
    path = template_folder() / THUMBNAILS / f"{id}.png"
    return path if path.exists() else None


def write_thumbnail(picture: Path, file: Path) -> None:
    """Write a small PNG of a picture, which names the profile of its run."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    told = PngInfo()
    with Image.open(picture) as image:
        told.add_text("profile", json.loads(image.info["workbench"])["profile"])
        small = image.convert("RGB")
    small.thumbnail((_WIDTH, 2 * _WIDTH))
    small.quantize(_COLOURS, Image.Quantize.FASTOCTREE).save(file, pnginfo=told)


def _read(part: str) -> str:
    return (FOLDER / part).read_text(encoding="utf-8")


def write_stories(folder: Path, front: str | None = None) -> list[Path]:
    """Write every story into a folder, and return the paths.

    Parameters
    ----------
    folder : Path
        Folder for the pages. It is created if it is missing.
    front : str, optional
        Address of the site's front page, seen from the folder. Default: no link.

    Returns
    -------
    list of Path
        One HTML file per story.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.html" for name in STORIES]
    for path in paths:
        path.write_text(story(path.stem, front), encoding="utf-8")
    return paths


# Homes and workplaces

_SIDE = 96
_PEOPLE = 60_000
_HUBS = np.array([(20, 24, 3.0), (48, 40, 4.0), (70, 72, 3.0), (34, 74, 2.4), (80, 20, 2.0)])


@cache
def sparse_table() -> Int[np.ndarray, " cells"]:
    """Return the counts of simulated people by home and workplace, as a flat array. Most people live and work
    near the same hub (a centre of population).
    """
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
    """Return a flat list with two numbers per occupied cell: the distance from the previous occupied cell,
    and the count.
    """
    cells = np.flatnonzero(table)
    return np.stack([np.diff(cells, prepend=-1), table[cells]], axis=1).ravel().tolist()


# Homes on a map

_DEPTH = 6
_SPLITS = (3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000, 2000, 4000)
_TOTALS = (0.1, 0.14, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
_BITS = 20


@cache
def homes() -> Records:
    """Return the homes of simulated people in a few towns and between them."""
    return Towns(20_000, towns=8, spread=2.5, depth=_DEPTH, seed=24).load()


def improved(epsilon: float, threshold: int) -> ImprovedAdaptiveHistogram | None:
    """Return an adaptive histogram with this ε and threshold. Return None if the mechanism would split empty
    nodes without end.
    """
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
    """Return the places that each simulated person visited. Some places are popular."""
    rng = np.random.default_rng(5)
    numbers = np.minimum(rng.geometric(0.72, _USERS) * rng.geometric(0.5, _USERS), _LIMITS[-1])
    popular = 1 / np.arange(3, _ITEMS + 3)
    popular /= popular.sum()
    return [rng.choice(_ITEMS, n, p=popular).tolist() for n in np.sort(numbers)[::-1]]


def mean_noise(epsilon: float, sensitivity: int = 1) -> float:
    """Return the mean absolute value E|z| of two-sided geometric noise z."""
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


# Simulated counts, sorted or under a tree

_STOPS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
_LEVELS = 6  # of the tree on the page, with 32 leaves
_PAPER_LEVELS = 16
_TOP = 60
_SHAPES = {
    "a few long runs": np.repeat([3, 10, 28, 55], [14, 10, 6, 2]),
    "many short runs": np.repeat(np.arange(0, _TOP, 6), [4, 3, 3, 3, 3, 3, 3, 3, 3, 4]),
    "no two equal": np.arange(32) * _TOP // 31,
}


def range_factors(levels: int) -> dict[str, list[float]]:
    """Return the variances of range counts (sums over consecutive leaves) that are computed from a complete
    binary tree of noisy counts. Each variance is an average over all positions of a range.

    Parameters
    ----------
    levels : int
        Levels of the tree, from the root to the leaves.

    Returns
    -------
    dict
        `sizes` contains the sizes of ranges, in leaves. `tree` and `consistent` contain the variance for each
        size, in units of the variance of one node's noise. For `tree`, the fewest possible nodes are added
        up. For `consistent`, least squares over all nodes are used.
    """
    leaves = 2 ** (levels - 1)
    widths = 2 ** np.arange(1, levels)
    rows = []
    for size in 2 ** np.arange(levels - 1):
        low = np.arange(leaves - size + 1)[:, None]
        ends = np.stack([low, low + size])
        nodes = size - np.maximum(ends[1] // widths - -(-low // widths), 0).sum(axis=1)
        peaks = np.minimum(ends % widths, widths - ends % widths)  # of sums over Haar wavelets
        one = ends[0] // widths == ends[1] // widths
        squares = np.where(one, (peaks[1] - peaks[0]) ** 2, (peaks**2).sum(axis=0))
        haar = (squares / (widths * (widths - 1))).sum(axis=1)
        whole = size**2 / leaves / (2 * leaves - 1)
        rows.append((float(nodes.mean()), float(whole + haar.mean())))
    tree, consistent = zip(*rows, strict=True)
    sizes = [2**k for k in range(levels - 1)]
    return {"sizes": sizes, "tree": list(tree), "consistent": list(consistent)}


def _consistency() -> dict[str, Any]:
    leaves = np.arange(2 ** (_LEVELS - 1))
    humps = np.exp(-(((leaves - 9) / 3) ** 2)) + 0.7 * np.exp(-(((leaves - 23) / 4) ** 2))
    return {
        "peak": _TOP,
        "shapes": [[name, counts.tolist()] for name, counts in _SHAPES.items()],
        "places": np.argsort(np.argsort(humps)).tolist(),
        "epsilons": _STOPS,
        "bits": _BITS,
        "laws": {n: [thresholds(e, n, _BITS) for e in _STOPS] for n in (1, _LEVELS)},
        "factors": {n: range_factors(n) for n in (_LEVELS, _PAPER_LEVELS)},
        "shown": {"counts": f"{len(leaves)}"},
    }


# A simulated survey

_ANSWERS = {
    "sex": ("women", "men"),
    "age": ("young", "middle", "old"),
    "work": ("none", "part", "full"),
    "income": ("low", "middle", "high"),
    "home": ("rented", "owned"),
    "car": ("no car", "car"),
    "children": ("none", "some"),
    "health": ("poor", "good"),
    "smoking": ("no", "yes"),
}
_ASKED = 2_000
_PAYS = (4, 6, 8, 10, 12, 15, 20, 25, 36)  # pairs of attributes that a budget of ε = 1 buys
_TRADE_OFFS = (1, 3, 10, 30, 100, 300, 1000, 3000)  # α, in people


@cache
def survey() -> Int[np.ndarray, "attributes people"]:
    """Return the answers of simulated people to a survey. Answers depend on each other: work on age, income
    on work, and so on.
    """
    rng = np.random.default_rng(8)

    def draw(shares: list[Any], given: Any = 0) -> Int[np.ndarray, " people"]:
        ends = np.cumsum(np.atleast_2d(shares), axis=1)[given]
        return (rng.random((_ASKED, 1)) > ends[..., :-1]).sum(axis=1)

    sex = draw([0.5, 0.5])
    age = draw([0.3, 0.45, 0.25])
    work = draw([[0.35, 0.35, 0.3], [0.08, 0.2, 0.72], [0.8, 0.14, 0.06]], age)
    income = draw([[0.72, 0.23, 0.05], [0.5, 0.4, 0.1], [0.1, 0.55, 0.35]], work)
    home = draw([[0.7, 0.3], [0.45, 0.55], [0.15, 0.85]], income)
    car = draw([[0.6, 0.4], [0.2, 0.8]], home)
    children = draw([[0.9, 0.1], [0.42, 0.58], [0.95, 0.05]], age)
    health = draw([[0.1, 0.9], [0.2, 0.8], [0.5, 0.5]], age)
    smoking = draw([[0.78, 0.22], [0.68, 0.32]], sex)
    return np.stack([sex, age, work, income, home, car, children, health, smoking])


def pair_tables() -> dict[tuple[int, int], Int[np.ndarray, "first second"]]:
    """Return, for each pair of attributes, the number of people with each combination of answers."""
    sizes = [len(values) for values in _ANSWERS.values()]
    people = survey()
    tables = {}
    for i, j in combinations(range(len(sizes)), 2):
        cells = np.bincount(people[i] * sizes[j] + people[j], minlength=sizes[i] * sizes[j])
        tables[i, j] = cells.reshape(sizes[i], sizes[j])
    return tables


def _bank() -> dict[str, Any]:
    return {
        "names": list(_ANSWERS),
        "values": list(_ANSWERS.values()),
        "pairs": list(pair_tables()),
        "tables": [table.ravel().tolist() for table in pair_tables().values()],
        "people": _ASKED,
        "pays": _PAYS,
        "alphas": _TRADE_OFFS,
        "bits": _BITS,
        "laws": [thresholds(1 / n, 1, _BITS) for n in _PAYS],
        "shown": {"people": f"{_ASKED:,}", "pairs": f"{len(pair_tables())}"},
    }


STORIES = {
    "sparse": Story("A table that is mostly empty", "cormode2012_fig2", _sparse),
    "adaptive": Story("A map that splits where people are", "adaptive2009_fig5", _adaptive),
    "contributions": Story(
        "How many records of each person to use", "fan2015_fig6", _contributions
    ),
    "consistency": Story("Noise that an order or a sum removes", "hay2010_fig6", _consistency),
    "bank": Story("Answers that earlier answers pay for", "chen2012_fig6", _bank),
}
OF_PAPER = {paper_of(story.figure): name for name, story in STORIES.items()}
