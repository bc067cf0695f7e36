"""Noisy counts of a node's children, made to add up to what the node has to allot."""

import numpy as np

from workbench.arrays import Int
from workbench.compiled import njit


def centred(
    allot: Int[np.ndarray, " nodes"],
    noisy: Int[np.ndarray, " children"],
    children: Int[np.ndarray, " nodes"],
    words: Int[np.ndarray, " nodes"],
) -> Int[np.ndarray, " children"]:
    """Noisy counts of each node's children, made to add up to what the node has to allot.

    Counts below 0 become 0; then all move by one, in turn from a random child on (`words` modulo
    their number), until the sum is right: up, or down where they are above 0.

    >>> one = np.array([10]), np.array([9, 5, -4, 1]), np.array([4]), np.zeros(1, np.uint64)
    >>> centred(*one)
    array([7, 3, 0, 0])
    """
    given = np.maximum(noisy, 0)
    _centre(
        allot, given, children, (words % np.maximum(children, 1).astype(np.uint64)).astype(int)
    )
    return given


@njit(cache=True, nogil=True)
def _centre(
    allot: Int[np.ndarray, " nodes"],
    given: Int[np.ndarray, " kids"],
    children: Int[np.ndarray, " nodes"],
    turns: Int[np.ndarray, " nodes"],
) -> None:
    start = 0
    for node in range(allot.size):
        k = children[node]
        own = given[start : start + k]
        over = own.sum() - allot[node]
        if over > 0:
            down = np.sort(own)[::-1]
            total, cap = 0, 0
            for j in range(k):  # the most that all can lose without going too far
                total += down[j]
                cap = (total - allot[node]) // (j + 1)
                if cap >= 0 and (j + 1 == k or cap >= down[j + 1]):
                    break
            over = -allot[node]
            for j in range(k):
                own[j] = max(own[j] - cap, 0)
                over += own[j]
            step = -1
        else:
            over = -over
            for j in range(k):
                own[j] += over // k
            over, step = over % k, 1
        j = turns[node]
        while over > 0:
            if step > 0 or own[j] > 0:
                own[j] += step
                over -= 1
            j = (j + 1) % k
        start += k
