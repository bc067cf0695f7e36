"""What to release for answers about a table: boxes, marginals, microdata, numbers of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from workbench import noise
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
from workbench.mechanisms import (
    GaussianQueries,
    GeometricHistogram,
    HierarchicalHistogram,
    LaplaceQueries,
    MaximumEntropySynthesis,
)
from workbench.mechanisms._full_table import BYTES_PER_CELL
from workbench.privacy import DP
from workbench.table import Bound, SparseTable
from workbench.transform import Dyadic, Haar
from workbench.workload import Marginals, RandomBoxes, linear_queries


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
