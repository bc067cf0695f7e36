"""What a measurement draws, and the receipts that it signs."""

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
    """A law of noise, whose `rate` says how far values may move at which price."""

    rate: Fraction

    def add(self, out: Any, words: Any) -> None:
        """Add an independent draw to every element of `out`, in place."""


class EmptyLaw(Protocol):
    """A law of an empty cell: which of many survive, and their values."""

    def survivors(self, empty: int, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Draw which of so many cells survive, as sorted ranks, and their values."""


class Reads(NamedTuple):
    """The private numbers that a choice depends on, and how far one unit may move them.

    `distance` says how far two of them are from each other; without it the l1 norm does.
    """

    values: Any
    moved: float | Fraction
    names: Names = None
    distance: Callable[[Any, Any], float] | None = None


class Source:
    """Source of what one measurement draws and signs, made from the one `rng` of its caller.

    All randomness of a release passes through its four verbs: `add` noise, which empty cells `survive`,
    `choose` one of several outcomes, `toss` coins. `names` say what each draw is about where places
    follow private data, so that a subclass can draw the same for the same cell of another table.

    Receipts say `simulated` if that `rng` can be replayed, and `idealised` once a law was drawn with
    floating point: no argument of theirs can be forgotten.

    Parameters
    ----------
    rng : None for the bits of the operating system; a seeded generator; or 32 bytes, whose keystream is
        drawn.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @staticmethod
    def of(rng: Any) -> Source:
        """The source of the next measurement of whoever was given this `rng`, itself perhaps a source."""
        return rng.measurement() if isinstance(rng, Source) else Source(rng)

    def measurement(self) -> Source:
        """The source of the next measurement."""
        return Source(self._rng)

    def step(self, number: int) -> Source:
        """The source of a part's n-th step: of a key, the same whenever it is drawn."""
        if not isinstance(self._rng, bytes):
            return self
        step = Source(self._rng)
        step.words = Keystream(self._rng, number)
        return step

    @cached_property
    def words(self) -> Words:
        """Uniform 64-bit words, for exact laws."""
        return word_source(self._rng)

    def bytes(self, length: int) -> bytes:
        """Random bytes, for example the key that truncates users."""
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
        """Noise of the law on each of the values, in place.

        Without a generator many values are several parts, each on a thread and with words of its own:
        draws are independent, so that it makes no difference to their law.

        Parameters
        ----------
        law : of the noise.
        values : the exact values.
        moved : how far one unit moves them together, which the law's scale was computed for: in the l1
            norm, or of Gaussian noise the square of the l2 norm.
        names : what each value is about, where places follow private data.
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
        """`draw(*arguments, words)`, or with floats in place of words if it is `idealised`.

        What comes out has a law that depends on nothing private but what it `reads`.
        """
        return draw(*arguments, self.floats if idealised else self.words)

    def toss(
        self,
        chance: Float[np.ndarray, " n"],
        exact: Callable[[int, int], Interval],
        names: Names = None,
    ) -> Bool[np.ndarray, " n"]:
        """Coins: heads with probability exactly `exact(i, ·)`, of which `chance` is a float."""
        return accept(chance, exact, self.words)

    def places(
        self, values: Int[np.ndarray, " n"], names: Names, tau: float = 0.0, above: float = inf
    ) -> Words:
        """The words of priorities between two thresholds: the first n for the values, further bits then."""
        return self.words

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Words that a release may contain, or that sample rows which are so named."""
        return self.words(count)

    @property
    def floats(self) -> np.random.Generator:
        """A generator, for laws that are drawn with floating point."""
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
        """The receipt of this measurement; `rho` is what follows from its structure."""
        return self._signed(name, DP(epsilon, delta), relation, rho)

    def zcdp_receipt(
        self, name: str, rho: float, delta: float = 0.0, relation: str = ADD_REMOVE
    ) -> Receipt:
        """The receipt of a measurement whose price is a ρ, and no ε."""
        return self._signed(name, ZCDP(rho, delta), relation)

    def _signed(
        self, name: str, cost: DP | ZCDP, relation: str, rho: float | None = None
    ) -> Receipt:
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """The price of a whole procedure where a theorem puts it below the sum of its draws.

    Parameters
    ----------
    name : what was measured.
    cost : what the theorem says that the whole procedure costs.
    theorem : where it stands: authors, year, number.
    replaces : the receipts of the draws, at least one, all of them about one relation.

    Returns
    -------
    Receipt
        One receipt in their place, simulated or idealised if one of them is.

    Raises
    ------
    ValueError
        Without receipts, or if they are about different relations.
    """
    return _in_place_of(replaces, Receipt(name, cost, theorem=theorem))


def withdrawn(name: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """A procedure as a paper prints it, whose guarantee is wrong: it promises nothing.

    Parameters
    ----------
    name : what was measured.
    replaces : the receipts of the draws, at least one, all of them about one relation.

    Returns
    -------
    Receipt
        One receipt of infinite ε in their place; a release that holds it is never saved.

    Raises
    ------
    ValueError
        Without receipts, or if they are about different relations.
    """
    return _in_place_of(replaces, Receipt(name, DP(inf), withdrawn=True))


def unprotected(name: str) -> Receipt:
    """A measurement that no noise protects: the release then promises nothing.

    Parameters
    ----------
    name : what was read off the data.

    Returns
    -------
    Receipt
        Of infinite ε.
    """
    return Receipt(name, DP(inf))


def _in_place_of(receipts: Iterable[Receipt], receipt: Receipt) -> Receipt:
    """The receipt, about the relation and from the randomness of those that it replaces."""
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
    """A uniform sample of the keys of a public domain, without replacement.

    Parameters
    ----------
    count : how many keys, at most `size`.
    size : the cells of the domain.
    rng : a seeded generator for draws that can be replayed, or None to publish.

    Returns
    -------
    int64[count]
        Different keys, sorted.
    """
    words = Source.of(rng).public_words
    keys = np.empty(0, np.int64)
    if 2 * count > size:
        left_out = uniform_keys(size - count, size, rng=rng) if count < size else keys
        return np.delete(np.arange(size), left_out)
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
    """Random 64-bit words, for example those of a release's hash functions, or one for each row.

    Parameters
    ----------
    count : how many words.
    rng : a seeded generator for words that can be replayed, or None to publish.
    names : whom or what each word is for, where there is one per private row.

    Returns
    -------
    uint64[count]
        Independent and uniform.
    """
    return sealed(Source.of(rng).public_words(count, names))
