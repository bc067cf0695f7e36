"""Advice on the bound, which is the largest number of records that a release counts per person. The advice
comes from simulations without private data. Another function chooses a bound from the private data, and the
choice costs an ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, isfinite, prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pd
from workbench.data import UserNumbers, counted_rows
from workbench.estimates.release import Release
from workbench.mechanisms import GeometricHistogram
from workbench.mechanisms.chosen import rank_scores
from workbench.noise import exponential_mechanism
from workbench.noise.law import geometric_variance
from workbench.owner.advice.beliefs import labels_of_people, lognormal
from workbench.privacy import DP, Receipt
from workbench.spaces import Domain
from workbench.value import Float, Int, format_number

# records of a person
_GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000)
_NEAR = 1.2  # of the least error: bounds up to here are as good
_PEOPLE = 20_000  # that are simulated
_RECORDS = 1_000_000
_CELLS = 2**22  # of a marginal


class BoundError(NamedTuple):
    """Effects of one bound on the number of records per person. `lost` is the share of records that are
    dropped. `truncation` is the error of a count from dropped records, and `noise` is the error from noise.
    """

    bound: int
    lost: float
    truncation: float
    noise: float

    @property
    def error(self) -> float:
        """Root mean squared error of a count, in records. It combines the errors `truncation` and `noise`."""
        return sqrt(self.truncation**2 + self.noise**2)


@dataclass(frozen=True, repr=False)
class BoundAdvice:
    """Result of `advise_bounds`: the errors of releases with different bounds (limits on the number of records
    per person).

    Parameters
    ----------
    errors : sequence of BoundError
        Errors and dropped records for each bound, in ascending order of the bounds.
    mechanism : Mechanism
        Example of a mechanism that you can use: a `GeometricHistogram` with the ε that you passed. Before you
        call the mechanism, read your table with the recommended bound.
    notes : sequence of str
        Sentences with the recommendation and its assumptions.
    """

    errors: tuple[BoundError, ...]
    mechanism: Any
    notes: tuple[str, ...]

    @property
    def bound(self) -> int:
        """Recommended number of records per person: the largest bound whose error is at most 20 % above the
        smallest error of all bounds.
        """
        return recommended(self.errors)

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        return "\n".join([table, *self.notes])

    def display_table(self) -> pd.DataFrame:
        """Return a table with one row per bound. A row shows the share of records that the bound drops, and the
        errors of a count, in records.
        """
        rows = [
            (
                f"{each.bound}{' *' if each.bound == self.bound else ''}",
                f"{100 * each.lost:.1f} %",
                format_number(each.truncation),
                format_number(each.noise),
                format_number(each.error),
            )
            for each in self.errors
        ]
        names = ["records of a person", "left out", "truncation", "noise", "error"]
        return pd.DataFrame(rows, columns=names)


def recommended(errors: Sequence[BoundError]) -> int:
    """Return the largest bound (number of records per person) whose error is at most 20 % above the smallest
    error of all bounds.

    The function prefers a larger bound if two total errors are similar. With a larger bound, less of the error
    comes from dropped records and more from noise. A release states only the error from noise. So with the
    larger bound, the release states a larger part of the total error.
    """
    least = min(each.error for each in errors)
    return max(each.bound for each in errors if each.error <= _NEAR * least)


def advise_bounds(
    domain: Domain,
    epsilon: float,
    users: int,
    per_user: float | None = None,
    per_user_spread: float | None = None,
    per_user_most: int | None = None,
    *,
    bounds: Sequence[int] | None = None,
    order: int = 2,
    popularity: float = 1.0,
    earlier: Release | None = None,
) -> BoundAdvice:
    """Recommend how many records a release should count per person. The function uses no private data.

    The function simulates people whose numbers of records have a lognormal distribution. The labels of the
    records follow Zipf's distribution, so some cells have many more records than others. Most records of a
    person have the same label. A bound limits the number of records per person. For example, with bound 3, the
    function keeps at most 3 random records of each person. For each bound, the function computes the error of a
    release, which comes from the dropped records and from the noise.

    Parameters
    ----------
    domain : Domain
        All possible cells.
    epsilon : float
        Privacy loss ε of the planned release.
    users : int
        Approximate number of people, from public knowledge.
    per_user, per_user_spread : float
        Approximate mean and standard deviation of the number of records per person. By default, the standard
        deviation equals the mean.
    per_user_most : int, optional
        Largest possible number of records of a person, if this number is known. For example, pass 16 if each
        person can have at most one record in each of 16 periods.
    bounds : sequence of int
        Bounds to compare. Default: bounds from 1 to the largest number of records of a simulated person, or
        to 1,000 if this is smaller.
    order : int
        Number of attributes of the marginals (tables of counts by some attributes) whose error is computed.
        Default 2.
    popularity : float
        Exponent of Zipf's distribution. With a larger exponent, the frequencies of labels differ more. With
        0, all labels are equally frequent. Default 1.
    earlier : Release, optional
        Earlier release of a similar table. If an attribute of your domain has the same labels in the earlier
        release, the simulation uses the shares of the labels from that release. If you leave out `per_user`,
        the function uses the total of the earlier release divided by `users` as the mean number of records per
        person.

    Returns
    -------
    BoundAdvice

    Raises
    ------
    ValueError
        If an argument is out of range or contradicts another one, if a bound is not an integer >= 1, or if the
        marginals have too many cells.
    """
    if not 0 < epsilon < inf:
        raise ValueError(f"epsilon = {epsilon} is not allowed: need a finite number > 0")
    budget = DP(epsilon)
    if per_user is None:
        per_user = 0 if earlier is None else max(1.0, float(earlier.answer({})[0]) / users)
    spread = per_user if per_user_spread is None else per_user_spread
    for name, x, least in (
        ("users", users, 1),
        ("per_user", per_user, 1),
        ("per_user_spread", spread, 0),
        ("popularity", popularity, 0),
    ):
        if not (isfinite(x) and x >= least):
            raise ValueError(f"{name} = {x} is not allowed: need a finite number >= {least}")
    if per_user_most is not None and per_user_most < per_user:
        raise ValueError(
            f"per_user_most = {per_user_most} contradicts a mean of {per_user}: need at least the mean"
        )
    if bounds is not None:
        refuse_bounds(bounds)
    order = min(order, len(domain.shape))
    rng = np.random.default_rng(0)  # of beliefs: nothing private is drawn
    people = int(max(1, min(users, _PEOPLE, _RECORDS / per_user)))
    drawn = np.rint(lognormal(per_user, spread, people, rng))
    numbers = np.clip(drawn, 1, per_user_most or _RECORDS).astype(np.int64)
    owner = np.repeat(np.arange(people), numbers)
    # The records of a person are drawn alike, so the first ones are a random choice.
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    shares = [_shares(earlier, domain, name, popularity) for name in domain.attributes]
    codes = [
        labels_of_people(n, share, people, owner, rng)
        for n, share in zip(domain.shape, shares, strict=True)
    ]
    scale = users / people
    errors = []
    usual = [b for b in _GRID if b < numbers.max()] + [int(numbers.max())]
    for bound in sorted({int(b) for b in bounds or usual[: len(_GRID)]}):
        lost = rank >= bound
        squares, variance = _squared_errors(domain, codes, lost, order)
        noise = variance * geometric_variance(epsilon / bound)
        errors.append(BoundError(bound, float(lost.mean()), scale * sqrt(squares), sqrt(noise)))
    best = recommended(errors)
    notes = _notes(errors, best, order)
    return BoundAdvice(tuple(errors), GeometricHistogram(budget), notes)


def _shares(
    earlier: Release | None, domain: Domain, name: str, popularity: float
) -> float | np.ndarray:
    """Return the share of each label of an attribute, from an earlier release. If no earlier release has this
    attribute, return the exponent of Zipf's distribution.
    """
    known = getattr(earlier and earlier.estimate, "domain", None)
    if earlier is None or not isinstance(known, Domain) or name not in known.attributes:
        return popularity
    if known.project([name]) != domain.project([name]):
        return popularity
    counts = earlier.marginal(name)["count"].to_numpy(float).clip(min=0)
    return counts / counts.sum() if counts.any() else popularity


def _notes(errors: Sequence[BoundError], best: int, order: int) -> tuple[str, ...]:
    found = next(each for each in errors if each.bound == best)
    least = min(errors, key=lambda each: each.error).bound
    what = "counts of one attribute" if order == 1 else f"counts of {order} attributes together"
    why = "It has the least error."
    if found is errors[-1] and found.lost:
        why = "It has the least error of these. Try larger bounds too."
    if least != best:
        why = (
            f"The error is least at {least}, and within 20 % of that at {best}. The larger of the two is "
            "better, because the error columns of a release cover noise and not truncation."
        )
    return (
        f"Use at most {best} records of each person (*) for {what}. {why}",
        f"About {100 * found.lost:.1f} % of the records would be left out. This number and all errors rest on "
        "what you believe, and on no table.",
    )


def _squared_errors(
    domain: Domain, codes: list[np.ndarray], lost: np.ndarray, order: int
) -> tuple[float, float]:
    """Return two averages over the cells of all marginals with `order` attributes. The first is the squared
    error from dropped records. The second is the number of table cells whose counts add up to a marginal
    cell.
    """
    squares, cells, added = 0.0, 0, 0.0
    for axes in combinations(range(len(domain.shape)), order):
        shape = [domain.shape[k] for k in axes]
        size = prod(shape)
        if size > _CELLS:
            raise ValueError(
                f"a marginal of {size:,} cells is too large for this advice: need at most {_CELLS:,}, with "
                "fewer labels or --order 1"
            )
        missing: Float[np.ndarray, " cells"] = np.bincount(
            np.ravel_multi_index([codes[k][lost] for k in axes], shape), minlength=size
        )
        squares += float(missing @ missing)
        cells += size
        added += domain.size
    return squares / cells, added / cells


# Choice from the private data


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
    chosen, receipt = exponential_mechanism(scores, sensitivity=1, epsilon=epsilon, rng=rng)
    return bounds[int(chosen[0])], receipt


def refuse_bounds(bounds: Sequence[int]) -> None:
    """Raise a ValueError if one of the bounds (numbers of records per person) is not an integer >= 1."""
    if not bounds or any(isinstance(b, bool) or not 1 <= b < 2**53 or b % 1 for b in bounds):
        raise ValueError(f"bounds = {bounds!r} are not allowed: need integers >= 1")
