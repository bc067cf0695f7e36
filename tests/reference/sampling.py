"""Sampled counts of users with many records: SRA, HPA and a mixture (methods.md 10, fan2015 4, 5).

`records` is user -> list of (item, context); `items` and `contexts` are the public lists of both.
Neighbours differ in one user with all of its records. At most l records a user are counted, each
once among the items and once among the edges, so both tables have sensitivity l. Noise is two-sided
geometric with a = exp(-epsilon/l) (the paper's Laplace, of scale l/epsilon).

What the paper leaves open is settled so:
* popularity is uniform if no noisy count is positive (0/0 in Eq 11);
* equal popularity is decided by a fresh uniform number per RECORD, so that "records with the same
  score have equal chance", whether they are of one item or of several;
* a user with d records or fewer gives all of them to the popularity sample;
* of the mixture's l records, round(random_share * l) are random (halves to even), drawn first; the
  others are the most popular of what is left. A share of 0 is HPA, a share of 1 SRA.
"""

# ruff: noqa: E741  (l is the paper's letter)

import math
from fractions import Fraction

from . import geometric

FORMS = ("printed", "fixed count", "actual count")


# Choosing records


def at_random(mine, l, rng):
    """(kept, left): l of one user's records without replacement, or all if there are no more."""
    left = list(mine)
    kept = []
    while left and len(kept) < l:
        kept.append(left.pop(int(rng.integers(len(left)))))
    return kept, left


def most_popular(mine, l, popularity, rng):
    """The l records of the highest popularity, or all; ties by fresh uniform numbers."""
    scored = [(-popularity[item], rng.random(), (item, context)) for item, context in mine]
    scored.sort(key=lambda entry: entry[:2])
    return [record for _, _, record in scored[:l]]


def random_records(l, random_share):
    """How many of the mixture's l records are random."""
    if not 0 <= random_share <= 1:
        raise ValueError("random_share must be in [0, 1]")
    return round(random_share * l)


def mixed(mine, l, random_share, popularity, rng):
    """Some at random, then the most popular of what is left."""
    kept, left = at_random(mine, random_records(l, random_share), rng)
    return kept + most_popular(left, l - len(kept), popularity, rng)


# Counting and releasing


def count_items(records, items):
    """q1: the records of each item."""
    counts = dict.fromkeys(items, 0)
    for mine in records.values():
        for item, _ in mine:
            counts[item] += 1
    return counts


def count_edges(records, items, contexts):
    """q2: the records of each (item, context)."""
    counts = {(item, context): 0 for item in items for context in contexts}
    for mine in records.values():
        for record in mine:
            counts[record] += 1
    return counts


def publish(sampled, items, contexts, l, eps1, eps2, rng):
    """q1 and q2 of the SAME sample, with eps1 and eps2."""
    one, two = (geometric.alpha_for(epsilon, l) for epsilon in (eps1, eps2))
    return (
        geometric.noisy(count_items(sampled, items), one, rng),
        geometric.noisy(count_edges(sampled, items, contexts), two, rng),
    )


def sra(records, items, contexts, l, eps1, eps2, rng):
    """Algorithm 1; (eps1 + eps2)-DP per user."""
    sampled = {}
    for user, mine in records.items():
        sampled[user], _ = at_random(mine, l, rng)
    return publish(sampled, items, contexts, l, eps1, eps2, rng)


def normalised(counts):
    """Eq 11: negative counts become 0, then divided by the sum; uniform if that is 0."""
    clamped = {item: max(count, 0) for item, count in counts.items()}
    total = sum(clamped.values())
    if total == 0:
        return {item: Fraction(1, len(clamped)) for item in clamped}
    return {item: Fraction(count, total) for item, count in clamped.items()}


def estimate_popularity(records, items, d, eps0, rng):
    """Algorithm 2, lines 1 to 7; eps0-DP per user."""
    sampled = {}
    for user, mine in records.items():
        sampled[user], _ = at_random(mine, d, rng)
    alpha = geometric.alpha_for(eps0, d)
    return normalised(geometric.noisy(count_items(sampled, items), alpha, rng))


def hybrid(records, items, contexts, l, d, random_share, eps0, eps1, eps2, rng):
    """Part random, part picked (the paper's future work); (eps0 + eps1 + eps2)-DP per user."""
    popularity = estimate_popularity(records, items, d, eps0, rng)
    sampled = {}
    for user, mine in records.items():
        sampled[user] = mixed(mine, l, random_share, popularity, rng)
    return publish(sampled, items, contexts, l, eps1, eps2, rng)


# Exact laws for given data


def kept_by_sra(mine, l, item):
    """(mean, variance) of how many of one user's records of the item are kept: hypergeometric,
    s = min(l, t) drawn from t, t_i of which are of the item.
    """
    t = len(mine)
    if t == 0:
        return Fraction(0), Fraction(0)
    s = min(l, t)
    share = Fraction(sum(1 for other, _ in mine if other == item), t)
    if s == t:
        return s * share, Fraction(0)
    return s * share, s * share * (1 - share) * Fraction(t - s, t - 1)


def moments_sra(records, item, l):
    """(mean, variance) of the item's count in SRA's sample, before noise."""
    mean = variance = Fraction(0)
    for mine in records.values():
        one_mean, one_variance = kept_by_sra(mine, l, item)
        mean += one_mean
        variance += one_variance
    return mean, variance


def lost_by_sra(records, item, l):
    """The bias with its sign turned: sum over users of max(0, |T_k| - l) p_ki (10.1)."""
    lost = Fraction(0)
    for mine in records.values():
        if len(mine) > l:
            of_item = sum(1 for other, _ in mine if other == item)
            lost += (len(mine) - l) * Fraction(of_item, len(mine))
    return lost


def error_sra(records, items, l, eps1, noise="geometric"):
    """Expected squared error of all item counts together against the true counts."""
    total = 0.0
    for item in items:
        _, variance = moments_sra(records, item, l)
        total += float(variance + lost_by_sra(records, item, l) ** 2)
        total += noise_variance(l, eps1, noise)
    return total


def noise_variance(l, epsilon, noise):
    return geometric.variance_of_either(l / epsilon, noise)


# The best l: n users of M independent records each, each of the item with probability p


def modelled_error(l, users, records, popularity, epsilon, form):
    """Squared error summed over items, `records` a user, `epsilon` for the item counts.

    "printed": Eq 21, whose variance takes the sampled records for independent.
    "fixed count": variance n l p (1 - p), still against the MEAN count n M p.
    "actual count": against the count itself: what is lost is Binomial(n (M - l), p). This is true.
    """
    n, m = users, records
    total = 0.0
    for p in popularity:
        if form == "printed":
            variance = n * l * p * (1 - p * l / m)
        elif form == "fixed count":
            variance = n * l * p * (1 - p)
        elif form == "actual count":
            variance = n * (m - l) * p * (1 - p)
        else:
            raise ValueError(f"form must be one of {FORMS}")
        total += variance + (n * p * (m - l)) ** 2 + 2 * l**2 / epsilon**2
    return total


def best_l(users, records, popularity, epsilon, form):
    """The real l at which `modelled_error`'s derivative is zero, NOT clipped.

    One popularity gives the formulas of 10.1 (Eq 22 if "printed"), more their sum over items.
    """
    n, m, items = users, records, len(popularity)
    squares = math.fsum(p * p for p in popularity)
    ones = math.fsum(popularity)
    noise = 4 * items / epsilon**2
    if form == "printed":
        above = 2 * n**2 * m * squares - n * ones
        return above / (noise + 2 * n**2 * squares - 2 * n * squares / m)
    spread = n * (ones - squares)  # n sum p (1 - p)
    if form == "fixed count":
        return (2 * n**2 * m * squares - spread) / (noise + 2 * n**2 * squares)
    if form == "actual count":
        return (2 * n**2 * m * squares + spread) / (noise + 2 * n**2 * squares)
    raise ValueError(f"form must be one of {FORMS}")


def best_whole_l(users, records, popularity, epsilon, form):
    """The integer in 1..M of least `modelled_error`, by trying all."""
    return min(
        range(1, records + 1),
        key=lambda l: modelled_error(l, users, records, popularity, epsilon, form),
    )
