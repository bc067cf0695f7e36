"""Blocks of cells, and which of their noisy values pass a filter and threshold sampling."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Bool, Int
from workbench.estimates.law import GEOMETRIC, Law
from workbench.noise import kernels
from workbench.noise.arguments import decay
from workbench.noise.bits import Words
from workbench.noise.exact import Interval, accept
from workbench.noise.gaussian import GaussianBlock
from workbench.noise.source import Source
from workbench.noise.structure import geometric_rho
from workbench.privacy import Receipt
from workbench.value import sealed

MAX_RELEASED_CELLS = 2**28  # that a summary may be expected to hold: some 4 GiB


class Block(NamedTuple):
    """Consecutive cells with one noise law: a unit moves them by at most `l1`, `epsilon` pays.

    `linf` is how far it moves any one of them; `l1`, if not given. The receipt's ρ follows from it.
    """

    size: int
    l1: float | Fraction
    epsilon: float
    linf: float | Fraction | None = None

    @property
    def law(self) -> Law:
        """Of the noise on each of them."""
        return Law(GEOMETRIC, decay(self.l1, self.epsilon))

    def receipt(self, source: Source, name: str) -> Receipt:
        """Of a measurement of all of them."""
        rho = geometric_rho(decay(self.l1, self.epsilon), self.l1, self.linf)
        return source.receipt(name, self.epsilon, rho=rho)


AnyBlock = Block | GaussianBlock


def as_block(block: Any) -> AnyBlock:
    """A block as it is, or the one of these fields."""
    return block if isinstance(block, GaussianBlock) else Block(*block)


def check_size(size: int, released: float) -> None:
    """Refuse, from public quantities alone, a summary too large to hold.

    Parameters
    ----------
    size : how many cells the domain has.
    released : how many of them an empty table is expected to release.

    Raises
    ------
    ValueError
        If those are more than `MAX_RELEASED_CELLS`.
    """
    if released > MAX_RELEASED_CELLS:
        raise ValueError(
            f"an empty table of {size} cells would already release {released:.3g} of them: "
            f"need at most {MAX_RELEASED_CELLS}; raise theta or tau, or lower size"
        )


def passes(noisy: Int[np.ndarray, " n"], theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    """Which values reach θ, on one side or on both."""
    if sides == 1:
        return noisy >= theta
    return (noisy >= theta) | (noisy <= -theta)


def passes_and_sampled(
    noisy: Int[np.ndarray, " n"], theta: float, sides: int, tau: float, words: Words
) -> Bool[np.ndarray, " n"]:
    """Which values reach θ and, with τ > 0, are then drawn with probability min(|v|/τ, 1)."""
    if not tau > 0:
        return passes(noisy, ceil(theta), sides)
    kept = passes(noisy, max(ceil(theta), 1), sides)
    below_tau = np.flatnonzero(kept & (np.abs(noisy) < tau))
    chance = np.abs(noisy[below_tau]) / tau

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(abs(int(noisy[below_tau[i]])) / Fraction(tau), bits)

    kept[below_tau] = accept(chance, exact, words)
    return kept


def merge_cells(
    keys: Int[np.ndarray, " n"],
    noisy: Int[np.ndarray, " n"],
    kept: Bool[np.ndarray, " n"],
    ranks: Int[np.ndarray, " s"],
    values: Int[np.ndarray, " s"],
    start: int = 0,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Kept occupied cells and surviving empty ones, by rank from `start` on: keys, values in order."""
    size = int(kept.sum()) + len(ranks)
    out_keys = np.empty(size, np.int64)
    out_values = np.empty(size, np.int64)
    chosen = np.ones(len(ranks), bool)
    kernels.merge(keys, noisy, kept, ranks, values, chosen, start, out_keys, out_values)
    return sealed(out_keys), sealed(out_values)
