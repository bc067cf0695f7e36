"""Source of all random draws of a measurement. The source also writes receipts, which record the privacy
cost.
"""

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
    """Interface of distributions of noise. The `rate` of the distribution and the sensitivity of the values
    (their largest change by one unit) determine the privacy cost.
    """

    rate: Fraction

    def add(self, out: Any, words: Any) -> None:
        """Add an independent draw of noise to every element of `out`, in place."""


class EmptyLaw(Protocol):
    """Interface of distributions of the noise on empty cells. Such an object draws which empty cells survive,
    which means that they pass a filter and a random sampling. It also draws their noisy values.
    """

    def survivors(self, empty: int, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Draw which empty cells survive, out of `empty` cells. Return the ranks of the survivors (their
        numbers among the empty cells) in ascending order, and their noisy values.
        """


class Reads(NamedTuple):
    """Private numbers on which a random choice depends, and the largest amount by which one unit can change
    them (`moved`).

    The function `distance` measures how far the numbers from two tables are apart. By default, it is the sum
    of absolute differences. `names` contains an identifier for each number.
    """

    values: Any
    moved: float | Fraction
    names: Names = None
    distance: Callable[[Any, Any], float] | None = None


class Source:
    """Source of all random draws of one measurement, and writer of its receipts.

    Four methods make all random draws that protect a release: `add` adds noise, `survive` draws which empty
    cells are released, `choose` draws one of several outcomes, and `toss` tosses coins. If the order of the
    draws depends on private data, the argument `names` says to which cell each draw belongs. Tests use a
    subclass that repeats the draw for the same cell of another table.

    The source marks a receipt as `simulated` if `rng` is not None, because the noise can then be computed
    again. The source marks a receipt as `idealised` if noise was drawn in floating point, because the proof
    of the guarantee assumes exact real numbers. Mechanisms need not set these marks and cannot forget them.

    Parameters
    ----------
    rng : Generator or bytes, optional
        Source of the random bits: the operating system (None), a seeded generator, or a key of 32 bytes
        from which the bits are computed.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @staticmethod
    def of(rng: Any) -> Source:
        """Return a source for the next measurement. `rng` is None, a generator, a key, or a source."""
        return rng.measurement() if isinstance(rng, Source) else Source(rng)

    def measurement(self) -> Source:
        """Return a source for the next measurement. The new source uses the same `rng`."""
        return Source(self._rng)

    def step(self, number: int) -> Source:
        """Return the source for step `number` of a measurement that makes its draws in several steps. If the
        source was made from a key, the draws of a step are the same every time.
        """
        if not isinstance(self._rng, bytes):
            return self
        step = Source(self._rng)
        step.words = Keystream(self._rng, number)
        return step

    @cached_property
    def words(self) -> Words:
        """Function that takes a number n and returns n uniformly random 64-bit words. All exact draws use
        these words.
        """
        return word_source(self._rng)

    def bytes(self, length: int) -> bytes:
        """Return random bytes, for example for the key that decides which rows are kept if a user has too
        many.
        """
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
        """Add independent noise from a distribution to each of the values, in place.

        If `rng` is None, a long array is split into parts, and several threads add noise to the parts. Each
        part has random words of its own. All draws are independent, so the split does not change the
        distribution.

        Parameters
        ----------
        law : AdditiveLaw
            Distribution of the noise.
        values : int64[n]
            Exact values, to which noise is added.
        moved : number
            Sensitivity for which the width of the noise was computed. For geometric or Laplace noise, it is
            the largest change of the values by one unit in the l1 norm. For Gaussian noise, it is the square
            of the largest change in the l2 norm.
        names : array, optional
            Identifiers of the values. They are needed if the positions of the values depend on private data.
            Default None.
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
        """Draw which empty cells survive a filter and a random sampling, out of `empty` cells. Return the
        ranks of the survivors (their numbers among the empty cells) in ascending order, and their noisy
        values.
        """
        return law.survivors(empty, self.words)

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Reads, idealised: bool = False
    ) -> Any:
        """Make a random choice: call `draw(*arguments, words)` with a source of random words, and return the
        result. If `idealised` is true, `draw` receives a numpy generator in place of the words.

        The result may depend on private data only through the numbers in `reads.values`.
        """
        return draw(*arguments, self.floats if idealised else self.words)

    def toss(
        self,
        chance: Float[np.ndarray, " n"],
        exact: Callable[[int, int], Interval],
        names: Names = None,
    ) -> Bool[np.ndarray, " n"]:
        """Toss n independent coins, and return a mask of those that show heads. For every number of bits, the
        interval `exact(i, bits)` contains the exact probability of heads for coin i. The float chance[i] is
        close to this probability.
        """
        return accept(chance, exact, self.words)

    def places(
        self, values: Int[np.ndarray, " n"], names: Names, tau: float = 0.0, above: float = inf
    ) -> Words:
        """Return a function that draws random words for the priorities of n noisy values, by which cells are
        sampled. The first n words give the first bits of each priority, and all later words give further
        bits.
        """
        return self.words

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Return random words that may be published, for example for hash functions. `names` contains an
        identifier for each word.
        """
        return self.words(count)

    @property
    def floats(self) -> np.random.Generator:
        """Numpy generator for draws in floating point. Any use of this property marks the receipt as
        idealised.
        """
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
        """Write the receipt for this measurement, which records its privacy cost. If the cost is in ε, `rho`
        may state a ρ that was proven for this measurement and that is smaller than the ρ that ε implies.
        """
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Write one receipt (a record of a privacy cost) for a procedure that consists of several measurements.
    Use this function if a theorem proves that the procedure costs less than the sum of its measurements.

    Parameters
    ----------
    name : str
        Name of the procedure, which is printed in the list of costs of a release.
    cost : DP or ZCDP
        Privacy cost of the whole procedure according to the theorem.
    theorem : str
        Citation of the theorem: authors, year and number.
    replaces : sequence of Receipt
        Receipts of the measurements in the procedure. Give at least one receipt. All receipts must protect
        against the same change of the data, for example one added or removed person.

    Returns
    -------
    Receipt
        Receipt that takes the place of the receipts in `replaces`. If one of these receipts is marked as
        simulated or idealised, the new receipt has the same mark.

    Raises
    ------
    ValueError
        If there are no receipts, or if they protect against different changes of the data.
    """
    return _in_place_of(replaces, Receipt(name, cost, theorem=theorem))


def withdrawn(name: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """Write one receipt (a record of a privacy cost) for a procedure whose paper states a wrong guarantee. A
    release with this receipt has no guarantee.

    Parameters
    ----------
    name : str
        Name of the procedure, which is printed in the list of costs of a release.
    replaces : sequence of Receipt
        Receipts of the measurements in the procedure. Give at least one receipt. All receipts must protect
        against the same change of the data, for example one added or removed person.

    Returns
    -------
    Receipt
        Receipt with ε = ∞ that takes the place of the receipts in `replaces`. A release with this receipt
        cannot be saved.

    Raises
    ------
    ValueError
        If there are no receipts, or if they protect against different changes of the data.
    """
    return _in_place_of(replaces, Receipt(name, DP(inf), withdrawn=True))


def unprotected(name: str) -> Receipt:
    """Write a receipt (a record of a privacy cost) for a value that is read from the data without noise. A
    release with this receipt has no guarantee.

    Parameters
    ----------
    name : str
        Name of the value that was read.

    Returns
    -------
    Receipt
        Receipt with ε = ∞.
    """
    return Receipt(name, DP(inf))


def _in_place_of(receipts: Iterable[Receipt], receipt: Receipt) -> Receipt:
    """Return a copy of `receipt` whose fields `relation`, `simulated` and `idealised` come from the receipts
    that it replaces.
    """
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
    """Draw a uniformly random set of keys of a public domain. A key is the position of a cell in the domain,
    from 0.

    Parameters
    ----------
    count : int
        Number of keys to draw, at most `size`.
    size : int
        Number of all cells of the domain.
    rng : Generator, optional
        With a seeded generator, you get the same draws again. Use None (the default) for draws that you
        publish.

    Returns
    -------
    int64[count]
        Different keys, in ascending order.
    """
    return distinct_ranks(count, size, Source.of(rng).public_words)


def distinct_ranks(count: int, size: int, words: Words) -> Int[np.ndarray, " count"]:
    """Return `count` different random integers from 0 to `size` − 1, in ascending order. All sets of `count`
    such integers are equally likely.
    """
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
    """Draw random 64-bit words for a release, for example for the hash functions that the release uses.

    Parameters
    ----------
    count : int
        Number of words to draw.
    rng : Generator, optional
        With a seeded generator, you get the same words again. Use None (the default) for words that you
        publish.
    names : array, optional
        One identifier per word, if there is one word for each row of private data. Only tests that repeat draws
        use identifiers. By default, the words have no identifiers.

    Returns
    -------
    uint64[count]
        Independent and uniformly random words.
    """
    return sealed(Source.of(rng).public_words(count, names))
