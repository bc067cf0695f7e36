"""Advice for tasks: answers, marginals, microdata, counts of users, largest counts, regions.

No data is read. What noise does to answers is computed exactly, from a release of a table without a
record: it does not depend on what a table holds. What depends on it is either computed from stated
beliefs, or simulated on made-up data, and every line says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, sqrt
from typing import Any

import numpy as np

from workbench import noise
from workbench.data import Bound, Records, SparseTable
from workbench.mechanisms import (
    LPA,
    SRA,
    DirectSynthesis,
    GaussianQueries,
    GeometricHistogram,
    HierarchicalHistogram,
    HighPassFilter,
    ImprovedAdaptiveHistogram,
    LaplaceQueries,
    MaximumEntropySynthesis,
    PrivTree,
    UnattributedHistogram,
)
from workbench.mechanisms.contributions import item_edge_budgets
from workbench.mechanisms.histograms import BYTES_PER_CELL
from workbench.owner.advice.advice import (
    EXACT,
    TaskAdvice,
    TaskOption,
    compare_noise_of,
    ranked,
    refuse_large,
    refuse_outside,
)
from workbench.privacy import DP
from workbench.queries import (
    Boxes,
    Dyadic,
    Haar,
    Marginals,
    Nodes,
    RandomBoxes,
    Workload,
    linear_queries,
)
from workbench.spaces import Domain, Hierarchy, Prefixes, Quadtree
from workbench.value import counted

# Made up

MOST_RECORDS = 100_000
_WORDS = 2000
_CENTRES = 20


def zipf_table(domain: Domain, total: int, bound: Bound) -> SparseTable:
    """About `total` counts in all cells, the i-th of them in proportion to 1/i."""
    shares = 1 / np.arange(1.0, domain.size + 1)
    counts = np.rint(total * shares / shares.sum()).astype(np.int64)
    keys = np.arange(domain.size)
    return SparseTable.from_keys(domain, keys, counts, bound, truth_public=True)


def made_up_records(tree: Quadtree | Prefixes, count: int, bound: Bound) -> Records:
    """Points around a few centres, a third of them anywhere; or words by Zipf's law."""
    rng = np.random.default_rng(0)
    if isinstance(tree, Quadtree):
        low, high = (np.array(corner, float) for corner in tree.box)
        centres = rng.random((_CENTRES, tree.dims))
        unit = centres[rng.integers(0, _CENTRES, count)]
        unit = unit + rng.normal(0, 0.02, unit.shape)
        anywhere = rng.random(count) < 1 / 3
        unit[anywhere] = rng.random((int(anywhere.sum()), tree.dims))
        values = low + (high - low) * unit.clip(0, 1)
    else:
        words = _words(tree)
        values = [words[i] for i in _zipf_places(count, rng)]
    return Records.from_values(tree, values, bound, truth_public=True)


def _words(tree: Prefixes) -> list[str]:
    """Different words of three symbols and more, where there are so many."""
    rng = np.random.default_rng(1)
    symbols = np.array(list(tree.alphabet))
    lengths = np.minimum(rng.integers(3, 9, _WORDS), tree.depth)
    return ["".join(symbols[rng.integers(0, len(symbols), n)]) for n in lengths]


def _zipf_places(count: int, rng: np.random.Generator) -> np.ndarray:
    shares = 1 / np.arange(1.0, _WORDS + 1)
    return rng.choice(_WORDS, count, p=shares / shares.sum())


def regions(tree: Quadtree | Prefixes) -> Workload | Nodes:
    """Boxes of a quarter of each side; or the beginnings of the most frequent words."""
    if isinstance(tree, Quadtree):
        side = max(1, tree.shape[0] // 4)
        space: Any = tree  # its sides are asked for, as a domain's
        boxes: Boxes = RandomBoxes((side,) * tree.dims, 50).on(space)
        return boxes
    beginnings = {word[:n] for word in _words(tree)[:50] for n in (1, 2)}
    return Nodes.of(tree, sorted(beginnings))


def region_words(tree: Hierarchy) -> str:
    """What `regions` asks."""
    if isinstance(tree, Quadtree):
        return "a box of a quarter of each side"
    return "strings that begin with one or two given symbols"


def record_words(tree: Hierarchy) -> str:
    """What `records` makes up."""
    if isinstance(tree, Quadtree):
        return f"points, a third anywhere, the others around {_CENTRES} centres"
    return f"strings out of {_WORDS:,}, by Zipf's law"


# Answers


def advise_boxes(
    domain: Domain,
    epsilon: float,
    bound: Bound,
    shape: Sequence[int] | None = None,
    *,
    delta: float = 0.0,
) -> TaskAdvice:
    """Boxes over all attributes, of `shape` codes, anywhere: the root mean square error of an answer.

    Parameters
    ----------
    domain : Domain
        Where the counts live.
    epsilon : float
        The budget.
    bound : Bound
        How far one unit moves the table.
    shape : sequence of int, optional
        Codes of each attribute that a box covers; a quarter of them, if not given.
    delta : float
        With δ > 0 Gaussian noise is compared with geometric noise, each at what (ε, δ) pays for.

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        A shape that does not fit the domain, or a full table that does not fit in memory.
    """
    shape = tuple(shape or (-(-n // 4) for n in domain.shape))
    boxes = RandomBoxes(shape).on(domain)
    refuse_large(domain, "boxes")
    budget = DP(epsilon)
    tried = [("every cell", GeometricHistogram(budget))]
    if len(domain.shape) == 2:
        two = GeometricHistogram(budget, transform=Dyadic(dims=2))
        tried.append(("dyadic boxes", two))
    if len(domain.shape) == 1:
        tried.append(("wavelet", GeometricHistogram(budget, transform=Haar())))
    if len(domain.shape) == 1 and delta:
        tried.append(("tree", HierarchicalHistogram(budget, "optimal", nonnegative=False)))
    what = f"root mean square error of a box of {' × '.join(map(str, shape))} cells"
    options = [
        TaskOption(name, mechanism, what, _rmse(mechanism, domain, bound, boxes), EXACT)
        for name, mechanism in tried
    ]
    note = "All of them release every cell, so that errors are noise alone, whatever the table holds."

    def error(mechanism: Any) -> float:
        return _rmse(mechanism, domain, bound, boxes)

    options, said = _both_kinds(options, domain, bound, DP(epsilon, delta), error)
    return ranked("boxes", options, [note] * (len(options) > 1) + said)


def advise_per_user(
    domain: Domain, epsilon: float, shape: Sequence[int] | None = None, *, delta: float = 0.0
) -> TaskAdvice:
    """How many users have how many records: the root mean square error of a number of users.

    The table has a row a user, which says how many records that user has, so that a user moves one
    count by one.

    Parameters
    ----------
    domain : Domain
        One attribute: numbers of records, or bins of them.
    epsilon : float
        The budget.
    shape : sequence of int, optional
        How many codes a query covers, one number; a quarter of them, if not given.
    delta : float
        As for `advise_boxes`.

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        A domain of more attributes, or a shape that does not fit it.
    """
    if len(domain.shape) != 1:
        raise ValueError(
            f"the domain has attributes {domain.attributes}: need one, how many records a user has"
        )
    boxes = advise_boxes(domain, epsilon, Bound(), shape, delta=delta)
    note = (
        "The table has a row a user: count each user's rows first, as trips.groupby('user').size() does. "
        "A user then moves one count by one, so that --bound 1,1 holds, however many rows there are."
    )
    return TaskAdvice("per-user", boxes.options, (*boxes.notes, note))


def advise_marginals(
    domain: Domain, epsilon: float, bound: Bound, order: int = 2, *, delta: float = 0.0
) -> TaskAdvice:
    """All marginals on `order` attributes: the root mean square error of a cell of one.

    Parameters
    ----------
    domain : Domain
        Where the counts live.
    epsilon : float
        The budget.
    bound : Bound
        How far one unit moves the table.
    order : int
        How many attributes a marginal has.
    delta : float
        With δ > 0 Gaussian noise is compared with what is best, each at what (ε, δ) pays for.

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        If the domain has no such marginals, or too many cells of them.
    """
    refuse_outside("order", order, len(domain.shape))
    budget = DP(epsilon)
    workload = Marginals(order)
    cells = linear_queries(workload, domain)
    asked = LaplaceQueries(budget, workload)
    empty = SparseTable.from_keys(domain, [], [], bound)
    bought = asked(empty, np.random.default_rng(0)).estimate
    what = f"root mean square error of a cell of a marginal on {order} attribute{'s' * (order > 1)}"
    rmse = sqrt(float(bought.variances.mean()))
    options = [TaskOption("marginals asked directly", asked, what, rmse, EXACT)]
    if domain.size * BYTES_PER_CELL <= GeometricHistogram(budget).memory:
        full = GeometricHistogram(budget)
        variance = noise.variance(bound.l1, epsilon, "geometric") * cells.cells(domain).mean()
        options.append(
            TaskOption("every cell, added up", full, what, sqrt(float(variance)), EXACT)
        )

    def error(mechanism: Any) -> float:
        drawn = mechanism(empty, np.random.default_rng(0)).estimate
        if isinstance(mechanism, GaussianQueries):
            return sqrt(float(drawn.variances.mean()))
        return sqrt(drawn.law.variance * float(cells.cells(domain).mean()))

    options, said = _both_kinds(options, domain, bound, DP(epsilon, delta), error)
    return ranked("marginals", options, said)


def _both_kinds(
    options: list[TaskOption],
    domain: Domain,
    bound: Bound,
    budget: DP,
    error: Callable[[Any], float],
) -> tuple[list[TaskOption], list[str]]:
    """The same with Gaussian noise too, where that is the smaller; which it is of the best, in a sentence.

    `error` measures one that draws Gaussian noise. Without a δ there is none.
    """
    if not budget.delta:
        return options, []
    compared = [compare_noise_of(o.mechanism, domain, bound, budget) for o in options]
    both = list(options)
    for option, noises in list(zip(options, compared, strict=True)):
        if noises.takes_gaussian:
            mechanism = noises.applied(option.mechanism)
            name = f"{option.name}, with Gaussian noise"
            both.append(replace(option, name=name, mechanism=mechanism, value=error(mechanism)))
            compared.append(noises)
    best = min(range(len(both)), key=lambda i: both[i].value)
    return both, [str(compared[best])]


def advise_rows(
    domain: Domain, epsilon: float, bound: Bound, rows: int | None = None, order: int = 2
) -> TaskAdvice:
    """Microdata by maximum entropy: the noise of the marginals that are bought, and what drawing adds.

    Parameters
    ----------
    domain, epsilon, bound, order
        As for `advise_marginals`; every order up to `order` is looked at.
    rows : int, optional
        How many records, if that is public; else their number is bought too.

    Returns
    -------
    TaskAdvice
        Not ranked: marginals of fewer attributes have less noise and say less. The first is of `order`.
    """
    refuse_outside("order", order, len(domain.shape))
    empty = SparseTable.from_keys(domain, [], [], bound)
    options = []
    for k in range(order, 0, -1):
        mechanism = MaximumEntropySynthesis(DP(epsilon), Marginals(k), rows=rows)
        total_epsilon, marginals_epsilon = mechanism.budgets()
        asked = LaplaceQueries(DP(marginals_epsilon), Marginals(k))
        bought = asked(empty, np.random.default_rng(0)).estimate
        rmse = sqrt(float(bought.variances.max()))
        what = "standard deviation of each count that is bought"
        name = f"marginals on {k} attribute{'s' * (k > 1)}"
        options.append(TaskOption(name, mechanism, what, rmse, EXACT))
        if rows is None:
            deviation = sqrt(float(noise.variance(bound.l1, total_epsilon, "geometric")))
            what = "standard deviation of the number of records"
            options.append(TaskOption(name, mechanism, what, deviation, EXACT))
    if rows is not None:
        what = "standard deviation that drawing adds to a count of rows"
        drawn = sqrt(rows / 4)
        options.append(TaskOption("all", options[0].mechanism, what, drawn, "at most, √rows/2"))
    notes = [
        "What no marginal says is not learnt: attributes that are in no marginal together come out as "
        "independent as the others allow. How far off such answers are cannot be known beforehand."
    ]
    return TaskAdvice("rows", tuple(options), tuple(notes))


def _rmse(mechanism: Any, domain: Domain, bound: Bound, workload: Any) -> float:
    """Of the answers of a release whose errors are noise alone."""
    empty = SparseTable.from_keys(domain, [], [], bound)
    _, errors = mechanism(empty, np.random.default_rng(0)).answer(workload, error=True)
    return sqrt(float((errors**2).mean()))


# Counts


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
        table = zipf_table(domain, records, bound)
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
    scale = max(1.0, records / MOST_RECORDS)
    data = made_up_records(tree, round(records / scale), bound)
    queries = regions(tree)
    exact = data.answer(queries)
    options = []
    for name, mechanism in _synthesisers(tree, DP(epsilon), bound):
        rehearsed = _synthesisers(tree, DP(epsilon * scale), bound)
        trial = dict(rehearsed)[name]
        errors = [
            np.abs(trial(data, np.random.default_rng(s)).answer(queries) - exact).mean()
            for s in range(3)
        ]
        what = f"mean absolute error of {region_words(tree)}"
        how = f"simulated on made-up {record_words(tree)}"
        options.append(TaskOption(name, mechanism, what, float(np.mean(errors)) * scale, how))
    notes = [
        f"Made up are {records:,} {record_words(tree)}. Yours differ: rehearse on data like yours."
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


# Tasks

__all__ = [
    "TaskAdvice",
    "TaskOption",
    "advise_boxes",
    "advise_degrees",
    "advise_marginals",
    "advise_per_user",
    "advise_records",
    "advise_rows",
    "advise_top",
    "advise_users",
    "highest_empty",
    "sampled_item_error",
    "smallest_gap",
]
