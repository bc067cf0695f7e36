"""Randomised response, record by record: retention replacement and flipping (methods.md section 4).

A channel is a list of columns: channel[x][y] = Pr[x is published as y]. A table over several attributes
is a flat list in the order of `kernel_pca.universe`, the last attribute fastest. Works in Fractions
whenever the parameters are Fractions.
"""

import itertools
import math

# Parameters from gamma


def retention(gamma, size):
    """p, the chance to keep the value, when else it is drawn uniformly (4.2)."""
    return (gamma - 1) / (gamma - 1 + size)


def flip(gamma, bits=2):
    """f, the chance to flip a bit, when two codes differ in `bits` of them at most (4.3)."""
    return 1 / (1 + gamma ** (1 / bits))


# Channels


def retention_channel(p, size, g=None):
    """Keep with probability p, else draw from g, uniform if not given."""
    if g is None:
        g = [(p - p + 1) / size] * size  # a Fraction if p is
    return [[(p if x == y else 0) + (1 - p) * g[y] for y in range(size)] for x in range(size)]


def one_hot(value, size):
    return tuple(int(value == place) for place in range(size))


def flipping_channel(f, size, code=one_hot):
    """Every bit of the code flipped with probability f; outputs in the order of counting up."""
    bits = len(code(0, size))
    found = []
    for x in range(size):
        column = []
        for y in itertools.product((0, 1), repeat=bits):
            mass = 1
            for sent, seen in zip(code(x, size), y, strict=True):
                mass = mass * (1 - f if sent == seen else f)
            column.append(mass)
        found.append(column)
    return found


def product_channel(channels):
    """Whole tuples, each attribute through its own channel independently."""
    found = []
    for x in itertools.product(*(range(len(c)) for c in channels)):
        column = []
        for y in itertools.product(*(range(len(c[0])) for c in channels)):
            column.append(math.prod(c[a][b] for c, a, b in zip(channels, x, y, strict=True)))
        found.append(column)
    return found


# Privacy


def amplification(channel):
    """gamma: the largest Pr[u is published as y]/Pr[u' is published as y]. Its logarithm is the exact
    epsilon of one record replaced, in the record alone or in a table of n of them.
    """
    worst = channel[0][0] / channel[0][0]
    for y in range(len(channel[0])):
        for column, other in itertools.product(channel, repeat=2):
            worst = max(worst, column[y] / other[y])
    return worst


# Reconstruction


def matrix(channel):
    """M with M[y][x] = Pr[x is published as y]: its columns sum to 1, observed = M true."""
    return [[column[y] for column in channel] for y in range(len(channel[0]))]


def inverse(square):
    """By Gauss and Jordan."""
    size = len(square)
    rows = [list(row) + [int(i == j) for j in range(size)] for i, row in enumerate(square)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        top = rows[i][i]
        rows[i] = [value / top for value in rows[i]]
        for j in range(size):
            if j != i and rows[j][i] != 0:
                factor = rows[j][i]
                rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    return [row[size:] for row in rows]


def kronecker(first, second):
    """The matrix on tables of two attributes, the second fastest."""
    return [[a * b for a in row for b in other] for row in first for other in second]


def times(square, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in square]


def joint_inverse(channels):
    """The Kronecker product of all attributes' M, inverted as one matrix."""
    whole = [[1]]
    for channel in channels:
        whole = kronecker(whole, matrix(channel))
    return inverse(whole)


def reconstruct(observed, channels):
    """The true table's unbiased estimate from a table of published tuples; may be negative."""
    return times(joint_inverse(channels), observed)


def reconstruct_flipped(rows, sizes, flips):
    """rows[r][k] holds the published bits of record r's attribute k. For each cell (v_1, ..., v_d) the
    2^d table of the bits (b_1[v_1], ..., b_d[v_d]), inverted; the entry of all bits 1 is the cell's.
    """
    d = len(sizes)
    whole = [[1]]
    for f in flips:
        whole = kronecker(whole, [[1 - f, f], [f, 1 - f]])
    undo = inverse(whole)
    found = []
    for cell in itertools.product(*(range(size) for size in sizes)):
        seen = [0] * 2**d
        for row in rows:
            place = 0
            for k in range(d):
                place = 2 * place + row[k][cell[k]]
            seen[place] += 1
        found.append(times(undo, seen)[-1])
    return found


# Variances, the data fixed


def retention_variance(cell, truth, sizes, ps):
    """The same in closed form, uniform replacement: over records, prod_k E[w_k^2] - [x = cell], with
    E[w_k^2] = q(1 - q)/p^2 + [x_k = cell_k] and q = (1 - p)/|A| (+ p if x_k = cell_k).
    """
    total = 0
    for x, count in zip(itertools.product(*(range(s) for s in sizes)), truth, strict=True):
        product = 1
        for k, p in enumerate(ps):
            same = int(x[k] == cell[k])
            q = (1 - p) / sizes[k] + same * p
            product = product * (q * (1 - q) / p**2 + same)
        total += count * (product - int(x == tuple(cell)))
    return total


def flipping_variance(cell, truth, sizes, flips):
    """The same for one-hot flipping: E[w_k^2] = f(1 - f)/(1 - 2f)^2 + [x_k = cell_k]."""
    total = 0
    for x, count in zip(itertools.product(*(range(s) for s in sizes)), truth, strict=True):
        product = 1
        for k, f in enumerate(flips):
            product = product * (f * (1 - f) / (1 - 2 * f) ** 2 + int(x[k] == cell[k]))
        total += count * (product - int(x == tuple(cell)))
    return total
