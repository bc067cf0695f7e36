"""The compiled loops of `InteractionsTwin`."""

import numpy as np

from workbench.compiled import njit


@njit(cache=True, nogil=True)
def alias_tables(weights):
    """Walker's tables of a law: item i is kept with chance keep[i], else it is other[i]."""
    m = weights.size
    keep = weights * (m / weights.sum())
    other = np.arange(m).astype(np.int32)
    low, high = np.empty(m, np.int32), np.empty(m, np.int32)
    a = b = 0
    for i in range(m):
        if keep[i] < 1:
            low[a] = i
            a += 1
        else:
            high[b] = i
            b += 1
    while a and b:
        a -= 1
        i, j = low[a], high[b - 1]
        other[i] = j
        keep[j] -= 1 - keep[i]
        if keep[j] < 1:
            b -= 1
            low[a] = j
            a += 1
    for i in range(a):
        keep[low[i]] = 1
    for i in range(b):
        keep[high[i]] = 1
    return keep, other


@njit(cache=True, nogil=True)
def draw_distinct_items(rng, starts, groups, planted_at, planted, weights, keep, other, items):
    """Items of every user: the planted ones, the rest by weight and none of them twice."""
    m = keep.shape[1]
    mark, cost, p = np.full(m, -1, np.int64), np.empty(m), 0
    for u in range(starts.size - 1):
        at, stop, g = starts[u], starts[u + 1], groups[u]
        while p < planted.size and planted_at[p] < stop:
            items[at] = planted[p]
            mark[planted[p]] = u
            at += 1
            p += 1
        if 8 * (stop - at) <= m:
            while at < stop:
                x = rng.random() * m
                i = int(x)
                if x - i >= keep[g, i]:
                    i = other[g, i]
                if mark[i] != u:
                    mark[i] = u
                    items[at] = i
                    at += 1
        elif at < stop:  # the same law: the smallest of exponential times at these rates
            for i in range(m):
                cost[i] = np.inf if mark[i] == u else rng.standard_exponential() / weights[g, i]
            most = np.partition(cost, stop - at - 1)[stop - at - 1]
            for i in range(m):
                if cost[i] <= most and at < stop:
                    items[at] = i
                    at += 1


@njit(cache=True, nogil=True)
def draw_items(rng, starts, groups, planted_at, planted, returning, keep, other, items):
    """Items of every user: planted, or one of their own before, or by weight."""
    m, p = keep.shape[1], 0
    for u in range(starts.size - 1):
        start, stop, g = starts[u], starts[u + 1], groups[u]
        for at in range(start, stop):
            if p < planted.size and planted_at[p] == at:
                items[at] = planted[p]
                p += 1
            elif at > start and rng.random() < returning:
                items[at] = items[start + int(rng.random() * (at - start))]
            else:
                x = rng.random() * m
                i = int(x)
                items[at] = i if x - i < keep[g, i] else other[g, i]


@njit(cache=True, nogil=True)
def draw_contexts(rng, items, bounds, contexts):
    """A context of each record, by the cumulative law of its item."""
    last = bounds.shape[1] - 1
    for r in range(items.size):
        x, c = rng.random(), 0
        while c < last and x >= bounds[items[r], c]:
            c += 1
        contexts[r] = c
