"""Priority sampling, with or without a filter, the laborious way (methods.md 9.4 and 9.4b;
cormode2012 2.3 and C.3).

Noise on every cell; keep |x| >= max(theta, 1), one-sided x >= max(theta, 1); r uniform on
(0, 1]; priority |x|/r; publish the `size` largest and tau_s, the (size + 1)-th.
"""

import math

from . import geometric, high_pass_filter


def sample(noisy, theta, size, sides, rng):
    """{cell: (noisy value, weight sign(x) * max(|x|, tau_s))} and tau_s.

    When at most `size` cells pass the filter, all are released and tau_s = 0 (weights = x).
    """
    candidates = []
    for cell, x in noisy.items():
        if high_pass_filter.passes(x, max(theta, 1), sides):
            r = 1.0 - rng.random()  # (0, 1]
            candidates.append((abs(x) / r, cell, x))
    candidates.sort(key=lambda candidate: candidate[0], reverse=True)
    tau_s = candidates[size][0] if len(candidates) > size else 0.0
    released = {}
    for _, cell, x in candidates[:size]:
        released[cell] = (x, math.copysign(max(abs(x), tau_s), x))
    return released, tau_s


def release(counts, epsilon, sensitivity, size, theta, sides, rng):
    """The same of counts and their noise."""
    alpha = geometric.alpha_for(epsilon, sensitivity)
    noisy = geometric.noisy(dict(enumerate(counts)), alpha, rng)
    return sample(noisy, theta, size, sides, rng)
