"""Synthetic data via differential privacy (2009), Figure 10: synthetic strings that appear often.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): appendix B, Figure 10.
Read    the list itself: 59 strings from "aa route finder" to "ad aware", and their counts.
Open    The searches are not public: the surnames of 266 million people (one person in 20 in the quick
        profile), and a made-up log of as many searches as the paper's, 90 million (a million), so that
        500 appearances are as many as in print. ε, thresholds and what counts as a string are those of
        Figures 8 and 9. What is listed here is what comes first in the order of the symbols.
        Beside the improved histogram, not judged: only its strings that are known to end; the basic
        histogram, and PrivTree.
Words   frequent = at least 500 appearances, at ε = 1; real = the corpus has the string, at least once;
        are real strings = at least 95 % of the different synthetic strings, beginnings among them, as
        printed, in both datasets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments import adaptive2009_fig8_9 as fig8_9
from experiments.adaptive2009_fig8_9 import BASIC, IMPROVED, LOG, NAMES, NEAR, TREE
from workbench import Trial
from workbench.claims import Claim, Finding, all_of, mean_curve
from workbench.datasets import QueryLogTwin
from workbench.estimates import Leaves
from workbench.metrics import match_strings
from workbench.plots import Panel
from workbench.records import Records

TITLE = "Synthetic strings that appear often, and whether they are real"
PAGE = "adaptive2009, appendix B, Figure 10"
COLUMNS = 2
SEEDS = {"quick": 5, "paper": 3}
QUERIES = {"quick": 1_000_000, "paper": 90_000_000}
THINNED = {"quick": 20, "paper": 1}  # surnames
EPSILON, FREQUENT = 1.0, 500
FREQUENCIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LISTED = 32

PAPER: dict = {}  # counts of searches that nobody has

REAL, LIST = "RealFraction", "Count"
ENDED = f"{IMPROVED}, known to end"


def datasets(profile: str) -> dict[str, Any]:
    """Surnames, if they are at hand, and the twin."""
    names = fig8_9.surnames(THINNED[profile])
    found = {NAMES: names, LOG: QueryLogTwin(QUERIES[profile])}
    return {name: data for name, data in found.items() if data}


def mechanisms() -> dict[str, Any]:
    """By the names of their series."""
    ours, _, basic, tree = fig8_9.mechanisms(EPSILON, total=1)
    return {IMPROVED: ours, BASIC: basic, TREE: tree}


def rows(profile: str, store) -> pd.DataFrame:
    """How many of the strings that appear at least `least` times are real; and the list.

    The list is of the first release of the improved histogram, `string` with its `value` appearances
    and how often the corpus has it, `true`.
    """
    found = []
    for name, data in datasets(profile).items():
        records, some = data.load(), []
        for series, mechanism in mechanisms().items():
            for seed in range(SEEDS[profile]):
                trial = Trial(data, mechanism, seed)
                some += _measured(trial, records, series)
        about = dict(panel=name, dataset=repr(data), truth_public=data.truth_public)
        found.append(pd.concat(some, ignore_index=True).assign(**about))
    return pd.concat(found, ignore_index=True)


def _measured(trial: Trial, records: Records, series: str) -> list[pd.DataFrame]:
    release, found = trial.release(records), []
    about = dict(mechanism=type(trial.mechanism).__name__, epsilon=EPSILON, seed=trial.seed)
    about |= dict(released=len(release.estimate), trial=repr(trial))
    about |= dict(by_theorem=release.by_theorem)
    for name, prefixes in ((series, True), (ENDED, False))[: 2 if series == IMPROVED else 1]:
        keys, counts, held = match_strings(records, release.estimate, prefixes)
        told = [
            dict(least=n, value=_share(held[counts >= n]), strings=int((counts >= n).sum()))
            for n in FREQUENCIES
        ]
        found.append(pd.DataFrame(told).assign(series=name, metric=REAL, **about))
    if trial.seed == 0 and series == IMPROVED:
        found.append(_list(release.estimate, records).assign(series=series, **about))
    return found


def _list(leaves: Leaves, records: Records) -> pd.DataFrame:
    """The first strings that appear so often."""
    texts = records.hierarchy.texts
    keys, counts, held = match_strings(records, leaves, prefixes=True)
    first = np.flatnonzero(counts >= FREQUENT)[:LISTED]  # keys are in order
    whole, many, _ = match_strings(records, leaves)
    whole = set(texts(whole[:, many >= FREQUENT]))
    listed = texts(keys[:, first])
    about = dict(string=listed, true=held[first], ended=[text in whole for text in listed])
    return pd.DataFrame(about).assign(value=counts[first], metric=LIST)


def _share(held: np.ndarray) -> float:
    return float((held > 0).mean()) if len(held) else np.nan


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A panel a dataset."""
    near = ("95 %", lambda x: NEAR + 0 * x)
    return [
        Panel(name, {"panel": name, "metric": REAL}, "least", log="x", theory=near)
        for name in rows.panel.unique()
    ]


def frequent_strings(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The list, as Figure 10 has it, beside the truth."""
    some = rows[(rows.panel == name) & (rows.metric == LIST)]
    found = some[["string", "value", "true", "ended"]].set_axis(
        ["string", "synthetic", "in the data", "known to end"], axis=1
    )
    return found.astype({"synthetic": int, "in the data": int}).set_index("string")


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """How many strings appear at least 500 times, and which part of them is real."""
    some = rows[(rows.metric == REAL) & (rows.least == FREQUENT)]
    found = some.groupby(["panel", "series"], sort=False)[["strings", "value"]].mean()
    real = found.value.map(lambda x: f"{100 * x:.2f} %")
    told = pd.DataFrame({"strings": found.strings.map("{:,.0f}".format), "real": real})
    return told.rename_axis(["dataset", "technique"])


def _real(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        at = mean_curve(rows, "least", series=IMPROVED, panel=name, metric=REAL).loc[FREQUENT]
        if np.isnan(at["mean"]):
            return Finding(None, "", f"no string of {name} appears so often", testable=False)
        sure = True if at.low >= NEAR else False if at.high < NEAR else None
        strict = mean_curve(rows, "least", series=ENDED, panel=name, metric=REAL).loc[FREQUENT]
        words = f"{at['mean']:.2%}; of those known to end {strict['mean']:.2%}"
        parts[name] = Finding(sure, words, if_unsettled=bool(at["mean"] >= NEAR))
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-10",
        "At ε = 1 the synthetic strings that appear at least 500 times are real strings.",
        _real,
    ),
)
