"""Advice about a task: what to release for it, and how far off it will be, before any budget is spent.

No data is read. What noise does to answers is computed exactly, from a release of a table without a
record: it does not depend on what a table holds. What depends on it is either computed from stated
beliefs, or simulated on made-up data, and every line says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from typing import Any

import numpy as np

from workbench import noise
from workbench.advice import made_up
from workbench.advice.noise_kinds import NoiseComparison, compare_noise
from workbench.advice.options import three_digits
from workbench.domain import Domain
from workbench.hierarchy import Hierarchy, Prefixes, Quadtree
from workbench.libraries import pd
from workbench.mechanisms import (
    LPA,
    SRA,
    DirectSynthesis,
    GeometricHistogram,
    HighPassFilter,
    ImprovedAdaptiveHistogram,
    LaplaceQueries,
    MaximumEntropySynthesis,
    PrivTree,
    UnattributedHistogram,
)
from workbench.mechanisms._contributions import item_edge_budgets
from workbench.mechanisms._full_table import BYTES_PER_CELL
from workbench.privacy import DP
from workbench.table import Bound, SparseTable
from workbench.transform import Dyadic, Haar
from workbench.workload import Marginals, RandomBoxes, linear_queries, workload_sensitivity
from workbench.workload.sensitivity import workload_l2_squared

_EXACT = "exact"
_MOST_CELLS = 2**22  # of a full table that is tried


@dataclass(frozen=True)
class TaskOption:
    """One way to do it: the mechanism, what of it is measured, the number, and how that is known."""

    name: str
    mechanism: Any
    what: str
    value: float
    how: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what} {three_digits(self.value)} ({self.how})"


@dataclass(frozen=True, repr=False)
class TaskAdvice:
    """Ways to do a task, the best first where they can be compared, and what is to be said of them."""

    task: str
    options: tuple[TaskOption, ...]
    notes: tuple[str, ...] = ()

    @property
    def mechanism(self) -> Any:
        """The one to take."""
        return self.options[0].mechanism

    def to_frame(self) -> pd.DataFrame:
        """One row an option, in the order of the advice.

        Returns
        -------
        pandas.DataFrame
            `option`, `what` is measured, its `value` in counts, `how` it is known, and the `mechanism`.
        """
        rows = [(o.name, o.what, o.value, o.how, repr(o.mechanism)) for o in self.options]
        return pd.DataFrame(rows, columns=["option", "what", "value", "how", "mechanism"])

    def display_table(self) -> pd.DataFrame:
        """The same in few digits, without the mechanisms' text."""
        frame = self.to_frame().drop(columns="mechanism")
        return frame.assign(value=[three_digits(o.value) for o in self.options])

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        return "\n".join([table, *self.notes, repr(self.mechanism)])


def advise_boxes(
    domain: Domain, epsilon: float, bound: Bound, shape: Sequence[int] | None = None
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
    _refuse_large(domain, "boxes")
    budget = DP(epsilon)
    tried = [("every cell", GeometricHistogram(budget))]
    if len(domain.shape) == 2:
        two = GeometricHistogram(budget, transform=Dyadic(dims=2))
        tried.append(("dyadic boxes", two))
    if len(domain.shape) == 1:
        tried.append(("wavelet", GeometricHistogram(budget, transform=Haar())))
    what = f"root mean square error of a box of {' × '.join(map(str, shape))} cells"
    options = [
        TaskOption(name, mechanism, what, _rmse(mechanism, domain, bound, boxes), _EXACT)
        for name, mechanism in tried
    ]
    note = "All of them release every cell, so that errors are noise alone, whatever the table holds."
    return _ranked("boxes", options, [note] if len(options) > 1 else [])


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
    _refuse_outside("order", order, len(domain.shape))
    budget = DP(epsilon)
    workload = Marginals(order)
    cells = linear_queries(workload, domain)
    asked = LaplaceQueries(budget, workload)
    empty = SparseTable.from_keys(domain, [], [], bound)
    bought = asked(empty, np.random.default_rng(0)).estimate
    what = f"root mean square error of a cell of a marginal on {order} attribute{'s' * (order > 1)}"
    rmse = sqrt(float(bought.variances.mean()))
    options = [TaskOption("marginals asked directly", asked, what, rmse, _EXACT)]
    if domain.size * BYTES_PER_CELL <= GeometricHistogram(budget).memory:
        full = GeometricHistogram(budget)
        variance = noise.variance(bound.l1, epsilon, "geometric") * cells.cells(domain).mean()
        options.append(
            TaskOption("every cell, added up", full, what, sqrt(float(variance)), _EXACT)
        )
    if not delta:
        return _ranked("marginals", options, [])
    compared = [_noise_of(o.mechanism, domain, DP(epsilon, delta), bound) for o in options]
    for option, noises in list(zip(options, compared, strict=True)):
        if noises.takes_gaussian:
            mechanism = noises.applied(option.mechanism)
            smaller = option.value * noises.gaussian / noises.geometric
            name = f"{option.name}, with Gaussian noise"
            options.append(TaskOption(name, mechanism, what, smaller, _EXACT))
            compared.append(noises)
    best = min(range(len(options)), key=lambda i: options[i].value)
    return _ranked("marginals", options, [str(compared[best])])


def _noise_of(mechanism: Any, domain: Domain, budget: DP, bound: Bound) -> NoiseComparison:
    """Both kinds of noise on linear queries, or on all cells."""
    if not isinstance(mechanism, LaplaceQueries):
        return compare_noise(budget, bound.l1, bound.l2_squared)
    l1 = Fraction(bound.l1)
    moved = Fraction(workload_sensitivity(mechanism.workload, domain)) * l1
    return compare_noise(budget, moved, workload_l2_squared(mechanism.workload, domain) * l1**2)


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
    _refuse_outside("order", order, len(domain.shape))
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
        options.append(TaskOption(name, mechanism, what, rmse, _EXACT))
        if rows is None:
            deviation = sqrt(float(noise.variance(bound.l1, total_epsilon, "geometric")))
            what = "standard deviation of the number of records"
            options.append(TaskOption(name, mechanism, what, deviation, _EXACT))
    if rows is not None:
        what = "standard deviation that drawing adds to a count of rows"
        drawn = sqrt(rows / 4)
        options.append(TaskOption("all", options[0].mechanism, what, drawn, "at most, √rows/2"))
    notes = [
        "What no marginal says is not learnt: attributes that are in no marginal together come out as "
        "independent as the others allow. How far off such answers are cannot be known beforehand."
    ]
    return TaskAdvice("rows", tuple(options), tuple(notes))


def advise_top(
    domain: Domain, epsilon: float, bound: Bound, size: int | None = None
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
            _EXACT,
        ),
        TaskOption(
            name,
            mechanism,
            "count that no empty item reaches, in 19 of 20",
            highest_empty(decay, domain.size, 0.05),
            _EXACT,
        ),
    ]
    if isinstance(mechanism, HighPassFilter):
        cut = mechanism.threshold(domain, bound.l1)
        options.append(
            TaskOption(name, mechanism, "cut, below which no item is seen", cut, _EXACT)
        )
    return TaskAdvice("top", tuple(options))


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
    domain: Domain, epsilon: float, bound: Bound, records: int | None = None
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

    Returns
    -------
    TaskAdvice
    """
    _refuse_large(domain, "degrees")
    mechanism = UnattributedHistogram(DP(epsilon))
    at_most = sqrt(float(noise.variance(bound.l1, epsilon, mechanism.noise)))
    name = "sorted counts"
    what = "root mean square error of a count"
    how = "at most: sorting and isotonic regression lose none of it"
    options = [TaskOption(name, mechanism, what, at_most, how)]
    if records is not None:
        _refuse_outside("records", records, 10**12)
        table = made_up.zipf_table(domain, records, bound)
        errors = []
        for seed in range(5):
            released = mechanism(table, np.random.default_rng(seed)).estimate.values
            errors.append(float(((released - np.sort(table.dense().ravel())) ** 2).mean()))
        how = f"simulated on made-up counts: {records:,} by Zipf's law of exponent 1"
        options.insert(0, TaskOption(name, mechanism, what, sqrt(np.mean(errors)), how))
    return TaskAdvice("degrees", tuple(options))


def advise_per_user(
    domain: Domain, epsilon: float, shape: Sequence[int] | None = None
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
    boxes = advise_boxes(domain, epsilon, Bound(), shape)
    note = (
        "The table has a row a user: count each user's rows first, as trips.groupby('user').size() does. "
        "A user then moves one count by one, so that --bound 1,1 holds, however many rows there are."
    )
    return TaskAdvice("per-user", boxes.options, (*boxes.notes, note))


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
    _refuse_outside("records", records, 10**12)
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
    return _ranked(task, options, notes)


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


def advise_users(
    domain: Domain,
    epsilon: float,
    users: int,
    per_user: int,
    popularity: float = 1.0,
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

    Returns
    -------
    TaskAdvice

    Raises
    ------
    ValueError
        Beliefs out of their range.
    """
    budget = DP(epsilon)
    beliefs = dict(n=users, bound=per_user, popularity=popularity)
    suggested = SRA(budget, "suggested", **beliefs).sampling_factor(domain.shape[0])
    candidates = sorted({1, min(10, per_user), suggested, per_user})
    what = "root mean square error of an item's count"
    how = "exact, if the beliefs hold"
    options = []
    for count in candidates:
        mechanism = SRA(budget, count) if count < per_user else LPA(budget, per_user)
        name = (
            f"{count:,} records of each user, at random" if count < per_user else "all records"
        )
        error = sampled_item_error(mechanism, domain.shape[0], count, **beliefs)
        options.append(TaskOption(name, mechanism, what, error, how))
    notes = [
        "Beliefs are public, and must not be read off the table. With --choose the data choose among "
        "numbers that you state."
    ]
    return _ranked("users", options, notes)


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


def _rmse(mechanism: Any, domain: Domain, bound: Bound, workload: Any) -> float:
    """Of the answers of a release whose errors are noise alone."""
    empty = SparseTable.from_keys(domain, [], [], bound)
    _, errors = mechanism(empty, np.random.default_rng(0)).answer(workload, error=True)
    return sqrt(float((errors**2).mean()))


def _refuse_large(domain: Domain, task: str) -> None:
    if domain.size > _MOST_CELLS:
        raise ValueError(
            f"a domain of {domain.size:,} cells is too large for {task}, which need every cell: need at "
            f"most {_MOST_CELLS:,}, with fewer attributes or coarser labels"
        )


def _refuse_outside(name: str, number: int, most: int) -> None:
    if not (isinstance(number, int) and 1 <= number <= most):
        raise ValueError(
            f"{name} = {number!r} is not allowed: need a whole number from 1 to {most}"
        )


def _ranked(task: str, options: list[TaskOption], notes: Sequence[str]) -> TaskAdvice:
    return TaskAdvice(task, tuple(sorted(options, key=lambda o: o.value)), tuple(notes))
