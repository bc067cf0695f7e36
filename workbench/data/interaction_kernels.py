"""Compiled loops that sort, count and sample records by user.

Functions that sample take states of `user_kernels.next_word`: either one per user, or one from which
all users draw in turn.
"""

import numpy as np

from workbench.compiled import njit
from workbench.data.user_kernels import below, longest, mark_some


@njit(cache=True, nogil=True)
def sort_by_user(users, low, starts, items, contexts, to_items, to_contexts, to_users):
    """Sort records by user with a stable counting sort. `starts` is working memory: an array of zeros, with
    one place for each possible user and one more.
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
    """Return the first row that repeats an item of the same user. Return −1 if there is none."""
    owner = np.full(m, -1, np.int64)
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            if owner[items[i]] == u:
                return i
            owner[items[i]] = u
    return -1


@njit(cache=True, nogil=True)
def sample(starts, limit, states, kept):
    """Mark `limit` random records of each user, or all records if there are fewer."""
    for u in range(starts.size - 1):
        own = kept[starts[u] : starts[u + 1]]
        if own.size <= limit:
            own[:] = True
        else:
            mark_some(own.size, limit, states[u % states.shape[0]], own)


@njit(cache=True, nogil=True)
def one_per_item(starts, items, m, states, rows):
    """Choose one random record of each user and item, and write its row to the place of the item's first
    record. The t-th record of an item replaces the chosen one with probability 1/t. Returns how many there are.
    """
    owner, seen, place = np.full(m, -1), np.zeros(m, np.int64), np.zeros(m, np.int64)
    k = 0
    for u in range(starts.size - 1):
        s = states[u % states.shape[0]]
        for i in range(starts[u], starts[u + 1]):
            item = items[i]
            if owner[item] != u:
                owner[item], seen[item], place[item] = u, 1, k
                rows[k] = i
                k += 1
            else:
                seen[item] += 1
                if below(s, seen[item]) == 0:
                    rows[place[item]] = i
    return k


@njit(cache=True, nogil=True)
def top_scored(starts, limit, random, ranks, items, states, kept):
    """Mark `random` random records of each user, and the `limit` records with the highest ranks among the
    others. Ties are broken at random.

    All records with a rank above that of the last one, `cut`, are marked. Selection sampling marks as many
    of those with this rank as are still wanted.
    """
    others = np.empty(longest(starts), ranks.dtype)
    for u in range(starts.size - 1):
        s = states[u % states.shape[0]]
        start, n = starts[u], starts[u + 1] - starts[u]
        own = kept[start : start + n]
        if n <= limit + random:
            own[:] = True
            continue
        mark_some(n, random, s, own)
        if not limit:
            continue
        size = 0
        for i in range(n):
            if not own[i]:
                others[size] = ranks[items[start + i]]
                size += 1
        cut = np.partition(others[:size], size - limit)[size - limit]
        wanted, equal = limit, 0
        for i in range(size):
            wanted -= others[i] > cut
            equal += others[i] == cut
        for i in range(n):
            rank = ranks[items[start + i]]
            if own[i] or rank < cut:
                continue
            own[i] = rank > cut
            if rank == cut:
                own[i] = wanted == equal or (wanted > 0 and below(s, equal) < wanted)
                wanted -= own[i]
                equal -= 1
