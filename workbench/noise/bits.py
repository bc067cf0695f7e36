"""Where random bits come from: the operating system, or a seeded generator that anyone can replay."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Words = Callable[[int], np.ndarray]  # n -> n independent uniform uint64


def words(rng: np.random.Generator | None) -> Words:
    """A source of uniform 64-bit words: fit to publish if and only if `rng` is None.

    The system's source is the AES-256-CTR keystream under a key drawn afresh by the operating system
    at every call, so that forked or copied processes never share noise.
    """
    if isinstance(rng, Aligned):
        return rng.look()
    if rng is not None:
        rng = generator(rng)
        return lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)
    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    return lambda n: np.frombuffer(stream.update(bytes(8 * n)), np.uint64)


class Aligned(np.random.Generator):
    """A seeded generator under which noise stays with its cell while parameters move.

    Every look, and every run of cells in it, draws from a stream of its own, so that how many words
    another one needed moves nothing. The laws are the same, and as simulated as those of any seed.
    """

    def __init__(self, seed: int | Sequence[int]):
        super().__init__(np.random.default_rng(seed).bit_generator)
        self._seed, self._looks = seed, count()

    def look(self) -> Stream:
        """The words of the next look."""
        return Stream(self._seed, (next(self._looks),))


class Stream:
    """Words that depend on a seed and a place, and on nothing drawn elsewhere."""

    def __init__(self, seed: int | Sequence[int], place: tuple[int, ...]):
        self._seed, self._place, self._parts = seed, place, count()

    @cached_property
    def _drawn(self) -> np.random.Generator:
        at = np.random.SeedSequence(self._seed, spawn_key=self._place)
        return np.random.default_rng(at)

    def __call__(self, n: int) -> np.ndarray:
        """n independent uniform uint64."""
        return self._drawn.integers(0, 2**64, n, dtype=np.uint64)

    def part(self) -> Stream:
        """The words of the next place below this one; no two places are the same."""
        return Stream(self._seed, (*self._place, next(self._parts)))


def part(words: Words) -> Words:
    """The words of the next part of a look: a `Stream` of its own, or else just `words`."""
    return words.part() if isinstance(words, Stream) else words


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """`rng`, or one that the operating system seeds: for laws drawn with floats, never published."""
    if rng is None:
        return np.random.default_rng(int.from_bytes(os.urandom(32)))
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng


def below(n: int, words: Words) -> int:
    """One uniform whole number in [0, n), for n of any size."""
    need = (n - 1).bit_length()
    while True:
        drawn = 0
        for word in words(max(1, -(-need // 64))):
            drawn = drawn << 64 | int(word)
        if (drawn := drawn & ((1 << need) - 1)) < n:
            return drawn
