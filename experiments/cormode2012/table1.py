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
from experiments.cormode2012.table1_claims import CHECKS, PAPER
from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.figures import Figure, plots
from workbench.trials import claims
from workbench.value import value

OF_ONTHEMAP = (JUDGED, TRACT2, TRACTS, BLOCKS, COUNTIES)


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
