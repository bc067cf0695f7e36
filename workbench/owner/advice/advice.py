"""Advice on which mechanism to use. The candidates run on simulated data, which agree with what you believe
about the private data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound, SparseTable
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice.beliefs import Beliefs
from workbench.owner.advice.simulation import Clock, Row, Simulation, questions, ratio
from workbench.spaces import Domain
from workbench.value import did_you_mean, format_number, stated, stated_at_most

TASKS = {
    "all": "single cells, ranges and marginals of a table",
    "cells": "single cells of a table",
    "ranges": "ranges of cells in the order of the table",
    "boxes": "boxes over all attributes",
    "marginals": "marginals of one attribute and of `order` attributes",
    "rows": "microdata, by their marginals",
    "degrees": "sorted counts without their names",
    "users": "counts of items of people who have many records",
    "records": "regions of points, or beginnings of strings",
}
SHOWS = 0.5  # relative error up to which a number shows something
_RESTS = "Errors are {} errors at places of simulated records. They rest on your beliefs alone."
_ROWS = 20_000  # of microdata that are simulated
_SECONDS = 6.5
_REPEATS = 1, 3  # of each mechanism: first one, then three
_FEW = "GeometricHistogram", "HighPassFilter"  # that are tried on coarser tables
_LADDER = tuple(10 ** (k / 64) for k in range(-192, 129))  # of ε, from 0.001 to 100


@dataclass(frozen=True, repr=False)
class Advice:
    """Result of `advise`: the suitable mechanisms with their errors on simulated data, from best to worst.

    Parameters
    ----------
    beliefs : Beliefs
        Description of the data, from which the simulated data were generated.
    task : str
        Kind of numbers that you want to publish, one of the words in `TASKS`.
    epsilon : float
        Privacy loss ε of each simulated release. If you passed `error` to `advise`, this is the smallest ε with
        which a mechanism reaches that error.
    rows : sequence of Row
        One row per mechanism, from best to worst.
    truths : dict
        Mean of the true answers in the simulated data, for each kind of query. Compare the errors of the
        mechanisms with this mean.
    recommendation : str
        Sentence that recommends a mechanism, and says which errors to expect.
    notes : sequence of str
        Sentences about the simulated data, and about mechanisms that were left out.
    shows : bool
        Whether a release can show anything useful. True if, for at least one kind of query, some mechanism has
        an error of at most 50 % of the mean true answer.
    coarser : Domain, optional
        Domain with fewer and larger cells, whose counts would be useful. None if the counts of your own cells
        are useful, or if the workbench found no such domain.
    size : int, optional
        Approximate number of cells that the release should contain.
    """

    beliefs: Beliefs
    task: str
    epsilon: float
    rows: tuple[Row, ...]
    truths: dict[str, float]
    recommendation: str
    notes: tuple[str, ...] = ()
    shows: bool = True
    coarser: Domain | None = None
    size: int | None = None

    @property
    def mechanism(self) -> Any:
        """The recommended mechanism, with its parameters. You can call this mechanism on the private table."""
        return self.rows[0].mechanism

    def display_table(self) -> pd.DataFrame:
        """Return a table with the best parameters and the rounded errors of each mechanism, one mechanism per
        row. For comparison, the first row contains the true answers.
        """
        names = ["mechanism", *self.truths, "cells", "pure noise", "cost", "seconds"]
        rows = [
            ["(mean true answer)", *map(format_number, self.truths.values()), "", "", "", ""],
        ]
        seen = set()
        for row in self.rows:
            kind = type(row.mechanism), series_name(row.mechanism), type(row.mechanism.budget)
            if kind in seen:
                continue
            seen.add(kind)
            errors = [format_number(row.errors.get(kind, nan)) for kind in self.truths]
            sizes = format_number(row.cells), format_number(row.noise_cells)
            rows.append([row.name, *errors, *sizes, row.cost, f"{row.seconds:.2g}"])
        return pd.DataFrame(rows, columns=names)

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        return "\n".join([table, *self.notes, self.recommendation])


def advise(
    beliefs: Beliefs,
    epsilon: float | None = None,
    *,
    task: str = "all",
    error: float | None = None,
    size: int | None = None,
    delta: float = 0.0,
    queries: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
    order: int = 2,
    rows: int | None = None,
    progress: Callable[[str, float], Any] | None = None,
    seconds: float | None = None,
) -> Advice:
    """Recommend a mechanism for your data. The function compares mechanisms on simulated data, which agree
    with what you believe about the private data.

    The function reads no private data, so it costs no budget. The function tries every mechanism that accepts
    this kind of data, from the workbench and from plug-ins. It runs each mechanism on the simulated data, and
    compares the mechanism's answers to queries with the true answers. The queries ask for counts of cells, of
    ranges of cells, and of marginals (tables by a few attributes). The function leaves out queries that count
    no record, because few readers are interested in empty cells.

    Parameters
    ----------
    beliefs : Beliefs
        Description of the data, from public knowledge.
    epsilon : float, optional
        Privacy loss ε of the planned release. Pass either `epsilon` or `error`.
    task : str
        Kind of numbers that you want to publish, one of the words in `TASKS`. The task determines the queries
        on which mechanisms are compared. Default "all".
    error : float, optional
        Mean absolute error, as a number of records, that you want to reach for the most important kind of query
        of the task. The result then contains the smallest ε that reaches this error.
    size : int, optional
        Approximate number of cells that the release should contain. Default: the number of non-empty cells in
        `beliefs`.
    delta : float
        Probability δ of the guarantee. If δ > 0, the comparison includes mechanisms with Gaussian noise, and
        stability histograms (which add noise only to non-empty cells). Default 0.
    queries : sequence of int, optional
        Lengths of the range queries, in cells. Default: lengths for which a range contains about 100 and
        10,000 non-empty cells.
    shape : sequence of int, optional
        Size of the box queries. Each box query adds up the counts in a box of cells. Give the number of labels
        that a box covers for each attribute, for example (10, 2). Default: a quarter of the labels of each
        attribute.
    order : int
        Number of attributes of each marginal. Default 2.
    rows : int, optional
        Number of records, if this number is public. Mechanisms that release microdata (one row per person)
        need this number.
    progress : callable, optional
        Function that `advise` calls with two arguments: a description of the current step, and the completed
        share, from 0 to 1.
    seconds : float, optional
        Approximate time limit for the simulation. Default 6.5.

    Returns
    -------
    Advice

    Raises
    ------
    ValueError
        If an argument is out of range, if the beliefs describe a kind of data that the task does not allow, or
        if no mechanism can be run.

    Examples
    --------
    Suppose that a tenth of the cells has records, with a mean count of 100 and a standard deviation of 20:

    >>> cells = Domain(("x",), (10_000,))
    >>> found = advise(Beliefs.of_counts(cells, 0.1, 100, 20), 1.0, task="cells", size=1_000)
    >>> found.shows  # whether errors are less than half of the true answers
    True
    """
    _refuse(beliefs, epsilon, task, error, size, delta, order)
    seconds = _SECONDS if seconds is None else seconds
    show = progress or (lambda text, share: None)
    wide = order if task in ("marginals", "rows") else 0
    small, part = beliefs.simulated(wide, _ROWS if task == "rows" else inf)
    asked = questions(small, task, queries, shape, order)
    limit = 2 * size if size else inf
    about = size or beliefs.cells
    simulation = Simulation(
        beliefs,
        small,
        part,
        small,
        asked,
        task,
        about,
        delta,
        order,
        rows,
        limit,
    )
    truths = simulation.truths
    kind = next(iter(truths))
    if epsilon is None:
        seconds /= 2
        epsilon = _least_epsilon(simulation, error or 0, Clock.of(seconds, show))
    found, left_out = simulation.compare(epsilon, Clock.of(seconds, show), _REPEATS)
    if not found:
        raise ValueError(f"no mechanism can be run for {task}. {' '.join(left_out)}")
    if error is not None:
        found.sort(
            key=lambda row: (row.cells > simulation.limit, not row.errors[kind] <= error)
        )
    measure = "root mean squared" if task == "users" else "mean absolute"
    notes = [_RESTS.format(measure)]
    if part < 1:
        notes.append(f"The simulation covers {100 * part:.2g} % of the believed data.")
    if any(row.cells > simulation.limit for row in found):
        notes.append("The last rows release more than twice the size that was asked for.")
    least = {}
    for k in truths:
        answering = [row for row in found if isfinite(row.errors[k])]
        least[k] = min(answering or found, key=lambda row: row.errors[k])
    hidden = [k for k in truths if ratio(least[k].errors[k], truths[k]) > SHOWS]
    shows = len(hidden) < len(truths)
    sentence, coarser = _recommendation(found[0], truths, epsilon, error), None
    if kind in hidden:
        words, coarser = _coarser(simulation, epsilon, Clock.of(seconds / 3, show))
        said = (
            f"At ε = {stated(epsilon)} no mechanism can show {_many(hidden) if shows else 'anything'}: "
            f"even with {least[kind].name}, {_on(kind, least[kind].errors[kind], truths[kind])}. {words}"
        )
        if shows:
            notes.append(said)
        else:
            sentence = said
    weak = [
        k for k in truths if ratio(found[0].errors[k], truths[k]) > SHOWS and k not in hidden
    ]
    if weak:
        notes.append(
            f"The errors of {found[0].name} on {_many(weak)} are more than half of the true answers."
        )
    notes += left_out
    return Advice(
        beliefs,
        task,
        epsilon,
        tuple(found),
        truths,
        sentence,
        tuple(notes),
        shows,
        coarser,
        size,
    )


def _refuse(
    beliefs: Beliefs,
    epsilon: float | None,
    task: str,
    error: float | None,
    size: int | None,
    delta: float,
    order: int,
) -> None:
    """Raise a ValueError if arguments are out of range or contradict each other."""
    if (epsilon is None) == (error is None):
        raise ValueError("give either epsilon or error: the advice computes the other one")
    for name, x in (("epsilon", epsilon), ("error", error)):
        if x is not None and not (isfinite(x) and x > 0):
            raise ValueError(f"{name} = {x} is not allowed: need a finite number > 0")
    if not 0 <= delta < 1:
        raise ValueError(f"delta = {delta} is not allowed: need a number from 0 to below 1")
    if task not in TASKS:
        raise ValueError(f"no task {task!r}{did_you_mean(task, TASKS)}")
    if size is not None and not 1 <= size <= beliefs.domain.size:
        raise ValueError(
            f"size = {size} is not allowed: need 1 to {beliefs.domain.size:,} cells"
        )
    if (task == "records") != (not isinstance(beliefs.domain, Domain)):
        raise ValueError(f"{task} does not fit {type(beliefs.domain).__name__}")
    if task not in ("users", "records") and beliefs.cells is None:
        raise ValueError(f"{task} needs a belief about the number of non-empty cells")
    if task == "users" and beliefs.users is None:
        raise ValueError("users needs a belief about the number of people")
    if task in ("marginals", "rows") and not 1 <= order <= len(beliefs.domain.shape):
        raise ValueError(
            f"order = {order} is not allowed: need 1 to {len(beliefs.domain.shape)}"
        )


# The least ε


def _least_epsilon(simulation: Simulation, error: float, clock: Clock) -> float:
    """Return the smallest ε, rounded up to two digits, at which at least one mechanism has at most the given
    error.
    """
    kind, nothing = next(iter(simulation.truths.items()))
    if error >= nothing:
        raise ValueError(
            f"error = {error:g} is not allowed: true answers on {kind} average {format_number(nothing)}, "
            "so even an empty release has no larger error. Need a smaller one"
        )
    first = replace(simulation, asked=simulation.asked[:1])
    able: set[Any] | None = None  # candidates that reach it at the least ε so far

    def reached(epsilon: float, repeats: int = 1) -> bool:
        nonlocal able
        rows, _ = first.compare(epsilon, clock, (repeats,), able)
        found = {row.key for row in rows if row.errors[kind] <= error}
        able = found or able
        return bool(found)

    if not reached(_LADDER[-1]):
        raise ValueError(
            f"no mechanism reaches an error of {error:g} on {kind}, even at ε = {_LADDER[-1]:g}"
        )
    top = float(stated_at_most(_LADDER[bisect_left(_LADDER, True, key=reached)], 2))
    while top < _LADDER[-1] and not reached(top, _REPEATS[-1]):  # one seed may have been lucky
        top = float(stated_at_most(1.05 * top, 2))
    return top


# Sentences


def _many(kinds: Sequence[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"


def _one(kind: str) -> str:
    """Return one query of a kind in words, for example "a cell"."""
    return kind if kind.startswith("one ") else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _on(kind: str, error: float, truth: float) -> str:
    least = f"the mean error for {_one(kind)} is {format_number(error)}"
    return f"{least}, where true answers average {format_number(truth)}"


def _recommendation(
    best: Row, truths: dict[str, float], epsilon: float, error: float | None
) -> str:
    """Return the recommendation, in one sentence."""
    parts = [
        f"{format_number(best.errors[kind])} for {_one(kind)} (true mean {format_number(truth)})"
        for kind, truth in truths.items()
        if isfinite(best.errors[kind])
    ]
    start = f"At ε = {stated(epsilon)}"
    if error is not None:
        start = f"The least ε for an error of {error:g} is about {stated(epsilon)}, so"
    return f"{start} take {best.name}. The mean error is {', '.join(parts)}."


@dataclass(frozen=True)
class _Merged:
    """Simulated data on a coarser domain, in which several neighbouring labels of an attribute are merged
    into one label.
    """

    beliefs: Beliefs
    factors: tuple[int, ...]

    truth_public = True

    @property
    def domain(self) -> Domain:
        """Coarser domain."""
        return _merged_domain(self.beliefs.domain, self.factors)

    def load(self) -> SparseTable:
        """Return the simulated table over the coarser domain."""
        fine = self.beliefs.load()
        codes = fine.domain.codes(fine.keys) // np.array(self.factors)
        keys, places = np.unique(self.domain.keys(codes), return_inverse=True)
        counts = np.bincount(places, fine.counts).astype(np.int64)
        b = fine.bound
        bound = Bound(b.l0, b.l1, b.l1)  # cells of one unit may become one
        return SparseTable.from_keys(self.domain, keys, counts, bound, truth_public=True)


def _merged_domain(domain: Domain, factors: Sequence[int]) -> Domain:
    shape = [-(-n // f) for n, f in zip(domain.shape, factors, strict=True)]
    return Domain(domain.attributes, tuple(shape))


def _coarser(simulation: Simulation, epsilon: float, clock: Clock) -> tuple[str, Domain | None]:
    """Search for a coarser table whose single cells would have useful counts. Return advice in words and the
    coarser domain, or None in place of the domain if no such table was found.
    """
    small = simulation.small
    if small.cells is None:
        return "Use a larger ε, or publish about more people.", None
    shape = small.domain.shape
    factors = [1] * len(shape)
    while any(f < n for f, n in zip(factors, shape, strict=True)):
        widest = max(range(len(shape)), key=lambda k: -(-shape[k] // factors[k]))
        factors[widest] *= 2
        data = _Merged(small, tuple(factors))
        table = data.load()
        believed = Beliefs(data.domain, float(table.total), len(table), bound=table.bound)
        asked = questions(data, "cells", None, None, 1)
        trial = Simulation(
            believed, believed, 1.0, data, asked, "cells", len(table), simulation.delta, 1, None,
            classes=_FEW,
        )  # fmt: skip
        rows, _ = trial.compare(epsilon, clock, _REPEATS)
        truth, error = asked[0].exact, rows[0].errors["cell"]
        if ratio(error, truth) <= SHOWS:
            domain = _merged_domain(simulation.beliefs.domain, factors)
            merged = [
                f"{f} labels of {name} to one"
                for name, f in zip(domain.attributes, factors, strict=True)
                if f > 1
            ]
            sizes = " × ".join(map(str, domain.shape))
            return (
                f"A coarser table of {sizes} cells would work (merge {', '.join(merged)}): with "
                f"{rows[0].name} {_on('cell', error, truth)}."
            ), domain
    return "Even one number for all records would be mostly noise, so use a larger ε.", None
