"""Source of the random draws of a measurement, and of the receipts for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np

from workbench.compiled import on_threads, slices, thread_count
from workbench.noise.laws import accept
from workbench.privacy import ADD_REMOVE, DP, ZCDP, Receipt
from workbench.privacy.enclosures import Interval
from workbench.randomness import Keystream, Words, generator, word_source
from workbench.value import Bool, Float, Int, Num, UInt64, sealed

# Source

# One thread draws fewer. On two virtual cores of one physical core, two threads took 1.2 times the
# processor time of one at 10⁶ cells, so that they gained nothing, and 1.1 times at 4·10⁶.
CELLS_FOR_THREADS = 2**22

Names = (
    Any  # of values, along the last axis of an array, or a function of it; None: their places
)


class AdditiveLaw(Protocol):
    """Distribution of noise. Its `rate` and the sensitivity of the values determine the price."""

    rate: Fraction

    def add(self, out: Any, words: Any) -> None:
        """Add an independent draw to every element of `out`, in place."""


class EmptyLaw(Protocol):
    """Distribution for an empty cell, which draws the surviving cells and their values."""

    def survivors(self, empty: int, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Draw the survivors among a number of cells: their sorted ranks and their values."""


class Reads(NamedTuple):
    """Private numbers that a choice depends on, and the largest change of them by one unit.

    `distance` computes the distance between two sets of such numbers. The default is the l1 norm.
    """

    values: Any
    moved: float | Fraction
    names: Names = None
    distance: Callable[[Any, Any], float] | None = None


class Source:
    """Source of all random draws of one measurement, made from the caller's `rng`.

    All randomness of a release passes through four methods: `add` adds noise, `survive` draws the surviving
    empty cells, `choose` draws one of several outcomes, and `toss` tosses coins. If the positions of draws
    depend on private data, `names` identify them, so that a subclass can repeat the draw for the same cell
    of another table.

    A receipt is marked as `simulated` if the `rng` has a seed, and as `idealised` if noise was drawn in
    floating point, where the proof is for real numbers. The source sets both marks itself, so a mechanism
    cannot forget them.

    Parameters
    ----------
    rng : Generator or bytes, optional
        None for random bits of the operating system, a seeded generator, or a key of 32 bytes from which
        the bits are derived.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @staticmethod
    def of(rng: Any) -> Source:
        """Return the source of randomness for the next measurement. `rng` may itself be a source."""
        return rng.measurement() if isinstance(rng, Source) else Source(rng)

    def measurement(self) -> Source:
        """Return the source of randomness for the next measurement."""
        return Source(self._rng)

    def step(self, number: int) -> Source:
        """Return the source of the n-th step of a part. A source with a key gives the same draws every time."""
        if not isinstance(self._rng, bytes):
            return self
        step = Source(self._rng)
        step.words = Keystream(self._rng, number)
        return step

    @cached_property
    def words(self) -> Words:
        """Return uniform 64-bit words, for exact distributions."""
        return word_source(self._rng)

    def bytes(self, length: int) -> bytes:
        """Return random bytes, for example the key that truncates users."""
        return self.words(-(-length // 8)).tobytes()[:length]

    # verbs

    def add(
        self,
        law: AdditiveLaw,
        values: Num[np.ndarray, " n"],
        *,
        moved: float | Fraction,
        names: Names = None,
    ) -> None:
        """Add noise from a distribution to each of the values, in place.

        Without a generator, long arrays are split into parts, and a separate thread with separate random
        words adds noise to each part. All draws are independent, so this does not change the distribution.

        Parameters
        ----------
        law : AdditiveLaw
            Distribution of the noise.
        values : int64[n]
            Exact values.
        moved : number
            Sensitivity for which the scale was computed: the largest change of all values by one unit in
            the l1 norm, or for Gaussian noise the square of the change in the l2 norm.
        names : array, optional
            Identifiers of the values, needed if their positions depend on private data.
        """
        if getattr(law, "idealised", False):
            law.add(values, self.floats)
            return
        threads = (
            thread_count() if self._rng is None and values.size >= CELLS_FOR_THREADS else 1
        )
        if threads == 1:
            law.add(values, self.words)
        else:
            parts = slices(values.size, 2 * threads)
            on_threads(
                lambda part: law.add(values[part], self.measurement().words), parts, threads
            )

    def survive(
        self, law: EmptyLaw, empty: int, names: Names = None
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Draw the survivors among a number of empty cells: their sorted ranks and their values."""
        return law.survivors(empty, self.words)

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Reads, idealised: bool = False
    ) -> Any:
        """Return `draw(*arguments, words)`. If the choice is `idealised`, `draw` receives a generator of
        floats instead of words.

        The distribution of the outcome may depend on private data only through the numbers in `reads`.
        """
        return draw(*arguments, self.floats if idealised else self.words)

    def toss(
        self,
        chance: Float[np.ndarray, " n"],
        exact: Callable[[int, int], Interval],
        names: Names = None,
    ) -> Bool[np.ndarray, " n"]:
        """Toss coins. Coin i shows heads with probability exactly `exact(i, ·)`, which the float `chance`
        approximates.
        """
        return accept(chance, exact, self.words)

    def places(
        self, values: Int[np.ndarray, " n"], names: Names, tau: float = 0.0, above: float = inf
    ) -> Words:
        """Return random words for priorities between two thresholds: first n words, one per value, then
        words for further bits.
        """
        return self.words

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Return random words that a release may contain, or words that sample rows with these names."""
        return self.words(count)

    @property
    def floats(self) -> np.random.Generator:
        """Return a generator for draws in floating point, which mark the receipt as idealised."""
        self._idealised = True
        return generator(self._rng)

    # receipts

    def receipt(
        self,
        name: str,
        cost: DP | ZCDP,
        relation: str = ADD_REMOVE,
        *,
        rho: float | None = None,
    ) -> Receipt:
        """Return the receipt for this measurement. `rho` is the ρ that follows from its structure."""
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Price a whole procedure by a theorem that proves a lower cost than the sum of its draws.

    Parameters
    ----------
    name : str
        What was measured.
    cost : DP or ZCDP
        Cost of the whole procedure according to the theorem.
    theorem : str
        Authors, year and number.
    replaces : sequence of Receipt
        Receipts of the draws: at least one, and all for one relation.

    Returns
    -------
    Receipt
        One receipt that replaces them. It is marked as simulated or idealised if one of them is.

    Raises
    ------
    ValueError
        If there are no receipts, or they are for different relations.
    """
    return _in_place_of(replaces, Receipt(name, cost, theorem=theorem))


def withdrawn(name: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Mark a procedure whose paper prints a wrong guarantee. The release then promises nothing.

    Parameters
    ----------
    name : str
        What was measured.
    replaces : sequence of Receipt
        Receipts of the draws: at least one, and all for one relation.

    Returns
    -------
    Receipt
        One receipt with infinite ε that replaces them. A release with this receipt cannot be saved.

    Raises
    ------
    ValueError
        If there are no receipts, or they are for different relations.
    """
    return _in_place_of(replaces, Receipt(name, DP(inf), withdrawn=True))


def unprotected(name: str) -> Receipt:
    """Mark a measurement that no noise protects. The release then promises nothing.

    Parameters
    ----------
    name : str
        Name of the value that was read from the data.

    Returns
    -------
    Receipt
        Receipt with infinite ε.
    """
    return Receipt(name, DP(inf))


def _in_place_of(receipts: Iterable[Receipt], receipt: Receipt) -> Receipt:
    """Return the receipt with the relation and the randomness of the receipts that it replaces."""
    receipts = tuple(receipts)
    relations = {r.relation for r in receipts}
    if len(relations) != 1:
        raise ValueError(
            f"replaces = {receipts!r} is not allowed: need at least one receipt, and all for one "
            "relation"
        )
    return replace(
        receipt,
        relation=relations.pop(),
        simulated=any(r.simulated for r in receipts),
        idealised=any(r.idealised for r in receipts),
    )


# Public


def uniform_keys(
    count: int, size: int, *, rng: np.random.Generator | None = None
) -> Int[np.ndarray, " count"]:
    """Draw a uniform sample of the keys of a public domain, without replacement.

    Parameters
    ----------
    count : int
        Number of keys, at most `size`.
    size : int
        Number of cells of the domain.
    rng : Generator, optional
        Seeded generator for draws that can be replayed. None to publish.

    Returns
    -------
    int64[count]
        Different keys, sorted.
    """
    return distinct_ranks(count, size, Source.of(rng).public_words)


def distinct_ranks(count: int, size: int, words: Words) -> Int[np.ndarray, " count"]:
    """Return a sorted uniform sample of `count` distinct numbers below `size`."""
    if 2 * count > size:
        return np.delete(np.arange(size), distinct_ranks(size - count, size, words))
    keys = np.empty(0, np.int64)
    while len(keys) < count:
        drawn = words(2 * count)
        drawn = drawn[drawn < 2**64 // size * size] % np.uint64(size)  # each key equally often
        keys = np.concatenate([keys, drawn.astype(np.int64)])
        _, first = np.unique(keys, return_index=True)
        keys = keys[np.sort(first)]
    return np.sort(keys[:count])


def random_words(
    count: int, *, rng: np.random.Generator | None = None, names: Names = None
) -> UInt64[np.ndarray, " count"]:
    """Draw random 64-bit words, for example for the hash functions of a release, or one for each row.

    Parameters
    ----------
    count : int
        Number of words.
    rng : Generator, optional
        Seeded generator for words that can be replayed. None to publish.
    names : array, optional
        Identifiers of the words, if there is one word per private row.

    Returns
    -------
    uint64[count]
        Independent uniform words.
    """
    return sealed(Source.of(rng).public_words(count, names))
