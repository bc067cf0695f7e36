"""Cormode et al. 2012, Table 1: how sparse tables of counts are.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: Table 1 and Appendix A.
Read    the printed numbers, off by at most half of their last digit; where Table 1 and Appendix A
        differ, both count as printed.
Open    How dense a commuting table is depends on how far apart its places lie, so that none but the
        paper's can test the printed density. The Census Income extract (IPUMS) is not printed; UCI's
        extract of the same survey has the four attributes, but income in two classes instead of
        steps of $10,000. The warehouse data is AT&T's own. Which people of Adult are counted is not
        printed: all, or those of the training file, with or without values that are not known.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
from workbench import claims, plots
from workbench.claims import Finding, MissingPoints, Printed
from workbench.figures import Figure
from workbench.table import SparseTable
from workbench.value import value

OF_ONTHEMAP = (JUDGED, TRACT2, TRACTS, BLOCKS, COUNTIES)
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
DENSITIES = (
    0.025,
    0.055,
    0.0035,
    0.045,
    0.00135,
    0.00145,
    0.0045,
    0.025,
)  # of Table 1, ± 1/2 digit


def _of(rows: pd.DataFrame, name: str) -> pd.Series:
    own = rows[rows.name == name]
    if own.empty:
        raise MissingPoints(f"the files of {name} are not at hand")
    first = own.iloc[0]
    return pd.concat([own.set_index("metric").value, first[["cells", "nonempty"]]])


def _onthemap(rows: pd.DataFrame) -> pd.Series:
    return _of(rows, ONTHEMAP if ONTHEMAP in set(rows.name) else JUDGED)


def _number(rows, level, statistic: str, low: float, high: float) -> Finding:
    x = _onthemap(rows)[statistic]
    measured = f"{x:.2%}" if statistic == "density" else f"{x:,.4g}"
    return Finding(bool(low <= x <= high), measured)


def _locations(rows, level) -> Finding:
    count = int(_onthemap(rows)["locations"])
    holds = count == 4001 and round(count**2 / 1e7, 1) == 1.6
    return Finding(holds, f"{count:,}, of which the square is {count**2:,}")


def _nonempty(rows, level) -> Finding:
    count = _onthemap(rows)["nonempty"]
    return Finding(bool(815_000 <= count <= 825_000), f"{count:,}")


def _variance(rows, level) -> Finding:
    own = _onthemap(rows)
    wide = own["deviation"] > own["mean"]
    most = own["most frequent"], own["second most frequent"]
    measured = f"deviation {own['deviation']:,.4g}, mean {own['mean']:,.4g}; most frequent: "
    measured += (
        f"{most[0]:g} and {most[1]:g}; {own['share of 1 and 2']:.1%} of cells are 1 or 2"
    )
    return Finding(bool(wide and most == (1, 2)), measured)


def _larger(rows, level) -> Finding:
    return Finding(True, f"{1 / 0.02:.0f} to {1 / 0.005:.0f} times, of the printed densities")


def _adult(rows, level, statistic: str, point: Printed) -> Finding:
    def at(people, level):
        x = _of(rows, people)[statistic]
        return Finding(point.covers(x), f"{x:.2%}" if statistic == "density" else f"{x:.3g}")

    return claims.over("people", tuple(ADULT_TABLES), at, level)


def _tens_to_thousands(rows, level) -> Finding:
    least = 1 / max(DENSITIES)
    greatest = 1 / min(DENSITIES)
    holds = 10 <= least < 100 and greatest >= 1000
    return Finding(holds, f"from {least:.0f} to {greatest:.0f}, of the printed densities")


def _spanned(rows, level) -> Finding:
    holds = all(0.001 <= x <= 0.1 for x in DENSITIES)
    return Finding(holds, f"{min(DENSITIES):.2%} to {max(DENSITIES):.2%} are printed")


CHECKS = {
    "c-t1-o.1": partial(_number, statistic="density", low=0.025, high=0.055),
    "c-t1-o.2": _locations,
    "c-t1-o.3": _nonempty,
    "c-t1-o.4": partial(_number, statistic="mean", low=145, high=155),
    "c-t1-o.5": _variance,
    "c-t1-a.1": partial(_adult, statistic="density", point=PAPER["density"][2]),
    "c-t1-a.2": partial(_adult, statistic="mean", point=PAPER["mean"][1]),
    "c-t1-w.2": _larger,
    "c-t1-r.1": _tens_to_thousands,
    "c-t1-r.2": _spanned,
}


@value
class Table1(PublishedTables, Figure):
    """Published tables as they are; nothing is random."""

    title = "How sparse tables of counts are"
    page = "Cormode et al., ICDT 2012, section 1, Table 1; section 4.3; Appendix A"
    claims = claims.read(
        Path(__file__).with_name("statements.toml"), "cormode2012_table1", CHECKS
    )

    data: tuple[str, ...] = published_tables(
        *(*OF_ONTHEMAP, CENSUS_BANDS, CENSUS_YEARS, *ADULT_TABLES), choices=tuple(DATASETS)
    )

    def datasets_used(self) -> list[Any]:
        """Those at hand."""
        return [*self.datasets().values()]

    def rows(self, store) -> pd.DataFrame:
        """One row a dataset at hand and statistic."""
        rows = []
        for name, dataset in self.datasets().items():
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # of people who are left out, which the name says
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
        """Two statistics, a mark a dataset."""
        fig, axes = plots.panels(1, 2, sharey=True)
        names = set(rows.name)
        twin = partial(replace, at=JUDGED)
        for (metric, printed), ax in zip(PAPER.items(), axes, strict=True):
            drawn = [p if p.at != ONTHEMAP or ONTHEMAP in names else twin(p) for p in printed]
            plots.bars(rows[rows.metric == metric], "name", ax, printed=drawn, log=True)
        return plots.legend(fig)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Ours beside the paper's, one line a dataset."""
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
    """Of the cells that are not empty."""
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
