"""Sorted counts by way of prevalences: phi(r) is the number of counts of at least r."""

from . import isotonic


def prevalences(counts, largest):
    """phi(1), ..., phi(largest)."""
    return [sum(1 for h in counts if h >= r) for r in range(1, largest + 1)]


def counts_of(phi, cells):
    """The sorted counts, ascending, whose prevalences these are: the conjugate partition."""
    descending = [sum(1 for x in phi if x >= rank) for rank in range(1, cells + 1)]
    return descending[::-1]


def estimate(noisy, cells):
    """A nonincreasing sequence of integers from 0 to `cells` that fits noisy prevalences, as counts."""
    falling = isotonic.pava(noisy[::-1])[::-1]
    return counts_of([min(cells, max(0, round(x))) for x in falling], cells)
