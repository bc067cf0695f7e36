"""The number of records per user that is chosen by rank. `records` has one number per user."""


def error(records, bound, cells, epsilon):
    """R(T): records that are dropped, and the expected noise d T/epsilon."""
    return sum(max(0, m - bound) for m in records) + cells * bound / epsilon


def best(records, cells, epsilon, most):
    """The smallest T in 1, ..., most that minimises R."""
    return min(range(1, most + 1), key=lambda bound: error(records, bound, cells, epsilon))


def above(records, bound):
    """c(T), the number of users with more than T records."""
    return sum(1 for m in records if m > bound)


def rank_score(records, bound, target):
    """Minus the distance of c(T) from d/epsilon, as the note has it."""
    return -abs(above(records, bound) - target)


def interval_score(records, bound, target):
    """Minus the distance of d/epsilon from the ranks c(T), ..., c(T - 1), which are all those of T."""
    low, high = above(records, bound), above(records, bound - 1)
    if low <= target <= high:
        return 0
    return -min(abs(low - target), abs(high - target))
