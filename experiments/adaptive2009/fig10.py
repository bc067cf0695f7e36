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

from experiments.adaptive2009 import fig8_9 as fig8_9
from experiments.adaptive2009.fig8_9 import BASIC, IMPROVED, LOG, NAMES, NEAR, TREE
from workbench import Trial
from workbench.claims import Claim, Finding, all_of, decide, mean_curve
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
EPSILON = 1.0
FREQUENT = 500
FREQUENCIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LISTED = 32

PAPER: dict = {}  # counts of searches that nobody has

REAL = "RealFraction"
LIST = "Count"
ENDED = f"{IMPROVED}, known to end"


def datasets(profile: str) -> dict[str, Any]:
    """Surnames, if their files are here, and the twin."""
    names = fig8_9.surnames(THINNED[profile])
    twin = {LOG: QueryLogTwin(QUERIES[profile])}
    return {NAMES: names} | twin if names else twin


def mechanisms() -> dict[str, Any]:
    """By the names of their series."""
    improved, _, basic, tree = fig8_9.mechanisms(EPSILON, total=1)
    return {IMPROVED: improved, BASIC: basic, TREE: tree}


def rows(profile: str, store) -> pd.DataFrame:
    """How many of the strings that appear at least `least` times are real; and the list.

    The list is of the first release of the improved histogram, `string` with its `value` appearances
    and how often the corpus has it, `true`.
    """
    corpora = []
    for name, dataset in datasets(profile).items():
        corpus = dataset.load()
        frames = []
        for series, mechanism in mechanisms().items():
            for seed in range(SEEDS[profile]):
                frames += _measured(Trial(dataset, mechanism, seed), corpus, series)
        columns = dict(panel=name, dataset=repr(dataset), truth_public=dataset.truth_public)
        corpora.append(pd.concat(frames, ignore_index=True).assign(**columns))
    return pd.concat(corpora, ignore_index=True)


def _measured(trial: Trial, corpus: Records, series: str) -> list[pd.DataFrame]:
    release = trial.release(corpus)
    columns = dict(
        mechanism=type(trial.mechanism).__name__,
        epsilon=EPSILON,
        seed=trial.seed,
        released=len(release.estimate),
        trial=repr(trial),
        by_theorem=release.by_theorem,
    )
    frames = [_real_shares(release.estimate, corpus, True).assign(series=series)]
    if series == IMPROVED:
        frames.append(_real_shares(release.estimate, corpus, False).assign(series=ENDED))
    frames = [frame.assign(metric=REAL, **columns) for frame in frames]
    if trial.seed == 0 and series == IMPROVED:
        frames.append(_list(release.estimate, corpus).assign(series=series, **columns))
    return frames


def _real_shares(leaves: Leaves, corpus: Records, prefixes: bool) -> pd.DataFrame:
    """Which part of the strings of at least each frequency the corpus has, and how many they are."""
    _, counts, true_counts = match_strings(corpus, leaves, prefixes)
    shares = []
    for least in FREQUENCIES:
        real = true_counts[counts >= least] > 0
        share = float(real.mean()) if len(real) else np.nan
        shares.append(dict(least=least, value=share, strings=len(real)))
    return pd.DataFrame(shares)


def _list(leaves: Leaves, corpus: Records) -> pd.DataFrame:
    """The first strings that appear so often."""
    texts = corpus.hierarchy.texts
    keys, counts, true_counts = match_strings(corpus, leaves, prefixes=True)
    first = np.flatnonzero(counts >= FREQUENT)[:LISTED]  # keys are in order
    ended_keys, ended_counts, _ = match_strings(corpus, leaves)
    ended = set(texts(ended_keys[:, ended_counts >= FREQUENT]))
    strings = texts(keys[:, first])
    columns = dict(string=strings, true=true_counts[first], ended=[s in ended for s in strings])
    return pd.DataFrame(columns).assign(value=counts[first], metric=LIST)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A panel a dataset."""
    near = ("95 %", lambda x: NEAR + 0 * x)
    return [
        Panel(name, {"panel": name, "metric": REAL}, "least", log="x", theory=near)
        for name in rows.panel.unique()
    ]


def frequent_strings(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The list, as Figure 10 has it, beside the truth."""
    strings = rows[(rows.panel == name) & (rows.metric == LIST)]
    titles = {"value": "synthetic", "true": "in the data", "ended": "known to end"}
    table = strings.set_index("string")[[*titles]].rename(columns=titles)
    return table.astype({"synthetic": int, "in the data": int})


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """How many strings appear at least 500 times, and which part of them is real."""
    frequent = rows[(rows.metric == REAL) & (rows.least == FREQUENT)]
    means = frequent.groupby(["panel", "series"], sort=False)[["strings", "value"]].mean()
    real = means.value.map(lambda x: f"{100 * x:.2f} %")
    table = pd.DataFrame({"strings": means.strings.map("{:,.0f}".format), "real": real})
    return table.rename_axis(["dataset", "technique"])


def _frequent_are_real(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        real = mean_curve(rows, "least", series=IMPROVED, panel=name, metric=REAL).loc[FREQUENT]
        if np.isnan(real["mean"]):
            return Finding(None, "", f"no string of {name} appears so often", testable=False)
        ended = mean_curve(rows, "least", series=ENDED, panel=name, metric=REAL).loc[FREQUENT]
        holds = decide(real.low >= NEAR, real.high < NEAR)
        measured = f"{real['mean']:.2%}; of those known to end {ended['mean']:.2%}"
        parts[name] = Finding(holds, measured, if_unsettled=bool(real["mean"] >= NEAR))
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-10",
        "At ε = 1 the synthetic strings that appear at least 500 times are real strings.",
        _frequent_are_real,
    ),
)
