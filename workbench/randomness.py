"""Random bits from the operating system, a key or a seed. All randomness comes from here.

`Source` in `workbench.noise` draws noise from these bits, and `data` uses a key of them to truncate
users.
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
    """Return a source of uniformly random 64-bit words. You may publish results only if `rng` is None.

    If `rng` is None, the source is the `Keystream` of a new key from the operating system. Every call
    gets a new key, so forked or copied processes never share noise.
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
    """Return 32 bytes from the operating system, different at every call."""
    return os.urandom(KEY_BYTES)


class Keystream:
    """Random words that depend only on a secret key. The same key gives the same words.

    They come from AES-256 in counter mode, from block `number`·2^64 on. Two streams of one key with
    different numbers never overlap.

    Parameters
    ----------
    key : 32 bytes from the operating system.
    number : Number of the key's stream, at least 0.
    """

    chunk = 2**19  # words at a time: threads wait for each other between calls

    def __init__(self, key: bytes, number: int = 0):
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        first_block = modes.CTR(number.to_bytes(8) + bytes(8))
        self._stream = Cipher(algorithms.AES(key), first_block).encryptor()

    def __call__(self, n: int) -> np.ndarray:
        """Return n independent uniform uint64 words."""
        zeros = _ZEROS[: 8 * n] if 8 * n <= len(_ZEROS) else bytes(8 * n)
        return np.frombuffer(self._stream.update(zeros), np.uint64)


class Aligned(np.random.Generator):
    """Seeded generator of noise for interactive pages. The noise of each cell stays the same while parameters
    change.

    Every measurement has its own stream of random words, and so has every range of cells in it. So it does
    not matter how many words others draw. Distributions do not change, and releases are marked as
    simulated, as with any seed. The generator cannot be copied or split, because a copy would draw the same
    noise again.

    Parameters
    ----------
    seed : int or sequence of int

    Raises
    ------
    ValueError
        If the seed has another type.
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
        """Return the random words for the next measurement."""
        return Stream((self._place, next(self._measurements)))

    def __reduce__(self) -> Any:
        raise TypeError("Aligned is made anew from its seed, and not copied")

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Raise an error. Code that draws noise in several parts must call `measurement` instead."""
        raise ValueError("Aligned is not split: make others, of other seeds")


def _stream(place: tuple[Any, ...]) -> np.random.Generator:
    """Return a generator for a place. It differs from those of other places and of plain seeds."""
    digest = hashlib.sha256(f"workbench.noise.Aligned {place!r}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))


class Stream:
    """Random words that depend on a seed and a place. Draws at other places do not change them."""

    def __init__(self, place: tuple[Any, ...]):
        self._place = place
        self._substreams = count()

    @cached_property
    def _generator(self) -> np.random.Generator:
        return _stream(self._place)

    def __call__(self, n: int) -> np.ndarray:
        """Return n independent uniform uint64 words."""
        return self._generator.integers(0, 2**64, n, dtype=np.uint64)

    def substream(self) -> Stream:
        """Return the random words of the next place below this one. Each call returns those of another
        place.
        """
        return Stream((*self._place, next(self._substreams)))


def substream(words: Words) -> Words:
    """Return the random words of the next part of a measurement. They are a `Stream` of this part, if there
    is one, and otherwise `words`.
    """
    return words.substream() if isinstance(words, Stream) else words


def generator(rng: np.random.Generator | bytes | None) -> np.random.Generator:
    """Return a generator for draws in floating point, which are never published. It is `rng`, or it is
    seeded by a key or by the operating system.
    """
    if rng is None or isinstance(rng, bytes):
        return np.random.default_rng(int.from_bytes(rng or system_key()))
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng


def uniform_below(n: int, words: Words) -> int:
    """Return one uniform integer in [0, n), for n of any size."""
    bits = (n - 1).bit_length()
    mask = (1 << bits) - 1
    while True:
        drawn = 0
        for word in words(max(1, -(-bits // 64))):
            drawn = drawn << 64 | int(word)
        drawn &= mask
        if drawn < n:
            return drawn
