"""Neighbouring inputs, which are pairs of data sets that differ by one unit. Laws (rules that every mechanism
must obey) and audits run mechanisms on these pairs.

All data sets are synthetic. There is a list of small pairs for each kind of input, for example for tables and
for records. The counts in these data sets depend on the mechanism's public fields. For example, one pair has
a count that is equal to the mechanism's threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import isfunction
from math import ceil
from typing import Any

import numpy as np

from workbench.data import UNBOUNDED, Bound, Interactions, Records, SparseTable, UnlistedValues
from workbench.privacy import ADD_REMOVE
from workbench.spaces import Domain, Quadtree

# Pairs

CELLS = Domain(("home", "work"), (4, 4))
EDGES = Domain(("item", "context"), (4, 2))
_MANY = Domain(("place", "hour"), (48, 48))
FEW = Domain(("home", "work"), (2, 2))  # of reports, each of which is told whole
_LARGE = 1000  # a count that no filter of an example reaches
_LONGEST = 10_000  # records of one user
_Counts = tuple[str, dict[int, int], dict[int, int], Bound]  # what is hard, two inputs
_Rows = list[tuple[int, int, int]]  # user, item, context
_WIDE = Bound(2, 2, 3)  # a unit moves one cell by 2 and another by 1


@dataclass(frozen=True, eq=False)
class Pair:
    """Two data sets that differ by one unit, with a description of why the difference is hard to hide.

    Parameters
    ----------
    name : str
        Description of the difference, for example "0 ↔ 1 in a cell".
    one, other : data
        The two data sets.
    """

    name: str
    one: Any
    other: Any

    def __repr__(self) -> str:
        return f"Pair({self.name!r})"


def pairs_for(mechanism: Any) -> list[Pair]:
    """Return the pairs of neighbouring data sets on which a mechanism is audited.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to audit. The pairs depend on the class of its input, its neighbouring relation and its
        public thresholds.

    Returns
    -------
    list of Pair
        Pairs of neighbours. Those that are hardest to protect are near the beginning of the list.

    Raises
    ------
    ValueError
        If the workbench cannot generate data for the mechanism.

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
    if _replaces(mechanism):
        space = FEW
        listed = _replaced_tuples(getattr(mechanism, "total", None) or 2)
    return [
        Pair(name, *(_of_counts(takes, space, x, bound) for x in (one, other)))
        for name, one, other, bound in listed
    ]


def audited_at(*places: int, **fields: Any) -> Any:
    """Return a class method `audited` for a mechanism's class. For a given budget, `audited` returns the
    mechanisms, and the pairs of neighbouring data sets, for which an audit measures the largest privacy loss.

    Parameters
    ----------
    *places : int
        Positions, in the list of `pairs_for`, of the pairs for which the privacy loss is largest.
    **fields
        Fields of the mechanism that differ from those of the class's `example`. You can pass a function that
        computes a field from the budget.

    Returns
    -------
    classmethod
        Method that takes a budget and returns a list of mechanisms to audit, each with its pair of
        neighbours.
    """

    def audited(cls: Any, budget: Any) -> list[tuple[Any, Pair]]:
        """Return the cases that an audit runs to measure the privacy loss of the mechanism. Each case
        consists of the mechanism and a pair of neighbouring data sets, which differ in one unit. The pairs
        are chosen so that the privacy loss is as large as possible.
        """
        stated = {name: x(budget) if isfunction(x) else x for name, x in fields.items()}
        mechanism = replace(cls.example(budget), **stated)
        pairs = pairs_for(mechanism)
        return [(mechanism, pairs[place]) for place in places]

    return classmethod(audited)


def large_pair(mechanism: Any) -> Pair:
    """Return a data set with a few thousand cells or users, and a neighbour with one unit less.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism that is run on the pair. The pair depends on the class of the mechanism's input and on its
        neighbouring relation. The unit by which the data sets differ has as many records as the bound allows.

    Returns
    -------
    Pair
    """
    rng = np.random.default_rng(4)
    if mechanism.takes is Interactions:
        users = np.repeat(np.arange(2000), rng.integers(1, 7, 2000))
        rows = np.stack([users, *(rng.integers(0, 48, (2, len(users))) ** 2 // 48)], axis=1)
        unit = np.stack([np.full(90, 999), rng.integers(0, 30, 90), rng.integers(0, 48, 90)])
        kept = rows[users != 999]
        sides = np.vstack([kept, unit.T]), kept
        return Pair("a user among many", *(_interactions(x, _MANY) for x in sides))
    keys = np.sort(rng.choice(_MANY.size, 900, replace=False))
    occupied, empty = int(keys[9]), int(np.setdiff1d(np.arange(_MANY.size), keys)[700])
    counts = dict(zip(keys.tolist(), rng.geometric(0.1, len(keys)).tolist(), strict=True))
    more = counts | {occupied: counts[occupied] + 2, empty: 1}
    bound = _WIDE
    if _replaces(mechanism):
        more, bound = counts | {empty: 1}, Bound()
        counts[occupied] += 1
    space = Quadtree(2, 6) if mechanism.takes is Records else _MANY
    takes = mechanism.takes
    return Pair(
        "a unit among many", *(_of_counts(takes, space, x, bound) for x in (more, counts))
    )


def _replaces(mechanism: Any) -> bool:
    """Return whether neighbouring data sets of this mechanism have the same number of units."""
    return getattr(mechanism, "relation", ADD_REMOVE) != ADD_REMOVE


def _of_counts(takes: Any, space: Any, counts: dict[int, int], bound: Bound) -> Any:
    """Return an input of the class `takes` with the given counts. `counts` is a dictionary from cells to
    counts.
    """
    keys, values = np.array([*counts.items()], np.int64).reshape(-1, 2).T
    return takes.from_keys(space, keys, values, bound)


def public_threshold(mechanism: Any) -> int | None:
    """Return the threshold on counts in a mechanism's public fields. Return None if the mechanism has no
    threshold.
    """
    mechanism = getattr(mechanism, "mechanism", mechanism)
    names = ("theta", "threshold", "tau")
    fields = [getattr(mechanism, name, None) for name in names]
    numbers = [x for x in fields if isinstance(x, int | float) and x > 0]
    return ceil(max(numbers)) if numbers else None


def _counts(mechanism: Any, cells: int) -> list[_Counts]:
    """Return pairs of neighbouring tables, each as a dictionary from cells to counts. Each pair has a name
    and a bound.
    """
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
    """Return pairs of tables with `total` records each. The two tables of a pair differ in one record. The
    cells 0 and 3 differ in both attributes.
    """
    rest = total - 1
    return [
        ("one of the tuples of a cell", {0: rest + 1}, {0: rest, 3: 1}, Bound()),
        ("a lone tuple", {0: rest, 1: 1}, {0: rest, 2: 1}, Bound()),
        ("one attribute of a tuple", {0: rest, 3: 1}, {0: rest, 2: 1}, Bound()),
    ]


def _records_of_a_user(mechanism: Any) -> int:
    """Return the largest number of records per user that the mechanism counts."""
    fields = (getattr(mechanism, name, None) for name in ("l", "bound"))
    numbers = [x for x in fields if isinstance(x, int) and not isinstance(x, bool)]
    return min(min(numbers, default=2), _LONGEST)


def _interactions(rows: Any, domain: Domain = EDGES) -> Interactions:
    """Return interactions of users with the given rows (user, item, context), without a bound on the records
    of a user.
    """
    users, items, contexts = np.array(rows, np.int64).reshape(-1, 3).T
    return Interactions.from_codes(domain, users, items, contexts, UNBOUNDED)


def _users(mechanism: Any) -> list[tuple[str, _Rows, _Rows]]:
    """Return pairs of neighbouring data sets of users, each pair with a name. The records of user 9 are only
    in the first data set of a pair.
    """
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
