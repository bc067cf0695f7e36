"""AIM, written from its formulas before the mechanism, on tables laid out in full.

A marginal is a sorted tuple of axes. The caller draws: `noise(sigma, r, cells)` returns the noise of a
measurement, `choose(chances)` one of the candidates by their probabilities, and `fit(measured)` the table
that fits what was measured, a list of (r, noisy cells, sigma).
"""

import itertools
import math

import numpy as np


def subsets(workload):
    """All nonempty subsets of workload marginals."""
    found = set()
    for s in workload:
        for size in range(1, len(s) + 1):
            found.update(itertools.combinations(s, size))
    return sorted(found, key=lambda r: (len(r), r))


def weight(r, workload):
    """w_r, of workload marginals that count once each."""
    return sum(len(set(r) & set(s)) for s in workload)


def marginal(table, r):
    """All cells of a marginal, in the order of its axes."""
    return table.sum(axis=tuple(k for k in range(table.ndim) if k not in r)).ravel()


def model_size(sets, shape):
    """Cells of the cliques that the best order of elimination leaves, tried one by one."""
    best = math.inf
    used = sorted(set().union(*sets))
    for order in itertools.permutations(used):
        near = {k: set() for k in used}
        for s in sets:
            for k in s:
                near[k] |= set(s) - {k}
        cliques = []
        for k in order:
            cliques.append({k} | near[k])
            for j in near[k]:
                near[j] = (near[j] | near[k]) - {j, k}
        largest = [c for c in cliques if not any(c < other for other in cliques)]
        cells = sum(math.prod(shape[k] for k in c) for c in largest)
        best = min(best, cells)
    return best


def run(table, workload, rho, cells, noise, choose, fit, rounds=None, initial=None, l1=1):
    """Return the fitted table, and a list of what was drawn.

    A unit moves any marginal by `l1` in all: sigma and the sensitivity of scores are that many times larger.
    """
    shape = table.shape
    candidates = subsets(workload)
    w = {r: weight(r, workload) for r in candidates}
    planned = rounds or 16 * table.ndim
    sigma = math.sqrt(planned / (1.8 * rho))
    epsilon = math.sqrt(0.8 * rho / planned)
    first = initial or [r for r in candidates if len(r) == 1]
    drawn = []
    measured = []
    used = 0.0

    def measure(r):
        exact = marginal(table, r)
        drawn.append(("noise", r, l1 * sigma))
        measured.append((r, exact + noise(l1 * sigma, r, len(exact)), l1 * sigma))

    for r in first:
        measure(r)
        used += 1 / (2 * sigma**2)  # what each of them costs, however many they are
    model = fit(measured)
    last = False
    while not last:
        if rho - used < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            sigma = math.sqrt(1 / (1.8 * (rho - used)))
            epsilon = math.sqrt(0.8 * (rho - used))
            last = True
        used += 1 / (2 * sigma**2) + epsilon**2 / 8
        have = [r for r, _, _ in measured]
        admitted = [
            r
            for r in candidates
            if model_size([*have, r], shape) <= cells * used / rho
            or any(set(r) <= set(s) for s in have)
        ]
        scores = {}
        for r in admitted:
            off = np.abs(marginal(table, r) - marginal(model, r)).sum()
            lost = math.sqrt(2 / math.pi) * l1 * sigma * len(marginal(table, r))
            scores[r] = w[r] * (off - lost)
        largest = max(w[r] for r in admitted)
        powers = {r: epsilon * q / (2 * largest * l1) for r, q in scores.items()}
        top = max(powers.values())
        total = sum(math.exp(x - top) for x in powers.values())
        chances = {r: math.exp(x - top) / total for r, x in powers.items()}
        r = choose(chances)
        drawn.append(("choice", r, chances))
        before = marginal(model, r)
        measure(r)
        model = fit(measured)
        moved = np.abs(marginal(model, r) - before).sum()
        if moved <= math.sqrt(2 / math.pi) * l1 * sigma * len(before):
            sigma /= 2
            epsilon *= 2
    return model, drawn, used
