"""Figures 8 and 9's metric, and what is read off its curves."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from workbench.compiled import pd
from workbench.data import PUBLIC, Records
from workbench.trials.metrics import RecoveredFraction, match_strings, recovered_by_frequency
from workbench.value import format_number, value

RECOVERED = "Recovered"
SHARE = "RecoveredShare"
PRINTED = "as printed"
ENDED = "ended"
FROM_RAREST = "from the rarest"
FROM_MOST_FREQUENT = "from the most frequent"
OF_EACH = "of each frequency"
FREQUENT = "of frequent strings"
OTHERS = "of the others"


@value
class RecoveredStrings:
    """What is recovered of strings by how often they occur; how strings are counted is in `reading`.

    `adding` "from the rarest", a row has what is recovered of strings that occur fewer than `frequency`
    times, of the whole corpus; "from the most frequent", of those that occur at least so often; "of each
    frequency", which part of the records is recovered that occur `frequency` times up to twice that.
    `part` says of which strings: all, or those of more than `depth` symbols, or the others. Of the latter
    two rows each have which part is recovered of those that occur as often as `frequent` says, and of those
    that do not.
    """

    depth: int
    frequent: tuple[int, ...]

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """The curves in both readings, and the frequent strings."""
        parts = corpus_parts(truth, self.depth)
        frames = []
        for reading in (PRINTED, ENDED):
            real = _real(truth, estimate, prefixes=reading == PRINTED)
            frames.append(_curves(parts, real).assign(reading=reading))
            for least in self.frequent:
                frames.append(self._shares(parts["short"], real, least).assign(reading=reading))
        return pd.concat(frames, ignore_index=True)

    def _shares(self, corpus: Records, real: Records, least: int) -> pd.DataFrame:
        """What is recovered of strings that occur `least` times or more, and of the others."""
        parts = {FREQUENT: RecoveredFraction(least)}
        if least > 1:
            parts[OTHERS] = RecoveredFraction(1, least - 1)
        shares = [share(corpus, real) for share in parts.values()]
        frame = pd.DataFrame({"adding": [*parts], "value": shares})
        return frame.assign(metric=SHARE, part="short", frequent=least)


@lru_cache(maxsize=1)  # of the corpus itself: all trials ask for the same
def corpus_parts(corpus: Records, depth: int) -> dict[str, Records]:
    """All strings, those of at most `depth` symbols, and the others."""
    tree = corpus.hierarchy
    is_long = np.zeros(len(corpus), bool)
    if tree.depth > depth:
        is_long = tree.digits.digit(depth, corpus.keys) > 0
    parts = {"all": corpus}
    for name, chosen in (("short", ~is_long), ("long", is_long)):
        some = (corpus.keys[:, chosen], corpus.counts[chosen])
        parts[name] = Records.from_keys(tree, *some, corpus.bound, corpus.truth_public)
    return parts


def _real(corpus: Records, estimate: Any, prefixes: bool) -> Records:
    """Those synthetic strings that the corpus has: all that matters to what is recovered."""
    keys, counts, true_counts = match_strings(corpus, estimate, prefixes)
    real = true_counts > 0
    return Records.from_keys(corpus.hierarchy, keys[:, real], counts[real], PUBLIC)


def _curves(parts: dict[str, Records], synthetic: Records) -> pd.DataFrame:
    """Recovered parts at powers of two: of the whole corpus, and of each class of frequencies."""
    whole = parts["all"]
    powers = 2 ** np.arange(int(whole.counts.max()).bit_length() + 1)
    logs = np.log2(powers)
    frames = []
    for part, records in parts.items():
        curve = recovered_by_frequency(records, synthetic)
        at = np.searchsorted(curve.frequency, powers)
        share = records.total / whole.total
        data = share * np.append(0, curve["data"])[at]
        below = share * np.append(0, curve["recovered"])[at]
        columns = dict(metric=RECOVERED, part=part)
        rare = pd.DataFrame({"frequency": powers, "log": logs, "value": below, "data": data})
        frames.append(rare.assign(adding=FROM_RAREST, **columns))
        above = dict(frequency=powers, rest=20 - logs, value=below[-1] - below)
        above = pd.DataFrame(above | dict(data=data[-1] - data))
        frames.append(above.iloc[:-1].assign(adding=FROM_MOST_FREQUENT, **columns))
        held = np.diff(data) > 0
        each = np.diff(below) / np.where(held, np.diff(data), 1)
        each = pd.DataFrame({"frequency": powers[:-1], "value": each})
        frames.append(each[held].assign(adding=OF_EACH, **columns))
    return pd.concat(frames, ignore_index=True)


def break_points(rows: pd.DataFrame) -> pd.DataFrame:
    """The frequency below which less than half of the records of each class are recovered, for good."""
    return _crossed(rows[(rows.adding == OF_EACH) & (rows.part == "short")], 0.5, shift=0.5)


def departures(rows: pd.DataFrame, tight: float, part: str = "all") -> pd.DataFrame:
    """The frequency below which less than a part of the truth is recovered from above, for good."""
    own = rows[(rows.adding == FROM_MOST_FREQUENT) & (rows.part == part) & (rows.data > 0)]
    return _crossed(own.assign(value=own.value / own.data), tight, shift=0)


def _crossed(rows: pd.DataFrame, height: float, shift: float) -> pd.DataFrame:
    """A row a technique, ε and seed: the `value` is where its curve crosses."""
    curves = rows.sort_values("frequency").set_index("frequency")
    by_curve = curves.groupby(["series", "epsilon", "seed"]).value
    return by_curve.agg(lambda curve: crossed(curve, height, shift)).reset_index()


def crossed(curve: pd.Series, height: float, shift: float) -> float:
    """Below which power of two a curve is lower than a height for good.

    0 where it never is, infinity where it always is. Between two powers along the logarithm; `shift` is how
    far above it a power's value belongs.
    """
    there = np.flatnonzero(curve.to_numpy() >= height)
    if not len(there):
        return np.inf
    if there[0] == 0:
        return 0.0
    pair = curve.iloc[there[0] - 1 : there[0] + 1]
    logs = np.log2(pair.index.to_numpy(float))
    return float(2 ** (shift + np.interp(height, pair, logs)))


def frequency_text(frequency: float) -> str:
    """A frequency in words.

    >>> [frequency_text(x) for x in (0.0, float("inf"), 30.4)]
    ['below the rarest', 'above the most frequent', '30.4']
    """
    ends = {0.0: "below the rarest", np.inf: "above the most frequent"}
    return ends.get(frequency) or format_number(frequency)
