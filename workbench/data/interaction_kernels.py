"""Compiled loops that sort the records of users, count them, and sample some records of each user.

Functions that choose records at random take the argument `states`, which contains states of the random number
generator of `user_kernels.next_word`. There is one state per user, or a single state from which all users draw
in turn.
"""

import numpy as np

from workbench.compiled import njit
from workbench.data.user_kernels import below, longest, mark_some


@njit(cache=True, nogil=True)
def sort_by_user(users, low, starts, items, contexts, to_items, to_contexts, to_users):
    """Sort records by user, and write the sorted columns and new numbers of the users to the last three
    arrays. Records of one user keep their order.

    `starts` is working memory: an array of zeros with one more entry than there are possible users.
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
    """Count the records for each pair of an item and a context, and add the counts to the matrix `out`."""
    for i in range(items.size):
        out[items[i], contexts[i]] += 1


@njit(cache=True, nogil=True)
def first_repeated(starts, items, m):
    """Return the first row whose item occurs in an earlier row of the same user, or −1 if there is no such
    row.
    """
    owner = np.full(m, -1, np.int64)
    for u in range(starts.size - 1):
        for i in range(starts[u], starts[u + 1]):
            if owner[items[i]] == u:
                return i
            owner[items[i]] = u
    return -1


@njit(cache=True, nogil=True)
def sample(starts, limit, states, kept):
    """Mark `limit` random records of each user in the mask `kept`. For a user with fewer records, all of the
    user's records are marked.
    """
    for u in range(starts.size - 1):
        own = kept[starts[u] : starts[u + 1]]
        if own.size <= limit:
            own[:] = True
        else:
            mark_some(own.size, limit, states[u % states.shape[0]], own)


@njit(cache=True, nogil=True)
def one_per_item(starts, items, m, states, rows):
    """Choose one random record for each pair of a user and an item. Write the row numbers of the chosen
    records to `rows`, and return how many there are.

    While the records are read, the t-th record of a pair replaces the chosen one with probability 1/t, so all
    are equally likely.
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
    """Mark records of each user in the mask `kept`. First mark `random` random records. Then mark, among the
    other records, the `limit` records whose items have the highest ranks. `ranks` contains the rank of each
    item. If ranks are equal, the choice is random.

    The variable `cut` is the lowest rank among the `limit` highest. All records with a higher rank are
    marked. Then records with exactly this rank are marked at random, until `limit` records are marked in
    addition to the random ones.
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
