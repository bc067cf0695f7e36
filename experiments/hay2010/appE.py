"""Hay et al. 2010, Appendix E: a noisy tree against Blum et al.'s equi-depth histogram.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: section 6 and Appendix E; the other method is that of
        Blum, Ligett & Roth, STOC 2008, whose binary search this paper only names.
Read    from the text, which has lost its formulas; there is no figure. What it determines, and what
        not, is written down in tests/reference/equi_depth.py, whose procedure this is.
Open    The ends of buckets are found by binary search on noisy counts from the last end, each of
        b buckets with ⌈log₂n⌉ comparisons, so that every one has noise of scale b·⌈log₂n⌉/α. The
        number of records N is public, depth = N/b, and what is left after b searches is one more
        bucket. A bucket stands for `depth` records spread evenly. What its last cell has too much
        adds up over the buckets; "quantiles" searches from the first cell for multiples of `depth`
        instead, which is kinder to the method. b is not printed: at each N and n, out of 4 to 128, the
        one with the least error, read off the truth, which also favours it.
        N records in two waves over the cells. Not in the paper: H̄ (not zeroed).
"""

from __future__ import annotations

from math import log, sqrt

from experiments.hay2010.appE_checks import (
    ACCURACIES,
    BOUND,
    DELTA,
    OTHERS,
    least_records,
)
from experiments.hay2010.data import NOISY_TREE, TREE_NOT_ZEROED, Waves
from experiments.hay2010.equi_depth import EquiDepth, WorstError
from experiments.hay2010.ranges import BEST
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import epsilon, number, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import HierarchicalHistogram
from workbench.value import format_number, value


@value
class AppE(Figure):
    """The worst error of all ranges over the number of records, as a part of it, and over the domain."""

    title = "A noisy tree against an equi-depth histogram, over the size of the database"
    headline = (
        "A noisy tree's error does not grow with the database; an equi-depth histogram's does"
    )
    rests_on = ("h-e.2", "h-e.3")
    page = "Hay et al., PVLDB 2010, section 6 and Appendix E"
    quick = {"seeds": 5}
    columns = 3
    height = 2.2
    sharey = True

    epsilon: float = epsilon(1.0, "privacy parameter α")
    delta: float = number(DELTA, "chance that a range may miss the accuracy", 1e-9, 0.999)
    cells: int = whole(1024, "n of the first two panels", 2, 2**16, unit="cells")
    domains: tuple[int, ...] = whole(
        (256, 1024, 4096, 16384), "n, powers of two", 2, 2**16, unit="cells", kind=UNPRINTED
    )
    records: tuple[int, ...] = whole(tuple(10**i for i in range(4, 9)), "N", 1, 10**15)
    buckets: tuple[int, ...] = whole(
        (4, 8, 16, 32, 64, 128), "b, of which the best is taken at each N", kind=UNPRINTED
    )
    seeds: int = seeds(160)

    def tables(self) -> dict[str, Waves]:
        """By what rows call them."""
        cells = sorted({self.cells, *self.domains})
        return {
            repr(x): x for n in cells for x in (Waves(n, records) for records in self.records)
        }

    def sweeps(self) -> dict[str, Sweep]:
        """One."""
        budget = DP(self.epsilon)
        trees = [
            HierarchicalHistogram(budget, consistent=False),
            HierarchicalHistogram(budget, nonnegative=False),
        ]
        others = [EquiDepth(budget, b, kind) for b in self.buckets for kind in (False, True)]
        tables = [*self.tables().values()]
        return {"worst": Sweep(tables, [*trees, *others], [WorstError()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Equi-depth also at each other b, in a panel that is not drawn."""
        rows = super().rows(store)
        trees = rows.consistent.map({False: NOISY_TREE, True: TREE_NOT_ZEROED})
        tables = self.tables()
        rows = rows.assign(
            series=trees.fillna(rows.mechanism_name),
            records=rows.dataset.map({text: x.records for text, x in tables.items()}),
            cells=rows.dataset.map({text: x.cells for text, x in tables.items()}),
            buckets=rows.buckets.fillna(0).astype(int),
        )
        means = rows.groupby(["cells", "records", "series", "buckets"]).value.transform("mean")
        least = means.groupby([rows.cells, rows.records, rows.series]).transform("min")
        rows["panel"] = rows.panel.where(means == least, "other b")
        best = rows[rows.panel == "worst"]
        shares = best.assign(
            metric="Usefulness", panel="useful", value=best.value / best.records
        )
        laws = pd.DataFrame([dict(records=n, value=self.bound(n)) for n in self.records])
        laws = laws.assign(panel=BOUND, series=NOISY_TREE, cells=self.cells, seed=0)
        laws = laws.assign(metric="WorstError", epsilon=self.epsilon, truth_public=True)
        return pd.concat([rows, shares, laws], ignore_index=True)

    def bound(self, records):
        """What H̃'s worst error exceeds with probability at most δ, at any N: a union over all ranges.

        2ℓ Laplace(ℓ/α) each (ν²= max(terms, log)·b², exceeded by ν·√(8·log) with the log below).
        """
        levels = (self.cells - 1).bit_length() + 1
        terms = log(2 / (self.delta / (self.cells * (self.cells + 1) / 2)))
        spread = levels / self.epsilon * sqrt(max(2 * levels, terms))
        return spread * sqrt(8 * terms) + 0 * records

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors with the bound, over the size of the domain, and as a part of N."""
        title = f"n = {self.cells:,}, ε = {self.epsilon:g}"
        theory = (f"bound for the noisy tree (δ = {self.delta:g})", self.bound)
        middle = self.records[len(self.records) // 2]
        over_cells = {"panel": "worst", "records": middle}
        worst = {"panel": "worst", "cells": self.cells}
        useful = {"panel": "useful", "cells": self.cells}
        return [
            Panel(title, worst, "records", theory=theory),
            Panel(f"N = {middle:,}, ε = {self.epsilon:g}", over_cells, "cells"),
            Panel(f"n = {self.cells:,}: as a part of N", useful, "records"),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The consistent tree, which is not zeroed here, as it looks elsewhere."""
        return rows.assign(series=rows.series.replace(TREE_NOT_ZEROED, f"{BEST}, not zeroed"))

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The N that each accuracy needs, a column a method."""
        own = rows[(rows.panel == "useful") & (rows.cells == self.cells)]
        least = own.records.min()
        lines = []
        for accuracy in ACCURACIES:
            line = {"accuracy": accuracy}
            for series in (NOISY_TREE, TREE_NOT_ZEROED, *OTHERS):
                number = least_records(own[own.series == series], accuracy, 1 - self.delta)
                line[series] = format_number(number)
                if number <= least:
                    line[series] = f"at most {line[series]}"
                elif number == float("inf"):
                    line[series] = f"more than {format_number(own.records.max())}"
            lines.append(line)
        return pd.DataFrame(lines).set_index("accuracy")

    def best_buckets(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many buckets equi-depth had at each N and n."""
        best = rows[(rows.panel == "worst") & rows.series.isin(OTHERS)]
        return best.groupby(["series", "cells", "records"]).buckets.first().unstack()
