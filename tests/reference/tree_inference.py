"""Trees of interval counts and their least-squares consistency (methods.md 8.1, 8.4 to 8.8;
hay2010 section 4).

The n leaves are padded with public zeros to k^(l-1), l the number of levels; depth 0 is the root.
Nodes wholly in the padding do not exist, and padded leaves are exactly zero and carry no noise.
A tree is the list of its existing nodes' counts in breadth-first order, ceil(n/w) at a depth
where a node spans w leaves; for n = k^(l-1) that is the paper's complete tree. A position is an
index into that list. The length of the list grows with n, so it tells n.
"""

import math

import numpy as np
import scipy.optimize

from . import isotonic

rounded = isotonic.rounded


def levels(n, k):
    """l, the smallest integer with k^(l-1) >= n: leaf to root, both included."""
    if n < 1 or k < 2:
        raise ValueError("need at least one leaf and k >= 2")
    height = 1
    while k ** (height - 1) < n:
        height += 1
    return height


def interval(node, n, k):
    """First leaf and first leaf after the node, without its padding."""
    depth, index = node
    width = k ** (levels(n, k) - 1 - depth)
    return index * width, min((index + 1) * width, n)


def nodes(n, k):
    """(depth, index) of every node that has a leaf outside the padding, breadth first."""
    found = []
    height = levels(n, k)
    for depth in range(height):
        width = k ** (height - 1 - depth)
        for index in range(math.ceil(n / width)):
            found.append((depth, index))
    return found


def size(n, k):
    """The number of nodes; (k^l - 1)/(k - 1) for a complete tree."""
    total = 0
    for depth in range(levels(n, k)):
        total += math.ceil(n / k**depth)
    return total


def leaf_count(tree, k):
    """n, from the number of nodes."""
    n = 1
    while size(n, k) < len(tree):
        n += 1
    if size(n, k) != len(tree):
        raise ValueError("no tree has that many nodes")
    return n


def families(n, k):
    """Position -> the positions of its existing children."""
    every = nodes(n, k)
    where = {node: position for position, node in enumerate(every)}
    found = [[] for _ in every]
    for position, (depth, index) in enumerate(every):
        if depth > 0:
            found[where[depth - 1, index // k]].append(position)
    return found


def build(counts, k):
    """Every node's sum of its leaves."""
    n = len(counts)
    tree = []
    for node in nodes(n, k):
        start, stop = interval(node, n, k)
        total = 0
        for leaf in range(start, stop):
            total += counts[leaf]
        tree.append(total)
    return tree


def design(n, k):
    """Row per node, column per leaf: 1 where the node spans the leaf."""
    every = nodes(n, k)
    matrix = np.zeros((len(every), n))
    for row, node in enumerate(every):
        start, stop = interval(node, n, k)
        matrix[row, start:stop] = 1
    return matrix


def theorem3(noisy, k):
    """8.4 to the letter, by recursion; complete trees only.

    The height of a leaf is 1. Upwards, z[v] is h~[v] at a leaf and else
    (k^h - k^(h-1))/(k^h - 1) h~[v] + (k^(h-1) - 1)/(k^h - 1) times the sum of the children's z.
    Downwards, h-bar is z at the root and else z[v] + (h-bar[parent] - sum of z over v and its
    siblings)/k.
    """
    n = leaf_count(noisy, k)
    height = levels(n, k)
    if k ** (height - 1) != n:
        raise ValueError("Theorem 3 is about complete trees")
    z = [0.0] * len(noisy)
    consistent = [0.0] * len(noisy)

    def first_child(position):
        return k * position + 1

    def up(position, h):
        if h == 1:
            z[position] = noisy[position]
            return z[position]
        below = 0
        for child in range(first_child(position), first_child(position) + k):
            below += up(child, h - 1)
        own = (k**h - k ** (h - 1)) / (k**h - 1)
        rest = (k ** (h - 1) - 1) / (k**h - 1)
        z[position] = own * noisy[position] + rest * below
        return z[position]

    def down(position, h, value):
        consistent[position] = value
        if h == 1:
            return
        group = range(first_child(position), first_child(position) + k)
        below = sum(z[child] for child in group)
        for child in group:
            down(child, h - 1, z[child] + (value - below) / k)

    down(0, height, up(0, height))
    return consistent


def ols(noisy, k):
    """Least squares for the leaves on the whole design matrix, then every node's sum."""
    matrix = design(leaf_count(noisy, k), k)
    leaves = np.linalg.lstsq(matrix, np.asarray(noisy, dtype=float), rcond=None)[0]
    return [float(value) for value in matrix @ leaves]


def nnls(noisy, k):
    """The least squares of `ols` over leaves >= 0."""
    matrix = design(leaf_count(noisy, k), k)
    leaves, _ = scipy.optimize.nnls(matrix, np.asarray(noisy))
    return [float(value) for value in matrix @ leaves]


def zeroed(h, k):
    """From the root down: a node with h <= 0 becomes 0 with its whole subtree (8.6). Nodes above
    and beside keep their values: the tree is no longer consistent, and stays so.
    """
    family = families(leaf_count(h, k), k)
    kept = list(h)

    def clear(position):
        kept[position] = 0
        for child in family[position]:
            clear(child)

    def visit(position):
        if h[position] <= 0:
            clear(position)
            return
        for child in family[position]:
            visit(child)

    visit(0)
    return kept


def cover(lo, hi, n, k):
    """Positions of the fewest subtrees whose union is [lo, hi), left to right.

    From the root down: a node whose leaves all lie in [lo, hi) is taken, a node with none of them
    in it is left, any other gives way to its children. Padding does not count.
    """
    if not 0 <= lo <= hi <= n:
        raise ValueError("need 0 <= lo <= hi <= n")
    every = nodes(n, k)
    where = {node: position for position, node in enumerate(every)}
    taken = []

    def visit(node):
        if node not in where:
            return
        start, stop = interval(node, n, k)
        if max(start, lo) >= min(stop, hi):
            return
        if lo <= start and stop <= hi:
            taken.append(where[node])
            return
        for child in range(k):
            visit((node[0] + 1, k * node[1] + child))

    visit((0, 0))
    return taken


def answer_cover(h, lo, hi, k):
    """The sum of the cover's counts: how H~ answers a range."""
    total = 0
    for position in cover(lo, hi, leaf_count(h, k), k):
        total += h[position]
    return total


def answer_leaves(h, lo, hi, k):
    """The sum of the leaves: how H-bar, being consistent, and L~ answer a range."""
    n = leaf_count(h, k)
    if not 0 <= lo <= hi <= n:
        raise ValueError("need 0 <= lo <= hi <= n")
    total = 0
    for leaf in range(lo, hi):
        total += h[len(h) - n + leaf]
    return total


def node_variance(n, k, epsilon):
    """2 l^2/epsilon^2: Laplace(l/epsilon) on every node, the same epsilon/l at each level (8.8)."""
    return 2 * (levels(n, k) / epsilon) ** 2


def consistent_factor(lo, hi, n, k):
    """Variance of the least-squares answer to [lo, hi) when every node has variance 1: q' C q, C
    the inverse of (design' design).
    """
    matrix = design(n, k)
    query = np.zeros(n)
    query[lo:hi] = 1
    return float(query @ np.linalg.solve(matrix.T @ matrix, query))


def hb_branching(n):
    """The b from 2 to n that minimises (b-1) h^3 - 2(b+1) h^2/3, h = ceil(log_b n) (8.8).

    Three times that in integers; the smallest b of equals.
    """
    if n < 2:
        raise ValueError("need at least two leaves")
    best, least = 0, math.inf
    for b in range(2, n + 1):
        h = 0
        while b**h < n:
            h += 1
        cost = 3 * (b - 1) * h**3 - 2 * (b + 1) * h**2
        if cost < least:
            best, least = b, cost
    return best
