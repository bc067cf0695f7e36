"""InfTDA, written out from the formulas.

A table is {cell: count}, a cell a tuple of texts, one for each attribute. A node is a tuple of prefixes, one
for each attribute. Each level makes the prefix of one attribute longer. All is enumerated, and nothing is fast.
"""

import itertools
import math


def steps(labels, lengths):
    """Levels below the root: [(attribute, length)]. Length None is the whole label."""
    found = []
    for length in [*lengths, None]:
        for attribute in range(len(labels)):
            found.append((attribute, length))
    return found


END = "\0"  # of a label, so that none is a prefix of another


def prefix(label, length):
    return (label + END)[:length]


def tree(labels, lengths):
    """[{node: [children]}] for each level that splits at least one node. The root is all empty prefixes."""
    before = tuple("" for _ in labels)
    nodes = [before]
    length_of = [0] * len(labels)
    levels = []
    for attribute, length in steps(labels, lengths):
        children = {}
        for node in nodes:
            own = []
            ordered = labels[attribute] if length is None else sorted(labels[attribute])
            for label in ordered:
                if prefix(label, length_of[attribute]) != node[attribute]:
                    continue
                longer = list(node)
                longer[attribute] = prefix(label, length)
                if tuple(longer) not in own:
                    own.append(tuple(longer))
            children[node] = own
        length_of[attribute] = length
        if any(len(own) > 1 for own in children.values()):
            levels.append((attribute, length, children))
        else:  # nothing to decide: the only child is its parent by another name
            levels.append((attribute, length, None))
        nodes = [child for own in children.values() for child in own]
    return levels


def largest_error(x, y):
    return max(abs(a - b) for a, b in zip(x, y, strict=True))


def least_error(x, c):
    """Smallest largest error of integers >= 0 with sum c, over all of them."""
    best = math.inf
    for y in itertools.product(range(c + 1), repeat=len(x)):
        if sum(y) == c:
            best = min(best, largest_error(x, y))
    return best


def chebyshev(x, c):
    """Integers >= 0 with sum c and the least largest error. The largest noisy counts are lowered last."""
    t = max(0, -min(x))
    while not (sum(max(0, a - t) for a in x) <= c <= sum(a + t for a in x)):
        t += 1
    y = [max(0, a - t) for a in x]
    rest = c - sum(y)
    for i in sorted(range(len(x)), key=lambda i: -x[i]):
        given = min(rest, x[i] + t - y[i])
        y[i] += given
        rest -= given
    assert rest == 0
    return y


def release(table, labels, lengths, total, noise):
    """{cell: released count > 0}. `noise(level, node)` is an integer."""
    released = {tuple("" for _ in labels): total} if total > 0 else {}
    at = 0
    for attribute, length, children in tree(labels, lengths):
        if children is None:
            longer = {}
            for node, c in released.items():
                label = next(
                    x for x in labels[attribute] if (x + END).startswith(node[attribute])
                )
                child = (*node[:attribute], prefix(label, length), *node[attribute + 1 :])
                longer[child] = c
            released = longer
            continue
        at += 1
        below = {}
        for node, c in released.items():
            noisy = [count(table, child) + noise(at, child) for child in children[node]]
            for child, y in zip(children[node], chebyshev(noisy, c), strict=True):
                if y > 0:
                    below[child] = y
        released = below
    return {tuple(x.removesuffix(END) for x in node): y for node, y in released.items()}


def count(table, node):
    """Trips of the cells whose labels start with the prefixes."""
    return sum(
        trips
        for cell, trips in table.items()
        if all((label + END).startswith(own) for label, own in zip(cell, node, strict=True))
    )


def law(table, labels, lengths, total, pmfs):
    """{released nodes: probability}. `pmfs[level]` is {integer: probability} of a level's noise, from 1."""
    start = {tuple("" for _ in labels): total} if total > 0 else {}
    paths = {tuple(sorted(start.items())): 1.0}
    at = 0
    for _, _, children in tree(labels, lengths):
        assert children is not None, "a level of the example splits nothing"
        at += 1
        after = {}
        for released, chance in paths.items():
            parts = []
            for node, c in released:
                own = children[node]
                exact = [count(table, child) for child in own]
                outcomes = {}
                for drawn in itertools.product(pmfs[at].items(), repeat=len(own)):
                    noisy = [a + z for a, (z, _) in zip(exact, drawn, strict=True)]
                    p = math.prod(p for _, p in drawn)
                    y = zip(own, chebyshev(noisy, c), strict=True)
                    kept = tuple((child, k) for child, k in y if k > 0)
                    outcomes[kept] = outcomes.get(kept, 0.0) + p
                parts.append(outcomes.items())
            for combined in itertools.product(*parts):
                below = tuple(sorted(itertools.chain.from_iterable(x for x, _ in combined)))
                p = chance * math.prod(p for _, p in combined)
                after[below] = after.get(below, 0.0) + p
        paths = after
    return paths


def level_changes(one, other, labels, lengths):
    """Squared l2 distance of two tables' nodes, for each level."""
    changes = []
    for _, _, children in tree(labels, lengths):
        if children is not None:
            nodes = [child for own in children.values() for child in own]
            changes.append(sum((count(one, x) - count(other, x)) ** 2 for x in nodes))
    return changes


def rho_of(epsilon, delta):
    """The authors' rho of an epsilon and a delta."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def deviation(rho, levels, trips):
    """sigma of every level, for users with at most so many trips of any kind."""
    return math.sqrt(2) * trips * math.sqrt(levels / (2 * rho))
