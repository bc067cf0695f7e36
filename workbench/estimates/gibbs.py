"""Markov chains over a product of potentials: p(t) ∝ Π_k prior_k(t_k) · exp(Σ_S potential_S(t_S)).

A sweep draws each attribute of each chain anew from its exact conditional, in time of the tables'
rows, whatever the size of the domain. Every conditional is averaged as a whole (Rao-Blackwell), so that
a chain contributes a row to each table, and not a cell.
Source: Geman & Geman, IEEE PAMI 1984; Gelfand & Smith, JASA 1990; Hastings, Biometrika 1970.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from math import prod

import numpy as np
from jaxtyping import Float, Int

from workbench.compiled import njit

_TINY = 1e-30  # below this a product of weights is computed again, by logarithms
_CHAINS = 2**16  # at once: their uniform numbers fit in cache


class Chains:
    """Potentials laid out for drawing: of a table on S a copy for each k in S, with k's values last."""

    def __init__(
        self,
        shape: tuple[int, ...],
        prior: Sequence[Float[np.ndarray, " values"]],
        sets: Sequence[tuple[int, ...]],
    ):
        self.shape, self.sets, d = shape, tuple(sets), len(shape)
        self.prior = np.concatenate(prior)
        self.start = np.cumsum([0, *shape]).astype(np.int64)
        wide = max((len(s) for s in self.sets), default=1) or 1
        places, others, strides, first, base = [], [], [], [0], 0
        self.copies: list[tuple[int, int, slice]] = []  # (which set, which of its axes, where)
        for k in range(d):
            for i, axes in enumerate(self.sets):
                if k not in axes:
                    continue
                rest = [j for j in axes if j != k]
                step = shape[k] * np.cumprod([1, *(shape[j] for j in rest[:0:-1])])[::-1]
                others.append(rest + [0] * (wide - len(rest)))
                strides.append([*step[: len(rest)].tolist()] + [0] * (wide - len(rest)))
                places.append(base)
                size = prod(shape[j] for j in axes)
                self.copies.append((i, axes.index(k), slice(base, base + size)))
                base += size
            first.append(len(places))
        self.first, self.base = np.array(first), np.array(places, np.int64)
        self.others = np.array(others, np.int64).reshape(len(places), wide)
        self.strides = np.array(strides, np.int64).reshape(len(places), wide)
        self.logs, self.rows = np.zeros(base, np.float32), np.ones(base, np.float32)
        self.axes = np.zeros((len(self.sets), wide), np.int64)
        self.steps = np.zeros((len(self.sets), wide), np.int64)
        sizes = [prod(shape[k] for k in axes) for axes in self.sets]
        for i, axes in enumerate(self.sets):
            self.axes[i, : len(axes)] = axes
            ends = np.cumprod([1, *(shape[k] for k in axes[:0:-1])])[::-1]
            self.steps[i, : len(axes)] = ends[: len(axes)]
        self.starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        self.flat = np.zeros(sum(sizes))

    def set_potentials(self, potentials: Sequence[Float[np.ndarray, "..."]]) -> None:
        """Draw from these potentials from now on: one table for each set, in nats."""
        for i, axis, own in self.copies:
            table = np.moveaxis(potentials[i], axis, -1)
            self.logs[own] = (table - table.max(axis=-1, keepdims=True)).ravel()
        np.exp(self.logs, out=self.rows)
        self.flat = np.concatenate([np.empty(0), *(table.ravel() for table in potentials)])

    def set_proposal(self, margins: Sequence[Float[np.ndarray, "..."]]) -> None:
        """Propose whole tuples from now on as a tree of attributes with these margins has them.

        The tree of the largest mutual information (Chow & Liu, 1968), of pairs that any set holds.
        """
        pairs: dict[tuple[int, int], np.ndarray] = {}
        for axes, table in sorted(
            zip(self.sets, margins, strict=True), key=lambda x: -x[1].size
        ):
            for i, j in combinations(range(len(axes)), 2):
                rest = tuple(k for k in range(len(axes)) if k not in (i, j))
                pairs[axes[i], axes[j]] = table.sum(axis=rest)
        d = len(self.shape)
        parts = np.split(self.prior, self.start[1:-1])
        alone = [p / p.sum() for p in parts]
        for axes, table in zip(self.sets, margins, strict=True):
            for i, k in enumerate(axes):
                alone[k] = table.sum(axis=tuple(j for j in range(len(axes)) if j != i))
        known = {e: _information(p) for e, p in pairs.items()}
        order, parent, held = [], [], []
        while len(order) < d:
            best = max(
                ((v, a, b) if a in order else (v, b, a) for (a, b), v in known.items()
                 if (a in order) != (b in order)),
                default=(0.0, -1, next(k for k in range(d) if k not in order)),
            )  # fmt: skip
            _, a, b = best
            table = alone[b][None]
            if a >= 0:
                table = pairs[a, b] if (a, b) in pairs else pairs[b, a].T
                table = table + 0.01 * np.multiply.outer(alone[a], alone[b])
            table = np.maximum(table, 1e-9 / table.size)
            order.append(b), parent.append(a)
            held.append(table / table.sum(axis=1, keepdims=True))
        self.order, self.parent = np.array(order), np.array(parent)
        self.place = np.cumsum([0, *(t.size for t in held)])[:-1].astype(np.int64)
        self.upper = np.concatenate([np.cumsum(t, axis=1).ravel() for t in held])
        self.law = np.concatenate([np.log(t).ravel() for t in held])

    def propose(
        self, count: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "chains attributes"]:
        """Tuples of the tree itself."""
        states = np.zeros((count, len(self.shape)), np.int32)
        self._jump(states, rng, True)
        return states

    def jump(
        self, states: Int[np.ndarray, "chains attributes"], rng: np.random.Generator
    ) -> int:
        """Propose a whole tuple to every chain, by Metropolis and Hastings; returns how many moved.

        Draws of single attributes may never connect modes; whole tuples do.
        """
        return self._jump(states, rng, False)

    def _jump(self, states, rng, always: bool) -> int:
        moved = 0
        for start in range(0, len(states), _CHAINS):
            part = states[start : start + _CHAINS]
            drawn = rng.random((len(part), part.shape[1] + 1))
            moved += _jump(
                part, drawn, always, self.order, self.parent, self.place, self.upper, self.law,
                np.array(self.shape), np.log(self.prior), self.start, self.axes, self.steps,
                self.starts, self.flat,
            )  # fmt: skip
        return moved

    def begin(
        self, count: int, rng: np.random.Generator
    ) -> Int[np.ndarray, "chains attributes"]:
        """Tuples drawn from the prior."""
        states = np.empty((count, len(self.shape)), np.int32)
        for k, a in enumerate(self.start[:-1]):
            upper = np.cumsum(self.prior[a : self.start[k + 1]])
            states[:, k] = np.searchsorted(upper, rng.random(count) * upper[-1], side="right")
        return np.minimum(states, np.array(self.shape, np.int32) - 1)

    def sweep(
        self,
        states: Int[np.ndarray, "chains attributes"],
        rng: np.random.Generator,
        sums: Float[np.ndarray, " rows"] | None = None,
        workers: int | None = None,
    ) -> None:
        """Draw every attribute of every chain anew, in place; conditionals add up in `sums`.

        Uniform numbers are drawn beforehand, so that the outcome does not depend on the workers.
        """
        workers = workers or os.cpu_count() or 1
        for start in range(0, len(states), _CHAINS):
            part = states[start : start + _CHAINS]
            drawn = rng.random(part.shape, np.float32)
            cuts = np.linspace(0, len(part), workers + 1).astype(int)
            own = [
                np.zeros(0 if sums is None else sums.size, np.float32) for _ in range(workers)
            ]

            def work(i: int, part=part, drawn=drawn, cuts=cuts, own=own):
                a, b = cuts[i], cuts[i + 1]
                _sweep(
                    part[a:b], drawn[a:b], self.rows, self.logs, self.prior.astype(np.float32),
                    self.start, self.first, self.base, self.others, self.strides, own[i],
                )  # fmt: skip

            if workers == 1 or len(part) < 64:
                for i in range(workers):
                    work(i)
            else:
                with ThreadPoolExecutor(workers) as pool:
                    list(pool.map(work, range(workers)))
            if sums is not None:
                for found in own:
                    sums += found

    def sums(self) -> Float[np.ndarray, " rows"]:
        """An empty sum of conditionals."""
        return np.zeros(self.rows.size)

    def margins(self, sums: Float[np.ndarray, " rows"]) -> list[Float[np.ndarray, "..."]]:
        """The expected table of each set, from sums of conditionals: each attribute's say, averaged."""
        out = [np.zeros([self.shape[k] for k in axes]) for axes in self.sets]
        for i, axis, own in self.copies:
            axes = self.sets[i]
            turned = [self.shape[k] for k in axes if k != axes[axis]] + [self.shape[axes[axis]]]
            out[i] += np.moveaxis(sums[own].reshape(turned), -1, axis)
        return [table / table.sum() for table in out]


def _information(joint: Float[np.ndarray, "a b"]) -> float:
    """Of one attribute about the other, in nats."""
    apart = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


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
    """One draw from each conditional; float32 throughout, right to 10⁻⁶ of each."""
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
