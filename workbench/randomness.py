"""Random bits from the operating system, a secret key or a seed. All randomness of the package comes from
this module.

The class `Source` in `workbench.noise` turns these bits into noise. The package `workbench.data` uses a
random key to choose which rows of a user are kept, if the user has more rows than allowed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from operator import index
from typing import Any

import numpy as np

KEY_BYTES = 32
_ZEROS = memoryview(bytes(2**22))  # what a keystream is added to
Words = Callable[[int], np.ndarray]  # n -> n independent uniform uint64


def word_source(rng: np.random.Generator | bytes | None) -> Words:
    """Return a function that takes a number n and draws n uniformly random 64-bit words. You may publish
    noise from these words only if `rng` is None.

    If `rng` is None, the words are the `Keystream` of a new secret key from the operating system. Every call
    of `word_source` gets a new key, so two processes never draw the same noise, even if one process is a copy
    of the other.
    """
    if isinstance(rng, Aligned):
        return rng.measurement()
    if isinstance(rng, bytes):
        return Keystream(rng)
    if rng is not None:
        rng = generator(rng)
        return lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)
    return Keystream(system_key())


def system_key() -> bytes:
    """Return a new secret key: 32 random bytes from the operating system."""
    return os.urandom(KEY_BYTES)


class Keystream:
    """Sequence of random 64-bit words that is computed from a secret key. The same key gives the same words.

    The words are the output of the cipher AES-256 in counter mode. One key has many streams of words, and
    `number` chooses one of them. The streams of one key do not overlap, because stream number n begins at
    block n·2^64 of the cipher.

    Parameters
    ----------
    key : Secret key of 32 bytes, from `system_key`.
    number : Number of the stream, an integer >= 0. Default 0.
    """

    chunk = 2**19  # words at a time: threads wait for each other between calls

    def __init__(self, key: bytes, number: int = 0):
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        first_block = modes.CTR(number.to_bytes(8) + bytes(8))
        self._stream = Cipher(algorithms.AES(key), first_block).encryptor()

    def __call__(self, n: int) -> np.ndarray:
        """Draw the next n words of the sequence: independent and uniform 64-bit integers, as an array."""
        zeros = _ZEROS[: 8 * n] if 8 * n <= len(_ZEROS) else bytes(8 * n)
        return np.frombuffer(self._stream.update(zeros), np.uint64)


class Aligned(np.random.Generator):
    """Seeded generator of noise for interactive pages. If you move a slider, the noise of each table cell
    stays the same.

    Each noisy query on the data has its own sequence of random numbers. If the query is about many cells,
    each group of consecutive cells has its own sequence. So the noise of a cell does not depend on the number
    of draws for other cells. The noise has the same distribution as with any other generator. Releases are
    marked as simulated, because anyone with the seed can compute the noise again. You cannot copy or split
    the generator, because a copy would draw the same noise a second time.

    Parameters
    ----------
    seed : int or sequence of int
        Seed of the noise: one integer, or several.

    Raises
    ------
    ValueError
        If the seed is not an integer or a sequence of integers.
    """

    def __init__(self, seed: int | Sequence[int]):
        numbers = [seed] if isinstance(seed, int | np.integer) else seed
        try:
            self._place = tuple(map(index, numbers))
        except TypeError:
            raise ValueError(
                f"Aligned({seed!r}) is not allowed: need an integer, or several"
            ) from None
        super().__init__(_stream((self._place,)).bit_generator)
        self._measurements = count()

    def measurement(self) -> Stream:
        """Return a function that takes n and draws n random 64-bit integers for the next noisy query."""
        return Stream((self._place, next(self._measurements)))

    def __reduce__(self) -> Any:
        raise TypeError("Aligned is made anew from its seed, and not copied")

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Raise a ValueError, because this generator cannot be split. Create several generators from
        different seeds instead.
        """
        raise ValueError("Aligned is not split: make others, of other seeds")


def _stream(place: tuple[Any, ...]) -> np.random.Generator:
    """Return a numpy generator that is seeded by a hash of `place`, a tuple that identifies a measurement or
    a part of one. Different places give different generators.
    """
    digest = hashlib.sha256(f"workbench.noise.Aligned {place!r}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))


class Stream:
    """Sequence of random 64-bit words for one measurement, or for one part of a measurement. Draws from other
    sequences do not change these words.
    """

    def __init__(self, place: tuple[Any, ...]):
        self._place = place
        self._substreams = count()

    @cached_property
    def _generator(self) -> np.random.Generator:
        return _stream(self._place)

    def __call__(self, n: int) -> np.ndarray:
        """Draw the next n words of the sequence: independent and uniform 64-bit integers, as an array."""
        return self._generator.integers(0, 2**64, n, dtype=np.uint64)

    def substream(self) -> Stream:
        """Return the random words for the next part of this measurement. Each call returns the words for
        another part.
        """
        return Stream((*self._place, next(self._substreams)))


def substream(words: Words) -> Words:
    """Return the random words for the next part of a measurement.

    If `words` is a `Stream`, each part has random words of its own. Otherwise all parts draw from `words`
    itself.
    """
    return words.substream() if isinstance(words, Stream) else words


def generator(rng: np.random.Generator | bytes | None) -> np.random.Generator:
    """Return a numpy generator for draws in floating point. The guarantee does not hold exactly for such
    draws, so releases with them are marked as idealised.

    If `rng` is a generator, the result is `rng` itself. If `rng` is a key, the key is the seed. If `rng` is
    None, the seed comes from the operating system.
    """
    if rng is None or isinstance(rng, bytes):
        return np.random.default_rng(int.from_bytes(rng or system_key()))
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng


def uniform_below(n: int, words: Words) -> int:
    """Return one uniformly random integer from 0 to n − 1. The integer n may be of any size."""
    bits = (n - 1).bit_length()
    mask = (1 << bits) - 1
    while True:
        drawn = 0
        for word in words(max(1, -(-bits // 64))):
            drawn = drawn << 64 | int(word)
        drawn &= mask
        if drawn < n:
            return drawn
