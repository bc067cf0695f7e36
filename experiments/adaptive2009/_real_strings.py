"""What figure 10 asks of synthetic strings: whether the corpus has them, and which they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.adaptive2009._leaves_in_parts import LeavesInParts
from workbench.compiled import pd
from workbench.data import Records
from workbench.estimates import Leaves
from workbench.spaces import keys_above, searchsorted_keys
from workbench.trials.metrics import match_strings
from workbench.value import value

REAL = "RealFraction"
BY_SYMBOL = "RealFractionBySymbol"
LIST = "Count"
_AT_ONCE = 2**22  # strings, so that copies of their keys take little beside all of them


@value
class RealStrings:
    """Which part of the strings that appear at least `frequencies` times the corpus has as a whole."""

    frequencies: tuple[int, ...]
    prefixes: bool

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """A row a frequency, `least`: how many `strings` they are, and which part `begins` the corpus's."""
        strings = _frequent(truth, estimate, min(self.frequencies), self.prefixes)
        rows = []
        for least in self.frequencies:
            own = strings[strings["count"] >= least]
            row = dict(least=least, value=own.real.mean(), strings=len(own))
            rows.append(row | {"begins": own.begins.mean()})
        return pd.DataFrame(rows).assign(metric=REAL, prefixes=self.prefixes)


@value
class RealBySymbol:
    """The same of the strings that appear at least `least` times, for each first symbol."""

    least: int

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """A row a `symbol` that such strings begin with."""
        real = _frequent(truth, estimate, self.least, True).groupby("symbol").real
        rows = pd.DataFrame({"value": real.mean().astype(float), "strings": real.size()})
        return rows.rename_axis("symbol").reset_index().assign(metric=BY_SYMBOL)


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


def _frequent(truth: Records, estimate: Any, least: int, prefixes: bool) -> pd.DataFrame:
    """The strings that appear so often: a row each, part by part of leaves that are in parts."""
    parts = estimate if isinstance(estimate, LeavesInParts) else [estimate]
    return pd.concat([_part_frequent(truth, part, least, prefixes) for part in parts])


def _part_frequent(truth: Records, part: Any, least: int, prefixes: bool) -> pd.DataFrame:
    """The same of one part: its `count`, whether it is `real`, or `begins` what is; its first `symbol`."""
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
    """Which strings a string of the corpus begins with."""
    parts = np.array_split(keys, max(1, keys.shape[1] // _AT_ONCE), axis=1)
    return np.concatenate([_part_begins(truth, part) for part in parts])


def _part_begins(truth: Records, keys) -> np.ndarray:
    """The same of some of them, in order: whether the next string of the corpus is one of theirs."""
    digits = truth.hierarchy.digits
    lengths = np.zeros(keys.shape[1], int)
    for level in range(digits.depth):
        lengths += digits.digit(level, keys) > 0
    first = searchsorted_keys(truth.keys, keys)
    begins = first < len(truth)
    last = digits.highest_keys(lengths, keys)[:, begins]
    begins[begins] = ~keys_above(truth.keys[:, first[begins]], last)
    return begins
