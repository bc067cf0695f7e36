"""What the adaptive histograms share: limits on how far they refine, and the counts of their leaves."""

from __future__ import annotations

from math import ceil, exp, log, log1p
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.estimates import Leaves
from workbench.hierarchy import Hierarchy, argsort_keys
from workbench.mechanism import parameter
from workbench.privacy import Receipt
from workbench.records import Records
from workbench.records.frontier import LevelKeys


class StructureBudgets(NamedTuple):
    """ε of the whole structure, and of the leaves' counts."""

    structure: float
    leaves: float


def measure_field() -> Any:
    """The field that says how much of ε is left for the leaves."""
    return parameter(0.5, 0.01, 0.99, doc="share of ε for the leaves' counts")


def refuse_depth_above(mechanism: Any, depth: int) -> None:
    """A ValueError if `mechanism.depth` asks for more levels than a hierarchy has."""
    if mechanism.depth > depth:
        raise ValueError(
            f"{type(mechanism).__name__}.depth = {mechanism.depth!r} is not allowed: need at most "
            f"{depth}, the levels of the hierarchy"
        )


def empty_split_probability(mechanism: Any, tree: Hierarchy, decay: float) -> float:
    """p(0), the chance that an empty node is split: α^b/(1+α), α = exp(−decay).

    A ValueError if the k children of one that can be split are expected to split at least once.
    """
    chance = exp(-decay * ceil(mechanism.threshold)) / (1 + exp(-decay))
    least = max(0.0, log(max(1, tree.branching)) - log1p(exp(-decay))) / decay
    if tree.branching * chance >= 1:
        raise ValueError(
            f"{type(mechanism).__name__}.threshold = {mechanism.threshold!r} is not allowed: of an "
            f"empty node's {tree.branching} children {tree.branching * chance:.3g} would be split, "
            f"so that empty nodes spawn for ever; need more than {least:.6g}"
        )
    return chance


class NoisyLeaves(NamedTuple):
    """Leaves with noisy counts, and what they cost."""

    leaves: Leaves
    receipt: Receipt


def noisy_leaves(
    records: Records,
    stopped: list[LevelKeys],
    l1: float,
    epsilon: float,
    rng: np.random.Generator | None,
) -> NoisyLeaves:
    """Noisy counts of the records below each of the nodes `stopped`, (level, keys) each.

    Together they are the whole space, none above another.
    """
    levels = np.concatenate([np.full(keys.shape[1], level) for level, keys in stopped])
    keys = np.concatenate([keys for _, keys in stopped], axis=1)
    order = argsort_keys(keys)
    keys = keys[:, order]
    counts, receipt = noise.geometric(
        records.counts_between(keys), l1=l1, epsilon=epsilon, rng=rng
    )
    decay = float(noise.decay(l1, epsilon))
    leaves = Leaves(records.hierarchy, levels[order], keys, counts, decay)
    return NoisyLeaves(leaves, receipt)
