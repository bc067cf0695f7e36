"""Compiled loops that sort, count and sample records by user.

Functions that sample take states of `user_kernels.next_word`: either one per user, or one from which
all users draw in turn.
"""

import numpy as np

from workbench.compiled import njit
from workbench.data.user_kernels import below, longest, mark_some


@njit(cache=True, nogil=True)
def sort_by_user(users, low, starts, items, contexts, to_items, to_contexts, to_users):
    """Sort records by user with a stable counting sort. `starts` is scratch space: an array of zeros
    with one place per possible user and one more.
    """
    for i in range(users.size):
        starts[np.int64(users[i]) - low + 1] += 1
    k, at = np.int32(0), 0
    for u in range(starts.size - 1):
        n = starts[u + 1]
        starts[u + 1] = at + n  # ends, as `starts[u]` is the start
        for i in range(at, at + n):
            to_users[i] = k
        k += np.int32(n > 0)
        at += n
    for i in range(users.size):
        u = np.int64(users[i]) - low
        to_items[starts[u]] = items[i]
        to_contexts[starts[u]] = contexts[i]
        starts[u] += 1


@njit(cache=True, nogil=True)
def count_edges(items, contexts, out):
    """Count the records of each item in each context."""
    for i in range(items.size):
        out[items[i], contexts[i]] += 1


@njit(cache=True, nogil=True)
def first_repeated(starts, items, m):
    """Return the first row whose item the same user has in an earlier row, or −1 if there is none."""
    owner = np.full(m, -1, np.int64)
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            if owner[items[i]] == u:
                return i
            owner[items[i]] = u
    return -1


@njit(cache=True, nogil=True)
def sample(starts, limit, states, users, items, contexts, to_users, to_items, to_contexts):
    """Keep `limit` random records of each user, or all records if there are fewer."""
    taken = np.zeros(longest(starts), np.bool_)
    k = 0
    for u in range(starts.size - 1):
        s = states[u % states.shape[0]]
        start, n = starts[u], starts[u + 1] - starts[u]
        every = n <= limit
        if not every:
            mark_some(n, limit, s, taken)
        for i in range(n):
            if every or taken[i]:
                row, taken[i] = start + i, False
                to_users[k], to_items[k], to_contexts[k] = users[row], items[row], contexts[row]
                k += 1


@njit(cache=True, nogil=True)
def one_per_item(starts, m, states, users, items, contexts, to_users, to_items, to_contexts):
    """Keep one random record of each user and item. The t-th record of an item replaces the kept one
    with probability 1/t.
    """
    owner, seen, place = np.full(m, -1), np.zeros(m, np.int64), np.zeros(m, np.int64)
    k = 0
    for u in range(starts.size - 1):
        s = states[u % states.shape[0]]
        for i in range(starts[u], starts[u + 1]):
            item = items[i]
            if owner[item] != u:
                owner[item], seen[item], place[item] = u, 1, k
                to_users[k], to_items[k], to_contexts[k] = users[i], item, contexts[i]
                k += 1
            else:
                seen[item] += 1
                if below(s, seen[item]) == 0:
                    to_contexts[place[item]] = contexts[i]
    return k


@njit(cache=True, nogil=True)
def top_scored(
    starts,
    limit,
    random,
    ranks,
    states,
    users,
    items,
    contexts,
    to_users,
    to_items,
    to_contexts,
):
    """Keep `random` random records of each user, and the records with the highest ranks among the
    others. Ties are broken at random.

    A heap contains the highest ranks, and `cut` is the smallest of these. All records with a rank above
    `cut` are kept. Of those with rank `cut`, selection sampling keeps as many as the heap contains.
    """
    taken = np.zeros(longest(starts), np.bool_)
    heap = np.empty(max(min(limit, taken.size), 1), np.int32)
    k = 0
    for u in range(starts.size - 1):
        s = states[u % states.shape[0]]
        start, n = starts[u], starts[u + 1] - starts[u]
        if n <= limit + random:
            for i in range(start, start + n):
                to_users[k], to_items[k], to_contexts[k] = users[i], items[i], contexts[i]
                k += 1
            continue
        mark_some(n, random, s, taken)
        held, equal, wanted = 0, 0, 0
        cut = np.int32(2**31 - 1)  # above every rank
        for i in range(n if limit else 0):
            if taken[i]:
                continue
            rank = ranks[items[start + i]]
            if held < limit:
                heap[held] = rank
                held += 1
                if held == limit:
                    for j in range(limit // 2 - 1, -1, -1):
                        _sift(heap, limit, j)
                    cut = heap[0]
            elif rank > cut:
                heap[0] = rank
                _sift(heap, limit, 0)
                equal = (
                    equal + 1 if heap[0] == cut else 0
                )  # none was lost that equals a new cut
                cut = heap[0]
            elif rank == cut:
                equal += 1
        for i in range(held):
            wanted += heap[i] == cut
        equal += wanted
        for i in range(n):
            if taken[i]:
                take, taken[i] = True, False
            else:
                rank = ranks[items[start + i]]
                take = rank > cut
                if rank == cut:
                    take = wanted == equal or (wanted > 0 and below(s, equal) < wanted)
                    wanted -= take
                    equal -= 1
            if take:
                row = start + i
                to_users[k], to_items[k], to_contexts[k] = users[row], items[row], contexts[row]
                k += 1


@njit(cache=True, nogil=True)
def _sift(heap, size, i):
    """Move the entry at i down the heap until no entry below it is smaller."""
    x = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= x:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = x
