"""Synthetic data via differential privacy (2009), Figure 10: synthetic strings that appear often.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): appendix B, Figure 10.
Read    the list itself: 59 strings from "aa route finder" to "ad aware", and their counts.
Open    The searches are not public: the surnames of 266 million people, and a made-up log of as many
        searches as the paper's, so that 500 appearances are as many as in print. ε, thresholds and what
        counts as a string are those of Figures 8 and 9. What is listed here is what comes first in the
        order of the symbols.
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

from experiments.adaptive2009._strings import NEAR, Strings
from experiments.adaptive2009._techniques import IMPROVED
from workbench import DP, Sweep
from workbench.claims import Finding, decide, mean_curve
from workbench.claims.old import Claim, all_of
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import epsilon, seeds, whole, wholes
from workbench.mechanisms import PrivTree
from workbench.metrics import match_strings
from workbench.plots import Panel
from workbench.records import Records
from workbench.value import value

FREQUENT = 500
REAL = "RealFraction"
LIST = "Count"
ENDED = f"{IMPROVED}, known to end"


@value
class RealStrings:
    """Which part of the strings that appear at least `frequencies` times the corpus has."""

    frequencies: tuple[int, ...]
    prefixes: bool

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """A row a frequency, `least`, with how many `strings` they are."""
        _, counts, true_counts = match_strings(truth, estimate, self.prefixes)
        rows = []
        for least in self.frequencies:
            real = true_counts[counts >= least] > 0
            share = float(real.mean()) if len(real) else np.nan
            rows.append(dict(metric=REAL, least=least, value=share, strings=len(real)))
        return pd.DataFrame(rows).assign(prefixes=self.prefixes)


@value
class FrequentStrings:
    """The first `listed` strings that appear at least `least` times, in the order of the symbols."""

    least: int
    listed: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """A row a `string`: its appearances, those in `true`, and whether it is known to end."""
        texts = truth.hierarchy.texts
        keys, counts, true_counts = match_strings(truth, estimate, prefixes=True)
        first = np.flatnonzero(counts >= self.least)[: self.listed]  # keys are in order
        ended_keys, ended_counts, _ = match_strings(truth, estimate)
        ended = set(texts(ended_keys[:, ended_counts >= self.least]))
        strings = texts(keys[:, first])
        columns = dict(string=strings, true=true_counts[first], value=counts[first])
        ends = [string in ended for string in strings]
        return pd.DataFrame(columns).assign(ended=ends, metric=LIST)


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


@value
class Fig10(Strings, Figure):
    """How many frequent strings are real, a panel a corpus; and the list."""

    title = "Synthetic strings that appear often, and whether they are real"
    page = "adaptive2009, appendix B, Figure 10"
    quick = {"people": 0.05, "searches": 1_000_000, "seeds": 5}
    claims = CLAIMS

    epsilon: float = epsilon(1.0)
    frequent: int = whole(FREQUENT, "appearances of listed strings, at least", unit="times")
    listed: int = whole(32, "strings of the list", kind=UNPRINTED)
    frequencies: tuple[int, ...] = wholes(
        (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
        "appearances, at least",
        unit="times",
        kind=UNPRINTED,
    )
    searches: int = whole(90_000_000, "searches of the twin", 1000, 10**8, kind=EFFORT)
    seeds: int = seeds(3)

    def sweeps(self) -> dict[str, Sweep]:
        """The techniques; and the list, of the first release of the improved histogram."""
        sweeps = {}
        improved = self.improved(self.epsilon)
        others = [self.basic(self.epsilon), PrivTree(DP(self.epsilon))]
        frequencies = tuple(sorted({*self.frequencies, self.frequent}))
        printed = RealStrings(frequencies, prefixes=True)
        ended = RealStrings(frequencies, prefixes=False)
        strings = FrequentStrings(self.frequent, self.listed)
        for name, corpus in self.corpora().items():
            both = Sweep([corpus], [improved], [printed, ended], self.seeds)
            sweeps[f"{name}, improved"] = both
            sweeps[f"{name}, others"] = Sweep([corpus], others, [printed], self.seeds)
            sweeps[f"{name}, list"] = Sweep([corpus], [improved], [strings], seeds=1)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """A panel a corpus; what is known to end is a series of its own."""
        rows = super().rows(store)
        ended = rows.prefixes.eq(False)
        panel = rows.panel.str.partition(", ")[0]
        return rows.assign(panel=panel, series=rows.mechanism_name.mask(ended, ENDED))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a dataset."""
        near = ("95 %", lambda x: NEAR + 0 * x)
        return [
            Panel(name, {"panel": name, "metric": REAL}, "least", log="x", theory=near)
            for name in rows.panel.unique()
        ]

    def frequent_strings(self, rows: pd.DataFrame, name: str) -> pd.DataFrame:
        """The list, as Figure 10 has it, beside the truth."""
        strings = rows[(rows.panel == name) & (rows.metric == LIST)]
        titles = {"value": "synthetic", "true": "in the data", "ended": "known to end"}
        table = strings.set_index("string")[[*titles]].rename(columns=titles)
        return table.astype({"synthetic": int, "in the data": int})

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many strings appear at least 500 times, and which part of them is real."""
        frequent = rows[(rows.metric == REAL) & (rows.least == FREQUENT)]
        means = frequent.groupby(["panel", "series"], sort=False)[["strings", "value"]].mean()
        real = means.value.map(lambda x: f"{100 * x:.2f} %")
        table = pd.DataFrame({"strings": means.strings.map("{:,.0f}".format), "real": real})
        return table.rename_axis(["dataset", "technique"])
