"""Random bits of the operating system or of a seed, and the source that writes receipts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from math import inf
from operator import index
from typing import Any, Protocol

import numpy as np

from workbench.compiled import on_threads, slices, thread_count
from workbench.privacy import ADD_REMOVE, DP, ZCDP, Receipt
from workbench.value import Int, UInt64, sealed

# Bits

KEY_BYTES = 32
_ZEROS = memoryview(bytes(2**22))  # what a keystream is added to
Words = Callable[[int], np.ndarray]  # n -> n independent uniform uint64


def word_source(rng: np.random.Generator | bytes | None) -> Words:
    """A source of uniform 64-bit words: fit to publish if and only if `rng` is None.

    The system's source is the `Keystream` of a key drawn afresh by the operating system at every call,
    so that forked or copied processes never share noise.
    """
    if isinstance(rng, Aligned):
        return rng.measurement()
    if isinstance(rng, bytes):
        return Keystream(rng)
    if rng is not None:
        rng = generator(rng)
        return lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)
    return Keystream(os.urandom(KEY_BYTES))


class Keystream:
    """Words that follow from a secret key alone: whoever draws them again draws the same.

    They are the AES-256-CTR keystream from block `number`·2^64 on, so that streams of one key with
    different numbers never meet.

    Parameters
    ----------
    key : 32 bytes, of the operating system.
    number : which of the key's streams, at least 0.
    """

    chunk = 2**19  # words at a time: threads wait for each other between calls

    def __init__(self, key: bytes, number: int = 0):
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        first_block = modes.CTR(number.to_bytes(8) + bytes(8))
        self._stream = Cipher(algorithms.AES(key), first_block).encryptor()

    def __call__(self, n: int) -> np.ndarray:
        """n independent uniform uint64."""
        zeros = _ZEROS[: 8 * n] if 8 * n <= len(_ZEROS) else bytes(8 * n)
        return np.frombuffer(self._stream.update(zeros), np.uint64)


class Aligned(np.random.Generator):
    """A seeded generator under which noise stays with its cell while parameters move.

    Every measurement, and every run of cells in it, draws from a stream of its own, so that how many
    words another one needed moves nothing. The laws are the same, and as simulated as those of any
    seed. It is made anew from its seed, and neither copied nor split: a copy would draw the same noise
    again.

    Parameters
    ----------
    seed : a whole number, or several.

    Raises
    ------
    ValueError
        If the seed is neither.
    """

    def __init__(self, seed: int | Sequence[int]):
        numbers = [seed] if isinstance(seed, int | np.integer) else seed
        try:
            self._place = tuple(map(index, numbers))
        except TypeError:
            raise ValueError(
                f"Aligned({seed!r}) is not allowed: need a whole number, or several"
            ) from None
        super().__init__(_stream((self._place,)).bit_generator)
        self._measurements = count()

    def measurement(self) -> Stream:
        """The words of the next measurement."""
        return Stream((self._place, next(self._measurements)))

    def __reduce__(self) -> Any:
        raise TypeError("Aligned is made anew from its seed, and not copied")

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Refused: what draws in parts draws from `measurement`."""
        raise ValueError("Aligned is not split: make others, of other seeds")


def _stream(place: tuple[Any, ...]) -> np.random.Generator:
    """A generator of its own for every place, and another than those of plain seeds."""
    digest = hashlib.sha256(f"workbench.noise.Aligned {place!r}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))


class Stream:
    """Words that depend on a seed and a place, and on nothing drawn elsewhere."""

    def __init__(self, place: tuple[Any, ...]):
        self._place = place
        self._substreams = count()

    @cached_property
    def _generator(self) -> np.random.Generator:
        return _stream(self._place)

    def __call__(self, n: int) -> np.ndarray:
        """n independent uniform uint64."""
        return self._generator.integers(0, 2**64, n, dtype=np.uint64)

    def substream(self) -> Stream:
        """The words of the next place below this one; no two places are the same."""
        return Stream((*self._place, next(self._substreams)))


def substream(words: Words) -> Words:
    """The words of the next part of a measurement: a `Stream` of its own, or else just `words`."""
    return words.substream() if isinstance(words, Stream) else words


def generator(rng: np.random.Generator | bytes | None) -> np.random.Generator:
    """`rng`, or one that the operating system seeds: for laws drawn with floats, never published."""
    if rng is None:
        return np.random.default_rng(int.from_bytes(os.urandom(32)))
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng


def uniform_below(n: int, words: Words) -> int:
    """One uniform whole number in [0, n), for n of any size."""
    bits = (n - 1).bit_length()
    mask = (1 << bits) - 1
    while True:
        drawn = 0
        for word in words(max(1, -(-bits // 64))):
            drawn = drawn << 64 | int(word)
        drawn &= mask
        if drawn < n:
            return drawn


# Source

# One thread draws fewer. On two virtual cores of one physical core, two threads took 1.2 times the
# processor time of one at 10⁶ cells, so that they gained nothing, and 1.1 times at 4·10⁶.
CELLS_FOR_THREADS = 2**22


class AdditiveLaw(Protocol):
    """A law of noise on whole numbers."""

    def add(self, out: Int[np.ndarray, " n"], words: Words) -> None:
        """Add an independent draw to every element of `out`, in place."""


class Source:
    """What one measurement draws, and what it signs, made from the one `rng` of its caller.

    Its receipts say `simulated` if that `rng` can be replayed, and `idealised` once a law was drawn
    with floating point: no argument of theirs can be forgotten.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @cached_property
    def words(self) -> Words:
        """Uniform 64-bit words, for exact laws."""
        return word_source(self._rng)

    def add_noise(self, law: AdditiveLaw, values: Int[np.ndarray, " n"]) -> None:
        """Noise of the law on each of the values, in place.

        Without a generator many values are several parts, each on a thread and with words of its own:
        draws are independent, so that it makes no difference to their law.
        """
        threads = (
            thread_count() if self._rng is None and values.size >= CELLS_FOR_THREADS else 1
        )
        if threads == 1:
            law.add(values, self.words)
        else:
            parts = slices(values.size, 2 * threads)
            on_threads(lambda part: law.add(values[part], word_source(None)), parts, threads)

    @property
    def floats(self) -> np.random.Generator:
        """A generator, for laws that are drawn with floating point."""
        self._idealised = True
        return generator(self._rng)

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
    words = word_source(rng)
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
    count: int, *, rng: np.random.Generator | None = None
) -> UInt64[np.ndarray, " count"]:
    """Random 64-bit words that a release may contain, as those of its hash functions.

    Parameters
    ----------
    count : how many words.
    rng : a seeded generator for words that can be replayed, or None to publish.

    Returns
    -------
    uint64[count]
        Independent and uniform.
    """
    return sealed(word_source(rng)(count))
