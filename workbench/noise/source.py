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
    """Distribution of noise. Its `rate`, together with the sensitivity of the values, determines
    the privacy cost.
    """

    rate: Fraction

    def add(self, out: Any, words: Any) -> None:
        """Add an independent draw to every element of `out`, in place."""


class EmptyLaw(Protocol):
    """Distribution of the noise in empty cells. It draws which cells survive, and their values."""

    def survivors(self, empty: int, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Draw which of many cells survive. Return their sorted ranks and their values."""


class Reads(NamedTuple):
    """Private numbers on which a choice depends, and the most that one unit can change them.

    `distance` is a function that measures how far two sets of such numbers are apart. The default
    is the l1 norm.
    """

    values: Any
    moved: float | Fraction
    names: Names = None
    distance: Callable[[Any, Any], float] | None = None


class Source:
    """Source of all random draws of one measurement. It uses the generator `rng` of the caller.

    Four methods make all random draws of a release: `add` adds noise, `survive` draws which empty
    cells survive, `choose` draws one of several outcomes, and `toss` tosses coins. If the order of
    draws depends on private data, `names` say to which cell each draw belongs. A subclass can then
    repeat the draw for the same cell of another table.

    The source marks a receipt as `simulated` if the `rng` has a seed. It marks the receipt as
    `idealised` if noise was drawn in floating point, because the proof is for real numbers. A
    mechanism cannot forget these marks.

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
        """Return the source of random draws for the next measurement. `rng` may itself be a source."""
        return rng.measurement() if isinstance(rng, Source) else Source(rng)

    def measurement(self) -> Source:
        """Return the source of random draws for the next measurement."""
        return Source(self._rng)

    def step(self, number: int) -> Source:
        """Return the source of random draws for the n-th step of a part. If the source has a key,
        the draws are the same every time.
        """
        if not isinstance(self._rng, bytes):
            return self
        step = Source(self._rng)
        step.words = Keystream(self._rng, number)
        return step

    @cached_property
    def words(self) -> Words:
        """Return uniformly random 64-bit words, from which exact samplers draw."""
        return word_source(self._rng)

    def bytes(self, length: int) -> bytes:
        """Return random bytes, for example the key that decides which rows of a user are kept."""
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
            Exact values, to which noise is added.
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
        """Draw which of many empty cells survive. Return their sorted ranks and their values."""
        return law.survivors(empty, self.words)

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Reads, idealised: bool = False
    ) -> Any:
        """Make a random choice by calling `draw(*arguments, words)`. If the choice is `idealised`,
        `draw` receives a generator of floats instead of random words.

        The outcome may depend on private data only through the numbers in `reads`.
        """
        return draw(*arguments, self.floats if idealised else self.words)

    def toss(
        self,
        chance: Float[np.ndarray, " n"],
        exact: Callable[[int, int], Interval],
        names: Names = None,
    ) -> Bool[np.ndarray, " n"]:
        """Toss coins. Coin i shows heads with probability exactly `exact(i, ·)`. The float `chance`
        is close to this probability.
        """
        return accept(chance, exact, self.words)

    def places(
        self, values: Int[np.ndarray, " n"], names: Names, tau: float = 0.0, above: float = inf
    ) -> Words:
        """Return random words from which priorities between two thresholds are made. The first n
        words are for n values, and the rest give further bits.
        """
        return self.words

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Return random words that may be published, or that choose among rows with these names."""
        return self.words(count)

    @property
    def floats(self) -> np.random.Generator:
        """Return a generator for draws in floating point, and mark the receipt as idealised."""
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
        """Return the receipt for this measurement. `rho` states a smaller cost in ρ, if the
        structure of the measurement proves one.
        """
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Return the cost of a whole procedure as one record, if a theorem proves that it is lower than the sum of
    the costs of its measurements.

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
    """Mark a procedure for which its paper states a wrong guarantee. The release then states no guarantee.

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
    """Mark a measurement of the data without noise. The release then states no guarantee.

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
        Number of all cells of the domain.
    rng : Generator, optional
        Seeded generator, which gives the same draws again. Use None (the default) for draws that you publish.

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
        Seeded generator, which gives the same words again. Use None (the default) for words that you publish.
    names : array, optional
        Identifiers of the words, if there is one word per private row.

    Returns
    -------
    uint64[count]
        Independent uniform words.
    """
    return sealed(Source.of(rng).public_words(count, names))
