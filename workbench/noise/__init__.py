"""The one door through which private data leaves: noisy values, and a receipt that says what they cost.

Every function takes exact values and returns noisy ones with a `Receipt`; nothing else makes receipts,
so a release's ledger is complete by construction. With `rng=None` the bits come from the operating
system and the laws are exact: fit to publish. With a numpy Generator the same samplers run from its
bits and the receipt says `simulated`. Not constant-time: timing a release tells more than it says.

`geometric`, `laplace`   noise on a vector of values
`survivors`, `top`       non-empty cells with noise, and the empty cells that pass, in one look
`sample`, `take`         the second step of the laborious process: public noisy values, no receipt
`places`, `empty_cell`   what needs no data: a public sample of keys, the law of an empty cell
`by_theorem`             where a theorem prices a procedure below the sum of its draws
`unprotected`            a look that nothing protects: the release then promises nothing
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, isfinite

import numpy as np
from jaxtyping import Bool, Int, Num

from workbench.noise import kernels, priorities
from workbench.noise.bits import words as _words
from workbench.noise.empty_cells import EmptyCell, ranks
from workbench.noise.exact import Interval, accept
from workbench.noise.laws import two_sided as _two_sided
from workbench.privacy import DP, Receipt
from workbench.value import sealed

MOST = 2**28  # cells that a summary may be expected to hold: some 4 GiB

_SMALLEST = Fraction(1, 2**36)  # ε/Δ below this would need more than 64-bit counts


def decay(l1: float, epsilon: float) -> Fraction:
    """ε/Δ as the exact ratio of the two floats; a ValueError outside what 64-bit counts can hold."""
    for name, x in (("epsilon", epsilon), ("l1", l1)):
        if not (isfinite(x) and x > 0):
            raise ValueError(f"{name} = {x!r} is not allowed: need a finite number > 0")
    exact = l1 if isinstance(l1, int | Fraction) else float(l1)  # numpy integers would wrap
    ratio = Fraction(float(epsilon)) / Fraction(exact)
    if ratio < _SMALLEST:
        raise ValueError(
            f"epsilon/l1 = {epsilon}/{l1} is too small: need at least 2^-36 for 64-bit counts"
        )
    return ratio


def geometric(
    values: Int[np.ndarray, " n"],
    *,
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " n"], Receipt]:
    """Two-sided geometric noise, Pr[X = x] ∝ exp(−|x|·ε/l1): ε-DP for l1-sensitivity `l1`.

    Source: Ghosh, Roughgarden & Sundararajan, STOC 2009. Exact (see `noise.laws`).
    """
    _check(values, 0, 2, 0)
    noisy = np.array(values, np.int64)
    _two_sided(decay(l1, epsilon)).add(noisy, _words(rng))
    return sealed(noisy), _receipt("geometric", epsilon, rng)


def laplace(
    values: Num[np.ndarray, " n"],
    *,
    l1: float,
    epsilon: float,
    grid: float,
    l0: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Num[np.ndarray, " n"], Receipt]:
    """Discrete Laplace noise on the multiples of a public power of two `grid`: ε-DP.

    Values are rounded to the grid first; a unit that moves `l0` coordinates (all, if not given) then
    moves them by at most l1 + l0·grid, unless they are whole numbers and the grid divides 1. Rounding
    the output of a float sampler instead would leak (Mironov, CCS 2012).
    """
    if not (isfinite(grid) and grid > 0 and _power_of_two(grid)):
        raise ValueError(f"grid = {grid!r} is not allowed: need a power of two")
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" and grid <= 1
    moved = 0 if whole else (values.size if l0 is None else l0)
    steps = Fraction(l1) / Fraction(grid) + moved
    units = np.clip(np.nan_to_num(values / grid), -(2**53), 2**53)  # never a refusal that tells
    units = np.rint(units).astype(np.int64)
    _two_sided(decay(steps, epsilon)).add(units, _words(rng))
    return units * grid, _receipt("laplace", epsilon, rng)


def survivors(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], Receipt]:
    """Noise on all `size` cells, of which those that pass are returned: keys (sorted), noisy values.

    A value passes if |v| >= theta (sides = 2) or v >= theta (sides = 1) and, with tau > 0, is then kept
    with probability min(|v|/tau, 1). Noise on the non-empty cells and the survivors among the empty
    ones are one look: together they have the law of geometric noise on every cell, filtered.
    """
    ratio, words = decay(l1, epsilon), _words(rng)
    _check(counts, theta, sides, tau)
    law = empty_cell(ratio, theta, sides, tau)
    everything = sides == 2 and theta == 0 and tau == 0
    check_size(size, 1.0 if everything else float(law.survival(192)))
    if everything:
        dense = np.zeros(size, np.int64)
        dense[keys] = counts
        noisy, receipt = geometric(dense, l1=l1, epsilon=epsilon, rng=rng)
        return sealed(np.arange(size)), noisy, receipt
    noisy = np.array(counts, np.int64)
    _two_sided(ratio).add(noisy, words)
    kept = _sample(noisy, theta, sides, tau, words)
    new = ranks(size - len(keys), law.survival, words)
    values = law.values(len(new), words)
    keys, values = _merged(keys, noisy, kept, new, values)
    return keys, values, _receipt("survivors", epsilon, rng)


def top(
    keys: Int[np.ndarray, " n"],
    counts: Int[np.ndarray, " n"],
    size: int,
    *,
    l1: float,
    epsilon: float,
    theta: float,
    most: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"], float, Receipt]:
    """Noise on all `size` cells, of which the `most` with the largest priorities are returned.

    Keys (sorted), noisy values, and τ_s, the next priority (0 if no more than `most` cells pass).
    """
    law, words = _two_sided(decay(l1, epsilon)), _words(rng)
    _check(counts, theta, sides, 0)
    check_size(min(most, size), 1.0)
    noisy = np.array(counts, np.int64)
    law.add(noisy, words)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    occupied = priorities.Candidates(noisy[kept], words)
    where, values, pools = priorities.empty_cells(
        occupied, size - len(keys), law.alpha, theta, sides, most, words
    )
    taken, tau = priorities.largest([occupied, *pools], most)
    kept[kept] = taken[: len(occupied.drawn)]
    taken = taken[len(occupied.drawn) :]
    where, values = where[taken], values[taken]
    if (where[1:] < where[:-1]).any():
        order = np.argsort(where)
        where, values = where[order], values[order]
    keys, values = _merged(keys, noisy, kept, where, values)
    return keys, values, tau, _receipt("survivors", epsilon, rng)


def sample(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    sides: int = 2,
    tau: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Bool[np.ndarray, " n"]:
    """Which of some public noisy values pass the filter and threshold sampling."""
    return _sample(noisy, theta, sides, tau, _words(rng))


def take(
    noisy: Int[np.ndarray, " n"],
    *,
    theta: float,
    most: int,
    sides: int = 2,
    rng: np.random.Generator | None = None,
) -> tuple[Bool[np.ndarray, " n"], float]:
    """Which of some public noisy values have the `most` largest priorities, and τ_s."""
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    taken, tau = priorities.largest([priorities.Candidates(noisy[kept], _words(rng))], most)
    kept[kept] = taken
    return kept, tau


def places(
    count: int, size: int, *, rng: np.random.Generator | None = None
) -> Int[np.ndarray, " count"]:
    """`count` distinct keys of a public domain, sorted: a uniform sample that looks at no data."""
    public, chosen = _words(rng), np.empty(0, np.int64)
    if 2 * count > size:
        left_out = places(size - count, size, rng=rng) if count < size else chosen
        return np.delete(np.arange(size), left_out)
    while len(chosen) < count:
        more = public(2 * count)
        more = more[more < 2**64 // size * size] % np.uint64(size)  # every key equally often
        more = more.astype(np.int64)
        _, first = np.unique(np.concatenate([chosen, more]), return_index=True)
        chosen = np.concatenate([chosen, more])[np.sort(first)]
    return np.sort(chosen[:count])


@lru_cache(64)
def empty_cell(decay: Fraction, theta: float, sides: int, tau: float = 0.0) -> EmptyCell:
    """The law of one empty cell under noise of decay ε/Δ; public, since it holds no data."""
    return EmptyCell(_two_sided(decay).alpha, theta, sides, tau)


def by_theorem(name: str, cost: DP, source: str, *, rng: np.random.Generator | None) -> Receipt:
    """The price of a whole procedure where a theorem puts it below the sum of its draws."""
    return Receipt(f"{name} (by theorem: {source})", cost, simulated=rng is not None)


def unprotected(name: str) -> Receipt:
    """A look at the data that nothing protects."""
    return Receipt(name, DP(inf))


def check_size(size: int, chance: float) -> None:
    """Refuse, from public quantities alone, a summary too large to hold."""
    if size * chance > MOST:
        raise ValueError(
            f"an empty table of {size} cells would already release {size * chance:.3g} of them: "
            f"need at most {MOST}; raise theta or tau, or lower size"
        )


def _check(values: np.ndarray, theta: float, sides: int, tau: float) -> None:
    """Refuse, from public quantities alone, what the laws are not about."""
    if values.dtype.kind not in "iub":
        raise ValueError(f"values of type {values.dtype} are not allowed: need whole numbers")
    for name, x in (("theta", theta), ("tau", tau)):
        if not (isfinite(x) and x >= 0):
            raise ValueError(f"{name} = {x!r} is not allowed: need a finite number >= 0")
    if sides not in (1, 2):
        raise ValueError(f"sides = {sides!r} is not allowed: need 1 or 2")


def _passes(noisy, theta: int, sides: int) -> Bool[np.ndarray, " n"]:
    if sides == 1:
        return noisy >= theta
    return (noisy >= theta) | (noisy <= -theta)


def _sample(noisy, theta: float, sides: int, tau: float, words) -> Bool[np.ndarray, " n"]:
    if not tau > 0:
        return _passes(noisy, ceil(theta), sides)
    kept = _passes(noisy, max(ceil(theta), 1), sides)
    low = np.flatnonzero(kept & (np.abs(noisy) < tau))
    chance = np.abs(noisy[low]) / tau

    def exact(i: int, bits: int) -> Interval:
        return Interval.of(abs(int(noisy[low[i]])) / Fraction(tau), bits)

    kept[low] = accept(chance, exact, words)
    return kept


def _merged(keys, noisy, kept, new, values):
    """Kept occupied cells and surviving empty ones (by rank), in key order."""
    size = int(kept.sum()) + len(new)
    out = np.empty(size, np.int64), np.empty(size, np.int64)
    kernels.merge(keys, noisy, kept, new, values, *out)
    return tuple(map(sealed, out))


def _receipt(name: str, epsilon: float, rng) -> Receipt:
    return Receipt(name, DP(epsilon), simulated=rng is not None)


def _power_of_two(x: float) -> bool:
    return Fraction(x).numerator.bit_count() == 1 == Fraction(x).denominator.bit_count()
