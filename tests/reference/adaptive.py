"""Adaptive histograms, basic and improved (methods.md 7.1 to 7.5; adaptive2009 Figures 1 and 2,
Theorem 3, Appendix A).

A record is a tuple of digits; `fanout(prefix)` tells how many children the node `prefix` has, zero
for one that cannot be split. A record that ends at an inner node counts there and in no child
(a partial record). `items` are pairs of a record and its weight in order of arrival.

A node splits if count + noise >= threshold. Noise is two-sided geometric, a = exp(-epsilon): the
threshold and the discount are integers. Only "fractional" discounting has counts that are not
whole, and takes Laplace noise: whole noise turns any change of a weight that crosses an integer
into a full epsilon, and one record can move the weights of all children across at once.

Discounting makes each child at least t = `discount` smaller than its parent was when counted:

* skip: remove the first t of the node in the records' own order;
* proportional: remove the first t in order of arrival, the list's;
* uniform: remove the first t of EVERY child;
* fractional: diminish every record alike, by the factor max(0, 1 - t/weight of the node).

The paper's progressive discount, t times the first of the child that is largest at that moment, is not
stable, and the theorem does not hold for it.

Structures are worth 2 epsilon when t >= b + ln 2/epsilon. `structural_loss` computes what they are
worth exactly, and `loss` what one pair of tables makes of it.

What the exact computations say:

* "Removing" (the outcome is likelier without the record) costs epsilon and no more: the root stops
  at a large count. "Adding" costs 0.69 to 1.39 epsilon with Laplace noise for epsilon from 0.1 to 2
  and b >= ln 2/epsilon. So the structure costs from 1 to 1.39 epsilon, never 0.7.
* With sum_{x > -t} r(x) = -ln p(1 - t) in place of -ln p(-t), the theorem's proof gives 2 epsilon
  from t >= b - 1 + ln 2/epsilon, and with geometric noise from t >= b - 1 + ln(1 + a)/epsilon.
"""

import math
from fractions import Fraction

from . import geometric

STRATEGIES = ("skip", "uniform", "proportional", "fractional")


def proceed_geometric(epsilon, threshold, alpha=None):
    """count -> Pr[count + G >= threshold]; exact fractions when `alpha` is one."""
    a = geometric.alpha_for(epsilon) if alpha is None else alpha

    def p(count):
        # count + G >= threshold iff G >= the integer ceil(threshold - count)
        need = math.ceil(threshold - count)
        if need >= 1:
            return a**need / (1 + a)
        return 1 - a ** (1 - need) / (1 + a)

    return p


def proceed_laplace(epsilon, threshold):
    """count -> Pr[count + Lap(1/epsilon) >= threshold], equation (2)."""

    def p(count):
        distance = float(abs(count - threshold))
        if count >= threshold:
            return 1 - math.exp(-epsilon * distance) / 2
        return math.exp(-epsilon * distance) / 2

    return p


# Discounting


def weigh(records):
    return [(record, Fraction(1)) for record in records]


def size(items):
    return sum((weight for _, weight in items), Fraction(0))


def partition(items, level, k):
    """By the digit at `level`; a record that has none is in no part."""
    parts = [[] for _ in range(k)]
    for record, weight in items:
        if len(record) > level:
            parts[record[level]].append((record, weight))
    return parts


def without_first(items, t, by_record):
    """Without the first t, by the records' own order or by arrival; order of arrival is kept."""
    positions = list(range(len(items)))
    if by_record:
        positions.sort(key=lambda i: items[i][0])  # stable: copies are alike, any will do
    gone = set(positions[:t])
    return [item for i, item in enumerate(items) if i not in gone]


def discounted(items, level, k, t, strategy):
    """The k children of a node after the discount."""
    if strategy == "skip":
        return partition(without_first(items, t, by_record=True), level, k)
    if strategy == "proportional":
        return partition(without_first(items, t, by_record=False), level, k)
    if strategy == "uniform":
        parts = partition(items, level, k)
        return [without_first(part, t, by_record=True) for part in parts]
    if strategy == "fractional":
        weight = size(items)
        if weight <= t:
            return [[] for _ in range(k)]
        factor = 1 - Fraction(t) / weight
        return partition([(record, w * factor) for record, w in items], level, k)
    raise ValueError(f"strategy {strategy!r} is none of {STRATEGIES}")


# Exact laws


def structure_probabilities(records, fanout, discount, depth, proceed, strategy="skip"):
    """Every possible set of leaves and its probability; the list's order is the order of arrival.

    `proceed` (count -> probability) is one of the two above. Tiny cases only: 1, 2, 5, 26, 677
    structures for fanout 2 and depth 0, 1, 2, 3, 4.
    """

    def splits(items, level):
        return proceed(size(items))

    def parts(items, level, k):
        return discounted(items, level, k, discount, strategy)

    return law_of_tree(weigh(records), fanout, depth, splits, parts)


def law_of_tree(items, fanout, depth, splits, parts, prefix=()):
    """Of a node that splits with probability `splits`, into `parts` that do so independently."""
    k, level, leaf = fanout(prefix), len(prefix), frozenset([prefix])
    if level == depth or k == 0:
        return {leaf: 1}
    p = splits(items, level)
    below = {frozenset(): p}
    for i, part in enumerate(parts(items, level, k)):
        child = law_of_tree(part, fanout, depth, splits, parts, (*prefix, i))
        below = {s | t: q * r for s, q in below.items() for t, r in child.items()}
    return {leaf: 1 - p, **below}


def loss(first, second, fanout, discount, depth, proceed, strategy="skip"):
    """max over structures of ln(Pr[structure | first]/Pr[structure | second]), at any depth.

    Nodes decide independently, so the worst structure is put together from the worst below each.
    """

    def worst(a, b, prefix):
        k = fanout(prefix)
        if len(prefix) == depth or k == 0 or sorted(a) == sorted(b) == []:
            return 0.0
        p, q = proceed(size(a)), proceed(size(b))
        stop = math.log((1 - p) / (1 - q))
        split = math.log(p / q)
        parts = zip(
            discounted(a, len(prefix), k, discount, strategy),
            discounted(b, len(prefix), k, discount, strategy),
            strict=True,
        )
        for i, (x, y) in enumerate(parts):
            split += worst(x, y, (*prefix, i))
        return max(stop, split)

    return worst(weigh(first), weigh(second), ())


# Theorem 3


def log_ratios(count, epsilon, threshold, noise):
    """(ln p(x + 1)/p(x), ln (1 - p(x))/(1 - p(x + 1))), accurate where they are small."""
    if noise == "geometric":
        alpha, shift = geometric.alpha_for(epsilon), 1
        if threshold != math.floor(threshold):
            raise ValueError("the threshold must be whole")
        front = math.log1p(alpha)
    else:
        front, shift = math.log(2), 0

    def log_p(x):
        if x < threshold:
            return -epsilon * (threshold - x) - front
        return math.log1p(-math.exp(-epsilon * (x - threshold + shift) - front))

    def log_stop(x):  # Pr[noise < threshold - x]
        if x >= threshold:
            return -epsilon * (x - threshold + shift) - front
        return math.log1p(-math.exp(-epsilon * (threshold - x) - front))

    return log_p(count + 1) - log_p(count), log_stop(count) - log_stop(count + 1)


def structural_loss(epsilon, threshold, discount, noise="laplace"):
    """(adding, removing): the largest ln-ratio of a structure's probabilities, with one record more
    against without and the other way round, over all admissible sequences of counts.

    Along the one path where counts differ, x is the count without the record and x + 1 with it. The
    path stops at x, or goes on, and then the counts are equal from there on (always so when x < t:
    both are skipped whole), or differ at a child of any count y from 0 to x - t. The best outcome
    is found for every x in turn, from zero up to where a decision is worth less than e^-40.
    """
    last = math.ceil(threshold + 40 / epsilon) + discount
    ratios = [log_ratios(x, epsilon, threshold, noise) for x in range(last + 1)]
    return worst_sequences(ratios, discount)


def worst_sequences(ratios, fall):
    """(adding, removing), of paths whose counts fall by `fall` at least; from there on they may be equal."""
    best = []  # for each sign, running maxima over counts up to x
    for sign in (1, -1):
        up_to = []
        for x, (ratio, stop_ratio) in enumerate(ratios):
            further = max(0.0, up_to[x - fall]) if x >= fall else 0.0
            value = max(-sign * stop_ratio, sign * ratio + further)
            up_to.append(max(value, up_to[-1]) if up_to else value)
        best.append(up_to[-1])
    return best[0], best[1]


def theorem_discount(epsilon, threshold):
    """t = ceil(b + ln 2/epsilon)."""
    return math.ceil(threshold + math.log(2) / epsilon)


def smallest_discount(epsilon, threshold, noise="laplace"):
    """The smallest t from which on both losses are at most 2 epsilon."""
    t = theorem_discount(epsilon, threshold)
    while t > 1 and max(structural_loss(epsilon, threshold, t - 1, noise)) <= 2 * epsilon:
        t -= 1
    return t
