"""The thresholds at which a summary is expected to have the size that is wanted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import sqrt

import numpy as np

from workbench.advice.errors import NodeCover, mean_absolute_errors, mean_log_error
from workbench.advice.model import NodeCounts
from workbench.advice.rule import ReleaseRule


def expected_released(rule: ReleaseRule, nodes: NodeCounts) -> float:
    """How many nodes are expected in the summary."""
    return float(nodes.sizes @ nodes.mean(rule.moments(nodes.counts).chance))


def with_priority_threshold(rule: ReleaseRule, nodes: NodeCounts, size: int) -> ReleaseRule:
    """With the τ at which `size` nodes are expected; with none where no more pass θ."""

    def too_many(tau: float) -> bool:
        return expected_released(replace(rule, tau=tau), nodes) > size

    if expected_released(rule, nodes) <= size:
        return rule
    low = max(rule.theta, 1.0)
    high = 2 * low
    while too_many(high):
        low = high
        high = 2 * high
    while high > low * (1 + 1e-4):
        tau = sqrt(low * high)
        if too_many(tau):
            low = tau
        else:
            high = tau
    return replace(rule, tau=high)


def best_theta(
    rule: ReleaseRule, nodes: NodeCounts, covers: dict[int, NodeCover], size: int, most: int
) -> int:
    """The whole θ up to `most` whose filter-priority sample is least off, searched ever closer."""
    mean_covers = {
        query: NodeCover(share[None] @ needs, np.ones(1))
        for query, (needs, share) in covers.items()
    }

    @cache
    def error(theta: float) -> float:
        sampled = with_priority_threshold(replace(rule, theta=theta), nodes, size)
        return mean_log_error(mean_absolute_errors(sampled, nodes, mean_covers))

    thetas = np.unique(np.rint(np.linspace(1, most, 8))).tolist()
    while True:
        errors = [error(theta) for theta in thetas]
        best = errors.index(min(errors))
        low = thetas[max(best - 1, 0)]
        high = thetas[min(best + 1, len(thetas) - 1)]
        if high - low <= max(2, thetas[best] / 10):
            return int(thetas[best])
        thetas = np.unique(np.rint(np.linspace(low, high, 5))).tolist()
