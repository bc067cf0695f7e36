"""Where random bits come from: the operating system, or a seeded generator that anyone can replay."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Words = Callable[[int], np.ndarray]  # n -> n independent uniform uint64


def words(rng: np.random.Generator | None) -> Words:
    """A source of uniform 64-bit words: fit to publish if and only if `rng` is None.

    The system's source is the AES-256-CTR keystream under a key drawn afresh by the operating system
    at every call, so that forked or copied processes never share noise.
    """
    if rng is not None:
        rng = generator(rng)
        return lambda n: rng.integers(0, 2**64, n, dtype=np.uint64)
    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    return lambda n: np.frombuffer(stream.update(bytes(8 * n)), np.uint64)


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
