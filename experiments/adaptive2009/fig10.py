"""Figure 10 of "Synthetic Data via Differential Privacy" (2009): synthetic strings that occur often.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): appendix B, Figure 10.
Read    We read the printed list: 59 strings from "aa route finder" to "ad aware", with their counts.
Open    The searches are not public. Statements are tested on a synthetic log with as many searches as the
        paper's, so that 500 occurrences mean the same as in the paper. With fewer searches, no statement is
        tested. For comparison, we use the surnames of 266 million people. The meaning of ε, the thresholds,
        and the definition of a string are those of Figures 8 and 9. Our list contains the first strings in
        the order of the symbols. Some curves are only for comparison: strings of the improved histogram that
        are known to end, the basic histogram, and PrivTree.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted
from experiments.adaptive2009.shared import (
    IMPROVED,
    LOG,
    SYMBOLS,
    Strings,
    basic,
    improved,
    of_log,
)
from workbench import DP, Sweep, noise
from workbench.compiled import pd
from workbench.data import Records
from workbench.data.frontier import LevelKeys
from workbench.estimates import Leaves
from workbench.estimates.release import Release
from workbench.figures import Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import ImprovedAdaptiveHistogram, PrivTree
from workbench.mechanisms.adaptive import noisy_leaves
from workbench.mechanisms.protocol import private_bound
from workbench.spaces import Keys, argsort_keys, keys_above, searchsorted_keys
from workbench.trials.claims import EVERYWHERE, OFTEN, Finding, check_between, means
from workbench.trials.metrics import match_strings
from workbench.value import value

REAL = "RealFraction"
BY_SYMBOL = "RealFractionBySymbol"
LIST = "Count"
_AT_ONCE = 2**22  # strings, so that copies of their keys take little beside all of them
FREQUENT = 500
FREQUENCIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
FEWEST = 10  # strings of a first symbol
TREND = 0.75
ENDED = f"{IMPROVED}, known to end"
MANY_LEAVES = "total ln k", "each ln k"  # hundreds of millions: in parts, for memory


# Leaves of which one range of keys at a time is in memory: the lowest thresholds make very many.


@dataclass(frozen=True, eq=False)
class LeavesInParts:
    """Leaves of an adaptive histogram, in parts of which one at a time is in memory. There is one part per
    child of the root. The noisy counts of a part are computed again whenever it is read, with the same noise.

    `stopped` contains the keys of the nodes that are not split, by level and in the order of keys.
    """

    records: Records
    stopped: list[LevelKeys]
    l1: float
    epsilon: float
    rng: np.random.Generator

    def __len__(self) -> int:
        return sum(keys.shape[1] for _, keys in self.stopped)

    def __iter__(self) -> Iterator[Leaves]:
        rng = deepcopy(self.rng)
        digits = self.records.hierarchy.digits
        children = np.arange(digits.radices[0])
        starts = digits.child(0, np.repeat(digits.root(), len(children), axis=1), children)
        of_nodes = [_parts(keys, starts) for _, keys in self.stopped]
        for i, own in enumerate(_parts(self.records.keys, starts)):
            counts = None if self.records.counts is None else self.records.counts[own]
            records = replace(self.records, keys=self.records.keys[:, own], counts=counts)
            nodes = [
                (level, keys[:, parts[i]])
                for (level, keys), parts in zip(self.stopped, of_nodes, strict=True)
            ]
            yield noisy_leaves(records, nodes, self.l1, self.epsilon, rng)[0]


@value
class InParts(ImprovedAdaptiveHistogram):
    """Improved adaptive histogram whose leaves are counted in parts, because all of them would not fit in
    memory.
    """

    def __call__(self, records: Records, rng: np.random.Generator) -> Release:
        """Release leaves that can only be read in their order, but as often as needed."""
        bound = private_bound(records)
        l1, epsilon = bound.l1, self.budgets().leaves
        stopped, structure = self._structure(records, l1, rng)
        for i, (level, keys) in enumerate(stopped):
            stopped[i] = level, keys[:, argsort_keys(keys)]
        none = np.zeros(0, np.int64)
        receipt = noise.geometric(none, l1=l1, epsilon=epsilon, rng=rng)[1]
        leaves = LeavesInParts(records, stopped, l1, epsilon, rng)
        return Release(leaves, (structure, receipt), self, bound)


def in_parts(histogram: ImprovedAdaptiveHistogram) -> InParts:
    """Return the same mechanism in the variant that counts its leaves in parts."""
    return InParts(
        **{field.name: getattr(histogram, field.name) for field in fields(histogram)}
    )


def _parts(keys: Keys, starts: Keys) -> list[slice]:
    """Return slices of sorted keys, each from one start to the next."""
    ends = np.append(searchsorted_keys(keys, starts), keys.shape[1])
    return [slice(*part) for part in pairwise(ends)]


# What figure 10 asks of synthetic strings: whether the corpus has them, and which they are.


@value
class RealStrings:
    """Metric: share of the synthetic strings with at least a given frequency that the true data also contain
    as a whole.
    """

    frequencies: tuple[int, ...]
    prefixes: bool

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per frequency. The column `least` is the frequency,
        `strings` is the number of strings, and `begins` is the share of strings with which a true string
        begins.
        """
        strings = _frequent(truth, estimate, min(self.frequencies), self.prefixes)
        rows = []
        for least in self.frequencies:
            own = strings[strings["count"] >= least]
            row = dict(least=least, value=own.real.mean(), strings=len(own))
            rows.append(row | {"begins": own.begins.mean()})
        return pd.DataFrame(rows).assign(metric=REAL, prefixes=self.prefixes)


@value
class RealBySymbol:
    """Metric: share of the synthetic strings with at least `least` occurrences that the true data also
    contain, by first symbol.
    """

    least: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per first symbol of the strings."""
        real = _frequent(truth, estimate, self.least, True).groupby("symbol").real
        rows = pd.DataFrame({"value": real.mean().astype(float), "strings": real.size()})
        return rows.rename_axis("symbol").reset_index().assign(metric=BY_SYMBOL)


@value
class FrequentStrings:
    """Metric: the first `listed` synthetic strings with at least `least` occurrences, in the order of the
    symbols.
    """

    least: int
    listed: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per string, with its synthetic and its true number of
        occurrences, and whether it is known to end.
        """
        texts = truth.hierarchy.texts
        keys, counts, true_counts = match_strings(truth, estimate, prefixes=True)
        first = np.flatnonzero(counts >= self.least)[: self.listed]  # keys are in order
        ended_keys, ended_counts, _ = match_strings(truth, estimate)
        ended = set(texts(ended_keys[:, ended_counts >= self.least]))
        strings = texts(keys[:, first])
        columns = dict(string=strings, true=true_counts[first], value=counts[first])
        ends = [string in ended for string in strings]
        return pd.DataFrame(columns).assign(ended=ends, metric=LIST)


def _frequent(truth: Records, estimate: Any, least: int, prefixes: bool) -> pd.DataFrame:
    """Return the strings with at least `least` occurrences, with one row each. Leaves in parts are read one
    part at a time.
    """
    parts = estimate if isinstance(estimate, LeavesInParts) else [estimate]
    return pd.concat([_part_frequent(truth, part, least, prefixes) for part in parts])


def _part_frequent(truth: Records, part: Any, least: int, prefixes: bool) -> pd.DataFrame:
    """Return the frequent strings in one part of the leaves. The column `real` says whether the true data
    contain the string, `begins` whether a true string begins with it, and `symbol` is its first symbol.
    """
    if isinstance(part, Leaves):
        often = part.values >= least
        nodes = dict(levels=part.levels[often], keys=part.keys[:, often])
        part = replace(part, values=part.values[often], **nodes)
    keys, counts, true_counts = match_strings(truth, part, prefixes)
    symbols = truth.hierarchy.digits.digit(0, keys).astype(int)
    columns = {"count": counts, "real": true_counts > 0, "symbol": symbols}
    strings = pd.DataFrame(columns | {"begins": _begins(truth, keys)})
    return strings[strings["count"] >= least]


def _begins(truth: Records, keys) -> np.ndarray:
    """Return a mask of the given strings. It is True if a true string begins with the string."""
    parts = np.array_split(keys, max(1, keys.shape[1] // _AT_ONCE), axis=1)
    return np.concatenate([_part_begins(truth, part) for part in parts])


def _part_begins(truth: Records, keys) -> np.ndarray:
    """Return the mask of `_begins` for some of the strings. A true string begins with a string if the next
    true string in order does.
    """
    digits = truth.hierarchy.digits
    lengths = np.zeros(keys.shape[1], int)
    for level in range(digits.depth):
        lengths += digits.digit(level, keys) > 0
    first = searchsorted_keys(truth.keys, keys)
    begins = first < len(truth)
    last = digits.highest_keys(lengths, keys)[:, begins]
    begins[begins] = ~keys_above(truth.keys[:, first[begins]], last)
    return begins


def _printed(rows, metric: str) -> pd.DataFrame:
    """Return the results of the improved histogram on the synthetic log, where beginnings of strings count as
    strings.
    """
    own = of_log(rows)
    return own[(own.metric == metric) & (own.series == IMPROVED)]


def check_real(rows, level) -> Finding:
    """Check whether three quarters of the frequent synthetic strings are whole queries of the true data."""
    own = _printed(rows, REAL)
    own = own[(own["least"] == FREQUENT) & own.value.notna()]
    if own.empty:
        return Finding(None, f"no string appears {FREQUENT} times")
    finding = _check_trend(own, "least", level)
    begins = f"beginnings of queries {own.begins.mean():.2%}"
    return replace(finding, measured=f"{finding.measured}; {begins}")


def check_across(rows, level) -> Finding:
    """Check whether three quarters of the frequent synthetic strings are real for each first symbol, for at
    least three quarters of the symbols.
    """
    own = _printed(rows, BY_SYMBOL)
    strings = own.groupby("symbol").strings
    enough = (strings.min() >= FEWEST) & (strings.size() == own.seed.nunique())
    own = own[own.symbol.map(enough)]
    if own.empty:
        return Finding(None, f"no symbol begins {FEWEST} such strings in every run")
    return _check_trend(own, "symbol", level, OFTEN)


def _check_trend(rows, by: str, level, share: float = EVERYWHERE) -> Finding:
    numbers = means(rows, IMPROVED, by)
    return check_between(numbers, level, low=TREND, share=share, words="three quarters real")


@value
class Fig10(Strings, Figure):
    """Share of the frequent synthetic strings that are real, with one panel per corpus, and the list of such
    strings.
    """

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
    frequent: int = whole(FREQUENT, "smallest count of a listed string", unit="times")
    listed: int = unprinted(32, "number of listed strings")
    searches: int = effort(90_000_000, "searches of the stand-in", 1000, 10**8)
    seeds: int = seeds(12)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: the improved histogram at each setting, the methods for comparison, and
        the list for the drawn setting.
        """
        sweeps = {}
        frequencies = tuple(sorted({*FREQUENCIES, self.frequent}))
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
        """Return the figure's results. Strings that are known to end are a separate curve."""
        rows = super().rows(store)
        return rows.assign(series=rows.series.mask(rows.prefixes.eq(False), ENDED))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per corpus, for the drawn setting."""
        trend = ("three quarters", lambda x: TREND + 0 * x)
        where = {"metric": REAL, "setting": self.drawn()}
        how: dict[str, Any] = dict(log="x", theory=trend)
        return [
            Panel(f"{name}, ε = {self.epsilon:g}", where | {"panel": name}, "least", **how)
            for name in sorted(rows.panel.unique(), key=LOG.__ne__)
        ]

    def frequent_strings(self, rows: pd.DataFrame, name: str) -> pd.DataFrame:
        """Return the list of Figure 10 of the 2009 paper for one corpus, with the synthetic and the true
        counts.
        """
        strings = rows[(rows.panel == name) & (rows.metric == LIST)]
        titles = {"value": "synthetic", "true": "in the data", "ended": "known to end"}
        table = strings.set_index("string")[[*titles]].rename(columns=titles)
        return table.astype({"synthetic": int, "in the data": int})
