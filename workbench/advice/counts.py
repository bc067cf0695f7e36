"""What to release for counts themselves: the largest, sorted ones, those of items, and of regions."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np

from workbench import noise
from workbench.advice import made_up
from workbench.advice.moved import compare_noise_of
from workbench.advice.task import (
    EXACT,
    TaskAdvice,
    TaskOption,
    ranked,
    refuse_large,
    refuse_outside,
)
from workbench.domain import Domain
from workbench.hierarchy import Hierarchy, Prefixes, Quadtree
from workbench.mechanisms import (
    LPA,
    SRA,
    DirectSynthesis,
    GeometricHistogram,
    HighPassFilter,
    ImprovedAdaptiveHistogram,
    PrivTree,
    UnattributedHistogram,
)
from workbench.mechanisms._contributions import item_edge_budgets
from workbench.mechanisms._full_table import BYTES_PER_CELL
from workbench.privacy import DP
from workbench.table import Bound
from workbench.wording import counted


def advise_top(
    domain: Domain,
    epsilon: float,
    bound: Bound,
    size: int | None = None,
    *,
    delta: float = 0.0,
) -> TaskAdvice:
    """The largest counts: how far apart two must lie to be put in the right order.

    Parameters
    ----------
    domain : Domain
        Of items.
    epsilon : float
        The budget.
    bound : Bound
        How far one unit moves the table.
    size : int, optional
        About how many items to release, where all of them are too many.
    delta : float
        With δ > 0 it is said which kind of noise is the smaller; the other numbers are of geometric.

    Returns
    -------
    TaskAdvice
    """
    budget = DP(epsilon)
    decay = float(noise.decay(bound.l1, epsilon))
    gap = smallest_gap(decay, 0.05)
    if size is None and domain.size * BYTES_PER_CELL <= GeometricHistogram(budget).memory:
        mechanism = GeometricHistogram(budget)
        name = "every item"
    else:
        mechanism = HighPassFilter(budget, size=size or min(domain.size, 10_000))
        name = "items above a cut"
    options = [
        TaskOption(
            name,
            mechanism,
            "gap at which two items are ordered rightly in 19 of 20",
            gap,
            EXACT,
        ),
        TaskOption(
            name,
            mechanism,
            "count that no empty item reaches, in 19 of 20",
            highest_empty(decay, domain.size, 0.05),
            EXACT,
        ),
    ]
    if isinstance(mechanism, HighPassFilter):
        cut = mechanism.threshold(domain, bound.l1)
        options.append(
            TaskOption(name, mechanism, "cut, below which no item is seen", cut, EXACT)
        )
    if not delta:
        return TaskAdvice("top", tuple(options))
    compared = compare_noise_of(mechanism, domain, bound, DP(epsilon, delta))
    if compared.takes_gaussian:
        what = "standard deviation of the noise on a count"
        gaussian = compared.applied(mechanism)
        name = f"{name}, with Gaussian noise"
        options.insert(0, TaskOption(name, gaussian, what, compared.gaussian, EXACT))
    return TaskAdvice("top", tuple(options), (str(compared),))


def smallest_gap(decay: float, chance: float) -> int:
    """The least difference of two counts at which their noisy order is wrong or tied with at most `chance`.

    The difference of two geometric noises is n with probability ((1−α)/(1+α))²·α^n·(n + (1+α²)/(1−α²)),
    n >= 0.
    """
    alpha = exp(-decay)
    n = np.arange(int(60 / decay) + 2)
    law = ((1 - alpha) / (1 + alpha)) ** 2 * alpha**n * (n + (1 + alpha**2) / (1 - alpha**2))
    at_least = np.cumsum(law[::-1])[::-1]
    return int(np.flatnonzero(at_least <= chance)[0])


def highest_empty(decay: float, items: int, chance: float) -> int:
    """The least count that none of so many empty items reaches, but with `chance`."""
    alpha = exp(-decay)
    # Pr[X >= v] = α^v/(1+α), v >= 1
    one = -np.expm1(np.log1p(-chance) / items)
    return max(1, int(np.ceil(np.log(one * (1 + alpha)) / -decay)))


def advise_degrees(
    domain: Domain,
    epsilon: float,
    bound: Bound,
    records: int | None = None,
    *,
    delta: float = 0.0,
) -> TaskAdvice:
    """Sorted counts without their names: the root mean square error of a count.

    Parameters
    ----------
    domain : Domain
        Of those who have a count each, such as nodes.
    epsilon : float
        The budget.
    bound : Bound
        How far one unit moves the counts: an edge moves two, Bound(2).
    records : int, optional
        Believed: the sum of all counts, for a rehearsal on made-up ones.
    delta : float
        With δ > 0 the kind of noise that is the smaller is taken, at what (ε, δ) pays for.

    Returns
    -------
    TaskAdvice
    """
    refuse_large(domain, "degrees")
    mechanism = UnattributedHistogram(DP(epsilon))
    at_most = sqrt(float(noise.variance(bound.l1, epsilon, mechanism.noise)))
    said: tuple[str, ...] = ()
    if delta:
        compared = compare_noise_of(mechanism, domain, bound, DP(epsilon, delta))
        said = (str(compared),)
        mechanism = compared.applied(mechanism)
        at_most = min(at_most, compared.gaussian)
    name = "sorted counts"
    what = "root mean square error of a count"
    how = "at most: sorting and isotonic regression lose none of it"
    options = [TaskOption(name, mechanism, what, at_most, how)]
    if records is not None:
        refuse_outside("records", records, 10**12)
        table = made_up.zipf_table(domain, records, bound)
        errors = []
        for seed in range(5):
            released = mechanism(table, np.random.default_rng(seed)).estimate.values
            errors.append(float(((released - np.sort(table.dense().ravel())) ** 2).mean()))
        how = f"simulated on made-up counts: {records:,} by Zipf's law of exponent 1"
        options.insert(0, TaskOption(name, mechanism, what, sqrt(np.mean(errors)), how))
    return TaskAdvice("degrees", tuple(options), said)


def advise_users(
    domain: Domain,
    epsilon: float,
    users: int,
    per_user: int,
    popularity: float = 1.0,
    *,
    delta: float = 0.0,
) -> TaskAdvice:
    """Counts of items where users have many records: the root mean square error of an item's count.

    The model is that of `SRA`'s suggestion: every user has `per_user` records, each of item i with a
    probability in proportion to i^−popularity, independently.

    Parameters
    ----------
    domain : Domain
        Items and contexts.
    epsilon : float
        The budget.
    users : int
        Believed: how many.
    per_user : int
        Believed: how many records each has.
    popularity : float
        Believed: Zipf's exponent of the items.
    delta : float
        With δ > 0 it is said which kind of noise is the smaller.

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        Beliefs out of their range.
    """
    budget = DP(epsilon)
    beliefs: dict[str, Any] = dict(n=users, bound=per_user, popularity=popularity)
    suggested = SRA(budget, "suggested", **beliefs).sampling_factor(domain.shape[0])
    candidates = sorted({1, min(10, per_user), suggested, per_user})
    what = "root mean square error of an item's count"
    how = "exact, if the beliefs hold"
    options = []
    for count in candidates:
        mechanism = SRA(budget, count) if count < per_user else LPA(budget, per_user)
        name = (
            f"{counted(count, 'record')} of each user, at random"
            if count < per_user
            else "all records"
        )
        error = sampled_item_error(mechanism, domain.shape[0], count, **beliefs)
        options.append(TaskOption(name, mechanism, what, error, how))
    notes = [
        "Beliefs are public, and must not be read off the table. With --choose the data choose among "
        "numbers that you state."
    ]
    if delta:
        records = Bound(per_user, per_user, per_user)
        sampled = SRA(budget, suggested)
        notes.append(str(compare_noise_of(sampled, domain, records, DP(epsilon, delta))))
    return ranked("users", options, notes)


def sampled_item_error(
    mechanism: Any, items: int, count: int, *, n: int, bound: int, popularity: float
) -> float:
    """√ of the mean over items of E(c̃ᵢ − cᵢ)², c̃ᵢ from `count` of each user's `bound` records.

    Of the n(M−l) records that are dropped Binomial(·, pᵢ) are item i's, with mean n(M−l)pᵢ and variance
    n(M−l)pᵢ(1−pᵢ); the noise on a count has the variance of geometric noise.
    """
    item_epsilon, _ = item_edge_budgets(mechanism.budget.epsilon, mechanism.split)
    p = np.arange(1.0, items + 1) ** -float(popularity)
    p /= p.sum()
    dropped = n * (bound - count)
    squares = dropped * p * (1 - p) + (dropped * p) ** 2
    return sqrt(float(squares.mean()) + float(noise.variance(count, item_epsilon, "geometric")))


def advise_records(
    tree: Hierarchy, epsilon: float, bound: Bound, records: int = 10_000
) -> TaskAdvice:
    """Points or strings: the mean absolute error of counts of regions, on made-up ones.

    Parameters
    ----------
    tree : Hierarchy
        A `Quadtree` or `Prefixes`.
    epsilon : float
        The budget.
    bound : Bound
        How far one unit moves the records.
    records : int
        Believed: how many there are; at most 100,000 are made up, with ε in proportion.

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        Another hierarchy, or a number out of range.
    """
    if not isinstance(tree, Quadtree | Prefixes):
        raise ValueError(
            f"nothing can be said of {type(tree).__name__}: need points or strings"
        )
    refuse_outside("records", records, 10**12)
    scale = max(1.0, records / made_up.MOST_RECORDS)
    data = made_up.records(tree, round(records / scale), bound)
    queries = made_up.regions(tree)
    exact = data.answer(queries)
    options = []
    for name, mechanism in _synthesisers(tree, DP(epsilon), bound):
        rehearsed = _synthesisers(tree, DP(epsilon * scale), bound)
        trial = dict(rehearsed)[name]
        errors = [
            np.abs(trial(data, np.random.default_rng(s)).answer(queries) - exact).mean()
            for s in range(3)
        ]
        what = f"mean absolute error of {made_up.region_words(tree)}"
        how = f"simulated on made-up {made_up.record_words(tree)}"
        options.append(TaskOption(name, mechanism, what, float(np.mean(errors)) * scale, how))
    notes = [
        f"Made up are {records:,} {made_up.record_words(tree)}. Yours differ: rehearse on data like yours."
    ]
    task = "points" if isinstance(tree, Quadtree) else "strings"
    return ranked(task, options, notes)


def _synthesisers(tree: Hierarchy, budget: DP, bound: Bound) -> list[tuple[str, Any]]:
    """What makes synthetic records, at settings that follow from ε and the space alone."""
    depth = min(tree.digits.depth, 8)
    noise_scale = 4 * bound.l1 / budget.epsilon  # of a comparison, with half of ε for structure
    return [
        ("PrivTree", PrivTree(budget)),
        ("direct synthesis", DirectSynthesis(budget, depth=depth)),
        (
            "improved adaptive histogram",
            ImprovedAdaptiveHistogram(budget, threshold=max(1.0, round(8 * noise_scale))),
        ),
    ]
