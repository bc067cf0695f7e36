"""Table 1 of Cormode et al. (2012): the share of non-empty cells in published tables of counts.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: Table 1 and Appendix A.
Read    We compare with the printed numbers, which may have an error of half of their last digit. If Table 1
        and Appendix A differ, we accept both.
Open    The density of a table of jobs by workplace and home depends on the distances between its places. So
        only the paper's own table can test the printed density. The paper does not print its extract of
        Census Income (IPUMS). UCI's extract of the same survey has the four attributes, but income has two
        classes instead of steps of $10,000. The warehouse data belong to AT&T. The paper does not say which
        people of Adult are counted. We count all people, or only those of the training file, with or without
        the people who have missing values.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from experiments.cormode2012.data import (
    ADULT,
    ADULT_TABLES,
    BLOCKS,
    CENSUS_BANDS,
    CENSUS_YEARS,
    COUNTIES,
    DATASETS,
    JUDGED,
    ONTHEMAP,
    TRACT2,
    TRACTS,
    PublishedTables,
    published_tables,
)
from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.figures import Figure, plots
from workbench.trials.claims import Finding, MissingPoints, Printed
from workbench.value import number, value

PAPER = {
    "density": (
        Printed("3–5 %; App. A: 5.1 %", 0.025, 0.055, at=ONTHEMAP),
        Printed("0.4–4 %; App. A: 3–5 %", 0.0035, 0.055, at=CENSUS_BANDS),
        Printed("0.14 %", 0.00135, 0.00145, at=ADULT, value=0.0014),
    ),
    "mean": (
        Printed("approximately 150", 145, 155, at=ONTHEMAP, value=150),
        Printed("9", 8.5, 9.5, at=ADULT, value=9),
    ),
}
# of Table 1, ± 1/2 digit
DENSITIES = (0.025, 0.055, 0.0035, 0.045, 0.00135, 0.00145, 0.0045, 0.025)
OF_ONTHEMAP = (JUDGED, TRACT2, TRACTS, BLOCKS, COUNTIES)


def _of(rows: pd.DataFrame, name: str) -> pd.Series:
    if name == ONTHEMAP and ONTHEMAP not in set(rows.name):
        name = JUDGED
    own = rows[rows.name == name]
    if own.empty:
        raise MissingPoints(f"the files of {name} are not at hand")
    first = own.iloc[0]
    return pd.concat([own.set_index("metric").value, first[["cells", "nonempty"]]])


def statistic_of(rows, level, of: str, statistic: str, low: float, high: float) -> Finding:
    """Check whether a statistic of a table is between `low` and `high`, the range that the paper prints."""
    x = _of(rows, of)[statistic]
    measured = f"{x:.2%}" if statistic == "density" else number(x, 4)
    return Finding(bool(low <= x <= high), measured)


def locations(rows, level) -> Finding:
    """Check whether the numbers of places and of pairs of places are as printed."""
    count = int(_of(rows, ONTHEMAP)["locations"])
    holds = count == 4001 and round(count**2 / 1e7, 1) == 1.6
    return Finding(holds, f"{count:,}, of which the square is {count**2:,}")


def variance(rows, level) -> Finding:
    """Check whether the standard deviation of the counts is larger than their mean, and whether 1 and 2 are
    the most frequent counts.
    """
    own = _of(rows, ONTHEMAP)
    wide = own["deviation"] > own["mean"]
    most = own["most frequent"], own["second most frequent"]
    measured = f"deviation {number(own['deviation'], 4)}, mean {number(own['mean'], 4)}; most frequent: "
    measured += (
        f"{most[0]:g} and {most[1]:g}; {own['share of 1 and 2']:.1%} of cells are 1 or 2"
    )
    return Finding(bool(wide and most == (1, 2)), measured)


def larger(rows, level) -> Finding:
    """Return how many times larger a full table is than the non-empty cells, for the printed densities."""
    return Finding(True, f"{1 / 0.02:.0f} to {1 / 0.005:.0f} times, of the printed densities")


def tens_to_thousands(rows, level) -> Finding:
    """Check whether, for the printed densities, full tables are tens to thousands of times larger than the
    non-empty cells.
    """
    least = 1 / max(DENSITIES)
    greatest = 1 / min(DENSITIES)
    holds = 10 <= least < 100 and greatest >= 1000
    return Finding(holds, f"from {least:.0f} to {greatest:.0f}, of the printed densities")


def spanned(rows, level) -> Finding:
    """Check whether all printed densities are between 0.1 % and 10 %."""
    holds = all(0.001 <= x <= 0.1 for x in DENSITIES)
    return Finding(holds, f"{min(DENSITIES):.2%} to {max(DENSITIES):.2%} are printed")


@value
class Table1(PublishedTables, Figure):
    """Statistics of published tables. Nothing in this figure is random."""

    title = "How sparse tables of counts are"
    headline = "In the paper's tables, 0.1 % to 10 % of the cells are not empty"
    rests_on = ("c-t1-r.2",)
    page = "Cormode et al., ICDT 2012, section 1, Table 1; section 4.3; Appendix A"

    data: tuple[str, ...] = published_tables(
        *(*OF_ONTHEMAP, CENSUS_BANDS, CENSUS_YEARS, *ADULT_TABLES), choices=tuple(DATASETS)
    )

    def datasets_run(self) -> list[Any]:
        """Return the available datasets."""
        return [*self.datasets().values()]

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with one row per available dataset and statistic."""
        rows = []
        for name, dataset in self.datasets().items():
            with warnings.catch_warnings():
                # of people who are left out, which the name says
                warnings.simplefilter("ignore")
                table = dataset.load()
            columns = {
                "name": name,
                "dataset": repr(dataset),
                "truth_public": dataset.truth_public,
                "cells": table.domain.size,
                "nonempty": len(table),
                "total": table.total,
            }
            rows += [columns | {"metric": m, "value": x} for m, x in _statistics(table).items()]
        return pd.DataFrame(rows)

    def plot(self, rows: pd.DataFrame):
        """Draw two statistics, the density and the mean count, with one mark per dataset."""
        fig, axes = plots.panels(1, 2, sharey=True)
        names = set(rows.name)
        twin = partial(replace, at=JUDGED)
        for (metric, printed), ax in zip(PAPER.items(), axes, strict=True):
            drawn = [p if p.at != ONTHEMAP or ONTHEMAP in names else twin(p) for p in printed]
            plots.marks(rows[rows.metric == metric], "name", ax, printed=drawn)
        return plots.legend(fig)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with our statistics and the printed ones. It has one row per dataset."""
        statistics = rows.pivot(index="name", columns="metric", values="value")
        table = rows.drop_duplicates("name").set_index("name")[["cells", "nonempty", "total"]]
        formats = {"density": "{:.2%}".format, "mean": lambda x: round(x, 1)}
        for metric, points in PAPER.items():
            printed = {point.at: point.says for point in points}
            printed[JUDGED] = printed[ONTHEMAP]
            printed |= dict.fromkeys(ADULT_TABLES, printed[ADULT])
            table[metric] = statistics[metric].map(formats[metric])
            table[f"{metric}, printed"] = table.index.map(printed).fillna("")
        return table


def _statistics(table: SparseTable) -> dict[str, Any]:
    """Return statistics of the non-empty cells of a table."""
    counts, times = np.unique(table.counts, return_counts=True)
    most = counts[np.argsort(-times, kind="stable")]
    return {
        "density": table.density,
        "mean": table.total / len(table),
        "deviation": table.counts.std(),
        "locations": max(table.domain.shape),
        "most frequent": most[0],
        "second most frequent": most[min(1, len(most) - 1)],
        "share of 1 and 2": (table.counts <= 2).mean(),
    }
