"""Privelet's two wavelets with weighted Laplace noise, in one dimension (methods.md 5.1, 5.2).

Ordinal (Haar). The m cells are padded with public zeros to 2^l, and every coefficient, those of the
padding too, gets noise (`haar` leaves the public ones out). Coefficients are a list: the base
first, then the internal nodes breadth first; node 1 is the root, node v has the halves 2v and
2v + 1, so that coefficient v belongs to node v and coefficient 0 is the base.

Nominal. The hierarchy is a nested list with cell indices for leaves, [[0, 1, 2], [3, 4]] for
instance. A node is the path of child numbers that leads to it from the root ().

With weights W and generalised sensitivity rho (the largest sum of W |change| when one cell changes
by 1), Laplace(lambda/W) on every coefficient is epsilon-DP for lambda = rho/epsilon (add/remove)
or 2 rho/epsilon (replace). The floats are an idealisation (methods.md 0.2).
"""

import math
from collections.abc import Sequence

from numpy.random import Generator

Path = tuple[int, ...]
Hierarchy = list  # of hierarchies and of cell indices

# 5.1, replace and epsilon = 1: m -> (worst range variance, bound); 5.1 prints 1403 for m = 256
WORST_RANGES = {8: (152.0, 320), 32: (471.375, 1008), 256: (1494.189, 3240)}

# 5.2: fanout of each level -> generalised sensitivity
NOMINAL_SENSITIVITIES = {(4,): 2, (3, 5): 3, (2, 2, 3): 4, (10, 51): 3}


def noise_parameter(rho: float, epsilon: float, neighbours: str) -> float:
    """lambda, for "add/remove" or "replace"."""
    if neighbours == "add/remove":
        return rho / epsilon
    if neighbours == "replace":
        return 2 * rho / epsilon
    raise ValueError(f"no such neighbours: {neighbours}")


# Ordinal


def padded_size(m: int) -> int:
    """2^l, the smallest power of two that is at least m."""
    size = 1
    while size < m:
        size *= 2
    return size


def padded(cells: Sequence[float]) -> list[float]:
    """The cells and the zeros after them."""
    return list(cells) + [0] * (padded_size(len(cells)) - len(cells))


def haar_span(node: int, size: int) -> tuple[int, int]:
    """First cell and first cell after an internal node, 1 being the root."""
    level = node.bit_length()  # the root's is 1
    width = size // 2 ** (level - 1)
    start = (node - 2 ** (level - 1)) * width
    return start, start + width


def haar_weights(m: int) -> list[float]:
    """2^l for the base, 2^(l - i + 1) for a node of level i, the root's level being 1."""
    size = padded_size(m)
    depth = size.bit_length() - 1  # l
    weights = [size]
    for node in range(1, size):
        weights.append(2 ** (depth - node.bit_length() + 1))
    return weights


def haar_coefficients(cells: Sequence[float]) -> list[float]:
    """The mean of all cells, then (mean of the left half - mean of the right half)/2."""
    values = padded(cells)
    size = len(values)
    found = [sum(values) / size]
    for node in range(1, size):
        start, stop = haar_span(node, size)
        half = (stop - start) // 2
        left = sum(values[start : start + half]) / half
        right = sum(values[start + half : stop]) / half
        found.append((left - right) / 2)
    return found


def haar_reconstruct(coeffs: Sequence[float], m: int) -> list[float]:
    """Cell = base + its nodes' coefficients, plus in their left half and minus in their right."""
    size = padded_size(m)
    cells = []
    for cell in range(m):
        value = coeffs[0]
        for node in range(1, size):
            start, stop = haar_span(node, size)
            if start <= cell < stop:
                value += coeffs[node] if cell < (start + stop) // 2 else -coeffs[node]
        cells.append(value)
    return cells


def unnormalised_coefficients(cells: Sequence[float]) -> list[float]:
    """The total, then left sum - right sum: each W times the weighted form's."""
    values = padded(cells)
    size = len(values)
    found = [sum(values)]
    for node in range(1, size):
        start, stop = haar_span(node, size)
        middle = (start + stop) // 2
        found.append(sum(values[start:middle]) - sum(values[middle:stop]))
    return found


def unnormalised_reconstruct(coeffs: Sequence[float], m: int) -> list[float]:
    """From the root down, left = (sum + d)/2 and right = (sum - d)/2."""
    size = padded_size(m)
    sums = [0.0] * (2 * size)
    sums[1] = coeffs[0]
    for node in range(1, size):
        sums[2 * node] = (sums[node] + coeffs[node]) / 2
        sums[2 * node + 1] = (sums[node] - coeffs[node]) / 2
    return sums[size : size + m]


def haar_sensitivity(m: int) -> int:
    """rho = 1 + log2 of the padded size (5.1)."""
    return padded_size(m).bit_length()


def haar_sensitivity_by_force(m: int) -> float:
    """The largest sum of W |change| over all cells, each raised by 1 in turn."""
    weights = haar_weights(m)
    worst = 0.0
    for cell in range(m):
        unit = [0] * m
        unit[cell] = 1
        change = haar_coefficients(unit)
        worst = max(worst, math.fsum(w * abs(c) for w, c in zip(weights, change, strict=True)))
    return worst


def haar_noisy(
    cells: Sequence[float], epsilon: float, neighbours: str, rng: Generator
) -> list[float]:
    """Weighted coefficients plus Laplace(lambda/W)."""
    m = len(cells)
    parameter = noise_parameter(haar_sensitivity(m), epsilon, neighbours)
    published = []
    for value, weight in zip(haar_coefficients(cells), haar_weights(m), strict=True):
        published.append(value + float(rng.laplace(0, parameter / weight)))
    return published


def unnormalised_noisy(
    cells: Sequence[float], epsilon: float, neighbours: str, rng: Generator
) -> list[float]:
    """Unnormalised coefficients plus Laplace(lambda), the same for all: W times `haar_noisy`, to
    the draw for the same state of the generator.
    """
    parameter = noise_parameter(haar_sensitivity(len(cells)), epsilon, neighbours)
    published = []
    for value in unnormalised_coefficients(cells):
        published.append(value + float(rng.laplace(0, parameter)))
    return published


def haar_range_variance(lo: int, hi: int, m: int, epsilon: float, neighbours: str) -> float:
    """Variance of the sum of the noisy cells of [lo, hi).

    The base counts hi - lo times, a node's coefficient as often as the range meets its left half
    more than its right; a coefficient's variance is 2 (lambda/W)^2. Nodes that the range covers or
    misses count 0 times, and so do all below them.
    """
    size = padded_size(m)
    if not 0 <= lo <= hi <= m:
        raise ValueError("need 0 <= lo <= hi <= m")
    parameter = noise_parameter(haar_sensitivity(m), epsilon, neighbours)
    terms = [2 * ((hi - lo) * parameter / size) ** 2]

    def visit(node: int, start: int, stop: int) -> None:
        if max(lo, start) >= min(hi, stop) or (lo <= start and stop <= hi):
            return
        middle = (start + stop) // 2
        left = max(0, min(hi, middle) - max(lo, start))
        right = max(0, min(hi, stop) - max(lo, middle))
        terms.append(2 * ((left - right) * parameter / (stop - start)) ** 2)
        visit(2 * node, start, middle)
        visit(2 * node + 1, middle, stop)

    visit(1, 0, size)
    return math.fsum(terms)


def haar_worst_range(m: int, epsilon: float, neighbours: str) -> tuple[float, int, int]:
    """(variance, lo, hi) of a range with the largest variance, over all ranges."""
    worst = (0.0, 0, 0)
    for lo in range(m):
        for hi in range(lo + 1, m + 1):
            worst = max(worst, (haar_range_variance(lo, hi, m, epsilon, neighbours), lo, hi))
    return worst


def haar_bound(m: int, epsilon: float) -> float:
    """(2 + log2 m)(2 + 2 log2 m)^2/epsilon^2, the paper's bound for replace."""
    depth = haar_sensitivity(m) - 1
    return (2 + depth) * (2 + 2 * depth) ** 2 / epsilon**2


# Nominal


def even_hierarchy(fanouts: Sequence[int]) -> Hierarchy:
    """Every node of a level with the same number of children; cells numbered left to right."""
    cells = iter(range(math.prod(fanouts)))

    def grow(level: int) -> Hierarchy | int:
        if level == len(fanouts):
            return next(cells)
        return [grow(level + 1) for _ in range(fanouts[level])]

    return grow(0)


def subtree(hierarchy: Hierarchy, path: Path) -> Hierarchy | int:
    """What the path leads to."""
    here = hierarchy
    for child in path:
        here = here[child]
    return here


def leaves(hierarchy: Hierarchy | int) -> list[int]:
    """The cells below, left to right."""
    if not isinstance(hierarchy, list):
        return [hierarchy]
    found = []
    for child in hierarchy:
        found.extend(leaves(child))
    return found


def paths(hierarchy: Hierarchy) -> list[Path]:
    """Every node, the root first and each node before its children."""
    found: list[Path] = []

    def visit(here: Hierarchy | int, path: Path) -> None:
        found.append(path)
        if isinstance(here, list):
            for number, child in enumerate(here):
                visit(child, (*path, number))

    visit(hierarchy, ())
    return found


def fanout(hierarchy: Hierarchy, path: Path) -> int:
    """The number of children of the node's parent."""
    return len(subtree(hierarchy, path[:-1]))


def height(hierarchy: Hierarchy | int) -> int:
    """Node levels, root and leaf included, along the longest path."""
    if not isinstance(hierarchy, list):
        return 1
    return 1 + max(height(child) for child in hierarchy)


def nominal_weights(hierarchy: Hierarchy) -> dict[Path, float]:
    """1 for the root, f/(2f - 2) for a node among f siblings, itself included; an only child has
    no coefficient (its parent's sum is its own).
    """
    weights = {}
    for path in paths(hierarchy):
        if path == ():
            weights[path] = 1.0
        elif fanout(hierarchy, path) > 1:
            f = fanout(hierarchy, path)
            weights[path] = f / (2 * f - 2)
    return weights


def leaf_sums(cells: Sequence[float], hierarchy: Hierarchy) -> dict[Path, float]:
    """Node -> the sum of the cells below it."""
    sums = {}
    for path in paths(hierarchy):
        total = 0
        for cell in leaves(subtree(hierarchy, path)):
            total += cells[cell]
        sums[path] = total
    return sums


def nominal_coefficients(cells: Sequence[float], hierarchy: Hierarchy) -> dict[Path, float]:
    """The total at the root; elsewhere leafsum(N) - leafsum(parent)/f."""
    sums = leaf_sums(cells, hierarchy)
    coeffs = {}
    for path in nominal_weights(hierarchy):
        coeffs[path] = sums[path]
        if path != ():
            coeffs[path] -= sums[path[:-1]] / fanout(hierarchy, path)
    return coeffs


def nominal_sensitivity_by_force(hierarchy: Hierarchy) -> float:
    """The largest sum of W |change| over all cells, each raised by 1 in turn."""
    weights = nominal_weights(hierarchy)
    cells = leaves(hierarchy)
    worst = 0.0
    for cell in cells:
        unit = [0] * len(cells)
        unit[cell] = 1
        change = nominal_coefficients(unit, hierarchy)
        worst = max(worst, math.fsum(weights[path] * abs(change[path]) for path in weights))
    return worst


def nominal_noisy(
    cells: Sequence[float],
    hierarchy: Hierarchy,
    epsilon: float,
    neighbours: str,
    rng: Generator,
) -> dict[Path, float]:
    """Coefficients plus Laplace(lambda/W), rho being the hierarchy's height (5.2)."""
    parameter = noise_parameter(height(hierarchy), epsilon, neighbours)
    weights = nominal_weights(hierarchy)
    published = {}
    for path, value in nominal_coefficients(cells, hierarchy).items():
        published[path] = value + float(rng.laplace(0, parameter / weights[path]))
    return published


def centred(coeffs: dict[Path, float], hierarchy: Hierarchy) -> dict[Path, float]:
    """Each group of siblings less its mean; the root as it is."""
    found = {}
    for path, value in coeffs.items():
        found[path] = value
        if path != ():
            f = fanout(hierarchy, path)
            group = [coeffs[*path[:-1], number] for number in range(f)]
            found[path] -= math.fsum(group) / f
    return found


def nominal_reconstruct(
    coeffs: dict[Path, float], hierarchy: Hierarchy, centre: bool = True
) -> dict[Path, float]:
    """Node -> estimated sum, top-down: leafsum(N) = c(N) + leafsum(parent)/f, after `centred`."""
    used = centred(coeffs, hierarchy) if centre else coeffs
    sums: dict[Path, float] = {}
    for path in paths(hierarchy):
        if path == ():
            sums[path] = used[path]
        else:
            share = sums[path[:-1]] / fanout(hierarchy, path)
            sums[path] = used.get(path, 0) + share
    return sums


def nominal_answer(coeffs: dict[Path, float], hierarchy: Hierarchy, cells: set[int]) -> float:
    """The sum of the reconstructed leaves of the query."""
    sums = nominal_reconstruct(coeffs, hierarchy)
    total = 0.0
    for path in paths(hierarchy):
        here = subtree(hierarchy, path)
        if not isinstance(here, list) and here in cells:
            total += sums[path]
    return total


def nominal_node_variance(hierarchy: Hierarchy, path: Path, sigma: float) -> float:
    """Variance of a node's reconstructed sum, coefficient noise having deviation sigma/W.

    sigma^2 at the root. A centred coefficient has (1 - 1/f)(sigma/W)^2 and is independent of all
    above, so V(N) = 4 sigma^2 ((f-1)/f)^3 + V(parent)/f^2, which is at most 4 sigma^2; an only
    child has its parent's.
    """
    if path == ():
        return sigma**2
    f = fanout(hierarchy, path)
    above = nominal_node_variance(hierarchy, path[:-1], sigma)
    return 4 * sigma**2 * ((f - 1) / f) ** 3 + above / f**2


def nominal_query_variance(hierarchy: Hierarchy, cells: set[int], sigma: float) -> float:
    """Variance of `nominal_answer`, from its answer to each coefficient alone."""
    weights = nominal_weights(hierarchy)
    terms = []
    for path in weights:
        alone = dict.fromkeys(weights, 0.0)
        alone[path] = 1.0
        response = nominal_answer(alone, hierarchy, cells)
        terms.append((response * sigma / weights[path]) ** 2)
    return math.fsum(terms)
