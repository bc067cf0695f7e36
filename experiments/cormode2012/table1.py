"""Cormode et al. 2012, Table 1: how sparse tables of counts are.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: Table 1 and Appendix A.
Read    the printed numbers, off by at most half of their last digit; where Table 1 and Appendix A
        differ, both count as printed.
Open    OnTheMap in 47 states (2008, version 4) is not at hand. Beside it: one state of a later
        version, the whole country by county from another survey, and a twin built to the printed
        numbers. How dense a commuting table is depends on how far apart its places lie, so that
        none of the three can test the printed density. The Census Income extract (IPUMS) is not
        printed; UCI's extract of the same survey has the four attributes, but income in two classes
        instead of steps of $10,000. The warehouse data is AT&T's own.
Words   a density holds if it lies in the printed range, a mean count if it is within 1.25×.
"""

from __future__ import annotations

import pandas as pd

from workbench.claims import Claim, Finding, Printed, all_of
from workbench.datasets import Adult, CensusIncome, CommutingFlows, OnTheMap, OnTheMapTwin

TITLE = "How sparse tables of counts are"
PAGE = "Cormode et al., ICDT 2012, section 1, Table 1; Appendix A"
CENSUS = ("Age", "Birthplace", "Occupation", "Income")
DATASETS = {
    "OnTheMap twin, 4001 places": OnTheMapTwin(),
    "OnTheMap Rhode Island, tract2": OnTheMap(level="tract2"),
    "OnTheMap Rhode Island, tracts": OnTheMap(level="tract"),
    "OnTheMap Rhode Island, blocks": OnTheMap(level="block"),
    "commuting flows, US counties": CommutingFlows(),
    "Census Income (UCI), age/5": CensusIncome(CENSUS, age_band=5),
    "Census Income (UCI), age/1": CensusIncome(CENSUS),
    "Adult, seven attributes": Adult(),
}

PAPER = {
    "density": (
        Printed("3–5 %; App. A: 5.1 %", 0.025, 0.0515, at="OnTheMap twin, 4001 places"),
        Printed("0.4–4 %; App. A: 3–5 %", 0.0035, 0.055, at="Census Income (UCI), age/5"),
        Printed("0.14 %", 0.00135, 0.00145, at="Adult, seven attributes", value=0.0014),
    ),
    "mean": (
        Printed.approximately("approximately 150", 150, 5, at="OnTheMap twin, 4001 places"),
        Printed.approximately("9", 9, 0.5, at="Adult, seven attributes"),
    ),
}


def rows(profile: str, store) -> pd.DataFrame:
    """One row a dataset at hand and statistic; nothing is random, so the profile does not matter."""
    statistics = []
    for name, dataset in DATASETS.items():
        try:
            table = dataset.load()
        except FileNotFoundError:
            continue
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


def missing_datasets(rows: pd.DataFrame) -> list[str]:
    """The datasets whose files are not at hand, so that the rows lack them."""
    return [f"{name}: not at hand" for name in DATASETS if name not in set(rows.name)]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Ours beside the paper's, one line a dataset."""
    statistics = rows.pivot(index="name", columns="metric", values="value")
    table = rows.drop_duplicates("name").set_index("name")[["cells", "nonempty", "total"]]
    formats = {"density": "{:.2%}".format, "mean": lambda x: round(x, 1)}
    for metric, points in PAPER.items():
        printed = {point.at: point.says for point in points}
        table[metric] = statistics[metric].map(formats[metric])
        table[f"{metric}, printed"] = table.index.map(printed).fillna("")
    return table


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
        if name.startswith(("OnTheMap", "commuting")):
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
        lambda rows: _matches(rows, "Census Income (UCI), age/5"),
        "UCI's extract of the survey has income in two classes, which makes the space small; by single "
        "years of age it has 4.2 %.",
    ),
    Claim(
        "c-t1-a",
        "Adult has a density of 0.14 % and a mean count of 9 on seven categorical attributes.",
        lambda rows: _matches(rows, "Adult, seven attributes"),
        "UCI's file has 48,842 people; 0.14 % of 907,200 cells with a mean of 9 would be 11,000.",
    ),
)
