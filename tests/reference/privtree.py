"""PrivTree (methods.md 7.7; Zhang, Xiao, Xie, SIGMOD 2016), with integer noise.

    lambda = (2 beta - 1)/((beta - 1) epsilon)
    delta = ceil(lambda ln beta)
    score(v) = max(theta - delta, count(v) - delta * depth(v));  v splits iff score(v) + G > theta

G is two-sided geometric, a = exp(-1/lambda); theta is whole. A node at the public depth `depth`, or
that has no children, is a leaf without a decision. `beta` fixes lambda and delta only: whether the
tree ends depends on the true fanout, the loss does not.

Integers do no harm. Counts along a path fall and delta * depth grows: scores fall by delta at
least until they reach the floor, where neighbours are alike. With g = delta/lambda the best sequence
costs (1/lambda)(1 + 1/(1 - e^-g)) at most, which falls in delta, and is epsilon at lambda ln beta.
Exactly, for small epsilon, it costs (1 + sum_j 1/(2 beta^j - 1))/lambda over j >= 0, at the scores
..., delta, 0, -delta: 0.869 epsilon for beta = 2, 0.984 for 16. Removing a record costs 1/lambda.
At the floor Pr[split] = a^(delta + 1)/(1 + a) < 1/(2 beta), as with Laplace.
"""

import math

from . import adaptive


def scale(beta, epsilon):
    """lambda."""
    return (2 * beta - 1) / ((beta - 1) * epsilon)


def decay(beta, epsilon):
    """delta, rounded up to an integer."""
    return math.ceil(scale(beta, epsilon) * math.log(beta))


def score(count, depth, theta, delta):
    return max(theta - delta, count - delta * depth)


def proceed(score, theta, lam):
    """Pr[score + G > theta]."""
    return adaptive.proceed_geometric(1 / lam, theta + 1)(score)


def structure_probabilities(records, fanout, beta, epsilon, theta, depth):
    """Every possible set of leaves and its probability; tiny cases only."""
    lam, delta = scale(beta, epsilon), decay(beta, epsilon)

    def splits(items, level):
        return proceed(score(len(items), level, theta, delta), theta, lam)

    return adaptive.law_of_tree(
        adaptive.weigh(records), fanout, depth, splits, adaptive.partition
    )


def structural_loss(beta, epsilon):
    """(adding, removing): the largest ln-ratio of a structure's probabilities, one record more
    against without and the other way round, over all admissible sequences of scores.

    u = count - delta * depth - theta without the record, u + 1 with it. At a node the path stops, or
    goes on, with equal counts from there on, or to a child of any u' <= u - delta. Below u = -delta
    both are at the floor. The threshold drops out; all whole u are tried, delta being whole.
    """
    lam = scale(beta, epsilon)
    delta = decay(beta, epsilon)
    steps = range(-delta, math.ceil(40 * lam) + 1)
    ratios = [adaptive.log_ratios(u, 1 / lam, 1, "geometric") for u in steps]  # u + G > 0
    return adaptive.worst_sequences(ratios, delta)
