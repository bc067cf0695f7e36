"""Junction trees: exact sums over a product of potentials, if each potential is on few attributes.

The distribution is p(t) ∝ Π_k prior_k(t_k) · exp(Σ_S potential_S(t_S)). Eliminating the attributes in an
order with little fill-in gives cliques that form a tree. Two passes of messages over the tree compute the
exact marginal distribution of every clique. The time grows with the cells of the cliques.
Source     Lauritzen & Spiegelhalter, JRSS B 1988; Kjærulff 1990 for the order (least fill-in first).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from workbench.value import Float, Int

_MAX_TABLE = 2**22  # cells of a table that is asked for, or of what makes it
_LEAST = 1e-300  # so that logarithms stay finite


def cliques_of(
    sets: Iterable[Iterable[int]], shape: Sequence[int], most: float = np.inf
) -> list[tuple[int, ...]] | None:
    """Return the cliques of a triangulated graph. Each of the given sets is within one clique. Return None
    if cliques have too many cells.
    """
    neighbours: dict[int, set[int]] = {}
    for axes in sets:
        for k in axes:
            neighbours.setdefault(k, set()).update(axes)
    for k, others in neighbours.items():
        others.discard(k)
    cliques: list[set[int]] = []
    cells = 0
    while neighbours:
        k = min(neighbours, key=lambda k: _cost(k, neighbours, shape))
        around = neighbours.pop(k)
        for j in around:
            neighbours[j] |= around
            neighbours[j] -= {j, k}
        clique = around | {k}
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
            cells += prod(shape[j] for j in clique)
            if cells > most:
                return None
    return [tuple(sorted(clique)) for clique in cliques]


def _cost(k: int, neighbours: dict[int, set[int]], shape: Sequence[int]) -> tuple[Any, ...]:
    """Return the number of new pairs that the elimination of an attribute joins, and the number of
    cells of its clique.
    """
    around = neighbours[k]
    joined = sum(j not in neighbours[i] for i, j in combinations(around, 2))
    return joined, prod(shape[j] for j in around) * shape[k], k


@dataclass(frozen=True)
class _Edge:
    """Place of a clique in the tree: its parent (−1 for a root), and the axes that they share."""

    parent: int
    shared: tuple[int, ...]


class JunctionTree:
    """Junction tree for given sets of axes. Under its prior, attributes are independent.

    Parameters
    ----------
    shape : tuple of int
        Shape of the domain.
    prior : sequence of float64[codes]
        Weights > 0 of the codes of each attribute, with sum 1.
    sets : sequence of tuple of int
        Sets of axes that potentials use.
    """

    def __init__(
        self,
        shape: Sequence[int],
        prior: Sequence[Float[np.ndarray, " values"]],
        sets: Sequence[tuple[int, ...]],
    ):
        self.shape = tuple(shape)
        self.prior = prior
        self.sets = tuple(sets)
        self.cliques = cliques_of([axes for axes in sets if axes], shape) or []
        self.cells = sum(prod(shape[k] for k in clique) for clique in self.cliques)
        self._home = [self._smallest_with(axes) for axes in self.sets]
        self._lay_out_edges()
        self._log_prior = [np.zeros([shape[k] for k in clique]) for clique in self.cliques]
        for k in self.axes:
            i = self._smallest_with((k,))
            self._log_prior[i] += spread(np.log(prior[k]), (k,), self.cliques[i])

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Axes that at least one set uses."""
        return tuple(sorted({k for clique in self.cliques for k in clique}))

    def _smallest_with(self, axes: Iterable[int]) -> int:
        """Return the clique with the fewest cells that contains the given axes, or −1."""
        found = [i for i, clique in enumerate(self.cliques) if set(axes) <= set(clique)]
        return min(
            found, key=lambda i: prod(self.shape[k] for k in self.cliques[i]), default=-1
        )

    def _lay_out_edges(self) -> None:
        """Compute a spanning forest of the largest shared sets, parents before children."""
        count = len(self.cliques)
        self.order: list[int] = []
        self.edges: list[_Edge] = [_Edge(-1, ())] * count
        best = {
            i: (0, -1) for i in range(count)
        }  # how much it shares with a clique in the tree
        while best:
            i = max(best, key=lambda i: (best[i][0], -i))
            size, parent = best.pop(i)
            shared = set(self.cliques[i]) & set(self.cliques[parent]) if size else set()
            self.edges[i] = _Edge(parent if size else -1, tuple(sorted(shared)))
            self.order.append(i)
            for j, (most, _) in best.items():
                common = len(set(self.cliques[i]) & set(self.cliques[j]))
                if common > most:
                    best[j] = (common, i)

    def calibrate(self, potentials: Sequence[Float[np.ndarray, "..."]]) -> CalibratedTree:
        """Return the margins of all cliques. The given potentials have one table per set, in nats."""
        logs = [table.copy() for table in self._log_prior]
        for i, axes, table in zip(self._home, self.sets, potentials, strict=True):
            if axes:
                logs[i] += spread(table, axes, self.cliques[i])
        messages = {}
        constant = sum(float(t) for s, t in zip(self.sets, potentials, strict=True) if not s)
        for i in reversed(self.order):
            edge = self.edges[i]
            message = self._log_sum(logs[i], i, edge.shared)
            if edge.parent < 0:
                constant += float(message)
                logs[i] -= message
                continue
            messages[i] = message
            logs[edge.parent] += spread(message, edge.shared, self.cliques[edge.parent])
        margins: list[np.ndarray] = [np.empty(0)] * len(logs)
        for i in self.order:
            edge = self.edges[i]
            if edge.parent >= 0:
                above = summed(margins[edge.parent], self.cliques[edge.parent], edge.shared)
                update = np.log(np.maximum(above, _LEAST)) - messages[i]
                logs[i] += spread(update, edge.shared, self.cliques[i])
            margins[i] = np.exp(logs[i])
        return CalibratedTree(self, margins, constant)

    def _log_sum(
        self, table: Float[np.ndarray, "..."], i: int, axes: tuple[int, ...]
    ) -> np.ndarray:
        """Return ln Σ exp over all axes of a clique except the given ones."""
        clique = self.cliques[i]
        outside = tuple(n for n, k in enumerate(clique) if k not in axes)
        largest = table.max(axis=outside, keepdims=True)
        total = np.exp(table - largest).sum(axis=outside)
        return np.log(total) + largest.reshape(total.shape)


@dataclass(frozen=True)
class CalibratedTree:
    """Margins of the cliques of a tree, and the logarithm of the normalising constant, ln Z = ln p0[exp(Σ
    potentials)], in nats.
    """

    tree: JunctionTree
    cliques: list[Float[np.ndarray, "..."]]
    log_normaliser: float

    def of_sets(self) -> list[Float[np.ndarray, "..."]]:
        """Return the marginal over each set of attributes."""
        return [
            summed(self.cliques[i], self.tree.cliques[i], axes) if axes else np.ones(())
            for i, axes in zip(self.tree._home, self.tree.sets, strict=True)
        ]

    @cached_property
    def _shared_inverses(self) -> dict[int, Float[np.ndarray, "..."]]:
        """Inverse of the shared margin of a clique and its parent, for each clique with a parent."""
        tree = self.tree
        return {
            i: 1 / np.maximum(summed(self.cliques[i], clique, edge.shared), _LEAST)
            for i, (clique, edge) in enumerate(zip(tree.cliques, tree.edges, strict=True))
            if edge.parent >= 0
        }

    def derivatives(
        self, directions: Sequence[Float[np.ndarray, "..."]]
    ) -> list[Float[np.ndarray, "..."]]:
        """Return how the margin of each set changes if the potentials change in some direction (the
        derivative).

        The result is the covariance matrix of the sets' cells, times a vector. It is computed by
        differentiating both passes of `calibrate`.
        """
        tree = self.tree
        logs = [np.zeros(table.shape) for table in self.cliques]
        for i, axes, table in zip(tree._home, tree.sets, directions, strict=True):
            if axes:
                logs[i] += spread(table, axes, tree.cliques[i])
        messages = {}
        for i in reversed(tree.order):
            edge = tree.edges[i]
            message = summed(self.cliques[i] * logs[i], tree.cliques[i], edge.shared)
            if edge.parent < 0:
                logs[i] -= message
                continue
            messages[i] = message * self._shared_inverses[i]
            logs[edge.parent] += spread(messages[i], edge.shared, tree.cliques[edge.parent])
        changes: list[np.ndarray] = [np.empty(0)] * len(logs)
        for i in tree.order:
            edge = tree.edges[i]
            if edge.parent >= 0:
                above = summed(changes[edge.parent], tree.cliques[edge.parent], edge.shared)
                update = above * self._shared_inverses[i] - messages[i]
                logs[i] += spread(update, edge.shared, tree.cliques[i])
            changes[i] = self.cliques[i] * logs[i]
        return [
            summed(changes[i], tree.cliques[i], axes) if axes else np.zeros(())
            for i, axes in zip(tree._home, tree.sets, strict=True)
        ]

    def margin(self, axes: Sequence[int]) -> Float[np.ndarray, "..."] | None:
        """Return the margin on the given axes, in their order. Return None if this needs too many cells."""
        axes = tuple(axes)
        shape = self.tree.shape
        if prod(shape[k] for k in axes) > _MAX_TABLE:
            return None
        asked = [k for k in axes if k in self.tree.axes]
        table: np.ndarray | None = np.ones(())
        if asked:
            home = self.tree._smallest_with(asked)
            if home >= 0:
                table = summed(self.cliques[home], self.tree.cliques[home], asked)
            else:
                table = self._joined(asked)
        if table is None:
            return None
        free = [k for k in axes if k not in asked]
        for k in free:
            table = np.multiply.outer(table, self.tree.prior[k])
        places = [*asked, *free]
        return table.transpose([places.index(k) for k in axes])

    def _joined(self, asked: list[int]) -> Float[np.ndarray, "..."] | None:
        """Return a margin whose axes are in several cliques, by elimination from the leaves."""
        tree = self.tree
        wanted = set(asked)
        tables: dict[int, list[tuple[tuple[int, ...], np.ndarray]]] = {}
        done: list[tuple[tuple[int, ...], np.ndarray]] = []
        for i in reversed(tree.order):
            edge = tree.edges[i]
            clique = tree.cliques[i]
            below = tables.pop(i, [])
            if not below and not (set(clique) - set(edge.shared)) & wanted:
                continue  # what is below a clique sums to 1
            conditional = self.cliques[i]
            if edge.parent >= 0:
                above = np.maximum(summed(conditional, clique, edge.shared), _LEAST)
                conditional = conditional / spread(above, edge.shared, clique)
            inside = {k for held, _ in below for k in held} | set(clique)
            left = tuple(sorted(inside & (wanted | set(edge.shared))))
            if prod(tree.shape[k] for k in left) > _MAX_TABLE:
                return None
            table = _product([(clique, conditional), *below], left)
            if edge.parent < 0:
                done.append((left, table))
            else:
                tables.setdefault(edge.parent, []).append((left, table))
        return _product(done, tuple(asked))

    def draw(
        self, count: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "tuples attributes"]:
        """Draw independent tuples from the distribution."""
        tree = self.tree
        codes = np.zeros((count, len(tree.shape)), np.int64)
        for k in set(range(len(tree.shape))) - set(tree.axes):
            codes[:, k] = rng.choice(tree.shape[k], count, p=tree.prior[k])
        for i in tree.order:
            shared = tree.edges[i].shared
            new = tuple(k for k in tree.cliques[i] if k not in shared)
            sizes = [tree.shape[k] for k in shared]
            table = summed(self.cliques[i], tree.cliques[i], (*shared, *new))
            rows = table.reshape(prod(sizes), -1)
            row: Any = np.zeros(count, np.int64)
            if shared:
                row = np.ravel_multi_index(codes[:, list(shared)].T, sizes)
            cumulative = np.cumsum(rows, axis=1)
            cumulative /= np.maximum(cumulative[:, -1:], _LEAST)
            ends = (cumulative + np.arange(len(rows))[:, None]).ravel()
            cell = np.searchsorted(ends, row + rng.random(count), side="right")
            cell = np.clip(cell - row * rows.shape[1], 0, rows.shape[1] - 1)
            codes[:, list(new)] = np.stack(
                np.unravel_index(cell, [tree.shape[k] for k in new]), axis=1
            )
        return codes


def spread(
    table: Float[np.ndarray, "..."], axes: Sequence[int], onto: Sequence[int]
) -> np.ndarray:
    """Reshape a table so that numpy can combine it with a table on more axes. Axes must be in ascending
    order.
    """
    ascending = sorted(range(len(axes)), key=axes.__getitem__)
    ordered = table.transpose(ascending)
    sizes = dict(zip(sorted(axes), ordered.shape, strict=True))
    return ordered.reshape([sizes.get(k, 1) for k in onto])


def summed(
    table: Float[np.ndarray, "..."], own: Sequence[int], axes: Sequence[int]
) -> np.ndarray:
    """Sum a table over all axes except the given ones, and put these in the given order."""
    inner = table.sum(axis=tuple(n for n, k in enumerate(own) if k not in axes))
    rest = [k for k in own if k in axes]
    return inner.transpose([rest.index(k) for k in axes])


def _product(
    tables: Sequence[tuple[tuple[int, ...], np.ndarray]], left: tuple[int, ...]
) -> np.ndarray:
    """Return the product of tables, summed down to some axes, in their order."""
    numbers = {k: n for n, k in enumerate(sorted({k for axes, _ in tables for k in axes}))}
    operands: list[Any] = []
    for axes, table in tables:
        operands += [table, [numbers[k] for k in axes]]
    return np.einsum(*operands, [numbers[k] for k in left], optimize="greedy")
