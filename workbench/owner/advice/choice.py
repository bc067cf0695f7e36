"""Private choice of a bound on the number of records per person. The choice uses the private table and costs
an ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench import noise
from workbench.data import UserNumbers, counted_rows
from workbench.mechanisms.chosen import rank_scores
from workbench.privacy import Receipt
from workbench.spaces import Domain
from workbench.value import Int


def records_of_people(
    data: Any, domain: Domain, user: str, **how: Any
) -> Int[np.ndarray, " people"]:
    """Count the records of each person in a table. The result is private, so do not publish it.

    Parameters
    ----------
    data : path, several, or a frame
        The private table, in any form that `SparseTable.read` accepts.
    domain : Domain
        All possible cells.
    user : str
        Column that names the user of each row.
    how
        Further arguments, with the same meaning as in `SparseTable.read`: `table` (the name of a table in a
        database) and `progress`.

    Returns
    -------
    int64[people]
    """
    people = [np.zeros(0, np.int64)]
    for rows in counted_rows(
        data, domain, users=UserNumbers(user, None, domain.missing_user), **how
    ):
        assert rows.users is not None  # a column names them
        people.append(rows.users)
    return np.unique(np.concatenate(people), return_counts=True)[1]


def choose_bound(
    records: Int[np.ndarray, " people"],
    bounds: Sequence[int],
    noise_per_record: float,
    *,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> tuple[int, Receipt]:
    """Choose a bound on the number of records per person from the private data, with differential privacy.
    The choice costs `epsilon`.

    A larger bound drops fewer records, but it needs more noise in every cell. The total noise is the mean
    absolute value of the noise in a cell, added up over all cells. If the bound grows by 1, the total noise
    grows by `noise_per_record`. At the same time, each person who has more records than the old bound keeps one
    record more. So the number of dropped records falls by the number of these people. At the best bound, the
    growth of the noise and the decrease in dropped records are about equal. The exponential mechanism draws the
    bound at random. A bound for which the two numbers differ less is more likely to be drawn.

    Parameters
    ----------
    records : int[people]
        Number of records of each person, as returned by `records_of_people`.
    bounds : sequence of int
        Bounds to choose from. You must fix these bounds without looking at the table.
    noise_per_record : float
        Growth of the total noise if the bound grows by 1: the number of cells divided by the ε of the planned
        release.
    epsilon : float
        Cost ε of the choice, in addition to the cost of the release.
    rng : numpy Generator, optional
        Seeded generator, if you want a simulated choice that is the same each time. Leave this argument out
        for real data.

    Returns
    -------
    int
        Chosen bound.
    Receipt
        Receipt, which records the privacy cost of the choice.

    Raises
    ------
    ValueError
        If a bound is not an integer >= 1, or ε is not positive.
    """
    refuse_bounds(bounds)
    scores = rank_scores(records, bounds, noise_per_record)[None]
    chosen, receipt = noise.exponential_mechanism(
        scores, sensitivity=1, epsilon=epsilon, rng=rng
    )
    return bounds[int(chosen[0])], receipt


def refuse_bounds(bounds: Sequence[int]) -> None:
    """Raise a ValueError if one of the bounds (numbers of records per person) is not an integer >= 1."""
    if not bounds or any(isinstance(b, bool) or not 1 <= b < 2**53 or b % 1 for b in bounds):
        raise ValueError(f"bounds = {bounds!r} are not allowed: need integers >= 1")
