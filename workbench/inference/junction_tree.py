"""Junction trees, which compute exact sums over a distribution that is a product of potentials, if each
potential depends on few attributes.

The probability of a record t is p(t) ∝ Π_k prior_k(t_k) · exp(Σ_S potential_S(t_S)), a product over the
attributes k and the sets S of attributes. The attributes are eliminated one by one, in an order in which few
new pairs of attributes are joined. This gives sets of attributes, the cliques, which form a tree. Two passes
of messages over the tree compute the exact marginal distribution of every clique. The time is proportional to
the number of cells of all cliques.
Source     Lauritzen & Spiegelhalter, JRSS B 1988; Kjærulff 1990 for the order of elimination.
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
    """Return the cliques of a junction tree, which are sets of attributes. Each of the given sets is
    contained in at least one clique. Return None if all cliques together have more than `most` cells.
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
    """Return numbers by which the next attribute to eliminate is chosen: the number of new pairs of
    attributes that its elimination joins, and the number of cells of its clique. Its own number decides ties.
    """
    around = neighbours[k]
    joined = sum(j not in neighbours[i] for i, j in combinations(around, 2))
    return joined, prod(shape[j] for j in around) * shape[k], k


@dataclass(frozen=True)
class _Edge:
    """Place of a clique in the tree: the number of its parent (−1 for a root), and the attributes that the
    clique shares with its parent.
    """

    parent: int
    shared: tuple[int, ...]


class JunctionTree:
    """Junction tree for given sets of attributes, with a prior in which attributes are independent.

    Parameters
    ----------
    shape : tuple of int
        Shape of the domain.
    prior : sequence of float64[codes]
        Probabilities of the codes of each attribute, all above 0.
    sets : sequence of tuple of int
        Sets of attributes on which potentials are defined, as numbers of axes.
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
        sizes = [prod(shape[k] for k in clique) for clique in self.cliques]
        self.cells = sum(sizes)
        self._home = [self._smallest_with(axes) for axes in self.sets]
        self._lay_out_edges()
        self._log_prior = [np.zeros([shape[k] for k in clique]) for clique in self.cliques]
        for k in self.axes:
            i = self._smallest_with((k,))
            self._log_prior[i] += spread(np.log(prior[k]), (k,), self.cliques[i])

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Numbers of the attributes that are in at least one set."""
        return tuple(sorted({k for clique in self.cliques for k in clique}))

    def _smallest_with(self, axes: Iterable[int]) -> int:
        """Return the number of the clique with the fewest cells that contains the given attributes. Return −1
        if there is none.
        """
        found = [i for i, clique in enumerate(self.cliques) if set(axes) <= set(clique)]
        return min(
            found, key=lambda i: prod(self.shape[k] for k in self.cliques[i]), default=-1
        )

    def _lay_out_edges(self) -> None:
        """Connect the cliques to a tree (or several trees), so that neighbours have as many common attributes
        as possible. In `order`, parents come before their children.
        """
        count = len(self.cliques)
        self.order: list[int] = []
        self.edges: list[_Edge] = [_Edge(-1, ())] * count
        # how much each clique shares with one in the tree, and with which
        best = {i: (0, -1) for i in range(count)}
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
        """Compute the marginal distributions of all cliques. `potentials` contains one table per set of
        attributes, in nats.
        """
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
        """Return the logarithm of the sum of exp(table) over all axes of a clique that are not in `axes`."""
        clique = self.cliques[i]
        outside = tuple(n for n, k in enumerate(clique) if k not in axes)
        largest = table.max(axis=outside, keepdims=True)
        total = np.exp(table - largest).sum(axis=outside)
        return np.log(total) + largest.reshape(total.shape)


@dataclass(frozen=True)
class CalibratedTree:
    """Marginal distributions of the cliques of a junction tree. The object also contains the logarithm of the
    normalising constant in nats, ln Z = ln p0[exp(Σ potentials)], where p0 is the prior.
    """

    tree: JunctionTree
    cliques: list[Float[np.ndarray, "..."]]
    log_normaliser: float

    def of_sets(self) -> list[Float[np.ndarray, "..."]]:
        """Return the marginal distribution over each of the tree's sets of attributes."""
        return [
            summed(self.cliques[i], self.tree.cliques[i], axes) if axes else np.ones(())
            for i, axes in zip(self.tree._home, self.tree.sets, strict=True)
        ]

    @cached_property
    def _shared_inverses(self) -> dict[int, Float[np.ndarray, "..."]]:
        """One table per clique with a parent. It contains 1/p, where p is the marginal distribution over the
        attributes that the clique and its parent share.
        """
        tree = self.tree
        return {
            i: 1 / np.maximum(summed(self.cliques[i], clique, edge.shared), _LEAST)
            for i, (clique, edge) in enumerate(zip(tree.cliques, tree.edges, strict=True))
            if edge.parent >= 0
        }

    def derivatives(
        self, directions: Sequence[Float[np.ndarray, "..."]]
    ) -> list[Float[np.ndarray, "..."]]:
        """Return the derivative of the marginal distribution of each set, if the potentials change in the
        given directions.

        The result is the product of the covariance matrix of the sets' cells with a vector. It is computed
        from the derivatives of both passes of `calibrate`.
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
        """Return the marginal distribution over the given attributes, in the given order. Return None if this
        needs too many cells.
        """
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
        """Return the marginal distribution over attributes that are in several cliques. It is computed by
        elimination from the leaves of the tree.
        """
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
        """Draw `count` independent records from the distribution."""
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
    """Reshape a table over `axes`, so that numpy can combine it with a table over the larger set of axes
    `onto`. The axes `onto` must be in ascending order.
    """
    ascending = sorted(range(len(axes)), key=axes.__getitem__)
    ordered = table.transpose(ascending)
    sizes = dict(zip(sorted(axes), ordered.shape, strict=True))
    return ordered.reshape([sizes.get(k, 1) for k in onto])


def summed(
    table: Float[np.ndarray, "..."], own: Sequence[int], axes: Sequence[int]
) -> np.ndarray:
    """Sum a table over all of its axes that are not in `axes`, and put the remaining axes in the order of
    `axes`.
    """
    inner = table.sum(axis=tuple(n for n, k in enumerate(own) if k not in axes))
    rest = [k for k in own if k in axes]
    return inner.transpose([rest.index(k) for k in axes])


def _product(
    tables: Sequence[tuple[tuple[int, ...], np.ndarray]], left: tuple[int, ...]
) -> np.ndarray:
    """Multiply tables, and sum the product over all axes that are not in `left`. The axes of the result are
    in the order of `left`.
    """
    numbers = {k: n for n, k in enumerate(sorted({k for axes, _ in tables for k in axes}))}
    operands: list[Any] = []
    for axes, table in tables:
        operands += [table, [numbers[k] for k in axes]]
    return np.einsum(*operands, [numbers[k] for k in left], optimize="greedy")
