"""Random keys and words that are drawn without looking at any data, and so cost nothing."""

from __future__ import annotations

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.noise.bits import word_source
from workbench.value import sealed


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
