"""Synthetic data via differential privacy (2009), Figure 10: synthetic strings that appear often.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): appendix B, Figure 10.
Read    the list itself: 59 strings from "aa route finder" to "ad aware", and their counts.
Open    The searches are not public: a made-up log of as many searches as the paper's decides, so that 500
        appearances are as many as in print; of fewer searches nothing is decided. The surnames of 266
        million people stand beside. Whose ε it is, thresholds and what counts as a string are as in
        Figures 8 and 9. What is listed here is what comes first in the order of the symbols.
        Beside the improved histogram, not judged: only its strings that are known to end; the basic
        histogram, and PrivTree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.adaptive2009._leaves_in_parts import in_parts
from experiments.adaptive2009._real_strings import (
    BY_SYMBOL,
    LIST,
    REAL,
    FrequentStrings,
    RealBySymbol,
    RealStrings,
)
from experiments.adaptive2009._strings import LOG, SYMBOLS, Strings, of_log
from experiments.adaptive2009._techniques import IMPROVED
from experiments.adaptive2009._unprinted import basic, check_over, improved
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import PrivTree
from workbench.trials.claims import EVERYWHERE, OFTEN, Finding, check_between, means
from workbench.value import value

FREQUENT = 500
FEWEST = 10  # strings of a first symbol
TREND = 0.75
ENDED = f"{IMPROVED}, known to end"
MANY_LEAVES = "total ln k", "each ln k"  # hundreds of millions: in parts, for memory


def _printed(rows, metric: str) -> pd.DataFrame:
    """The improved histogram on the log's twin, beginnings among its strings."""
    own = of_log(rows)
    return own[(own.metric == metric) & (own.series == IMPROVED)]


def check_real(rows, level) -> Finding:
    """Whether three quarters of the strings are whole queries."""

    def check(own, level):
        own = own[own.value.notna()]
        if own.empty:
            return Finding(None, f"no string appears {FREQUENT} times")
        finding = _check_trend(own, "least", level)
        begins = f"beginnings of queries {own.begins.mean():.2%}"
        return replace(finding, measured=f"{finding.measured}; {begins}")

    own = _printed(rows, REAL)
    return check_over(check, own[own["least"] == FREQUENT], level)


def check_across(rows, level) -> Finding:
    """The same for each first symbol, of three quarters of the symbols."""

    def check(own, level):
        strings = own.groupby("symbol").strings
        enough = (strings.min() >= FEWEST) & (strings.size() == own.seed.nunique())
        own = own[own.symbol.map(enough)]
        if own.empty:
            return Finding(None, f"no symbol begins {FEWEST} such strings in every run")
        return _check_trend(own, "symbol", level, OFTEN)

    return check_over(check, _printed(rows, BY_SYMBOL), level)


def _check_trend(rows, by: str, level, share: float = EVERYWHERE) -> Finding:
    numbers = means(rows, IMPROVED, by)
    return check_between(numbers, level, low=TREND, share=share, words="three quarters real")


@value
class Fig10(Strings, Figure):
    """How many frequent strings are real, a panel a corpus; and the list."""

    title = "Synthetic strings that appear often, and whether they are real"
    page = "adaptive2009, appendix B, Figure 10"
    quick = {
        "people": 0.05,
        "searches": 1_000_000,
        "settings": ("total 3 ln k", "total k"),
        "seeds": 3,
    }
    sized_by = ("searches",)

    epsilon: float = epsilon(1.0)
    frequent: int = whole(FREQUENT, "appearances of listed strings, at least", unit="times")
    listed: int = whole(32, "strings of the list", kind=UNPRINTED)
    frequencies: tuple[int, ...] = whole(
        (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
        "appearances, at least",
        unit="times",
        kind=UNPRINTED,
    )
    searches: int = whole(90_000_000, "searches of the twin", 1000, 10**8, kind=EFFORT)
    seeds: int = seeds(12)

    def sweeps(self) -> dict[str, Sweep]:
        """The improved histogram at each setting; what stands beside it, and the list, of what is drawn."""
        sweeps = {}
        frequencies = tuple(sorted({*self.frequencies, self.frequent}))
        printed = RealStrings(frequencies, prefixes=True)
        ended = RealStrings(frequencies, prefixes=False)
        strings = FrequentStrings(self.frequent, self.listed)
        drawn = self.drawn()
        for name, corpus in self.corpora().items():
            for setting in self.settings_of(name):
                histogram = improved(self.epsilon, setting, SYMBOLS)
                metrics = [printed, RealBySymbol(self.frequent)]
                if setting == drawn:
                    metrics.append(ended)
                elif setting in MANY_LEAVES:
                    histogram = in_parts(histogram)
                    metrics[0] = replace(printed, frequencies=(self.frequent,))
                key = f"{name}|{setting}|{self.epsilon}"
                sweeps[key] = Sweep([corpus], [histogram], metrics, self.seeds)
            made = [improved(self.epsilon, drawn, SYMBOLS)]
            key = f"{name}|{drawn}|{self.epsilon}"
            sweeps[f"{key}|list"] = Sweep([corpus], made, [strings], seeds=1)
            others = [
                basic(self.epsilon, drawn, SYMBOLS, self.depth),
                PrivTree(DP(self.epsilon)),
            ]
            sweeps[f"{key}|others"] = Sweep([corpus], others, [printed], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """What is known to end is a series of its own."""
        rows = super().rows(store)
        return rows.assign(series=rows.series.mask(rows.prefixes.eq(False), ENDED))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a dataset, of what is drawn."""
        trend = ("three quarters", lambda x: TREND + 0 * x)
        where = {"metric": REAL, "setting": self.drawn()}
        how: dict[str, Any] = dict(log="x", theory=trend)
        return [
            Panel(f"{name}, ε = {self.epsilon:g}", where | {"panel": name}, "least", **how)
            for name in sorted(rows.panel.unique(), key=LOG.__ne__)
        ]

    def frequent_strings(self, rows: pd.DataFrame, name: str) -> pd.DataFrame:
        """The list, as Figure 10 has it, beside the truth."""
        strings = rows[(rows.panel == name) & (rows.metric == LIST)]
        titles = {"value": "synthetic", "true": "in the data", "ended": "known to end"}
        table = strings.set_index("string")[[*titles]].rename(columns=titles)
        return table.astype({"synthetic": int, "in the data": int})

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many strings appear at least 500 times, and which part is real, or begins what is."""
        frequent = rows[(rows.metric == REAL) & (rows["least"] == FREQUENT)]
        place = ["panel", "series", "setting"]
        own = frequent.groupby(place, sort=False)[["strings", "value", "begins"]].mean()
        table = pd.DataFrame({"strings": own.strings.map("{:,.0f}".format)})
        table["real"] = own.value.map("{:.2%}".format)
        table["begin a real one"] = own.begins.map("{:.2%}".format)
        return table.rename_axis(["dataset", "technique", "ε, b"])
