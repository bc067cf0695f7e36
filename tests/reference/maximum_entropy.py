"""The box-constrained maximum entropy model on an explicit universe (chen2012 section 4, methods.md
6.6 and 6.7b).

`features` is the m x N array of f_i(t), t in the order of `kernel_pca.universe`; pi_i = a_i/n are noisy
shares, box_i = alpha n/b_i the bound on the i-th weight, p0 the prior over the N tuples.
"""

import math

import numpy as np
import scipy.optimize

from .kernel_pca import universe


def boxes(alpha, n, scales):
    """beta_i = alpha n/b_i, b_i the scale of the Laplace noise on the i-th count."""
    return np.array([alpha * n / scale for scale in scales])


# The model


def log_partition(w, features, p0):
    """ln Z_w, Z_w = sum_t p0(t) exp(sum_i w_i f_i(t))."""
    scores = w @ features
    top = float(scores.max())
    return top + math.log(math.fsum(p0 * np.exp(scores - top)))


def distribution(w, features, p0):
    """p_w over the universe."""
    return p0 * np.exp(w @ features - log_partition(w, features, p0))


def dual(w, features, pi, p0):
    """Q'(w) of Eq 37."""
    return math.fsum(w * pi) - log_partition(w, features, p0)


def gradient(w, features, pi, p0):
    """pi_i - p_w[f_i]."""
    return pi - features @ distribution(w, features, p0)


def hessian(w, features, p0):
    """-Cov(f_i, f_j) under p_w: Eq 39 lacks the sign."""
    p = distribution(w, features, p0)
    m = len(features)
    found = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            together = math.fsum(p * features[i] * features[j])
            apart = math.fsum(p * features[i]) * math.fsum(p * features[j])
            found[i, j] = -(together - apart)
    return found


def gap(w, features, pi, box, p0):
    """primal(p_w) - dual(w) = sum_i (box_i |r_i| - w_i r_i), r the residuals. Not negative, 0 at the
    optimum p* alone, and by Pinsker |p_w - p*|_1 <= sqrt(2 gap).
    """
    r = gradient(w, features, pi, p0)
    return math.fsum(box * np.abs(r) - w * r)


def violation(w, features, pi, box, p0):
    """How far w is from optimal: inside the box the residual must be 0, at +box it may be
    positive, at -box negative. The largest |w - clip(w + r)|.
    """
    r = gradient(w, features, pi, p0)
    return float(np.abs(w - np.clip(w + r, -box, box)).max())


def solve(features, pi, box, p0, tolerance=1e-11, steps=500):
    """Weights of the optimum: L-BFGS-B, then Newton steps on the weights that are free to move.

    p_w is unique; w need not be (a table's weights plus a constant give the same p_w).
    """

    def down(w):
        return -dual(w, features, pi, p0), -gradient(w, features, pi, p0)

    found = scipy.optimize.minimize(
        down,
        np.zeros(len(pi)),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(-box, box, strict=True)),
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12},
    )
    w = np.clip(found.x, -box, box)
    for _ in range(steps):
        if violation(w, features, pi, box, p0) <= tolerance:
            break
        r = gradient(w, features, pi, p0)
        held = ((w >= box) & (r >= 0)) | ((w <= -box) & (r <= 0))
        free = np.flatnonzero(~held)
        bend = -hessian(w, features, p0)[np.ix_(free, free)]
        # the ridge gives a direction even where p_w is flat in w; the box then stops the run
        ridge = 1e-9 * max(float(np.trace(bend)) / len(free), 1e-30)
        direction = np.linalg.solve(bend + ridge * np.eye(len(free)), r[free])
        now, length = dual(w, features, pi, p0), 1.0
        for _ in range(60):
            moved = w.copy()
            moved[free] = np.clip(w[free] + length * direction, -box[free], box[free])
            if dual(moved, features, pi, p0) >= now + 1e-4 * math.fsum(r * (moved - w)):
                break
            length /= 2
        else:
            moved = np.clip(w + r, -box, box)
            if dual(moved, features, pi, p0) <= now:
                break
        w = moved
    return w


# Markov chains


def gibbs_conditional(t, k, w, features, sizes, p0):
    """p_w(A_k = v | the rest of t), over v."""
    places = {cell: i for i, cell in enumerate(universe(sizes))}
    logs = []
    for v in range(sizes[k]):
        i = places[(*t[:k], v, *t[k + 1 :])]
        logs.append(math.log(p0[i]) + float(w @ features[:, i]) if p0[i] > 0 else -math.inf)
    top = max(logs)
    masses = [math.exp(x - top) for x in logs]
    return [mass / math.fsum(masses) for mass in masses]


def gibbs_matrix(k, w, features, sizes, p0):
    """The exact N x N matrix, rows from, of redrawing attribute k from its conditional."""
    cells = universe(sizes)
    places = {cell: i for i, cell in enumerate(cells)}
    matrix = np.zeros((len(cells), len(cells)))
    for i, t in enumerate(cells):
        for v, mass in enumerate(gibbs_conditional(t, k, w, features, sizes, p0)):
            matrix[i, places[(*t[:k], v, *t[k + 1 :])]] += mass
    return matrix


def sweep_matrix(step, w, features, sizes, p0):
    """All attributes in turn; `step` is gibbs_matrix or metropolis_matrix."""
    whole = np.eye(math.prod(sizes))
    for k in range(len(sizes)):
        whole = whole @ step(k, w, features, sizes, p0)
    return whole


def as_printed(features, pi, box, sizes, p0, gamma, iterations, rng):
    """The paper's 4.2: one chain, a Metropolis step with uniform proposal on each attribute in turn,
    then w_i += gamma (pi_i - f_i(t)), cut at +-box_i. The last weights and the chain's last tuple.

    The chain starts at a uniformly drawn tuple, which the paper leaves open.
    """
    places = {cell: i for i, cell in enumerate(universe(sizes))}
    w = np.zeros(len(pi))
    t = tuple(int(rng.integers(size)) for size in sizes)
    for _ in range(iterations):
        for k in range(len(sizes)):
            other = (*t[:k], int(rng.integers(sizes[k])), *t[k + 1 :])
            i, j = places[t], places[other]
            ratio = p0[j] / p0[i] * math.exp(float(w @ (features[:, j] - features[:, i])))
            if rng.random() < min(1.0, ratio):
                t = other
        for i in range(len(w)):
            w[i] += gamma * (pi[i] - features[i, places[t]])
            w[i] = min(max(w[i], -box[i]), box[i])
    return w, t
