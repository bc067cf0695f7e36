"""Benchmark of mechanisms for counts since 2002, with one guarantee on the four public tables of the
benchmark `recall`.

The unit is a record that is added or removed, with ε = 1, and δ = 10⁻⁶ for methods that need a δ. Three
numbers are public for all methods: the number of records, the number s of non-empty cells, and a limit of
2000 on counts. A release has s cells, an item blanket has 2·s cells, and a sketch has 2·s buckets. Errors are
means of |answer − truth| over the cells of 500 random records, and over 400 random ranges of two attributes.
Seconds are those of the slowest of the four tables. The command `python -m experiments.benchmarks.rivals
docs/rivals.inc` writes the table of the documentation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmarks._timing import once, row
from experiments.benchmarks.recall import tables
from workbench import DP, ZCDP, Marginals, RandomMarginalRanges, Ranges, SparseTable
from workbench.mechanisms import (
    AIM,
    ALP,
    CorrelatedGaussianSparseHistogram,
    CountSketch,
    GaussianSparseHistogram,
    GeometricHistogram,
    HighPassFilter,
    InfTDA,
    ItemBlanket,
    LaplaceQueries,
    MisraGries,
    PrioritySampling,
    StabilityHistogram,
)
from workbench.privacy import REPLACE
from workbench.value import format_number

PURE, BOTH = DP(1.0), DP(1.0, 1e-6)
RANGES = RandomMarginalRanges(400)
SEEDS = 3


def _most_of_filter(table: SparseTable) -> int:
    """Return 4/5 of the filter's threshold, as in Figure 3 of Cormode et al. (2012)."""
    whole = HighPassFilter(PURE, size=len(table)).threshold(table.domain, table.bound)
    return round(0.8 * whole)


def _aim(table: SparseTable) -> AIM:
    """Return AIM for all pairs of attributes, with two rounds per attribute instead of sixteen."""
    rounds = 2 * len(table.domain.shape)
    return AIM(ZCDP.within(BOTH), Marginals(2), rounds=rounds)


METHODS: tuple[tuple[int, Callable[[SparseTable], Any]], ...] = (  # by the year of their source
    (2002, lambda table: CountSketch(PURE, width=2 * len(table))),
    (2006, lambda table: LaplaceQueries(PURE, RANGES)),
    (2009, lambda table: GeometricHistogram(PURE)),
    (2009, lambda table: StabilityHistogram(BOTH)),
    (2012, lambda table: HighPassFilter(PURE, size=len(table))),
    (2012, lambda table: PrioritySampling(PURE, size=len(table), theta=_most_of_filter(table))),
    (2021, lambda table: ALP(PURE, largest=2000, total=int(table.total))),
    (2022, _aim),
    (2023, lambda table: MisraGries(BOTH, size=len(table))),
    (2024, lambda table: GaussianSparseHistogram(BOTH)),
    (2025, lambda table: CorrelatedGaussianSparseHistogram(BOTH, nonempty=len(table))),
    (2025, lambda table: ItemBlanket(PURE, nonempty=len(table), size=2 * len(table))),
    (2025, lambda table: InfTDA(ZCDP.within(BOTH), total=int(table.total))),
)


class Measured(NamedTuple):
    """Results of one method on one table, or of releasing nothing: mean errors for both kinds of queries, and
    the seconds of the fastest run.
    """

    mechanism: Any
    cells: float
    ranges: float
    seconds: float

    @property
    def text(self) -> str:
        """Both errors as text, with a dash for queries that the method cannot answer."""
        errors = self.cells, self.ranges
        return " / ".join("—" if isnan(x) else format_number(x) for x in errors)

    @property
    def title(self) -> str:
        """Name of the method."""
        return self.mechanism.title if self.mechanism else "nothing released"


def asked_of(table: SparseTable) -> tuple[Ranges, RandomMarginalRanges]:
    """Return the cells of 500 random records, one query each, and random ranges."""
    chance = table.counts / table.total
    keys = np.sort(np.random.default_rng(0).choice(table.keys, 500, p=chance))
    return Ranges(keys, keys + 1), RANGES


def measure(make: Callable[[SparseTable], Any], table: SparseTable) -> Measured:
    """Release a table with each seed, and measure the errors. They are NaN if the method refuses the table or
    the queries.
    """
    mechanism, queries = make(table), asked_of(table)
    errors, seconds = np.full((SEEDS, 2), np.nan), np.full(SEEDS, np.nan)
    for seed in range(SEEDS):
        try:
            seconds[seed], released = once(
                partial(mechanism, table, np.random.default_rng(seed))
            )
        except ValueError:  # of a domain that does not fit in memory
            continue
        for i, asked in enumerate(queries):
            with suppress(ValueError):
                errors[seed, i] = np.abs(released.answer(asked) - table.answer(asked)).mean()
    return Measured(mechanism, *errors.mean(axis=0), seconds.min())


def of_nothing(table: SparseTable) -> Measured:
    """Measure an empty release."""
    return Measured(None, *(table.answer(each).mean() for each in asked_of(table)), 0.0)


def column(table: SparseTable) -> list[Measured]:
    """Measure an empty release and all methods on a table."""
    return [of_nothing(table), *(measure(make, table) for _, make in METHODS)]


def main() -> list[dict]:
    """Return the rows of the table, one per table and method."""
    return [
        row(f"{name}: {found.title}", found.text)
        for name, table, _ in tables()
        if table is not None
        for found in column(table)
    ]


def lines(columns: dict[str, list[Measured]]) -> list[str]:
    """Return the table as lines of Markdown, one per method."""
    heads = ["year", "method", "guarantee", *columns, "seconds"]
    text = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    years = ["", *(str(year) for year, _ in METHODS)]
    for year, *of_method in zip(years, *columns.values(), strict=True):
        title, mechanism, promise = of_method[0].title, of_method[0].mechanism, ""
        if mechanism:
            title = f"[{title}](/mechanisms/{type(mechanism).__name__}.md)"
            promise = "ε" if mechanism.budget == PURE else "ε, δ"
            promise += " (replacing)" * (mechanism.relation == REPLACE)
        seconds = [x.seconds for x in of_method if not isnan(x.seconds)]
        cells = [
            year,
            title,
            promise,
            *(x.text for x in of_method),
            f"{max(seconds, default=nan):.1g}",
        ]
        text.append("| " + " | ".join(cells) + " |")
    return text


if __name__ == "__main__":
    every = {name: column(table) for name, table, _ in tables() if table is not None}
    Path(sys.argv[1]).write_text("\n".join(lines(every)) + "\n", encoding="utf-8")
