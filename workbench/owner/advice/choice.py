"""Private choice of a bound on the number of records per person, from the table itself, at a cost of ε."""

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
    """Return the number of records of each person in a table. The result is private.

    Parameters
    ----------
    data : path, several, or a frame
        Table in any form that `SparseTable.read` takes.
    domain : Domain
        All possible cells.
    user : str
        Column that names the user of each row.
    how
        `table` and `progress`, the same as for `SparseTable.read`.

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
    """Let the table choose a bound on the number of records per person, privately. This costs `epsilon`.

    A larger bound drops fewer records but adds noise to all cells. If the bound is raised by one record,
    the total noise grows by `noise_per_record`. At the best bound, this equals the number of people who
    have more records than the bound. The exponential mechanism chooses a bound near the best one, by
    `rank_scores`.

    Parameters
    ----------
    records : int[people]
        Number of records of each person, from `records_of_people`.
    bounds : sequence of int
        Bounds to choose from, stated without looking at the table.
    noise_per_record : float
        Number of cells divided by the ε of the release.
    epsilon : float
        Cost of the choice, in addition to the release.
    rng : numpy Generator, optional
        Seeded generator for a choice that can be replayed.

    Returns
    -------
    int
        Chosen bound.
    Receipt
        Cost of the choice.

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
    """Raise a ValueError unless all bounds are integers >= 1."""
    if not bounds or any(isinstance(b, bool) or not 1 <= b < 2**53 or b % 1 for b in bounds):
        raise ValueError(f"bounds = {bounds!r} are not allowed: need integers >= 1")
