"""Advice itself: summaries ranked by the errors to expect of them, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from workbench import noise
from workbench.advice.errors import NEGLIGIBLE, QueryError, mean_log_error
from workbench.advice.model import CountModel
from workbench.advice.moved import compare_noise_of
from workbench.advice.noise_kinds import NoiseComparison
from workbench.advice.options import Option, all_options, three_digits
from workbench.domain import Domain
from workbench.libraries import pd
from workbench.mechanisms import HighPassFilter
from workbench.privacy import DP, ZCDP
from workbench.table import Bound


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
