"""The random draws of a measurement, and the receipts for them."""

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
    """Distribution of noise, whose `rate` determines how far values may move at which price."""

    rate: Fraction

    def add(self, out: Any, words: Any) -> None:
        """Add an independent draw to every element of `out`, in place."""


class EmptyLaw(Protocol):
    """Distribution for an empty cell, which draws how many cells survive and their values."""

    def survivors(self, empty: int, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Draw which of so many cells survive, as sorted ranks, and their values."""


class Reads(NamedTuple):
    """Private numbers that a choice depends on, and how far one unit may move them.

    `distance` computes how far two of them are from each other. The default is the l1 norm.
    """

    values: Any
    moved: float | Fraction
    names: Names = None
    distance: Callable[[Any, Any], float] | None = None


class Source:
    """Source of everything that one measurement draws, made from the `rng` of the caller.

    All randomness of a release passes through four verbs: `add` noise, determine which empty cells
    `survive`, `choose` one of several outcomes, and `toss` coins. `names` say what each draw is for where
    places follow private data, so that a subclass can draw the same for the same cell of another table.

    Receipts say `simulated` if the `rng` can be replayed, and `idealised` after a draw in floating point.
    Mechanisms cannot forget either, because neither is an argument.

    Parameters
    ----------
    rng : Generator or bytes, optional
        None for the bits of the operating system, a seeded generator, or 32 bytes whose keystream is drawn.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @staticmethod
    def of(rng: Any) -> Source:
        """Return the source of the next measurement for a caller with this `rng`, which may itself be a
        source.
        """
        return rng.measurement() if isinstance(rng, Source) else Source(rng)

    def measurement(self) -> Source:
        """Return the source of the next measurement."""
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

        Without a generator, many values are split into parts, each on a thread and with its own words.
        Draws are independent, so the distribution is the same.

        Parameters
        ----------
        law : AdditiveLaw
            Distribution of the noise.
        values : int64[n]
            Exact values.
        moved : number
            Largest change of all values together by one unit, for which the scale was computed: in the l1 norm,
            or the square of the l2 norm for Gaussian noise.
        names : array, optional
            What each value is about, where places follow private data.
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
        """Draw which of so many empty cells survive, as sorted ranks, and their values."""
        return law.survivors(empty, self.words)

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Reads, idealised: bool = False
    ) -> Any:
        """Return `draw(*arguments, words)`. If it is `idealised`, it gets floats in place of words.

        The distribution of the outcome depends on no private data except what it `reads`.
        """
        return draw(*arguments, self.floats if idealised else self.words)

    def toss(
        self,
        chance: Float[np.ndarray, " n"],
        exact: Callable[[int, int], Interval],
        names: Names = None,
    ) -> Bool[np.ndarray, " n"]:
        """Toss coins that are heads with probability exactly `exact(i, ·)`, which the float `chance`
        approximates.
        """
        return accept(chance, exact, self.words)

    def places(
        self, values: Int[np.ndarray, " n"], names: Names, tau: float = 0.0, above: float = inf
    ) -> Words:
        """Return words for priorities between two thresholds: the first n for the values, then further bits."""
        return self.words

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Return words that a release may contain, or that sample rows with these names."""
        return self.words(count)

    @property
    def floats(self) -> np.random.Generator:
        """Return a generator, for distributions that are drawn in floating point."""
        self._idealised = True
        return generator(self._rng)

    # receipts

    def receipt(
        self,
        name: str,
        epsilon: float,
        delta: float = 0.0,
        relation: str = ADD_REMOVE,
        *,
        rho: float | None = None,
    ) -> Receipt:
        """Return the receipt for this measurement. `rho` is what follows from its structure."""
        return self._signed(name, DP(epsilon, delta), relation, rho)

    def zcdp_receipt(
        self, name: str, rho: float, delta: float = 0.0, relation: str = ADD_REMOVE
    ) -> Receipt:
        """Return the receipt for a measurement with a price in ρ and no ε."""
        return self._signed(name, ZCDP(rho, delta), relation)

    def _signed(
        self, name: str, cost: DP | ZCDP, relation: str, rho: float | None = None
    ) -> Receipt:
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Price a whole procedure by a theorem, below the sum of its draws.

    Parameters
    ----------
    name : str
        What was measured.
    cost : DP or ZCDP
        Cost of the whole procedure according to the theorem.
    theorem : str
        Authors, year and number.
    replaces : sequence of Receipt
        Receipts of the draws, at least one, all for one relation.

    Returns
    -------
    Receipt
        One receipt that replaces them. It is simulated or idealised if one of them is.

    Raises
    ------
    ValueError
        If there are no receipts, or they are for different relations.
    """
    return _in_place_of(replaces, Receipt(name, cost, theorem=theorem))


def withdrawn(name: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Mark a procedure as its paper prints it, with a wrong guarantee. The release promises nothing.

    Parameters
    ----------
    name : str
        What was measured.
    replaces : sequence of Receipt
        Receipts of the draws, at least one, all for one relation.

    Returns
    -------
    Receipt
        One receipt with infinite ε that replaces them. A release that holds it is never saved.

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
        What was read off the data.

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
            f"replaces = {receipts!r} is not allowed: need the receipts of all draws, at least one, "
            "about one relation"
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
    """Return a uniform sample of `count` different numbers below `size`, sorted."""
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
        What each word is for, if there is one per private row.

    Returns
    -------
    uint64[count]
        Independent uniform words.
    """
    return sealed(Source.of(rng).public_words(count, names))
