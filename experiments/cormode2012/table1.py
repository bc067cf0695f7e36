"""Cormode et al. 2012, Table 1: how sparse tables of counts are.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: Table 1 and Appendix A.
Read    the printed numbers, off by at most half of their last digit; where Table 1 and Appendix A
        differ, both count as printed.
Open    How dense a commuting table is depends on how far apart its places lie, so that none of those
        of `data.py` can test the printed density. The Census Income extract (IPUMS) is not
        printed; UCI's extract of the same survey has the four attributes, but income in two classes
        instead of steps of $10,000. The warehouse data is AT&T's own.
Words   a density holds if it lies in the printed range, a mean count if it is within 1.25×.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from experiments.cormode2012.data import (
    ADULT,
    BLOCKS,
    CENSUS_BANDS,
    CENSUS_YEARS,
    COUNTIES,
    DATASETS,
    JUDGED,
    TRACT2,
    TRACTS,
    PublishedTables,
    published_tables,
)
from workbench import plots
from workbench.claims import Finding, Printed
from workbench.claims.old import Claim, all_of
from workbench.figures import Figure
from workbench.value import value

OF_ONTHEMAP = (JUDGED, TRACT2, TRACTS, BLOCKS, COUNTIES)
PAPER = {
    "density": (
        Printed("3–5 %; App. A: 5.1 %", 0.025, 0.0515, at=JUDGED),
        Printed("0.4–4 %; App. A: 3–5 %", 0.0035, 0.055, at=CENSUS_BANDS),
        Printed("0.14 %", 0.00135, 0.00145, at=ADULT, value=0.0014),
    ),
    "mean": (
        Printed.approximately("approximately 150", 150, 5, at=JUDGED),
        Printed.approximately("9", 9, 0.5, at=ADULT),
    ),
}


def _matches(rows: pd.DataFrame, name: str) -> Finding:
    if name not in set(rows.name):
        return Finding(None, "", f"{name}: the files are not at hand", testable=False)
    parts = {}
    values = rows[rows.name == name].set_index("metric").value
    for metric, points in PAPER.items():
        for point in points:
            if point.at == name:
                value = values[metric]
                measured = f"{value:.2%}" if metric == "density" else f"{value:.3g}"
                parts[f"{metric} {point.says}"] = Finding(point.covers(value), measured)
    return all_of(parts)


def _onthemap(rows: pd.DataFrame) -> Finding:
    statistics = rows.pivot(index="name", columns="metric", values="value")
    measured = []
    for name in rows.name.unique():
        if name in OF_ONTHEMAP:
            density, mean = statistics.loc[name, ["density", "mean"]]
            measured.append(f"{name}: {density:.2%} non-empty, mean {mean:.4g}")
    why = (
        "The 47 states of 2008 are not at hand, and a twin built to the numbers proves nothing."
    )
    return Finding(None, "; ".join(measured), why, testable=False)


CLAIMS = (
    Claim(
        "c-t1-o",
        "OnTheMap has a density of 3–5 % (Appendix A: 5.1 %, mean count about 150).",
        _onthemap,
    ),
    Claim(
        "c-t1-c",
        "Census Income has a density of 0.4–4 % (Appendix A: 3–5 %) on age/5 years, birthplace, "
        "occupation, income/$10,000.",
        partial(_matches, name=CENSUS_BANDS),
        "UCI's extract of the survey has income in two classes, which makes the space small; by single "
        "years of age it has 4.2 %.",
    ),
    Claim(
        "c-t1-a",
        "Adult has a density of 0.14 % and a mean count of 9 on seven categorical attributes.",
        partial(_matches, name=ADULT),
        "UCI's file has 48,842 people; 0.14 % of 907,200 cells with a mean of 9 would be 11,000.",
    ),
)


@value
class Table1(PublishedTables, Figure):
    """Published tables as they are; nothing is random."""

    title = "How sparse tables of counts are"
    page = "Cormode et al., ICDT 2012, section 1, Table 1; Appendix A"
    claims = CLAIMS

    data: tuple[str, ...] = published_tables(
        *(*OF_ONTHEMAP, CENSUS_BANDS, CENSUS_YEARS, ADULT), choices=tuple(DATASETS)
    )

    def datasets_used(self) -> list[Any]:
        """Those at hand."""
        return [*self.datasets().values()]

    def rows(self, store) -> pd.DataFrame:
        """One row a dataset at hand and statistic."""
        statistics = []
        for name, dataset in self.datasets().items():
            table = dataset.load()
            columns = {
                "name": name,
                "dataset": repr(dataset),
                "truth_public": dataset.truth_public,
                "cells": table.domain.size,
                "nonempty": len(table),
                "total": table.total,
            }
            statistics.append(columns | {"metric": "density", "value": table.density})
            statistics.append(columns | {"metric": "mean", "value": table.total / len(table)})
        return pd.DataFrame(statistics)

    def plot(self, rows: pd.DataFrame):
        """Two statistics, a mark a dataset."""
        fig, axes = plots.panels(1, 2, sharey=True)
        for (metric, printed), ax in zip(PAPER.items(), axes, strict=True):
            plots.bars(rows[rows.metric == metric], "name", ax, printed=printed, log=True)
        return plots.legend(fig)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Ours beside the paper's, one line a dataset."""
        statistics = rows.pivot(index="name", columns="metric", values="value")
        table = rows.drop_duplicates("name").set_index("name")[["cells", "nonempty", "total"]]
        formats = {"density": "{:.2%}".format, "mean": lambda x: round(x, 1)}
        for metric, points in PAPER.items():
            printed = {point.at: point.says for point in points}
            table[metric] = statistics[metric].map(formats[metric])
            table[f"{metric}, printed"] = table.index.map(printed).fillna("")
        return table
