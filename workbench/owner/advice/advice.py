"""Advice: mechanisms ranked by expected error, from public numbers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from workbench import noise
from workbench.compiled import pd
from workbench.data import Bound, Interactions
from workbench.mechanisms import (
    FPA,
    CountSketch,
    GaussianQueries,
    HierarchicalHistogram,
    HighPassFilter,
    LaplaceQueries,
    Privelet,
    StabilityHistogram,
    UnattributedHistogram,
)
from workbench.mechanisms.contributions import Contributions, l2_squared
from workbench.mechanisms.hierarchical import tree_l2_squared
from workbench.mechanisms.histograms import FullTable
from workbench.mechanisms.protocol import amount
from workbench.mechanisms.summaries import SparseSummary
from workbench.owner.advice.noise import CountModel, NoiseComparison, compare_noise
from workbench.owner.advice.summaries import (
    NEGLIGIBLE,
    Option,
    QueryError,
    all_options,
    mean_log_error,
    three_digits,
)
from workbench.privacy import DP, ZCDP
from workbench.queries import (
    Haar,
    basis_of,
    level_sizes,
    workload_l2_squared,
    workload_sensitivity,
)
from workbench.spaces import Domain

# Task

EXACT = "exact"  # how a number is known
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


def refuse_large(domain: Domain, task: str) -> None:
    """A ValueError for a domain whose full table is not tried."""
    if domain.size > _MOST_CELLS:
        raise ValueError(
            f"a domain of {domain.size:,} cells is too large for {task}, which need every cell: need at "
            f"most {_MOST_CELLS:,}, with fewer attributes or coarser labels"
        )


def refuse_outside(name: str, number: int, most: int) -> None:
    """A ValueError unless it is a whole number from 1 to `most`."""
    if not (isinstance(number, int) and 1 <= number <= most):
        raise ValueError(
            f"{name} = {number!r} is not allowed: need a whole number from 1 to {most}"
        )


def ranked(task: str, options: list[TaskOption], notes: Sequence[str]) -> TaskAdvice:
    """Advice with the least value first."""
    return TaskAdvice(task, tuple(sorted(options, key=lambda o: o.value)), tuple(notes))


# Moved


def compare_noise_of(
    mechanism: Any, domain: Domain, bound: Bound, budget: DP
) -> NoiseComparison:
    """Both kinds of noise on what a mechanism measures, each at what (ε, δ) pays for.

    Of a histogram of a unit's records by items and contexts: on the counts of its items.

    Parameters
    ----------
    mechanism : Mechanism
        At its own parameters, whatever its budget.
    domain : Domain
        Where the counts live.
    bound : Bound
        How far one unit moves the table, or how many records it has.
    budget : DP
        With 0 < δ < 1.

    Returns
    -------
    NoiseComparison
        Its text is one sentence; `applied` gives the mechanism with the smaller noise.

    Raises
    ------
    ValueError
        If the mechanism takes one kind of noise alone, what it measures depends on the data, or no ρ is
        within the budget.

    Examples
    --------
    >>> tree = HierarchicalHistogram(DP(1.0))
    >>> compared = compare_noise_of(tree, Domain(("x",), (2**20,)), Bound(), DP(1.0, 1e-9))
    >>> compared.touched, compared.takes_gaussian
    (21.0, True)
    """
    return compare_noise(budget, *_moved(mechanism, domain, bound), _share(mechanism))


def _moved(mechanism: Any, domain: Domain, bound: Bound) -> tuple[Fraction, Fraction]:
    """l1, and l2 squared, of what is measured."""
    l1 = Fraction(bound.l1)
    if isinstance(mechanism, FullTable | SparseSummary | Privelet):
        transform = Haar() if isinstance(mechanism, Privelet) else mechanism.transform
        blocks = basis_of(transform, domain).noise_blocks
        nodes = sum(block.nodes_per_count for block in blocks)
        return nodes * l1, sum((block.l2_squared(bound) for block in blocks), Fraction(0))
    if isinstance(mechanism, StabilityHistogram | UnattributedHistogram):
        return l1, bound.l2_squared
    if isinstance(mechanism, HierarchicalHistogram):
        k = mechanism.branching_factor(domain.size)
        return l1 * len(level_sizes(domain.size, k)), tree_l2_squared(bound, domain.size, k)
    if isinstance(mechanism, LaplaceQueries | GaussianQueries):
        moved = Fraction(workload_sensitivity(mechanism.workload, domain))
        return moved * l1, workload_l2_squared(mechanism.workload, domain) * l1**2
    if isinstance(mechanism, CountSketch):  # a unit's counts may share a bucket
        return l1 * mechanism.depth, l1**2 * mechanism.depth
    if isinstance(mechanism, Contributions) and mechanism.accepts_zcdp:
        return _items_moved(mechanism, domain, bound)
    raise ValueError(
        f"{mechanism!r} is not allowed: need a mechanism that takes a DP or a ZCDP"
    )


def _items_moved(mechanism: Any, domain: Domain, bound: Bound) -> tuple[Fraction, Fraction]:
    """Of the counts of items, by what the mechanism makes of users without a record."""
    none = np.array([], np.int64)
    users = Interactions.from_codes(domain, none, none, none, bound)
    users = replace(
        users, distinct=bound.linf == 1
    )  # as a bound says that nobody has an item twice
    bounded = mechanism.bounded_data(users, np.random.default_rng(0))
    items = domain.project(domain.attributes[:1])
    l2 = l2_squared(bounded, items)
    if not isinstance(mechanism, FPA):
        return Fraction(bounded.bound.l1), l2
    if mechanism.k is None:
        raise ValueError(
            "k = None is not allowed: the data choose how many coefficients there are"
        )
    k = min(mechanism.k, items.size)
    l1 = Fraction(float(mechanism.coefficient_sensitivity(k, items.size, bounded.bound)))
    return l1, Fraction(float(mechanism.coefficient_l2(k, items.size, bounded.bound))) ** 2


def _share(mechanism: Any) -> float:
    """Of the budget, what pays for the counts of items; all of it, where nothing else is measured."""
    if not isinstance(mechanism, Contributions):
        return 1.0
    counts = (
        getattr(mechanism, "budgets", None) if hasattr(mechanism, "popularity_share") else None
    )
    counted = counts()[1] / amount(mechanism.budget) if counts else 1.0
    return counted * mechanism.split[0]


# Advice


@dataclass(frozen=True, repr=False)
class Advice:
    """What to expect of each summary, and which to take; `queries` are sizes of ranges, in cells."""

    domain: Domain
    budget: DP
    size: int
    bound: Bound
    model: CountModel | None
    queries: tuple[int, ...]
    options: tuple[Option, ...]
    notes: tuple[str, ...]

    @cached_property
    def ranked(self) -> tuple[Option, ...]:
        """Those that fit, by the geometric mean of their errors at the queries.

        The error is the expected one or, without a model, the worst that there can be.
        """
        fitting = [option for option in self.options if option.fits]
        scores = [round(mean_log_error(o.deciding_errors(self.model)), 3) for o in fitting]
        cells = [option.cells for option in fitting]
        return tuple(fitting[i] for i in np.lexsort([cells, scores]))

    @property
    def mechanism(self) -> Any:
        """The best of those that fit, ready to be called on a table.

        Where a δ is given it has the kind of noise with which it is less off, if it can draw both.
        """
        return self.ranked[0].mechanism

    @cached_property
    def noise(self) -> NoiseComparison | None:
        """Both kinds of noise on what the best of them measures; None without a δ."""
        if not self.budget.delta:
            return None
        best = self.ranked[0].mechanism
        return compare_noise_of(best, self.domain, self.bound, self.budget)

    @property
    def _sentences(self) -> tuple[str, ...]:
        """What is to be said below the table."""
        return (*self.notes, *self.sentences_on_noise)

    @property
    def sentences_on_noise(self) -> tuple[str, ...]:
        """Which kind of noise is the smaller, and what becomes of a filter's threshold; () without a δ."""
        if self.noise is None:
            return ()
        best = self.ranked[0]
        sentences = [str(self.noise)]
        if best.is_gaussian and not self.noise.takes_gaussian:
            sentences.append(
                f"Yet {best} is less off than with geometric noise: fewer empty cells reach a cut so many "
                "deviations away."
            )
        if isinstance(best.mechanism, HighPassFilter):
            budgets = (DP(self.budget.epsilon), ZCDP(self.noise.rho))
            pure, gaussian = (
                three_digits(
                    replace(best.mechanism, budget=budget).threshold(self.domain, self.bound)
                )
                for budget in budgets
            )
            sentences.append(
                f"The filter's θ is {pure} with geometric noise, {gaussian} with Gaussian."
            )
        return tuple(sentences)

    @property
    def reason(self) -> str:
        """Why that one, in a sentence, at the size of query where it is furthest ahead of the next."""
        best = self.ranked[0]
        other = next((o for o in self.ranked if o.summary != best.summary), best)
        best_errors = np.array(best.deciding_errors(self.model))
        other_errors = np.array(other.deciding_errors(self.model))
        i = int(np.argmax((other_errors + NEGLIGIBLE) / (best_errors + NEGLIGIBLE)))
        query = self.queries[i]
        cells = "1 cell" if query == 1 else f"{query:,} cells"
        how = "about" if self.model else "up to"
        reason = (
            f"at ε = {self.budget.epsilon:g} {best} {self._what_it_releases(best)}; ranges of "
        )
        error = three_digits(best_errors[i])
        reason += f"{cells} are off by {how} {error} {'count' if error == '1' else 'counts'}"
        if other is not best:
            reason += f", where {other} is off by {three_digits(other_errors[i])}"
        if self.model is None:
            reason = f"no model is declared, so the worst case decides: {reason}"
        return reason

    def _what_it_releases(self, best: Option) -> str:
        if self.model is None or best.kept != best.kept:
            nodes = "nodes" if best.transform else "cells"
            return f"releases about {three_digits(best.cells)} {nodes}"
        empty = best.cells - best.kept * self.model.density * self.domain.size
        how_many = f"about {three_digits(empty)}" if empty > 0.5 else "no"
        return f"keeps {best.kept:.0%} of the non-empty cells and {how_many} empty ones"

    @property
    def caption(self) -> str:
        """What is asked, and of what."""
        model = "if their cells are empty … at worst (root mean square)"
        if self.model:
            m = self.model
            model = f"if a fraction {m.density:g} of the cells hold {m.mean:g} ± {m.spread:g} counts"
        return (
            f"{self.budget} for a unit of l1 = {self.bound.l1:g}, about {self.size:,} of "
            f"{self.domain.size:,} cells: by how many counts ranges of so many cells are off, {model}"
        )

    def display_table(self) -> pd.DataFrame:
        """A short table in words, the best first, those that are not recommended last."""
        unranked = [option for option in self.options if not option.fits]
        rows = [self._display_row(option) for option in (*self.ranked, *unranked)]
        sizes = [f"{q:,}" if q < 1e6 else three_digits(q) for q in self.queries]
        return pd.DataFrame(rows, columns=["summary", "θ", "τ", "cells", *sizes])

    def _display_row(self, option: Option) -> list[str]:
        name = option.summary
        if option.transform:
            name += f", {option.transform}"
        if option.is_gaussian:
            name += ", Gaussian"
        if not option.fits:
            name += "*"
        thresholds = [three_digits(x) if x else "" for x in (option.theta, option.tau)]
        errors = [self._display_error(error) for error in option.query_errors]
        return [name, *thresholds, three_digits(option.cells), *errors]

    def _display_error(self, error: QueryError) -> str:
        if self.model:
            return three_digits(error.error)
        return f"{three_digits(error.error)} … {three_digits(error.worst)}"

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        below = (*self._sentences, repr(self.mechanism), self.reason)
        return "\n".join([self.caption, table, *below])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from html import escape

        caption = f"<p>{escape(self.caption)}</p>"
        below = (*self._sentences, repr(self.mechanism), self.reason)
        paragraphs = [f"<p>{escape(text)}</p>" for text in below]
        return "".join([caption, self.display_table().to_html(index=False), *paragraphs])

    def to_frame(self) -> pd.DataFrame:
        """One row a summary and size of query; thresholds and errors in counts."""
        rows = []
        for option in self.options:
            about = {
                "summary": option.summary,
                "transform": option.transform,
                "theta": option.theta,
                "tau": option.tau,
                "cells": option.cells,
                "kept": option.kept,
                "fits": option.fits,
            }
            mechanism = {"mechanism": repr(option.mechanism)}
            rows += [about | error._asdict() | mechanism for error in option.query_errors]
        return pd.DataFrame(rows)


def advise(
    domain: Domain,
    epsilon: float,
    size: int,
    *,
    delta: float = 0.0,
    bound: Bound | None = None,
    density: float | None = None,
    mean: float | None = None,
    spread: float | None = None,
    queries: Sequence[int] | None = None,
    quick: bool = False,
    others: Sequence[Any] = (),
) -> Advice:
    """Which summary of about `size` cells to release at ε. No data is read.

    `density`, `mean` and `spread` declare what is believed of the table. They are public, and must not
    be read off private data: all three, or none of them.

    Parameters
    ----------
    domain : Domain
        Where the counts live.
    epsilon : float
        The budget.
    size : int
        How many cells to release, about.
    delta : float
        With δ > 0 there is also the stability histogram, and each summary has the noise with which it
        is less off: geometric, which spends the ε, or Gaussian, at the ρ within (ε, δ).
    bound : Bound, optional
        How far one unit moves the table; Bound() unless it is given.
    density : float, optional
        The fraction of cells that are not empty.
    mean : float, optional
        The mean count of a non-empty cell.
    spread : float, optional
        The standard deviation of the counts of non-empty cells.
    queries : sequence of int, optional
        Sizes of ranges, in cells; without them those that hold 1, 100 and 10,000 non-empty cells, or
        so many cells where no model is declared.
    quick : bool
        Leave out what takes longest: dyadic nodes, and the θ of filter-priority sampling.
    others : sequence of mechanisms
        Further ones to compare, at their own parameters, whose class has a `release_rule`.

    Returns
    -------
    Advice
        Each summary with its expected errors, ranked; `.mechanism` is the one to take.

    Raises
    ------
    ValueError
        If an argument is out of its range, or nothing is known beforehand of one of `others`.

    Examples
    --------
    >>> advise(Domain(("x",), (10**6,)), 0.1, 10**5, density=0.1, mean=100, spread=20).mechanism
    HighPassFilter(budget=DP(epsilon=0.1), size=100000)
    """
    budget = DP(epsilon, delta)
    bound = Bound() if bound is None else bound
    for name, x, kind in (("domain", domain, Domain), ("bound", bound, Bound)):
        if not isinstance(x, kind):
            raise ValueError(f"{name} = {x!r} is not allowed: need a {kind.__name__}")
    noise.decay(bound.l1, epsilon)
    max_size = min(domain.size, noise.MAX_RELEASED_CELLS)
    if not _is_count(size, max_size):
        raise ValueError(
            f"size = {size!r} is not allowed: need a whole number from 1 to {max_size}, the cells "
            "there are or that a summary can hold"
        )
    believed = (density, mean, spread)
    if None in believed and believed != (None, None, None):
        raise ValueError(
            f"density, mean, spread = {believed!r} is not allowed: need all three, or none of them"
        )
    model = None
    if density is not None and mean is not None and spread is not None:
        model = CountModel(density, mean, spread)
    if queries is None:
        cells = 1 / density if density else 1
        queries = [max(1, round(min(n * cells, domain.size))) for n in (1, 100, 10_000)]
    queries = list(queries)
    asked: list[int | None] = [*queries] or [None]
    for query in asked:
        if not _is_count(query, domain.size):
            raise ValueError(
                f"queries: {query!r} is not allowed: need sizes of ranges, whole numbers from 1 to "
                f"{domain.size}"
            )
    sizes = tuple(sorted({int(query) for query in queries}))
    options, notes = all_options(domain, budget, int(size), bound, model, sizes, quick, others)
    return Advice(domain, budget, int(size), bound, model, sizes, options, notes)


def _is_count(x: Any, most: int) -> bool:
    """Whether it is a whole number from 1 to `most`."""
    whole = isinstance(x, int | np.integer) and not isinstance(x, bool)
    return whole and 1 <= x <= most
