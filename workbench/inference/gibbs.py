"""Markov chains that draw records from a distribution that is a product of potentials. The chains start from
a simpler distribution, a tree of attributes.

The tree is a Chow–Liu tree, in which the probabilities of each attribute depend on at most one other
attribute.

Source: Chow & Liu, IEEE Transactions on Information Theory 1968.

The chains use Gibbs sampling. A sweep draws each attribute of each chain again, from its exact conditional
distribution. The time depends on the length of the tables' rows, and not on the size of the domain. Expected
tables are averages of whole conditional distributions (Rao–Blackwell). So each chain contributes a row to
each table, and not only a single cell. Source: Geman & Geman, IEEE PAMI 1984; Gelfand & Smith, JASA 1990;
Hastings, Biometrika 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import njit, on_threads, thread_count
from workbench.value import Float, Int

# Chow liu

_INDEPENDENT_SHARE = (
    0.01  # of independent attributes in each pair, so that all cells are possible
)
_LEAST_MASS = 1e-9  # of a table, spread over its cells


class AttributeTree(NamedTuple):
    """Distribution of records in which the attributes form a tree. The probabilities of an attribute depend
    only on the value of its parent in the tree. `order` contains the attributes in the order in which they
    are drawn, and `parents` contains their parents, or −1 for an attribute without a parent.

    Each attribute has a table, with a row for each code of the parent and a column for each code of the
    attribute. All tables are stored one after another, and begin at the positions `starts`. They contain
    probabilities that are cumulated over the codes of the attribute, and logarithms of the probabilities.
    """

    order: Int[np.ndarray, " attributes"]
    parents: Int[np.ndarray, " attributes"]
    starts: Int[np.ndarray, " attributes"]
    cumulative: Float[np.ndarray, " cells"]
    log_probabilities: Float[np.ndarray, " cells"]


def attribute_tree(
    prior: Sequence[Float[np.ndarray, " values"]],
    sets: Sequence[tuple[int, ...]],
    margins: Sequence[Float[np.ndarray, "..."]],
) -> AttributeTree:
    """Return the tree of attributes for which the sum of the mutual informations of neighbours is largest.
    Two attributes can be neighbours only if one of the given sets contains both.
    """
    pairs = _pair_tables(sets, margins)
    singles = _single_tables(prior, sets, margins)
    information = {pair: _mutual_information(table) for pair, table in pairs.items()}
    order: list[int] = []
    parents: list[int] = []
    tables = []
    while len(order) < len(prior):
        parent, child = _strongest_edge(information, order, len(prior))
        table = singles[child][None]
        if parent >= 0:
            straight = (parent, child) in pairs
            table = pairs[parent, child] if straight else pairs[child, parent].T
            independent = np.multiply.outer(singles[parent], singles[child])
            table = table + _INDEPENDENT_SHARE * independent
        table = np.maximum(table, _LEAST_MASS / table.size)
        order.append(child)
        parents.append(parent)
        tables.append(table / table.sum(axis=1, keepdims=True))
    return AttributeTree(
        np.array(order),
        np.array(parents),
        np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64),
        np.concatenate([np.cumsum(table, axis=1).ravel() for table in tables]),
        np.concatenate([np.log(table).ravel() for table in tables]),
    )


def _pair_tables(sets: Any, margins: Any) -> dict[tuple[int, int], np.ndarray]:
    """Return the joint probabilities of each pair of attributes that are in one set. If several sets contain
    the pair, the table comes from the smallest set.
    """
    pairs = {}
    by_size = sorted(zip(sets, margins, strict=True), key=lambda x: -x[1].size)
    for axes, table in by_size:
        for i, j in combinations(range(len(axes)), 2):
            others = tuple(k for k in range(len(axes)) if k not in (i, j))
            pairs[axes[i], axes[j]] = table.sum(axis=others)
    return pairs


def _single_tables(prior: Any, sets: Any, margins: Any) -> list[np.ndarray]:
    """Return the probabilities of each attribute's codes. If the attribute is in no set, they come from the
    prior.
    """
    singles = [p / p.sum() for p in prior]
    for axes, table in zip(sets, margins, strict=True):
        for i, k in enumerate(axes):
            singles[k] = table.sum(axis=tuple(j for j in range(len(axes)) if j != i))
    return singles


def _strongest_edge(
    information: Mapping[tuple[int, int], float], order: list[int], attributes: int
) -> tuple[int, int]:
    """Among the attributes that are not yet in the tree, find the one with the largest mutual information
    with an attribute of the tree. Return both as a pair (parent, child).

    If no attribute of the tree can be the parent, the parent is −1.
    """
    edges = []
    for (a, b), bits in information.items():
        if (a in order) != (b in order):
            edges.append((bits, a, b) if a in order else (bits, b, a))
    if not edges:
        return -1, next(k for k in range(attributes) if k not in order)
    return max(edges)[1:]


def _mutual_information(joint: Float[np.ndarray, "a b"]) -> float:
    """Return the mutual information of two attributes in nats, given their joint probabilities."""
    independent = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    ratios = joint[positive] / independent[positive]
    return float((joint[positive] * np.log(ratios)).sum())


# Gibbs

_TINY = 1e-30  # below this a product of weights is computed again, by logarithms
_CHAINS_AT_ONCE = 2**16  # their uniform numbers fit in cache
_CHAINS_FOR_THREADS = 64  # fewer are drawn by one
_PARTS_OF_SUMS = 2  # of single precision, whose last bits follow from the parts


class _Copy(NamedTuple):
    """Copy of the table of a set of attributes, in which a certain axis is last. `cells` is the position of
    the copy in `Chains.rows`.
    """

    set_index: int
    order: list[int]  # of the table's axes in the copy
    cells: slice


class Chains:
    """Markov chains that draw records. For speed, the table of each set of attributes is stored once for each
    of its axes, with this axis last.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        prior: Sequence[Float[np.ndarray, " values"]],
        sets: Sequence[tuple[int, ...]],
    ):
        self.shape = shape
        self.sets = tuple(sets)
        self.prior = np.concatenate(prior)
        self.start = np.cumsum([0, *shape]).astype(np.int64)
        self._lay_out_copies()
        self._lay_out_tables()

    def _lay_out_copies(self) -> None:
        """For each copy of a table, compute the position of its first cell, and the axes and strides by which
        its rows are found.
        """
        width = max((len(axes) for axes in self.sets), default=1) or 1
        where = []  # each attribute of each set, by attributes
        for k in range(len(self.shape)):
            where += [(k, i) for i, axes in enumerate(self.sets) if k in axes]
        self.first = np.searchsorted([k for k, _ in where], np.arange(len(self.shape) + 1))
        self.base = np.zeros(len(where), np.int64)
        self.others = np.zeros((len(where), width), np.int64)
        self.strides = np.zeros((len(where), width), np.int64)
        self.copies: list[_Copy] = []
        cells = 0
        for e, (k, i) in enumerate(where):
            axes = self.sets[i]
            rest = [j for j in axes if j != k]
            shape = [self.shape[j] for j in (*rest, k)]
            self.base[e] = cells
            self.others[e, : len(rest)] = rest
            self.strides[e, : len(rest)] = _row_major(shape)[:-1]
            order = [axes.index(j) for j in (*rest, k)]
            self.copies.append(_Copy(i, order, slice(cells, cells + prod(shape))))
            cells += prod(shape)
        self.logs = np.zeros(cells, np.float32)
        self.rows = np.ones(cells, np.float32)

    def _lay_out_tables(self) -> None:
        """For each set of attributes, compute the position of its table's first cell, and the axes and
        strides by which its cells are found.
        """
        width = max((len(axes) for axes in self.sets), default=1) or 1
        self.axes = np.zeros((len(self.sets), width), np.int64)
        self.steps = np.zeros((len(self.sets), width), np.int64)
        sizes = []
        for i, axes in enumerate(self.sets):
            shape = [self.shape[k] for k in axes]
            self.axes[i, : len(axes)] = axes
            self.steps[i, : len(axes)] = _row_major(shape)
            sizes.append(prod(shape))
        self.starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        self.flat = np.zeros(sum(sizes))

    def set_potentials(self, potentials: Sequence[Float[np.ndarray, "..."]]) -> None:
        """Set the distribution from which the chains draw. It is proportional to the exponential of a sum of
        potentials, one table in nats per set of attributes.
        """
        for copy in self.copies:
            table = potentials[copy.set_index].transpose(copy.order)
            self.logs[copy.cells] = (table - table.max(axis=-1, keepdims=True)).ravel()
        np.exp(self.logs, out=self.rows)
        self.flat = np.concatenate([np.empty(0), *(table.ravel() for table in potentials)])

    def set_proposal(self, margins: Sequence[Float[np.ndarray, "..."]]) -> None:
        """Set the distribution from which `jump` proposes records. It is a tree of attributes with the given
        margins.
        """
        prior = np.split(self.prior, self.start[1:-1])
        self.proposal = attribute_tree(prior, self.sets, margins)

    def propose(
        self, count: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "chains attributes"]:
        """Draw `count` records from the distribution of proposals."""
        states = np.zeros((count, len(self.shape)), np.int32)
        self.jump(states, rng, always=True)
        return states

    def jump(
        self,
        states: Int[np.ndarray, "chains attributes"],
        rng: np.random.Generator,
        always: bool = False,
    ) -> int:
        """Propose a new record to every chain (a Metropolis–Hastings step). Return the number of chains that
        accepted their proposal.

        Without jumps, a chain that draws one attribute at a time may never leave a mode of the distribution.
        If `always` is True, every proposal is accepted.
        """
        moved = 0
        for part in _blocks(states):
            drawn = rng.random((len(part), part.shape[1] + 1))
            moved += _jump(
                part, drawn, always, *self.proposal, np.array(self.shape), np.log(self.prior),
                self.start, self.axes, self.steps, self.starts, self.flat,
            )  # fmt: skip
        return moved

    def draw_from_prior(
        self, count: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "chains attributes"]:
        """Draw `count` records from the prior, in which attributes are independent."""
        states = np.empty((count, len(self.shape)), np.int32)
        for k, start in enumerate(self.start[:-1]):
            cumulative = np.cumsum(self.prior[start : self.start[k + 1]])
            drawn = rng.random(count) * cumulative[-1]
            states[:, k] = np.searchsorted(cumulative, drawn, side="right")
        return np.minimum(states, np.array(self.shape, np.int32) - 1)

    def sweep(
        self,
        states: Int[np.ndarray, "chains attributes"],
        rng: np.random.Generator,
        sums: Float[np.ndarray, " rows"] | None = None,
    ) -> None:
        """Draw every attribute of every chain's record again, and change `states` (the records) in place. If
        `sums` is given, add the conditional distributions from which the attributes were drawn.

        The result does not depend on the number of threads, because all random numbers are drawn beforehand,
        and sums always have the same number of parts.
        """
        workers = thread_count()
        parts = workers if sums is None else _PARTS_OF_SUMS
        for part in _blocks(states):
            drawn = rng.random(part.shape, np.float32)
            cuts = np.linspace(0, len(part), parts + 1).astype(int)
            size = 0 if sums is None else sums.size
            worker_sums = [np.zeros(size, np.float32) for _ in range(parts)]

            def work(
                i: int,
                part: np.ndarray = part,
                drawn: np.ndarray = drawn,
                cuts: np.ndarray = cuts,
                worker_sums: list[np.ndarray] = worker_sums,
            ) -> None:
                rows = slice(cuts[i], cuts[i + 1])
                _sweep(
                    part[rows], drawn[rows], self.rows, self.logs, self.prior.astype(np.float32),
                    self.start, self.first, self.base, self.others, self.strides, worker_sums[i],
                )  # fmt: skip

            threads = 1 if len(part) < _CHAINS_FOR_THREADS else workers
            on_threads(work, range(parts), threads)
            if sums is not None:
                for worker_sum in worker_sums:
                    sums += worker_sum

    def step(
        self,
        states: Int[np.ndarray, "chains attributes"],
        rng: np.random.Generator,
        sums: Float[np.ndarray, " rows"] | None = None,
    ) -> None:
        """Make one `jump` and then one `sweep`."""
        self.jump(states, rng)
        self.sweep(states, rng, sums)

    def sums(self) -> Float[np.ndarray, " rows"]:
        """Return an array of zeros, to which `sweep` can add conditional distributions."""
        return np.zeros(self.rows.size)

    def margins(self, sums: Float[np.ndarray, " rows"]) -> list[Float[np.ndarray, "..."]]:
        """Return the expected table (probabilities of all cells) of each set of attributes, computed from
        sums of conditional distributions. Each attribute of a set gives one estimate of the table, and the
        result is the mean of these estimates.
        """
        tables = [np.zeros([self.shape[k] for k in axes]) for axes in self.sets]
        for copy in self.copies:
            shape = [self.shape[k] for k in self.sets[copy.set_index]]
            table = sums[copy.cells].reshape([shape[axis] for axis in copy.order])
            tables[copy.set_index] += table.transpose(np.argsort(copy.order))
        return [table / table.sum() for table in tables]


def _row_major(shape: Sequence[int]) -> list[int]:
    """Return the strides of a table in row-major order: for each axis, the number of cells from one cell to
    the next along this axis.
    """
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def _blocks(
    states: Int[np.ndarray, "chains attributes"],
) -> Iterator[Int[np.ndarray, "chains attributes"]]:
    return (
        states[start : start + _CHAINS_AT_ONCE]
        for start in range(0, len(states), _CHAINS_AT_ONCE)
    )


@njit(cache=True, nogil=True)
def _jump(
    states, drawn, always, order, parent, place, upper, law, shape, prior, begin, axes, steps,
    starts, flat,
):  # fmt: skip
    new, moved = np.empty(states.shape[1], np.int64), 0
    for c in range(states.shape[0]):
        change = 0.0
        for i in range(order.size):
            k, n = order[i], shape[order[i]]
            row = place[i] + (new[parent[i]] * n if parent[i] >= 0 else 0)
            a, b = row, row + n - 1
            while a < b:
                middle = (a + b) >> 1
                if upper[middle] <= drawn[c, i]:
                    a = middle + 1
                else:
                    b = middle
            new[k] = a - row
            old = place[i] + (states[c, parent[i]] * n if parent[i] >= 0 else 0) + states[c, k]
            change += (
                law[old] - law[a] + prior[begin[k] + new[k]] - prior[begin[k] + states[c, k]]
            )
        if not always:
            for s in range(starts.size):
                one, other = starts[s], starts[s]
                for j in range(axes.shape[1]):
                    one += steps[s, j] * new[axes[s, j]]
                    other += steps[s, j] * states[c, axes[s, j]]
                change += flat[one] - flat[other]
        if always or change >= 0 or drawn[c, order.size] < np.exp(change):
            moved += 1
            for k in range(order.size):
                states[c, k] = new[k]
    return moved


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract", "arcp"})
def _sweep(states, drawn, rows, logs, prior, start, first, base, others, strides, sums):
    """Draw every attribute of every chain once, from its conditional distribution. The computation in float32
    has a relative error of 10⁻⁶.
    """
    d, keep = states.shape[1], sums.size > 0
    widest = 0
    for k in range(d):
        widest = max(widest, start[k + 1] - start[k])
    weights = np.empty(widest, np.float32)
    at = np.empty(base.size + 1, np.int64)
    for c in range(states.shape[0]):
        for k in range(d):
            n, a = start[k + 1] - start[k], start[k]
            own = weights[:n]
            own[:] = prior[a : a + n]
            for e in range(first[k], first[k + 1]):
                place = base[e]
                for j in range(others.shape[1]):
                    place += strides[e, j] * states[c, others[e, j]]
                at[e] = place
                row = rows[place : place + n]
                for v in range(n):
                    own[v] *= row[v]
            total = np.float32(0)
            for v in range(n):
                total += own[v]
            if not total > _TINY:
                top = np.float32(-np.inf)
                for v in range(n):
                    x = np.float32(-1e30)
                    if prior[a + v] > 0:
                        x = np.log(prior[a + v])
                        for e in range(first[k], first[k + 1]):
                            x += logs[at[e] + v]
                    own[v] = x
                    top = max(top, x)
                total = np.float32(0)
                for v in range(n):
                    own[v] = np.exp(own[v] - top)
                    total += own[v]
            left = drawn[c, k] * total
            v = 0
            while v < n - 1 and left >= own[v]:
                left -= own[v]
                v += 1
            while own[v] == 0:  # rounding ran past the last that has any weight
                v -= 1
            states[c, k] = v
            if keep:
                share = np.float32(1) / total
                for e in range(first[k], first[k + 1]):
                    row = sums[at[e] : at[e] + n]
                    for w in range(n):
                        row[w] += own[w] * share
