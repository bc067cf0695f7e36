"""Neighbouring inputs for audits, and large inputs that contain many copies of one pair.

Pairs. All pairs are synthetic. Each kind of input has a separate list of pairs. Their sizes depend on the
mechanism's public fields. For example, one pair has a count at the mechanism's threshold.

Tiles. A tile is one copy of a pair in a large input. A release of many tiles is equivalent to many runs if
the release is a product. This means that every cell has independent noise, and that its release depends
only on this cell and on public numbers. The release is not a product if a transform or a tree combines
cells, if a threshold or a sample depends on all cells, or if reports are mixed. Parts of a release other
than cells are common to all tiles, so only separate runs can audit them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from workbench.data import Bound, Interactions, Records, SparseTable, UnlistedValues
from workbench.owner.audit.outputs import Output
from workbench.privacy import ADD_REMOVE
from workbench.spaces import Domain, Quadtree

# Pairs

CELLS = Domain(("home", "work"), (4, 4))
EDGES = Domain(("item", "context"), (4, 2))
FEW = Domain(("home", "work"), (2, 2))  # of reports, each of which is told whole
_LARGE = 1000  # a count that no filter of an example reaches
_LONGEST = 10_000  # records of one user
_Counts = tuple[str, dict[int, int], dict[int, int], Bound]  # what is hard, two inputs
_Rows = list[tuple[int, int, int]]  # user, item, context
_WIDE = Bound(2, 2, 3)  # a unit moves one cell by 2 and another by 1


@dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs that differ by one unit, and a description of what makes them hard to protect.

    Parameters
    ----------
    name : str
        Description of the difficulty.
    one, other : data
        Inputs of the callable.
    """

    name: str
    one: Any
    other: Any

    def __repr__(self) -> str:
        return f"Pair({self.name!r})"


def pairs_for(mechanism: Any) -> list[Pair]:
    """Return the pairs of neighbours on which a mechanism is audited.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism. Its input class, its neighbouring relation and its public thresholds determine the pairs.

    Returns
    -------
    list of Pair
        Pairs, with the hardest first.

    Raises
    ------
    ValueError
        If the workbench cannot generate inputs for the mechanism.

    Examples
    --------
    >>> from workbench.mechanisms import GeometricHistogram
    >>> from workbench.privacy import DP
    >>> pairs_for(GeometricHistogram(DP(1.0)))[0]
    Pair('0 ↔ 1 in a cell')
    """
    takes = getattr(mechanism, "takes", SparseTable)
    if takes is Interactions:
        return [
            Pair(name, _interactions(x), _interactions(y)) for name, x, y in _users(mechanism)
        ]
    if takes is UnlistedValues:
        words = ["axe", "axe", "hut"]
        one, other = (takes.from_values("word", words[:n], Bound()) for n in (3, 2))
        return [Pair("a value of one row alone", one, other)]
    space: Any = CELLS
    cells = CELLS.size
    if takes is Records:
        space = Quadtree(1, max(2, min(3, getattr(mechanism, "depth", 2))))
        cells = space.digits.size
    elif takes is not SparseTable:
        raise ValueError(
            f"{type(mechanism).__name__} takes {takes.__name__}, for which the workbench cannot "
            "generate neighbours. State a pair"
        )
    listed = _counts(mechanism, cells)
    if getattr(mechanism, "relation", ADD_REMOVE) != ADD_REMOVE:
        space = FEW
        listed = _replaced_tuples(getattr(mechanism, "total", None) or 2)

    def data(counts: dict[int, int], bound: Bound) -> Any:
        keys, values = np.array([*counts.items()], np.int64).reshape(-1, 2).T
        return takes.from_keys(space, keys, values, bound)

    return [Pair(name, data(x, bound), data(y, bound)) for name, x, y, bound in listed]


def public_threshold(mechanism: Any) -> int | None:
    """Return the threshold on counts from a mechanism's public fields, or None if it has none."""
    mechanism = getattr(mechanism, "mechanism", mechanism)
    names = ("theta", "threshold", "tau")
    fields = [getattr(mechanism, name, None) for name in names]
    numbers = [x for x in fields if isinstance(x, int | float) and x > 0]
    return ceil(max(numbers)) if numbers else None


def _counts(mechanism: Any, cells: int) -> list[_Counts]:
    """Return pairs of neighbouring counts by cell, with a name for each pair."""
    one = Bound()
    decides = public_threshold(mechanism) or 3
    full = dict.fromkeys(range(cells), 3)
    a, b = 3, min(6, cells - 2)
    return [
        ("0 ↔ 1 in a cell", {0: 2, a: 1}, {0: 2}, one),
        (f"a count at {decides}", {0: 2, a: decides}, {0: 2, a: decides - 1}, one),
        ("a large count", {0: 2, a: _LARGE}, {0: 2, a: _LARGE - 1}, one),
        ("ties", {0: 5, 1: 5, a: 6, b: 5}, {0: 5, 1: 5, a: 5, b: 5}, one),
        ("the last cell", {0: 2, cells - 1: 1}, {0: 2}, one),
        ("full domain", full | {a: 4}, full, one),
        ("empty data", {a: 1}, {}, one),
        ("a unit at its full bound", {0: 2, a: 12, b: 8}, {0: 2, a: 10, b: 7}, _WIDE),
        ("a unit alone in two cells", {0: 2, a: 2, b: 1}, {0: 2}, _WIDE),
        (
            f"a unit at its full bound at {decides}",
            {0: 2, a: decides, b: 7},
            {0: 2, a: max(0, decides - 2), b: 6},
            _WIDE,
        ),
    ]


def _replaced_tuples(total: int) -> list[_Counts]:
    """Return two tables with one different tuple among a fixed number. 0 and 3 differ in both attributes."""
    rest = total - 1
    return [
        ("one of the tuples of a cell", {0: rest + 1}, {0: rest, 3: 1}, Bound()),
        ("a lone tuple", {0: rest, 1: 1}, {0: rest, 2: 1}, Bound()),
        ("one attribute of a tuple", {0: rest, 3: 1}, {0: rest, 2: 1}, Bound()),
    ]


def _records_of_a_user(mechanism: Any) -> int:
    """Return the number of records to which the mechanism truncates a user."""
    fields = (getattr(mechanism, name, None) for name in ("l", "bound"))
    numbers = [x for x in fields if isinstance(x, int) and not isinstance(x, bool)]
    return min(min(numbers, default=2), _LONGEST)


def _interactions(rows: _Rows) -> Interactions:
    """Return interactions without a bound on the records of a user."""
    from workbench.data import UNBOUNDED

    users, items, contexts = np.array(rows, np.int64).reshape(-1, 3).T
    return Interactions.from_codes(EDGES, users, items, contexts, UNBOUNDED)


def _users(mechanism: Any) -> list[tuple[str, _Rows, _Rows]]:
    """Return pairs in which user 9 is the unit, and two other users have one record each."""
    most = _records_of_a_user(mechanism)
    more = 3 * most + 1
    others = [(0, 0, 0), (1, 2, 1)]
    items, contexts = EDGES.shape

    def unit(records: int, different: bool = False) -> _Rows:
        if different:
            return [(9, i % items, i // items % contexts) for i in range(records)]
        return [(9, 1, 0)] * records

    last = [(9, items - 1, contexts - 1)]
    full = [(u, i, c) for u, (i, c) in enumerate(np.ndindex(items, contexts), 20)]
    return [
        (f"a user with {most} records of one item", others + unit(most), others),
        (f"a user with {more} records of one item", others + unit(more), others),
        (f"a user with {most} records of all items", others + unit(most, True), others),
        (f"a user with {more} of all items", others + unit(more, True), others),
        ("a user with one record", others + unit(1), others),
        ("the last item and context", others + last * most, others),
        ("full domain", full + unit(most), full),
        ("empty data", unit(most), []),
    ]


# Tiles

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
